/** The agent that runs a workflow's steps: it has no conversation, only the workflow's imports (M6, X4). */
import { limits } from '../../domain/limits.ts';
import { DEFAULT_PROTOCOL } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { TOOL_DEFAULTS } from '../../domain/tool-defaults.ts';
import { ASK, COLLECT, REFUSE, VALUE } from '../../domain/workflow-actions.ts';

/** The tools of the actions that the runtime adds. Of `ask`, the approval is the answer of the person. */
const OWN: readonly ToolDefinition[] = (
  [
    [COLLECT, 'collect', 'Returns its parameters.'],
    [REFUSE, 'refuse', 'Fails by name.'],
    [VALUE, 'value', 'Returns a value.'],
    [ASK, 'collect', 'Asks a person.'],
  ] as const
).map(([name, entrypoint, summary]) => ({
  ...TOOL_DEFAULTS,
  name,
  summary,
  implementation: { type: 'builtin', entrypoint },
  parameters: { type: 'object', additionalProperties: true },
  effects: 'pure',
  ...(name === ASK ? { approval: 'always' } : {}),
}));

/** Steps are declared by their author and cannot be withdrawn, so none is held until the end of the generation (S14). */
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
