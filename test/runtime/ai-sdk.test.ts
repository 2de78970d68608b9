/** The unchanged client of the AI SDK against the Worker (E1). */
import { abortAllDurableObjects } from 'cloudflare:test';
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  safeValidateUIMessages,
} from 'ai';
import type { UIMessage } from 'ai';
import { describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { PlainChat, textOf, transportOf } from '../support/ai-chat.ts';
import { call, post } from './client.ts';

const API = 'http://127.0.0.1:8787/ai/assistant/chat';
const TOOL = { name: 'pick_color', description: 'Asks for a color.', parameters: { type: 'object', properties: {} } };

/** Responses of the chat's requests, for their headers. */
type Seen = { readonly path: string; readonly run: string; readonly session: string };

function chatOf(
  id: string,
  options: { readonly body?: object; readonly messages?: UIMessage[]; readonly answers?: boolean } = {},
): { readonly chat: PlainChat; readonly seen: Seen[] } {
  const seen: Seen[] = [];
  const transport = transportOf(
    async (url, init) => {
      const { pathname } = new URL(String(url));
      if (seen.length > 5) throw new Error('the chat sends its answers again and again');
      const response = await call(pathname, init);
      const header = (name: string): string => response.headers.get(name) ?? '';
      seen.push({ path: pathname, run: header('x-run-id'), session: header('x-session-id') });
      return response;
    },
    API,
    options.body,
  );
  const chat: PlainChat = new PlainChat({
    id,
    transport,
    messages: options.messages ?? [],
    ...(options.answers === true
      ? {
          sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
          onToolCall: ({ toolCall: { toolCallId, toolName } }) => {
            void chat.addToolOutput({ tool: toolName, toolCallId, output: 'teal' });
          },
        }
      : {}),
  });
  return { chat, seen };
}

const stored = async ({ session, run }: Seen): Promise<RunResult> =>
  await (await call(`/agent/session/${session}/runs/${run}`)).json<RunResult>();

const first = (seen: readonly Seen[]): Seen => seen[0] ?? { path: '', run: '', session: '' };

test('[E1] a message streams its thoughts, actions and answer; the folded text is the stored one', async () => {
  const { chat, seen } = chatOf('plain');
  await chat.sendMessage({ text: 'What is 6 * 7?' });
  expect([chat.status, chat.error]).toEqual(['ready', undefined]);
  const run = await stored(first(seen));
  expect(run.response).toContain('42');
  expect(textOf(chat.lastMessage)).toBe(run.responses.map(({ content }) => content).join('\n\n'));
  expect(chat.lastMessage?.id).toBe(run.run_id);
  const tools = chat.lastMessage?.parts.filter((part) => part.type === 'dynamic-tool');
  expect(tools?.map(({ state }) => state)).toEqual(run.actions.map(() => 'output-available'));
});

test('[E1] a conversation goes on in its session, and another name is another session', async () => {
  const { chat, seen } = chatOf('two');
  await chat.sendMessage({ text: 'Hello' });
  await chat.sendMessage({ text: 'Hello again' });
  const other = chatOf('three');
  await other.chat.sendMessage({ text: 'Hello' });
  expect(new Set(seen.map(({ session }) => session)).size).toBe(1);
  expect(new Set(seen.map(({ run }) => run)).size).toBe(2);
  expect(first(other.seen).session).not.toBe(first(seen).session);
});

test('[E1] a repeated request gives the same run', async () => {
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
  const body = { id: 'again', messages: [message], trigger: 'submit-message', futureMember: 1 };
  const [one, two] = await Promise.all([post('/ai/assistant/chat', body), post('/ai/assistant/chat', body)]);
  expect(one.headers.get('x-run-id')).toBe(two.headers.get('x-run-id'));
  const last = (text: string): string[] => text.trim().split('\n\n').slice(-2);
  for (const response of [one, two]) {
    expect(last(await response.text())).toEqual(['data: {"type":"finish","finishReason":"stop"}', 'data: [DONE]']);
  }
});

test('[E1] the client executes its tools, and the answer uses the result; a full replay gives the same message', async () => {
  const { chat, seen } = chatOf('tools', { body: { tools: [TOOL] }, answers: true });
  await chat.sendMessage({ text: 'use pick_color' });
  await expect.poll(() => [chat.status, seen.length]).toEqual(['ready', 2]);
  const run = await stored(first(seen));
  expect([run.status, run.actions[0]?.output]).toEqual(['completed', 'teal']);
  expect(new Set(seen.map(({ run: id }) => id)).size).toBe(1);
  expect(textOf(chat.lastMessage)).toContain('teal');
  const [user] = chat.messages;
  const replay = await post('/ai/assistant/chat', {
    id: 'tools',
    tools: [TOOL],
    messages: [user],
  });
  const again = new PlainChat({ id: 'tools', transport: transportOf(async () => replay, API), messages: [] });
  await again.sendMessage({ text: 'any' });
  expect(again.lastMessage?.parts).toEqual(chat.lastMessage?.parts);
});

/** Without members that are undefined. */
const plain = (messages: readonly UIMessage[]): unknown => JSON.parse(JSON.stringify(messages));

test('[E1] a page that is loaded again gets the messages that the first one had', async () => {
  const { chat } = chatOf('history', { body: { tools: [TOOL] }, answers: true });
  await chat.sendMessage({ text: 'What is 6 * 7?' });
  await chat.sendMessage({ text: 'use pick_color' });
  await expect.poll(() => [chat.status, textOf(chat.lastMessage).includes('teal')]).toEqual(['ready', true]);
  const load = async (name: string): Promise<UIMessage[]> =>
    await (await call(`/ai/assistant/chat/${name}/messages`)).json<UIMessage[]>();
  const messages = await load('history');
  expect(messages).toHaveLength(4);
  expect(messages).toEqual(plain(chat.messages.map(({ id, role, parts }) => ({ id, role, parts }))));
  expect(await load('unknown')).toEqual([]);
  // The answer of a run that waits comes with its stream.
  const open = chatOf('waiting', { body: { tools: [TOOL] } });
  await open.chat.sendMessage({ text: 'use pick_color' });
  const page = chatOf('waiting', { messages: await load('waiting') });
  expect(page.chat.messages.map(({ role }) => role)).toEqual(['user']);
  await page.chat.resumeStream();
  expect(plain(page.chat.messages)).toEqual(plain(open.chat.messages));
});

const SEAL =
  'kind: Tool\nversion: "1.0"\nname: seal\nsummary: Seals.\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always\n';
const SEALER =
  'kind: Agent\nversion: "1.0"\nname: ai_sealer\nsummary: Seals.\npersona: {agent: You seal.}\nimport: {tools: [seal]}\n';

test.each([true, false])('[E1] a person decides about an action (%s), and the answer follows', async (approved) => {
  const uploaded = await call('/manifests', {
    method: 'PUT',
    body: JSON.stringify({ files: { 'tools/seal.yaml': SEAL, 'agents/sealer.yaml': SEALER } }),
  });
  expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
  const seen: Seen[] = [];
  const api = 'http://127.0.0.1:8787/ai/ai_sealer/chat';
  const transport = transportOf(async (url, init) => {
    if (seen.length > 3) throw new Error('the chat sends its decision again and again');
    const response = await call(new URL(String(url)).pathname, init);
    const header = (name: string): string => response.headers.get(name) ?? '';
    seen.push({ path: '', run: header('x-run-id'), session: header('x-session-id') });
    return response;
  }, api);
  const chat = new PlainChat({
    id: `approval ${approved}`,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  await chat.sendMessage({ text: 'use seal' });
  const tool = () => chat.lastMessage?.parts.find((part) => part.type === 'dynamic-tool');
  expect([chat.status, tool()?.state]).toEqual(['ready', 'approval-requested']);
  await chat.addToolApprovalResponse({ id: tool()?.approval?.id ?? '', approved });
  await expect.poll(() => [chat.status, seen.length]).toEqual(['ready', 2]);
  const run = await stored(first(seen));
  expect([run.status, new Set(seen.map(({ run: id }) => id)).size]).toEqual(['completed', 1]);
  expect([tool()?.state, run.actions[0]?.status]).toEqual(
    approved ? ['output-available', 'completed'] : ['output-denied', 'failed'],
  );
  expect(textOf(chat.lastMessage)).toContain(run.response);
  const messages = await (await call(`/ai/ai_sealer/chat/${encodeURIComponent(chat.id)}/messages`)).json<UIMessage[]>();
  expect(messages).toEqual(plain(chat.messages.map(({ id, role, parts }) => ({ id, role, parts }))));
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
});

test('[E1] a person stops a run, which is cancelled; the message keeps what it has', async () => {
  const { chat, seen } = chatOf('stopped', { body: { tools: [TOOL] } });
  await chat.sendMessage({ text: 'use pick_color' });
  const { id } = first(seen).run === '' ? { id: '' } : { id: chat.lastMessage?.id };
  expect((await post('/ai/assistant/chat/stopped/stop', {})).status).toBe(204);
  expect((await stored(first(seen))).status).toBe('cancelled');
  expect(id).toBe(first(seen).run);
  // It would execute the tool again.
  expect((await call('/ai/assistant/chat/stopped/stream')).status).toBe(204);
});

test('[E1] files of a message are those of our own messages', async () => {
  const { chat, seen } = chatOf('files');
  const url = `data:text/plain;base64,${btoa('a note')}`;
  await chat.sendMessage({
    text: 'Read it.',
    files: [{ type: 'file', filename: 'note.txt', mediaType: 'text/plain', url }],
  });
  expect([chat.status, chat.error]).toEqual(['ready', undefined]);
  const [user] = await (await call('/ai/assistant/chat/files/messages')).json<UIMessage[]>();
  const file = user?.parts.find((part) => part.type === 'file');
  expect(file).toMatchObject({ filename: 'note.txt', mediaType: 'text/plain' });
  expect(await (await call(file?.url ?? '')).text()).toBe('a note');
  expect((await stored(first(seen))).status).toBe('completed');
});

test('[E1] a chat without a message has nothing to resume or to stop', async () => {
  expect((await call('/ai/assistant/chat/new/stream')).status).toBe(204);
  expect((await post('/ai/assistant/chat/new/stop', {})).status).toBe(204);
});

test('[E1] a page that resumes a run that has just ended has its message once', async () => {
  const { chat } = chatOf('ended');
  await chat.sendMessage({ text: 'Hello' });
  const [{ parts }] = chat.messages.slice(-1) as [UIMessage];
  await chat.resumeStream();
  expect([chat.status, chat.messages.length, chat.lastMessage?.parts]).toEqual(['ready', 2, parts]);
});

describe('[E1] a message that the client has sent before', () => {
  const send = (id: string, text: string, change: object): Promise<Response> =>
    post('/ai/assistant/chat', {
      id,
      messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text }] }],
      ...change,
    });

  test.each([
    ['is sent again after an error', 'Hello', { messageId: 'm' }, true],
    ['C4: is changed', 'Good day', { messageId: 'm' }, false],
    ['C4: is answered again', 'Hello', { trigger: 'regenerate-message' }, false],
  ])('%s', async (what, text, change, isSame) => {
    const first = await send(`known: ${what}`, 'Hello', {});
    await first.text();
    const again = await send(`known: ${what}`, text, change);
    expect([again.status, await again.text()]).toEqual([200, expect.stringContaining('"type":"finish"')]);
    expect(again.headers.get('x-run-id') === first.headers.get('x-run-id')).toBe(isSame);
    // Its first request may never have arrived.
    const unknown = await send(`unknown: ${what}`, text, change);
    expect([unknown.status, await unknown.text()]).toEqual([200, expect.stringContaining('"type":"finish"')]);
  });

  test('C4: the same change, and the same wish for another answer, is the same request', async () => {
    const change = { messageId: 'm' };
    const runs: (string | null)[] = [];
    const take = async (response: Promise<Response>): Promise<void> => {
      const { headers, body } = await response;
      await new Response(body).text();
      runs.push(headers.get('x-run-id'));
    };
    await take(send('repeats', 'Hello', {}));
    for (const text of ['One', 'One', 'Two', 'One']) await take(send('repeats', text, change));
    const of = { trigger: 'regenerate-message', messageId: runs.at(-1) };
    for (const one of [of, of]) await take(send('repeats', 'One', one));
    expect(runs.map((run) => Number(/\d+$/.exec(run ?? '')?.[0]))).toEqual([1, 2, 2, 3, 4, 5, 5]);
  });
});

