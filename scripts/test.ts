/** `npm test`: bundles the manifests, then runs vitest with the arguments given. With CI=true no test may be skipped. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './system.ts';

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
}

const bundled = spawnSync('node', ['scripts/bundle-manifests.ts'], { cwd: ROOT, stdio: 'inherit' });
if (bundled.status !== 0) process.exit(bundled.status ?? 1);

const folder = mkdtempSync(join(tmpdir(), 'cortex-test-'));
const reportFile = join(folder, 'report.json');
const tests = spawnSync(
  'vitest',
  ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`, ...process.argv.slice(2)],
  { cwd: ROOT, stdio: 'inherit' },
);
let status = tests.status ?? 1;
try {
  const report = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
  const skipped = report.numPendingTests + report.numTodoTests;
  if (process.env['CI'] === 'true' && skipped > 0) {
    console.error(`${skipped} tests were skipped; with CI=true every test must run.`);
    status ||= 1;
  }
  console.log(`${report.numPassedTests} passed, ${report.numFailedTests} failed, ${skipped} skipped`);
} catch {
  console.error('vitest wrote no report.');
  status ||= 1;
}
rmSync(folder, { recursive: true, force: true });
process.exit(status);
