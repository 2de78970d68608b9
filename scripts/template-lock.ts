/**
 * `npm run template:lock`: makes `template/package-lock.json`, after `npm run package`. The entry of cortex-edge has its
 * version but no hash: the package contains the template, so the hash of the package cannot be in it.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { startRegistry } from '../test/support/local-registry.ts';

interface Lock {
  readonly packages: Readonly<Record<string, { integrity?: string; resolved?: string }>>;
}

const folder = mkdtempSync(join(tmpdir(), 'cortex-lock-'));
try {
  await using registry = await startRegistry([join(PACKAGE_ROOT, 'dist/package')]);
  cpSync(join(PACKAGE_ROOT, 'template/package.json'), join(folder, 'package.json'));
  // The registry is in this process, so npm must not block it.
  await promisify(execFile)(
    'npm',
    ['install', '--package-lock-only', '--omit-lockfile-registry-resolved', '--no-audit', '--no-fund'],
    {
      cwd: folder,
      env: { ...process.env, npm_config_registry: registry.url, npm_config_cache: join(folder, 'cache') },
    },
  );
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as Lock;
  for (const entry of Object.values(lock.packages)) delete entry.resolved;
  delete lock.packages['node_modules/cortex-edge']?.integrity;
  writeFileSync(join(PACKAGE_ROOT, 'template/package-lock.json'), `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`template/package-lock.json: ${Object.keys(lock.packages).length} packages`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
