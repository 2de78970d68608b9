/** Builds the Worker once, because bundling is most of the cost of a start. */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  const [settings = ''] = readFileSync(join(root, 'wrangler.toml'), 'utf8').split('\n[env.');
  const built = settings
    .replace(/^main = .*$/m, 'main = "worker.js"')
    .replace(/^minify = true$/m, 'no_bundle = true')
    .replace(/^directory = .*$/m, 'directory = "console"')
    .replace(/^\[build\]\n(?:\w.*\n)*/m, '');
  writeFileSync(join(folder, 'wrangler.toml'), built);
  cpSync(join(root, 'console/dist'), join(folder, 'console'), { recursive: true });
  return folder;
}
