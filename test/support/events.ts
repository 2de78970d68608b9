/** Session events in tests. */
import type { EventData, EventOf, EventType, SessionEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';

/** The events of one type. */
export function eventsOf<T extends EventType>(events: readonly SessionEvent[], type: T): EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => event.type === type);
}

/** The event of a child inside its parent's `progress` event; empty for all other events. */
export function childEventsOf(event: SessionEvent): SessionEvent[] {
  const inner = event.type === 'progress' ? (event.data.event as SessionEvent | undefined) : undefined;
  return inner === undefined ? [] : [inner];
}

/** An event's data as plain JSON, for tests that read members of any type. */
export function membersOf(event: SessionEvent | undefined): JsonObject {
  return { ...event?.data } as JsonObject;
}

/** Data that no event has, for tests of code that only forwards it. */
export function anyData(data: JsonObject): EventData['warning'] {
  return data as unknown as EventData['warning'];
}
