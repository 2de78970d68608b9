import { describe, expect, test } from 'vitest';
import type { EngineError } from '../../../src/domain/errors.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ModelDelta, ModelRequest } from '../../../src/domain/ports/model.ts';
import { createCaller } from '../../../src/llm/routing/caller.ts';
import type { Connection } from '../../../src/llm/routing/caller.ts';
import { readChunk } from '../../../src/llm/providers/chunk.ts';
import { GENERIC } from '../../../src/llm/providers/presets.ts';
import { Endpoint } from '../../../src/llm/routing/endpoints.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { modelRequest } from '../model-request.ts';

const request = modelRequest();

/** Advances only by the scripts; timers that are due, and waits between attempts, pass at once. */
class PromptClock extends VirtualClock {
  override schedule(delayMs: number, callback: () => void): () => void {
    const isWait = delayMs <= limits.retryMaxDelayMs && delayMs !== limits.usageGraceMs;
    if (!isWait) return super.schedule(delayMs, callback);
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  }
}

/** A caller over scripted chunks: a number advances the clock by that many milliseconds. Each attempt uses the next list. */
function setUp(attempts: readonly Iterable<unknown>[]) {
  const clock = new PromptClock();
  const endpoint = new Endpoint({ name: 'http://model', key: null }, clock);
  let opened = 0;
  const { promise: never } = Promise.withResolvers<undefined>();
  const connection: Connection = {
    secret: null,
    keyAdvice: null,
    read: readChunk,
    async open(_, { end, signal }) {
      const chunks = attempts[Math.min(opened, attempts.length - 1)] ?? [];
      opened += 1;
      return (async function* (): AsyncGenerator<readonly unknown[]> {
        for (const chunk of chunks) {
          if (chunk === 'STALL') await never;
          if (chunk instanceof Error) throw chunk;
          if (typeof chunk === 'number') clock.advance(chunk);
          else yield Array.isArray(chunk) ? chunk : [chunk];
          if (signal.aborted) return;
        }
        end.marked = true;
      })();
    },
  };
  const caller = createCaller(connection, {
    defaultModel: 'm',
    endpoint,
    clock,
    random: () => 0,
    firstTokenMs: limits.firstTokenMs,
    betweenTokensMs: limits.betweenTokensMs,
    sight: { takes: GENERIC.attachments, vision: null },
  });
  const ask = async (asked = request): Promise<{ deltas: ModelDelta[]; fault: EngineError | null }> => {
    const deltas: ModelDelta[] = [];
    try {
      for await (const delta of caller.stream(asked)) deltas.push(delta);
      return { deltas, fault: null };
    } catch (fault) {
      return { deltas, fault: fault as EngineError };
    }
  };
  return { ask, endpoint, clock, opened: () => opened };
}

const says = (content: string, more: object = {}): unknown => ({
  choices: [{ index: 0, delta: { content } }],
  ...more,
});
const ends = (reason: string, more: object = {}): unknown => ({
  choices: [{ index: 0, delta: {}, finish_reason: reason }],
  ...more,
});
const counts = (prompt: number, completion: number): object => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion },
});

const DOWN = [new Error('down')];

