import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { ActionDeclaration } from '../../../src/domain/action.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import { policyOf, relicOf, scopeIn, targetOf, toolOf } from '../../../src/engine/actions/action-policy.ts';
import { toolOf as tool } from '../../support/definitions.ts';

const head = (kind: string, name: string): string => `kind: ${kind}\nversion: 1\nname: ${name}\nsummary: s\n`;
const { catalog } = loadManifests(
  Object.entries({
    'a.yaml': `${head('Agent', 'keeper')}persona: x\nimport: {agents: [helper], relics: [notes], workflows: [nightly]}\n`,
    'b.yaml': `${head('Agent', 'helper')}persona: x\n`,
    'c.yaml': `${head('Agent', 'stranger')}persona: x\n`,
    'n.yaml': `${head('Relic', 'notes')}implementation: {type: edge, store: kv}\nendpoints: {get: {timeout: 3s}, increment: {}}\n`,
    'w.yaml': `${head('Workflow', 'nightly')}steps: [{name: s, type: llm}]\n`,
    'v.yaml': `${head('Workflow', 'weekly')}steps: [{name: s, type: llm}]\n`,
  }).map(([path, text]) => ({ path, text })),
);
const resolved = catalog.agent('keeper');
const policy = (type: 'relic' | 'agent' | 'workflow', name: string, parameters = {}): ReturnType<typeof policyOf> =>
  policyOf({ type, name, parameters, timeoutMs: null, cacheTtlMs: null, idempotencyKey: null }, resolved, new Map());

test('[S7] a relic action has the effects and the timeout of its endpoint', () => {
  expect(policy('relic', 'notes.get')).toMatchObject({ effects: 'idempotent', timeoutMs: 3_000, refusal: null });
  expect(policy('relic', 'notes.increment')).toMatchObject({ effects: 'unsafe', refusal: null });
  expect(policy('relic', 'notes', { endpoint: 'get', key: 'a' })).toMatchObject({ effects: 'idempotent' });
});

test.each([
  ['relic', 'note.get', 'No relic is called "note" (did you mean "notes"?)'],
  ['relic', 'notes.gett', 'The relic "notes" has no endpoint "gett" (did you mean "get"?)'],
  ['relic', 'notes.__proto__', 'The relic "notes" has no endpoint "__proto__" (it has: get, increment)'],
  ['agent', 'helpr', 'No agent is called "helpr" (did you mean "helper"?)'],
  ['agent', 'stranger', 'Agent "keeper" does not import the agent "stranger" (it may use: helper)'],
  ['workflow', 'nigthly', 'No workflow is called "nigthly" (did you mean "nightly"?)'],
  ['workflow', 'weekly', 'Agent "keeper" does not import the workflow "weekly" (it may use: nightly)'],
] as const)('[M3] [X4] %s %s is refused with the nearest names', (type, name, message) => {
  expect(policy(type, name).refusal).toEqual({ code: 'unknown_name', message });
});

test.each([
  ['relic', 'notes.get'],
  ['agent', 'helper'],
  ['workflow', 'nightly'],
] as const)('[X4] %s %s is imported and can run', (type, name) => {
  expect(policy(type, name).refusal).toBeNull();
});

test('[M2] an agent and a workflow of one name have the scope of their kind', () => {
  const agents = new Map([['report', { scope: 'agents/keeper' }]]);
  const workflows = new Map([['report', { scope: 'workflows/nightly' }]]);
  const imported = { agents, workflows } as unknown as ResolvedAgent;
  expect(scopeIn(imported, 'agent', 'report')).toBe('agents/keeper');
  expect(scopeIn(imported, 'workflow', 'report')).toBe('workflows/nightly');
  expect(scopeIn(imported, 'agent', 'other')).toBeUndefined();
});

type Asked = Pick<ActionDeclaration, 'type' | 'name'> & Partial<ActionDeclaration>;

/** The notes keeper with changes, and the tool `thing`. */
function keeper(changes: Partial<AgentDefinition> = {}, thing: Partial<ToolDefinition> = {}): ResolvedAgent {
  if (resolved === null) throw new Error('the catalogue has no keeper');
  return {
    ...resolved,
    agent: { ...resolved.agent, ...changes },
    tools: new Map([['thing', tool({ type: 'builtin', entrypoint: 'echo' }, thing)]]),
  };
}

function policyFor(
  action: Asked,
  agent: ResolvedAgent | null = keeper(),
  learned = new Map<string, number>(),
): ReturnType<typeof policyOf> {
  const unset = { parameters: {}, timeoutMs: null, cacheTtlMs: null, idempotencyKey: null };
  return policyOf({ ...unset, ...action }, agent, learned);
}

const THING = { type: 'tool', name: 'thing' } as const;

