import { EventEmitter } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../limits.ts';
import { endOf } from '../sandbox/child.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A child that has exited, whose pipes stay open. */
function exited() {
  const child = new EventEmitter() as ChildProcess;
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  let hasEnded = false;
  const ended = endOf({ child, stdout, stderr }, () => false).finally(() => (hasEnded = true));
  child.emit('exit', 3, null);
  const pass = async (ms: number): Promise<boolean> => {
    await vi.advanceTimersByTimeAsync(ms);
    return hasEnded;
  };
  return { stdout, stderr, ended, pass };
}

test('[R4] a pipe that something else holds open ends the wait after a while', async () => {
  const { ended, pass, stdout } = exited();
  expect(await pass(limits.drainMs - 1)).toBe(false);
  expect(await pass(10)).toBe(true);
  expect(await ended).toEqual({ exitCode: 3, signal: null, oom: false });
  expect(stdout.destroyed).toBe(true);
});

test('[R4] output of the child is kept until it is read', async () => {
  const { pass, stderr } = exited();
  stderr.write('the reason');
  expect(await pass(3 * limits.drainMs)).toBe(false);
  expect(String(stderr.read())).toBe('the reason');
  expect(await pass(2 * limits.drainMs)).toBe(true);
});

test('[R4] output that does not end is not read for ever', async () => {
  const { pass, stdout } = exited();
  stdout.write('unread output');
  expect(await pass((limits.drains - 1) * limits.drainMs)).toBe(false);
  expect(await pass(2 * limits.drainMs)).toBe(true);
});
