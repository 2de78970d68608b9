/** Unchanged clients of OpenAI's protocols against the Worker: openai and @ai-sdk/openai (E2). */
import { abortAllDurableObjects } from 'cloudflare:test';
import OpenAI from 'openai';
import type { ChatCompletionChunk, ChatCompletionTool } from 'openai/resources/chat/completions';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import type { ModelMessage } from 'ai';
import type { FunctionTool, Response as Answer, ResponseStreamEvent } from 'openai/resources/responses/responses';
import type { RunResult } from '../../src/view/result.ts';
import { call, manifest, post, SEAL, SEALER, upload } from './client.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly session: string;
  readonly run: string;
}

/** Both clients, and what they have sent. `loses`: the answer to the request with this number is lost. */
function clients({ loses = 0 } = {}) {
  const seen: Seen[] = [];
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const { pathname, search } = new URL(String(url));
    const response = await call(pathname + search, init);
    const header = (name: string): string => response.headers.get(name) ?? '';
    const { status } = response;
    const method = init?.method ?? 'GET';
    seen.push({ method, path: pathname, status, session: header('x-session-id'), run: header('x-run-id') });
    if (seen.length === loses) throw new TypeError('fetch failed');
    return response;
  };
  const baseURL = 'http://127.0.0.1:8787/v1';
  const openai = new OpenAI({ apiKey: 'none', baseURL, fetch });
  const model = createOpenAI({ apiKey: 'none', baseURL, fetch: fetch as typeof globalThis.fetch }).responses;
  return { openai, model, seen };
}

const stored = async ({ session, run }: Seen): Promise<RunResult> =>
  await (await call(`/agent/session/${session}/runs/${run}`)).json<RunResult>();

const first = (seen: readonly Seen[]): Seen => seen[0] ?? { method: '', path: '', status: 0, session: '', run: '' };
const answerOf = ({ responses }: RunResult): string => responses.map(({ content }) => content).join('\n\n');

const TOOL: ChatCompletionTool = {
  type: 'function',
  function: { name: 'pick_color', description: 'Asks for a color.', parameters: { type: 'object', properties: {} } },
};
const user = (content: string) => ({ role: 'user', content }) as const;

test('[E2] agents are models', async () => {
  const { openai } = clients();
  const { data } = await openai.models.list();
  expect(data.map(({ id }) => id)).toContain('assistant');
  expect(await openai.models.retrieve('assistant')).toMatchObject({ id: 'assistant', object: 'model' });
  await expect(openai.models.retrieve('asistant')).rejects.toMatchObject({ status: 404, code: 'unknown_agent' });
});

test('[E2] a conversation is answered; the message is the stored answer', async () => {
  const { openai, seen } = clients();
  const { choices, usage, model } = await openai.chat.completions.create({
    model: 'assistant',
    messages: [user('What is 6 * 7?')],
    temperature: 0.2,
  });
  const run = await stored(first(seen));
  expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { role: 'assistant', content: answerOf(run) } });
  expect([model, usage?.completion_tokens]).toEqual(['assistant', run.usage?.completion_tokens]);
  expect(answerOf(run)).toContain('42');
});

test('[E2] a stream has the same message, thoughts as reasoning, and the usage if it is asked for', async () => {
  const { openai, seen } = clients();
  const chunks: ChatCompletionChunk[] = [];
  const stream = openai.chat.completions.stream({
    model: 'assistant',
    messages: [user('What is 6 * 7?')],
    stream_options: { include_usage: true },
  });
  stream.on('chunk', (chunk) => void chunks.push(chunk));
  const { choices, usage } = await stream.finalChatCompletion();
  const run = await stored(first(seen));
  expect(choices[0]?.message.content).toBe(answerOf(run));
  expect(usage?.total_tokens).toBe((run.usage?.prompt_tokens ?? 0) + (run.usage?.completion_tokens ?? 0));
  const deltas = chunks.flatMap(({ choices: [one] }) => (one === undefined ? [] : [one.delta]));
  expect(deltas.filter(({ role }) => role !== undefined)).toHaveLength(1);
  expect(deltas.some((delta) => 'reasoning_content' in delta)).toBe(true);
});

