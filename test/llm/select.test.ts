import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../../src/domain/ports.ts';
import { createFallbackProvider } from '../../src/llm/fallback.ts';
import { createModel } from '../../src/llm/select.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { answer, startScriptedLlm } from '../support/scripted-llm.ts';

const deps = { clock: new FakeClock(), random: () => 0.5, demoDeltaMs: 0 };

const request: ModelRequest = {
  messages: [{ role: 'user', content: 'hello' }],
  model: 'wanted',
  temperature: null,
  maxTokens: null,
  extra: {},
  agent: null,
  signal: new AbortController().signal,
};

async function read(provider: ModelProvider, asked = request): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of provider.stream(asked)) deltas.push(delta);
  return deltas;
}

describe('selection', () => {
  test.each([{}, { baseUrl: null, apiKey: null, model: null }, { baseUrl: ' ', apiKey: '', model: 'x' }])(
    '[L3] with %j the demo provider answers',
    (config) => {
      const { provider, description } = createModel(config, deps);
      expect(provider.name).toBe('demo');
      expect(description).toContain('LLM_BASE_URL');
    },
  );

  test('[L1] with a base URL the endpoint answers; the description names model and host', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    const { provider, description } = createModel({ baseUrl: server.baseUrl, model: 'm1' }, deps);
    expect(description).toBe(`m1 at ${new URL(server.baseUrl).host}`);
    await read(provider, { ...request, model: null });
    expect(server.requests[0]?.body['model']).toBe('m1');
  });

  test('[L7] the description never shows the key; a key alone belongs to OpenAI', () => {
    const { description } = createModel({ apiKey: 'sk-secret', model: 'm' }, deps);
    expect(description).toBe('m at api.openai.com');
  });

  test('[L1] a base URL that is none lets the system start, says so, and fails every call', async () => {
    const { provider, description } = createModel({ baseUrl: 'localhost', model: 'm' }, deps);
    expect(description).toContain('"localhost" is no http or https address');
    await expect(read(provider)).rejects.toMatchObject({ code: 'model_rejected' });
  });
});

describe('fallback', () => {
  const says = (text: string, seen: (string | null)[] = []): ModelProvider => ({
    name: text,
    async *stream({ model }): AsyncGenerator<ModelDelta> {
      seen.push(model);
      yield { type: 'text', text };
      yield { type: 'finish', reason: 'stop' };
    },
  });
  const breaks = (fault: Error, before: readonly ModelDelta[] = []): ModelProvider => ({
    name: 'broken',
    async *stream(): AsyncGenerator<ModelDelta> {
      yield* before;
      throw fault;
    },
  });

  test.each(['model_unavailable', 'model_timeout', 'model_rejected'] as const)(
    '[L2] %s before the first delta goes to the fallback, with its own model',
    async (code) => {
      const asked: (string | null)[] = [];
      const reasons: string[] = [];
      const provider = createFallbackProvider(breaks(new EngineError(code, 'x')), says('second', asked), (fault) =>
        reasons.push(fault.code),
      );
      expect(await read(provider)).toContainEqual({ type: 'text', text: 'second' });
      expect(asked).toEqual([null]);
      expect(reasons).toEqual([code]);
    },
  );

  test('[L2] once text has come, the fault is thrown on', async () => {
    const fault = new EngineError('model_unavailable', 'x');
    const provider = createFallbackProvider(breaks(fault, [{ type: 'text', text: 'half' }]), says('second'));
    await expect(read(provider)).rejects.toBe(fault);
  });

  test('[L2] a primary that answers is the only one asked', async () => {
    const asked: (string | null)[] = [];
    expect(await read(createFallbackProvider(says('first'), says('second', asked)))).toHaveLength(2);
    expect(asked).toEqual([]);
  });

  test('[P15] an aborted call does not go to the fallback', async () => {
    const fault = new EngineError('model_unavailable', 'x');
    const provider = createFallbackProvider(breaks(fault), says('second'));
    await expect(read(provider, { ...request, signal: AbortSignal.abort() })).rejects.toBe(fault);
  });
});
