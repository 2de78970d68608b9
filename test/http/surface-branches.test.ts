/** Branches of a conversation with clients of other protocols (C4, E1, E3): requests as their adapters read them. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import type { ModelRequest } from '../../src/domain/ports/model.ts';
import { createSessionApp } from '../../src/http/session-app.ts';
import { SURFACE_PATH } from '../../src/http/surfaces/session-surface.ts';
import { readRun } from '../../src/surfaces/ag-ui/index.ts';
import { readChat, readMessages, readStream } from '../../src/surfaces/ai-sdk/index.ts';
import type { SurfaceInput, SurfaceName, SurfaceRequest } from '../../src/surfaces/surface.ts';
import { agUiChat } from '../support/ag-ui.ts';
import { callsOf } from '../support/client-calls.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { say, sessionKit, settle } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';

const RUN = (run: number): string => `run_${'a'.repeat(32)}_${run}`;
const answer = (text: string): string => `<response final="true">${text}</response>`;
const input = (body: Json): SurfaceInput => ({
  body,
  params: { name: 'assistant', chat: 'c' },
  query: {},
  key: null,
  session: null,
  isKey: true,
});

/** The text of the response. */
async function ask(
  { session }: SessionKit,
  surface: SurfaceName,
  { command }: SurfaceRequest,
  clock = new VirtualClock(),
): Promise<string> {
  const app = createSessionApp({ session, clock, destroy: async () => undefined, log: () => undefined });
  const body = JSON.stringify({ surface, agent: 'assistant', open: null, repeats: null, command });
  return await (await app.fetch(new Request(`http://session${SURFACE_PATH}`, { method: 'POST', body }))).text();
}

/** The first line of what the user has said, as the model was shown it. */
const asked = ({ messages }: ModelRequest): string[] =>
  messages.flatMap(({ role, content }) => (role === 'user' ? [String(content).split('\n', 1)[0] ?? ''] : []));

const parentsIn = ({ session }: SessionKit): number[] => session.runs().map(({ parent }) => parent);

const retry = async ({ session }: SessionKit, run: number): Promise<void> => {
  const message = session.branches.messageOf(session.run(RUN(run)));
  const { run: retried } = await session.message({ ...message, ifBusy: 'queue', tokens: false, idempotencyKey: null });
  await session.ended(retried);
};

interface Page {
  readonly kit: SessionKit;
  load(): Promise<(JsonObject & { readonly id: string })[]>;
  send(id: string, text: string, more?: JsonObject): Promise<string>;
  /** Loads the page, and asks for another answer to its last message. */
  regenerate(more?: JsonObject): Promise<string>;
  /** Loads the page, and changes its last message. */
  edit(text: string): Promise<string>;
}

async function page(kit: SessionKit): Promise<Page> {
  const load: Page['load'] = async () =>
    JSON.parse(await ask(kit, 'ai-sdk', readMessages(input(null)))) as Awaited<ReturnType<Page['load']>>;
  const post = async (messages: readonly Json[], more: JsonObject): Promise<string> =>
    await ask(kit, 'ai-sdk', readChat(input({ id: 'c', messages: [...messages], ...more })));
  const send: Page['send'] = async (id, text, more = {}) =>
    await post([{ id, role: 'user', parts: [{ type: 'text', text }] }], more);
  return {
    kit,
    load,
    send,
    regenerate: async (more) => {
      const messages = await load();
      const { id: messageId = '' } = messages.at(-1) ?? {};
      return await post(messages.slice(0, -1), more ?? { trigger: 'regenerate-message', messageId });
    },
    edit: async (text) => {
      const { id = '' } = (await load()).at(-2) ?? {};
      return await send(id, text, { trigger: 'submit-message', messageId: id });
    },
  };
}

const numbered = async (): Promise<Page> => await page(await sessionKit({ script: ['1', '2', '3', '4'].map(answer) }));