test('[E1] C4: the chat regenerates an answer and edits a message; a page that is loaded again has that branch', async () => {
  const { chat, seen } = chatOf('branches');
  await chat.sendMessage({ text: 'remember my city is Oslo' });
  await chat.sendMessage({ text: 'what is my city' });
  expect(textOf(chat.lastMessage)).toContain('Oslo');
  await chat.regenerate();
  expect([chat.status, chat.messages.length]).toEqual(['ready', 4]);
  expect(textOf(chat.lastMessage)).toContain('Oslo');
  const [asked] = chat.messages;
  await chat.sendMessage({ text: 'remember my city is Bergen', messageId: asked?.id ?? '' });
  expect(chat.messages).toHaveLength(2);
  await chat.sendMessage({ text: 'what is my city' });
  expect(textOf(chat.lastMessage)).toContain('Bergen');
  expect(seen.map(({ run }) => Number(/\d+$/.exec(run)?.[0]))).toEqual([1, 2, 3, 4, 5]);
  const loaded = await (await call('/ai/assistant/chat/branches/messages')).json<UIMessage[]>();
  expect(loaded.map(textOf)).toEqual(chat.messages.map(textOf));
  const { runs } = await (
    await call(`/agent/session/${first(seen).session}/runs`)
  ).json<{
    runs: { parent_run: string | null; retry_of?: string }[];
  }>();
  const parents = runs.map(({ parent_run: run }) => Number(/\d+$/.exec(run ?? '0')?.[0]));
  expect(parents).toEqual([0, 1, 1, 0, 4]);
});

