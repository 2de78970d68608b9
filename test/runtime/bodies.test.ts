/** Large and slow bodies, from the Worker to the session's object and back (C2, C7, H8). */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { call, newSession, post } from './client.ts';
import type { RunResult } from '../../src/view/result.ts';

const PIECE_BYTES = 65_536;

/** Random, so that they cannot be compressed. */
function bytesOf(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += PIECE_BYTES) crypto.getRandomValues(bytes.subarray(at, at + PIECE_BYTES));
  return bytes;
}

const filesOf = (session: string, path = ''): string => `/agent/session/${session}/files${path}`;
const put = (session: string, path: string, body: BodyInit): Promise<Response> =>
  call(filesOf(session, path), { method: 'PUT', body });

async function pathsOf(session: string): Promise<string[]> {
  const { files } = await (await call(filesOf(session))).json<{ files: { path: string }[] }>();
  return files.map(({ path }) => path);
}

/** In pieces, as from the network; without a stated length. */
function streamed(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
      return undefined;
    },
  });
}

describe('[C7] files of a session', () => {
  test('a file of 16 MiB arrives with and without a length, and comes back in parts', async () => {
    const session = await newSession();
    const bytes = bytesOf(limits.workspaceFileBytes);

    expect((await put(session, '/a/%C5%81.bin', bytes)).status).toBe(201);
    expect((await put(session, '/a/%C5%81.bin', streamed(bytes))).status).toBe(200);
    const whole = await call(filesOf(session, '/a/%C5%81.bin'));
    expect(whole.headers.get('content-disposition')).toBe(`attachment; filename="_.bin"; filename*=UTF-8''%C5%81.bin`);
    expect((await whole.bytes()).length).toBe(bytes.length);
    const part = await call(filesOf(session, '/a/%C5%81.bin'), { headers: { range: 'bytes=-5' } });
    expect([part.status, await part.bytes()]).toEqual([206, bytes.slice(-5)]);
    const etag = whole.headers.get('etag') ?? '';
    const known = await call(filesOf(session, '/a/%C5%81.bin'), { headers: { 'if-none-match': etag } });
    expect([known.status, await known.text()]).toEqual([304, '']);
    const head = await call(filesOf(session, '/a/%C5%81.bin'), { method: 'HEAD' });
    expect([head.status, head.headers.get('etag')]).toEqual([200, etag]);
  });

  test('a body of 17 MiB is 413, also without a length; then the session takes another file', async () => {
    const session = await newSession();
    for (const body of [bytesOf(17 * 1_048_576), streamed(bytesOf(17 * 1_048_576))]) {
      const response = await put(session, '/large', body);
      expect([response.status, await response.json()]).toMatchObject([413, { code: 'body_too_large' }]);
    }
    expect((await put(session, '/small', 'x')).status).toBe(201);
    expect(await pathsOf(session)).toEqual(['small']);
  });
});

describe('[C7] the archive', () => {
  test('is complete, or its stream fails: when the session is deleted meanwhile', async () => {
    for (const end of ['none', 'session'] as const) {
      const session = await newSession();
      // More than the buffers between the object and the client hold.
      for (const name of ['/a', '/b', '/c']) await put(session, name, bytesOf(8_000_000));
      const response = await call(filesOf(session, '?archive=zip'));
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/zip']);
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();
      if (end === 'session') expect((await call(`/agent/session/${session}`, { method: 'DELETE' })).status).toBe(204);
      let bytes = 0;
      const rest = (async () => {
        for (let read = await reader.read(); !read.done; read = await reader.read()) bytes += read.value.length;
      })();
      if (end === 'none') {
        await rest;
        expect(bytes).toBeGreaterThan(20_000_000);
      } else await expect(rest).rejects.toThrow();
    }
  });
});

const part = (name: string, bytes: number): object => ({
  type: 'file',
  name,
  data: btoa('x'.repeat(3_000))
    .repeat(Math.ceil(bytes / 3_000))
    .slice(0, (bytes / 3) * 4),
});
const bodyOf = (...content: readonly object[]): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ content, stream: false }));

