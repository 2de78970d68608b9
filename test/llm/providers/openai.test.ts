import { describe, expect, test } from 'vitest';
import { EngineError } from '../../../src/domain/errors.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { Clock } from '../../../src/domain/ports/clock.ts';
import type { ModelDelta, ModelProvider } from '../../../src/domain/ports/model.ts';
import { createOpenAiProvider } from '../../../src/llm/providers/openai.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { answer, startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import type { ScriptedLlm, ScriptedReply } from '../../../cli/scripted-llm/server.ts';
import { modelRequest } from '../model-request.ts';

const KEY = 'sk-test-1234567890';

/** Waits between attempts pass at once and are recorded; timeouts never fire. */
class HastyClock implements Clock {
  readonly waits: number[] = [];
  now(): number {
    return 1_000_000;
  }
  schedule(delayMs: number, callback: () => void): () => void {
    if (delayMs >= limits.betweenTokensMs || delayMs === limits.usageGraceMs) return () => {};
    this.waits.push(delayMs);
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  }
}

function provider(
  server: Pick<ScriptedLlm, 'baseUrl'>,
  clock: Clock = new HastyClock(),
  apiKey: string | null = KEY,
): ModelProvider {
  return createOpenAiProvider({
    baseUrl: server.baseUrl,
    apiKey,
    defaultModel: 'test-model',
    clock,
    random: () => 0.5,
  });
}

async function read(stream: AsyncIterable<ModelDelta>): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of stream) deltas.push(delta);
  return deltas;
}

/** Reads until the end or the error, and returns both. */
async function outcome(
  stream: AsyncIterable<ModelDelta>,
): Promise<{ deltas: ModelDelta[]; fault: EngineError | null }> {
  const deltas: ModelDelta[] = [];
  try {
    for await (const delta of stream) deltas.push(delta);
    return { deltas, fault: null };
  } catch (fault) {
    if (!(fault instanceof EngineError)) throw fault;
    return { deltas, fault };
  }
}

function textOf(deltas: readonly ModelDelta[]): string {
  return deltas.map((delta) => (delta.type === 'text' ? delta.text : '')).join('');
}

describe('the content of a stream', () => {
  test('[L1] text, reasoning and tool calls arrive as deltas, then usage, then the finish reason', async () => {
    await using server = await startScriptedLlm([
      {
        stream: [
          { chunk: { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] } },
          { reasoning: 'hm' },
          'Hello',
          { toolCall: { index: 0, id: 'call_1', name: 'search', arguments: '{"q":' } },
          { toolCall: { index: 0, arguments: '"x"}' } },
          { finish: 'tool_calls' },
          { usage: { prompt_tokens: 20, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 16 } } },
        ],
      },
    ]);
    expect(await read(provider(server).stream(modelRequest()))).toEqual([
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'Hello' },
      { type: 'tool_call', index: 0, id: 'call_1', name: 'search', argumentsDelta: '{"q":' },
      { type: 'tool_call', index: 0, id: null, name: null, argumentsDelta: '"x"}' },
      {
        type: 'usage',
        usage: { promptTokens: 20, completionTokens: 5, cachedTokens: 16, estimated: false, model: 'test-model' },
      },
      { type: 'finish', reason: 'tool_calls' },
    ]);
  });

  test('[L1] the request contains model, messages, limits, stream and any additional fields', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    await read(
      provider(server).stream(
        modelRequest({
          messages: [
            { role: 'system', content: 's' },
            { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'f', arguments: '{}' }] },
            { role: 'tool', content: '42', toolCallId: 'c1' },
          ],
          temperature: 0.2,
          maxTokens: 50,
          extra: { top_p: 0.9, stream: false },
        }),
      ),
    );
    const seen = server.requests[0];
    expect(seen?.path).toBe('/v1/chat/completions');
    expect(seen?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(seen?.headers['user-agent']).toBe('cortex-edge');
    expect(seen?.body).toEqual({
      model: 'test-model',
      messages: [
        { role: 'system', content: 's' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', content: '42', tool_call_id: 'c1' },
      ],
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0.2,
      max_tokens: 50,
      top_p: 0.9,
    });
  });

  test.each<[string, ScriptedReply]>([
    ['null choices', { stream: [{ chunk: { choices: null } }, 'ok', { finish: 'stop' }] }],
    ['empty choices', { stream: [{ chunk: { choices: [] } }, 'ok', { finish: 'stop' }] }],
    ['a null delta', { stream: [{ chunk: { choices: [{ index: 0, delta: null }] } }, 'ok', { finish: 'stop' }] }],
    [
      'null content',
      { stream: [{ chunk: { choices: [{ index: 0, delta: { content: null } }] } }, 'ok', { finish: 'stop' }] },
    ],
    ['chunks that are not objects', { stream: [{ data: '7' }, { data: 'null' }, 'ok', { finish: 'stop' }] }],
    ['comments', { stream: [{ comment: 'PROCESSING' }, 'ok', { comment: 'still' }, { finish: 'stop' }] }],
    [
      'a second choice',
      { stream: [{ chunk: { choices: [{ index: 1, delta: { content: 'no' } }] } }, 'ok', { finish: 'stop' }] },
    ],
    [
      'content parts',
      { stream: [{ chunk: { choices: [{ index: 0, delta: { content: [{ text: 'ok' }] } }] } }, { finish: 'eos' }] },
    ],
  ])('[L1] %s are tolerated', async (_, reply) => {
    await using server = await startScriptedLlm([reply]);
    const deltas = await read(provider(server).stream(modelRequest()));
    expect(textOf(deltas)).toBe('ok');
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'stop' });
  });

  test('[P15] an end marker without a finish reason is a stop; a stream without both is broken', async () => {
    await using marked = await startScriptedLlm([{ stream: ['ok'] }]);
    expect((await read(provider(marked).stream(modelRequest()))).at(-1)).toEqual({ type: 'finish', reason: 'stop' });
    await using closed = await startScriptedLlm([{ stream: ['half an ans', 'CLOSE'] }]);
    const { deltas, fault } = await outcome(provider(closed).stream(modelRequest()));
    expect(fault?.code).toBe('model_unavailable');
    expect(deltas.map(({ type }) => type)).toEqual(['text', 'usage']);
  });
});

