/** What a test gives a session, and the checks of its names. */
import type { Catalog } from '../src/catalog/catalog.ts';
import { createCatalog } from '../src/catalog/catalog.ts';
import type { ActionType } from '../src/domain/action.ts';
import { ACTION_TYPES } from '../src/domain/action-types.ts';
import type { JsonObject } from '../src/domain/json.ts';
import { nearestNames } from '../src/domain/nearest.ts';
import type { Project } from '../src/durable/project.ts';
import type { PassedTool } from '../src/engine/session/passed-tools.ts';
import type { GivenMessage } from '../src/policies/seeded-history.ts';
import type { CallFunction } from './functions.ts';
import type { ScriptedModel } from './scripted.ts';

export interface SessionOptions {
  /** The agent of the conversation. */
  readonly agent?: string;
  /** Instead of an agent: a workflow, which `session.start(inputs)` runs. */
  readonly workflow?: string;
  /** The replies of the model: of all agents together in the order of their calls, or by the name of each agent. */
  readonly model?: ScriptedModel | Readonly<Record<string, ScriptedModel>>;
  /** Functions in place of tools, by name. The parameters are checked as before. */
  readonly tools?: Readonly<Record<string, CallFunction>>;
  /** Functions in place of all actions of a type. */
  readonly actions?: Readonly<Partial<Record<ActionType, CallFunction>>>;
  /**
   * Answers the outbound requests of http tools, code tools and built-in tools. The rules for addresses and headers hold
   * as in the Worker. Default: every request fails.
   */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
  /** `host:port` entries that outbound requests may reach regardless of their address (`ALLOW_HOSTS`). */
  readonly allowHosts?: readonly string[];
  /** Secrets of the Worker by name (`TOOL_…`). */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Bindings of the Worker for code tools, by name. */
  readonly env?: Readonly<Record<string, unknown>>;
  /** First session variables. */
  readonly variables?: JsonObject;
  readonly userId?: string;
  /** The conversation before the session, in the form of the OpenAI protocol. */
  readonly history?: readonly GivenMessage[];
  /** Client tools that come with each message; the agent's manifest must allow them. */
  readonly clientTools?: readonly PassedTool[];
  /** The time at which the test begins. Default: the start of 2026, UTC. */
  readonly now?: Date;
}

/** The options with the names that they refer to. @throws Error for an unknown name, with the nearest known one */
export function readOptions(project: Project, options: SessionOptions): Catalog {
  const { data } = createCatalog(project.catalog);
  const agents = namesOf(data.agents);
  const workflows = namesOf(data.workflows);
  const scoped = data.scoped?.map(({ definition }) => definition) ?? [];
  const { agent, workflow, model = {}, tools = {}, actions = {}, secrets = {} } = options;
  if ((agent === undefined) === (workflow === undefined)) {
    throw new Error(`openSession needs an agent or a workflow${listed('agents', agents)}`);
  }
  if (agent !== undefined) requireKnown('agent', agent, agents);
  if (workflow !== undefined) requireKnown('workflow', workflow, workflows);
  const tooled = namesOf([...data.tools, ...scoped.filter(({ kind }) => kind === 'Tool')]);
  for (const name of Object.keys(tools)) requireKnown('tool', name, tooled);
  for (const name of Object.keys(actions)) requireKnown('action type', name, ACTION_TYPES);
  const modelled = namesOf([...data.agents, ...data.workflows, ...scoped]);
  if (!isScript(model)) for (const name of Object.keys(model)) requireKnown('agent', name, modelled);
  const wrong = Object.keys(secrets).find((name) => !name.startsWith('TOOL_'));
  if (wrong !== undefined) throw new Error(`The name of the secret "${wrong}" must begin with TOOL_`);
  const replaced = <T extends { readonly kind: string; readonly name: string }>(definition: T): T =>
    definition.kind === 'Tool' && Object.hasOwn(tools, definition.name)
      ? { ...definition, implementation: REPLACED }
      : definition;
  return createCatalog(
    {
      ...data,
      tools: data.tools.map(replaced),
      ...(data.scoped === undefined
        ? {}
        : { scoped: data.scoped.map((each) => ({ ...each, definition: replaced(each.definition) })) }),
    },
    () => true,
  );
}

export function isScript(model: NonNullable<SessionOptions['model']>): model is ScriptedModel {
  return 'steps' in model && Array.isArray(model.steps);
}

/** A replaced tool needs no secret, no runner and no client. The function runs before this. */
const REPLACED = { type: 'builtin', entrypoint: 'echo' } as const;

/** Names in an error. */
const LISTED_NAMES = 20;

function namesOf(definitions: readonly { readonly name: string }[]): string[] {
  return [...new Set(definitions.map(({ name }) => name))].sort();
}

function requireKnown(kind: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return;
  const [nearest] = nearestNames(name, known);
  const meant = nearest === undefined ? '' : `; did you mean "${nearest}"?`;
  throw new Error(`openSession knows no ${kind} "${name}"${meant}${listed(`${kind}s`, known)}`);
}

function listed(kinds: string, names: readonly string[]): string {
  const more = names.length > LISTED_NAMES ? ', …' : '';
  return ` (${kinds} of the project: ${names.slice(0, LISTED_NAMES).join(', ') || 'none'}${more})`;
}
