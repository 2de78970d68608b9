/** The AI SDK's client when connections and objects are lost (E1, J2, J5). */
import { abortAllDurableObjects } from 'cloudflare:test';
import type { UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { PlainChat, transportOf } from '../support/ai-chat.ts';
import { call, post } from './client.ts';

const API = 'http://127.0.0.1:8787/ai/assistant/chat';

const TOOLS = {
  tools: [{ name: 'pick_color', description: 'Asks for a color.', parameters: { type: 'object', properties: {} } }],
};

/** Streams of the chat's first request, with `at` called before the frame of this number; null: not. */
function chatOf(id: string, frame: number | null, at: () => Promise<'cut' | 'go on'>, body: object = {}) {
  let requests = 0;
  let frames = 0;
  const session = { id: '' };
  const transport = transportOf(
    async (url, init) => {
      const response = await call(new URL(String(url)).pathname, init);
      session.id = response.headers.get('x-session-id') ?? session.id;
      requests += 1;
      if (requests > 1 || response.body === null) return response;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const encoder = new TextEncoder();
      let rest = '';
      const stream = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          rest += value;
          for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
            if (frames === frame && (await at()) === 'cut') {
              void reader.cancel().catch(() => undefined);
              return controller.error(new TypeError('network error'));
            }
            frames += 1;
            controller.enqueue(encoder.encode(rest.slice(0, end + 2)));
            rest = rest.slice(end + 2);
          }
          return undefined;
        },
      });
      return new Response(stream, response);
    },
    API,
    body,
  );
  const chat = new PlainChat({ id, transport });
  return { chat, session, frames: () => frames };
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Expects that the chat has the one run of its session, as it is stored. */
async function expectStored(chat: PlainChat, session: { readonly id: string }): Promise<void> {
  const stored = await (await call(`/ai/assistant/chat/${chat.id}/messages`)).json<UIMessage[]>();
  const { runs } = await (await call(`/agent/session/${session.id}`)).json<{ runs: number }>();
  expect([stored.length, runs]).toEqual([2, 1]);
  expect(plain(chat.messages.map(({ id, role, parts }) => ({ id, role, parts })))).toEqual(stored);
}

const statusOf = async (id: string): Promise<string> =>
  (await (await call(`/agent/session/${id}`)).json<{ status: string }>()).status;

/** Reads the rest; if the run has ended meanwhile, the list of messages has it. */
async function comeBack(chat: PlainChat, session: { readonly id: string }): Promise<void> {
  await expect
    .poll(async () => {
      await chat.resumeStream();
      return chat.status;
    })
    .toBe('ready');
  await expect.poll(() => statusOf(session.id)).toBe('idle');
  chat.messages = await (await call(`/ai/assistant/chat/${chat.id}/messages`)).json<UIMessage[]>();
}

/** The parts of a message; ids of calls are those of their run. */
const shape = (message: UIMessage | undefined): unknown =>
  JSON.parse(JSON.stringify(message?.parts ?? null).replaceAll(/call_[\w-]+/g, 'call'));

test('[E1] a client that leaves at any frame and comes back has the whole message, of one run', async () => {
  const ask = { text: 'use pick_color' };
  const whole = chatOf('whole', null, async () => 'go on', TOOLS);
  await whole.chat.sendMessage(ask);
  const count = whole.frames();
  expect(count).toBeGreaterThan(5);
  await Promise.all(
    Array.from({ length: count - 1 }, async (_, frame) => {
      const { chat, session } = chatOf(`leaves at ${frame}`, frame, async () => 'cut', TOOLS);
      await chat.sendMessage(ask);
      expect([chat.status, chat.error?.message]).toEqual(['error', 'network error']);
      await chat.resumeStream();
      expect(chat.status).toBe('ready');
      const { runs } = await (await call(`/agent/session/${session.id}`)).json<{ runs: number }>();
      expect([runs, chat.messages.length]).toEqual([1, 2]);
      expect(shape(chat.lastMessage)).toEqual(shape(whole.chat.lastMessage));
    }),
  );
});

test('[E1] a client that left before the end gets the rest, although the run has ended', async () => {
  const { chat, session } = chatOf('left', 1, async () => 'cut');
  await chat.sendMessage({ text: 'What is 6 * 7?' });
  expect(chat.status).toBe('error');
  await expect.poll(() => statusOf(session.id)).toBe('idle');
  await chat.resumeStream();
  await expectStored(chat, session);
});

test('[E1][J2] the object is lost at a frame: the client gets an error, and the whole message when it comes back', async () => {
  // At every event: test/surfaces/ai-sdk/fold.test.ts.
  for (const frame of [0, 1, 3, 6, 10]) {
    const { chat, session } = chatOf(`object lost at ${frame}`, frame, async () => {
      await abortAllDurableObjects();
      return 'go on';
    });
    await chat.sendMessage({ text: 'What is 6 * 7?' });
    if (chat.status !== 'ready') {
      expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringMatching(/lost/)]);
      await comeBack(chat, session);
    }
    await expectStored(chat, session);
  }
});

test('[E1] two clients follow one run, and both have the stored message', async () => {
  const one = chatOf('both', null, async () => 'go on');
  const sent = one.chat.sendMessage({ text: 'What is 6 * 7?' });
  await expect.poll(() => one.frames()).toBeGreaterThan(2);
  const two = chatOf('both', null, async () => 'go on');
  await two.chat.resumeStream();
  await sent;
  await expectStored(one.chat, one.session);
  expect(plain(two.chat.lastMessage?.parts)).toEqual(plain(one.chat.lastMessage?.parts));
});

test('[E1] a message of 1 MB is answered, and one above the limit is an error before anything begins', async () => {
  const large = (id: string, chars: number): object => ({
    id,
    messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'x'.repeat(chars) }] }],
  });
  const response = await post('/ai/assistant/chat', large('large', 1_000_000));
  expect(await response.text()).toContain('"type":"finish"');
  const refused = await post('/ai/assistant/chat', large('larger', 1_048_577));
  expect([refused.status, await refused.text()]).toEqual([413, expect.stringContaining('(body_too_large)')]);
});

test.each([
  ['no JSON', '{"id": "x", "messages"', 400, 'invalid_json'],
  ['a list', '[]', 400, 'invalid_request'],
  ['a message without parts', '{"id":"x","messages":[{"id":"m","role":"user"}]}', 400, 'invalid_request'],
  ['a role of another protocol', '{"id":"x","messages":[{"id":"m","role":"tool","parts":[]}]}', 400, 'invalid_request'],
  [
    'an answer for a call of another session',
    '{"id":"x","messages":[{"id":"m","role":"assistant","parts":[{"type":"dynamic-tool","toolCallId":"call_x","state":"output-available","output":1}]}]}',
    404,
    'unknown_call',
  ],
])('[E1] %s is an error, and begins no run', async (_, body, status, code) => {
  const response = await call('/ai/assistant/chat', { method: 'POST', body });
  expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(`(${code})`)]);
});