test('[E2] tools of the request are executed by the client; their results continue the run', async () => {
  const { openai, seen } = clients();
  const messages = [user('use pick_color')];
  const asked = await openai.chat.completions.create({ model: 'assistant', messages, tools: [TOOL] });
  const [choice] = asked.choices;
  expect([choice?.finish_reason, choice?.message.content]).toEqual(['tool_calls', expect.anything()]);
  const [toolCall] = choice?.message.tool_calls ?? [];
  if (toolCall?.type !== 'function' || choice === undefined) throw new Error('expected a call');
  const result = { role: 'tool', tool_call_id: toolCall.id, content: '{"color":"teal"}' } as const;
  const next = { model: 'assistant', messages: [...messages, choice.message, result], tools: [TOOL] };
  const answered = await openai.chat.completions.create(next);
  expect(answered.choices[0]?.message.content).toContain('teal');
  expect(answered.choices[0]?.finish_reason).toBe('stop');
  // The same request again, now as a stream: the same run and the same message.
  const again = await openai.chat.completions.stream(next).finalChatCompletion();
  expect(again.choices[0]?.message.content).toBe(answered.choices[0]?.message.content);
  expect(new Set(seen.map(({ run }) => run)).size).toBe(1);
  expect((await stored(first(seen))).actions[0]?.output).toEqual({ color: 'teal' });
});

test('[E2] a repeated request never has the answer of an equal one that was not repeated', async () => {
  const { openai, seen } = clients({ loses: 2 });
  const request = { model: 'assistant', messages: [user('What is 5 * 5?')] };
  const one = await openai.chat.completions.create(request);
  const two = await openai.chat.completions.create(request);
  expect(two.id).not.toBe(one.id);
  // Its first attempt has a run, too: which of the equal requests it was is not known.
  expect(new Set(seen.map(({ run }) => run)).size).toBe(3);
});

test('[E2] a repeated message of a kept session has one run', async () => {
  const { openai, seen } = clients({ loses: 1 });
  const options = { headers: { 'X-Session-Id': 'kept, with a lost answer' } };
  const ask = (content: string) =>
    openai.chat.completions.create({ model: 'assistant', messages: [user(content)] }, options);
  const answered = await ask('What is 3 * 4?');
  expect(answered.choices[0]?.message.content).toContain('12');
  expect([seen.length, new Set(seen.map(({ run }) => run)).size]).toEqual([2, 1]);
  await ask('What is 3 * 5?');
  expect(new Set(seen.map(({ run }) => run)).size).toBe(2);
});

test('[E2] a request that its client repeats has one run; the same request of the application has another one', async () => {
  const { openai, seen } = clients({ loses: 1 });
  const request = { model: 'assistant', messages: [user('What is 3 * 3?')] };
  const answered = await openai.chat.completions.create(request);
  expect(answered.choices[0]?.message.content).toContain('9');
  expect([seen.length, new Set(seen.map(({ run }) => run)).size]).toEqual([2, 1]);
  await openai.chat.completions.create(request);
  expect(new Set(seen.map(({ run }) => run)).size).toBe(2);
});

