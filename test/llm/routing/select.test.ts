import { describe, expect, test } from 'vitest';
import type { ModelChoice } from '../../../src/domain/manifests/model.ts';
import type { ModelDelta, ModelProvider } from '../../../src/domain/ports/model.ts';
import type { SecretRead } from '../../../src/domain/secrets.ts';
import { limits } from '../../../src/domain/limits.ts';
import { Endpoints } from '../../../src/llm/routing/endpoints.ts';
import { choiceIssue, createModel } from '../../../src/llm/routing/select.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { answer, startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import { modelRequest } from '../model-request.ts';

const deps = { clock: new VirtualClock(), random: () => 0.5, demoDeltaMs: 0 };

const request = modelRequest();

async function read(provider: ModelProvider, asked = request): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of provider.stream(asked)) deltas.push(delta);
  return deltas;
}

describe('selection', () => {
  test.each([{}, { baseUrl: null, apiKey: null, model: null }, { baseUrl: ' ', apiKey: '', model: 'x' }])(
    '[L3] %j selects the demo provider',
    (config) => {
      const { provider, description } = createModel(config, deps);
      expect(provider.name).toBe('demo');
      expect(description).toContain('LLM_BASE_URL');
    },
  );

  test('[L1] a base URL selects the endpoint; the description names model and host', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    const { provider, description } = createModel({ baseUrl: server.baseUrl, model: 'm1' }, deps);
    expect(description).toBe(`m1 at ${new URL(server.baseUrl).host}`);
    await read(provider);
    expect(server.requests[0]?.body['model']).toBe('m1');
  });

  test('[L7] the description never contains the key; a key without a URL selects OpenAI', () => {
    const { description } = createModel({ apiKey: 'sk-secret', model: 'm' }, deps);
    expect(description).toBe('m at api.openai.com');
  });

  test('[L1] with an invalid base URL the system starts, reports it, and fails every call', async () => {
    const { provider, description } = createModel({ baseUrl: 'localhost', model: 'm' }, deps);
    expect(description).toContain('not usable: LLM_BASE_URL "localhost" is not an HTTP(S) URL (example: ');
    await expect(read(provider)).rejects.toMatchObject({ code: 'model_rejected' });
  });
});

const CHOICE: ModelChoice = { provider: null, model: null, endpoint: null, keySecret: null };

/** An agent's engine; `primary` and the fallbacks contain only the given fields. */
function engine(primary: Partial<ModelChoice>, ...fallbacks: Partial<ModelChoice>[]): Engine {
  return {
    primary: { ...CHOICE, ...primary },
    fallbacks: fallbacks.map((fallback) => ({ ...CHOICE, ...fallback })),
    routing: 'failover',
    firstTokenMs: null,
    betweenTokensMs: null,
    prices: {},
  };
}

type Engine = NonNullable<Parameters<typeof createModel>[2]>;

/** Records the requests and their keys; answers every request with one word. */
function world(secrets: Record<string, string> = {}) {
  const asked: { url: string; authorization: string | null; gateway: string | null; model: unknown }[] = [];
  const fetch: typeof globalThis.fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    asked.push({
      url: String(input instanceof Request ? input.url : input),
      authorization: headers.get('authorization'),
      gateway: headers.get('cf-aig-authorization'),
      model: (JSON.parse(String(init?.body)) as { model: unknown }).model,
    });
    const chunk = { choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] };
    return Promise.resolve(
      new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      }),
    );
  };
  const refuse = (url: string): string | null => (url.includes('169.254') ? 'leads to a metadata address' : null);
  const secret = (name: string): SecretRead => {
    const value = secrets[name];
    return value === undefined ? { ok: false, reason: `${name} is not set` } : { ok: true, value };
  };
  return { asked, deps: { ...deps, fetch, refuse, secret } };
}

const OWN = { baseUrl: 'https://own.example/v1', apiKey: 'sk-own', model: 'own-model' };

