/** Requests: which are repeated, with what, and what is thrown (K3). */
import { describe, expect, test } from 'vitest';
import { ERROR_TABLE } from '../../src/domain/errors.ts';
import { Client, CortexError } from '../../src/client/index.ts';
import type { ClientOptions } from '../../src/client/index.ts';
import { promptClock } from './client-kit.ts';

interface Sent {
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

type Reply = Response | Error | (() => Response);

/** A client of a server that answers in order; the last reply repeats. */
function clientOf(replies: readonly Reply[], more: Partial<ClientOptions> = {}) {
  const sent: Sent[] = [];
  const pauses: number[] = [];
  const client = new Client({
    url: 'https://x/base/',
    random: () => 1,
    clock: {
      ...promptClock,
      schedule: (delayMs, callback) => {
        if (delayMs < 120_000) pauses.push(delayMs);
        return promptClock.schedule(delayMs < 120_000 ? 0 : delayMs, callback);
      },
    },
    fetch: async (url, init) => {
      const reply = replies[Math.min(sent.length, replies.length - 1)] ?? new Error('no reply');
      sent.push({ url, headers: new Headers(init.headers), body: init.body as string });
      if (reply instanceof Error) throw reply;
      return typeof reply === 'function' ? reply() : reply.clone();
    },
    ...more,
  });
  return { client, sent, pauses };
}

const CREATED = Response.json({ session_id: 'ses_1' }, { status: 201 });
const LOST = new TypeError('fetch failed');
const refusal = (status: number, code?: string, headers: Record<string, string> = {}): Response =>
  code === undefined
    ? new Response('<html>', { status, headers })
    : Response.json({ code, detail: `because of ${code}` }, { status, headers });
const cutBody = (): Response =>
  new Response(new ReadableStream({ pull: (controller) => controller.error(new TypeError('terminated')) }));

describe('[K3] a request is repeated with the same idempotency key and body', () => {
  test.each<[string, Reply]>([
    ['a connection that is lost', LOST],
    ['an answer that is cut', cutBody],
    ['500', refusal(500, 'internal')],
    ['502 of a proxy', refusal(502)],
    ['503 with Retry-After', refusal(503, 'storage_unavailable', { 'retry-after': '2' })],
    ['429 with Retry-After', refusal(429, 'rate_limited', { 'retry-after': '2' })],
  ])('after %s', async (_name, reply) => {
    const { client, sent, pauses } = clientOf([reply, reply, CREATED]);
    expect((await client.createSession('a b', { userId: 'zoë' })).id).toBe('ses_1');
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1);
    expect(sent[0]?.headers.get('idempotency-key')).toMatch(/^[0-9a-f]{32}$/);
    expect(new Set(sent.map(({ url, body }) => url + body))).toEqual(
      new Set(['https://x/base/agent/a%20b/session{"user_id":"zoë"}']),
    );
    const isTold = reply instanceof Response && reply.headers.has('retry-after');
    expect(pauses).toEqual(isTold ? [2_000, 2_000] : [250, 500]);
  });

  test('at most 5 times', async () => {
    const { client, sent } = clientOf([LOST]);
    await expect(client.createSession('a')).rejects.toMatchObject({ code: 'connection_lost', status: 0, cause: LOST });
    expect(sent).toHaveLength(6);
  });

  test('not when Retry-After is longer than a minute: the error tells of it', async () => {
    const { client, sent } = clientOf([refusal(429, 'rate_limited', { 'retry-after': '61' })]);
    await expect(client.createSession('a')).rejects.toMatchObject({ code: 'rate_limited', retryAfterMs: 61_000 });
    expect(sent).toHaveLength(1);
  });
});

test.each(Object.entries(ERROR_TABLE).filter(([, { status }]) => status >= 500 || status === 429))(
  '[H4] whether %s is repeated agrees with the table of errors',
  (code, { status, retry }) => {
    expect(new CortexError({ code, message: '', status }).isPassing).toBe(retry === 'later');
  },
);

test('[K3] every POST has an idempotency key, which its attempts share; a given one is sent', async () => {
  const answer = Response.json({ session_id: 's', cancelled: true, approval_status: 'open' });
  const posts: ((client: Client) => Promise<unknown>)[] = [
    (client) => client.createSession('a'),
    (client) => client.session('s').cancel(),
    (client) => client.session('s').decide('apr', { approve: true }),
    (client) => client.session('s').settle('call', { output: 1 }),
  ];
  for (const post of posts) {
    const { client, sent } = clientOf([LOST, answer]);
    await post(client);
    const [first, second] = sent.map(({ headers }) => headers.get('idempotency-key'));
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toBe(first);
  }
  const { client, sent } = clientOf([CREATED]);
  await client.createSession('a', { idempotencyKey: 'mine' });
  await client.session('s').history();
  expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', null]);
});

