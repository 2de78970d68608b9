/** The client has no dependencies and stays small (K3). */
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';

/** Of what a page loads. */
const GZIPPED_BYTES = 10 * 1_024;

test('[K3] a bundle of the client contains its own files only, for browsers, Node and workerd alike', async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: ['src/client/index.ts'],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    // Imports of Node's modules are errors.
    platform: 'neutral',
    target: 'es2022',
  });
  expect(Object.keys(metafile.inputs).filter((file) => !/^src\/(client|view)\//.test(file))).toEqual([]);
  expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([]);
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThan(GZIPPED_BYTES);
});
