/** Policies decide about actions, and what they have judged is what runs (C9, J2, J8, S7). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { PolicyRule } from '../../../src/domain/policy.ts';
import type { ChildRequest } from '../../../src/domain/ports/children.ts';
import { toolOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { hostScene } from '../../support/host-scene.ts';
import type { HostScene } from '../../support/host-scene.ts';
import type { KitOptions } from '../../support/session-kit.ts';
import { settle } from '../../support/session-kit.ts';
import { createOptionalTables } from '../../support/optional-tables.ts';
import { ACTION, builtin, OK, rule, SET } from '../calls.ts';

const TOOLS = [
  builtin({ name: 'pay', effects: 'unsafe' }),
  builtin({ name: 'careful', effects: 'unsafe', approval: 'always' }),
  builtin({ name: 'read', effects: 'idempotent' }),
  builtin({ name: 'cached', effects: 'pure', cacheTtlMs: 60_000 }),
  toolOf({ type: 'client' }, { name: 'locate', approval: 'never' }),
];

const withRules =
  (...policies: PolicyRule[]): NonNullable<KitOptions['agent']> =>
  (agent) => ({ ...agent, policies });
const scene = async (options: KitOptions): Promise<HostScene> => await hostScene({ tools: TOOLS, ...options });

const CHILD = { key: 'k', type: 'agent', name: 'assistant', message: 'go', inputs: {}, budget: null } as const;
const applied = ({ events }: HostScene): unknown[] =>
  eventsOf(events, 'policy_applied').map(({ action_id: id, data: { decision, source, rule: at } }) => [
    id,
    decision,
    source,
    at,
  ]);

describe('[C9] the lists of the deployment and of the manifest', () => {
  test.each([
    ['deny', 'allow', 'deny'],
    ['ask', 'deny', 'deny'],
    ['allow', 'ask', 'ask'],
    ['allow', 'allow', 'allow'],
  ] as const)('deployment %s and agent %s are together %s', async (deployment, own, together) => {
    const stage = await scene({ policies: [rule(deployment)], agent: withRules(rule(own)) });
    stage.ends.push(OK);
    await stage.run(ACTION('a', 'pay', { sum: 5 }));
    expect(applied(stage).map((entry) => (entry as unknown[])[1])).toEqual([together]);
    expect(stage.failures).toEqual(together === 'deny' ? ['policy_denied'] : []);
    expect(stage.open.length).toBe(together === 'ask' ? 1 : 0);
    expect(stage.calls.length).toBe(together === 'allow' ? 1 : 0);
  });

  test('rules that do not apply leave no trace, and nothing waits', async () => {
    const stage = await scene({ agent: withRules(rule('deny', 'action.name == "pay"')) });
    stage.ends.push(OK);
    await stage.run(ACTION('b', 'read'));
    expect(applied(stage)).toEqual([]);
    expect(stage.calls.map(({ action }) => action.name)).toEqual(['read']);
  });

  test('the model and the events say which rule, and its message', async () => {
    const stage = await scene({ policies: [rule('deny', null, 'no payments on Sundays')] });
    await stage.run(ACTION('a', 'pay'));
    expect(eventsOf(stage.events, 'action_failed').map(({ data }) => data.error)).toEqual([
      {
        code: 'policy_denied',
        message: 'A policy does not allow the action "a" (deployment, rule 1): no payments on Sundays',
        retryable: false,
      },
    ]);
    expect(eventsOf(stage.events, 'policy_applied')[0]?.data).toEqual({
      decision: 'deny',
      source: 'deployment',
      rule: 1,
      message: 'no payments on Sundays',
    });
  });

  test('an allowed action with approval: always still asks', async () => {
    const stage = await scene({ agent: withRules(rule('allow')), policies: [rule('allow')] });
    await stage.run(ACTION('a', 'careful'));
    expect(stage.open).toHaveLength(1);
    expect(stage.calls).toEqual([]);
  });

  test('what is too much work is denied, and the rule is named', async () => {
    const stage = await scene({
      agent: withRules(rule('allow', 'text(parameters).matches("(a|b|c|d|e|f)*(x|y|z)+q")')),
    });
    await stage.run(ACTION('a', 'pay', { text: 'abc'.repeat(200_000) }));
    expect(applied(stage)).toEqual([['a', 'deny', 'agent assistant', 1]]);
    expect(eventsOf(stage.events, 'policy_applied')[0]?.data.message).toContain(
      'it needs too much work on these values',
    );
    expect(stage.failures).toEqual(['policy_denied']);
  });
});

describe('[C9] what policies cover', () => {
  test.each([
    ['code', `<action type="python" id="a">{"code":"print(1)"}</action>`, 'action.type == "python"'],
    ['internal actions', SET('a', 1), 'action.type == "internal" && action.name == "set_variable"'],
    ['client tools', ACTION('a', 'locate'), 'action.implementation == "client"'],
    ['model calls', `<action type="llm" id="a">{"prompt":"hi"}</action>`, 'action.type == "llm"'],
    [
      'sub-agents',
      `<action type="agent" id="a">{"name":"researcher","parameters":{"message":"x"}}</action>`,
      'action.type == "agent"',
    ],
  ])('%s', async (_what, text, when) => {
    const stage = await scene({
      agent: (agent) => ({
        ...agent,
        capabilities: ['python'],
        imports: { ...agent.imports, agents: ['researcher'] },
        policies: [rule('deny', when)],
      }),
    });
    await stage.run(text);
    expect(stage.failures).toEqual(['policy_denied']);
    expect(stage.calls).toEqual([]);
    expect(eventsOf(stage.events, 'client_tool_called')).toEqual([]);
    expect(eventsOf(stage.events, 'variable_changed')).toEqual([]);
  });

  test('the policies of a run bind its sub-agents, which get them with their message', async () => {
    const asked: ChildRequest[] = [];
    const stage = await scene({
      policies: [rule('ask', 'action.type == "docker"')],
      agent: (agent) => ({
        ...agent,
        imports: { ...agent.imports, agents: ['researcher'] },
        policies: [rule('deny', 'action.name == "pay"')],
      }),
      children: {
        run: async (child) => {
          asked.push(child);
          return {
            sessionId: 'c',
            status: 'completed',
            output: 'ok',
            error: null,
            spent: { modelCalls: 0, tokens: 0, cost: 0, actions: 0, children: 0 },
          };
        },
      },
    });
    await stage.run(`<action type="agent" id="a">{"name":"researcher","parameters":{"message":"x"}}</action>`);
    // The deployment's bind the child by themselves.
    expect(asked[0]?.policies).toEqual([{ source: 'agent assistant', rules: [rule('deny', 'action.name == "pay"')] }]);
  });

  test('a child is bound by the policies of its parents and its own, and passes all of them on', async () => {
    const asked: ChildRequest[] = [];
    const inherited = { source: 'agent parent', rules: [rule('deny', 'action.name == "pay"')] };
    const stage = await scene({
      kind: 'child',
      script: [
        `${ACTION('a', 'pay')}${ACTION('b', 'read')}<action type="agent" id="c">{"name":"researcher","parameters":{"message":"x"}}</action><response final="true">ok</response>`,
      ],
      agent: (agent) => ({
        ...agent,
        imports: { ...agent.imports, agents: ['researcher'] },
        policies: [rule('ask', 'action.name == "read"')],
      }),
      children: {
        run: (child) => {
          asked.push(child);
          return new Promise(() => undefined);
        },
      },
    });
    await stage.kit.session.child({ ...CHILD, policies: [inherited] });
    await settle();
    expect(applied(stage)).toEqual([
      ['a', 'deny', 'agent parent', 1],
      ['b', 'ask', 'agent assistant', 1],
    ]);
    expect(asked[0]?.policies?.map(({ source }) => source)).toEqual(['agent parent', 'agent assistant']);
    // After a crash too: they are in the stored input of the run.
    await stage.start();
    await stage.kit.session.cancel('enough');
    expect(stage.kit.session.runs().at(-1)?.input['policies']).toEqual([inherited]);
  });
});

describe('[C9] the parameters', () => {
  test('are judged with their values, and those are shown, asked about and executed', async () => {
    const stage = await scene({
      agent: withRules(rule('ask', 'action.name == "pay" && parameters.sum > 100', 'a large sum')),
    });
    stage.ends.push({ ok: true, output: { total: 700 } }, OK);
    await stage.run(ACTION('bill', 'read'), ACTION('a', 'pay', { sum: '$bill.total' }));
    expect(eventsOf(stage.events, 'policy_applied')[0]?.data).toMatchObject({
      decision: 'ask',
      parameters: { sum: 700 },
    });
    expect(eventsOf(stage.events, 'approval_requested')[0]?.data).toMatchObject({
      reason: 'a large sum',
      parameters: { sum: 700 },
    });
    expect(stage.kit.session.approval(stage.open[0] ?? '')).toMatchObject({ reason: 'a large sum' });
    await stage.decide();
    expect(stage.calls.map(({ parameters }) => parameters)).toEqual([{}, { sum: 700 }]);
  });

  test('[P6] a reused outcome is judged like a call', async () => {
    const stage = await scene({
      agent: withRules(rule('deny', 'run.calls > 0 || session.cost > 5.0 || parameters.n == 2')),
    });
    stage.ends.push(OK);
    await stage.run(ACTION('a', 'cached', { n: 1 }), ACTION('b', 'cached', { n: 2 }));
    expect(stage.failures).toEqual(['policy_denied']);
  });

  test('equal actions that are judged at the same time do not exceed a limit on calls', async () => {
    const stage = await scene({ agent: withRules(rule('deny', 'action.name == "read" && run.calls >= 2')) });
    stage.ends.push(OK, OK, OK, OK, OK);
    await stage.run(...['a', 'b', 'c', 'd', 'e'].map((id) => ACTION(id, 'read')));
    expect(stage.calls).toHaveLength(2);
    expect(stage.failures).toEqual(['policy_denied', 'policy_denied', 'policy_denied']);
  });

  test('the quota of references is charged once for an action, however often it is resolved', async () => {
    const chars = Math.floor(limits.runSubstitutedChars / 3);
    const stage = await scene({ agent: withRules(rule('deny', 'action.name == "pay" && parameters.text == "x"')) });
    stage.ends.push({ ok: true, output: 'y'.repeat(Math.min(chars, limits.substitutedChars - 10)) }, OK);
    await stage.run(ACTION('big', 'read'), ACTION('a', 'pay', { text: 'see $big' }));
    expect(stage.failures).toEqual([]);
    expect(stage.calls).toHaveLength(2);
  });
});

describe('[C9] policies that are set, removed or passed on later', () => {
  test('[J2] a run that was parked before there were policies goes on, and what is new in it is judged', async () => {
    const options: { tools: readonly ToolDefinition[]; policies?: readonly PolicyRule[] } = { tools: TOOLS };
    const stage = await hostScene(options);
    stage.ends.push(OK);
    await stage.run(ACTION('r', 'read'), ACTION('a', 'careful'), ACTION('b', 'pay', {}, { depends_on: ['a'] }));
    options.policies = [rule('deny', 'action.name == "pay"')];
    const { faults } = await stage.start();
    stage.ends.push(OK);
    await stage.decide();
    expect(faults).toEqual([]);
    expect(stage.calls.map(({ action }) => action.id)).toEqual(['r', 'a']);
    expect(stage.failures).toEqual(['policy_denied']);
  });

  test('[J2] an interrupted run goes on where policies were set, changed or removed', async () => {
    const set = [rule('deny', 'action.name == "nothing"')];
    for (const [before, after] of [
      [undefined, set],
      [set, undefined],
      [set, [rule('allow')]],
    ] as const) {
      const options: { tools: readonly ToolDefinition[]; policies?: readonly PolicyRule[] } = { tools: TOOLS };
      if (before !== undefined) options.policies = before;
      const stage = await hostScene(options);
      stage.ends.push(null);
      await stage.run(ACTION('r', 'read'), ACTION('b', 'pay', {}, { depends_on: ['r'] }));
      if (after === undefined) delete options.policies;
      else options.policies = after;
      stage.ends.push(OK, OK);
      const { faults, session } = await stage.start();
      await stage.pass();
      expect(faults).toEqual([]);
      expect(stage.calls.map(({ action }) => action.id)).toEqual(['r', 'r', 'b']);
      expect(session.runs().at(-1)?.status).toBe('completed');
    }
  });

  test('every run of a child is bound by the policies of its parent, also one that a client starts', async () => {
    const stage = await scene({ kind: 'child', script: ['<response final="true">ok</response>'] });
    const policies = [{ source: 'agent parent', rules: [rule('deny', 'action.name == "pay"')] }];
    await stage.kit.session.child({ ...CHILD, policies });
    await settle();
    await stage.run(ACTION('a', 'pay'));
    expect(stage.calls).toEqual([]);
    expect(applied(stage)).toEqual([['a', 'deny', 'agent parent', 1]]);
  });
});

describe('[C9] what a condition sees', () => {
  test('[R5] a relic has one name, however its endpoint is given, and its calls are counted by it', async () => {
    const stage = await scene({
      from: 'archivist',
      policies: [rule('deny', 'action.name == "key_value.set" && run.calls >= 2')],
      executors: { relic: async () => OK },
    });
    const set = (id: string, body: JsonObject): string =>
      `<action type="relic" mode="async" id="${id}">${JSON.stringify(body)}</action>`;
    await stage.run(
      set('a', { name: 'key_value.set', parameters: { key: 'x', value: 1 } }),
      set('b', { name: 'key_value', parameters: { endpoint: 'set', key: 'x', value: 2 } }),
      set('c', { name: 'key_value', parameters: { endpoint: 'set', key: 'x', value: 3 } }),
      set('d', { name: 'key_value', parameters: { endpoint: 'get', key: 'x' } }),
    );
    expect(eventsOf(stage.events, 'action_failed').map(({ action_id: id }) => id)).toEqual(['c']);
    expect(eventsOf(stage.events, 'action_completed').map(({ action_id: id }) => id)).toEqual(['a', 'b', 'd']);
  });

  test.each([
    [
      'python',
      { code: null, script: 'import socket' },
      'parameters.code != null && parameters.code.contains("socket")',
    ],
    [
      'agent',
      { name: 'researcher', parameters: { instruction: 'delete it' } },
      'parameters.message.contains("delete")',
    ],
    ['llm', { parameters: { ask: 'delete it' } }, 'parameters.prompt.contains("delete")'],
    ['python', { code: 'x', inputs: { x: '$secret' } }, 'text(parameters).matches("sesame")'],
  ])('the parameters of %s %j as they are understood', async (type, body, when) => {
    const stage = await scene({
      variables: { secret: 'sesame' },
      agent: (agent) => ({
        ...agent,
        capabilities: ['python'],
        imports: { ...agent.imports, agents: ['researcher'] },
        policies: [rule('deny', `action.type == "${type}" && ${when}`)],
      }),
    });
    await stage.run(`<action type="${type}" id="a">${JSON.stringify(body)}</action>`);
    expect(applied(stage)).toEqual([['a', 'deny', 'agent assistant', 1]]);
    expect(eventsOf(stage.events, 'policy_applied')[0]?.data.message).toBeUndefined();
  });

  test('the cost of the session counts each run once, also after it has waited', async () => {
    const usage = {
      type: 'usage',
      usage: { promptTokens: 1_000_000, completionTokens: 0, cachedTokens: 0, estimated: false, model: 'm' },
    } as const;
    const text = (piece: string): object[] => [
      { type: 'text', text: piece },
      usage,
      { type: 'finish', reason: 'stop' },
    ];
    const stage = await scene({
      agent: (agent) => ({
        ...agent,
        engine: { ...agent.engine, prices: { m: { input: 2, output: 2, cachedInput: 2 } } },
        policies: [rule('deny', 'action.id == "late" && session.cost > 3.0'), rule('allow', 'session.cost >= 1.5')],
      }),
      script: [
        text(ACTION('a', 'careful')) as never,
        text(`${ACTION('late', 'read')}<response final="true">ok</response>`) as never,
      ],
    });
    stage.ends.push(OK, OK);
    await stage.kit.session.message({ content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null });
    await settle();
    await stage.decide();
    expect(applied(stage)).toEqual([['late', 'allow', 'agent assistant', 2]]);
  });
});

describe('[C9] [X3] a message about a condition', () => {
  const SECRET = 'hunter2-hunter2-hunter2';

  test.each([
    'action.name[parameters.k] == 1',
    'now.getHours(parameters.k) == 1',
    'duration(parameters.k) > duration("1s")',
  ])('%s contains no value, and has a limited length', async (when) => {
    for (const k of [SECRET, 'x'.repeat(100_000)]) {
      const stage = await scene({ secrets: [SECRET], variables: { s: k }, policies: [rule('deny', when)] });
      await stage.run(ACTION('a', 'pay', { k: '$s' }));
      const { message = '' } = eventsOf(stage.events, 'policy_applied')[0]?.data ?? {};
      const said = eventsOf(stage.events, 'action_failed')[0]?.data.error.message ?? '';
      expect(message).toMatch(/^(?:The condition cannot be evaluated \([^)]+\)|it needs too much work .*)$/);
      expect(said).toContain(message);
      expect(`${message}${said}`).not.toMatch(/hunter2|xxx/);
      expect(said.length).toBeLessThan(limits.policyMessageChars);
    }
  });
});

test('[C9] [J6] values from outside of the run are stored once, with an event', async () => {
  const big = 'x'.repeat(200_000);
  const stage = await scene({
    variables: { big },
    tools: [...TOOLS, builtin({ name: 'slow', effects: 'idempotent', concurrency: 1 })],
    policies: [rule('deny', 'action.name == "nothing"')],
  });
  await stage.run(...['a', 'b', 'c', 'd'].map((id) => ACTION(id, 'slow', { text: '$big' })));
  createOptionalTables(stage.disk);
  const [events = 0, chunks = 0, inputs = 0] = ['events', 'chunks', 'inputs'].map((table) => {
    const column = table === 'chunks' ? 'text' : table === 'events' ? `COALESCE(state, '')` : 'data';
    return Number(stage.disk.exec(`SELECT SUM(LENGTH(${column})) AS n FROM ${table} WHERE 1`)[0]?.['n'] ?? 0);
  });
  expect(applied(stage).map((entry) => (entry as unknown[]).slice(1))).toEqual(
    Array.from({ length: 4 }, () => ['allow', 'runtime', 0]),
  );
  // Shown parameters are cut, and each value is in one row.
  expect(inputs).toBeLessThan(20_000);
  expect(events + chunks).toBeLessThan(2 * big.length);
});

test('[C9] [R2] no sandbox is warmed up for an action that was not judged', async () => {
  const warmed: unknown[] = [];
  for (const policies of [[], [rule('deny')]]) {
    const stage = await scene({
      policies,
      agent: (agent) => ({ ...agent, capabilities: ['python'] }),
      runner: { prewarm: () => void warmed.push(policies.length) } as never,
    });
    stage.ends.push(OK);
    await stage.run('<action type="python" id="a">', '{"code":"print(1)"}</action>');
  }
  expect(warmed).toEqual([0]);
});