describe('[L2] the circuit breaker of an endpoint', () => {
  test('opens over several calls; then no request is sent, and the error reports the remaining time', async () => {
    const { ask, endpoint, opened } = setUp([DOWN]);
    await ask();
    expect(opened()).toBe(limits.modelAttempts);
    await ask();
    expect(endpoint.breakerOf('m').state).toBe('open');
    const asked = opened();
    expect(asked).toBe(limits.breakerFailures);
    expect((await ask()).fault).toMatchObject({
      code: 'model_unavailable',
      message: `The model endpoint http://model has failed ${limits.breakerFailures} times in a row and is not called for another 30 s`,
      details: { circuit: 'open', retry_after_ms: limits.breakerOpenMs },
    });
    expect(opened()).toBe(asked);
  });

  test('allows one call when its time is over, and the first text closes it', async () => {
    const { ask, endpoint, clock, opened } = setUp([
      ...Array.from({ length: limits.breakerFailures }, () => DOWN),
      [says('ok')],
    ]);
    await ask();
    await ask();
    clock.advance(limits.breakerOpenMs);
    expect((await ask()).deltas).toContainEqual({ type: 'text', text: 'ok' });
    expect(endpoint.breakerOf('m').state).toBe('closed');
    expect(opened()).toBe(limits.breakerFailures + 1);
  });

  test('a failed trial is not retried in the same call', async () => {
    const { ask, clock, opened } = setUp([DOWN]);
    await ask();
    await ask();
    clock.advance(limits.breakerOpenMs);
    await ask();
    expect(opened()).toBe(limits.breakerFailures + 1);
  });

  test('an aborted call does not count', async () => {
    const { ask, endpoint } = setUp([DOWN]);
    for (let n = 0; n < 10; n += 1) await ask({ ...request, signal: AbortSignal.abort() });
    expect(endpoint.breakerOf('m').state).toBe('closed');
    expect(endpoint.breakerOf('m').failures).toBe(0);
  });
});

test('[L2] the time to the first token is learned for each model', async () => {
  const { ask, endpoint } = setUp([[says('ok')]]);
  await ask();
  expect(endpoint.latencyOf('m')).toBe(0);
  expect(endpoint.latencyOf('other')).toBeNull();
});

describe('[L2] timeouts of an answer', () => {
  const beat = limits.betweenTokensMs / 4;

  test('empty pieces are not tokens: the timeout between two tokens continues', async () => {
    const { ask } = setUp([[says('a'), ...Array.from({ length: 8 }, () => [beat, says('')]).flat(), 'STALL']]);
    const { deltas, fault } = await ask();
    expect(fault).toMatchObject({ code: 'model_timeout', message: expect.stringContaining('sent nothing for') });
    expect(deltas[0]).toEqual({ type: 'text', text: 'a' });
  });

  test('slow tokens are accepted, for any total time', async () => {
    const { ask } = setUp([[...Array.from({ length: 12 }, () => [says('a'), beat]).flat(), ends('stop')]]);
    const { fault } = await ask();
    expect(fault).toBeNull();
  });

  test('after the finish reason, only the usage is waited for', async () => {
    const empty = Array.from({ length: 9 }, () => [limits.usageGraceMs / 2, says('')]).flat();
    const { ask } = setUp([[says('a'), ends('stop'), ...empty, 'STALL']]);
    const { deltas, fault } = await ask();
    expect(fault).toBeNull();
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'stop' });
  });
});

describe('[P4] chunks that arrive together', () => {
  test('text that follows text is one piece; a call, and other text, begins a new one', async () => {
    const call = { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{}' } }] } }] };
    const thinks = { choices: [{ index: 0, delta: { reasoning: 'hm' } }] };
    const { ask } = setUp([[[thinks, says('a'), says('b'), call, says('c')], says('d'), [ends('stop')]]]);
    const { deltas } = await ask();
    expect(deltas.map((delta) => ('text' in delta ? delta.text : delta.type))).toEqual([
      'hm',
      'ab',
      'tool_call',
      'c',
      'd',
      'usage',
      'finish',
    ]);
  });

  test('[P16] of a list, nothing behind the limit is read', async () => {
    const piece = 'x'.repeat(limits.generationBytes / 2 + 1);
    const { ask } = setUp([[[says(piece), says(piece), says('more'), ends('stop')]]]);
    const { deltas } = await ask();
    const [first] = deltas;
    expect(first?.type === 'text' ? first.text.length : 0).toBe(2 * piece.length);
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'length' });
  });
});

describe('[L2] an answer that ends with an error before its first text', () => {
  test('is retried', async () => {
    const { ask, opened } = setUp([[ends('error')], [says('ok'), ends('stop')]]);
    const { deltas, fault } = await ask();
    expect(fault).toBeNull();
    expect(deltas[0]).toEqual({ type: 'text', text: 'ok' });
    expect(opened()).toBe(2);
  });

  test('[P15] is a broken generation after its first text', async () => {
    const { ask, opened } = setUp([[says('half'), ends('error')]]);
    const { deltas } = await ask();
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'error' });
    expect(opened()).toBe(1);
  });
});

