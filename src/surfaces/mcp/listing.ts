/**
 * What clients of the Model Context Protocol see as tools (E4): each agent, and the tools and workflows whose manifests say
 * `expose: mcp`.
 *
 * Invariants:
 *  1. Every name is given once. Agents keep their names, then tools, then workflows; a name that is taken gets the kind as
 *     a prefix.
 *  2. Names are those of manifests, so they have only characters that the protocol and the hosts of models allow.
 */
import type { Effects } from '../../domain/action-types.ts';
import type { ExposedManifests } from '../../domain/catalog.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

export type McpTarget =
  | { readonly type: 'agent'; readonly name: string }
  /** `agent`: the one that calls it. */
  | { readonly type: 'tool'; readonly name: string; readonly agent: string }
  | { readonly type: 'workflow'; readonly name: string };

type ObjectSchema = JsonObject & { readonly type: 'object' };

/** A tool as the protocol lists it, and what it calls. */
export interface McpTool {
  readonly target: McpTarget;
  readonly listed: {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: ObjectSchema;
    readonly outputSchema?: ObjectSchema;
    readonly annotations?: McpHints;
  };
}

interface McpHints {
  readonly readOnlyHint: boolean;
  readonly idempotentHint: boolean;
  readonly destructiveHint: boolean;
}

/** Arguments of a call of an agent. */
const AGENT_INPUT: ObjectSchema = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'The message to the agent' },
    session: {
      type: 'string',
      minLength: 1,
      maxLength: limits.threadNameChars,
      description:
        'Continues a conversation: the "session_id" of an earlier answer, or a name of your own. Default: a new conversation',
    },
  },
  required: ['message'],
  additionalProperties: false,
};

/** Result of a call of an agent. */
const AGENT_OUTPUT: ObjectSchema = {
  type: 'object',
  properties: {
    session_id: { type: 'string', description: 'Pass it as "session" to continue the conversation' },
    run_id: { type: 'string' },
    status: {
      type: 'string',
      enum: ['completed', 'failed', 'cancelled', 'waiting', 'running'],
      description: '"waiting": for an approval, or for the result of a client tool; "running": the connection was lost',
    },
    response: { type: 'string', description: 'The answer' },
    error: { type: 'object', properties: { code: { type: 'string' }, message: { type: 'string' } } },
    approvals: { type: 'array', items: { type: 'object' }, description: 'Open approvals' },
  },
  required: ['session_id', 'run_id', 'status'],
};

export function toolsOf({ agents, tools, workflows }: ExposedManifests): McpTool[] {
  const own = new Set([...agents, ...tools, ...workflows].map(({ name }) => name));
  const given = new Set(agents.map(({ name }) => name));
  const nameFor = (kind: 'tool' | 'workflow', name: string): string => {
    let free = name;
    // A prefixed name must not be the own name of another one, which is named later.
    while (given.has(free) || (free !== name && own.has(free))) free = `${kind}_${free}`;
    given.add(free);
    return free;
  };
  return [
    ...agents.map(({ name, summary }): McpTool => ({
      target: { type: 'agent', name },
      listed: { name, description: summary, inputSchema: AGENT_INPUT, outputSchema: AGENT_OUTPUT },
    })),
    ...tools.map(({ name, summary, parameters, effects, agent }): McpTool => ({
      target: { type: 'tool', name, agent },
      listed: {
        name: nameFor('tool', name),
        description: summary,
        inputSchema: { ...parameters, type: 'object' },
        annotations: hintsOf(effects),
      },
    })),
    ...workflows.map(({ name, summary, inputs }): McpTool => ({
      target: { type: 'workflow', name },
      listed: { name: nameFor('workflow', name), description: summary, inputSchema: { ...inputs, type: 'object' } },
    })),
  ];
}

/** What the effects of a repeated call say about a call; a client assumes the worst of what they do not say. */
function hintsOf(effects: Effects): McpHints {
  return {
    readOnlyHint: effects === 'pure',
    idempotentHint: effects !== 'unsafe',
    destructiveHint: effects !== 'pure',
  };
}