test('[E1] C4: a page that is loaded again regenerates and edits, also in a fork', async () => {
  /** A page that is loaded now: it has the messages that the system gives it. */
  const load = async (id: string): Promise<PlainChat> => {
    const messages = await (await call(`/ai/assistant/chat/${id}/messages`)).json<UIMessage[]>();
    return chatOf(id, { messages }).chat;
  };
  const treeOf = async (session: string): Promise<number[]> => {
    const document = await call(`/agent/session/${session}/runs`);
    const { runs } = await document.json<{ runs: { parent_run: string | null }[] }>();
    return runs.map(({ parent_run: run }) => Number(/\d+$/.exec(run ?? '0')?.[0]));
  };
  const { chat, seen } = chatOf('again after a reload');
  await chat.sendMessage({ text: 'remember my city is Oslo' });
  await chat.sendMessage({ text: 'what is my city' });
  await chat.regenerate();
  for (const one of [await load(chat.id), await load(chat.id)]) await one.regenerate();
  const last = await load(chat.id);
  await last.regenerate({ messageId: last.lastMessage?.id ?? '' });
  expect([last.status, last.error, last.messages.length]).toEqual(['ready', undefined, 4]);
  const { session } = first(seen);
  expect(await treeOf(session)).toEqual([0, 1, 1, 1, 1, 1]);
  const forked = await post(`/agent/session/${session}/fork`, {});
  const { session_id: fork } = await forked.json<{ session_id: string }>();
  const page = await load(fork);
  await page.sendMessage({ text: 'remember my city is Bergen', messageId: page.messages[0]?.id ?? '' });
  await page.sendMessage({ text: 'what is my city' });
  expect(textOf(page.lastMessage)).toContain('Bergen');
  expect(await treeOf(fork)).toEqual([0, 1, 0, 3]);
});

