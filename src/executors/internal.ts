/** `type="internal"`: the model changes its own session: variables, feeds, context; reads skills, tools and earlier turns, and keeps facts about its user (I, C8, L4, C10). */
import { EngineError } from '../domain/errors.ts';
import type { ActionOutcome } from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import {
  DESCRIBE_TOOLS,
  IMPLIED_ACTIONS,
  INTERNAL_ACTIONS,
  LOAD_SKILL,
  RECALL,
  isInternalAction,
  isMemoryAction,
} from '../domain/action-types.ts';
import type { InternalAction } from '../domain/action-types.ts';
import type { AgentDefinition } from '../domain/manifests/agent.ts';
import type { WithoutFacts } from '../domain/facts.ts';
import type { FeedStore } from '../domain/ports/session-stores.ts';
import { describeTools } from './describe-tools.ts';
import type { Executor } from './executor.ts';
import { failure } from '../domain/failure.ts';
import { failureOf, quote, wrongParameter } from './failure.ts';
import { loadSkill } from './load-skill.ts';
import { changeFacts, recoverChange } from './user-facts.ts';

/** Names that references can use (P12). */
const KEY = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** What allows an action although internal actions are disabled or restricted. */
export interface Implied {
  /** Skills, for `load_skill` (C8). */
  readonly skills?: boolean;
  /** Tools in short form, for `describe_tools` (L4). */
  readonly shortTools?: boolean;
  /** Facts about the user, for `remember` and `forget` (C10). Without this, the list of allowed actions decides nothing. */
  readonly facts?: boolean;
  readonly withoutFacts?: WithoutFacts | null;
  /** Prompts may lack turns, for `recall` (C10). */
  readonly earlierTurns?: boolean;
}

const WITHOUT_FACTS: Readonly<Record<WithoutFacts, string>> = {
  no_user: 'is not available: this session has no user_id',
  sub_agent: 'is not available: sub-agents keep no facts about users',
};

/**
 * Why an agent may not use an internal action, or null if it may: disabled wins over blocked, blocked wins over allowed; without a list of allowed actions, all are allowed. `load_skill`, `describe_tools` and `recall` are allowed if the agent has what they read.
 */
export function internalPolicy(
  { enabled, allowed, blocked }: AgentDefinition['internalActions'],
  name: string,
  has: Implied = {},
): { readonly code: 'unknown_name' | 'not_allowed' | 'no_user'; readonly message: string } | null {
  const implied: Readonly<Record<string, boolean | undefined>> = {
    [LOAD_SKILL]: has.skills,
    [DESCRIBE_TOOLS]: has.shortTools,
    [RECALL]: has.earlierTurns,
  };
  const isImplied = (action: string): boolean => implied[action] === true;
  const isMissing = (action: string): boolean =>
    IMPLIED_ACTIONS.includes(action) ? !isImplied(action) : isMemoryAction(action) && has.facts !== true;
  const mayUse = (action: InternalAction): boolean => {
    if (blocked.includes(action)) return false;
    if (isMissing(action)) return false;
    if (IMPLIED_ACTIONS.includes(action)) return true;
    return enabled && (allowed?.includes(action) ?? true);
  };
  if (!isInternalAction(name)) {
    const known = INTERNAL_ACTIONS.filter((action) => !isMissing(action)).join(', ');
    return {
      code: 'unknown_name',
      message: `No internal action is called "${name.slice(0, limits.excerptChars)}" (known: ${known})`,
    };
  }
  if (mayUse(name)) return null;
  const listed = INTERNAL_ACTIONS.filter(mayUse).join(', ') || 'none';
  const reasons: readonly (readonly [boolean, string])[] = [
    [name === LOAD_SKILL && !isImplied(name), 'is not available: this agent has no skills'],
    [name === DESCRIBE_TOOLS && !isImplied(name), 'is not available: the prompt describes all tools of this agent'],
    [
      name === RECALL && !isImplied(name),
      'is not available: the prompt has all turns, because the manifest sets no memory',
    ],
    [isMemoryAction(name) && isMissing(name), whyNoFacts(has)],
    [!IMPLIED_ACTIONS.includes(name) && !enabled, 'is not allowed: internal actions are disabled for this agent'],
    [blocked.includes(name), 'is blocked for this agent'],
  ];
  const why = reasons.find(([holds]) => holds)?.[1] ?? 'is not allowed for this agent';
  const isUserMissing = isMemoryAction(name) && has.withoutFacts === 'no_user';
  const message = `The internal action "${name}" ${why} (allowed: ${listed})`;
  return { code: isUserMissing ? 'no_user' : 'not_allowed', message };
}

function whyNoFacts({ withoutFacts }: Implied): string {
  return withoutFacts == null ? 'is not available: this agent keeps no facts about users' : WITHOUT_FACTS[withoutFacts];
}