describe('[P17] functions', () => {
  const tools = [{ name: 'search', summary: 'Searches.', parameters: { type: 'object', properties: {} } }];

  test('are declared if the request lists them, and cannot be called if it allows only an answer', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    await read(provider(server).stream(modelRequest()));
    await read(provider(server).stream(modelRequest({ tools })));
    await read(provider(server).stream(modelRequest({ tools, answerOnly: true })));
    const [without, declared, last] = server.requests.map(({ body }) => body);
    expect(without).not.toHaveProperty('tools');
    expect(declared?.['tools']).toEqual([
      {
        type: 'function',
        function: { name: 'search', description: 'Searches.', parameters: { type: 'object', properties: {} } },
      },
    ]);
    expect(declared).not.toHaveProperty('tool_choice');
    expect(last).toMatchObject({ tool_choice: 'none', tools: [{ type: 'function' }] });
  });

  test('a request is sent again without tool_choice if the endpoint refuses it', async () => {
    await using server = await startScriptedLlm([
      { status: 400, body: { error: { message: 'tool_choice is not supported' } } },
      answer('ok'),
    ]);
    expect(textOf(await read(provider(server).stream(modelRequest({ tools, answerOnly: true }))))).toBe('ok');
    expect(server.requests[1]?.body).toHaveProperty('tools');
    expect(server.requests[1]?.body).not.toHaveProperty('tool_choice');
  });

  test('additional fields of a call are sent back with the call', async () => {
    const extra = { google: { thought_signature: 'c2ln' } };
    const given = { index: 0, id: 'a', function: { name: 'f', arguments: '{}' }, extra_content: extra };
    await using server = await startScriptedLlm([
      { stream: [{ chunk: { choices: [{ index: 0, delta: { tool_calls: [given] } }] } }, { finish: 'tool_calls' }] },
    ]);
    expect((await read(provider(server).stream(modelRequest())))[0]).toMatchObject({ type: 'tool_call', extra });
    const toolCalls = [{ id: 'a', name: 'f', arguments: '{}', extra }];
    await read(provider(server).stream(modelRequest({ messages: [{ role: 'assistant', content: '', toolCalls }] })));
    expect(server.requests[1]?.body['messages']).toMatchObject([
      { tool_calls: [{ id: 'a', extra_content: extra, function: { name: 'f' } }] },
    ]);
  });
});

