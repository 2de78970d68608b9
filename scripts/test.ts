/**
 * `npm test`, `npm run test:system`, `test:long` and `test:programs`: bundle the manifests and run vitest on the projects of the
 * command with the given arguments; where tests use a Docker engine, with one if it runs or can be started. The slowest files
 * are printed at the end. `npm test` finds no program of the machine but Node, git and a shell. With CI=true, no test may be
 * skipped.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { openEngine } from './engine.ts';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { isTestKind, TEST_KINDS } from './test-kinds.ts';
import { readReport } from './test-report.ts';

const SLOWEST = 10;
/** With Node, what a machine with a clone has. */
const PROGRAMS = ['npm', 'npx', 'git', 'sh', 'env'];

const [name = '', ...given] = process.argv.slice(2);
if (!isTestKind(name)) {
  console.error(`usage: node scripts/test.ts ${Object.keys(TEST_KINDS).join(' | ')} [arguments of vitest]`);
  process.exit(2);
}
const kind = TEST_KINDS[name];
const hasProject = given.some((argument) => argument.startsWith('--project'));
const projects = hasProject ? [] : kind.projects.flatMap((project) => ['--project', project]);

for (const project of ['.', 'examples/code-tools']) {
  const build = [join(PACKAGE_ROOT, 'cli/main.ts'), 'build'];
  const built = spawnSync('node', build, { cwd: join(PACKAGE_ROOT, project), stdio: 'inherit' });
  if (built.status !== 0) process.exit(built.status ?? 1);
}

const folder = mkdtempSync(join(tmpdir(), 'cortex-test-'));
// Set by scripts/steady.ts, which reads the report.
const reportFile = process.env['CORTEX_TEST_REPORT'] ?? join(folder, 'report.json');
const engine = kind.usesDocker ? await openEngine(join(tmpdir(), 'cortex-edge-test-engine')) : null;
if (typeof engine === 'string') console.log(`Without a Docker engine: ${engine}`);
const running = typeof engine === 'string' ? null : engine;
let status = await runTests(running?.socket ?? null);
await running?.stop();
const report = readReport(reportFile);
if (report === null) {
  console.error('vitest wrote no report.');
  status ||= 1;
} else {
  const { passed, failed, skipped, files } = report;
  if (process.env['CI'] === 'true' && skipped > 0) {
    console.error(`${skipped} tests were skipped; with CI=true every test must run.`);
    status ||= 1;
  }
  if (files.length > SLOWEST) {
    console.log('slowest files (seconds)');
    for (const { file, seconds } of files.slice(0, SLOWEST)) console.log(`${seconds.toFixed(1).padStart(7)}  ${file}`);
  }
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
}
rmSync(folder, { recursive: true, force: true });
process.exit(status);

/** The folders of this repository, and the programs that every machine with a clone has: no test can depend on others. */
function ownPath(): string {
  const found = (process.env['PATH'] ?? '').split(delimiter);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const program of PROGRAMS) {
    const path = found.map((one) => join(one, program)).find((one) => existsSync(one));
    if (path !== undefined) symlinkSync(path, join(bin, program));
  }
  return [...found.filter((one) => one.startsWith(PACKAGE_ROOT)), bin].join(delimiter);
}

/** Forwards signals to vitest, so that resources are cleaned up after it. */
async function runTests(dockerSocket: string | null): Promise<number> {
  const tests = spawn(
    'vitest',
    [
      'run',
      ...(name === 'programs' ? ['--passWithNoTests'] : []),
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${reportFile}`,
      ...projects,
      ...given,
    ],
    {
      cwd: PACKAGE_ROOT,
      stdio: 'inherit',
      env: {
        ...process.env,
        ...(kind.usesMachine ? {} : { PATH: ownPath() }),
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
