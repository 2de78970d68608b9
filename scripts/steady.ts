/**
 * `npm run test:steady [-- runs [fast | system | long]]`: runs a command's tests repeatedly, as CI does, the second half of the
 * runs in parallel with two busy loops. Reports the duration of each run, its failures as soon as it has ended, and the slowest
 * files. The exit code is 1 if a run failed, or if one without busy loops took longer than the command may take.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { isTestKind, TEST_KINDS } from './test-kinds.ts';
import type { TestKindName } from './test-kinds.ts';
import { readReport } from './test-report.ts';

const BUSY_LOOPS = 2;
const SLOWEST = 10;

const [text = '5', kind = 'fast'] = process.argv.slice(2);
const runs = Number(text);
if (!Number.isSafeInteger(runs) || runs < 1 || !isTestKind(kind)) {
  const kinds = Object.keys(TEST_KINDS).join(' | ');
  console.error(`usage: npm run test:steady -- [runs [${kinds}]]; runs is a whole number, at least 1`);
  process.exit(2);
}
const { mostSeconds } = TEST_KINDS[kind];

const folder = mkdtempSync(join(tmpdir(), 'cortex-steady-'));
const busy: ChildProcess[] = [];
process.on('exit', () => {
  for (const child of busy) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
let current: ChildProcess | null = null;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    current?.kill(signal);
    process.exit(1);
  });
}

let failures = 0;
const seconds = new Map<string, number[]>();
for (let run = 1; run <= runs; run += 1) {
  const isBusy = run > Math.ceil(runs / 2);
  if (isBusy && busy.length === 0) {
    for (let at = 0; at < BUSY_LOOPS; at += 1) {
      busy.push(spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
    }
  }
  const reportFile = join(folder, `${run}.json`);
  const startedAt = performance.now();
  const { code, output } = await runTests(kind, reportFile);
  const took = Math.round((performance.now() - startedAt) / 1_000);
  const report = readReport(reportFile);
  const found = [...(report?.failures ?? [])];
  if (code !== 0 && found.length === 0) found.push(`exit code ${code}\n${output.slice(-2_000)}`);
  if (!isBusy && mostSeconds !== null && took > mostSeconds) found.push(`it took ${took} s (at most ${mostSeconds} s)`);
  for (const one of report?.files ?? []) seconds.set(one.file, [...(seconds.get(one.file) ?? []), one.seconds]);
  console.log(
    `run ${run} of ${runs}: ${took} s${isBusy ? ', beside busy loops' : ''}, ${found.length === 0 ? 'passed' : 'FAILED'}`,
  );
  for (const failure of found) console.log(failure);
  failures += found.length;
}

console.log('\nslowest files (seconds: median, most)');
const slowest = [...seconds].map(([file, all]) => ({ file, all: all.toSorted((a, b) => a - b) }));
for (const { file, all } of slowest.toSorted((a, b) => middle(b.all) - middle(a.all)).slice(0, SLOWEST)) {
  console.log(`${middle(all).toFixed(1).padStart(7)} ${(all.at(-1) ?? 0).toFixed(1).padStart(7)}  ${file}`);
}
console.log(failures === 0 ? '\nno failures' : `\n${failures} failures`);
process.exit(failures === 0 ? 0 : 1);

function middle(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

async function runTests(
  name: TestKindName,
  reportFile: string,
): Promise<{ readonly code: number; readonly output: string }> {
  const child = spawn(process.execPath, ['scripts/test.ts', name], {
    cwd: PACKAGE_ROOT,
    env: { ...process.env, CI: 'true', CORTEX_TEST_REPORT: reportFile },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  current = child;
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return await new Promise((resolve) => {
    child.once('close', (code) => resolve({ code: code ?? 1, output }));
  });
}
