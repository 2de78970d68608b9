/**
 * What the data of an event was before text in it was redacted (C9). It is a part of the event's state, so that readers
 * never see it, and it is stored only where something was redacted.
 */
import type { SessionEvent } from '../domain/event.ts';
import { isJsonObject } from '../domain/json.ts';
import type { JsonObject } from '../domain/json.ts';

const RAW = 'raw';

/** @param raw the members of the data that were redacted */
export function withRaw(state: JsonObject, raw: JsonObject): JsonObject {
  return { ...state, [RAW]: raw };
}

/** The event as its writer meant it. */
export function rawEvent(event: SessionEvent, state: JsonObject | null): SessionEvent {
  const raw = state?.[RAW];
  if (!isJsonObject(raw)) return event;
  return { ...event, data: { ...event.data, ...raw } } as unknown as SessionEvent;
}

/** A redacted member of the data; undefined if it was not redacted. */
export function rawMember(state: JsonObject | null, member: string): JsonObject[string] | undefined {
  const raw = state?.[RAW];
  return isJsonObject(raw) ? raw[member] : undefined;
}
