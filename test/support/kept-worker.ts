/** Workers of earlier versions, which `test/upgrade/` keeps: the files of a built one, as gzipped JSON by their names. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

const FOLDER = join(PACKAGE_ROOT, 'test/upgrade');
/** All that a Worker needs besides its console. */
const FILES = ['main.js', 'worker.mjs', 'wrangler.toml'];

/** The kept Workers, by name. */
export function keptWorkers(): string[] {
  return readdirSync(FOLDER).map((name) => name.replace(/\.json\.gz$/, ''));
}

/** @param folder of a built Worker (built-worker.ts) @returns the written file */
export function keepWorker(name: string, folder: string): string {
  const files = Object.fromEntries(FILES.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  const kept = join(FOLDER, `${name}.json.gz`);
  writeFileSync(kept, gzipSync(JSON.stringify(files), { level: 9 }));
  return kept;
}

/** @returns a new folder with the kept Worker, as `SystemOptions.builtWorker` has it; the caller removes it */
export function unpackWorker(name: string): string {
  const files = JSON.parse(gunzipSync(readFileSync(join(FOLDER, `${name}.json.gz`))).toString()) as object;
  const folder = mkdtempSync(join(tmpdir(), 'cortex-kept-'));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), String(text));
  mkdirSync(join(folder, 'console'));
  return folder;
}