test('[X2] only endpoints from manifests go through the address check', async () => {
  const direct = world();
  const judged = world({ TOOL_KEY: 'sk-tool-key' });
  const both = { ...direct.deps, secret: judged.deps.secret, fetchExternal: judged.deps.fetch };
  for (const choice of [
    {},
    { model: 'other' },
    { endpoint: OWN.baseUrl },
    { endpoint: OWN.baseUrl, keySecret: 'TOOL_KEY' },
    { endpoint: 'https://theirs.example/v1' },
    { provider: 'mistral', keySecret: 'TOOL_KEY' } as const,
    { endpoint: 'https://own.example/v2' },
  ]) {
    await read(createModel(OWN, both, engine(choice)).provider);
  }
  await read(createModel(OWN, both).provider);
  expect(direct.asked.map(({ url }) => new URL(url).host)).toEqual(Array.from({ length: 5 }, () => 'own.example'));
  expect(judged.asked.map(({ url }) => new URL(url).hostname + new URL(url).pathname.slice(0, 4))).toEqual([
    'theirs.example/v1/',
    'api.mistral.ai/v1/',
    'own.example/v2/',
  ]);
});

describe('[L1] the model in a manifest', () => {
  test.each<[string, ReturnType<typeof engine> | undefined]>([
    ['own-model', undefined],
    ['own-model', engine({})],
    ['other', engine({ model: 'other' }, { model: 'fallback' })],
    ['third', engine({ provider: 'openai', model: 'third' })],
  ])(
    '[L7] the deployment’s endpoint is asked for %s, with its key, and the provider has that name',
    async (model, given) => {
      const { asked, deps: real } = world();
      const { provider } = createModel(OWN, real, given);
      expect(provider.name).toBe(model);
      await read(provider);
      const url = 'https://own.example/v1/chat/completions';
      expect(asked).toEqual([{ url, model, authorization: 'Bearer sk-own', gateway: null }]);
    },
  );

  test('the provider of an endpoint that must not be called has the name of its model', () => {
    const { deps: real } = world();
    expect(createModel(OWN, real, engine({ provider: 'groq', model: 'm' })).provider.name).toBe('m');
  });

  test('[L7] another endpoint gets the secret that the manifest names, never the deployment’s key', async () => {
    const { asked, deps: real } = world({ TOOL_GROQ_KEY: 'gsk-named' });
    await read(createModel(OWN, real, engine({ provider: 'groq', model: 'm', keySecret: 'TOOL_GROQ_KEY' })).provider);
    await read(createModel(OWN, real, engine({ endpoint: 'https://else.example/v1', model: 'm' })).provider);
    await read(createModel(OWN, real, engine({ provider: 'ollama', model: 'm' })).provider);
    expect(asked.map(({ url, authorization }) => [new URL(url).origin, authorization])).toEqual([
      ['https://api.groq.com', 'Bearer gsk-named'],
      ['https://else.example', null],
      ['http://127.0.0.1:11434', null],
    ]);
  });

  test.each([
    'https://own.example/v1',
    'https://own.example/v1/',
    'https://OWN.example:443/v1//',
    'https://own.example/x/../v1',
    'https://own.example/x/%2e%2E/v1',
    'https:\\\\own.example\\v1',
  ])('[L7] the deployment’s endpoint gets its key in any notation: %s', async (endpoint) => {
    const { asked, deps: real } = world();
    await read(createModel(OWN, real, engine({ endpoint, model: 'm' })).provider);
    expect(asked[0]).toMatchObject({ url: 'https://own.example/v1/chat/completions', authorization: 'Bearer sk-own' });
  });

  test.each([
    'https://own.example/v2',
    'https://own.example/',
    'https://own.example/v1/other',
    'https://own.example/v10',
    'https://own.example/V1',
    'https://own.example/v1/../other',
    'https://own.example/v1/%2e%2e/other',
    'https://own.example/v1/..%2fother',
    'https://own.example/v1/..;/other',
    'https://own.example//v1',
    'https://own.example\\other\\v1',
    'https://own.example/v1?to=',
    'https://own.example/v1?',
    'https://own.example/v1#',
    'https://user@own.example/v1',
    'https://own.example@else.example/v1',
    'https://own.example.else.example/v1',
    'https://own.example:8443/v1',
    'http://own.example/v1',
  ])('[L7] another path of the deployment’s origin does not get its key: %s', async (endpoint) => {
    const { asked, deps: real } = world();
    await read(createModel(OWN, real, engine({ endpoint, model: 'm' })).provider);
    expect(asked.map(({ authorization }) => authorization)).toEqual([null]);
  });

  test.each([
    [{ provider: 'groq' as const, model: 'm' }, 'api_key_secret'],
    [{ provider: 'groq' as const, model: 'm', keySecret: 'TOOL_MISSING' }, 'TOOL_MISSING'],
    [{ endpoint: 'http://169.254.169.254/v1' }, 'metadata'],
    [{ provider: 'workers-ai' as const, model: 'm', keySecret: 'TOOL_MISSING' }, 'needs an endpoint'],
  ])('an unusable choice (%j) is refused with the reason, without a request', async (choice, message) => {
    const { asked, deps: real } = world();
    await expect(
      read(createModel({ ...OWN, baseUrl: null, apiKey: 'k' }, real, engine(choice)).provider),
    ).rejects.toMatchObject({
      code: 'model_rejected',
      message: expect.stringContaining(message) as string,
    });
    expect(asked).toEqual([]);
  });

  test.each([
    ['ollama', 'set LLM_PROVIDER=ollama, or endpoint in cognitive_engine'],
    ['gemini', 'set LLM_PROVIDER=gemini and LLM_API_KEY, or endpoint and api_key_secret in cognitive_engine'],
  ] as const)('[L3] the demo model answers for %s only with a notice that names the setting', (provider, remedy) => {
    const notice = createModel({}, deps, engine({ provider, model: 'm' })).provider.notice;
    expect(notice).toContain(`the provider ${provider}`);
    expect(notice).toContain(remedy);
    expect(choiceIssue({}, null, { ...CHOICE, provider })).toContain(remedy);
    expect(choiceIssue({ baseUrl: 'https://a.example/v1' }, null, { ...CHOICE, provider })).toBeNull();
  });

  test.each([{}, { provider: 'demo' }, { model: 'm' }] as const)('[L3] %j has no notice', (choice) => {
    expect(createModel({}, deps, engine(choice)).provider.notice).toBeUndefined();
    expect(choiceIssue({}, null, { ...CHOICE, ...choice })).toBeNull();
  });

  test('[L2] a fallback with an endpoint answers instead of the demo model', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    const fallback = { endpoint: server.baseUrl, model: 'f' };
    const { provider, description } = createModel({}, deps, engine({ provider: 'ollama', model: 'm' }, fallback));
    await read(provider);
    expect(server.requests[0]?.body['model']).toBe('f');
    expect(description).toContain('f at');
    expect(provider.notice).toContain('f at');
  });

  test('[L3] a hosted provider without a secret is the demo if nothing is configured', async () => {
    const { deps: real } = world();
    expect(createModel({}, real, engine({ provider: 'anthropic', model: 'm' })).description).toContain('demo');
    expect(createModel(OWN, real, engine({ provider: 'demo' })).description).toContain('demo');
  });

  test('[L2] a fallback answers for an unusable primary', async () => {
    const { asked, deps: real } = world();
    const { provider } = createModel(OWN, real, engine({ provider: 'groq', model: 'm' }, { model: 'spare' }));
    const deltas = await read(provider);
    expect(deltas[0]).toMatchObject({ type: 'notice', code: 'model_fallback' });
    expect(asked.map(({ model }) => model)).toEqual(['spare']);
  });
});

