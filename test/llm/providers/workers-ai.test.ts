import { describe, expect, test } from 'vitest';
import type { EngineError } from '../../../src/domain/errors.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { createModel } from '../../../src/llm/routing/select.ts';
import type { AiBinding } from '../../../src/llm/providers/workers-ai.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { modelRequest } from '../model-request.ts';

interface Seen {
  readonly model: string;
  readonly inputs: Record<string, unknown>;
  readonly signal: AbortSignal | undefined;
}

/** The binding as the platform provides it: server-sent events as bytes. */
function binding(answers: readonly (string | object | Error)[]): { ai: AiBinding; seen: Seen[]; left: Promise<void> } {
  const seen: Seen[] = [];
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const ai: AiBinding = {
    async run(model, inputs, options) {
      const answer = answers[Math.min(seen.length, answers.length - 1)] ?? '';
      seen.push({ model, inputs, signal: options?.signal });
      if (answer instanceof Error) throw answer;
      if (typeof answer !== 'string') return answer;
      const bytes = new TextEncoder().encode(answer);
      let at = 0;
      return new ReadableStream<Uint8Array>({
        pull(controller) {
          // Cut at any byte, including inside a character.
          if (at < bytes.length) controller.enqueue(bytes.subarray(at, (at += 7)));
          else if (answer.includes('[DONE]')) controller.close();
        },
        cancel: leave,
      });
    },
  };
  return { ai, seen, left };
}

const sse = (...chunks: (object | string)[]): string =>
  chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join('');

async function read(ai: AiBinding, asked = modelRequest(), clock = new VirtualClock()): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  const { provider } = createModel({ model: '@cf/some/model' }, { clock, random: () => 0, ai });
  for await (const delta of provider.stream(asked)) deltas.push(delta);
  return deltas;
}

const END = [
  { type: 'usage', usage: expect.objectContaining({ promptTokens: 9, completionTokens: 3, estimated: false }) },
  { type: 'finish', reason: 'stop' },
];

describe('[L1] the Workers AI binding', () => {
  test('is used if it exists and nothing else is configured; its description names it', () => {
    const { description } = createModel({}, { clock: new VirtualClock(), random: () => 0, ai: binding(['']).ai });
    expect(description).toContain('through the Workers AI binding');
  });

  test('streams in the OpenAI format of newer models', async () => {
    const { ai, seen } = binding([
      sse(
        { choices: [{ index: 0, delta: { reasoning_content: 'hm' } }] },
        { choices: [{ index: 0, delta: { content: 'Grüße' }, finish_reason: null }] },
        { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
        { choices: [], usage: { prompt_tokens: 9, completion_tokens: 3 } },
        '[DONE]',
      ),
    ]);
    expect(await read(ai)).toEqual([{ type: 'reasoning', text: 'hm' }, { type: 'text', text: 'Grüße' }, ...END]);
    expect(seen[0]).toMatchObject({
      model: '@cf/some/model',
      inputs: { stream: true, max_tokens: 4_096, messages: [{ role: 'user', content: 'hello' }] },
    });
    expect(seen[0]?.inputs).not.toHaveProperty('model');
  });

  test('streams in the platform’s own format for older models', async () => {
    const { ai } = binding([
      sse(
        { response: 'Gr', p: 'abc' },
        { response: 'üße' },
        { response: '', usage: { prompt_tokens: 9, completion_tokens: 3 } },
        '[DONE]',
      ),
    ]);
    expect(await read(ai)).toEqual([{ type: 'text', text: 'Gr' }, { type: 'text', text: 'üße' }, ...END]);
  });

  test('a model that cannot stream sends the complete answer, including calls', async () => {
    const { ai } = binding([
      {
        response: null,
        tool_calls: [{ name: 'search', arguments: { q: 1 } }],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      },
    ]);
    const deltas = await read(ai);
    expect(deltas[0]).toMatchObject({ type: 'tool_call', name: 'search', argumentsDelta: '{"q":1}' });
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'tool_calls' });
  });

  test('[L2] temporary errors before the first text are retried; a wrong model is not', async () => {
    const busy = binding([new Error('3040: Capacity temporarily exceeded'), sse({ response: 'ok' }, '[DONE]')]);
    const clock = new VirtualClock();
    const reading = read(busy.ai, modelRequest(), clock);
    while (busy.seen.length < 2) {
      await new Promise((resolve) => setImmediate(resolve));
      // Advances only the waits between attempts: timeouts are longer.
      if (clock.next !== null && clock.next - clock.now() < limits.betweenTokensMs)
        clock.advance(clock.next - clock.now());
    }
    expect(await reading).toContainEqual({ type: 'text', text: 'ok' });
    const wrong = binding([new Error('5007: No such model @cf/some/model or task')]);
    const fault = await read(wrong.ai).catch((thrown: EngineError) => thrown);
    expect(fault).toMatchObject({ code: 'model_rejected', message: expect.stringContaining('No such model') });
    expect(wrong.seen).toHaveLength(1);
  });

  test('[P15] an abort reaches the platform and ends the stream', async () => {
    const { ai, seen, left } = binding([sse({ response: 'half' })]);
    const abort = new AbortController();
    const { provider } = createModel({}, { clock: new VirtualClock(), random: () => 0, ai });
    const stream = provider.stream(modelRequest({ signal: abort.signal }))[Symbol.asyncIterator]();
    await stream.next();
    const next = stream.next();
    abort.abort();
    expect(await next).toMatchObject({ value: { type: 'usage' } });
    expect(await stream.next()).toMatchObject({ value: { type: 'finish', reason: 'abort' } });
    expect(seen[0]?.signal?.aborted).toBe(true);
    await left;
  });
});
