/** `npm run screenshots`: makes the pictures of docs/console.md again, in Chromium, with the test of them. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './system/system.ts';

const { status } = spawnSync(
  process.execPath,
  [join(ROOT, 'scripts/test.ts'), '--project', 'e2e', 'test/e2e/console-pictures.test.ts'],
  { cwd: ROOT, stdio: 'inherit', env: { ...process.env, CORTEX_PICTURES: join(ROOT, 'docs/images') } },
);
process.exit(status ?? 1);