describe('[K3] a refusal', () => {
  test('is thrown at once, with code, status, message and problem', async () => {
    const { client, sent } = clientOf([refusal(404, 'unknown_agent')]);
    const fault = await client.createSession('a').catch((thrown: unknown) => thrown);
    expect(fault).toBeInstanceOf(CortexError);
    expect(fault).toMatchObject({
      code: 'unknown_agent',
      status: 404,
      message: 'because of unknown_agent',
      retryAfterMs: null,
      problem: { code: 'unknown_agent' },
    });
    expect(sent).toHaveLength(1);
  });

  test('of a proxy has the status as its code', async () => {
    const { client } = clientOf([refusal(413)]);
    await expect(client.createSession('a')).rejects.toMatchObject({ code: 'http_413', message: 'HTTP 413: <html>' });
  });

  test('is also an answer that is not JSON', async () => {
    const { client } = clientOf([new Response('<html>')]);
    await expect(client.createSession('a')).rejects.toMatchObject({ code: 'invalid_response' });
  });

  test('is also an answer to a message without a run', async () => {
    const { client } = clientOf([new Response('<html>')]);
    await expect(client.session('s').send('hi')).rejects.toMatchObject({ code: 'invalid_response' });
  });
});

describe('[K3] credentials', () => {
  test('an API key, or a token, is sent in a header', async () => {
    for (const more of [{ key: 'k' }, { token: 'k' }, { token: () => Promise.resolve('k') }]) {
      const { client, sent } = clientOf([CREATED], more);
      await client.createSession('a');
      expect(sent[0]?.headers.get('authorization')).toBe('Bearer k');
    }
    const { client, sent } = clientOf([CREATED]);
    await client.createSession('a');
    expect(sent[0]?.headers.has('authorization')).toBe(false);
  });

  test.each(['paßwort—', 'a b', 'a\nb', '\u{1f511}'])(
    'a key that no header can carry is refused at once: %j',
    async (key) => {
      const { client, sent, pauses } = clientOf([], { key });
      await expect(client.createSession('a')).rejects.toMatchObject({ code: 'unauthorized' });
      expect([sent, pauses]).toEqual([[], []]);
    },
  );

  test('a token that has expired is renewed once', async () => {
    let made = 0;
    const { client, sent } = clientOf([refusal(401, 'unauthorized'), CREATED], { token: () => `t${(made += 1)}` });
    await client.createSession('a');
    expect(sent.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer t1', 'Bearer t2']);
    const same = clientOf([refusal(401, 'unauthorized')], { token: () => 'same' });
    await expect(same.client.createSession('a')).rejects.toMatchObject({ code: 'unauthorized' });
    expect(same.sent).toHaveLength(1);
  });
});

test.each(['.', '..'])('[K3] the id "%s" reaches no other path', async (id) => {
  const { client, sent } = clientOf([]);
  for (const refused of [
    client.session(id).document(),
    client.session('s').artifact(id),
    client.prompt(id),
    client.manifest('agent', id),
  ]) {
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request' });
  }
  expect(sent).toEqual([]);
});

test('[K3] a deletion whose answer was lost has succeeded; that of an unknown session has not', async () => {
  const gone = refusal(404, 'unknown_session');
  await clientOf([LOST, gone]).client.session('s').delete();
  await clientOf([new Response(null, { status: 204 })])
    .client.session('s')
    .delete();
  await expect(clientOf([gone]).client.session('s').delete()).rejects.toMatchObject({ code: 'unknown_session' });
});

test('[K3] an aborted request throws the reason of the signal, and is not repeated', async () => {
  const leave = new AbortController();
  const { client, sent } = clientOf([
    () => {
      leave.abort(new Error('left'));
      return refusal(503);
    },
  ]);
  await expect(client.createSession('a', { signal: leave.signal })).rejects.toThrow('left');
  await expect(client.createSession('a', { signal: leave.signal })).rejects.toThrow('left');
  expect(sent).toHaveLength(1);
});

test.each([
  ['without an answer', null],
  ['whose answer does not end', 200],
  ['whose error does not end', 404],
])('[K3] a request %s counts as lost after its time', async (_name, status) => {
  let calls = 0;
  const client = new Client({
    url: 'https://x',
    timeoutMs: 9_000,
    clock: promptClock,
    fetch: async (_url, { signal }) => {
      calls += 1;
      const { promise: never, reject } = Promise.withResolvers<never>();
      signal?.addEventListener('abort', () => reject(signal.reason as Error));
      return status === null ? await never : new Response(new ReadableStream({ pull: () => never }), { status });
    },
  });
  await expect(client.createSession('a')).rejects.toMatchObject({ code: 'connection_lost' });
  expect(calls).toBe(6);
});
