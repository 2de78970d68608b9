/** The simulated clients of other protocols make the same of a stream as the real packages (E1 to E3). */
import { readFileSync } from 'node:fs';
import { HttpAgent } from '@ag-ui/client';
import { readUIMessageStream } from 'ai';
import type { UIMessage, UIMessageChunk } from 'ai';
import OpenAI from 'openai';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Json } from '../../src/domain/json.ts';
import { agUiClient } from './protocols/ag-ui.ts';
import { aiSdkClient } from './protocols/ai-sdk.ts';
import { chatClient } from './protocols/chat.ts';
import { dataOf } from './protocols/client-protocol.ts';
import type { ClientProtocol, Reading } from './protocols/client-protocol.ts';
import { responsesClient } from './protocols/responses.ts';

/** The stream of a transcript, which has one line for each frame. */
const golden = (name: string): string =>
  readFileSync(new URL(`../surfaces/golden/${name}.txt`, import.meta.url), 'utf8')
    .split('\n')
    .map((line) => {
      const [, event, data = line] = /^(\S+) (\{.*)$/.exec(line) ?? [];
      return data.startsWith('"') ? (JSON.parse(data) as string) : `${event ? `event: ${event}\n` : ''}data: ${data}`;
    })
    .join('\n\n');

const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;

/** What our reader makes of it; it must not find mistakes. */
function readBy({ read }: ClientProtocol, text: string, before: Reading | null = null): Reading {
  const reading = read(text, before);
  expect([reading.mistakes, reading.open]).toEqual([[], []]);
  return reading;
}

async function realMessage(text: string, message?: UIMessage): Promise<UIMessage | undefined> {
  const chunks = dataOf(text) as UIMessageChunk[];
  const stream = ReadableStream.from(chunks);
  let last = message;
  for await (const next of readUIMessageStream({ stream, ...(message === undefined ? {} : { message }) })) last = next;
  return last;
}

test('the AI SDK: a run up to its wait, and its rest', async () => {
  const [asked, answered] = [golden('ai-sdk.asked'), golden('ai-sdk.answered')];
  const waiting = await realMessage(asked);
  const mine = readBy(aiSdkClient, asked);
  const shape = ({ id, parts }: UIMessage): Json =>
    aiSdkClient.essence(plain({ id, parts: parts.map((part) => withoutUnknown(part)) }), '');
  expect(aiSdkClient.essence(plain(mine.message), '')).toEqual(waiting && shape(waiting));
  const whole = await realMessage(answered, waiting);
  expect(aiSdkClient.essence(plain(readBy(aiSdkClient, answered, mine).message), '')).toEqual(whole && shape(whole));
});

/** The package adds members without a value. */
const withoutUnknown = (part: object): object =>
  Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined));

test('OpenAI: a chat completion', async () => {
  const text = golden('openai-chat.answered');
  const lines = dataOf(text).map((chunk) => `${JSON.stringify(chunk)}\n`);
  const body = new Response(lines.join('')).body;
  if (body === null) throw new Error('a response with a text has a body');
  const completion = await ChatCompletionStream.fromReadableStream(body).finalChatCompletion();
  const [choice] = completion.choices;
  const { message, outcome } = readBy(chatClient, text);
  const calls = choice?.message.tool_calls ?? [];
  expect(message).toMatchObject({
    id: completion.id,
    content: choice?.message.content ?? '',
    calls: calls.map(({ id, ...call }) => ({ id, function: 'function' in call ? call.function : null })),
  });
  expect([choice?.finish_reason, outcome]).toEqual(['tool_calls', 'waiting']);
});

test('OpenAI: a response', async () => {
  const text = golden('openai-responses.asked');
  const openai = new OpenAI({
    apiKey: 'key',
    baseURL: 'http://openai.test/v1',
    fetch: async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const stream = openai.responses.stream({ model: 'assistant', input: 'go' });
  const response = await stream.finalResponse();
  const { message, outcome } = readBy(responsesClient, text);
  const { frames } = plain(message) as unknown as {
    readonly frames: readonly { readonly response?: { readonly output: Json } }[];
  };
  expect(plain(response.output)).toMatchObject(frames.at(-1)?.response?.output as object);
  expect(outcome).toBe('waiting');
});

test('AG-UI: a run up to its wait, and its rest', async () => {
  // The client refuses to answer what has expired.
  vi.useFakeTimers({ now: 0, toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const streams = [golden('ag-ui.asked'), golden('ag-ui.answered')];
  const agent = new HttpAgent({
    url: 'http://ag-ui.test',
    threadId: 'thread',
    fetch: async () => new Response(streams.shift(), { headers: { 'content-type': 'text/event-stream' } }),
  });
  const asked = readBy(agUiClient, golden('ag-ui.asked'));
  await agent.runAgent({ runId: 'run' });
  expect(plain(agent.messages)).toEqual((asked.message as unknown as { messages: Json }).messages);
  const answered = readBy(agUiClient, golden('ag-ui.answered'), asked);
  await agent.runAgent({
    runId: 'run',
    resume: asked.approvals.map((interruptId) => ({ interruptId, status: 'resolved', payload: { approved: true } })),
  });
  expect(plain(agent.messages)).toEqual((answered.message as unknown as { messages: Json }).messages);
  expect([asked.outcome, answered.outcome]).toEqual(['waiting', 'success']);
});
