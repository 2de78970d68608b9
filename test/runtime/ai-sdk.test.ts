/** The unchanged client of the AI SDK against the Worker, also when connections and objects are lost (E1). */
import { abortAllDurableObjects } from 'cloudflare:test';
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  safeValidateUIMessages,
} from 'ai';
import type { UIMessage } from 'ai';
import { expect, test } from 'vitest';
import type { RunResult } from '../../src/view/result.ts';
import { PlainChat, textOf, transportOf } from '../support/ai-chat.ts';
import { call, post, SEAL, SEALER, upload } from './client.ts';

const API = 'http://127.0.0.1:8787/ai/assistant/chat';
const TOOL = { name: 'pick_color', description: 'Asks for a color.', parameters: { type: 'object', properties: {} } };

/** Responses of the chat's requests, for their headers. */
type Seen = { readonly run: string; readonly session: string };

function chatOf(
  id: string,
  options: {
    readonly body?: object;
    readonly messages?: UIMessage[];
    readonly answers?: boolean;
    readonly decides?: boolean;
    readonly agent?: string;
    readonly through?: (response: Response) => Response;
  } = {},
): { readonly chat: PlainChat; readonly seen: Seen[] } {
  const seen: Seen[] = [];
  const transport = transportOf(
    async (url, init) => {
      const { pathname } = new URL(String(url));
      if (options.through === undefined && seen.length > 5)
        throw new Error('the chat sends its answers again and again');
      const response = await call(pathname, init);
      const header = (name: string): string => response.headers.get(name) ?? '';
      seen.push({ run: header('x-run-id'), session: header('x-session-id') });
      return options.through?.(response) ?? response;
    },
    API.replace('assistant', options.agent ?? 'assistant'),
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
    ...(options.decides === true ? { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses } : {}),
  });
  return { chat, seen };
}

const stored = async ({ session, run }: Seen): Promise<RunResult> =>
  await (await call(`/agent/session/${session}/runs/${run}`)).json<RunResult>();

const first = (seen: readonly Seen[]): Seen => seen[0] ?? { run: '', session: '' };

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
/** The messages of a chat, as the system stores them. */
const shown = ({ messages }: PlainChat): unknown => plain(messages.map(({ id, role, parts }) => ({ id, role, parts })));
const load = async (chat: string, agent = 'assistant'): Promise<UIMessage[]> =>
  await (await call(`/ai/${agent}/chat/${encodeURIComponent(chat)}/messages`)).json<UIMessage[]>();

test('[E1] a page that is loaded again gets the messages that the first one had', async () => {
  const { chat } = chatOf('history', { body: { tools: [TOOL] }, answers: true });
  await chat.sendMessage({ text: 'What is 6 * 7?' });
  await chat.sendMessage({ text: 'use pick_color' });
  await expect.poll(() => [chat.status, textOf(chat.lastMessage).includes('teal')]).toEqual(['ready', true]);
  const messages = await load('history');
  expect(messages).toHaveLength(4);
  expect(messages).toEqual(shown(chat));
  expect(await load('unknown')).toEqual([]);
  // The answer of a run that waits comes with its stream.
  const open = chatOf('waiting', { body: { tools: [TOOL] } });
  await open.chat.sendMessage({ text: 'use pick_color' });
  const page = chatOf('waiting', { messages: await load('waiting') });
  expect(page.chat.messages.map(({ role }) => role)).toEqual(['user']);
  await page.chat.resumeStream();
  expect(plain(page.chat.messages)).toEqual(plain(open.chat.messages));
});

test.each([true, false])('[E1] a person decides about an action (%s), and the answer follows', async (approved) => {
  await upload(SEAL, SEALER);
  const { chat, seen } = chatOf(`approval ${approved}`, { agent: 'sealer', decides: true });
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
  const messages = await load(chat.id, 'sealer');
  expect(messages).toEqual(shown(chat));
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
});

test('[E1] a person stops a run, which is cancelled; the message keeps what it has', async () => {
  const { chat, seen } = chatOf('stopped', { body: { tools: [TOOL] } });
  await chat.sendMessage({ text: 'use pick_color' });
  expect((await post('/ai/assistant/chat/stopped/stop', {})).status).toBe(204);
  expect((await stored(first(seen))).status).toBe('cancelled');
  expect(chat.lastMessage?.id).toBe(first(seen).run);
  // It would execute the tool again.
  expect((await call('/ai/assistant/chat/stopped/stream')).status).toBe(204);
});

