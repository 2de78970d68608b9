/**
 * `npm run test:steady [-- runs]`: runs the whole suite repeatedly, as CI does, the second half of the runs in parallel
 * with two busy loops. Reports the duration of each run, its failures as soon as it has ended, and the slowest files.
 * The exit code is 1 if a run failed.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

const BUSY_LOOPS = 2;
const SLOWEST = 10;

/** The used part of vitest's report. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

const [text = '10'] = process.argv.slice(2);
const runs = Number(text);
if (!Number.isSafeInteger(runs) || runs < 1) {
  console.error('usage: npm run test:steady -- [runs], a whole number, at least 1');
  process.exit(2);
}

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

const failures: string[] = [];
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
  const known = failures.length;
  const { code, output } = await runSuite(reportFile);
  const found = read(run, reportFile);
  if (code !== 0 && found === 0) failures.push(`run ${run}: exit code ${code}\n${output.slice(-2_000)}`);
  const took = Math.round((performance.now() - startedAt) / 1_000);
  console.log(
    `run ${run} of ${runs}: ${took} s${isBusy ? ', beside busy loops' : ''}, ${code === 0 ? 'passed' : 'FAILED'}`,
  );
  for (const failure of failures.slice(known)) console.log(failure);
}

console.log('\nslowest files (seconds: median, most)');
const slowest = [...seconds].map(([file, all]) => ({ file, all: all.toSorted((a, b) => a - b) }));
for (const { file, all } of slowest.toSorted((a, b) => middle(b.all) - middle(a.all)).slice(0, SLOWEST)) {
  console.log(`${middle(all).toFixed(1).padStart(7)} ${(all.at(-1) ?? 0).toFixed(1).padStart(7)}  ${file}`);
}
console.log(failures.length === 0 ? '\nno failures' : `\n${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);

function middle(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

async function runSuite(reportFile: string): Promise<{ readonly code: number; readonly output: string }> {
  const child = spawn(process.execPath, ['scripts/test.ts'], {
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

/** Adds the durations and the failures of a run. @returns the number of failures */
function read(run: number, reportFile: string): number {
  let report: Report;
  try {
    report = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
  } catch {
    return 0;
  }
  let count = 0;
  for (const { name, status, message, startTime, endTime, assertionResults } of report.testResults) {
    const file = relative(PACKAGE_ROOT, name);
    seconds.set(file, [...(seconds.get(file) ?? []), (endTime - startTime) / 1_000]);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    for (const { fullName, failureMessages } of failed) {
      failures.push(`run ${run}: ${file}: ${fullName}\n${failureMessages.join('\n')}`);
    }
    if (status === 'failed' && failed.length === 0) failures.push(`run ${run}: ${file}\n${message}`);
    count += failed.length === 0 && status === 'failed' ? 1 : failed.length;
  }
  return count;
}