describe('[E1] [C4] after the page is loaded again,', () => {
  test('another answer to a message that was answered again is a branch', async () => {
    const { kit, send, regenerate, load } = await numbered();
    await send('m1', 'hello');
    await regenerate();
    expect((await load()).map(({ id }) => id)).toEqual([`user_${RUN(2)}`, RUN(2)]);
    await regenerate();
    expect(parentsIn(kit)).toEqual([0, 0, 0]);
    expect(kit.requests.map(asked)).toEqual([['hello'], ['hello'], ['hello']]);
  });

  test('a change of a message that was changed is a branch', async () => {
    const { kit, send, edit } = await numbered();
    await send('m1', 'hello');
    await edit('changed');
    await edit('changed twice');
    expect(parentsIn(kit)).toEqual([0, 0, 0]);
    expect(kit.requests.map(asked)).toEqual([['hello'], ['changed'], ['changed twice']]);
  });

  test.each(['regenerate', 'edit'] as const)('a message that came by HTTP has a branch (%s)', async (how) => {
    const { kit, regenerate, edit } = await numbered();
    await say(kit, 'hello');
    await (how === 'edit' ? edit('changed') : regenerate());
    expect(parentsIn(kit)).toEqual([0, 0]);
    expect(kit.requests.map(asked)).toEqual([['hello'], [how === 'edit' ? 'changed' : 'hello']]);
  });

  test('the same message again is the same run; with another text it is an error', async () => {
    const { kit, send } = await numbered();
    await say(kit, 'hello');
    const id = `user_${RUN(1)}`;
    expect(await send(id, 'hello')).toContain(`"messageId":"${RUN(1)}"`);
    expect(await send(id, 'hello', { messageId: id })).toContain(`"messageId":"${RUN(1)}"`);
    expect(await send(id, 'other')).toContain('idempotency_mismatch');
    expect(kit.session.runCount).toBe(1);
  });

  test('a message with an id of another session is a new one', async () => {
    const { kit, send } = await numbered();
    await say(kit, 'hello');
    await send(`user_run_${'b'.repeat(32)}_1`, 'other', { trigger: 'regenerate-message' });
    expect(parentsIn(kit)).toEqual([0, 1]);
  });

  test('the answer says which message the client means, if the id of the message is not known', async () => {
    const { kit, send } = await numbered();
    await say(kit, 'hello');
    await say(kit, 'more');
    await send('other', 'more', { trigger: 'regenerate-message', messageId: RUN(2) });
    expect(parentsIn(kit)).toEqual([0, 1, 1]);
  });
});

describe('[E1] [C4] another answer is for the version that the client has', () => {
  test('although there are more versions than a page has', async () => {
    const { kit, send } = await page(await sessionKit({}));
    await send('m1', 'hello');
    await send('m1', 'changed', { messageId: 'm1' });
    for (let run = 2; run <= limits.pageRows + 5; run += 1) {
      await send('m1', 'changed', { trigger: 'regenerate-message', ...(run % 2 ? {} : { messageId: RUN(run) }) });
    }
    expect(kit.session.runCount).toBe(limits.pageRows + 6);
    expect(kit.requests.slice(1).every((request) => asked(request).join() === 'changed')).toBe(true);
  });

  test('although a page of other messages follows the same run, and the head is elsewhere', async () => {
    const { kit, send } = await page(await sessionKit({}));
    await send('m1', 'hello');
    await send('m1', 'changed', { messageId: 'm1' });
    for (let count = 0; count <= limits.pageRows; count += 1) {
      const place = { parent: 0, retryOf: null };
      const message = { content: 'other', ifBusy: 'queue', tokens: false, idempotencyKey: null, place } as const;
      await kit.session.ended((await kit.session.message(message)).run);
    }
    await send('m1', 'changed', { trigger: 'regenerate-message' });
    expect(kit.session.runs(1)).toMatchObject([{ parent: 0, retryOf: 2 }]);
    expect(asked(kit.requests.at(-1) as ModelRequest)).toEqual(['changed']);
  });

  test('also if another one is newer', async () => {
    const { kit, send, regenerate } = await numbered();
    await send('m1', 'hello');
    await send('m1', 'changed', { messageId: 'm1' });
    await kit.session.branches.moveHead(kit.session.run(RUN(1)));
    await regenerate({ trigger: 'regenerate-message' });
    await send('m1', 'changed', { trigger: 'regenerate-message', messageId: RUN(2) });
    expect(kit.requests.map(asked)).toEqual([['hello'], ['changed'], ['hello'], ['changed']]);
  });

  test('also if the head has gone back to it; the same wish again is the same request', async () => {
    const { kit, send } = await numbered();
    const wish = { trigger: 'regenerate-message', messageId: RUN(1) };
    await send('m1', 'hello');
    for (const _ of [1, 2]) await send('m1', 'hello', wish);
    await kit.session.branches.moveHead(kit.session.run(RUN(1)));
    for (const _ of [1, 2]) await send('m1', 'hello', wish);
    expect(kit.session.runs().map(({ retryOf }) => retryOf)).toEqual([null, 1, 1]);
  });
});

