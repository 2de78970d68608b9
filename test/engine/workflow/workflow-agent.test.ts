/** The agent that runs a workflow's steps (M6), and the check of the workflow's inputs. */
import { expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import { limits } from '../../../src/domain/limits.ts';
import { DEFAULT_PROTOCOL } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedWorkflow } from '../../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import { WorkMeter } from '../../../src/domain/work.ts';
import { agentOfWorkflow } from '../../../src/engine/workflow/workflow-agent.ts';
import { checkInputs, completeInputs } from '../../../src/engine/workflow/workflow-inputs.ts';
import { definition } from './steps.ts';

const echo = bundled.tool('echo');
if (echo === null) throw new Error('the bundled catalogue has no echo');
const WORK: ToolDefinition = { ...echo, name: 'work', dispatch: 'after_generation', effects: 'unsafe' };
const WORKFLOW: ResolvedWorkflow = {
  tools: new Map([['work', WORK]]),
  relics: new Map(),
  workflows: new Map(),
  agents: new Map(),
  knownNames: { tool: ['work'], agent: [], relic: [], workflow: [] },
  workflow: definition([{ name: 'a' }], {
    version: '2.1',
    summary: 's',
    description: 'd',
    tags: ['t'],
    metadata: { m: 1 },
    maxParallelSteps: 3,
  }),
};

test('[M6] [X4] a workflow’s agent has its imports, the internal tools of groups and errors, and no conversation', () => {
  const { agent, tools, ...imported } = agentOfWorkflow(WORKFLOW);
  const { tools: _tools, workflow: _workflow, ...rest } = WORKFLOW;
  expect(imported).toEqual(rest);
  expect(agent).toEqual({
    kind: 'Agent',
    name: 'pipeline',
    version: '2.1',
    summary: 's',
    description: 'd',
    tags: ['t'],
    metadata: { m: 1 },
    persona: { agent: '', user: '', examples: [] },
    engine: {
      primary: { provider: null, model: null, endpoint: null, keySecret: null },
      fallbacks: [],
      routing: 'failover',
      firstTokenMs: null,
      betweenTokensMs: null,
      parameters: {},
      prices: {},
    },
    imports: { tools: ['work', '_collect', '_refuse', '_value', '_ask'], agents: [], relics: [], workflows: [] },
    capabilities: [],
    internalActions: { enabled: true, allowed: null, blocked: [] },
    protocol: DEFAULT_PROTOCOL,
    loop: {
      mode: 'autonomous',
      maxIterations: 1,
      maxParallelActions: 3,
      maxParallelByType: {},
      failFast: false,
      streamThoughts: true,
      streamActionResults: true,
    },
    budgets: {
      seconds: limits.runSeconds,
      modelCalls: limits.modelCallsPerRun,
      tokens: null,
      cost: null,
      actions: limits.actionsPerRun,
    },
    feeds: [],
    memory: { maxTurns: null, summarizeAfter: null },
    variables: {},
    secrets: [],
  });
  expect([...tools.keys()]).toEqual(['work', '_collect', '_refuse', '_value', '_ask']);
  // [S14] Steps cannot be withdrawn, so none waits for the end of the text.
  expect(tools.get('work')).toEqual({ ...WORK, dispatch: 'eager' });
  const builtin = {
    kind: 'Tool',
    version: '1.0',
    description: '',
    tags: [],
    metadata: {},
    parameters: { type: 'object', additionalProperties: true },
    returns: null,
    effects: 'pure',
    approval: 'never',
    dispatch: 'eager',
    concurrency: null,
    timeoutMs: null,
    retry: null,
    cacheTtlMs: null,
    examples: [],
  };
  expect(tools.get('_collect')).toEqual({
    ...builtin,
    name: '_collect',
    summary: 'Returns its parameters.',
    implementation: { type: 'builtin', entrypoint: 'collect' },
  });
  expect(tools.get('_refuse')).toEqual({
    ...builtin,
    name: '_refuse',
    summary: 'Fails by name.',
    implementation: { type: 'builtin', entrypoint: 'refuse' },
  });
});

test('[M6] inputs are checked before anything runs: the message names the workflow and the input', () => {
  const given = definition([], {
    inputs: { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] },
  });
  expect(() => checkInputs(given, { count: 1 })).not.toThrow();
  const fault = {
    code: 'invalid_request',
    message: expect.stringMatching(/^Workflow "pipeline": inputs\.count: /) as string,
  };
  for (const inputs of [{ count: 'one' }, {}]) {
    expect(() => checkInputs(given, inputs)).toThrow(expect.objectContaining(fault) as Error);
  }
  const meter = new WorkMeter(limits.schemaSteps);
  checkInputs(given, { count: 1 }, meter);
  expect(meter.spent).toBeGreaterThan(0);
});

test('[D3] [M6] inputs get defaults of the manifest and of their schema, and null means absent', () => {
  const given = definition([], {
    inputs: {
      type: 'object',
      properties: { count: { type: 'number' }, unit: { type: 'string', default: 'C' }, note: { type: 'string' } },
      required: ['count', 'unit'],
    },
    defaults: { count: 3 },
  });
  expect(completeInputs(given, { note: null })).toEqual({ count: 3, unit: 'C' });
  expect(completeInputs(given, { count: 4, unit: null })).toEqual({ count: 4, unit: 'C' });
  expect(() => checkInputs(given, { note: null })).not.toThrow();
});
