/** Messages at and beyond their size limits, from the Worker to the session's object (C2, H8). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { call, newSession, post } from './client.ts';

const PIECE_BYTES = 65_536;
const encoder = new TextEncoder();

const part = (name: string, bytes: number): object => ({
  type: 'file',
  name,
  data: btoa('x'.repeat(3_000))
    .repeat(Math.ceil(bytes / 3_000))
    .slice(0, (bytes / 3) * 4),
});
const bodyOf = (...content: readonly object[]): Uint8Array =>
  encoder.encode(JSON.stringify({ content, stream: false }));

/** In pieces, as from the network; without a stated length. */
async function streamed(session: string, body: Uint8Array): Promise<Response> {
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= body.length) return controller.close();
      controller.enqueue(body.slice(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
      return undefined;
    },
  });
  return await call(`/agent/session/${session}/message`, { method: 'POST', body: stream });
}

const whole = (session: string, body: Uint8Array): Promise<Response> =>
  call(`/agent/session/${session}/message`, { method: 'POST', body });

async function messagesOf(session: string): Promise<number> {
  const history = await call(`/agent/session/${session}/history`);
  return (await history.json<{ messages: unknown[] }>()).messages.length;
}

/** The code of the answer; afterwards, nothing is stored, and the session answers a message. */
async function refusal(session: string, response: Response): Promise<string> {
  const { code } = await response.json<{ code: string }>();
  expect(await messagesOf(session)).toBe(0);
  const next = await post(`/agent/session/${session}/message`, { content: 'hello', stream: false });
  expect((await next.json<RunResult>()).status).toBe('completed');
  return code;
}

const HALF = 8_388_606;

describe('[C2] [H8] a large message', () => {
  test.each([
    ['with its length', whole],
    ['without a length', streamed],
  ])('of as many bytes as there may be is accepted %s', async (_title, send) => {
    const session = await newSession();
    const response = await send(session, bodyOf(part('a', HALF), part('b', HALF)));
    expect([response.status, (await response.json<RunResult>()).status]).toEqual([200, 'completed']);
    const history = await (await call(`/agent/session/${session}/history`)).json<{ messages: unknown[] }>();
    expect(history.messages[0]).toMatchObject({ parts: [{ size: HALF }, { size: HALF }] });
  });

  test.each([
    ['with its length', whole],
    ['without a length', streamed],
  ])('whose files are too large together is refused %s', async (_title, send) => {
    const session = await newSession();
    const response = await send(session, bodyOf(part('a', HALF), part('b', HALF), part('c', 6)));
    expect(await refusal(session, response)).toBe('content_too_large');
  });

  test.each([
    ['with its length', whole],
    ['without a length', streamed],
  ])('whose body is one byte too large is refused %s', async (_title, send) => {
    const session = await newSession();
    const body = new Uint8Array(limits.messageBodyBytes + 1).fill(0x20);
    expect(await refusal(session, await send(session, body))).toBe('body_too_large');
  });

  test('to a session that does not exist, and to another route, is refused after its body was read', async () => {
    const body = bodyOf(part('a', HALF));
    const absent = await streamed(`ses_${'0'.repeat(32)}`, body);
    expect([absent.status, await absent.json()]).toMatchObject([404, { code: 'unknown_session' }]);
    const session = await newSession();
    const other = await call(`/agent/session/${session}/cancel`, { method: 'POST', body });
    expect(await refusal(session, other)).toBe('body_too_large');
  });

  test('several at once, to one session and to others, are all answered', async () => {
    const sessions = [await newSession(), await newSession(), await newSession()];
    const body = bodyOf(part('a', 3_000_000));
    const sent = [...sessions, ...sessions].map((session) => streamed(session, body));
    const statuses = (await Promise.all(sent)).map(async (response) => (await response.json<RunResult>()).status);
    expect(await Promise.all(statuses)).toEqual(Array.from({ length: 6 }, () => 'completed'));
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
])(
  '[E2] [E3] %s answers a message of 1 MB, and a larger one is an error before anything begins',
  async (path, bodyFor, end) => {
    const answered = await post(path, bodyFor('x'.repeat(1_000_000)));
    expect([answered.status, await answered.text()]).toEqual([200, expect.stringContaining(end)]);
    const refused = await post(path, bodyFor('y'.repeat(limits.messageBytes + 1)));
    expect([refused.status, await refused.json()]).toMatchObject([413, { error: { code: 'body_too_large' } }]);
  },
);
