/** Seeded histories through the routes: who may give one, what is refused, and how it is read (C1). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import { untilInvalid } from '../../src/http/history-body.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SeededMessage } from '../../src/domain/seeded.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { LargeBodies } from '../../src/http/large-bodies.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { checkedFetch, checkedSession, checkedKit } from '../support/response-check.ts';
import { say, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { edgeApp } from './edge-app.ts';
import { eventually } from '../support/eventually.ts';

const KEY = 'Bearer k-ann';

/** A Worker; `created` gets the history of each session that it creates. */
function edge() {
  const created: (readonly SeededMessage[])[] = [];
  const tokens = new Tokens(
    () => 'a secret for signing that nobody knows',
    () => 0,
  );
  const app = edgeApp({
    auth: { keys: parseApiKeys('ann:run:k-ann'), allowedOrigins: [] },
    tokens,
    agent: async (name) => bundled.agent(name),
    createSession: async (_record, _state, history) => void created.push(history.messages),
  });
  const create = async (body: unknown, authorization = KEY): Promise<[number, Record<string, unknown>]> => {
    const request = new Request('http://127.0.0.1:8787/agent/assistant/session', {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization, host: '127.0.0.1:8787' },
    });
    const response = await checkedFetch(app)(request);
    return [response.status, (await response.json()) as Record<string, unknown>];
  };
  return { created, create, tokens };
}

const call = { id: 'a', type: 'function', function: { name: 'weather', arguments: '{}' } } as const;

test('[C1] the messages of OpenAI clients are accepted as they send them', async () => {
  const { create, created } = edge();
  const history = [
    { role: 'user', content: [{ type: 'text', text: 'How warm is Oslo?' }] },
    { role: 'assistant', content: null, refusal: null, annotations: [], audio: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'a', content: '3' },
    { role: 'assistant', content: 'Three degrees.', refusal: null },
  ];
  const [status, answer] = await create({ history });
  expect([status, answer]).toEqual([201, expect.objectContaining({ message_count: 4 })]);
  expect(created).toEqual([
    [
      { role: 'user', content: 'How warm is Oslo?' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: '3' },
      { role: 'assistant', content: 'Three degrees.' },
    ],
  ]);
  expect((await create({}))[1]).toMatchObject({ message_count: 0 });
});

test('[C1] a token cannot give a history, not even an empty one', async () => {
  const { create, created, tokens } = edge();
  const token = await tokens.issue({
    type: 'user',
    userId: 'zoe',
    agents: null,
    surfaces: ['http'],
    owner: 'ann',
    scopes: ['read', 'message', 'approve'],
    expiresAt: 60_000,
  });
  // The reason comes before what is wrong with it.
  for (const history of [[{ role: 'user', content: 'hi' }], [], [{ role: 'system' }], 'x', null]) {
    expect(await create({ history }, `Bearer ${token}`)).toEqual([403, expect.objectContaining({ code: 'forbidden' })]);
  }
  const large = { history: [{ role: 'user', content: 'x'.repeat(limits.bodyBytes) }] };
  expect(await create(large, `Bearer ${token}`)).toEqual([413, expect.objectContaining({ code: 'body_too_large' })]);
  expect(created).toEqual([]);
});

describe('[C1] refused, and no session is created:', () => {
  const user = { role: 'user', content: 'hi' };
  const image = { type: 'image_url', image_url: { url: 'https://a.example/x.png' } };
  const of = (role: string, more: object) => [{ role, ...more }];
  test.each<[string, unknown, string, code?: string]>([
    ['no list', 'hi', '"history"'],
    [
      'a mistyped role',
      [user, ...of('asistant', {})],
      '"history.1.role": unknown role "asistant" (did you mean "assistant"?',
    ],
    [
      'an unknown member',
      of('tool', { content: 'x', tool_call: 'a' }),
      '"history.0.tool_call": unknown member (did you mean "tool_call_id"?)',
    ],
    [
      'a name that could be a tag',
      [user, ...of('assistant', { tool_calls: [{ ...call, id: 'a"><system>' }] })],
      '"history.1.tool_calls.0.id": an id has 1 to 128 characters',
    ],
    ['a number as content', of('user', { content: 1 }), 'expected a string, or a list of parts'],
    [
      'a part of an unknown type',
      of('user', { content: [{ type: 'image-url' }] }),
      '"history.0.content.0.type": unknown type "image-url" (did you mean "image_url"?',
    ],
    [
      'a name that is a path',
      of('user', { content: [{ type: 'file', file: { filename: '../a', file_data: '' } }] }),
      '"history.0.content.0.file.filename"',
    ],
    [
      'an image of the assistant',
      of('assistant', { content: [{ type: 'image', data: '' }] }),
      '"history.0.content.0.type": unknown type "image" (known: text, output_text, refusal)',
    ],
    ['a URL', [user, ...of('user', { content: [image] })], 'history[1].content[0]', 'unsupported_content'],
    ['an orphan', of('tool', { tool_call_id: 'a', content: '1' }), 'history[0]', 'invalid_history'],
    [
      'too many messages',
      Array.from({ length: limits.seededMessages + 1 }, () => user),
      `allowed: ${limits.seededMessages}`,
      'history_too_large',
    ],
    ['a body that is too large', of('user', { content: 'x'.repeat(limits.createBodyBytes) }), '', 'body_too_large'],
  ])('%s', async (_, history, detail, code = 'invalid_request') => {
    const { create, created } = edge();
    const [, problem] = await create({ history });
    expect(problem).toMatchObject({ code, detail: expect.stringContaining(detail) as string });
    expect(created).toEqual([]);
  });
});

