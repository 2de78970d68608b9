/** The React example of docs/client.md, rendered on a server (K3). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { createElement } from 'react';
import type { FunctionComponent } from 'react';
import { renderToString } from 'react-dom/server';
import { expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

test('[K3] the React example of docs/client.md renders, also without a browser', async () => {
  const page = readFileSync('docs/client.md', 'utf8');
  const [, code = ''] = /^```tsx\n([^]*?)^```$/m.exec(page) ?? [];
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: PACKAGE_ROOT, loader: 'tsx' },
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    external: ['react', 'react/jsx-runtime'],
    alias: {
      'cortex-edge/client': join(PACKAGE_ROOT, 'src/client/all.ts'),
      'cortex-edge/react': join(PACKAGE_ROOT, 'react/index.ts'),
    },
    logLevel: 'silent',
  });
  // Beside the packages, so that Node finds React.
  const folder = mkdtempSync(join(PACKAGE_ROOT, 'node_modules', '.react-'));
  try {
    const file = join(folder, 'chat.mjs');
    writeFileSync(file, outputFiles[0]?.text ?? '');
    const { Chat } = (await import(pathToFileURL(file).href)) as { readonly Chat: FunctionComponent };
    expect(renderToString(createElement(Chat))).toContain('<input name="text"');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
