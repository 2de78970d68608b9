/** What a run has used, and what that costs (L6, S12). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import type { ModelDelta, Usage } from '../../../src/domain/ports/model.ts';
import { RunUsage } from '../../../src/engine/generation/run-usage.ts';
import type { RunContext } from '../../../src/engine/run/run-context.ts';
import { eventsOf } from '../../support/events.ts';
import { logKit } from '../../support/run-log.ts';
import type { LogKit } from '../../support/run-log.ts';

const POLICY: RunContext['policy'] = {
  source: 'model',
  maxParallelActions: 1,
  maxIterations: 1,
  maxActions: 1,
  seconds: 1,
  modelCalls: 1,
  tokens: null,
  failFast: false,
  responseDefault: 'auto',
  onFailedFinal: 'continue',
};
const NOTHING = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, model_calls: 0, estimated: false };

/** The usage of a run with this budget, at ten cents for each token of `m`. */
function usageOf(cost?: number | null): LogKit & { readonly usage: RunUsage } {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  const prices = { m: { input: 100_000, cachedInput: 100_000, output: 100_000 } };
  const agent = { ...resolved.agent, engine: { ...resolved.agent.engine, prices } };
  const policy = cost === undefined ? POLICY : { ...POLICY, cost };
  const kit = logKit();
  return { ...kit, usage: new RunUsage({ resolved: { ...resolved, agent }, policy }, kit.log) };
}

const used = (promptTokens: number, more: Partial<Usage> = {}): Usage => ({
  promptTokens,
  completionTokens: 0,
  cachedTokens: 0,
  estimated: false,
  ...more,
});

describe('[L6] the usage of model calls', () => {
  test('is journaled for each call and summed up', async () => {
    const { usage, sent } = usageOf();
    expect(usage.totals).toEqual(NOTHING);
    expect(usage.record(used(5, { completionTokens: 2, cachedTokens: 1 }))).toEqual({ tokens: 7 });
    expect(usage.record(used(10, { completionTokens: 20, cachedTokens: 3, estimated: true, model: 'x' }))).toEqual({
      tokens: 30,
    });
    usage.record(used(1));
    expect(usage.totals).toEqual({
      prompt_tokens: 16,
      completion_tokens: 22,
      cached_tokens: 4,
      model_calls: 3,
      estimated: true,
    });
    expect(eventsOf(await sent(), 'usage').map(({ data }) => data)).toStrictEqual([
      { prompt_tokens: 5, completion_tokens: 2, cached_tokens: 1 },
      { prompt_tokens: 10, completion_tokens: 20, cached_tokens: 3, estimated: true, model: 'x' },
      { prompt_tokens: 1, completion_tokens: 0, cached_tokens: 0 },
    ]);
  });

  test('[S12] has a cost where the price is known, without the noise of binary fractions', async () => {
    const { usage, sent } = usageOf();
    expect(usage.record(used(1, { model: 'm' }))).toEqual({ tokens: 1, cost: expect.closeTo(0.1) as number });
    usage.record(used(2, { model: 'm' }));
    usage.record(used(3, { model: 'x' }));
    expect(usage.totals.cost).toBe(0.3);
    usage.record(used(3, { model: 'm' }));
    expect(usage.totals).toMatchObject({ cost: 0.6, prompt_tokens: 9 });
    const costs = eventsOf(await sent(), 'usage').map(({ data }) => data.cost ?? null);
    expect(costs).toEqual([0.1, 0.2, null, 0.3]);
  });

  test('[S12] without a price is told once, if there is a cost budget', async () => {
    const told = async ({ sent }: LogKit): Promise<unknown[]> =>
      eventsOf(await sent(), 'warning').map(({ data }) => data);
    const because =
      'is unknown, so its calls do not count towards the cost budget (add it under cognitive_engine.prices)';
    const named = usageOf(1);
    named.usage.record(used(1, { model: 'm' }));
    expect(await told(named)).toEqual([]);
    for (const model of ['x', 'y']) named.usage.record(used(1, { model }));
    expect(await told(named)).toEqual([{ code: 'unknown_price', message: `The price of the model "x" ${because}` }]);
    const unnamed = usageOf(1);
    unnamed.usage.record(used(1));
    expect(await told(unnamed)).toEqual([
      { code: 'unknown_price', message: `The price of an unnamed model ${because}` },
    ]);
    for (const cost of [undefined, null]) {
      const free = usageOf(cost);
      free.usage.record(used(1, { model: 'x' }));
      expect(await told(free)).toEqual([]);
    }
  });
});

describe('[L6] a call that is cancelled', () => {
  const messages = [
    { role: 'system', content: '12345678' },
    { role: 'user', content: '123' },
  ] as const;
  const estimate = (completionTokens: number): Usage => ({
    promptTokens: 3,
    completionTokens,
    cachedTokens: 0,
    estimated: true,
  });

  test.each<[string, ModelDelta[], number]>([
    ['nothing', [], 0],
    ['text', [{ type: 'text', text: '12345' }], 2],
    [
      'text in pieces',
      [
        { type: 'text', text: '12' },
        { type: 'text', text: '34' },
      ],
      1,
    ],
    ['reasoning', [{ type: 'reasoning', text: '1234' }], 1],
    ['a call', [{ type: 'tool_call', index: 0, id: 'i', name: 'name', argumentsDelta: '{"a":1}' }], 3],
    ['more of a call', [{ type: 'tool_call', index: 0, id: null, name: null, argumentsDelta: '1234' }], 1],
    [
      'a notice and an end',
      [
        { type: 'notice', code: 'model_fallback', message: 'x' },
        { type: 'finish', reason: 'stop' },
      ],
      0,
    ],
  ])('is estimated from its prompt and its answer so far: %s', (_name, deltas, tokens) => {
    const { usage } = usageOf();
    usage.openCall(messages);
    for (const delta of deltas) usage.received(delta);
    expect(usage.takeOpenCall()).toEqual(estimate(tokens));
  });

  test('is counted once: as an estimate, or as reported', () => {
    const { usage } = usageOf();
    const reported: Usage = { promptTokens: 7, completionTokens: 8, cachedTokens: 9, estimated: false };
    usage.report(reported);
    expect([usage.takeReported(), usage.takeOpenCall()]).toEqual([null, null]);
    usage.received({ type: 'text', text: 'before any call' });
    usage.openCall(messages);
    expect(usage.takeReported()).toBeNull();
    usage.report(reported);
    expect([usage.takeReported(), usage.takeReported(), usage.takeOpenCall()]).toEqual([reported, null, null]);
    usage.openCall(messages);
    expect(usage.takeOpenCall()).toEqual(estimate(0));
    usage.report(reported);
    expect([usage.takeOpenCall(), usage.takeReported()]).toEqual([null, null]);
    usage.openCall(messages);
    usage.report(reported);
    expect([usage.takeOpenCall(), usage.takeReported()]).toEqual([reported, null]);
    usage.openCall(messages);
    usage.closeCall();
    expect(usage.takeOpenCall()).toBeNull();
  });
});
