/**
 * What a token with `view` and without `read` gets (T1): everything but prompts, with the texts of skills, thoughts, feeds and
 * facts, also those of sub-agents. Everything that such a token can read passes through here. Operations that have nothing
 * else are refused by the table (operations.ts).
 *
 * Which actions are hidden is a column of the table of actions (domain/action-types.ts). What is unknown is hidden: the target
 * of a rejected action may be a misspelt name, and text that could not be read may contain anything.
 *
 * Invariants:
 *  1. Each member of each event has a rule, and so has each code of a warning: a new one without a rule does not compile.
 *  2. Of a hidden action, a view has only the members that have a rule: others may be of another version.
 */
import {
  ACTION_TYPES,
  actionSpec,
  INTERNAL_ACTIONS,
  isHiddenFromViews,
  isInternalAction,
} from '../domain/action-types.ts';
import { isTextPatch } from '../domain/event.ts';
import type { EventData, EventOf, EventType, SessionEvent } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { WarningCode } from '../domain/protocol-event.ts';
import type { SeededCall, SeededMessage } from '../domain/seeded.ts';
import { callDigest } from '../engine/actions/call-digest.ts';
import type { SessionView } from '../engine/session/session-view.ts';

/** In place of a text that must exist. */
const HIDDEN = '[hidden]';

/** Of a call without parameters: that of the call itself would reveal what is hidden. */
const NO_CALL = callDigest(undefined, undefined);

/** What a view has in place of a member; undefined leaves it out. */
interface Hiding<V> {
  /** Always, or only if the event is about a hidden action. */
  readonly when: 'always' | 'hidden';
  readonly as: (value: V) => V;
}

type Rule<V> = 'shown' | Hiding<V>;
type OptionalNames<D> = { [M in keyof D]-?: object extends Pick<D, M> ? M : never }[keyof D];
type Rules<D> = {
  readonly [M in keyof D]-?: Rule<M extends OptionalNames<D> ? D[M] | undefined : D[M]>;
};

const shown = 'shown';
const omitted = { when: 'always', as: () => undefined } as const;
const omittedIfHidden = { when: 'hidden', as: () => undefined } as const;
const textIfHidden = { when: 'hidden', as: () => HIDDEN } as const;
const errorIfHidden = {
  when: 'hidden',
  as: (error: EventData['action_failed']['error']) => ({ ...error, message: HIDDEN }),
} as const;
const noObjectIfHidden = { when: 'hidden', as: () => ({}) } as const;

function ifHidden<const V>(value: V): { readonly when: 'hidden'; readonly as: () => V } {
  return { when: 'hidden', as: () => value };
}

const block = { segment: shown, content: shown, unclosed: shown, cut: shown } as const;
const patch = { segment: shown, offset: shown, delta: shown } as const;