test('[E1] a page that is loaded again resumes a run that waits, also after the loss of its object', async () => {
  const { chat, seen } = chatOf('reload', { body: { tools: [TOOL] } });
  await chat.sendMessage({ text: 'use pick_color' });
  const { parts } = chat.lastMessage ?? {};
  expect(parts?.some((part) => part.type === 'dynamic-tool' && part.state === 'input-available')).toBe(true);
  await abortAllDurableObjects();
  const page = chatOf('reload', { messages: chat.messages.slice(0, 1), answers: true });
  await page.chat.resumeStream();
  await expect.poll(async () => (await stored(first(seen))).status).toBe('completed');
  await expect.poll(() => [page.chat.status, textOf(page.chat.lastMessage).includes('teal')]).toEqual(['ready', true]);
});

test.each([
  ['an unknown agent', '/ai/asistant/chat', {}, 404, 'unknown_agent'],
  ['no message', '/ai/assistant/chat', { messages: [] }, 400, 'invalid_request'],
  [
    'an empty message',
    '/ai/assistant/chat',
    { messages: [{ id: 'm', role: 'user', parts: [] }] },
    400,
    'invalid_request',
  ],
])('[E1] %s is an error whose text is a sentence with its code', async (_, path, change, status, code) => {
  const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }];
  const response = await post(path, { id: 'errors', messages, ...change });
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toContain('text/plain');
  expect(await response.text()).toMatch(new RegExp(`^[A-Z"].* \\(${code}\\)$`, 's'));
});
