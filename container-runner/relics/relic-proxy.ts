/**
 * Client of a relic's proxy (relic_proxy.py): sends calls as lines of JSON to its standard input, and reads answers from
 * its output.
 *
 * Owns the calls in progress. Does not own the proxy's process or container.
 * Invariants:
 * 1. Every call settles once: with its answer, at its timeout, or when the proxy ends.
 * 2. The proxy's output is always read, even without calls.
 */
import type { Readable, Writable } from 'node:stream';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

import { z } from 'zod';

import { limits } from '../limits.ts';
import type { RelicCall } from './definition.ts';
import type { RelicAnswer } from './relic-service.ts';

const SOURCE = fs.readFileSync(fileURLToPath(new URL('relic_proxy.py', import.meta.url)), 'utf8');
/** The proxy's own timeout is shorter, so that it can report what happened. */
const SPARE_MS = 500;

/** Limits of a relic's state. */
export interface StateBounds {
  /** The directory in the proxy's container. */
  readonly place: string;
  readonly bytes: number;
}

/** The command line of the proxy. The source is an argument, because the file system is read-only. */
export function proxyCommand(python: string, port: number, state: StateBounds | null = null): string[] {
  const figures = [port, limits.relicAnswerBytes, limits.relicCalls].map(String);
  const bounds =
    state === null ? [] : [state.place, ...[state.bytes, limits.inodes, limits.relicSpareBytes].map(String)];
  return [python, '-I', '-S', '-X', 'utf8', '-c', SOURCE, ...figures, ...bounds];
}

const line = z.intersection(
  z.object({ id: z.int() }),
  z.discriminatedUnion('end', [
    z.object({ end: z.literal('answered'), status: z.int(), type: z.string(), body: z.string() }),
    z.object({ end: z.literal('refused') }),
    z.object({ end: z.literal('broken'), why: z.string() }),
    z.object({ end: z.literal('timeout') }),
    z.object({ end: z.literal('too_large') }),
    /** Sent without a request: the violated limit of the state, or null. */
    z.object({ end: z.literal('state'), why: z.string().nullable() }),
  ]),
);

export class RelicProxy {
  readonly #input: Writable;
  readonly #waiting = new Map<number, (answer: RelicAnswer) => void>();
  readonly #onState: (why: string) => void;
  #last = 0;
  #closed = false;

  /** @param onState called with the limit that the state violates */
  constructor(input: Writable, output: Readable, onState: (why: string) => void = () => undefined) {
    this.#input = input;
    this.#onState = onState;
    input.on('error', () => this.close());
    readLines(output, (text) => this.#receive(text));
    output.once('close', () => this.close());
    output.once('end', () => this.close());
  }

  ask(call: RelicCall, timeoutMs: number): Promise<RelicAnswer> {
    if (this.#closed) return Promise.resolve({ end: 'refused' });
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle({ end: 'timeout' }), timeoutMs + SPARE_MS);
      const settle = (answer: RelicAnswer): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(answer);
      };
      this.#waiting.set(id, settle);
      this.#input.write(`${JSON.stringify({ id, timeout: timeoutMs / 1_000, ...call })}\n`);
    });
  }

  /** Ends all calls. Their outcome is unknown. */
  close(why = 'the relic ended'): void {
    this.#closed = true;
    for (const settle of this.#waiting.values()) settle({ end: 'broken', why });
  }

  #receive(text: string): void {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return;
    }
    const parsed = line.safeParse(value);
    if (!parsed.success) return;
    const { id, ...answer } = parsed.data;
    if (answer.end !== 'state') this.#waiting.get(id)?.(answer);
    else if (answer.why !== null) this.#onState(answer.why);
  }
}

/** Reads UTF-8 lines; drops a line that is longer than any valid answer. */
function readLines(stream: Readable, receive: (text: string) => void): void {
  const decoder = new TextDecoder();
  // JSON escapes may multiply the size of an answer by six
  const longest = 8 * limits.relicAnswerBytes;
  let pieces: string[] = [];
  let length = 0;
  stream.on('data', (chunk: Buffer) => {
    const parts = decoder.decode(chunk, { stream: true }).split('\n');
    for (const [at, part] of parts.entries()) {
      if (at > 0) {
        if (length <= longest) receive(pieces.join(''));
        pieces = [];
        length = 0;
      }
      length += part.length;
      if (length <= longest) pieces.push(part);
    }
  });
  stream.on('error', () => undefined);
}

/** Keeps the last output of streams, for messages. */
export function tailOf(streams: readonly Readable[]): () => string {
  const decoder = new TextDecoder();
  let tail = '';
  for (const stream of streams) {
    stream.on('data', (chunk: Buffer) => {
      tail = (tail + decoder.decode(chunk, { stream: true })).slice(-limits.relicTailChars);
    });
    stream.on('error', () => undefined);
  }
  return () => tail.trim();
}
