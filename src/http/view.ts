/**
 * What a token with `view` and without `read` gets (T1): everything but prompts, with the texts of skills, thoughts, feeds and
 * facts, also those of sub-agents. Everything that such a token can read passes through here. Operations that have nothing
 * else are refused by the table (operations.ts).
 *
 * Which actions are hidden is a column of the table of actions (domain/internal-actions.ts). What is unknown is hidden: the target
 * of a rejected action may be a misspelt name, and text that could not be read may contain anything.
 *
 * Invariants:
 *  1. Each member of an event that may hold text, lists or objects has its rules in the table of events, and each code of a
 *     warning one here: a new one without a rule does not compile. A number, a flag or a member of an enumeration is shown unless
 *     the table says otherwise.
 *  2. Of a hidden action, a view has only the members that have a rule: others may be of another version.
 */
import { ACTION_TYPES, actionSpec } from '../domain/action-types.ts';
import { INTERNAL_ACTIONS, isHiddenFromViews, isInternalAction } from '../domain/internal-actions.ts';
import { EVENTS, HIDDEN, NO_CALL } from '../domain/event-table.ts';
import type { Hide } from '../domain/event-table.ts';
import { isTextPatch } from '../domain/event.ts';
import type { EventOf, SessionEvent } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { WarningCode } from '../domain/protocol-event.ts';
import type { SeededCall, SeededMessage } from '../domain/seeded.ts';
import type { SessionView } from '../engine/session/session-view.ts';

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

/** What hides something of an event, and all of its members. */
interface Plan {
  readonly members: readonly string[];
  readonly always: readonly (readonly [member: string, as: Hide])[];
  /** If it is about a hidden action. */
  readonly hidden: Plan['always'];
}

const PLANS: ReadonlyMap<string, Plan> = new Map(
  Object.entries(EVENTS).flatMap(([type, { isHidden = false, rules }]): [string, Plan][] => {
    if (isHidden) return [];
    const always = rules.flatMap(([member, { inViews }]): [string, Hide][] =>
      inViews === undefined ? [] : [[member, inViews === 'event' ? viewOfMember : inViews]],
    );
    const ofHidden = rules.flatMap(([member, rule]): [string, Hide][] =>
      rule.ofHidden === undefined ? [] : [[member, rule.ofHidden]],
    );
    return [[type, { members: rules.map(([member]) => member), always, hidden: [...always, ...ofHidden] }]];
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
function viewOfMember(event: unknown): unknown {
  return event === undefined ? undefined : (viewOf(event as SessionEvent) ?? undefined);
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