describe('[S7] [S8] the policy of an action', () => {
  test('of a tool without declarations has the defaults', () => {
    expect(policyFor(THING)).toEqual({
      effects: 'unsafe',
      timeoutMs: limits.actionTimeoutMs,
      retry: {
        maxAttempts: 1,
        backoff: 'exponential',
        delayMs: limits.retryDelayMs,
        maxDelayMs: limits.retryMaxDelayMs,
      },
      concurrency: null,
      dispatch: 'eager',
      needsApproval: false,
      reuse: false,
      estimateMs: limits.actionTimeoutMs,
      refusal: null,
    });
  });

  test('of a tool follows its manifest', () => {
    const retry = { maxAttempts: 7, backoff: 'linear', delayMs: 1, maxDelayMs: 2 } as const;
    const stated = {
      effects: 'pure',
      timeoutMs: 5_000,
      retry,
      concurrency: 2,
      dispatch: 'after_generation',
      approval: 'always',
      cacheTtlMs: 9_000,
    } as const;
    expect(policyFor(THING, keeper({}, stated))).toEqual({
      effects: 'pure',
      timeoutMs: 5_000,
      retry,
      concurrency: 2,
      dispatch: 'after_generation',
      needsApproval: true,
      reuse: true,
      estimateMs: 5_000,
      refusal: null,
    });
  });

  test.each([
    ['pure', limits.retryAttempts],
    ['idempotent', limits.retryAttempts],
    ['unsafe', 1],
  ] as const)('a tool with %s effects has %i attempts by default', (effects, maxAttempts) => {
    expect(policyFor(THING, keeper({}, { effects }))).toMatchObject({ effects, retry: { maxAttempts } });
  });

  test.each([
    ['agent', 'helper', 'unsafe', limits.longActionTimeoutMs],
    ['workflow', 'nightly', 'unsafe', limits.longActionTimeoutMs],
    ['llm', 'llm', 'idempotent', limits.actionTimeoutMs],
    ['internal', 'set_variable', 'idempotent', limits.actionTimeoutMs],
    // Only a relic action has the effects and the timeout of an endpoint.
    ['agent', 'notes.get', 'unsafe', limits.longActionTimeoutMs],
  ] as const)('%s %s has the effects and the timeout of its type', (type, name, effects, timeoutMs) => {
    expect(policyFor({ type, name })).toMatchObject({ effects, timeoutMs, dispatch: 'eager', concurrency: null });
  });

  test('the timeout of a manifest is limited to the maximum', () => {
    const timeoutMs = limits.maxActionTimeoutMs + 1;
    expect(policyFor(THING, keeper({}, { timeoutMs })).timeoutMs).toBe(limits.maxActionTimeoutMs);
  });

  test('[S5] the expected duration is the learned one, otherwise the timeout of the action, otherwise that of the target', () => {
    const learned = new Map([
      [targetOf(THING), 40],
      ['tool/other', 50],
    ]);
    const timed = { ...THING, timeoutMs: 700 };
    expect(policyFor(timed, keeper(), learned)).toMatchObject({ estimateMs: 40, timeoutMs: limits.actionTimeoutMs });
    expect(policyFor(timed).estimateMs).toBe(700);
    expect(policyFor(THING).estimateMs).toBe(limits.actionTimeoutMs);
    expect(targetOf(THING)).toBe('tool/thing');
  });

  test.each([
    ['supervised', 'never', 'unsafe', true],
    ['supervised', 'never', 'idempotent', false],
    ['supervised', 'always', 'idempotent', true],
    ['autonomous', 'never', 'unsafe', false],
    ['autonomous', 'always', 'pure', true],
  ] as const)(
    '[J8] with a %s agent, approval: %s and %s effects, an approval is required: %s',
    (mode, approval, effects, asks) => {
      const agent = keeper({ loop: { ...keeper().agent.loop, mode } }, { approval, effects });
      expect(policyFor(THING, agent).needsApproval).toBe(asks);
    },
  );

  test.each([
    ['neither', 'pure', {}, false],
    ['an idempotency key', 'unsafe', { idempotencyKey: 'k' }, true],
    ['a cache_ttl of a pure tool', 'pure', { cacheTtlMs: 1 }, true],
    ['a cache_ttl of a tool that is not pure', 'idempotent', { cacheTtlMs: 1 }, false],
  ] as const)('[P6] the cache is used for an action with %s', (_name, effects, fields, reuse) => {
    expect(policyFor({ ...THING, ...fields }, keeper({}, { effects })).reuse).toBe(reuse);
  });
});

