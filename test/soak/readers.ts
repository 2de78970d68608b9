/** Readers of an event stream that behave badly: they stop reading, or leave. Each has a connection of its own. */
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

export interface ReaderOptions {
  /** URL of the stream. */
  readonly url: string;
  /** Bytes until it stops reading; Infinity: it reads everything. */
  readonly stopsAfter: number;
  /** How long it then keeps the connection. Milliseconds. */
  readonly staysMs: number;
  readonly signal: AbortSignal;
}

/** Resolves when the reader has left, the stream has ended, or the connection has failed. */
export async function read({ url, stopsAfter, staysMs, signal }: ReaderOptions): Promise<void> {
  await new Promise<void>((resolve) => {
    const request = get(url, { agent: false, signal }, (response) => {
      void consume(response, stopsAfter, staysMs, signal).finally(() => {
        response.destroy();
        resolve();
      });
    });
    request.on('error', () => resolve());
  });
}

async function consume(
  response: IncomingMessage,
  stopsAfter: number,
  staysMs: number,
  signal: AbortSignal,
): Promise<void> {
  try {
    let bytes = 0;
    const isFull = new Promise<void>((resolve) => {
      response.on('error', () => resolve());
      response.on('close', () => resolve());
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes < stopsAfter) return;
        response.pause();
        resolve();
      });
    });
    await isFull;
    if (!response.closed) await delay(staysMs, undefined, { signal });
  } catch {
    // The soak test ends.
  }
}
