/** What of a program's output counts, and how it is ended (R3, R4), with a program that the test controls. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { Outcome } from '../jobs/job.ts';
import { supervise } from '../supervise.ts';
import { EMPTY_PROGRAM, type FakeProcess, FakeSandbox } from './support/fake-sandbox.ts';

const LIMIT = 10;
let sandbox: FakeSandbox;
let abort: AbortController;
let heard: { readonly stdout: string[]; readonly stderr: string[] };
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  sandbox = new FakeSandbox();
  abort = new AbortController();
  heard = { stdout: [], stderr: [] };
});
afterEach(() => {
  vi.useRealTimers();
});

async function start(
  outputBytes = LIMIT,
): Promise<{ readonly program: FakeProcess; readonly outcome: Promise<Outcome> }> {
  const process = await sandbox.start(EMPTY_PROGRAM);
  const outcome = supervise(process, {
    timeoutMs: 1_000,
    killGraceMs: 200,
    outputBytes,
    signal: abort.signal,
    output: (stream, text) => heard[stream].push(text),
  });
  const [program] = sandbox.started;
  if (program === undefined) throw new Error('nothing was started');
  return { program, outcome };
}

test('[R3] output up to the limit is kept', async () => {
  const { program, outcome } = await start();
  program.print('x'.repeat(LIMIT));
  program.end({ exitCode: 5 });
  expect(await outcome).toEqual({ end: 'exited', exitCode: 5, truncated: false });
  expect(heard.stdout.join('')).toBe('x'.repeat(LIMIT));
});

test.each(['stdout', 'stderr'] as const)(
  '[R3] more output on %s ends the program at once; what fits is kept',
  async (stream) => {
    const { program, outcome } = await start();
    program[stream === 'stdout' ? 'print' : 'complain']('1234567é890');
    expect(await outcome).toEqual({ end: 'output_limit', exitCode: null, truncated: true });
    expect(program.signals).toEqual(['KILL']);
    expect(heard[stream].join('')).toBe('1234567é8');
  },
);

test('[R3] invalid UTF-8 and NUL become U+FFFD; a character in two pieces stays whole', async () => {
  const { program, outcome } = await start(100);
  for (const bytes of [
    [0x61, 0xff, 0xfe, 0, 0x62, 0xe2],
    [0x82, 0xac],
  ])
    program.print(Buffer.from(bytes));
  program.end();
  await outcome;
  expect(heard.stdout.join('')).toBe('a\uFFFD\uFFFD\uFFFDb€');
});

test('[R4] at its timeout a program gets TERM, and KILL after the grace period', async () => {
  sandbox.obedient = false;
  const { program, outcome } = await start();
  await vi.advanceTimersByTimeAsync(999);
  expect(program.signals).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(program.signals).toEqual(['TERM']);
  await vi.advanceTimersByTimeAsync(199);
  expect(program.signals).toEqual(['TERM']);
  await vi.advanceTimersByTimeAsync(1);
  expect(await outcome).toEqual({ end: 'timeout', exitCode: null, truncated: false });
  expect(program.signals).toEqual(['TERM', 'KILL']);
});

test('[R4] the first reason to end a program counts', async () => {
  sandbox.obedient = false;
  const { program, outcome } = await start();
  abort.abort();
  program.print('x'.repeat(LIMIT + 1));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await outcome).toEqual({ end: 'killed', exitCode: null, truncated: true });
  expect(program.signals).toEqual(['TERM', 'KILL']);
});

test.each([
  [{ exitCode: 137, oom: true }, 'oom', 137],
  [{ exitCode: null, signal: 'SIGSEGV' }, 'killed', null],
  [{ exitCode: 0, lost: true }, 'lost', null],
] as const)('[R4] a program that ended with %j: %s', async (ended, end, exitCode) => {
  const { program, outcome } = await start();
  program.end(ended);
  expect(await outcome).toEqual({ end, exitCode, truncated: false });
});
