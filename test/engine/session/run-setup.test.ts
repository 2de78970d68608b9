/** The setup of a run: its agent, the source of its text, and its policy. */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../../src/domain/manifests/resolved.ts';
import type { RunRecord, SessionRecord } from '../../../src/domain/session.ts';
import { agentOfRun, currentAgent, recordOf, runPolicy, sourceOf } from '../../../src/engine/session/run-setup.ts';
import type { SessionPorts } from '../../../src/engine/session/session-ports.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { textOf } from '../../support/session-kit.ts';
import { definition } from '../workflow/steps.ts';

const assistant = (): ResolvedAgent => {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  return resolved;
};
const WORKFLOW: ResolvedWorkflow = {
  tools: new Map(),
  relics: new Map(),
  workflows: new Map(),
  agents: new Map(),
  knownNames: { tool: [], agent: [], relic: [], workflow: [] },
  workflow: definition([{ name: 'a' }]),
};

interface Given {
  readonly ports: Pick<SessionPorts, 'journal' | 'resolve' | 'workflow'>;
  /** The lookups, with their pins. */
  readonly asked: [name: string, pin: string | null][];
  /** Creates the next run of the session. */
  run(input: JsonObject): RunRecord;
}

function given(record: Partial<SessionRecord> = {}, catalogue: 'full' | 'empty' = 'full'): Given {
  const journal = newJournal(openNodeSql(), record);
  const asked: [string, string | null][] = [];
  const found = <T>(name: string, pin: string | null, value: T): T | null => {
    asked.push([name, pin]);
    return catalogue === 'full' ? value : null;
  };
  return {
    ports: {
      journal,
      resolve: (name, pin) => found(name, pin, assistant()),
      workflow: (name, pin) => found(name, pin, WORKFLOW),
    },
    asked,
    run: (input) => journal.runs.create(input, 1, 'running'),
  };
}

describe('[M4] the definitions of a run', () => {
  test('an agent is looked up in the manifests that the run is pinned to', () => {
    const { ports, asked, run } = given();
    const pinned = run({ content: 'hi', manifests: 'm1' });
    const unpinned = run({ content: 'hi', manifests: null });
    expect(agentOfRun(ports, pinned)?.agent.name).toBe('assistant');
    expect(agentOfRun(ports, unpinned)?.agent.name).toBe('assistant');
    expect(asked).toEqual([
      ['assistant', 'm1'],
      ['assistant', null],
    ]);
  });

  test('the current agent is that of the latest run; before the first run, that of the catalogue', () => {
    const { ports, asked, run } = given();
    expect(currentAgent(ports)?.agent.name).toBe('assistant');
    run({ content: 'hi', manifests: 'm1' });
    run({ content: 'hi', manifests: 'm2' });
    currentAgent(ports);
    expect(asked).toEqual([
      ['assistant', null],
      ['assistant', 'm2'],
    ]);
  });

  test('[M5] the agent of a run has the variables of its session', () => {
    const { ports, run } = given();
    const { agent } = assistant();
    const persona = { ...agent.persona, agent: 'I am ${AGENT_NAME} of ${SESSION_ID}' };
    const resolved = { ...assistant(), agent: { ...agent, persona } };
    const found = agentOfRun({ ...ports, resolve: () => resolved }, run({ content: 'hi' }));
    expect(found?.agent.persona.agent).toBe(`I am assistant of ${recordOf(ports).session_id}`);
  });

  test('[M6] the agent of a workflow session is its workflow; it has no current agent', () => {
    const { ports, asked, run } = given({ workflow: 'pipeline' });
    expect(agentOfRun(ports, run({ type: 'workflow', inputs: {}, manifests: 'm1' }))?.agent.name).toBe('pipeline');
    expect(asked).toEqual([['pipeline', 'm1']]);
    expect(currentAgent(ports)).toBeNull();
    expect(asked).toHaveLength(1);
  });

  test('an agent that is no longer in the catalogue is null, and a missing workflow is an error with its name', () => {
    const { ports, run } = given({}, 'empty');
    expect([agentOfRun(ports, run({ content: 'hi' })), currentAgent(ports)]).toEqual([null, null]);
    const name = 'w'.repeat(limits.excerptChars + 1);
    const other = given({ workflow: name }, 'empty');
    const fault = {
      code: 'unknown_workflow',
      message: `No workflow is called "${name.slice(0, limits.excerptChars)}"`,
    };
    expect(() => agentOfRun(other.ports, other.run({ type: 'workflow' }))).toThrow(
      expect.objectContaining(fault) as Error,
    );
    // A session without a workflow cannot run one.
    expect(() => sourceOf(ports, run({ type: 'workflow' }), null)).toThrow('No workflow is called ""');
  });

  test('a session without a record is unknown', () => {
    const fault = { code: 'unknown_session', message: 'This session does not exist' };
    expect(() => recordOf({ journal: new Journal(openNodeSql()) })).toThrow(expect.objectContaining(fault) as Error);
  });
});

