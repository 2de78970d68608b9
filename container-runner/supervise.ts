/**
 * Supervises a started program: reads and limits its output, and ends it at its timeout, at the output limit or on
 * request (R3, R4).
 *
 * Invariants:
 * 1. Resolves once, when the whole program is gone.
 * 2. The first reason to end the program counts. A program that ends before a signal reached it has `exited`.
 * 3. Output is always read, so the program never blocks; output beyond the limit is dropped.
 */
import type { Readable } from 'node:stream';

import type { JobEnd, Outcome } from './jobs/job.ts';
import { limits } from './limits.ts';
import type { SandboxProcess } from './sandbox/sandbox.ts';

export interface Supervision {
  readonly timeoutMs: number;
  /** Time between TERM and KILL. */
  readonly killGraceMs: number;
  /** For each stream. */
  readonly outputBytes: number;
  /** Aborts to kill the job. */
  readonly signal: AbortSignal;
  readonly output: (stream: 'stdout' | 'stderr', text: string) => void;
}

export async function supervise(
  process: SandboxProcess,
  { timeoutMs, killGraceMs, outputBytes, signal, output }: Supervision,
): Promise<Outcome> {
  let reason: Exclude<JobEnd, 'exited' | 'oom' | 'lost'> | null = null;
  let truncated = false;
  let graceTimer: NodeJS.Timeout | undefined;

  function stop(why: NonNullable<typeof reason>): void {
    if (reason !== null) return;
    reason = why;
    if (why === 'output_limit') {
      process.kill();
      return;
    }
    process.terminate();
    graceTimer = setTimeout(() => process.kill(), killGraceMs);
  }
  function onLimit(): void {
    truncated = true;
    stop('output_limit');
  }

  read(process.stdout, outputBytes, (text) => output('stdout', text), onLimit);
  read(process.stderr, outputBytes, (text) => output('stderr', text), onLimit);
  const timer = setTimeout(() => stop('timeout'), timeoutMs);
  const onAbort = (): void => stop('killed');
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();

  const ended = await process.ended;
  clearTimeout(timer);
  clearTimeout(graceTimer);
  signal.removeEventListener('abort', onAbort);
  if (reason !== null) return { end: reason, exitCode: null, truncated };
  if (ended.lost === true) return { end: 'lost', exitCode: null, truncated };
  if (ended.oom) return { end: 'oom', exitCode: ended.exitCode, truncated };
  if (ended.exitCode === null) {
    // killed by a foreign signal, and not by the memory limit
    return { end: 'killed', exitCode: null, truncated };
  }
  return { end: 'exited', exitCode: ended.exitCode, truncated };
}

/** Decodes a stream as UTF-8; invalid bytes and NUL become U+FFFD. */
function read(stream: Readable, outputBytes: number, emit: (text: string) => void, onLimit: () => void): void {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let room = outputBytes;
  let over = false;
  function say(text: string): void {
    const legal = text.replaceAll('\0', '\uFFFD');
    for (let at = 0; at < legal.length;) {
      let end = Math.min(at + limits.outputEventChars, legal.length);
      const last = legal.charCodeAt(end - 1);
      if (end < legal.length && last >= 0xd800 && last <= 0xdbff) end -= 1;
      emit(legal.slice(at, end));
      at = end;
    }
  }
  stream.on('data', (chunk: Buffer) => {
    if (over) return;
    const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
    room -= kept.length;
    say(decoder.decode(kept, { stream: true }));
    if (kept.length < chunk.length) {
      over = true;
      onLimit();
    }
  });
  stream.once('end', () => {
    if (!over) say(decoder.decode());
  });
  // a broken pipe is the end of the stream
  stream.on('error', () => undefined);
  // a stream that was paused must be resumed explicitly
  stream.resume();
}
