/**
 * Session events, as stored in the journal and read by clients (H3). Their types come from the schemas in
 * event-table.ts, which this file imports as types only. Payload names are the wire names, so the stored form is the
 * sent form (replays are byte-identical, J4).
 */
import type { EventDataOf, JOURNALED, LIVE } from './event-table.ts';
import type { JsonObject } from './json.ts';

type Tables = typeof JOURNALED & typeof LIVE;

/** Events with a seq: written to the journal before they are sent (J1). */
export type JournaledEventType = keyof typeof JOURNALED;
/** Events without a seq: live patches, superseded by the journal's text (J4). */
export type LiveEventType = keyof typeof LIVE;
export type EventType = JournaledEventType | LiveEventType;

/** Data of an event, by type. */
export type EventData = { readonly [T in EventType]: Readonly<EventDataOf<Tables[T]>> };

export interface EventHead {
  readonly session_id: string;
  readonly run_id: string;
  readonly iteration: number;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly action_id?: string;
  readonly action_name?: string;
}

/** One event as clients see it (H2). `seq` is null for live events. */
export type EventOf<T extends EventType> = T extends EventType
  ? EventHead & {
      readonly seq: T extends LiveEventType ? null : number;
      readonly type: T;
      readonly data: EventData[T];
    } & (Tables[T]['about'] extends 'action' ? { readonly action_id: string } : unknown)
  : never;

export type SessionEvent = EventOf<EventType>;

/** The part of an event that a reader may have; null: nothing. */
export type EventView = (event: SessionEvent) => SessionEvent | null;

/** The events that end a run. */
export const RUN_END_EVENTS: ReadonlySet<EventType> = new Set<EventType>([
  'agent_completed',
  'agent_failed',
  'agent_cancelled',
]);

/** The events that end the stream of the request that started a run: its end, or that it waits for people and clients (J8, C3). */
export const RUN_TERMINAL_EVENTS: ReadonlySet<EventType> = new Set<EventType>([...RUN_END_EVENTS, 'agent_waiting']);

/** Whether a run that waited for people and clients goes on. Background actions may write events while it still waits. */
export function endsWait({ type }: SessionEvent): boolean {
  return type === 'approval_resolved' || type === 'client_tool_settled';
}

/** An appended event, as its writer sees it. */
export interface WrittenEvent<T extends JournaledEventType> {
  /** 0 if the event was not written: a replay does not write it again. */
  readonly seq: number;
  readonly data: EventData[T];
}

/** What the writer of an event gives. */
interface EventEntry<T extends EventType> {
  readonly type: T;
  readonly runId: string;
  readonly iteration: number;
  readonly at: number;
  readonly actionId?: string;
  readonly actionName?: string;
  readonly data: EventData[T];
}

/** One row to append: an event plus `state`, which only recovery needs and which is never sent to clients. */
export interface JournalEntry<T extends JournaledEventType = JournaledEventType> extends EventEntry<T> {
  readonly state?: JsonObject;
  /** The members of the data that were redacted, as they were; never sent either (C9). */
  readonly raw?: JsonObject;
}

/** @param seq null for a live event */
export function toEvent<T extends EventType>(sessionId: string, seq: number | null, entry: EventEntry<T>): EventOf<T> {
  const event = {
    seq,
    type: entry.type,
    session_id: sessionId,
    run_id: entry.runId,
    iteration: entry.iteration,
    timestamp: entry.at,
    ...(entry.actionId === undefined ? {} : { action_id: entry.actionId }),
    ...(entry.actionName === undefined ? {} : { action_name: entry.actionName }),
    data: entry.data,
  };
  // TypeScript does not resolve the conditional type of a generic `T`.
  return event as unknown as EventOf<T>;
}

/** Members of a stored event, without its data. */
export type StoredHead = EventHead & { readonly seq: number | null; readonly type: EventType };

/** A piece of an open block's text. */
export type TextPatch = EventOf<'thought' | 'text' | 'response'>;

export function isTextPatch(event: SessionEvent): event is TextPatch {
  return event.type === 'text' || event.type === 'response' || event.type === 'thought';
}

/** An event that closes a block, with its whole text. */
export type BlockEnd = EventOf<'thought_completed' | 'text_completed' | 'response_completed'>;

/** The type of a block's patches, by its closing event. */
const PATCH_OF = {
  thought_completed: 'thought',
  text_completed: 'text',
  response_completed: 'response',
} as const satisfies Record<BlockEnd['type'], TextPatch['type']>;

export function isBlockEnd(event: SessionEvent): event is BlockEnd {
  return Object.hasOwn(PATCH_OF, event.type);
}

/** The whole text of a block as one patch, for a reader that may have missed patches (J4). */
export function wholePatch(end: BlockEnd): TextPatch {
  const { session_id, run_id, iteration, timestamp, data } = end;
  const patch = { segment: data.segment, offset: 0, delta: data.content };
  return { seq: null, type: PATCH_OF[end.type], session_id, run_id, iteration, timestamp, data: patch };
}

/** Events whose patches were not sent: the whole text of each block precedes its end. */
export function withWholeTexts(events: readonly SessionEvent[]): SessionEvent[] {
  return events.flatMap((event): SessionEvent[] => (isBlockEnd(event) ? [wholePatch(event), event] : [event]));
}

/** Joins two patches if the second continues exactly where the first ends; else null. */
export function joinPatches(first: SessionEvent, second: SessionEvent): TextPatch | null {
  if (!isTextPatch(first) || !isTextPatch(second) || first.type !== second.type) return null;
  const { segment, offset, delta } = first.data;
  if (segment !== second.data.segment || offset + delta.length !== second.data.offset) return null;
  return { ...first, data: { segment, offset, delta: delta + second.data.delta } };
}

/** Unparsed data of events that were read: most are sent without ever being parsed. */
const unparsed = new WeakMap<object, string>();

/** An event whose data is the JSON `text`, parsed on first access. The journal validated it when it was written. */
export function storedEvent(head: StoredHead, text: string): SessionEvent {
  // Keeps either the text or the parsed data.
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
  // `type` and `data` belong together: they are from one row.
  return event as unknown as SessionEvent;
}

/** The data of an event as JSON. */
export function encodeData(event: SessionEvent): string {
  return unparsed.get(event) ?? JSON.stringify(event.data);
}

/** The wire form of an event (H2). Live and replayed, the same event gives the same bytes (J4). */
export function encodeEvent(event: SessionEvent): string {
  const text = unparsed.get(event);
  if (text === undefined) return JSON.stringify(event);
  const { seq, type, session_id, run_id, iteration, timestamp, action_id, action_name } = event;
  const head = JSON.stringify({ seq, type, session_id, run_id, iteration, timestamp, action_id, action_name });
  return `${head.slice(0, -1)},"data":${text}}`;
}
