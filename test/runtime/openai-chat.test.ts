/** The unchanged client of OpenAI against the Worker: chat completions (E2). */
import { abortAllDurableObjects } from 'cloudflare:test';
import OpenAI from 'openai';
import type { ChatCompletionChunk, ChatCompletionTool } from 'openai/resources/chat/completions';
import { expect, test } from 'vitest';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { call, post } from './client.ts';

interface Seen {
  readonly path: string;
  readonly status: number;
  readonly session: string;
  readonly run: string;
}

function clientOf(through: (response: Response) => Response = (response) => response): {
  readonly openai: OpenAI;
  readonly seen: Seen[];
} {
  const seen: Seen[] = [];
  const openai = new OpenAI({
    apiKey: 'none',
    baseURL: 'http://127.0.0.1:8787/v1',
    fetch: async (url, init) => {
      const { pathname } = new URL(String(url));
      const response = await call(pathname, init);
      const header = (name: string): string => response.headers.get(name) ?? '';
      seen.push({ path: pathname, status: response.status, session: header('x-session-id'), run: header('x-run-id') });
      return through(response);
    },
  });
  return { openai, seen };
}

const stored = async ({ session, run }: Seen): Promise<RunResult> =>
  await (await call(`/agent/session/${session}/runs/${run}`)).json<RunResult>();

const first = (seen: readonly Seen[]): Seen => seen[0] ?? { path: '', status: 0, session: '', run: '' };
const answerOf = ({ responses }: RunResult): string => responses.map(({ content }) => content).join('\n\n');

const TOOL: ChatCompletionTool = {
  type: 'function',
  function: { name: 'pick_color', description: 'Asks for a color.', parameters: { type: 'object', properties: {} } },
};
const user = (content: string) => ({ role: 'user', content }) as const;

test('[E2] agents are models', async () => {
  const { openai } = clientOf();
  const { data } = await openai.models.list();
  expect(data.map(({ id }) => id)).toContain('assistant');
  expect(await openai.models.retrieve('assistant')).toMatchObject({ id: 'assistant', object: 'model' });
  await expect(openai.models.retrieve('asistant')).rejects.toMatchObject({ status: 404, code: 'unknown_agent' });
});

