/** Native function calling (P17): the functions offered to the endpoint, and the action type of a called name. */
import { actionSpec } from '../../domain/action-types.ts';
import { internalActionSpec, isInternalAction } from '../../domain/internal-actions.ts';
import type { ActionType, ParameterKind, ParameterShape } from '../../domain/action-types.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { isPassed } from '../../domain/manifests/tool.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolSummary } from '../../domain/ports/model.ts';
import { internalUses } from '../prompt/allowed.ts';
import { hasShortTools, shownTools } from '../prompt/shown-tools.ts';
import { approvalNote, returnsOf, workflowReturns, workspaceNote } from '../prompt/returns.ts';

const SCHEMAS: Readonly<Record<ParameterKind, JsonObject>> = {
  text: { type: 'string' },
  string: { type: 'string' },
  strings: { type: 'array', items: { type: 'string' } },
  name: { type: 'string' },
  json: {},
  object: { type: 'object' },
  inputs: { type: 'object', description: 'Values passed to the code as data' },
  boolean: { type: 'boolean' },
  count: { type: 'integer' },
  seconds: {},
  feed_type: { type: 'string' },
  feed_source: { type: 'object' },
  feed_on_error: { type: 'string' },
};

/**
 * Everything that the agent may call by function call: tools, capabilities, internal actions, agents, workflows.
 * If two share a name, the first one counts, both in this list and when it is called. At most `limits.nativeFunctions`:
 * tools in short form come last, with parameters of any kind, and those that have no place are called in the text (L4).
 */
export function nativeTools(resolved: ResolvedAgent): ToolSummary[] {
  const { agent, tools, workflows } = resolved;
  const inFull = (tool: ToolDefinition): ToolSummary => ({
    name: tool.name,
    summary: described(tool.summary + approvalNote(resolved, 'tool', tool), returnsOf(tool)),
    parameters: tool.parameters,
  });
  const { full, short, functions } = shownTools(resolved);
  const inShort = short.slice(0, functions).map(({ tool, summary }) => ({
    name: tool.name,
    summary: (summary === '' ? tool.name : summary) + approvalNote(resolved, 'tool', tool),
    parameters: { type: 'object' },
  }));
  const typeSummary = (name: string, type: ActionType, returns = ''): ToolSummary => {
    const { functionSummary, parameters } = actionSpec(type);
    const schema = parameters === null ? { type: 'object', additionalProperties: true } : schemaOf(parameters);
    const summary = described((functionSummary ?? '') + approvalNote(resolved, type, null), returns);
    return { name, summary, parameters: schema };
  };
  const further: ToolSummary[] = [
    ...agent.capabilities.map((type) => typeSummary(type, type, workspaceNote(agent))),
    ...internalUses(agent, hasShortTools(resolved)).map((name) => {
      const { prompt, parameters } = internalActionSpec(name);
      return { name, summary: prompt, parameters: schemaOf(parameters) };
    }),
    ...agent.imports.agents.map((name) => typeSummary(name, 'agent')),
    ...agent.imports.workflows.map((name) => {
      const workflow = workflows.get(name);
      return typeSummary(name, 'workflow', workflow === undefined ? '' : workflowReturns(workflow));
    }),
  ];
  const listed = new Map<string, ToolSummary>();
  // Tools of a message come last: the functions before them are always the same (C3).
  const passed = [...tools.values()].filter(isPassed).map(inFull);
  const room = limits.nativeFunctions - further.length - inShort.length - passed.length;
  for (const tool of [...full.slice(0, Math.max(0, room)).map(inFull), ...further, ...inShort, ...passed]) {
    if (!listed.has(tool.name)) listed.set(tool.name, tool);
  }
  return [...listed.values()].slice(0, limits.nativeFunctions);
}

/** The action type of a called name. A name that the agent does not have is treated as an unknown tool. */
export function nativeType({ agent, tools }: ResolvedAgent, name: string): ActionType {
  if (tools.has(name)) return 'tool';
  const capability = agent.capabilities.find((known) => known === name);
  if (capability !== undefined) return capability;
  if (isInternalAction(name)) return 'internal';
  if (agent.imports.agents.includes(name)) return 'agent';
  return agent.imports.workflows.includes(name) ? 'workflow' : 'tool';
}

function described(summary: string, returns: string): string {
  return [summary, returns].filter((part) => part !== '').join('\n');
}

function schemaOf(shape: ParameterShape): JsonObject {
  const fields = Object.entries(shape).map(([written, kind]) => [written.replace(/\?$/, ''), SCHEMAS[kind]] as const);
  const required = Object.keys(shape).filter((written) => !written.endsWith('?'));
  return { type: 'object', properties: Object.fromEntries(fields), required };
}