export const internalExecutor: Executor = {
  async execute(call, context) {
    const { action, parameters } = call;
    const { variables, internalActions, feeds, signal } = context;
    const refusal = internalPolicy(internalActions, action.name, {
      skills: (context.skills?.known.size ?? 0) > 0,
      shortTools: context.tools != null,
      facts: context.memory != null,
      withoutFacts: context.withoutFacts ?? null,
      earlierTurns: context.recalls === true,
    });
    if (refusal !== null) return failure(refusal.code, refusal.message, { beforeDispatch: true });
    const name = action.name as InternalAction;
    const { key, value } = parameters;
    switch (name) {
      case 'set_variable': {
        if (typeof key !== 'string' || !KEY.test(key)) {
          return wrongParameter('key', 'a name of letters, digits and _, at most 64, not starting with a digit', key);
        }
        if (value === undefined) return wrongParameter('value', 'any JSON value', value);
        try {
          variables.set(key, value);
        } catch (fault) {
          // The store rejects values that are too large or too many: an error of the model.
          if (fault instanceof EngineError && fault.code === 'invalid_request')
            return failure('too_large', fault.message);
          if (fault instanceof EngineError && fault.code === 'variables_quota')
            return failure(fault.code, fault.message);
          return failureOf(fault, signal, 'internal');
        }
        return { ok: true, output: { key, value } };
      }
      case 'delete_variable': {
        if (typeof key !== 'string') return wrongParameter('key', 'the name of a variable', key);
        return { ok: true, output: { key, deleted: variables.delete(key) } };
      }
      case 'clear_context': {
        const keys = variables.entries().map(([name]) => name);
        for (const cleared of keys) variables.delete(cleared);
        // The engine removes the names of earlier results when this action ends.
        return { ok: true, output: { cleared: keys } };
      }
      case 'load_skill':
        return await loadSkill(parameters['name'], context);
      case 'describe_tools':
        return await describeTools(parameters, context);
      case 'remember':
      case 'forget':
        return await changeFacts(name, call, context);
      case 'recall':
        return Object.keys(parameters).length === 0
          ? wrongParameter('turns', 'a list of references, such as ["$turn_3"]', undefined)
          : { ok: true, output: parameters };
      case 'add_context_feed':
      case 'remove_context_feed':
      case 'update_context_feed':
      case 'list_context_feeds':
        return feeds === null
          ? failure('not_available', `"${name}" is not available here`, { beforeDispatch: true })
          : await changeFeeds(name, parameters, feeds, signal);
    }
  },

  async recover(call, context) {
    const { name } = call.action;
    return isMemoryAction(name) ? await recoverChange(name, call, context) : null;
  },
};

type FeedAction = Extract<InternalAction, `${string}_context_feed${'' | 's'}`>;

async function changeFeeds(
  name: FeedAction,
  parameters: JsonObject,
  feeds: FeedStore,
  signal: AbortSignal,
): Promise<ActionOutcome> {
  const { id } = parameters;
  if (name !== 'list_context_feeds' && typeof id !== 'string') return wrongParameter('id', 'the id of a feed', id);
  try {
    switch (name) {
      case 'list_context_feeds':
        return id === undefined ? { ok: true, output: feeds.list() } : oneFeed(feeds.list(), id);
      case 'add_context_feed':
        return { ok: true, output: await feeds.add(parameters) };
      case 'update_context_feed': {
        const { id: _, ...changes } = parameters;
        return { ok: true, output: await feeds.update(String(id), changes) };
      }
      case 'remove_context_feed':
        return { ok: true, output: { id: String(id), removed: feeds.remove(String(id)) } };
    }
  } catch (fault) {
    // Errors of the model.
    if (fault instanceof EngineError && fault.code === 'invalid_request')
      return failure('invalid_parameters', fault.message);
    if (fault instanceof EngineError && fault.code === 'forbidden') return failure('not_allowed', fault.message);
    return failureOf(fault, signal, 'internal');
  }
}

/** The feed with this id; a failure if there is none, or if it has no value. */
function oneFeed(feeds: readonly JsonObject[], id: Json): ActionOutcome {
  const found = feeds.find((feed) => feed['id'] === id);
  if (found === undefined) {
    const known = feeds.map((feed) => String(feed['id'])).join(', ') || 'none';
    return failure('invalid_parameters', `There is no feed ${quote(id)} (known: ${known})`, { beforeDispatch: true });
  }
  const { error = null, value = null } = found;
  if (error === null || value !== null) return { ok: true, output: found };
  return failure('feed_unavailable', `The feed ${quote(id)} has no value: ${String(error)}`, { retryable: true });
}
