import { describe, expect, test } from 'vitest';
import type { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import type { ModelDelta, ModelRequest } from '../../src/domain/ports.ts';
import { createCaller } from '../../src/llm/caller.ts';
import type { Connection } from '../../src/llm/caller.ts';
import { readChunk } from '../../src/llm/chunk.ts';
import { Endpoint } from '../../src/llm/endpoints.ts';
import { FakeClock } from '../support/fake-clock.ts';

type Script = readonly (string | Error)[];

/** Waits between attempts pass at once; the clock itself stands. */
class StandingClock extends FakeClock {
  override schedule(delayMs: number, callback: () => void): () => void {
    if (delayMs > limits.retryMaxDelayMs || delayMs === limits.usageGraceMs) return super.schedule(delayMs, callback);
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  }
}

const request: ModelRequest = {
  messages: [{ role: 'user', content: 'hello' }],
  model: null,
  temperature: null,
  maxTokens: null,
  extra: {},
  agent: null,
  signal: new AbortController().signal,
};

/** A caller whose connection says one thing after the other: a text, or a fault. */
function setUp(script: Script) {
  const clock = new StandingClock();
  const endpoint = new Endpoint('http://model', clock);
  let opened = 0;
  const connection: Connection = {
    name: 'scripted',
    secret: null,
    read: readChunk,
    async open(_, { end }) {
      const step = script[Math.min(opened, script.length - 1)] ?? '';
      opened += 1;
      if (step instanceof Error) throw step;
      async function* chunks(): AsyncGenerator<unknown> {
        yield { choices: [{ index: 0, delta: { content: step } }] };
        end.marked = true;
      }
      return chunks();
    },
  };
  const caller = createCaller(connection, {
    defaultModel: 'm',
    endpoint,
    clock,
    random: () => 0,
    firstTokenMs: limits.firstTokenMs,
    betweenTokensMs: limits.betweenTokensMs,
  });
  const ask = async (asked = request): Promise<ModelDelta[] | EngineError> => {
    const deltas: ModelDelta[] = [];
    try {
      for await (const delta of caller.stream(asked)) deltas.push(delta);
      return deltas;
    } catch (fault) {
      return fault as EngineError;
    }
  };
  return { ask, endpoint, clock, opened: () => opened };
}

describe('[L2] the breaker of an endpoint', () => {
  test('opens over several calls; then nothing is asked, and the fault says for how long', async () => {
    const { ask, endpoint, opened } = setUp([new Error('down')]);
    await ask();
    expect(opened()).toBe(limits.modelAttempts);
    await ask();
    expect(endpoint.breaker.state).toBe('open');
    const asked = opened();
    expect(asked).toBe(limits.breakerFailures);
    expect(await ask()).toMatchObject({
      code: 'model_unavailable',
      message: `The model endpoint http://model has failed ${limits.breakerFailures} times in a row and is left alone for another 30 s`,
      details: { circuit: 'open', retry_after_ms: limits.breakerOpenMs },
    });
    expect(opened()).toBe(asked);
  });

  test('is tried by one call when its time is over, and closed by the first text', async () => {
    const { ask, endpoint, clock, opened } = setUp([
      ...Array.from({ length: limits.breakerFailures }, () => new Error('down')),
      'ok',
    ]);
    await ask();
    await ask();
    clock.advance(limits.breakerOpenMs);
    expect(await ask()).toContainEqual({ type: 'text', text: 'ok' });
    expect(endpoint.breaker.state).toBe('closed');
    expect(opened()).toBe(limits.breakerFailures + 1);
  });

  test('a trial that fails is not tried again in the same call', async () => {
    const { ask, clock, opened } = setUp([new Error('down')]);
    await ask();
    await ask();
    clock.advance(limits.breakerOpenMs);
    await ask();
    expect(opened()).toBe(limits.breakerFailures + 1);
  });

  test('an aborted call says nothing about the endpoint', async () => {
    const { ask, endpoint } = setUp([new Error('down')]);
    for (let n = 0; n < 10; n += 1) await ask({ ...request, signal: AbortSignal.abort() });
    expect(endpoint.breaker.state).toBe('closed');
    expect(endpoint.breaker.failures).toBe(0);
  });
});

test('[L2] the time to the first token is learned for each model', async () => {
  const { ask, endpoint } = setUp(['ok']);
  await ask();
  expect(endpoint.latencyOf('m')).toBe(0);
  expect(endpoint.latencyOf('other')).toBeNull();
});
