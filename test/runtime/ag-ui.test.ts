/** The unchanged client of AG-UI against the Worker (E3). */
import { abortAllDurableObjects } from 'cloudflare:test';
import type { Tool } from '@ag-ui/core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { RunResult } from '../../src/view/result.ts';
import { agUiChat, answersTo, shownIn } from '../support/ag-ui.ts';
import type { AgUiChat } from '../support/ag-ui.ts';
import { call, SEAL, SEALER, upload } from './client.ts';

const TOOL: Tool = {
  name: 'pick_color',
  description: 'Asks for a color.',
  parameters: { type: 'object', properties: {} },
};
/** What responses say in their headers. */
interface Seen {
  readonly session: string;
  readonly run: string;
  readonly status: number;
}
type Chat = AgUiChat & { readonly responses: Seen[] };

function chatWith(
  agent: string,
  threadId: string,
  streamOf: (response: Response) => Response = (response) => response,
): Chat {
  const responses: Seen[] = [];
  const path = `/agui/${agent}`;
  const chat = agUiChat({ url: `http://127.0.0.1:8787${path}`, threadId }, async (_input, init) => {
    const response = await call(path, init);
    const header = (name: string): string => response.headers.get(name) ?? '';
    responses.push({ session: header('x-session-id'), run: header('x-run-id'), status: response.status });
    return streamOf(response);
  });
  return { ...chat, responses };
}

async function stored({ responses }: Chat): Promise<RunResult> {
  const { session = '', run = '' } = responses.at(-1) ?? {};
  return await (await call(`/agent/session/${session}/runs/${run}`)).json<RunResult>();
}

const answerOf = ({ responses }: RunResult): string => responses.map(({ content }) => content).join('\n\n');

const saidIn = ({ agent }: Chat): string =>
  agent.messages
    .flatMap((message) => (message.role === 'assistant' && message.toolCalls === undefined ? [message.content] : []))
    .join('\n\n');

const distinct = (chat: Chat, member: 'session' | 'run'): number =>
  new Set(chat.responses.map((one) => one[member])).size;

beforeAll(async () => {
  vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0);
  await upload(SEAL, SEALER);
});

describe('[E3] a message', () => {
  test('streams its thoughts, actions and answer; the folded text is the stored one', async () => {
    const chat = chatWith('assistant', 'plain');
    expect(await chat.say('What is 6 * 7?')).toBe('success');
    const run = await stored(chat);
    expect(run.response).toContain('42');
    expect(saidIn(chat)).toBe(answerOf(run));
    const shown = shownIn(chat.agent.messages);
    expect(shown.filter((text) => text.startsWith('call '))).toHaveLength(run.actions.length);
    expect(shown.filter((text) => text.startsWith('tool '))).toHaveLength(run.actions.length);
    expect(chat.seen[0]).toMatchObject({ threadId: 'plain', metadata: { 'cortex-edge': { run_id: run.run_id } } });
  });

  test('goes to the session of its thread, and its variables are the state of the client', async () => {
    const chat = chatWith('assistant', 'two');
    expect(await chat.say('Remember my color is teal')).toBe('success');
    expect(chat.agent.state).toMatchObject({ color: 'teal' });
    expect(await chat.say('What is my color?')).toBe('success');
    expect([distinct(chat, 'session'), distinct(chat, 'run')]).toEqual([1, 2]);
    const other = chatWith('assistant', 'three');
    await other.say('Hello');
    expect(other.responses[0]?.session).not.toBe(chat.responses[0]?.session);
  });

  test('whose stream breaks with its object ends with an error, and the same request again completes it', async () => {
    let aborted = false;
    const chat = chatWith('assistant', 'crash', (response) => {
      const stop = new TransformStream<Uint8Array, Uint8Array>({
        async transform(chunk, controller) {
          controller.enqueue(chunk);
          if (aborted || !new TextDecoder().decode(chunk).includes('_CONTENT')) return;
          aborted = true;
          await abortAllDurableObjects();
        },
      });
      return new Response(response.body?.pipeThrough(stop), response);
    });
    expect(await chat.say('What is 6 * 7?', 'r1')).toMatch(/^error connection_lost: /);
    expect(await chat.run({ runId: 'r1' })).toBe('success');
    const run = await stored(chat);
    expect([run.status, distinct(chat, 'run')]).toEqual(['completed', 1]);
    expect(saidIn(chat)).toBe(answerOf(run));
    const fresh = chatWith('assistant', 'crash');
    expect(await fresh.say('What is 6 * 7?', 'r1')).toBe('success');
    expect(fresh.agent.messages).toEqual(chat.agent.messages);
  });
});

test('[E3] the client executes its tools, and the run goes on with the result', async () => {
  const chat = chatWith('assistant', 'tools');
  chat.agent.addMessage({ id: 'u1', role: 'user', content: 'use pick_color' });
  expect(await chat.run({ tools: [TOOL], runId: 'r1' })).toBe('success pending');
  const message = chat.agent.messages.find((one) => one.role === 'assistant' && one.toolCalls !== undefined);
  const id = message?.role === 'assistant' ? (message.toolCalls?.[0]?.id ?? '') : '';
  expect(id).toMatch(/^call_/);
  chat.agent.addMessage({ id: 't1', role: 'tool', toolCallId: id, content: 'teal' });
  expect(await chat.run({ tools: [TOOL] })).toBe('success');
  const run = await stored(chat);
  expect([run.status, run.actions[0]?.output, distinct(chat, 'run')]).toEqual(['completed', 'teal', 1]);
  expect(saidIn(chat)).toContain('teal');

  // A page that is loaded again has the user's message only.
  const page = chatWith('assistant', 'tools');
  page.agent.addMessage({ id: 'u1', role: 'user', content: 'use pick_color' });
  expect(await page.run({ tools: [TOOL], runId: 'r1' })).toBe('success');
  expect(shownIn(page.agent.messages).sort()).toEqual(shownIn(chat.agent.messages).sort());
});

describe('[E3] an approval is an interrupt', () => {
  test.each([
    ['approved', { approved: true }, 'completed'],
    ['denied', { approved: false }, 'failed'],
  ])('that is %s', async (name, payload, status) => {
    const chat = chatWith('sealer', `approval ${name}`);
    expect(await chat.say('use seal with text "red"')).toBe('interrupt');
    expect(chat.agent.pendingInterrupts).toMatchObject([{ reason: 'tool_call', metadata: { name: 'seal' } }]);
    await abortAllDurableObjects();
    const resume = answersTo(chat.agent.pendingInterrupts, payload) ?? [];
    expect(await chat.run({ resume, runId: 'r2' })).toBe('success');
    const run = await stored(chat);
    expect([run.status, run.actions[0]?.status, distinct(chat, 'run')]).toEqual(['completed', status, 1]);
    const before = structuredClone(chat.agent.messages);
    expect(await chat.run({ resume, runId: 'r2' })).toBe('success');
    expect(chat.agent.messages).toEqual(before);
  });
});

test('[E3] an error before the stream is what the client shows: a sentence with its code', async () => {
  vi.spyOn(console, 'error').mockReturnValueOnce(undefined);
  const chat = chatWith('asistant', 'unknown');
  expect(await chat.say('Hello')).toMatch(/^failed HTTP 404: \{"error":\{"code":"unknown_agent","message":"[^"]/);
});