test('[L2] a 429 with Retry-After for one owner’s key opens the breaker for that key, model and owner only', async () => {
  const clock = new VirtualClock();
  const endpoints = new Endpoints(clock);
  const asked: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = (_input, init) => {
    const authorization = new Headers(init?.headers).get('authorization');
    asked.push(authorization);
    if (authorization === 'Bearer of-ann')
      return Promise.resolve(new Response('{}', { status: 429, headers: { 'retry-after': '99999999' } }));
    const chunk = { choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] };
    const headers = { 'content-type': 'text/event-stream' };
    return Promise.resolve(new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, { headers }));
  };
  const modelFor = (owner: string, value: string, model = 'm'): ModelProvider =>
    createModel(
      OWN,
      { ...deps, clock, fetch, endpoints, owner, secret: () => ({ ok: true, value }) },
      engine({ provider: 'groq', model, keySecret: 'TOOL_KEY' }),
    ).provider;
  await expect(read(modelFor('ann', 'of-ann'))).rejects.toMatchObject({
    details: { retry_after_ms: limits.retryAfterMaxMs },
  });
  await expect(read(modelFor('ann', 'of-ann'))).rejects.toMatchObject({ details: { circuit: 'open' } });
  expect(asked).toHaveLength(1);
  await expect(read(modelFor('bob', 'of-bob'))).resolves.toHaveLength(3);
  await expect(read(modelFor('ann', 'of-ann-2', 'n'))).resolves.toHaveLength(3);
  clock.advance(limits.breakerOpenMaxMs);
  await expect(read(modelFor('ann', 'of-ann'))).rejects.toMatchObject({ details: { status: 429 } });
});