test('[E1] a file of a message is listed with its address', async () => {
  const { chat } = chatOf('files');
  const url = `data:text/plain;base64,${btoa('a note')}`;
  await chat.sendMessage({
    text: 'Read it.',
    files: [{ type: 'file', filename: 'note.txt', mediaType: 'text/plain', url }],
  });
  const [user] = await load('files');
  const file = user?.parts.find((part) => part.type === 'file');
  expect(file).toMatchObject({ filename: 'note.txt', mediaType: 'text/plain' });
  expect(await (await call(file?.url ?? '')).text()).toBe('a note');
});

test('[E1] a chat without a message has nothing to resume or to stop', async () => {
  expect((await call('/ai/assistant/chat/new/stream')).status).toBe(204);
  expect((await post('/ai/assistant/chat/new/stop', {})).status).toBe(204);
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
  const loaded = await load('branches');
  expect(loaded.map(textOf)).toEqual(chat.messages.map(textOf));
  const document = await call(`/agent/session/${first(seen).session}/runs`);
  const { runs } = await document.json<{ runs: { parent_run: string | null }[] }>();
  const parents = runs.map(({ parent_run: run }) => Number(/\d+$/.exec(run ?? '0')?.[0]));
  expect(parents).toEqual([0, 1, 1, 0, 4]);
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

const ANSWER = { type: 'dynamic-tool', toolCallId: 'call_x', state: 'output-available', output: 1 };
test.each([
  [
    'an unknown agent',
    'asistant',
    [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
    404,
    'unknown_agent',
  ],
  ['no message', 'assistant', [], 400, 'invalid_request'],
  ['an empty message', 'assistant', [{ id: 'm', role: 'user', parts: [] }], 400, 'invalid_request'],
  ['a message without parts', 'assistant', [{ id: 'm', role: 'user' }], 400, 'invalid_request'],
  ['a role of another protocol', 'assistant', [{ id: 'm', role: 'tool', parts: [] }], 400, 'invalid_request'],
  ['a result for no call of ours', 'assistant', [{ id: 'm', role: 'assistant', parts: [ANSWER] }], 404, 'unknown_call'],
])('[E1] %s is an error whose text is a sentence with its code', async (_, agent, messages, status, code) => {
  const response = await post(`/ai/${agent}/chat`, { id: 'errors', messages });
  expect([response.status, response.headers.get('content-type')]).toEqual([
    status,
    expect.stringContaining('text/plain'),
  ]);
  expect(await response.text()).toMatch(new RegExp(`^[A-Z"].* \\(${code}\\)$`, 's'));
});

/** Calls `at` before the frame of this number of the first stream, and cuts the stream if it says so. */
function faulty(frame: number, at: () => Promise<'cut' | 'go on'>): (response: Response) => Response {
  let requests = 0;
  return (response) => {
    requests += 1;
    if (requests > 1 || response.body === null) return response;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const encoder = new TextEncoder();
    let [rest, frames] = ['', 0];
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
  };
}

// At every event: test/surfaces/ai-sdk/fold.test.ts.
test.each([
  ['the connection', 1, 'cut', 'network error'],
  ['the object', 1, 'go on', /lost/],
] as const)(
  '[E1] [J2] %s is lost at frame %i: an error, and the whole message of the one run when the client comes back',
  async (what, frame, then, error) => {
    const at = async (): Promise<typeof then> => {
      if (then === 'go on') await abortAllDurableObjects();
      return then;
    };
    const { chat, seen } = chatOf(`${what} lost at ${frame}`, { through: faulty(frame, at) });
    await chat.sendMessage({ text: 'What is 6 * 7?' });
    expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringMatching(error)]);
    const session = `/agent/session/${first(seen).session}`;
    await expect
      .poll(async () => {
        await chat.resumeStream();
        return chat.status;
      })
      .toBe('ready');
    const now = async (): Promise<unknown> => await (await call(session)).json();
    await expect.poll(now).toMatchObject({ status: 'idle', runs: 1 });
    const messages = await load(chat.id);
    expect([messages.length, textOf(messages.at(-1))]).toEqual([2, expect.stringContaining('42')]);
    // After a loss of the object, the run may have ended before the client came back.
    if (then === 'cut') expect(shown(chat)).toEqual(messages);
  },
);