describe('[N1] the end of an answer', () => {
  const open = { choices: [{ index: 0, delta: { content: '' }, finish_reason: null }] };
  const calls = (tool_calls: readonly object[], finish: string | null = null): unknown => ({
    choices: [{ index: 0, delta: { tool_calls }, finish_reason: finish }],
  });
  const pay = { index: 0, id: 'a', function: { name: 'pay', arguments: '{"to":"A"}' } };
  const endOf = async (...chunks: unknown[]): Promise<unknown> => {
    const { deltas, fault } = await setUp([chunks]).ask();
    return fault === null ? deltas.at(-1) : fault.code;
  };

  test.each(['abort', 'malformed_function_call', 'insufficient_system_resource'])(
    'the unknown reason %s fails the generation, with a warning that names it',
    async (reason) => {
      const { deltas, fault } = await setUp([[says('half'), ends(reason)]]).ask();
      expect(fault).toBeNull();
      expect(deltas.map((delta) => (delta.type === 'finish' ? delta.reason : delta.type))).toEqual([
        'text',
        'notice',
        'usage',
        'error',
      ]);
      expect(deltas[1]).toEqual({
        type: 'notice',
        code: 'unknown_finish_reason',
        message: `The model endpoint http://model ended its answer with "${reason}", which is not a known reason: the generation counts as failed`,
      });
    },
  );

  test('before the first text, an unknown reason is an error of the endpoint that names it: it is asked again', async () => {
    const { ask, opened } = setUp([[ends('abort')], [says('ok'), ends('stop')]]);
    expect((await ask()).deltas.at(-1)).toEqual({ type: 'finish', reason: 'stop' });
    expect(opened()).toBe(2);
    const { fault } = await setUp([[ends('abort')]]).ask();
    expect(fault).toMatchObject({
      code: 'model_unavailable',
      message: 'The model endpoint http://model ended its answer with "abort" before its first text',
    });
  });

  test('the first reason that ends the answer counts', async () => {
    expect(await endOf(says('a'), ends('length'), ends('stop'))).toEqual({ type: 'finish', reason: 'length' });
    expect(await endOf([says('a'), ends('length'), ends('stop')])).toEqual({ type: 'finish', reason: 'length' });
    expect(await endOf(says('a'), ends('abort'), ends('stop'))).toEqual({ type: 'finish', reason: 'error' });
    expect(await endOf(says('a'), ends('tool_calls'), ends('stop'))).toEqual({ type: 'finish', reason: 'tool_calls' });
    expect(await endOf(says('a'), ends('null'), ends('none'), ends(''), ends('length'))).toEqual({
      type: 'finish',
      reason: 'length',
    });
    expect(await endOf(says('a'), ends('pause_turn'), says('b'), ends('stop'))).toEqual({
      type: 'finish',
      reason: 'stop',
    });
  });

  test('an end marker without a reason ends a text; it does not end calls, a pause, or an error', async () => {
    expect(await endOf(open, says('a'))).toEqual({ type: 'finish', reason: 'stop' });
    expect(await endOf(says('a'), ends('pause_turn'))).toEqual({ type: 'finish', reason: 'length' });
    expect(await endOf(says('a'), { object: 'error', message: 'CUDA out of memory' })).toBe('model_unavailable');
    expect(await endOf(says('a'), { choices: [{ index: 0, delta: {}, error: { message: 'overloaded' } }] })).toBe(
      'model_unavailable',
    );
    expect(await endOf(calls([pay]))).toBe('model_unavailable');
    // The endpoint never says when an answer is complete.
    const silent = { choices: [{ index: 0, delta: { tool_calls: [pay] } }] };
    expect(await endOf(silent)).toEqual({ type: 'finish', reason: 'stop' });
    // One object is the whole answer.
    expect(await endOf({ choices: [{ message: { tool_calls: [pay] }, finish_reason: null }] })).toEqual({
      type: 'finish',
      reason: 'stop',
    });
  });

  test('[N4] chunks with calls are numbered from the reason on', async () => {
    const { deltas } = await setUp([
      [calls([pay]), [calls([pay], 'tool_calls'), says(''), calls([pay, { ...pay, index: 1 }])]],
    ]).ask();
    expect(deltas.flatMap((delta) => (delta.type === 'tool_call' ? [delta.ending] : []))).toEqual([undefined, 1, 2, 2]);
  });

  test('[N4] a whole message after deltas has nothing new but calls', async () => {
    const message = { content: 'Hello.', reasoning: 'hm', tool_calls: [pay] };
    const told = async (...chunks: unknown[]): Promise<string[]> => {
      const { deltas } = await setUp([chunks]).ask();
      return deltas.map((delta) => ('text' in delta ? delta.text : delta.type));
    };
    const whole = { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
    expect(await told(says('Hel'), says('lo.'), whole)).toEqual(['Hel', 'lo.', 'hm', 'tool_call', 'usage', 'finish']);
    expect(await told(says('Hello.'), { choices: [{ delta: {}, ...whole.choices[0] }] })).toContain('tool_call');
    expect(await told(whole)).toEqual(['hm', 'Hello.', 'tool_call', 'usage', 'finish']);
  });
});

describe('[L6] the usage of an answer', () => {
  const used = async (
    chunks: readonly unknown[],
    asked: Partial<ModelRequest> = {},
  ): Promise<Extract<ModelDelta, { type: 'usage' }>['usage'] | undefined> => {
    const { deltas } = await setUp([chunks]).ask({ ...request, ...asked });
    return deltas.find((delta) => delta.type === 'usage')?.usage;
  };

  test('an answer with a reported usage of zero is estimated', async () => {
    expect(await used([says('some text'), ends('stop', counts(0, 0))])).toMatchObject({
      promptTokens: 2,
      completionTokens: 3,
      estimated: true,
    });
  });

  test.each(['stop', 'length', 'content_filter'])(
    'the reported usage counts for any finish reason (%s)',
    async (how) => {
      expect(await used([says('some text'), ends(how, counts(7, 9))])).toMatchObject({
        promptTokens: 7,
        completionTokens: 9,
        estimated: false,
      });
    },
  );

  test('invalid token counts are ignored', async () => {
    expect(await used([says('some text'), ends('stop', counts(1e300, -1))])).toMatchObject({ estimated: true });
  });

  test('for a broken stream, the reported prompt tokens and the received text count', async () => {
    const broken = await used([says('four words and some', counts(500, 1)), new Error('cut')]);
    expect(broken).toMatchObject({ promptTokens: 500, completionTokens: 5, estimated: true });
  });

  test('the estimate includes calls of the conversation and declared functions', async () => {
    const plain = await used([says('x'), ends('stop')]);
    const withCalls = await used([says('x'), ends('stop')], {
      messages: [
        { role: 'user', content: 'hello' },
        { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'search', arguments: '{"q":"x"}' }] },
      ],
      tools: [{ name: 'search', summary: 'finds', parameters: { type: 'object' } }],
    });
    expect(withCalls?.promptTokens).toBeGreaterThan((plain?.promptTokens ?? 0) + 10);
  });
});

describe('[P16] an endless answer', () => {
  const piece = 'é'.repeat(50_000);
  const pieces = Math.ceil(limits.generationBytes / 100_000) + 1;
  test.each([
    ['text', says(piece)],
    ['reasoning', { choices: [{ index: 0, delta: { reasoning_content: piece } }] }],
    ['a call', { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: piece } }] } }] }],
  ])('is closed when its %s passes the limit of a generation, and ends with length', async (_, chunk) => {
    let asked = 0;
    const endless = {
      *[Symbol.iterator](): Generator<unknown> {
        for (; asked < pieces * 3; asked += 1) yield chunk;
      },
    };
    const { deltas, fault } = await setUp([endless]).ask();
    expect(fault).toBeNull();
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'length' });
    expect(deltas.at(-2)).toMatchObject({ usage: { completionTokens: expect.any(Number), estimated: true } });
    expect(asked).toBeLessThanOrEqual(pieces);
  });
});