describe('[X4] permissions of an agent', () => {
  const refused = (action: Asked, agent: ResolvedAgent | null = keeper()): unknown => policyFor(action, agent).refusal;

  test('without an agent nothing is looked up or refused', () => {
    expect(policyFor({ type: 'tool', name: 'nosuch' }, null)).toMatchObject({ effects: 'unsafe', refusal: null });
    expect(refused({ type: 'shell', name: 'shell' }, null)).toBeNull();
    expect(refused({ type: 'internal', name: 'nosuch' }, null)).toBeNull();
    expect(policyFor({ type: 'relic', name: 'notes.get' }, null)).toMatchObject({ effects: 'unsafe', refusal: null });
  });

  test('code runs if it is among the capabilities', () => {
    const agent = keeper({ capabilities: ['python', 'docker'] });
    expect(refused({ type: 'python', name: 'python' }, agent)).toBeNull();
    expect(refused({ type: 'shell', name: 'shell' }, agent)).toEqual({
      code: 'not_allowed',
      message: 'Agent "keeper" is not allowed to run shell (its capabilities: python, docker)',
    });
    expect(refused({ type: 'shell', name: 'shell' }, keeper({ capabilities: [] }))).toMatchObject({
      message: 'Agent "keeper" is not allowed to run shell (its capabilities: none)',
    });
  });

  test('a model call needs no permission', () => {
    expect(refused({ type: 'llm', name: 'nosuch' })).toBeNull();
  });

  test('[I] an internal action is refused here only if its name is unknown', () => {
    const blocked = keeper({ internalActions: { enabled: false, allowed: [], blocked: ['set_variable'] } });
    expect(refused({ type: 'internal', name: 'set_variable' }, blocked)).toBeNull();
    expect(refused({ type: 'internal', name: 'set_variables' }, blocked)).toEqual({
      code: 'unknown_name',
      message: expect.stringMatching(/^No internal action is called "set_variables" \(known: set_variable, /) as string,
    });
  });

  test('[M3] a tool without a similar name is refused with at most twenty imported names', () => {
    expect(refused({ type: 'tool', name: 'qqqqqqqqq' })).toEqual({
      code: 'unknown_name',
      message: 'No tool is called "qqqqqqqqq" (known: thing)',
    });
    const names = Array.from({ length: 21 }, (_, at) => `thing${at}`);
    const many = {
      ...keeper(),
      tools: new Map(names.map((name) => [name, tool({ type: 'builtin', entrypoint: 'echo' })])),
    };
    expect(refused({ type: 'tool', name: 'qqqqqqqqq' }, many)).toMatchObject({
      message: `No tool is called "qqqqqqqqq" (known: ${names.slice(0, 20).join(', ')})`,
    });
    expect(refused({ type: 'tool', name: 'qqqqqqqqq' }, { ...keeper(), tools: new Map() })).toMatchObject({
      message: 'No tool is called "qqqqqqqqq" (known: none)',
    });
  });

  test('[M3] all similar names are suggested, and a long name is cut', () => {
    const both = {
      ...keeper(),
      tools: new Map(['thing', 'think'].map((name) => [name, tool({ type: 'builtin', entrypoint: 'echo' })])),
    };
    expect(refused({ type: 'tool', name: 'thinq' }, both)).toMatchObject({
      message: 'No tool is called "thinq" (did you mean "thing" or "think"?)',
    });
    const long = 'q'.repeat(limits.excerptChars + 1);
    expect(refused({ type: 'tool', name: long })).toMatchObject({
      message: `No tool is called "${'q'.repeat(limits.excerptChars)}" (known: thing)`,
    });
    expect(refused({ type: 'relic', name: `notes.${long}` })).toMatchObject({
      message: `The relic "notes" has no endpoint "${'q'.repeat(limits.excerptChars)}" (it has: get, increment)`,
    });
    expect(refused({ type: 'relic', name: 'notes.getincrement' })).toMatchObject({
      message: 'The relic "notes" has no endpoint "getincrement" (did you mean "get" or "increment"?)',
    });
  });

  test('only the name of a relic is split at its dot', () => {
    expect(refused({ type: 'tool', name: 'thing.get' })).toMatchObject({
      message: 'No tool is called "thing.get" (did you mean "thing"?)',
    });
    const imports = { ...keeper().agent.imports, agents: ['notes'] };
    expect(refused({ type: 'agent', name: 'notes', parameters: { endpoint: 'x' } }, keeper({ imports }))).toBeNull();
  });

  test('a relic without an endpoint, and one that does not exist any more, are checked by the executor', () => {
    expect(refused({ type: 'relic', name: 'notes.get' }, { ...keeper(), relics: new Map() })).toBeNull();
    expect(refused({ type: 'relic', name: 'notes' })).toBeNull();
    expect(refused({ type: 'relic', name: 'notes', parameters: { endpoint: 'gett' } })).toEqual({
      code: 'unknown_name',
      message: 'The relic "notes" has no endpoint "gett" (did you mean "get"?)',
    });
  });

  test('a target is found by its type and its name', () => {
    const agent = keeper();
    expect(toolOf(THING, agent)).toBe(agent.tools.get('thing'));
    expect(toolOf({ type: 'agent', name: 'thing' }, agent)).toBeNull();
    expect(toolOf({ type: 'tool', name: 'other' }, agent)).toBeNull();
    expect(relicOf({ type: 'relic', name: 'notes.get' }, agent)).toBe(agent.relics.get('notes'));
    expect(relicOf({ type: 'relic', name: 'other.get' }, agent)).toBeNull();
    expect(relicOf({ type: 'tool', name: 'notes.get' }, agent)).toBeNull();
  });
});
