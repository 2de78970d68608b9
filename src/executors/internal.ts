/** `type="internal"`: the model changes its own session: variables, feeds, context; reads skills, tools and earlier turns, and keeps facts about its user (I, C8, L4, C10). */
import { EngineError } from '../domain/errors.ts';
import type { ActionOutcome } from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import {
  INTERNAL_ACTIONS,
  internalActionSpec,
  isInternalAction,
  isMemoryAction,
  whyNotUsable,
} from '../domain/internal-actions.ts';
import type { AgentPart, InternalAction, InternalActionRules } from '../domain/internal-actions.ts';
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

/** What the agent of an action has. */
export interface AgentParts extends Partial<Readonly<Record<AgentPart, boolean>>> {
  /** Why it keeps no facts here, although its manifest says so. */
  readonly withoutFacts?: WithoutFacts | null;
}

const WITHOUT_FACTS: Readonly<Record<WithoutFacts, string>> = {
  no_user: 'this session has no user_id',
  sub_agent: 'sub-agents keep no facts about users',
};
const MISSING: Readonly<Record<AgentPart, string>> = {
  skills: 'this agent has no skills',
  short_tools: 'the prompt describes all tools of this agent',
  facts: 'this agent keeps no facts about users',
  earlier_turns: 'the prompt has all turns, because the manifest sets no memory',
};
const REFUSED = {
  disabled: 'is not allowed: internal actions are disabled for this agent',
  blocked: 'is blocked for this agent',
  unlisted: 'is not allowed for this agent',
} as const;

/** Why an agent may not use an internal action, or null if it may. */
export function internalPolicy(
  rules: InternalActionRules,
  name: string,
  { withoutFacts = null, ...parts }: AgentParts = {},
): { readonly code: 'unknown_name' | 'not_allowed' | 'no_user'; readonly message: string } | null {
  const why = (action: InternalAction): ReturnType<typeof whyNotUsable> =>
    whyNotUsable(rules, action, (what) => parts[what] === true);
  if (!isInternalAction(name)) {
    const known = INTERNAL_ACTIONS.filter((action) => why(action) !== 'missing').join(', ');
    return {
      code: 'unknown_name',
      message: `No internal action is called "${name.slice(0, limits.excerptChars)}" (known: ${known})`,
    };
  }
  const found = why(name);
  if (found === null) return null;
  const listed = INTERNAL_ACTIONS.filter((action) => why(action) === null).join(', ') || 'none';
  const { needs } = internalActionSpec(name);
  const isOfUser = found === 'missing' && needs?.what === 'facts';
  const reason =
    found !== 'missing' || needs === null
      ? REFUSED[found as keyof typeof REFUSED]
      : `is not available: ${isOfUser && withoutFacts !== null ? WITHOUT_FACTS[withoutFacts] : MISSING[needs.what]}`;
  return {
    code: isOfUser && withoutFacts === 'no_user' ? 'no_user' : 'not_allowed',
    message: `The internal action "${name}" ${reason} (allowed: ${listed})`,
  };
}

export const internalExecutor: Executor = {
  async execute(call, context) {
    const { action, parameters } = call;
    const { variables, internalActions, feeds, signal } = context;
    const refusal = internalPolicy(internalActions, action.name, {
      skills: (context.skills?.known.size ?? 0) > 0,
      short_tools: context.tools != null,
      facts: context.memory != null,
      withoutFacts: context.withoutFacts ?? null,
      earlier_turns: context.recalls === true,
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
