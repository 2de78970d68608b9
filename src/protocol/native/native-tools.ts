/** Native function calling (P17): what the endpoint is told may be called, and what a called name means. */
import type { ActionType } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifest.ts';
import { INTERNAL_ACTIONS } from '../../domain/manifest.ts';
import type { ToolSummary } from '../../domain/ports.ts';
import { internalUses } from '../prompt/prompt.ts';

const TEXT = { type: 'string' };
const ANY = {};
const INPUTS = { type: 'object', description: 'Values that the code gets as data' };

const CODE: Readonly<Record<'python' | 'shell' | 'docker', Omit<ToolSummary, 'name'>>> = {
  python: {
    summary: 'Python 3 in a sandbox; what it prints is its result. `inputs` is a dict of that name in the code.',
    parameters: object({ code: TEXT, inputs: INPUTS }, ['code']),
  },
  shell: {
    summary:
      'A shell command line in a sandbox; its standard output is its result. `inputs` are environment variables.',
    parameters: object({ command: TEXT, inputs: INPUTS }, ['command']),
  },
  docker: {
    summary: 'One container run; its standard output is its result.',
    parameters: object({ image: TEXT, command: TEXT, args: { type: 'array', items: TEXT }, inputs: INPUTS }, [
      'image',
      'command',
    ]),
  },
};

const FEED = { id: TEXT, type: TEXT, interval: ANY, source: { type: 'object' } };

const INTERNAL: Readonly<Record<(typeof INTERNAL_ACTIONS)[number], JsonObject>> = {
  set_variable: object({ key: TEXT, value: ANY }, ['key', 'value']),
  delete_variable: object({ key: TEXT }, ['key']),
  add_context_feed: object(FEED, ['id', 'type', 'source']),
  update_context_feed: object(FEED, ['id']),
  remove_context_feed: object({ id: TEXT }, ['id']),
  list_context_feeds: object({}, []),
  clear_context: object({}, []),
};

const AGENT = object({ message: TEXT, context: ANY }, ['message']);
const WORKFLOW: JsonObject = { type: 'object', additionalProperties: true };

/**
 * Everything that the agent may call by function calls: tools, capabilities, internal actions, agents,
 * workflows. Of two with one name the first counts, here and when it is called.
 */
export function nativeTools({ agent, tools }: ResolvedAgent): ToolSummary[] {
  const own = [...tools.values()].map(({ name, summary, parameters }) => ({ name, summary, parameters }));
  const further: ToolSummary[] = [
    ...agent.capabilities.map((name) => ({ name, ...CODE[name] })),
    ...internalUses(agent).map(([name, use]) => ({ name, summary: use, parameters: INTERNAL[name] })),
    ...agent.imports.agents.map((name) => ({
      name,
      summary: 'An agent that works on its own and answers',
      parameters: AGENT,
    })),
    ...agent.imports.workflows.map((name) => ({ name, summary: 'A workflow', parameters: WORKFLOW })),
  ];
  const listed = new Map<string, ToolSummary>();
  for (const tool of [...own, ...further]) if (!listed.has(tool.name)) listed.set(tool.name, tool);
  return [...listed.values()];
}

/** The action type that a called name stands for; what the agent does not have is a tool that does not exist. */
export function nativeType({ agent, tools }: ResolvedAgent, name: string): ActionType {
  if (tools.has(name)) return 'tool';
  const capability = agent.capabilities.find((known) => known === name);
  if (capability !== undefined) return capability;
  if ((INTERNAL_ACTIONS as readonly string[]).includes(name)) return 'internal';
  if (agent.imports.agents.includes(name)) return 'agent';
  return agent.imports.workflows.includes(name) ? 'workflow' : 'tool';
}

function object(properties: JsonObject, required: string[]): JsonObject {
  return { type: 'object', properties, required };
}