/** The members of each event; null: the whole event is hidden. */
const EVENTS: { readonly [T in EventType]: Rules<EventData[T]> | null } = {
  agent_started: { agent: shown, version: shown, source: shown, model: shown },
  run_branched: { parent_run: shown, retry_of: shown, action_id: shown },
  message_received: { message_id: shown, content: shown, parts: shown },
  iteration_started: { iteration: shown, last: shown },
  plan_generated: {
    total: shown,
    by_type: shown,
    by_mode: shown,
    waves: shown,
    estimates: shown,
    critical_path: shown,
    edges: shown,
  },
  iteration_completed: { iteration: shown, final: shown, failure: shown },
  usage: {
    prompt_tokens: shown,
    completion_tokens: shown,
    cached_tokens: shown,
    estimated: shown,
    model: shown,
    cost: shown,
    feed: shown,
  },
  warning: { code: shown, message: textIfHidden },
  budget_exceeded: { budget: shown, limit: shown, used: shown },
  agent_waiting: { reason: shown, iterations: shown },
  agent_completed: { response: shown, outputs: shown, iterations: shown, usage: shown, failed_actions: shown },
  agent_failed: { error: shown, iterations: shown, usage: shown },
  agent_cancelled: { iterations: shown, usage: shown, reason: shown },
  thought_started: null,
  thought_completed: null,
  text_started: {},
  text_completed: block,
  response_started: { final: shown, completes: shown },
  response_completed: { ...block, final: shown, pending: shown, missing: shown, completes: shown },
  action_queued: {
    type: shown,
    mode: shown,
    depends_on: shown,
    output_key: shown,
    parameters: noObjectIfHidden,
    embedded_in_thought: shown,
    repaired: shown,
  },
  action_started: { attempt: shown, parameters: omittedIfHidden, parameters_cut: omittedIfHidden },
  // The message may quote the parameters, or list what is known.
  action_retrying: { attempt: shown, delay_ms: shown, error: errorIfHidden },
  action_completed: { output: ifHidden(null), ms: shown, attempt: shown, cached: shown },
  action_failed: { error: errorIfHidden, attempt: shown, ms: shown },
  // The condition, which may contain what the action does.
  action_skipped: { reason: shown, because: ifHidden(null) },
  action_cancelled: { reason: textIfHidden },
  action_rejected: {
    code: shown,
    message: textIfHidden,
    type: shown,
    mode: shown,
    line: shown,
    column: shown,
    // The text around an action may be a thought.
    excerpt: omitted,
    parameters: omittedIfHidden,
    parameters_cut: omittedIfHidden,
  },
  approval_requested: {
    approval_id: shown,
    type: shown,
    sha256: ifHidden(NO_CALL.sha256),
    bytes: ifHidden(NO_CALL.bytes),
    complete: ifHidden(false),
    redacted: ifHidden(true),
    parameters: omittedIfHidden,
    inputs: omittedIfHidden,
    reason: omittedIfHidden,
    question: omittedIfHidden,
  },
  approval_resolved: { approval_id: shown, approved: shown, note: omittedIfHidden, content: omittedIfHidden },
  policy_applied: {
    decision: shown,
    source: shown,
    rule: shown,
    message: omittedIfHidden,
    parameters: omittedIfHidden,
    parameters_cut: omittedIfHidden,
  },
  client_tool_called: { call_id: shown, name: shown, parameters: noObjectIfHidden },
  client_tool_settled: { call_id: shown, status: shown, sha256: omittedIfHidden },
  context_feed_updated: null,
  // The workspace needs another scope (C7).
  file_changed: null,
  skill_loaded: { name: shown, files: shown },
  // A fact is in the feed of the facts, and a summary in later prompts.
  memory_changed: {
    change: shown,
    summary: omitted,
    until_run: shown,
    turns: shown,
    usage: shown,
    key: omitted,
    value: omitted,
  },
  variable_changed: { key: shown, value: shown, deleted: shown },
  thought: null,
  text: patch,
  response: patch,
  // Raw model text contains thoughts.
  llm_token: null,
  progress: {
    stream: shown,
    text: omittedIfHidden,
    percent: shown,
    event: {
      when: 'always',
      as: (event: JsonObject | undefined) => (event === undefined ? undefined : (viewOfChild(event) ?? undefined)),
    },
  },
};

/** Whether views have the message of a warning: it quotes no text of the model, no feed and no file of the workspace. */
const WARNINGS: Readonly<Record<WarningCode | 'run_recovered', boolean>> = {
  forged_tag: true,
  stray_close_tag: true,
  unclosed: true,
  repaired_json: false,
  unknown_field: false,
  unknown_attribute: false,
  conflicting_field: false,
  foreign_form: false,
  invalid_field: false,
  duplicate_action: true,
  unknown_reference: true,
  missing_path: true,
  fire_and_forget_awaited: true,
  action_in_reasoning: true,
  text_too_large: true,
  tag_too_large: true,
  truncated: true,
  unknown_name: false,
  generation_cut: true,
  // The endpoint's own word.
  unknown_finish_reason: false,
  cache_ignored: true,
  overloaded: true,
  unknown_price: true,
  model_not_configured: true,
  model_fallback: true,
  // A server writes its own errors.
  mcp_unavailable: false,
  memory_unavailable: true,
  attachments_not_shown: true,
  feed_unavailable: false,
  tool_call_ignored: false,
  workspace_conflict: false,
  workspace_skipped: false,
  run_recovered: true,
};

/** The rules of an event that hide something, and all of its members. */
interface Plan {
  readonly members: readonly string[];
  readonly always: readonly (readonly [member: string, as: Hiding<unknown>['as']])[];
  readonly hidden: Plan['always'];
}

const PLANS: ReadonlyMap<string, Plan> = new Map(
  Object.entries(EVENTS).flatMap(([type, rules]): [string, Plan][] => {
    if (rules === null) return [];
    const found = Object.entries(rules as Readonly<Record<string, Rule<unknown>>>);
    const hiding = found.flatMap(([member, rule]) => (rule === shown ? [] : [{ member, ...rule }]));
    const plan = (which: typeof hiding): Plan['always'] => which.map(({ member, as }) => [member, as]);
    const always = plan(hiding.filter(({ when }) => when === 'always'));
    return [[type, { members: found.map(([member]) => member), always, hidden: plan(hiding) }]];
  }),
);

