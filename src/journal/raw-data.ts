/**
 * What the data of an event was before text in it was redacted (C9). Readers never see it. It is stored only where something
 * was redacted: in the state of the event, or in chunk rows if it is long, because queries read members of states.
 */
import type { SessionEvent } from '../domain/event.ts';
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';

/** The member of a state with the redacted members of the data as they were; true: they are in chunk rows. */
const RAW = 'raw';
/** The field of the chunk rows. */
export const RAW_FIELD = 'raw';

export function withRaw(state: JsonObject | undefined, raw: JsonObject | true): JsonObject {
  return { ...state, [RAW]: raw };
}

export function wasRedacted(state: JsonObject | null): boolean {
  return state?.[RAW] !== undefined;
}

/** Whether chunk rows have it. */
export function isRawApart(state: JsonObject | null): boolean {
  return state?.[RAW] === true;
}

/** The event as its writer meant it. @param apart the text of its chunk rows; read only if there are any */
export function rawEvent(event: SessionEvent, state: JsonObject | null, apart: () => string): SessionEvent {
  const raw = isRawApart(state) ? (JSON.parse(apart()) as Json) : state?.[RAW];
  if (!isJsonObject(raw)) return event;
  return { ...event, data: { ...event.data, ...raw } } as unknown as SessionEvent;
}
