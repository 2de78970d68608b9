/** Builds the Worker once, because bundling is most of the cost of a start. */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * @param root folder of the sources
 * @returns a folder with the built Worker and its configuration, which the caller removes; see `SystemOptions.builtWorker`
 */
export async function buildWorker(root: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-worker-'));
  const wrangler = join(root, 'node_modules/wrangler/bin/wrangler.js');
  await promisify(execFile)(process.execPath, [wrangler, 'deploy', '--dry-run', `--outdir=${folder}`], {
    cwd: root,
    env: { ...process.env, WRANGLER_SEND_METRICS: 'false', CI: 'true' },
  });
  rmSync(join(folder, 'worker.js.map'), { force: true });
  // At each start wrangler parses the main module, whatever its size, for its exports.
  renameSync(join(folder, 'worker.js'), join(folder, 'worker.mjs'));
  const exported = exportsOf(readFileSync(join(folder, 'worker.mjs'), 'utf8'));
  writeFileSync(join(folder, 'main.js'), `export { ${exported.join(', ')} } from './worker.mjs';\n`);
  const [settings = ''] = readFileSync(join(root, 'wrangler.toml'), 'utf8').split('\n[env.');
  const built = settings
    .replace(/^main = .*$/m, 'main = "main.js"')
    .replace(/^minify = true$/m, 'no_bundle = true')
    .replace(/^directory = .*$/m, 'directory = "console"')
    .replace(/^\[build\]\n(?:\w.*\n)*/m, '');
  const rule = '\n[[rules]]\ntype = "ESModule"\nglobs = ["worker.mjs"]\n';
  writeFileSync(join(folder, 'wrangler.toml'), built + rule);
  cpSync(join(root, 'console/dist'), join(folder, 'console'), { recursive: true });
  return folder;
}

/** @param code of a bundle, which exports everything at its end. @throws Error if it exports nothing as default */
function exportsOf(code: string): string[] {
  const [, list = ''] = /\bexport\s*\{([^}]*)\};/.exec(code.slice(code.lastIndexOf('export'))) ?? [];
  const names = list.split(',').map((one) => one.trim().replace(/^.* as /, ''));
  if (!names.includes('default')) throw new Error('The bundle has no default export where it is expected');
  return names;
}