/** The event without hidden parts, null if nothing is left. Most events are returned as they are. */
function viewOf(event: SessionEvent): SessionEvent | null {
  const plan = PLANS.get(event.type);
  if (plan === undefined) return null;
  // The most frequent events; their data is not read.
  if (isTextPatch(event)) return event;
  const isHidden = isAboutHidden(event);
  const rules = isHidden ? plan.hidden : plan.always;
  if (rules.length === 0 || (event.type === 'progress' && !isHidden && event.data.event === undefined)) return event;
  const given = event.data as unknown as Readonly<Record<string, unknown>>;
  const data: Record<string, unknown> = isHidden
    ? Object.fromEntries(plan.members.flatMap((member) => (member in given ? [[member, given[member]]] : [])))
    : { ...given };
  for (const [member, as] of rules) {
    const value = as(given[member]);
    if (value === undefined) delete data[member];
    else data[member] = value;
  }
  // Nothing is left of the event of a child.
  if (event.type === 'progress' && event.data.event !== undefined && data['event'] === undefined) return null;
  const { data: _data, ...head } = event;
  const safe = event.type === 'action_rejected' && isHidden ? { ...head, ...labelOf(event) } : head;
  const { action_name: name, ...unnamed } = safe;
  return { ...(name === undefined ? unnamed : safe), data } as unknown as SessionEvent;
}

/** Whether the event is about an action that views hide, or that may be one. */
function isAboutHidden(event: SessionEvent): boolean {
  if (isHiddenFromViews(event.action_name)) return true;
  if (event.type === 'warning') return WARNINGS[event.data.code as WarningCode] !== true;
  return event.type === 'action_rejected' && !isKnown(event);
}

/**
 * Whether the target of a rejected action is certain, and not hidden. The parser rejects text that it has not read to its end,
 * so type and name may be others than it says. Names of imported targets are checked before dependencies, but after anything
 * else.
 */
function isKnown({ action_name: name, data: { type, code, line } }: EventOf<'action_rejected'>): boolean {
  if (type === null || line !== undefined || !ACTION_TYPES.includes(type)) return false;
  if (!actionSpec(type).named) return true;
  if (actionSpec(type).allowedBy === 'internal_actions') return name !== undefined && isInternalAction(name);
  return code === 'unknown_dependency' || code === 'dependency_cycle';
}

/** What names a rejected action: names and ids that break a rule are text of the model. */
function labelOf({ action_id: id, action_name: name }: EventOf<'action_rejected'>): {
  readonly action_id: string;
  readonly action_name: string | undefined;
} {
  return {
    action_id: /^[\w.-]{1,64}$/.test(id) ? id : HIDDEN,
    action_name: name !== undefined && isInternalAction(name) ? name : undefined,
  };
}

/** An event of a child session, which may contain one of its own child. */
function viewOfChild(event: JsonObject): JsonObject | null {
  return viewOf(event as unknown as SessionEvent) as unknown as JsonObject | null;
}

/**
 * Seeded calls come from another system, so their functions may have any names (C1). Those that contain the name of a hidden
 * action, in any spelling, are taken for it.
 */
function isHiddenFunction(name: string): boolean {
  const folded = foldedName(name);
  return HIDDEN_FUNCTIONS.some((hidden) => folded.includes(hidden));
}

/** Letters only, in lower case; singular. */
function foldedName(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
    .replace(/s$/, '');
}

const HIDDEN_FUNCTIONS = INTERNAL_ACTIONS.filter((name) => isHiddenFromViews(name)).map((name) => foldedName(name));

/** Of a call: what was remembered is in its arguments. */
function viewOfCall(call: SeededCall): SeededCall {
  return isHiddenFunction(call.function.name) ? { ...call, function: { ...call.function, arguments: '{}' } } : call;
}

function viewOfSeeded(message: SeededMessage, called: string | null): SeededMessage {
  if (message.role === 'assistant' && message.tool_calls !== undefined) {
    return { ...message, tool_calls: message.tool_calls.map((call) => viewOfCall(call)) };
  }
  // The call of a result is always known.
  const isHidden = message.role === 'tool' && (called === null || isHiddenFunction(called));
  return isHidden ? { ...message, content: HIDDEN } : message;
}

/**
 * What the stored input of a run has for views. Programs may contain thoughts, instructions and client tools are in the prompt,
 * and an action that runs again has its parameters.
 */
const INPUT = ['type', 'content', 'metadata', 'inputs'] as const;

function viewOfInput(input: JsonObject): JsonObject {
  return Object.fromEntries(INPUT.flatMap((name) => (input[name] === undefined ? [] : [[name, input[name]]])));
}

interface ApprovalText {
  readonly name: string | null;
  readonly parameters: JsonObject | null;
}

function viewOfApproval<A extends ApprovalText>(approval: A, hidden: Partial<A>): A {
  return isHiddenFromViews(approval.name) ? { ...approval, ...hidden } : approval;
}

const NO_TEXT = { ...NO_CALL, redacted: true, parameters: null, inputs: null, reason: null, question: null } as const;

/** The only view. */
export const VIEW: SessionView = {
  event: viewOf,
  seeded: viewOfSeeded,
  input: viewOfInput,
  openApproval: (approval) => viewOfApproval(approval, { ...NO_TEXT, complete: false }),
  approval: (approval) => viewOfApproval(approval, { ...NO_TEXT, note: null, content: null }),
};
