/**
 * Session events: what the journal holds and clients read (H3). Payload names are the wire names,
 * so that what is stored is what is sent (replays are byte-identical, J4).
 */
import type { JsonObject } from './json.ts';

/** Events with a seq: written to the journal before they are sent (J1). */
export const JOURNALED_EVENTS = [
  'agent_started',
  'iteration_started',
  'plan_generated',
  'iteration_completed',
  'usage',
  'warning',
  'budget_exceeded',
  'agent_waiting',
  'agent_completed',
  'agent_failed',
  'agent_cancelled',
  'thought_started',
  'thought_completed',
  'text_started',
  'text_completed',
  'response_started',
  'response_completed',
  'action_queued',
  'action_started',
  'action_retrying',
  'action_completed',
  'action_failed',
  'action_skipped',
  'action_cancelled',
  'action_rejected',
  'approval_requested',
  'approval_resolved',
  'context_feed_updated',
  'variable_changed',
] as const;
export type JournaledEventType = (typeof JOURNALED_EVENTS)[number];

/** Events without a seq: live patches that the journal's text supersedes (J4). */
export const LIVE_EVENTS = ['thought', 'text', 'response', 'llm_token', 'progress'] as const;
export type LiveEventType = (typeof LIVE_EVENTS)[number];

export type EventType = JournaledEventType | LiveEventType;

/** The events that end a run, and with it the stream of the request that started it. */
export const RUN_TERMINAL_EVENTS: ReadonlySet<EventType> = new Set<EventType>([
  'agent_completed',
  'agent_failed',
  'agent_cancelled',
  'agent_waiting',
]);

/** One event as clients see it (H2). `seq` is null for live events. */
export interface SessionEvent {
  readonly seq: number | null;
  readonly type: EventType;
  readonly session_id: string;
  readonly run_id: string;
  readonly iteration: number;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly action_id?: string;
  readonly action_name?: string;
  readonly data: JsonObject;
}

/** One row to append: an event plus what only recovery needs (`state`), never sent to clients. */
export interface JournalEntry {
  readonly type: JournaledEventType;
  readonly runId: string;
  readonly iteration: number;
  readonly at: number;
  readonly actionId?: string;
  readonly actionName?: string;
  readonly data: JsonObject;
  readonly state?: JsonObject;
}

/** The data of events that were read, as text: most are sent on without ever being parsed. */
const unparsed = new WeakMap<SessionEvent, string>();

/** An event whose data is the JSON `text`, which is parsed when somebody asks for it. */
export function storedEvent(head: Omit<SessionEvent, 'data'>, text: string): SessionEvent {
  // Either the text or what was made of it is held.
  let data: JsonObject | string = text;
  const event = {
    ...head,
    get data(): JsonObject {
      if (typeof data === 'string') {
        data = JSON.parse(data) as JsonObject;
        unparsed.delete(event);
      }
      return data;
    },
  };
  unparsed.set(event, text);
  return event;
}

/** The data of an event as JSON. */
export function encodeData(event: SessionEvent): string {
  return unparsed.get(event) ?? JSON.stringify(event.data);
}

/** The wire form of an event (H2). The same event gives the same bytes, live and replayed (J4). */
export function encodeEvent(event: SessionEvent): string {
  const text = unparsed.get(event);
  if (text === undefined) return JSON.stringify(event);
  const { seq, type, session_id, run_id, iteration, timestamp, action_id, action_name } = event;
  const head = JSON.stringify({ seq, type, session_id, run_id, iteration, timestamp, action_id, action_name });
  return `${head.slice(0, -1)},"data":${text}}`;
}
