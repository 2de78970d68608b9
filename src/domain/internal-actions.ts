/**
 * The internal actions: all properties of each in one table, which the prompt, native functions, grammars, policies, views and
 * the executor read.
 *
 * To add an action: a row here, and what it does in executors/internal.ts.
 */
import type { ActionType, ParameterShape } from './action-types.ts';

/**
 * What some actions need: skills (C8), tools in short form (L4), facts about the user (C10), a limit of the turns in prompts
 * (C10).
 */
export type AgentPart = 'skills' | 'short_tools' | 'facts' | 'earlier_turns';

/** An action on the model's own session (I). The manifest's policy can restrict it. */
interface InternalActionSpec {
  readonly parameters: ParameterShape;
  /** Also accepted, but not shown to models, to save tokens. */
  readonly further: ParameterShape;
  /** Description in the prompt. */
  readonly prompt: string;
  /**
   * What the agent must have: no workflow may take such an action. `also`: that is enough, although internal actions are
   * disabled or restricted, unless the action is blocked; another place in the prompt shows it.
   */
  readonly needs: { readonly what: AgentPart; readonly also: boolean } | null;
  /** When it has completed, results of earlier iterations lose their names. */
  readonly forgetsResults: boolean;
  /**
   * Whether a token that may only view gets neither its parameters nor what came of it (T1): it shows feeds, or parts of the
   * prompt, such as the text of a skill (C8), tools (L4), facts about the user, any earlier value (C10).
   */
  readonly hiddenFromViews: boolean;
}

const FEED_FURTHER: ParameterShape = {
  'cache_ttl?': 'seconds',
  'max_tokens?': 'count',
  'enabled?': 'boolean',
  'on_error?': 'feed_on_error',
  'default?': 'json',
};

/** In the order in which prompts and messages list them. */
const INTERNAL_ACTION_TABLE = {
  set_variable: {
    parameters: { key: 'name', value: 'json' },
    further: {},
    prompt: '{key, value}: remember a value for the whole session, read as $key',
    needs: null,
    forgetsResults: false,
    hiddenFromViews: false,
  },
  delete_variable: {
    parameters: { key: 'name' },
    further: {},
    prompt: '{key}',
    needs: null,
    forgetsResults: false,
    hiddenFromViews: false,
  },
  add_context_feed: {
    parameters: { id: 'name', type: 'feed_type', 'interval?': 'seconds', source: 'feed_source' },
    further: FEED_FURTHER,
    prompt:
      '{id, type: on_demand|periodic, interval?, source: {"type":"internal","action":"system_clock"} or {type, name, action?, params?}}: shown to you at each turn',
    needs: null,
    forgetsResults: false,
    hiddenFromViews: true,
  },
  update_context_feed: {
    parameters: { id: 'name', 'type?': 'feed_type', 'interval?': 'seconds', 'source?': 'feed_source' },
    further: FEED_FURTHER,
    prompt: '{id, …the fields to change}',
    needs: null,
    forgetsResults: false,
    hiddenFromViews: true,
  },
  remove_context_feed: {
    parameters: { id: 'name' },
    further: {},
    prompt: '{id}',
    needs: null,
    forgetsResults: false,
    hiddenFromViews: true,
  },
  list_context_feeds: {
    parameters: {},
    further: { 'id?': 'name' },
    prompt: '{}',
    needs: null,
    forgetsResults: false,
    hiddenFromViews: true,
  },
  load_skill: {
    parameters: { name: 'text' },
    further: {},
    prompt: '{name}: read one of your skills',
    needs: { what: 'skills', also: true },
    forgetsResults: false,
    hiddenFromViews: true,
  },
  describe_tools: {
    parameters: { 'names?': 'strings', 'search?': 'text' },
    further: {},
    prompt:
      '{names?, search?}: the parameters of your tools, of several at once; search: words of a tool that is not listed',
    needs: { what: 'short_tools', also: true },
    forgetsResults: false,
    hiddenFromViews: true,
  },
  remember: {
    parameters: { key: 'name', value: 'text' },
    further: {},
    prompt: '{key, value}: keep a fact about the user for later sessions; the same key replaces it',
    needs: { what: 'facts', also: false },
    forgetsResults: false,
    hiddenFromViews: true,
  },
  forget: {
    parameters: { key: 'name' },
    further: {},
    prompt: '{key}: remove a fact about the user',
    needs: { what: 'facts', also: false },
    forgetsResults: false,
    hiddenFromViews: true,
  },
  recall: {
    parameters: { 'turns?': 'json', 'values?': 'json' },
    further: {},
    prompt: '{turns?, values?}: read earlier turns ["$turn_3", "$turn_4"], or earlier results ["$id"]',
    needs: { what: 'earlier_turns', also: true },
    forgetsResults: false,
    hiddenFromViews: true,
  },
  clear_context: {
    parameters: {},
    further: {},
    prompt: '{}: forget variables and earlier results',
    needs: null,
    forgetsResults: true,
    hiddenFromViews: false,
  },
} as const satisfies Record<string, InternalActionSpec>;