describe('errors before the first delta', () => {
  test.each([429, 500, 502, 503, 529, 408])('[L2] %d is retried', async (status) => {
    await using server = await startScriptedLlm([{ status }, answer('ok')]);
    expect(textOf(await read(provider(server).stream(modelRequest())))).toBe('ok');
    expect(server.requests).toHaveLength(2);
  });

  test('[L2] after three attempts the error is reported, with the endpoint’s message', async () => {
    const clock = new HastyClock();
    await using server = await startScriptedLlm([{ status: 503, body: { error: { message: 'all busy' } } }]);
    const { deltas, fault } = await outcome(provider(server, clock).stream(modelRequest()));
    expect(deltas).toEqual([]);
    expect(fault).toMatchObject({ code: 'model_unavailable', details: { status: 503 } });
    expect(fault?.message).toContain('all busy');
    expect(server.requests).toHaveLength(limits.modelAttempts);
    // full jitter at 0.5: half of a base delay that doubles
    expect(clock.waits).toEqual([limits.retryDelayMs, limits.retryDelayMs * 2]);
  });

  test('[L2] Retry-After is honoured in seconds, as a date and in milliseconds', async () => {
    const clock = new HastyClock();
    await using server = await startScriptedLlm([
      { status: 429, headers: { 'retry-after': '7' } },
      { status: 429, headers: { 'retry-after': new Date(1_000_000 + 9_000).toUTCString() } },
      answer('ok'),
    ]);
    expect(textOf(await read(provider(server, clock).stream(modelRequest())))).toBe('ok');
    expect(clock.waits).toEqual([7_000, 9_000]);
    await using precise = await startScriptedLlm([
      { status: 429, headers: { 'retry-after-ms': '4321' } },
      answer('ok'),
    ]);
    await read(provider(precise, clock).stream(modelRequest()));
    expect(clock.waits.at(-1)).toBe(4_321);
  });

  test('[L2] a Retry-After longer than the maximum wait fails at once', async () => {
    await using server = await startScriptedLlm([{ status: 429, headers: { 'retry-after': '3600' } }]);
    const { fault } = await outcome(provider(server).stream(modelRequest()));
    expect(fault).toMatchObject({ code: 'model_unavailable', details: { retry_after_ms: limits.retryAfterMaxMs } });
    expect(server.requests).toHaveLength(1);
  });

  test.each(['1e300', '9'.repeat(400)])(
    '[L2] a Retry-After beyond the number range (%s) is a long one',
    async (written) => {
      await using server = await startScriptedLlm([{ status: 429, headers: { 'retry-after': written } }]);
      const { fault } = await outcome(provider(server).stream(modelRequest()));
      expect(fault).toMatchObject({ details: { retry_after_ms: limits.retryAfterMaxMs } });
      expect(server.requests).toHaveLength(1);
    },
  );

  test.each(['-5', 'Wed, 21 Oct 1970 07:28:00 GMT', 'soon'])(
    '[L2] a Retry-After of "%s" waits no longer than the backoff',
    async (written) => {
      const clock = new HastyClock();
      await using server = await startScriptedLlm([{ status: 429, headers: { 'retry-after': written } }, answer('ok')]);
      const late = { ...clock, now: () => Date.UTC(2026, 0), schedule: clock.schedule.bind(clock) };
      expect(textOf(await read(provider(server, late).stream(modelRequest())))).toBe('ok');
      expect(clock.waits).toEqual([limits.retryDelayMs]);
    },
  );

  test.each([400, 401, 403, 404])('[L2] %d is a refusal and is not retried', async (status) => {
    await using server = await startScriptedLlm([{ status }]);
    const { fault } = await outcome(provider(server).stream(modelRequest()));
    expect(fault).toMatchObject({ code: 'model_rejected', details: { status } });
    expect(server.requests).toHaveLength(1);
  });

  test('[L2] an exhausted quota is a refusal, although its status is 429', async () => {
    await using server = await startScriptedLlm([
      { status: 429, body: { error: { message: 'no credit', code: 'insufficient_quota' } } },
    ]);
    expect((await outcome(provider(server).stream(modelRequest()))).fault?.code).toBe('model_rejected');
    expect(server.requests).toHaveLength(1);
  });

  test('[L2] an error inside the stream is classified by its own code', async () => {
    await using server = await startScriptedLlm([
      { stream: [{ chunk: { error: { code: 502, message: 'upstream' } } }] },
      { stream: [{ chunk: { error: { code: 403, message: 'moderated' } } }] },
    ]);
    const { fault } = await outcome(provider(server).stream(modelRequest()));
    expect(fault).toMatchObject({ code: 'model_rejected', details: { status: 403 } });
    expect(server.requests).toHaveLength(2);
  });

  test.each<[string, ScriptedReply]>([
    ['garbage', { stream: [{ data: '{"choices": [' }] }],
    ['a cut connection', { stream: ['CUT'] }],
    ['an empty answer', { stream: ['CLOSE'] }],
  ])('[L2] %s before the first delta is retried', async (_, reply) => {
    await using server = await startScriptedLlm([reply, answer('ok')]);
    expect(textOf(await read(provider(server).stream(modelRequest())))).toBe('ok');
  });

  test('[L2] a closed port is model_unavailable, and the message gives the reason', async () => {
    const server = await startScriptedLlm([]);
    await server[Symbol.asyncDispose]();
    const { fault } = await outcome(provider(server).stream(modelRequest()));
    expect(fault?.code).toBe('model_unavailable');
    expect(fault?.message).toContain('ECONNREFUSED');
  });

  test.each([
    ['stream_options', 'Unknown field: stream_options', { temperature: 1, max_tokens: 9 }],
    [
      'max_tokens',
      "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
      { temperature: 1, max_completion_tokens: 9, stream_options: { include_usage: true } },
    ],
    [
      'temperature',
      "Unsupported value: 'temperature' does not support 1",
      { max_tokens: 9, stream_options: { include_usage: true } },
    ],
  ])(
    '[L1] a server that refuses %s gets the request again without it, and later requests omit it',
    async (_, message, fields) => {
      await using server = await startScriptedLlm([{ status: 400, body: { error: { message } } }, answer('ok')]);
      const model = provider(server);
      expect(textOf(await read(model.stream(modelRequest({ temperature: 1, maxTokens: 9 }))))).toBe('ok');
      await read(model.stream(modelRequest({ temperature: 1, maxTokens: 9 })));
      expect(server.requests).toHaveLength(3);
      for (const { body } of server.requests.slice(1)) {
        expect(body).toEqual({
          model: 'test-model',
          messages: [{ role: 'user', content: 'hello' }],
          stream: true,
          ...fields,
        });
      }
    },
  );
});

