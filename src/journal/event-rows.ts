/** Events as rows of the table `events`. */
import { storedEvent } from '../domain/event.ts';
import type { EventType, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlRow } from '../domain/ports/storage.ts';
import type { SessionIdentity } from '../domain/session.ts';
import { runIdOf } from './run-id.ts';

/** An event with the state that only recovery reads. */
export interface StoredEvent {
  readonly event: SessionEvent;
  readonly state: JsonObject | null;
}

/** Part of a result, small enough for one turn of the event loop. */
export interface Slice<T> {
  readonly found: T[];
  /** The last event that was read: the next slice starts after it. */
  readonly next: number;
  /** The cost of reading it, in characters (`Slices`). */
  readonly chars: number;
}

/** A row of `events`: seq, run, iteration, type, at, action_id, action_name, data, state. */
export type EventRow = readonly [
  number,
  number,
  number,
  string,
  number,
  string | null,
  string | null,
  string | null,
  string | null,
];

const COLUMNS = `seq, run, iteration, type, at, action_id, action_name, data, state`;
export const INSERT_ONE = `INSERT INTO events (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
/** Expects a JSON list of rows. */
export const INSERT_MANY = `INSERT INTO events (${COLUMNS})
  SELECT ${COLUMNS.split(', ')
    .map((_, at) => `value ->> ${at}`)
    .join(', ')} FROM json_each(?)`;

/** The rows in order. Single and long ones are returned unchanged, the others as JSON lists of limited length. */
export function* inParts(rows: readonly EventRow[]): Generator<string | EventRow> {
  let texts: string[] = [];
  let first: EventRow | null = null;
  let chars = 0;
  const gathered = (): (string | EventRow)[] => {
    if (first === null) return [];
    const part = texts.length === 1 ? first : `[${texts.join(',')}]`;
    texts = [];
    first = null;
    chars = 0;
    return [part];
  };
  for (const row of rows) {
    if ((row[7]?.length ?? 0) + (row[8]?.length ?? 0) > limits.inlineBytes) {
      yield* gathered();
      yield row;
      continue;
    }
    first ??= row;
    const text = rows.length === 1 ? '' : JSON.stringify(row);
    texts.push(text);
    chars += text.length;
    if (chars > limits.batchChars) yield* gathered();
  }
  yield* gathered();
}

export function eventOf(session: SessionIdentity, row: SqlRow, data: string): SessionEvent {
  const head = {
    seq: Number(row['seq']),
    type: String(row['type']) as EventType,
    session_id: session.session_id,
    run_id: runIdOf(session, Number(row['run'])),
    iteration: Number(row['iteration']),
    timestamp: Number(row['at']),
    ...(row['action_id'] === null ? {} : { action_id: String(row['action_id']) }),
    ...(row['action_name'] === null ? {} : { action_name: String(row['action_name']) }),
  };
  return storedEvent(head, data);
}

/** The output of a completed action; null for every other event. */
export function outputOf(event: SessionEvent): Json {
  return event.type === 'action_completed' ? event.data.output : null;
}