test('[E2] a conversation is answered; the message is the stored answer', async () => {
  const { openai, seen } = clientOf();
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
  const { openai, seen } = clientOf();
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

test('[E2] the conversation before the message is the history of the run', async () => {
  const { openai, seen } = clientOf();
  await openai.chat.completions.create({
    model: 'assistant',
    messages: [
      { role: 'system', content: 'Answer briefly.' },
      user('My name is Ada.'),
      { role: 'assistant', content: 'Hello Ada.', refusal: null },
      user('What is 6 * 7?'),
    ],
  });
  const history = await (await call(`/agent/session/${first(seen).session}/history`)).json<{ messages: object[] }>();
  expect(JSON.stringify(history)).toContain('My name is Ada.');
});

test('[E2] tools of the request are executed by the client; their results continue the run', async () => {
  const { openai, seen } = clientOf();
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

test('[E2] results of calls that no run of ours has made are history', async () => {
  const { openai, seen } = clientOf();
  const calls = ['call_abc', `call_${'A'.repeat(30)}`];
  for (const id of calls) {
    const { choices } = await openai.chat.completions.create({
      model: 'assistant',
      messages: [
        user('What is the weather?'),
        { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: id, content: 'sunny' },
      ],
    });
    expect(choices[0]?.finish_reason).toBe('stop');
  }
  expect(new Set(seen.map(({ session }) => session)).size).toBe(2);
});

test('[E2] X-Session-Id keeps the conversation in one session', async () => {
  const { openai, seen } = clientOf();
  const options = { headers: { 'X-Session-Id': 'my chat' } };
  const messages = [user('Hello')];
  const { choices } = await openai.chat.completions.create({ model: 'assistant', messages }, options);
  const message = choices[0]?.message;
  if (message === undefined) throw new Error('expected an answer');
  await openai.chat.completions.create(
    { model: 'assistant', messages: [...messages, message, user('Hello again')] },
    options,
  );
  expect(new Set(seen.map(({ session }) => session)).size).toBe(1);
  expect(new Set(seen.map(({ run }) => run)).size).toBe(2);
});

test('[E2] the same request with an idempotency key has one run', async () => {
  const { openai, seen } = clientOf();
  const ask = async (content: string): Promise<string | null | undefined> => {
    const request = { model: 'assistant', messages: [user(content)] };
    const { choices } = await openai.chat.completions.create(request, { headers: { 'Idempotency-Key': 'k' } });
    return choices[0]?.message.content;
  };
  const [one, two] = await Promise.all([ask('Hello'), ask('Hello')]);
  expect(one).toBe(two);
  expect(new Set(seen.map(({ run }) => run)).size).toBe(1);
  await expect(ask('Another one')).rejects.toMatchObject({ status: 422, code: 'idempotency_mismatch' });
});

/** A client whose first stream calls `at` before the chunk of this number. */
function faultyClient(chunk: number, at: () => Promise<'cut' | 'go on'>): ReturnType<typeof clientOf> {
  let requests = 0;
  return clientOf((response) => {
    requests += 1;
    if (requests > 1 || response.body === null) return response;
    const reader = response.body.getReader();
    let chunks = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        if (chunks === chunk && (await at()) === 'cut') {
          void reader.cancel().catch(() => undefined);
          return controller.error(new TypeError('terminated'));
        }
        chunks += 1;
        return controller.enqueue(value);
      },
    });
    return new Response(body, response);
  });
}

/** A client that loses the answer of its nth request, which the system has given. */
function losingClient(nth: number): ReturnType<typeof clientOf> {
  let requests = 0;
  return clientOf((response) => {
    requests += 1;
    if (requests !== nth) return response;
    throw new TypeError('fetch failed');
  });
}

test('[E2] a repeated request never has the answer of an equal one that was not repeated', async () => {
  const { openai, seen } = losingClient(2);
  const request = { model: 'assistant', messages: [user('What is 5 * 5?')] };
  const one = await openai.chat.completions.create(request);
  const two = await openai.chat.completions.create(request);
  expect(two.id).not.toBe(one.id);
  // Its first attempt has a run, too: which of the equal requests it was is not known.
  expect(new Set(seen.map(({ run }) => run)).size).toBe(3);
});

test('[E2] a repeated message of a kept session has one run', async () => {
  const { openai, seen } = losingClient(1);
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
  let isFirst = true;
  const { openai, seen } = clientOf((response) => {
    if (!isFirst) return response;
    isFirst = false;
    throw new TypeError('fetch failed');
  });
  const request = { model: 'assistant', messages: [user('What is 3 * 3?')] };
  const answered = await openai.chat.completions.create(request);
  expect(answered.choices[0]?.message.content).toContain('9');
  expect([seen.length, new Set(seen.map(({ run }) => run)).size]).toEqual([2, 1]);
  await openai.chat.completions.create(request);
  expect(new Set(seen.map(({ run }) => run)).size).toBe(2);
});

test.each([
  ['the connection', 'cut'],
  ['the object', 'go on'],
] as const)(
  '[E2][J2] %s is lost: an error, and the same request with its key has the whole message',
  async (_, what) => {
    for (const chunk of [0, 1, 3]) {
      const { openai, seen } = faultyClient(chunk, async () => {
        if (what === 'go on') await abortAllDurableObjects();
        return what;
      });
      const request = { model: 'assistant', messages: [user('What is 6 * 7?')] };
      const options = { headers: { 'Idempotency-Key': `${what} ${chunk}` }, maxRetries: 0 };
      await expect(openai.chat.completions.stream(request, options).finalChatCompletion()).rejects.toThrow();
      const whole = await openai.chat.completions.create(request, options);
      expect(whole.choices[0]?.message.content).toBe(answerOf(await stored(first(seen))));
      expect(new Set(seen.map(({ run }) => run)).size).toBe(1);
    }
  },
);

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

test('[E2] a session of one request is not listed', async () => {
  const { openai, seen } = clientOf();
  await openai.chat.completions.create({ model: 'assistant', messages: [user('Hello')] });
  const { executions } = await (await call('/executions')).json<{ executions: { session_id: string }[] }>();
  expect(executions.map(({ session_id: id }) => id)).not.toContain(first(seen).session);
});
