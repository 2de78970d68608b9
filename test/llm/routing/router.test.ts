import { describe, expect, test } from 'vitest';
import { EngineError } from '../../../src/domain/errors.ts';
import type { ModelDelta, ModelProvider } from '../../../src/domain/ports/model.ts';
import { createRouter } from '../../../src/llm/routing/router.ts';
import type { Candidate } from '../../../src/llm/routing/router.ts';
import { modelRequest } from '../model-request.ts';

const request = modelRequest();

interface Plan {
  readonly fault?: Error;
  readonly before?: readonly ModelDelta[];
  readonly open?: boolean;
  readonly latency?: number;
  readonly cost?: number;
}

function candidates(plans: Readonly<Record<string, Plan>>): { list: Candidate[]; asked: string[] } {
  const asked: string[] = [];
  const list = Object.entries(plans).map(([name, { fault, before = [], open = true, latency, cost }]): Candidate => {
    const provider: ModelProvider = {
      name,
      async *stream({ model }): AsyncGenerator<ModelDelta> {
        asked.push(`${name}:${model ?? ''}`);
        yield* before;
        if (fault !== undefined) throw fault;
        yield { type: 'text', text: name };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    return {
      provider,
      model: `m-${name}`,
      label: name,
      available: () => open,
      latencyMs: () => latency ?? null,
      cost: () => cost ?? null,
    };
  });
  return { list, asked };
}

async function read(stream: AsyncIterable<ModelDelta>): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of stream) deltas.push(delta);
  return deltas;
}

const down = new EngineError('model_unavailable', 'down');

describe('[L2] failover', () => {
  test('the only model passes on its stream and its error; asked for another model, it falls back to its own', async () => {
    const { list, asked } = candidates({ a: { fault: down } });
    const router = createRouter(list, 'failover');
    await expect(read(router.stream(request))).rejects.toBe(down);
    await expect(read(router.stream({ ...request, model: 'm-a' }))).rejects.toBe(down);
    await expect(read(router.stream({ ...request, model: 'x' }))).rejects.toMatchObject({ code: 'model_unavailable' });
    expect(asked).toEqual(['a:m-a', 'a:m-a', 'a:x', 'a:m-a']);
  });

  test('only the first endpoint is called if it answers', async () => {
    const { list, asked } = candidates({ a: {}, b: {} });
    expect(await read(createRouter(list, 'failover').stream(request))).toHaveLength(2);
    expect(asked).toEqual(['a:m-a']);
  });

  test.each(['model_unavailable', 'model_timeout', 'model_rejected'] as const)(
    '%s before the first delta fails over to the next endpoint, with its own model, and the run reports it',
    async (code) => {
      const { list, asked } = candidates({ a: { fault: new EngineError(code, 'x') }, b: { fault: down }, c: {} });
      const deltas = await read(createRouter(list, 'failover').stream(request));
      expect(asked).toEqual(['a:m-a', 'b:m-b', 'c:m-c']);
      expect(deltas.filter(({ type }) => type === 'notice')).toEqual([
        { type: 'notice', code: 'model_fallback', message: `a did not answer (${code}); b answers instead` },
        { type: 'notice', code: 'model_fallback', message: 'b did not answer (model_unavailable); c answers instead' },
      ]);
      expect(deltas).toContainEqual({ type: 'text', text: 'c' });
    },
  );

  test('after the first text, the error is thrown', async () => {
    const { list } = candidates({ a: { fault: down, before: [{ type: 'text', text: 'half' }] }, b: {} });
    await expect(read(createRouter(list, 'failover').stream(request))).rejects.toBe(down);
  });

  test('[P15] an aborted call is not sent to another endpoint', async () => {
    const { list } = candidates({ a: { fault: down }, b: {} });
    const aborted = { ...request, signal: AbortSignal.abort() };
    await expect(read(createRouter(list, 'failover').stream(aborted))).rejects.toBe(down);
  });

  test('if no endpoint answers, the error is the first one and names all endpoints', async () => {
    const { list } = candidates({ a: { fault: new EngineError('model_timeout', 'slow') }, b: { fault: down } });
    const fault: unknown = await read(createRouter(list, 'failover').stream(request)).catch(
      (thrown: unknown) => thrown,
    );
    expect(fault).toMatchObject({ code: 'model_timeout', message: 'slow; b: down' });
  });

  test('an endpoint with an open circuit is tried last', async () => {
    const { list, asked } = candidates({ a: { open: false }, b: {} });
    await read(createRouter(list, 'failover').stream(request));
    expect(asked).toEqual(['b:m-b']);
  });
});

describe('policies', () => {
  test.each([
    ['least_latency', { a: { latency: 300 }, b: { latency: 100 } }, 'b'],
    ['least_latency', { a: { latency: 300 }, b: {} }, 'b'],
    ['least_latency', { a: {}, b: {} }, 'a'],
    ['lowest_cost', { a: { cost: 0.2 }, b: { cost: 0.1 } }, 'b'],
    ['lowest_cost', { a: {}, b: { cost: 5 } }, 'b'],
    ['lowest_cost', { a: {}, b: {} }, 'a'],
  ] as const)('[L2] %s with %j calls %s', async (policy, plans, first) => {
    const { list, asked } = candidates(plans);
    await read(createRouter(list, policy).stream(request));
    expect(asked).toEqual([`${first}:m-${first}`]);
  });

  test('[P6] a call that names a model goes to the endpoint of that model', async () => {
    const { list, asked } = candidates({ a: {}, b: {} });
    await read(createRouter(list, 'failover').stream({ ...request, model: 'm-b' }));
    await read(createRouter(list, 'failover').stream({ ...request, model: 'another' }));
    expect(asked).toEqual(['b:m-b', 'a:another']);
  });

  test('[P6] the other models are fallbacks of the named model', async () => {
    const { list, asked } = candidates({ a: {}, b: { fault: down } });
    await read(createRouter(list, 'failover').stream({ ...request, model: 'm-b' }));
    expect(asked).toEqual(['b:m-b', 'a:m-a']);
  });
});