describe('the source of a run’s text', () => {
  const chunks = async function* (): AsyncGenerator<string> {
    yield 'arriving';
  };

  test.each([
    [true, true],
    [false, false],
    [undefined, false],
    ['yes', false],
  ])('a message is answered by the model; tokens: %j', (tokens, wanted) => {
    const { ports, run } = given();
    const input: JsonObject = { type: 'message', content: 'hi', ...(tokens === undefined ? {} : { tokens }) };
    expect(sourceOf(ports, run(input), null)).toEqual({
      type: 'model',
      content: 'hi',
      tokens: wanted,
      history: [],
      earlier: expect.objectContaining({ unread: 0 }),
    });
  });

  test('[M6] a workflow gets its inputs, which are optional', () => {
    const { ports, run } = given({ workflow: 'pipeline' });
    const source = (inputs: JsonObject): unknown => sourceOf(ports, run({ type: 'workflow', ...inputs }), null);
    const definitionOf = WORKFLOW.workflow;
    const common = { type: 'workflow', definition: definitionOf, trigger: null };
    expect(source({ inputs: { n: 1 } })).toEqual({ ...common, inputs: { n: 1 } });
    expect(source({ inputs: [1] })).toEqual({ ...common, inputs: {} });
    expect(source({})).toEqual({ ...common, inputs: {} });
  });

  test('[C3] a workflow knows whether it started by itself', () => {
    const { ports, run } = given({ workflow: 'pipeline' });
    const triggers = ['schedule', 'webhook', 'event', 1].map((trigger) => {
      const source = sourceOf(ports, run({ type: 'workflow', trigger }), null);
      return source.type === 'workflow' ? source.trigger : undefined;
    });
    expect(triggers).toEqual(['schedule', 'webhook', null, null]);
  });

  test('[H7] posted text is read as it arrives, and after a restart from the record', async () => {
    const { ports, run } = given();
    const posted = run({ type: 'text', text: 'posted' });
    const read = async (from: AsyncIterable<string> | null): Promise<unknown> => {
      const source = sourceOf(ports, posted, from);
      if (source.type !== 'text') throw new Error('not a text');
      return [source.text, await textOf(source.chunks)];
    };
    expect(await read(chunks())).toEqual(['posted', 'arriving']);
    expect(await read(null)).toEqual(['posted', 'posted']);
  });

  test('[J2] the rest of a text that was still arriving is lost with its host', async () => {
    const { ports, run } = given();
    const source = sourceOf(ports, run({ type: 'stream' }), null);
    if (source.type !== 'text') throw new Error('not a text');
    expect(source.text).toBeNull();
    await expect(textOf(source.chunks)).rejects.toThrow('The session was restarted while the text was still arriving');
  });
});

describe('[S12] the policy of a run', () => {
  const { agent } = assistant();
  const own: AgentDefinition = {
    ...agent,
    loop: { ...agent.loop, maxParallelActions: 3, maxParallelByType: { python: 2 }, maxIterations: 7, failFast: true },
    budgets: { seconds: 100, modelCalls: 20, tokens: 5_000, cost: 2, actions: 30 },
    protocol: { ...agent.protocol, responseDefault: 'continue', onFailedFinal: 'end' },
  };
  const OWN = {
    source: 'model',
    maxParallelActions: 3,
    maxParallelByType: { python: 2 },
    maxIterations: 7,
    maxActions: 30,
    seconds: 100,
    modelCalls: 20,
    tokens: 5_000,
    cost: 2,
    maxChildren: limits.childrenPerRun,
    failFast: true,
    responseDefault: 'continue',
    onFailedFinal: 'end',
  };

  test.each([
    ['model', 'model'],
    ['text', 'text'],
    ['workflow', 'text'],
  ] as const)('follows the manifest; a source of the type %s is one of %s', (type, source) => {
    expect(runPolicy(own, type, {})).toEqual({ ...OWN, source });
    expect(runPolicy(own, type, { budget: null })).toEqual({ ...OWN, source });
  });

  test('[M7] a parent’s budget restricts it, and never extends it', () => {
    const less = { seconds: 50, modelCalls: 10, tokens: 1_000, cost: 1, actions: 15, children: 4 };
    expect(runPolicy(own, 'model', { budget: less })).toEqual({
      ...OWN,
      seconds: 50,
      modelCalls: 10,
      tokens: 1_000,
      cost: 1,
      maxActions: 15,
      maxChildren: 4,
    });
    const more = { seconds: 500, modelCalls: 100, tokens: 10_000, cost: 10, actions: 150, children: 0 };
    expect(runPolicy(own, 'model', { budget: more })).toEqual({ ...OWN, maxChildren: 0 });
  });

  test.each([
    [null, null, null],
    [null, 10, 10],
    [20, null, 20],
    [0, null, 0],
    [20, 0, 0],
  ])('with %j tokens of its own and %j of its parent has %j tokens', (mine, given_, has) => {
    const budget = { seconds: 1, modelCalls: 1, tokens: given_, cost: given_, actions: 1, children: 1 };
    const policy = runPolicy({ ...own, budgets: { ...own.budgets, tokens: mine, cost: mine } }, 'model', { budget });
    expect([policy.tokens, policy.cost]).toEqual([has, has]);
  });
});