test.each([
  [{ model: 'asistant' }, 404, 'unknown_agent', 'not_found_error'],
  [{ messages: [] }, 400, 'invalid_request', 'invalid_request_error'],
  [{ messages: [{ role: 'assistant', content: 'I' }] }, 400, 'not_supported', 'invalid_request_error'],
  [{ n: 2 }, 400, 'not_supported', 'invalid_request_error'],
  [{ tool_choice: 'required' }, 400, 'not_supported', 'invalid_request_error'],
  [{ response_format: { type: 'json_object' } }, 400, 'not_supported', 'invalid_request_error'],
  [
    { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] },
    400,
    'unsupported_content',
    'invalid_request_error',
  ],
])('[E2] %j is refused in the form of the protocol', async (change, status, code, type) => {
  const response = await post('/v1/chat/completions', { model: 'assistant', messages: [user('Hello')], ...change });
  expect(response.status).toBe(status);
  const { error } = await response.json<{ error: { message: string } }>();
  expect(error).toEqual({ message: expect.stringMatching(/^[A-Z"]/), type, param: null, code });
});

const answersOf = ({ responses }: RunResult): string[] => responses.map(({ content }) => content);
const messagesOf = ({ output }: Answer): string[] =>
  output.flatMap((item) =>
    item.type === 'message' ? item.content.map((part) => (part.type === 'output_text' ? part.text : '')) : [],
  );

async function all(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

const PICK: FunctionTool = {
  type: 'function',
  name: 'pick_color',
  description: 'Asks for a color.',
  parameters: { type: 'object', properties: {} },
  strict: false,
};
const picking = {
  pick_color: tool({
    description: 'Asks for a color.',
    inputSchema: jsonSchema<object>({ type: 'object', properties: {} }),
    execute: async () => 'teal',
  }),
};

beforeAll(() =>
  upload(
    SEAL,
    SEALER,
    ...['locate', 'hurry'].map((name) => manifest('Tool', name, 'implementation: {type: client}')),
    manifest('Agent', 'asker', 'persona: You ask.\nimport: {tools: [locate, hurry]}'),
  ),
);

beforeEach(() => {
  vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0);
});

describe('[E2] openai', () => {
  test('a response has thoughts, calls and the stored answer; it can be retrieved', async () => {
    const { openai, seen } = clients();
    const response = await openai.responses.create({ model: 'assistant', input: 'What is 6 * 7?', temperature: 0.2 });
    const run = await stored(first(seen));
    expect(messagesOf(response)).toEqual(answersOf(run));
    expect(response.output_text).toContain('42');
    expect([response.status, response.error, response.model]).toEqual(['completed', null, 'assistant']);
    expect(response.output.map(({ type }) => type)).toContain('reasoning');
    const calls = response.output.flatMap((item) => (item.type === 'mcp_call' ? [item] : []));
    expect(calls.map(({ name, status }) => [name, status])).toEqual(
      run.actions.map(({ name, status }) => [name, status]),
    );
    expect(response.usage?.output_tokens).toBe(run.usage.completion_tokens);
    const { _request_id: _, ...again } = await openai.responses.retrieve(response.id);
    const { _request_id: __, ...whole } = response;
    expect(again).toEqual(whole);
  });

  test('a stream has the same response', async () => {
    const { openai, seen } = clients();
    const stream = openai.responses.stream({ model: 'assistant', input: 'What is 6 * 7?' });
    const events = await all(stream);
    const { id, output } = await stream.finalResponse();
    expect(events.at(0)?.type).toBe('response.created');
    expect(events.at(-1)?.type).toBe('response.completed');
    const retrieved = await openai.responses.retrieve(id);
    expect(output.map(withoutParsed)).toEqual(retrieved.output);
    expect(messagesOf(retrieved)).toEqual(answersOf(await stored(first(seen))));
  });

  test('a response that is read again after any number is the rest of the whole', async () => {
    const { openai } = clients();
    const live = await all(
      await openai.responses.create({ model: 'assistant', input: 'What is 6 * 7?', stream: true }),
    );
    const id = live.flatMap((event) => (event.type === 'response.created' ? [event.response.id] : []))[0] ?? '';
    expect(await all(await openai.responses.retrieve(id, { stream: true }))).toEqual(live);
    // After every number: test/surfaces/openai/response-numbers.test.ts.
    const indexes = [0, Math.floor(live.length / 2), live.length - 2];
    for (const index of indexes) {
      const { sequence_number: after = 0 } = live[index] ?? {};
      const rest = live.slice(index + 1);
      expect(await all(await openai.responses.retrieve(id, { stream: true, starting_after: after }))).toEqual(rest);
      const helper = openai.responses.stream({ response_id: id, starting_after: after });
      const numbers: number[] = [];
      helper.on('event', (event) => void numbers.push(event.sequence_number));
      expect((await helper.finalResponse()).status).toBe('completed');
      expect(numbers).toEqual(rest.map((event) => event.sequence_number));
    }
  });

  test('C4: a response follows its previous one in the same session; that may be any one', async () => {
    const { openai, seen } = clients();
    const one = await openai.responses.create({ model: 'assistant', input: 'My name is Ada.' });
    const next = { model: 'assistant', input: 'What is 6 * 7?', previous_response_id: one.id } as const;
    const two = await openai.responses.create({ ...next, instructions: 'Answer briefly.' });
    expect(new Set(seen.map(({ session }) => session)).size).toBe(1);
    expect(new Set(seen.map(({ run }) => run)).size).toBe(2);
    expect(two.output_text).toContain('42');
    const color = await openai.responses.create({
      model: 'assistant',
      input: 'remember my color is teal',
      previous_response_id: two.id,
    });
    const asks = { model: 'assistant', input: 'what is my color' } as const;
    const known = await openai.responses.create({ ...asks, previous_response_id: color.id });
    expect(known.output_text).toContain('teal');
    const unknown = await openai.responses.create({ ...asks, previous_response_id: one.id });
    expect(unknown.output_text).not.toContain('teal');
    expect(new Set(seen.map(({ session }) => session)).size).toBe(1);
  });

  test('the conversation before the message is the history; a session without storage is not listed', async () => {
    const { openai, seen } = clients();
    const before = await openai.responses.create({ model: 'assistant', input: 'What is 6 * 7?' });
    const response = await openai.responses.create({
      model: 'assistant',
      store: false,
      input: [
        { role: 'system', content: 'Answer briefly.' },
        { role: 'user', content: 'What is 6 * 7?' },
        ...(before.output as OpenAI.Responses.ResponseInputItem[]),
        { role: 'user', content: [{ type: 'input_text', text: 'Thank you' }] },
      ],
    });
    expect(response.status).toBe('completed');
    const [kept, other] = seen;
    const history = await (await call(`/agent/session/${other?.session}/history`)).json<{ messages: object[] }>();
    expect(JSON.stringify(history)).toContain('42');
    const { executions } = await (await call('/executions')).json<{ executions: { session_id: string }[] }>();
    const listed = new Set(executions.map(({ session_id: id }) => id));
    expect([listed.has(kept?.session ?? ''), listed.has(other?.session ?? '')]).toEqual([true, false]);
  });

  test.each(['document', 'stream'])(
    'the client executes its tools, and the next response uses the result (%s)',
    async (how) => {
      const { openai, seen } = clients();
      const ask = async (body: Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>): Promise<Answer> =>
        how === 'document' ? await openai.responses.create(body) : await openai.responses.stream(body).finalResponse();
      const asked = await ask({ model: 'assistant', input: 'use pick_color', tools: [PICK] });
      const [wanted] = asked.output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
      expect([asked.status, wanted?.name, wanted?.arguments]).toEqual(['completed', 'pick_color', '{}']);
      const result = {
        type: 'function_call_output',
        call_id: wanted?.call_id ?? '',
        output: '{"color":"teal"}',
      } as const;
      const next = { model: 'assistant', input: [result], tools: [PICK], previous_response_id: asked.id };
      const answered = await ask(next);
      expect([answered.status, answered.id === asked.id]).toEqual(['completed', false]);
      expect(answered.output_text).toContain('teal');
      // The same request again, also without the previous response, and with the whole conversation.
      expect((await ask(next)).output_text).toBe(answered.output_text);
      const { previous_response_id: _, ...alone } = next;
      expect((await ask(alone)).output_text).toBe(answered.output_text);
      const whole = [{ role: 'user', content: 'use pick_color' }, ...asked.output, result];
      expect((await ask({ ...alone, input: whole as OpenAI.Responses.ResponseInputItem[] })).output_text).toBe(
        answered.output_text,
      );
      expect(new Set(seen.map(({ run }) => run)).size).toBe(1);
      const run = await stored(first(seen));
      expect([run.status, run.actions[0]?.output]).toEqual(['completed', { color: 'teal' }]);
      expect(messagesOf(answered)).toEqual(answersOf(run));
      // Each response ends where it has ended.
      expect((await openai.responses.retrieve(asked.id)).output).toEqual(asked.output.map(withoutParsed));
      expect((await openai.responses.retrieve(answered.id)).output_text).toBe(answered.output_text);
      const frames = await all(await openai.responses.retrieve(asked.id, { stream: true }));
      expect(frames.at(-1)).toMatchObject({ type: 'response.completed', response: { id: asked.id } });
    },
  );

  test('a response to one of two results has the call that is still open', async () => {
    const { openai } = clients();
    const model = 'asker';
    const callsOf = ({ output }: Answer): [string, string][] =>
      output.flatMap((item) => (item.type === 'function_call' ? [[item.name, item.call_id]] : []));
    const resultOf = (id: string) =>
      ({ type: 'function_call_output', call_id: id, output: `result of ${id}` }) as const;
    const asked = await openai.responses.create({ model, input: 'use locate and use hurry' });
    const [locate, hurry] = callsOf(asked);
    expect([locate?.[0], hurry?.[0]]).toEqual(['locate', 'hurry']);
    const input = [resultOf(locate?.[1] ?? '')];
    const half = await openai.responses.create({ model, input, previous_response_id: asked.id });
    expect(callsOf(half)).toEqual([hurry]);
    const streamed = openai.responses.stream({ model, input, previous_response_id: asked.id });
    expect(callsOf(await streamed.finalResponse())).toEqual([hurry]);
    const rest = [resultOf(hurry?.[1] ?? '')];
    const answered = await openai.responses.create({ model, input: rest, previous_response_id: half.id });
    expect(answered.output_text).toContain(`result of ${hurry?.[1]}`);
    expect(answered.output_text).toContain(`result of ${locate?.[1]}`);
  });

  test.each([true, false])('a person decides about an action (%s)', async (approve) => {
    const { openai, seen } = clients();
    const asked = await openai.responses.create({ model: 'sealer', input: 'use seal' });
    const [request] = asked.output.flatMap((item) => (item.type === 'mcp_approval_request' ? [item] : []));
    expect([asked.status, request?.name]).toEqual(['completed', 'seal']);
    const decision = { type: 'mcp_approval_response', approval_request_id: request?.id ?? '', approve } as const;
    const next = { model: 'sealer', input: [decision], previous_response_id: asked.id };
    const answered = await openai.responses.create(next);
    const [done] = answered.output.flatMap((item) => (item.type === 'mcp_call' ? [item] : []));
    expect([done?.name, done?.status, done?.approval_request_id]).toEqual([
      'seal',
      approve ? 'completed' : 'failed',
      request?.id,
    ]);
    expect((await openai.responses.create(next)).output).toEqual(answered.output);
    expect(new Set(seen.map(({ run }) => run)).size).toBe(1);
    const run = await stored(first(seen));
    expect([...messagesOf(asked), ...messagesOf(answered)].at(-1)).toEqual(answersOf(run).at(-1));
  });

  test('a response is cancelled, and is no success', async () => {
    const { openai, seen } = clients();
    const stream = await openai.responses.create({
      model: 'assistant',
      input: 'use pick_color',
      tools: [PICK],
      stream: true,
    });
    const events = await all(stream);
    const id = events.flatMap((event) => (event.type === 'response.created' ? [event.response.id] : []))[0] ?? '';
    const slow = await openai.responses.create({ model: 'assistant', input: 'Tell me a long story', stream: true });
    let cancelled: Answer | null = null;
    const kinds: string[] = [];
    for await (const event of slow) {
      kinds.push(event.type);
      if (event.type === 'response.created') cancelled = await openai.responses.cancel(event.response.id);
    }
    expect(cancelled?.status).toBe('cancelled');
    expect(kinds.at(-1)).toBe('response.failed');
    // A response that waits has ended; its run is cancelled.
    expect((await openai.responses.cancel(id)).status).toBe('completed');
    expect((await stored(first(seen))).status).toBe('cancelled');
  });

  test('the loss of the object ends the stream with an error, and the rest follows exactly', async () => {
    const { openai, seen } = clients();
    const stream = await openai.responses.create({
      model: 'assistant',
      input: 'What is 6 * 7? Then tell me a long story',
      stream: true,
    });
    const before: ResponseStreamEvent[] = [];
    let aborted = false;
    const reading = (async () => {
      for await (const event of stream) {
        before.push(event);
        if (event.type !== 'response.output_text.delta' || aborted) continue;
        aborted = true;
        await abortAllDurableObjects();
      }
    })();
    await expect(reading).rejects.toThrow(/lost/);
    const id = before.flatMap((event) => (event.type === 'response.created' ? [event.response.id] : []))[0] ?? '';
    const after = before.at(-1)?.sequence_number ?? 0;
    const rest = await all(await openai.responses.retrieve(id, { stream: true, starting_after: after }));
    expect(rest.at(-1)?.type).toBe('response.completed');
    const whole = await all(await openai.responses.retrieve(id, { stream: true }));
    // Nothing is lost, and nothing doubled. Only of the block that was cut off, more was sent than the journal has.
    expect(rest).toEqual(whole.filter(({ sequence_number: number }) => number > after));
    const cutOff = new Set(
      whole.map((event) => {
        const isCut = event.type === 'response.output_item.done' && JSON.stringify(event.item).includes('"incomplete"');
        return isCut ? itemOf(event) : null;
      }),
    );
    const others = (events: readonly ResponseStreamEvent[]): ResponseStreamEvent[] =>
      events.filter((event) => itemOf(event) === null || !cutOff.has(itemOf(event)));
    expect(others(before)).toEqual(others(whole.slice(0, whole.length - rest.length)));
    const helper = openai.responses.stream({ response_id: id, starting_after: after });
    const numbers: number[] = [];
    helper.on('event', (event) => void numbers.push(event.sequence_number));
    const final = await helper.finalResponse();
    expect(numbers).toEqual(rest.map((event) => event.sequence_number));
    const whatWasCutOff = '';
    const answers = answersOf(await stored(first(seen)));
    expect(messagesOf(final)).toEqual(answers.filter((text) => text !== whatWasCutOff));
  });
});

/** The id of the item that a frame is about. */
function itemOf(event: ResponseStreamEvent): string | null {
  if ('item_id' in event) return event.item_id;
  return 'item' in event ? (event.item.id ?? null) : null;
}

const withoutParsed = (value: object): object =>
  JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key.startsWith('parsed') ? undefined : inner))) as object;

describe('[E2] @ai-sdk/openai', () => {
  test.each(['generateText', 'streamText'])('%s has the stored answer', async (how) => {
    const { model, seen } = clients();
    const asked = { model: model('assistant'), prompt: 'What is 6 * 7?' };
    const result = how === 'generateText' ? await generateText(asked) : streamText(asked);
    const [text, reason, usage] = [await result.text, await result.finishReason, await result.usage];
    const run = await stored(first(seen));
    expect(text).toBe(answersOf(run).join(''));
    expect([reason, usage.outputTokens]).toEqual(['stop', run.usage.completion_tokens]);
    expect((await result.toolResults).map(({ toolName }) => toolName)).toEqual(
      run.actions.map(({ name }) => `mcp.${name}`),
    );
    expect(await result.reasoningText).toMatch(/\S/);
  });

  test.each(['generateText', 'streamText'])('%s executes its tools', async (how) => {
    const { model, seen } = clients();
    const asked = {
      model: model('assistant'),
      prompt: 'use pick_color',
      tools: picking,
      stopWhen: isStepCount(5),
    };
    const result = how === 'generateText' ? await generateText(asked) : streamText(asked);
    expect(await result.text).toContain('teal');
    expect((await result.steps).map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
    expect(new Set(seen.map(({ run }) => run)).size).toBe(1);
    expect((await stored(first(seen))).actions[0]?.output).toBe('teal');
  });

  test('a conversation goes on in its session: the client refers to items', async () => {
    const { model, seen } = clients();
    const messages: ModelMessage[] = [{ role: 'user', content: 'What is 6 * 7?' }];
    const one = await generateText({ model: model('assistant'), messages });
    messages.push(...(await one.response).messages, { role: 'user', content: 'Thank you' });
    await generateText({ model: model('assistant'), system: 'Answer briefly.', messages });
    expect(new Set(seen.map(({ session }) => session)).size).toBe(1);
    expect(new Set(seen.map(({ run }) => run)).size).toBe(2);
  });

  test.each([true, false])('a person decides about an action (%s)', async (approved) => {
    const { model, seen } = clients();
    const messages: ModelMessage[] = [{ role: 'user', content: 'use seal' }];
    const one = await generateText({ model: model('sealer'), messages });
    const [request] = one.content.flatMap((part) => (part.type === 'tool-approval-request' ? [part] : []));
    expect(request?.toolCall.toolName).toBe('mcp.seal');
    messages.push(...(await one.response).messages, {
      role: 'tool',
      content: [
        {
          type: 'tool-approval-response',
          approvalId: request?.approvalId ?? '',
          approved,
          providerExecuted: true,
        },
      ],
    });
    const two = await generateText({ model: model('sealer'), messages });
    const run = await stored(first(seen));
    expect(run.status).toBe('completed');
    expect(run.actions[0]?.status).toBe(approved ? 'completed' : 'failed');
    expect(two.text).toBe(answersOf(run).at(-1));
    expect(new Set(seen.map(({ run: id }) => id)).size).toBe(1);
  });
});

describe('[E2] responses that are refused, in the form of the protocol', () => {
  test.each([
    [{ model: 'asistant' }, 404, 'unknown_agent'],
    [{ input: [] }, 400, 'not_supported'],
    [{ input: [{ role: 'assistant', content: 'I' }] }, 400, 'not_supported'],
    [{ background: true }, 400, 'not_supported'],
    [{ conversation: 'conv_1' }, 400, 'not_supported'],
    [{ tool_choice: 'required' }, 400, 'not_supported'],
    [{ tool_choice: { type: 'function', name: 'f' } }, 400, 'not_supported'],
    [{ text: { format: { type: 'json_object' } } }, 400, 'not_supported'],
    [{ tools: [{ type: 'web_search' }] }, 400, 'invalid_request'],
    [{ input: [{ type: 'computer_call', id: 'c' }] }, 400, 'not_supported'],
    [{ previous_response_id: 'resp_1' }, 404, 'unknown_run'],
    [{ previous_response_id: `resp_${'a'.repeat(32)}_1` }, 404, 'unknown_session'],
    [
      {
        input: [
          { type: 'item_reference', id: 'msg_1' },
          { role: 'user', content: 'Hello' },
        ],
      },
      404,
      'unknown_run',
    ],
    [{ input: [{ type: 'function_call_output', call_id: 'c', output: '1' }] }, 404, 'unknown_run'],
  ])('%j', async (change, status, code) => {
    const response = await post('/v1/responses', { model: 'assistant', input: 'Hello', ...change });
    const { error } = await response.json<{ error: { message: string } }>();
    expect([response.status, error]).toEqual([
      status,
      { message: expect.stringMatching(/^[A-Z"]/) as unknown, type: expect.any(String) as unknown, param: null, code },
    ]);
  });

  test('an unknown response', async () => {
    const { openai } = clients();
    await expect(openai.responses.retrieve('resp_1')).rejects.toMatchObject({ status: 404, code: 'unknown_run' });
    await expect(openai.responses.cancel('resp_1')).rejects.toMatchObject({ status: 404, code: 'unknown_run' });
  });
});

describe('[E2] a request that its client repeats, because the answer was lost', () => {
  const runs = (seen: readonly Seen[]): number => new Set(seen.map(({ run }) => run)).size;

  test('has one run, and the conversation goes on', async () => {
    const { openai, seen } = clients({ loses: 1 });
    const one = await openai.responses.create({ model: 'assistant', input: 'What is 7 * 8?' });
    expect([seen.length, runs(seen)]).toEqual([2, 1]);
    expect(messagesOf(one).join()).toContain('56');
    const two = await openai.responses.create({
      model: 'assistant',
      input: 'And 1 + 1?',
      previous_response_id: one.id,
    });
    expect(two.status).toBe('completed');
  });

  test('has one run after a response', async () => {
    const { openai, seen } = clients({ loses: 2 });
    const one = await openai.responses.create({ model: 'assistant', input: 'What is 7 * 9?' });
    const next = { model: 'assistant', input: 'What is 2 * 9?', previous_response_id: one.id };
    const two = await openai.responses.create(next);
    expect([seen.length, runs(seen)]).toEqual([3, 2]);
    expect(messagesOf(two).join()).toContain('18');
    const three = await openai.responses.create({ ...next, previous_response_id: two.id });
    expect([three.status, runs(seen)]).toEqual(['completed', 3]);
  });

  test('does not join a conversation that went on', async () => {
    const { openai, seen } = clients({ loses: 4 });
    const ask = { model: 'assistant', input: 'What is 8 * 9?' };
    const one = await openai.responses.create(ask);
    await openai.responses.create({ ...ask, previous_response_id: one.id });
    await openai.responses.create({ model: 'assistant', input: 'Something else' });
    // The same text, in a conversation of its own.
    const other = await openai.responses.create(ask);
    expect(other.id).not.toBe(one.id);
    const next = await openai.responses.create({ ...ask, previous_response_id: other.id });
    expect(next.status).toBe('completed');
    expect(seen.at(-1)?.session).not.toBe(first(seen).session);
  });
});
