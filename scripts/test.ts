/**
 * `npm test`: bundles the manifests and runs vitest with the given arguments, with a Docker engine if one runs or can be
 * started. With CI=true, no test may be skipped.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEngine } from './engine.ts';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
}

for (const project of ['.', 'examples/code-tools']) {
  const build = [join(PACKAGE_ROOT, 'cli/main.ts'), 'build'];
  const built = spawnSync('node', build, { cwd: join(PACKAGE_ROOT, project), stdio: 'inherit' });
  if (built.status !== 0) process.exit(built.status ?? 1);
}

const folder = mkdtempSync(join(tmpdir(), 'cortex-test-'));
// Set by scripts/steady.ts, which reads the report.
const reportFile = process.env['CORTEX_TEST_REPORT'] ?? join(folder, 'report.json');
const engine = await openEngine(join(tmpdir(), 'cortex-edge-test-engine'));
if (typeof engine === 'string') console.log(`Without a Docker engine: ${engine}`);
let status = await runTests(typeof engine === 'string' ? null : engine.socket);
if (typeof engine !== 'string') await engine.stop();
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

/** Forwards signals to vitest, so that resources are cleaned up after it. */
async function runTests(dockerSocket: string | null): Promise<number> {
  const tests = spawn(
    'vitest',
    ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`, ...process.argv.slice(2)],
    {
      cwd: PACKAGE_ROOT,
      stdio: 'inherit',
      env: {
        ...process.env,
        // Hundreds of tests start programs: each compiles what it imports only once.
        NODE_COMPILE_CACHE: join(folder, 'compiled'),
        ...(dockerSocket === null ? {} : { RUNNER_DOCKER: dockerSocket }),
      },
    },
  );
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void tests.kill(signal));
  return await new Promise((resolve) => {
    tests.once('error', () => resolve(1));
    tests.once('exit', (code) => resolve(code ?? 1));
  });
}