describe('[L7] an endpoint that does not accept the key: the error names the setting or the secret in use', () => {
  /** The message of a call that is answered with this status. */
  async function messageOf(status: number, config: object, choice: Partial<ModelChoice>): Promise<string> {
    const { deps: real } = world({ TOOL_KEY: 'sk-tool-key' });
    const fetch: typeof globalThis.fetch = () =>
      Promise.resolve(new Response(JSON.stringify({ error: { message: 'wrong key sk-tool-key sk-own' } }), { status }));
    const { provider } = createModel(config, { ...real, fetch }, engine(choice));
    const fault = await read(provider).catch((thrown: unknown) => thrown);
    expect(fault).toMatchObject({ code: 'model_rejected', details: { status } });
    return (fault as Error).message;
  }
  const THEIRS = 'https://theirs.example/v1';
  const { apiKey: _key, ...keyless } = OWN;

  test.each([
    ['the deployment’s endpoint', OWN, {}, 'To correct the key, check LLM_API_KEY'],
    ['without a key', keyless, {}, 'To correct the key, set LLM_API_KEY, because no key was sent'],
    [
      'a secret, also for the deployment’s endpoint',
      OWN,
      { endpoint: OWN.baseUrl, keySecret: 'TOOL_KEY' },
      'To correct the key, check the secret TOOL_KEY, which api_key_secret names',
    ],
    [
      'an endpoint of a manifest',
      OWN,
      { endpoint: THEIRS, keySecret: 'TOOL_KEY' },
      'To correct the key, check the secret TOOL_KEY, which api_key_secret names',
    ],
    [
      'an endpoint of a manifest without a key',
      OWN,
      { endpoint: THEIRS },
      'To correct the key, set api_key_secret, because no key was sent',
    ],
  ])('%s', async (_, config, choice, advice) => {
    const message = await messageOf(401, config, choice);
    expect(message).toMatch(/^The model endpoint https:\/\/\w+\.example answered with an error: 401 wrong key /);
    expect(message.endsWith(`. ${advice}`)).toBe(true);
  });

  test('403 may have another cause; other statuses have no advice', async () => {
    expect(await messageOf(403, OWN, {})).toContain('. If the key may not use this model, check LLM_API_KEY');
    expect(await messageOf(404, OWN, {})).not.toContain('LLM_API_KEY');
  });
});

describe('LLM_PROVIDER', () => {
  test('selects the provider’s own address', async () => {
    const { asked, deps: real } = world();
    await read(createModel({ provider: 'deepseek', apiKey: 'k', model: 'm' }, real).provider);
    expect(asked[0]?.url).toBe('https://api.deepseek.com/v1/chat/completions');
  });

  test('sends the gateway’s key in the gateway’s header', async () => {
    const { asked, deps: real } = world();
    const baseUrl = 'https://gateway.ai.cloudflare.com/v1/a/g/compat';
    await read(createModel({ baseUrl, apiKey: 'cf-key', model: 'openai/x' }, real).provider);
    expect(asked[0]).toMatchObject({ gateway: 'Bearer cf-key', authorization: null });
    await read(createModel({ provider: 'openai', baseUrl: 'https://proxy.example/v1', apiKey: 'k' }, real).provider);
    expect(asked[1]).toMatchObject({ gateway: null, authorization: 'Bearer k' });
  });

  test.each([
    [{ provider: 'skynet' }, 'LLM_PROVIDER "skynet" is unknown'],
    [{ provider: 'workers-ai', apiKey: 'k' }, 'needs LLM_BASE_URL, such as https://api.cloudflare.com'],
  ])('%j is refused with the reason', (config, message) => {
    expect(createModel(config, deps).description).toContain(message);
  });
});
