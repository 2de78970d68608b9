/** The agent that runs a workflow's steps: it has no conversation, only the workflow's imports (M6, X4). */
import { limits } from '../../domain/limits.ts';
import { DEFAULT_PROTOCOL } from '../../domain/manifest.ts';
import type { ResolvedAgent, ResolvedWorkflow, ToolDefinition } from '../../domain/manifest.ts';
import { COLLECT, REFUSE } from '../../domain/workflow-actions.ts';

/** Returns its parameters: used for groups and outputs. */
const COLLECTOR: ToolDefinition = {
  kind: 'Tool',
  name: COLLECT,
  version: '1.0',
  summary: 'Returns its parameters.',
  description: '',
  tags: [],
  metadata: {},
  implementation: { type: 'builtin', entrypoint: 'collect' },
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

const REFUSER: ToolDefinition = {
  ...COLLECTOR,
  name: REFUSE,
  summary: 'Fails by name.',
  implementation: { type: 'builtin', entrypoint: 'refuse' },
};

/** Steps are written by their author and cannot be withdrawn, so none is held until the end of the text (S14). */
function eager([name, tool]: readonly [string, ToolDefinition]): [string, ToolDefinition] {
  return [name, { ...tool, dispatch: 'eager' }];
}

export function agentOfWorkflow({ workflow, ...imported }: ResolvedWorkflow): ResolvedAgent {
  const { name, version, summary, description, tags, metadata, imports } = workflow;
  return {
    ...imported,
    tools: new Map([...[...imported.tools].map(eager), [COLLECT, COLLECTOR], [REFUSE, REFUSER]]),
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
      imports: { ...imports, tools: [...imports.tools, COLLECT, REFUSE] },
      capabilities: [],
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
      variables: {},
      secrets: [],
    },
  };
}
