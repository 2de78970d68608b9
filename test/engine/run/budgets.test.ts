import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { eventsOf, membersOf } from '../../support/events.ts';

const act = (id: string, parameters: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters })}</action>`;
const llm = (id: string): string => `<action type="llm" mode="async" id="${id}">{"prompt":"say"}</action>`;
const LAST = '<response final="true">enough</response>';

/** A generation and its usage. */
const used = (text: string, tokens: number, model?: string): ModelDelta[] => [
  { type: 'text', text },
  {
    type: 'usage',
    usage: {
      promptTokens: tokens,
      completionTokens: 0,
      cachedTokens: 0,
      estimated: false,
      ...(model === undefined ? {} : { model }),
    },
  },
  { type: 'finish', reason: 'stop' },
];

const spending =
  (budgets: Partial<AgentDefinition['budgets']>, rest: Partial<AgentDefinition> = {}) =>
  (agent: AgentDefinition): AgentDefinition => ({
    ...agent,
    ...rest,
    budgets: { ...agent.budgets, ...budgets },
  });

const exceeded = (kit: SessionKit): unknown[] =>
  kit.events.filter(({ type }) => type === 'budget_exceeded').map(({ data }) => data);
const isLast = (kit: SessionKit): boolean =>
  kit.requests.at(-1)?.messages.at(-1)?.content.includes('This is the last generation') === true;

describe('[S12] each budget, from the manifest to the last generation', () => {
  test('tokens', async () => {
    const kit = await sessionKit({
      agent: spending({ tokens: 5_000 }),
      script: [used(act('a'), 3_976), used(LAST, 100)],
    });
    expect(await say(kit, 'go')).toMatchObject({ status: 'completed', response: 'enough', iterations: 2 });
    expect(exceeded(kit)).toEqual([{ budget: 'tokens', limit: 5_000, used: 3_976 }]);
    expect(isLast(kit)).toBe(true);
    expect(kit.requests.at(-1)?.maxTokens).toBe(1_024);
  });

  test('tokens: a generation can write the remaining ones, minus its prompt and the reserve', async () => {
    const kit = await sessionKit({
      agent: spending({ tokens: 100_000 }),
      script: [used(act('a'), 98_900), used(act('b'), 75), LAST],
    });
    await say(kit, 'go');
    const [first, second, last] = kit.requests.map(({ maxTokens }) => maxTokens ?? 0);
    expect(first).toBeGreaterThan(80_000);
    expect(first).toBeLessThan(100_000 - 1_024);
    expect(second).toBe(256);
    expect(last).toBe(256);
    const wished = await sessionKit({
      agent: (agent) => ({
        ...spending({ tokens: 100_000 })(agent),
        engine: { ...agent.engine, parameters: { max_tokens: 300 } },
      }),
      script: [LAST],
    });
    await say(wished, 'go');
    expect(wished.requests[0]?.maxTokens).toBe(300);
  });

  test('tokens: the reserve can be used up', async () => {
    const kit = await sessionKit({ agent: spending({ tokens: 5_000 }), script: [used(act('a'), 6_000)] });
    expect(await say(kit, 'go')).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } });
    expect(kit.requests).toHaveLength(1);
  });

  test('model calls, including those of llm actions', async () => {
    const kit = await sessionKit({
      agent: spending({ modelCalls: 3 }),
      script: [`${llm('a')}${llm('b')}`, 'said', LAST],
    });
    const result = await say(kit, 'go');
    expect(result).toMatchObject({ status: 'completed', response: 'enough', iterations: 2 });
    expect(result.actions).toMatchObject([
      { status: 'completed' },
      { status: 'failed', error: { code: 'budget_exceeded' } },
    ]);
    expect(exceeded(kit)).toEqual([{ budget: 'model_calls', limit: 3, used: 2 }]);
    expect(kit.requests).toHaveLength(3);
    expect(isLast(kit)).toBe(true);
  });

  test('cost, at the manifest’s prices, including calls of every kind', async () => {
    const kit = await sessionKit({
      agent: spending({ cost: 1 }),
      script: [used(act('a'), 100_000, 'gpt-4o'), used(act('b'), 300_000, 'gpt-4o'), used(LAST, 40_000, 'gpt-4o')],
    });
    const result = await say(kit, 'go');
    expect(result).toMatchObject({ status: 'completed', response: 'enough', iterations: 3 });
    expect(exceeded(kit)).toEqual([{ budget: 'cost', limit: 1, used: 1 }]);
    expect(result.usage).toMatchObject({ cost: 1.1 });
    expect(membersOf(kit.events.at(-1))['usage']).toMatchObject({ cost: 1.1 });
    expect(eventsOf(kit.events, 'usage').map(({ data }) => data.cost)).toEqual([0.25, 0.75, 0.1]);
    expect(result.warnings).toEqual([]);
  });

  test('cost: a model without a price does not count, with one warning', async () => {
    const kit = await sessionKit({
      agent: spending({ cost: 0.01 }),
      script: [
        used(act('a'), 9_000_000, 'own-model'),
        used(act('b'), 9_000_000, 'own-model'),
        used(LAST, 1, 'own-model'),
      ],
    });
    const result = await say(kit, 'go');
    expect(result).toMatchObject({ status: 'completed', iterations: 3 });
    expect(exceeded(kit)).toEqual([]);
    expect(result.usage).not.toHaveProperty('cost');
    expect(result.warnings).toMatchObject([{ code: 'unknown_price', message: expect.stringContaining('own-model') }]);
  });

  test('cost: the manifest’s price has precedence', async () => {
    const kit = await sessionKit({
      agent: (agent) => ({
        ...spending({ cost: 1 })(agent),
        engine: { ...agent.engine, prices: { 'own-model': { input: 10, cachedInput: 1, output: 20 } } },
      }),
      script: [used(act('a'), 200_000, 'own-model'), LAST],
    });
    await say(kit, 'go');
    expect(exceeded(kit)).toEqual([{ budget: 'cost', limit: 1, used: 2 }]);
  });

  test('actions', async () => {
    const kit = await sessionKit({
      agent: spending({ actions: 2 }),
      script: [`${act('a')}${act('b')}${act('c')}`, LAST],
    });
    const result = await say(kit, 'go');
    expect(result.actions.map(({ status }) => status).toSorted()).toEqual(['completed', 'completed', 'rejected']);
    expect(result.actions.find(({ id }) => id === 'c')?.error).toMatchObject({ code: 'budget_exceeded' });
    expect(exceeded(kit)).toEqual([{ budget: 'actions', limit: 2, used: 3 }]);
    expect(result).toMatchObject({ status: 'completed', response: 'enough', iterations: 2 });
    expect(isLast(kit)).toBe(true);
  });

  test('seconds', async () => {
    const kit = await sessionKit({
      agent: spending({ seconds: 30 }),
      script: [act('a', { delay_ms: 50_000 }), LAST],
    });
    const running = say(kit, 'go');
    await settle();
    kit.clock.advance(30_000);
    const result = await running;
    expect(result).toMatchObject({ status: 'completed', response: 'enough', iterations: 2 });
    expect(result.actions[0]).toMatchObject({ status: 'cancelled', error: { message: 'budget_exceeded' } });
    expect(exceeded(kit)).toEqual([{ budget: 'seconds', limit: 30, used: 30 }]);
    expect(isLast(kit)).toBe(true);
  });

  test('iterations', async () => {
    const kit = await sessionKit({
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, maxIterations: 1 } }),
      script: [act('a'), `${act('late')}${LAST}`],
    });
    const result = await say(kit, 'go');
    expect(exceeded(kit)).toEqual([{ budget: 'iterations', limit: 1, used: 1 }]);
    expect(result.actions.at(-1)).toMatchObject({ status: 'rejected', error: { code: 'not_allowed' } });
    expect(result).toMatchObject({ status: 'completed', response: 'enough' });
  });
});

describe('[S5] limits of a type, from the manifest', () => {
  test('at most the given number run at the same time', async () => {
    let atOnce = 0;
    let most = 0;
    const kit = await sessionKit({
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, maxParallelByType: { tool: 2 } } }),
      executors: {
        tool: async () => {
          atOnce += 1;
          most = Math.max(most, atOnce);
          await settle();
          atOnce -= 1;
          return { ok: true, output: null };
        },
      },
      script: [['a', 'b', 'c', 'd', 'e'].map((id) => act(id)).join(''), LAST],
    });
    expect((await say(kit, 'go')).actions.map(({ status }) => status)).toEqual(Array(5).fill('completed'));
    expect(most).toBe(2);
  });

  test('[R8] an overloaded target gets fewer concurrent calls', async () => {
    let atOnce = 0;
    const widths: number[] = [];
    const kit = await sessionKit({
      executors: {
        tool: async ({ attempt }) => {
          atOnce += 1;
          widths.push(atOnce);
          await settle();
          atOnce -= 1;
          return attempt === 1 && widths.length <= 5
            ? { ok: false, error: { code: 'http_error', message: '429', retryable: true, overloaded: true } }
            : { ok: true, output: null };
        },
      },
      script: [['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id) => act(id)).join(''), LAST],
    });
    const running = say(kit, 'go');
    for (let turn = 0; turn < 20; turn += 1) {
      await settle();
      kit.clock.advance(1_000);
    }
    const result = await running;
    expect(result.actions.map(({ status }) => status)).toEqual(Array(8).fill('completed'));
    expect(result.warnings).toMatchObject([{ code: 'overloaded', message: expect.stringContaining('"tool/echo"') }]);
    expect(Math.max(...widths.slice(0, 5))).toBe(5);
    expect(Math.max(...widths.slice(5, 8))).toBeLessThanOrEqual(2);
  });
});
