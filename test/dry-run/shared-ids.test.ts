/** An id that an accepted action shares with rejected ones (P6): each is reported separately. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import { planText } from '../../src/dry-run/dry-run.ts';
import { runText, say, sessionKit } from '../support/session-kit.ts';

const GOOD = '<action id="x" mode="async">{"name":"echo","parameters":{"n":1}}</action>';
const AFTER = '<action id="y" mode="async">{"name":"echo","parameters":{"n":"$x.n"}}</action>';
const FINAL = '<response final="true">$x.n and $y.n</response>';

/** Rejected actions with the id of another action, by error code. */
const BAD: Readonly<Record<string, string>> = {
  duplicate_id: '<action id="x" mode="async">{"name":"echo","parameters":{"n":2}}</action>',
  invalid_json: '<action id="x" mode="async">{"name": echo, n: [}</action>',
  invalid_action: '<action id="x" mode="async">{"parameters":{"n":2}}</action>',
  too_deep: `<action id="x" mode="async">{"name":"echo","parameters":${'['.repeat(80)}${']'.repeat(80)}}</action>`,
};
const ORDERS = Object.entries(BAD).flatMap(([code, bad]): (readonly [string, string, string])[] => {
  const behind = [code, 'behind it', `${GOOD}${bad}${AFTER}${FINAL}`] as const;
  // An id without an accepted action is free.
  if (code === 'duplicate_id') return [behind];
  return [behind, [code, 'on both sides', `${bad}${GOOD}${bad}${bad}${AFTER}${FINAL}`]];
});

describe.each(ORDERS)('[P6] %s %s', (code, _, text) => {
  const count = text.split('id="x"').length - 1;

  test('[H6] the plan lists the accepted action with its own parameters, and every rejection', () => {
    const plan = planText(text, null);
    const actions = plan['actions'] as JsonObject[];
    expect(actions.map(({ id, parameters, depends_on: on }) => [id, parameters, on])).toEqual([
      ['x', { n: 1 }, []],
      ['y', { n: '$x.n' }, ['x']],
    ]);
    const rejected = plan['rejected'] as JsonObject[];
    expect(rejected.map((one) => [one['id'], one['code']])).toEqual(
      Array.from({ length: count - 1 }, () => ['x', code]),
    );
    expect(plan).toMatchObject({ total: 2, waves: [['x'], ['y']], edges: [{ from: 'x', to: 'y' }] });
    expect(plan['report']).toContain('Total Actions: 2');
  });

  test('[H7] the result has an entry for each, and the accepted one keeps its outcome', async () => {
    const kit = await sessionKit();
    const { actions, response, status } = await runText(kit, text);
    expect([status, response]).toEqual(['completed', '1 and 1']);
    const told = actions.map(({ id, status, output, error }) => [
      id,
      status,
      output,
      (error as JsonObject | null)?.['code'],
    ]);
    const rejection = ['x', 'rejected', null, code];
    expect(told.filter(([, status]) => status === 'rejected')).toEqual(
      Array.from({ length: count - 1 }, () => rejection),
    );
    expect(told.filter(([, status]) => status !== 'rejected')).toEqual([
      ['x', 'completed', { n: 1 }, undefined],
      ['y', 'completed', { n: 1 }, undefined],
    ]);
    const plan = kit.events.find(({ type }) => type === 'plan_generated');
    expect(plan?.data).toMatchObject({ total: 2, waves: [['x'], ['y']], edges: [{ from: 'x', to: 'y' }] });
    // Readers rely on this: a rejected action was never queued.
    expect(kit.events.filter(({ type, action_id: id }) => type === 'action_queued' && id === 'x')).toHaveLength(1);
  });
});

test('[P6] [H6] a dependency on the rejected action shows its id, without an edge to the accepted one', () => {
  const bad = BAD['invalid_json'] ?? '';
  const early = '<action id="e" mode="async">{"name":"echo","depends_on":["x"]}</action>';
  const plan = planText(`${bad}${early}${GOOD}${AFTER}`, null);
  expect((plan['actions'] as JsonObject[]).map(({ id, depends_on: on }) => [id, on])).toEqual([
    ['e', ['x']],
    ['x', []],
    ['y', ['x']],
  ]);
  expect(plan['edges']).toEqual([{ from: 'x', to: 'y' }]);
});

describe('[L5] [P17] feedback for the model', () => {
  test('refers to a long result by its id, despite the rejected action', async () => {
    const kit = await sessionKit({
      script: [`${GOOD}${BAD['duplicate_id'] ?? ''}`, '<response final="true">well</response>'],
      executors: { tool: async () => ({ ok: true, output: 'long '.repeat(10_000) }) },
    });
    await say(kit, 'go');
    const told = kit.requests[1]?.messages.map(({ content }) => content).join('\n');
    expect(told).toContain('status="rejected"');
    expect(told).toContain('$x');
  });

  test('reports the outcomes of a native call and of an action in the text with the same id separately', async () => {
    const call = (id: string, n: number): ModelDelta => ({
      type: 'tool_call',
      index: 0,
      id,
      name: 'echo',
      argumentsDelta: JSON.stringify({ n }),
    });
    const kit = await sessionKit({
      agent: (agent) => ({ ...agent, protocol: { ...agent.protocol, dialect: 'auto' } }),
      script: [
        [{ type: 'text', text: GOOD }, call('x', 2), { type: 'finish', reason: 'tool_calls' }],
        '<response final="true">well</response>',
      ],
    });
    await say(kit, 'go');
    const answers = kit.requests[1]?.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    expect(answers).toHaveLength(1);
    expect(answers?.[0]).toContain('duplicate_id');
    const assistant = kit.requests[1]?.messages.find(({ role }) => role === 'assistant');
    expect(JSON.stringify(assistant)).not.toContain('ordinal');
  });
});