/** With its length, or in pieces without a stated length. */
const sendTo = (session: string, body: Uint8Array, isWhole: boolean): Promise<Response> =>
  call(`/agent/session/${session}/message`, { method: 'POST', body: isWhole ? body : streamed(body) });

async function historyOf(session: string): Promise<{ readonly parts?: readonly object[] }[]> {
  const response = await call(`/agent/session/${session}/history`);
  return (await response.json<{ messages: { parts?: object[] }[] }>()).messages;
}

/** The code of the answer; afterwards, nothing is stored, and the session answers a message. */
async function refusal(session: string, response: Response): Promise<string> {
  const { code } = await response.json<{ code: string }>();
  expect(await historyOf(session)).toEqual([]);
  const next = await post(`/agent/session/${session}/message`, { content: 'hello', stream: false });
  expect((await next.json<RunResult>()).status).toBe('completed');
  return code;
}

const HALF = 8_388_606;

describe('[C2] [H8] a large message', () => {
  describe.each([true, false])('whose length is stated: %s', (isWhole) => {
    test('is accepted with as many bytes as there may be', async () => {
      const session = await newSession();
      const response = await sendTo(session, bodyOf(part('a', HALF), part('b', HALF)), isWhole);
      expect([response.status, (await response.json<RunResult>()).status]).toEqual([200, 'completed']);
      expect((await historyOf(session))[0]).toMatchObject({ parts: [{ size: HALF }, { size: HALF }] });
    });

    test('is refused with one byte more', async () => {
      const session = await newSession();
      const body = new Uint8Array(limits.messageBodyBytes + 1).fill(0x20);
      expect(await refusal(session, await sendTo(session, body, isWhole))).toBe('body_too_large');
    });
  });

  test('to a session that does not exist, and to another route, is refused after its body was read', async () => {
    const body = bodyOf(part('a', HALF));
    const absent = await sendTo(`ses_${'0'.repeat(32)}`, body, false);
    expect([absent.status, await absent.json()]).toMatchObject([404, { code: 'unknown_session' }]);
    const session = await newSession();
    const other = await call(`/agent/session/${session}/cancel`, { method: 'POST', body });
    expect(await refusal(session, other)).toBe('body_too_large');
  });
});

test.each([
  [
    '/v1/chat/completions',
    (text: string) => ({ model: 'assistant', stream: true, messages: [{ role: 'user', content: text }] }),
    '"finish_reason":"stop"',
  ],
  [
    '/v1/responses',
    (text: string) => ({ model: 'assistant', stream: true, input: text }),
    '"type":"response.completed"',
  ],
  [
    '/agui/assistant',
    (text: string) => ({
      threadId: text.slice(0, 9),
      runId: 'r',
      messages: [{ id: 'm', role: 'user', content: text }],
    }),
    '"outcome":{"type":"success"}',
  ],
  [
    '/ai/assistant/chat',
    (text: string) => ({
      id: text.slice(0, 9),
      messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text }] }],
    }),
    '"type":"finish"',
  ],
])(
  '[E1] [E2] [E3] %s answers a message of 1 MB, and a larger one is an error before anything begins',
  async (path, bodyFor, end) => {
    const answered = await post(path, bodyFor('x'.repeat(1_000_000)));
    expect([answered.status, await answered.text()]).toEqual([200, expect.stringContaining(end)]);
    const refused = await post(path, bodyFor('y'.repeat(limits.messageBytes + 1)));
    expect([refused.status, await refused.text()]).toEqual([413, expect.stringContaining('body_too_large')]);
  },
);

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

test('[C2] [X2] a URL of this machine is refused', async () => {
  const response = await messageTo(await newSession(), image('http://127.0.0.1:8787/health'));
  expect(await response.json()).toMatchObject({ status: 400, code: 'url_refused' });
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
