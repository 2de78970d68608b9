/** `npm run screenshots`: makes the pictures of docs/console.md again, in Chromium, with the test of them. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

const { status } = spawnSync(
  process.execPath,
  [join(PACKAGE_ROOT, 'scripts/test.ts'), 'long', 'test/long/console-pictures.test.ts'],
  { cwd: PACKAGE_ROOT, stdio: 'inherit', env: { ...process.env, CORTEX_PICTURES: join(PACKAGE_ROOT, 'docs/images') } },
);
process.exit(status ?? 1);
