/**
 * What a token with `view` and without `read` gets: everything but prompts, with the texts of skills, thoughts and feeds
 * (T1), also those of sub-agents. Operations that have nothing else are refused by the table (operations.ts).
 */
import { isTextPatch } from '../domain/event.ts';
import type { EventType, SessionEvent } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { SeededMessage } from '../domain/seeded.ts';

/** Raw model text contains thoughts. */
const HIDDEN: ReadonlySet<string> = new Set<EventType>([
  'thought_started',
  'thought_completed',
  'thought',
  'llm_token',
  'context_feed_updated',
]);

/**
 * Actions whose parameters and outputs show feeds, or parts of the prompt: the text of a skill (C8), tools (L4), facts about the
 * user, any earlier value (C10).
 */
const HIDDEN_ACTION = /^((add|update|remove|list)_context_feeds?|load_skill|describe_tools|remember|forget|recall)$/;

/** Whether the parameters, outputs and artifacts of an action with this name are hidden. */
export function isHiddenAction(name: string | null | undefined): boolean {
  return typeof name === 'string' && HIDDEN_ACTION.test(name);
}

/** The event without hidden parts, null if nothing is left. Most events are returned as they are. */
export function viewOf(event: SessionEvent): SessionEvent | null {
  if (HIDDEN.has(event.type)) return null;
  // The most frequent events; their data is not read.
  if (isTextPatch(event)) return event;
  const isHidden = isHiddenAction(event.action_name);
  switch (event.type) {
    case 'action_completed':
      return isHidden ? withData(event, { ...event.data, output: null }) : event;
    case 'action_queued':
      return isHidden ? withData(event, { ...event.data, parameters: {} }) : event;
    case 'memory_changed': {
      // A fact is in the feed of the facts, and a summary in later prompts.
      const { key: _key, value: _value, summary: _summary, ...data } = event.data;
      return withData(event, data);
    }
    case 'action_failed':
    case 'action_retrying':
      // The message may quote the parameters, or list what is known.
      return isHidden ? withData(event, { ...event.data, error: { ...event.data.error, message: '[hidden]' } }) : event;
    case 'action_started':
    case 'policy_applied':
    case 'approval_requested': {
      if (!isHidden) return event;
      const { parameters: _parameters, ...data } = event.data;
      return withData(event, data);
    }
    case 'action_rejected': {
      // The text around an action may be a thought.
      const { excerpt: _excerpt, parameters, ...data } = event.data;
      return withData(event, isHidden || parameters === undefined ? data : { ...data, parameters });
    }
  }
  if (event.type !== 'progress' || event.data.event === undefined) return event;
  const inner = viewOfChild(event.data.event);
  return inner === null ? null : ({ ...headOf(event), data: { ...event.data, event: inner } } as SessionEvent);
}

/** A message of the seeded history: results that show feeds or skills are hidden like those of actions (C1). */
export function viewOfSeeded(message: SeededMessage, called: string | null): SeededMessage {
  return message.role === 'tool' && isHiddenAction(called) ? { ...message, content: '[hidden]' } : message;
}

/** An event of a child session, which may contain one of its own child. */
function viewOfChild(event: JsonObject): JsonObject | null {
  return viewOf(event as unknown as SessionEvent) as unknown as JsonObject | null;
}

/** The event with other data. */
function withData(event: SessionEvent, data: object): SessionEvent {
  return { ...headOf(event), data } as SessionEvent;
}

/** All members but the data. */
function headOf(event: SessionEvent): object {
  const { data: _data, ...head } = event;
  return head;
}
