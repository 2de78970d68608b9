/** Fetching the files of a message, from sources without limits of their own (C2). */
import { expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import type { FetchedFile } from '../../src/domain/ports/outbound.ts';
import { fetchContent } from '../../src/policies/fetched-content.ts';
import type { FetchPorts } from '../../src/policies/fetched-content.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { settle } from '../support/session-kit.ts';

const clock = new VirtualClock();
const wanted = (count: number): Parameters<typeof fetchContent>[0] => ({
  parts: Array.from({ length: count }, (_, at) => ({ type: 'file' as const, url: `https://example.com/${at}` })),
  files: new Map(),
  size: 0,
});
const run = (count: number, fetch: FetchPorts['fetch'], signal = new AbortController().signal): Promise<unknown> =>
  fetchContent(wanted(count), { fetch, clock, received: async () => undefined }, signal);

async function* endless(read: { bytes: number }): AsyncGenerator<Uint8Array> {
  const piece = new Uint8Array(1_048_576);
  for (;;) {
    read.bytes += piece.length;
    yield piece;
  }
}

test('[C2] a body is read up to one piece beyond its limit', async () => {
  const read = { bytes: 0 };
  const file: FetchedFile = { contentType: null, body: endless(read) };
  await expect(run(1, async () => file)).rejects.toMatchObject({
    code: 'content_too_large',
    message: `"content[0]": the file has more than ${limits.messagePartBytes} bytes`,
  });
  expect(read.bytes).toBe(limits.messagePartBytes + 1_048_576);
});

test('[C2] after a failure no further file is requested, and transfers that ignore it are not waited for', async () => {
  const asked: string[] = [];
  const failed = run(8, async (url) => {
    asked.push(url);
    if (url.endsWith('/1')) throw new EngineError('url_failed', 'no answer');
    if (url.endsWith('/0')) {
      await new Promise((resolve) => setImmediate(resolve));
      return { contentType: null, body: ReadableStream.from<Uint8Array>([]) };
    }
    return await new Promise<never>(() => undefined);
  });
  await expect(failed).rejects.toMatchObject({ code: 'url_failed', message: '"content[1]": no answer' });
  await settle();
  expect(asked).toHaveLength(limits.messageUrlsAtOnce);
  expect(clock.next).toBeNull();
});

test('[C2] the first reason counts, not what follows from it', async () => {
  const abort = new AbortController();
  const reason = new EngineError('unknown_session', 'deleted');
  const failed = run(
    2,
    (_url, signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new EngineError('url_failed', 'the transfer was cut'))),
      ),
    abort.signal,
  );
  abort.abort(reason);
  await expect(failed).rejects.toBe(reason);
});