/** Reads a skill of the agent (C8). */
export const LOAD_SKILL = 'load_skill' satisfies InternalAction;

/** Describes tools that the prompt lists in short form (L4). */
export const DESCRIBE_TOOLS = 'describe_tools' satisfies InternalAction;

/** Returns its parameters: the model reads older values with it, which its prompt does not show (C10). */
export const RECALL = 'recall' satisfies InternalAction;

/** Idempotent: repeating one leaves the same state. */
export type InternalAction = keyof typeof INTERNAL_ACTION_TABLE;
export const INTERNAL_ACTIONS = Object.keys(INTERNAL_ACTION_TABLE) as readonly InternalAction[];

/** The properties of an internal action. */
export function internalActionSpec(name: InternalAction): InternalActionSpec {
  return INTERNAL_ACTION_TABLE[name];
}

export function isInternalAction(name: string): name is InternalAction {
  return Object.hasOwn(INTERNAL_ACTION_TABLE, name);
}

/**
 * Whether views hide what an action with this name has and returns (T1).
 *
 * @param name of an action that was accepted: one of the table, or that of another target
 */
export function isHiddenFromViews(name: string | null | undefined): boolean {
  return typeof name === 'string' && isInternalAction(name) && INTERNAL_ACTION_TABLE[name].hiddenFromViews;
}

/** Whether an action reads a skill. */
export function loadsSkill({ type, name }: { readonly type: ActionType; readonly name: string | null }): boolean {
  return type === 'internal' && name === LOAD_SKILL;
}

/** Whether the results of earlier iterations lose their names when this action has completed (I). */
export function forgetsResults({ type, name }: { readonly type: ActionType; readonly name: string | null }): boolean {
  return type === 'internal' && name !== null && isInternalAction(name) && internalActionSpec(name).forgetsResults;
}

/** Whether only agents may take it, and no workflow. */
export function isOfAgents(name: InternalAction): boolean {
  return INTERNAL_ACTION_TABLE[name].needs !== null;
}

/** Whether the action changes facts about the user (C10). */
export function isMemoryAction(name: string): name is MemoryAction {
  return isInternalAction(name) && INTERNAL_ACTION_TABLE[name].needs?.what === 'facts';
}

export type MemoryAction = {
  [Name in InternalAction]: (typeof INTERNAL_ACTION_TABLE)[Name]['needs'] extends { readonly what: 'facts' }
    ? Name
    : never;
}[InternalAction];

/** How an agent's manifest restricts internal actions. Without a list of allowed ones, all are allowed. */
export interface InternalActionRules {
  readonly enabled: boolean;
  readonly allowed: readonly string[] | null;
  readonly blocked: readonly string[];
}

/** Why an agent may not use an internal action; null: it may. `missing`: it does not have what the action needs. */
export function whyNotUsable(
  { enabled, allowed, blocked }: InternalActionRules,
  name: InternalAction,
  has: (what: AgentPart) => boolean,
): 'missing' | 'disabled' | 'blocked' | 'unlisted' | null {
  const { needs } = internalActionSpec(name);
  if (needs !== null && !has(needs.what)) return 'missing';
  if (needs?.also !== true && !enabled) return 'disabled';
  if (blocked.includes(name)) return 'blocked';
  return needs?.also === true || (allowed?.includes(name) ?? true) ? null : 'unlisted';
}
