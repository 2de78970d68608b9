import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { eventsOf, membersOf } from '../../support/events.ts';

const act = (id: string, parameters: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters })}</action>`;
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
});

describe('[S5] limits of a type, from the manifest', () => {
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
