/** The agent that runs a workflow's steps: it has no conversation, only the workflow's imports (M6, X4). */
import { limits } from '../../domain/limits.ts';
import { DEFAULT_PROTOCOL } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { TOOL_DEFAULTS } from '../../domain/tool-defaults.ts';
import { ASK, COLLECT, REFUSE, VALUE } from '../../domain/workflow-actions.ts';

/** Returns its parameters: used for groups and outputs. */
const COLLECTOR: ToolDefinition = {
  ...TOOL_DEFAULTS,
  name: COLLECT,
  summary: 'Returns its parameters.',
  implementation: { type: 'builtin', entrypoint: 'collect' },
  parameters: { type: 'object', additionalProperties: true },
  effects: 'pure',
};

const REFUSER: ToolDefinition = {
  ...COLLECTOR,
  name: REFUSE,
  summary: 'Fails by name.',
  implementation: { type: 'builtin', entrypoint: 'refuse' },
};

const VALUES: ToolDefinition = {
  ...COLLECTOR,
  name: VALUE,
  summary: 'Returns a value.',
  implementation: { type: 'builtin', entrypoint: 'value' },
};

/** The approval is the answer of the person; the action itself only returns what was asked. */
const ASKER: ToolDefinition = { ...COLLECTOR, name: ASK, summary: 'Asks a person.', approval: 'always' };

const OWN = [COLLECTOR, REFUSER, VALUES, ASKER];

/** Steps are written by their author and cannot be withdrawn, so none is held until the end of the text (S14). */
function eager([name, tool]: readonly [string, ToolDefinition]): [string, ToolDefinition] {
  return [name, { ...tool, dispatch: 'eager' }];
}

export function agentOfWorkflow({ workflow, ...imported }: ResolvedWorkflow): ResolvedAgent {
  const { name, version, summary, description, tags, metadata, imports } = workflow;
  return {
    ...imported,
    tools: new Map([...[...imported.tools].map(eager), ...OWN.map((tool) => [tool.name, tool] as const)]),
    agent: {
      kind: 'Agent',
      name,
      version,
      summary,
      description,
      tags,
      metadata,
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
      imports: { ...imports, tools: [...imports.tools, ...OWN.map((tool) => tool.name)] },
      capabilities: workflow.capabilities ?? [],
      ...(workflow.redact === undefined ? {} : { redact: workflow.redact }),
      internalActions: { enabled: true, allowed: null, blocked: [] },
      protocol: DEFAULT_PROTOCOL,
      loop: {
        mode: 'autonomous',
        maxIterations: 1,
        maxParallelActions: workflow.maxParallelSteps,
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
      ...(workflow.policies === undefined ? {} : { policies: workflow.policies }),
      variables: {},
      secrets: [],
    },
  };
}