describe('models that need a different conversation format', () => {
  test.each([
    [400, 'System role not supported'],
    [500, 'Jinja Exception: System role not supported'],
    [400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."],
  ])(
    '[L1] without a system role (%d: %s) the system prompt moves to the user’s message, for later requests too',
    async (status, message) => {
      await using server = await startScriptedLlm([{ status, body: { error: { message } } }, answer('ok')]);
      const model = provider(server);
      const messages = [
        { role: 'system' as const, content: 'Be brief.' },
        { role: 'user' as const, content: 'Hi.' },
      ];
      expect(textOf(await read(model.stream(modelRequest({ messages }))))).toBe('ok');
      await read(model.stream(modelRequest({ messages })));
      expect(server.requests.slice(1).map(({ body }) => body['messages'])).toEqual([
        [{ role: 'user', content: 'Be brief.\n\nHi.' }],
        [{ role: 'user', content: 'Be brief.\n\nHi.' }],
      ]);
    },
  );
});

describe('errors after the first delta', () => {
  test.each<[string, ScriptedReply]>([
    ['a cut', { stream: ['half', 'CUT'] }],
    ['garbage', { stream: ['half', { data: '{{{' }] }],
    ['an error', { stream: ['half', { chunk: { error: { code: 500, message: 'lost' } } }] }],
  ])('[L2] %s is never retried, and the usage is reported first', async (_, reply) => {
    await using server = await startScriptedLlm([reply, answer('again')]);
    const { deltas, fault } = await outcome(provider(server).stream(modelRequest()));
    expect(fault?.code).toBe('model_unavailable');
    expect(deltas).toEqual([
      { type: 'text', text: 'half' },
      {
        type: 'usage',
        usage: { promptTokens: 2, completionTokens: 1, cachedTokens: 0, estimated: true, model: 'test-model' },
      },
    ]);
    expect(server.requests).toHaveLength(1);
  });
});

describe('timeouts', () => {
  test('[L2] no first token in time is model_timeout, and the request is cancelled', async () => {
    const clock = new VirtualClock();
    await using server = await startScriptedLlm([{ stream: [{ comment: 'thinking' }, 'STALL'] }]);
    const reading = outcome(provider(server, clock).stream(modelRequest()));
    const { left } = await server.request(0);
    clock.advance(limits.firstTokenMs);
    const { fault } = await reading;
    expect(fault?.code).toBe('model_timeout');
    expect(fault?.message).toContain('first token');
    await left;
  });
});

test('[L2] a manifest can set longer or shorter timeouts', async () => {
  const clock = new VirtualClock();
  await using server = await startScriptedLlm([{ stream: [{ comment: 'thinking' }, 'STALL'] }]);
  const model = createOpenAiProvider({
    baseUrl: server.baseUrl,
    apiKey: null,
    defaultModel: 'm',
    clock,
    random: () => 0,
    firstTokenMs: 5_000,
  });
  const reading = outcome(model.stream(modelRequest()));
  await server.request(0);
  clock.advance(5_000);
  expect((await reading).fault).toMatchObject({
    code: 'model_timeout',
    message: expect.stringContaining('within 5 s'),
  });
});

describe('abort', () => {
  test('[P15] an abort during the answer ends with finish abort and reaches the endpoint', async () => {
    const abort = new AbortController();
    await using server = await startScriptedLlm([{ stream: ['a', 'STALL'] }]);
    const deltas = provider(server).stream(modelRequest({ signal: abort.signal }));
    const stream = deltas[Symbol.asyncIterator]();
    await stream.next();
    const next = stream.next();
    abort.abort();
    expect(await next).toMatchObject({ value: { type: 'usage' } });
    expect(await stream.next()).toEqual({ done: false, value: { type: 'finish', reason: 'abort' } });
    await (
      await server.request(0)
    ).left;
  });

  test('[P15] an abort before the answer or between two attempts ends with finish abort too', async () => {
    const abort = new AbortController();
    await using silent = await startScriptedLlm([{ stream: ['STALL'] }]);
    const reading = read(provider(silent).stream(modelRequest({ signal: abort.signal })));
    const { left } = await silent.request(0);
    abort.abort();
    expect((await reading).at(-1)).toEqual({ type: 'finish', reason: 'abort' });
    await left;

    const clock = new VirtualClock();
    const second = new AbortController();
    await using busy = await startScriptedLlm([{ status: 503 }]);
    const waiting = read(provider(busy, clock).stream(modelRequest({ signal: second.signal })));
    while (clock.next === null || clock.next - clock.now() > limits.retryMaxDelayMs) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    second.abort();
    expect((await waiting).at(-1)).toEqual({ type: 'finish', reason: 'abort' });
    expect(busy.requests).toHaveLength(1);
  });

  test('[P15] a reader that stops reading closes the request', async () => {
    await using server = await startScriptedLlm([{ stream: ['a', 'STALL'] }]);
    for await (const delta of provider(server).stream(modelRequest())) {
      expect(delta).toEqual({ type: 'text', text: 'a' });
      break;
    }
    await (
      await server.request(0)
    ).left;
  });
});

test('[P16] an endless error answer is read only to the size that is reported', async () => {
  let sent = 0;
  const bytes = new TextEncoder().encode('wrong, '.repeat(1_000));
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += bytes.length;
      controller.enqueue(bytes);
    },
  });
  const model = createOpenAiProvider({
    baseUrl: 'http://endless/v1',
    apiKey: null,
    defaultModel: 'm',
    clock: new HastyClock(),
    random: () => 0,
    fetch: async () => new Response(endless, { status: 400, headers: { 'content-type': 'text/event-stream' } }),
  });
  const { fault } = await outcome(model.stream(modelRequest()));
  expect(fault).toMatchObject({ code: 'model_rejected', message: expect.stringContaining('wrong, wrong') });
  expect(sent).toBeLessThan(limits.modelErrorBytes * 4);
});

describe('the API key', () => {
  test('[L7] redirects are not followed: the other origin gets no request', async () => {
    await using other = await startScriptedLlm([answer('stolen')]);
    await using server = await startScriptedLlm([
      { status: 307, headers: { location: `${other.baseUrl}/chat/completions` } },
    ]);
    const { fault } = await outcome(provider(server).stream(modelRequest()));
    expect(fault?.code).toBe('model_rejected');
    expect(fault?.message).toContain('redirects');
    expect(other.requests).toEqual([]);
  });

  test('[L7] without a key no Authorization header is sent', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    await read(provider(server, new HastyClock(), null).stream(modelRequest()));
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });

  test('[X3] a key that the endpoint repeats is redacted in messages', async () => {
    await using server = await startScriptedLlm([
      { status: 401, body: { error: { message: `Incorrect API key: ${KEY}` } } },
    ]);
    const { fault } = await outcome(provider(server).stream(modelRequest()));
    expect(fault?.message).toContain('[redacted]');
    expect(fault?.message).not.toContain(KEY);
  });

  test.each(['', 'api.openai.com', 'file:///etc/passwd'])('[L1] the base URL %j is refused', (baseUrl) => {
    expect(() => provider({ baseUrl })).toThrow(EngineError);
  });
});
