import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { say, sessionKit } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { eventsOf, membersOf } from '../../support/events.ts';

const act = (id: string): string => `<action type="tool" mode="async" id="${id}">{"name":"echo"}</action>`;
const LAST = '<response final="true">enough</response>';

/** A generation and its usage. */
const used = (text: string, promptTokens: number): ModelDelta[] => [
  { type: 'text', text },
  { type: 'usage', usage: { promptTokens, completionTokens: 0, cachedTokens: 0, estimated: false, model: 'gpt-4o' } },
  { type: 'finish', reason: 'stop' },
];

const spending =
  (budgets: Partial<AgentDefinition['budgets']>) =>
  (agent: AgentDefinition): AgentDefinition => ({ ...agent, budgets: { ...agent.budgets, ...budgets } });

const exceeded = (kit: SessionKit): unknown[] =>
  kit.events.filter(({ type }) => type === 'budget_exceeded').map(({ data }) => data);
const isLast = (kit: SessionKit): boolean =>
  kit.requests.at(-1)?.messages.at(-1)?.content.includes('This is the last generation') === true;

describe('[S12] a budget, from the manifest to the last generation', () => {
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
      script: [used(act('a'), 100_000), used(act('b'), 300_000), used(LAST, 40_000)],
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