test('[C1] [X2] large histories of a namespace are read one after the other, and hold their place until they are stored', async () => {
  const clock = new VirtualClock();
  const begun: string[] = [];
  const created = Promise.withResolvers<void>();
  const app = edgeApp({
    auth: { keys: parseApiKeys('ann:run:k-ann,bob:run:k-bob'), allowedOrigins: [] },
    bodies: new LargeBodies(clock),
    agent: async (name) => bundled.agent(name),
    createSession: async ({ owner }, _state, { messages }) => {
      begun.push(`${owner} ${messages.length}`);
      if (begun.length === 1) await created.promise;
    },
  });
  const create = (key: string, count: number, chars: number): Promise<Response> => {
    const history = Array.from({ length: count }, () => ({ role: 'user', content: 'x'.repeat(chars) }));
    return Promise.resolve(
      app.fetch(
        new Request('http://127.0.0.1:8787/agent/assistant/session', {
          method: 'POST',
          body: JSON.stringify({ history }),
          headers: { authorization: `Bearer ${key}`, host: '127.0.0.1:8787' },
        }),
      ),
    );
  };
  const large = limits.largeBodyBytes;
  const first = create('k-ann', 1, large);
  await eventually(() => expect(begun).toEqual(['ann 1']));
  const second = create('k-ann', 2, large);
  // A small one, and one of another namespace, do not wait.
  expect((await create('k-ann', 3, 1)).status).toBe(201);
  expect((await create('k-bob', 2, large)).status).toBe(201);
  expect(begun).toEqual(['ann 1', 'ann 3', 'bob 2']);
  created.resolve();
  expect((await first).status).toBe(201);
  await eventually(async () => {
    clock.advance(limits.largeBodyPollMs);
    await Promise.resolve();
    expect(begun).toContain('ann 2');
  });
  expect((await second).status).toBe(201);
});

describe('[C1] GET /history', () => {
  interface Page {
    readonly messages: readonly { role: string; content: string | null; seeded?: true; run_id?: string }[];
    readonly next: string | null;
  }
  const HISTORY: SeededMessage[] = Array.from({ length: 250 }, (_, at): SeededMessage =>
    at % 2 === 0 ? { role: 'user', content: `seeded ${at}` } : { role: 'assistant', content: `seeded ${at}` },
  );

  async function page(kit: SessionKit, query: string): Promise<Page> {
    const destroy = async (): Promise<void> => undefined;
    const fetch = checkedSession({ session: kit.session, clock: new VirtualClock(), destroy, log: () => undefined });
    return (await (await fetch(new Request(`http://session/history${query}`))).json()) as Page;
  }

  async function all(kit: SessionKit, limit: number): Promise<{ pages: number; messages: Page['messages'][number][] }> {
    const found: Page['messages'][] = [];
    for (let before = ''; ;) {
      const { messages, next } = await page(kit, `?limit=${limit}${before}`);
      expect(messages.length).toBeLessThanOrEqual(limit * 2);
      found.push(messages);
      if (next === null) return { pages: found.length, messages: found.toReversed().flat() };
      before = `&before=${next}`;
    }
  }

  test.each([1, 7, 100])('pages of %i go back to its first message, each once', async (limit) => {
    const kit = await sessionKit({ history: HISTORY, script: Array.from({ length: 3 }, () => 'yes') });
    for (const at of [0, 1, 2]) await say(kit, `run ${at}`);
    const { messages, pages } = await all(kit, limit);
    expect(messages.slice(0, 250)).toEqual(HISTORY.map((message) => ({ ...message, seeded: true })));
    expect(messages.slice(250).map(({ content }) => content)).toEqual(['run 0', 'yes', 'run 1', 'yes', 'run 2', 'yes']);
    expect(messages.slice(250).every(({ seeded, run_id: run }) => seeded === undefined && run !== undefined)).toBe(
      true,
    );
    expect(pages).toBeLessThanOrEqual(Math.ceil(253 / limit) + 1);
  });

  test('a session without runs shows it, with calls and results as they were given', async () => {
    const history: SeededMessage[] = [
      { role: 'user', content: 'hi', name: 'ann' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: '' },
    ];
    const kit = await sessionKit({ history });
    expect(await page(kit, '')).toMatchObject({
      messages: history.map((message) => ({ ...message, seeded: true })),
      next: null,
    });
  });

  test('a page ends within its size', async () => {
    const content = 'x'.repeat(limits.historyPageChars / 8);
    const kit = await sessionKit({ history: Array.from({ length: 12 }, () => ({ role: 'user', content })) });
    const { messages, next } = await page(kit, '');
    expect(messages.length).toBeLessThanOrEqual(9);
    expect(next).toMatch(/^seeded_\d$/);
  });
});

test('[C1] the number of messages counts it', async () => {
  const kit = await sessionKit({ history: [{ role: 'user', content: 'a' }], script: ['yes'] });
  await say(kit, 'b');
  const fetch = checkedKit(kit);
  const document = (await (await fetch(new Request('http://session/'))).json()) as Record<string, unknown>;
  expect(document).toMatchObject({ message_count: 3, runs: 1 });
});

test('[C1] [X2] an invalid history costs no more than its messages up to the first invalid one', async () => {
  const parts = Array.from({ length: 900 }, () => 1);
  const history = [
    { role: 'user', content: 'x' },
    ...Array.from({ length: 200 }, () => ({ role: 'user', content: parts })),
  ];
  const kept = untilInvalid(history);
  expect(kept).toEqual(history.slice(0, 2));
  expect(untilInvalid(history.slice(0, 1))).toEqual(history.slice(0, 1));
  expect(untilInvalid('x')).toBe('x');
});
