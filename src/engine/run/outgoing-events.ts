/**
 * The data of events as it leaves the system (C9): patterns are redacted in the members that are text. What it was before
 * is beside the event and never sent: recovery, later actions and the model read that (journal/raw-data.ts).
 */
import { redactJson } from '../../bounded/redact-json.ts';
import { REDACTED } from '../../bounded/redacted-stream.ts';
import type { Redaction, RedactText } from '../../bounded/redaction.ts';
import type { EventData, JournaledEventType } from '../../domain/event.ts';
import { EVENTS } from '../../domain/event-table.ts';
import type { TextIn } from '../../domain/event-table.ts';
import { callDigest } from '../actions/call-digest.ts';
import type { CallDigest } from '../actions/call-digest.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { redactedSchema } from './schema-text.ts';

const BASE64 = /^[A-Za-z0-9+/_=-]*$/;

/** The members of each event that are text. */
const TEXTS: ReadonlyMap<string, readonly (readonly [member: string, text: TextIn])[]> = new Map(
  Object.entries(EVENTS).map(([type, { rules }]) => [
    type,
    rules.flatMap(([member, { text }]) => (text === null ? [] : [[member, text] as const])),
  ]),
);

/** An event as it is written. */
export interface OutgoingEntry<T extends JournaledEventType> {
  readonly data: EventData[T];
  readonly state?: JsonObject;
  /** The members of the data that were redacted, as they were. */
  readonly raw?: JsonObject;
}

/**
 * @param redaction null: nothing is redacted
 * @param shown members that are redacted already, because they were streamed
 */
export function outgoingEntry<T extends JournaledEventType>(
  redaction: Redaction | null,
  type: T,
  entry: OutgoingEntry<T>,
  shown: Partial<EventData[T]> = {},
): OutgoingEntry<T> {
  if (redaction === null) return entry;
  const members = TEXTS.get(type) ?? [];
  if (members.length === 0) return entry;
  const redact = redaction.texts();
  const data = entry.data as unknown as JsonObject;
  const changed: Record<string, Json> = {};
  const raw: Record<string, Json> = {};
  const hidden = type === 'approval_requested' ? hiddenCall(entry.state, redact) : null;
  for (const [member, text] of members) {
    const value = data[member];
    if (value === undefined) continue;
    const known = (shown as JsonObject)[member];
    const safe = known ?? redactedIn(value, text, redact);
    if (safe === value) continue;
    changed[member] = safe;
    raw[member] = value;
  }
  if (hidden !== null) {
    for (const member of ['sha256', 'bytes'] as const) raw[member] = data[member] ?? null;
    Object.assign(changed, hidden);
  }
  if (Object.keys(raw).length === 0) return entry;
  // People decide about a call that they do not see as it is.
  const hidesCall = hidden !== null || raw['question'] !== undefined;
  const marked = type === 'approval_requested' && hidesCall ? { redacted: true } : {};
  return { ...entry, data: { ...entry.data, ...changed, ...marked }, raw };
}

/** Digest and size of a call as it is shown, if text in it is hidden: those of the call itself would reveal that text. */
function hiddenCall(state: JsonObject | undefined, redact: (text: string) => string): CallDigest | null {
  const call = state?.['call'];
  if (!isJsonObject(call)) return null;
  const shown = redactedValue(call, redact);
  return shown === call || !isJsonObject(shown) ? null : callDigest(shown['parameters'], shown['inputs']);
}

/** All strings of a value, except the base64 of files. */
export function redactedValue(value: Json, redact: (text: string) => string): Json {
  return redactJson(value, redact, { bytesMember, tooDeep: REDACTED });
}

function redactedIn(value: Json, text: TextIn, redact: RedactText): Json {
  if (text === 'schema') return redactedSchema(value, (part) => redactedValue(part, redact));
  if (typeof text === 'string') return typeof value === 'string' ? redact(value, text) : redactedValue(value, redact);
  if (text === true) return redactedValue(value, redact);
  if (Array.isArray(value)) {
    const items = value.map((item) => redactedIn(item, text, redact));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isJsonObject(value)) return value;
  const members = Object.entries(text).flatMap(([name, inner]): [string, Json][] => {
    const own = value[name];
    const safe = own === undefined ? undefined : redactedIn(own, inner, redact);
    return safe === undefined || safe === own ? [] : [[name, safe]];
  });
  return members.length === 0 ? value : { ...value, ...Object.fromEntries(members) };
}

/** The member with the bytes of a file, in one of the forms of artifacts, with its type. */
function bytesMember({ base64, content_type: type, data, mimeType, media_type: mediaType }: JsonObject): string | null {
  if (typeof base64 === 'string' && typeof type === 'string' && BASE64.test(base64)) return 'base64';
  const isTyped = typeof mimeType === 'string' || typeof mediaType === 'string';
  return typeof data === 'string' && isTyped && BASE64.test(data) ? 'data' : null;
}
