/** Files of messages that are fetched from URLs, in workerd (C2, X2). */
import { runInDurableObject } from 'cloudflare:test';
import { afterEach, expect, test, vi } from 'vitest';
import { SESSIONS } from './bindings.ts';
import { call, newSession, post } from './client.ts';

const GIF = Uint8Array.from(atob('R0lGODlhAQABAAAAACwAAAAAAQABAAA7'), (char) => char.charCodeAt(0));

afterEach(() => void vi.restoreAllMocks());

/** Answers requests to example.com; all others pass. @returns the URLs that were requested */
function serve(answer: (request: Request) => Response | Promise<Response>): string[] {
  const asked: string[] = [];
  const real = globalThis.fetch;
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    if (new URL(request.url).hostname !== 'example.com') return await real(input, init);
    asked.push(request.url);
    return await answer(request);
  });
  return asked;
}

const image = (url: string): object => ({ content: [{ type: 'image', url }], stream: false });
const messageTo = (session: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  post(`/agent/session/${session}/message`, body, headers);

async function historyOf(session: string): Promise<{ readonly parts?: readonly object[] }[]> {
  const response = await call(`/agent/session/${session}/history`);
  return (await response.json<{ messages: { parts?: object[] }[] }>()).messages;
}

/** Waits until its request is aborted. */
const silent = (request: Request): Promise<Response> =>
  new Promise((_resolve, reject) => request.signal.addEventListener('abort', () => reject(request.signal.reason)));

test('[C2] a file is fetched once, piece by piece; a repeated message is recognised before', async () => {
  const asked = serve(
    () =>
      new Response(
        new ReadableStream({
          start(body) {
            body.enqueue(GIF.subarray(0, 10));
            body.enqueue(GIF.subarray(10));
            body.close();
          },
        }),
        { headers: { 'content-type': 'image/png' } },
      ),
  );
  const session = await newSession();
  const key = { 'idempotency-key': 'once' };
  const first = await messageTo(session, image('https://example.com/dot.gif'), key);
  const again = await messageTo(session, image('https://example.com/dot.gif'), key);
  expect([first.status, again.status]).toEqual([200, 200]);
  const ids = [first, again].map(({ headers }) => headers.get('x-run-id'));
  expect(ids[0]).toBe(ids[1]);
  expect(asked).toEqual(['https://example.com/dot.gif']);
  const [message] = await historyOf(session);
  expect(message?.parts).toMatchObject([{ name: 'dot.gif', media_type: 'image/gif', size: GIF.length }]);
});

test('[C2] concurrent repeats of a key wait for the first, and make one run', async () => {
  const arrived = Promise.withResolvers<void>();
  const asked = serve(async () => {
    await arrived.promise;
    return new Response(GIF);
  });
  const session = await newSession();
  const both = Promise.all(
    [1, 2].map(() => messageTo(session, image('https://example.com/dot.gif'), { 'idempotency-key': 'k' })),
  );
  await expect.poll(() => asked.length).toBe(1);
  arrived.resolve();
  const [first, second] = await both;
  expect([first?.status, second?.status]).toEqual([200, 200]);
  expect(second?.headers.get('x-run-id')).toBe(first?.headers.get('x-run-id'));
  expect(asked).toHaveLength(1);
});

test.each(['http://127.0.0.1:8787/health', 'http://localhost/', 'http://[::1]/', 'http://169.254.169.254/latest'])(
  '[C2] [X2] %s is refused',
  async (url) => {
    const response = await messageTo(await newSession(), image(url));
    expect(await response.json()).toMatchObject({ status: 400, code: 'url_refused' });
  },
);

test('[C2] [X2] a redirect to a private address is refused, and the session is unused', async () => {
  const asked = serve(() => new Response(null, { status: 302, headers: { location: 'http://10.0.0.1/' } }));
  const session = await newSession();
  const response = await messageTo(session, image('https://example.com/a'));
  expect(await response.json()).toMatchObject({ status: 400, code: 'url_refused' });
  expect(asked).toHaveLength(1);
  const tables = await runInDurableObject(SESSIONS.getByName(session), (_object, { storage }) =>
    storage.sql.exec(`SELECT name FROM sqlite_master WHERE name IN ('runs', 'blobs')`).toArray(),
  );
  expect(tables).toEqual([]);
});

test('[C2] reading stops at the limit of a file', async () => {
  let isCancelled = false;
  serve(
    () =>
      new Response(
        new ReadableStream({
          pull: (body) => body.enqueue(new Uint8Array(1_048_576)),
          cancel: () => void (isCancelled = true),
        }),
      ),
  );
  const file = { content: [{ type: 'file', url: 'https://example.com/endless' }] };
  const response = await messageTo(await newSession(), file);
  expect(await response.json()).toMatchObject({ status: 413, code: 'content_too_large' });
  await expect.poll(() => isCancelled).toBe(true);
});

test('[C2] deleting the session during a transfer ends it, and leaves nothing', async () => {
  const asked = serve(silent);
  const session = await newSession();
  const pending = messageTo(session, image('https://example.com/a'));
  await expect.poll(() => asked.length).toBe(1);
  expect((await call(`/agent/session/${session}`, { method: 'DELETE' })).status).toBe(204);
  expect(await (await pending).json()).toMatchObject({ status: 404, code: 'unknown_session' });
  expect((await call(`/agent/session/${session}/history`)).status).toBe(404);
});

test('[C2] a client that leaves ends the transfer, and its message is not accepted', async () => {
  let isEnded = false;
  const asked = serve((request) => {
    request.signal.addEventListener('abort', () => void (isEnded = true));
    return silent(request);
  });
  const session = await newSession();
  const abort = new AbortController();
  const body = JSON.stringify(image('https://example.com/a'));
  const pending = call(`/agent/session/${session}/message`, { method: 'POST', body, signal: abort.signal });
  pending.catch(() => undefined);
  await expect.poll(() => asked.length).toBe(1);
  // Others of the session do not wait.
  expect((await messageTo(session, { content: 'What is 2 * 3?', stream: false })).status).toBe(200);
  abort.abort();
  await expect.poll(() => isEnded).toBe(true);
  expect((await historyOf(session)).filter(({ parts }) => parts !== undefined)).toEqual([]);
});