describe('[E1] [C4] a page that is loaded again resumes the branch that it shows', () => {
  const resumed = async (kit: SessionKit): Promise<string> =>
    await ask(kit, 'ai-sdk', readStream(input(null)), kit.clock);

  test('and not a newer run of another branch that has just ended', async () => {
    const kit = await sessionKit({ script: ['one', 'two'].map(answer) });
    await say(kit, 'hello');
    await retry(kit, 1);
    expect(await resumed(kit)).toContain('"delta":"two"');
    await kit.session.branches.moveHead(kit.session.run(RUN(1)));
    const text = await resumed(kit);
    expect([text.includes('"delta":"one"'), text.includes('two')]).toEqual([true, false]);
    kit.clock.advance(limits.repeatedAnswerMs);
    expect(await resumed(kit)).toBe('');
  });

  test('and not an active run of another branch', async () => {
    const gate = Promise.withResolvers<void>();
    const call = '<action type="tool" mode="async" id="x">{"name":"echo","parameters":{"value":1}}</action>';
    const kit = await sessionKit({
      executors: { tool: async () => await gate.promise.then(() => ({ ok: true, output: 1 })) },
      script: [answer('one'), call, answer('two')],
    });
    await say(kit, 'hello');
    const busy = say(kit, 'more');
    await settle();
    await kit.session.branches.moveHead(kit.session.run(RUN(1)));
    const stream = resumed(kit);
    await settle();
    gate.resolve();
    expect(await stream).toContain('"delta":"one"');
    await busy;
  });
});

describe('[E3] [C4] `parentRunId`', () => {
  const TOOLS = [{ name: 'dial', description: '', parameters: { type: 'object', properties: {} } }];
  const CALL = '<action type="tool" mode="async" id="x">{"name":"dial","parameters":{}}</action>';

  /**
   * A message (r1) whose run calls the client, the request with its result (r2), and a second message (r3). Then a third
   * message follows `parent`. The client is the real one; only `parentRunId`, which it does not have, is added.
   */
  async function branched(parent: string, keepsMessages = true): Promise<SessionKit> {
    const kit = await sessionKit({ script: [CALL, ...['one', 'two', 'three'].map(answer)] });
    kit.sql.onSync = settle;
    let more = {};
    const chat = agUiChat({ url: 'http://session/', threadId: 't' }, async (body) => {
      const read = readRun(input({ ...body, ...more } as unknown as Json));
      return new Response(await ask(kit, 'ag-ui', read), { headers: { 'content-type': 'text/event-stream' } });
    });
    chat.agent.addMessage({ id: 'u1', role: 'user', content: 'first' });
    expect(await chat.run({ tools: TOOLS, runId: 'r1' })).toBe('success pending');
    chat.agent.addMessage({ id: 't1', role: 'tool', toolCallId: callsOf(kit)[0] ?? '', content: '1' });
    expect(await chat.run({ tools: TOOLS, runId: 'r2' })).toBe('success');
    const messages = structuredClone(chat.agent.messages);
    expect(await chat.say('second', 'r3')).toBe('success');
    chat.agent.setMessages(keepsMessages ? messages : []);
    more = { parentRunId: parent };
    expect(await chat.say('third', 'r4')).toBe('success');
    return kit;
  }

  test.each([
    ['is that of a message', 'r1', false],
    ['is that of a request that brought only a result', 'r2', true],
    ['is the id of a run', RUN(1), false],
  ])('names a run, if it %s', async (_, parent, keepsMessages) => {
    const kit = await branched(parent, keepsMessages);
    expect(parentsIn(kit)).toEqual([0, 1, 1]);
    expect(asked(kit.requests.at(-1) as ModelRequest)).toEqual(['first', '<results>', 'third']);
  });

  test('has no meaning if it is not known, and the conversation has no answer', async () => {
    expect(parentsIn(await branched('of another agent', false))).toEqual([0, 1, 2]);
  });
});
