/**
 * `npm run keep-worker -- <name>`: builds the Worker and writes it to `test/upgrade/<name>.json.gz`. The test of upgrades
 * starts it, and then the present Worker on its data (docs/upgrading.md).
 */
import { rmSync, statSync } from 'node:fs';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { buildWorker } from '../test/support/built-worker.ts';
import { keepWorker } from '../test/support/kept-worker.ts';

const [name = ''] = process.argv.slice(2);
if (!/^[a-z0-9.-]+$/.test(name)) {
  console.error('usage: npm run keep-worker -- <name>; the name has a-z, 0-9, "." and "-", such as schema-1');
  process.exit(2);
}
const built = await buildWorker(PACKAGE_ROOT);
try {
  const file = keepWorker(name, built);
  console.log(`${file}: ${Math.round(statSync(file).size / 1_024)} KiB`);
} finally {
  rmSync(built, { recursive: true, force: true });
}
