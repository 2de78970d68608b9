import { describe, expect, test } from 'vitest';
import type { ModelDelta, ModelProvider, ModelRequest } from '../../src/domain/ports.ts';
import { createModel } from '../../src/llm/select.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { answer, startScriptedLlm } from '../support/scripted-llm.ts';

const deps = { clock: new FakeClock(), random: () => 0.5, demoDeltaMs: 0 };

const request: ModelRequest = {
  messages: [{ role: 'user', content: 'hello' }],
  model: null,
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
    await read(provider);
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
