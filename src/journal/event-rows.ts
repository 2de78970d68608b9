/**
 * Events as rows of the table `events`.
 *
 * Invariants:
 *  1. The seq of a row is that of its last event; its earlier events have the numbers before, without a gap.
 *  2. All events of a row belong to one run. They were appended in one turn, so they are durable together.
 */
import { storedEvent } from '../domain/event.ts';
import { journaledWhere } from '../domain/event-table.ts';
import type { EventType, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlRow, SqlValue } from '../domain/ports/storage.ts';
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

/** An event as columns: seq, run, iteration, type, at, action_id, action_name, data, state. */
export type EventRow = readonly [
  seq: number,
  run: number,
  iteration: number,
  type: string,
  at: number,
  actionId: string | null,
  actionName: string | null,
  data: string | null,
  state: string | null,
];

/** An event that is not written yet. */
export interface PendingEvent {
  readonly row: EventRow;
  /** Its texts for chunk rows: with some, it has a row of its own. */
  readonly apart: readonly (readonly [field: string, text: string])[];
}

export type Statement = readonly [sql: string, ...values: SqlValue[]];

/** A row of `events`: its last event in columns, and the events before it as JSON, without seq and run. */
export type StoredRow = readonly [...EventRow, earlier: string | null];

/** Their rows have them in columns. The others may be earlier events of a row. */
const IN_COLUMNS: ReadonlySet<string> = new Set(journaledWhere(({ isQueried }) => isQueried));

const COLUMNS = `seq, run, iteration, type, at, action_id, action_name, data, state, earlier`;
const VALUES = '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)';
/**
 * Statements for this many rows, most first. Few, because each stays prepared: two rows are the end of an action with the
 * start of the next, ten are as many as the parameters of a statement allow on the platform (100).
 */
const INSERTS = [10, 2, 1].map((count) => ({
  count,
  sql: `INSERT INTO events (${COLUMNS}) VALUES ${VALUES}${`, ${VALUES}`.repeat(count - 1)}`,
}));

/** The row with an event, as a condition. One parameter: its seq. */
export const ROW_WITH = `seq = (SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1)`;

/** The rows with events up to a seq, as a condition. @param seq a parameter or a number */
export function rowsUntil(seq: string): string {
  return `events.seq <= COALESCE((SELECT seq FROM events AS last WHERE last.seq >= ${seq} ORDER BY seq LIMIT 1), ${seq})`;
}

/** A condition: the row has an earlier event that meets `condition`, in which `earlierColumn` names its columns. */
export function hasEarlier(condition: string): string {
  return `EXISTS (SELECT 1 FROM json_each(events.earlier) AS event WHERE ${condition})`;
}

/**
 * A condition: the data of an event of the row may contain a piece of JSON. Without parsing it, so other members count too.
 *
 * @param text a parameter: the piece; `escaped`: the piece inside a JSON string, as `earlier` has it
 */
export function mentions(text: string, escaped: string): string {
  return `(data IS NULL OR INSTR(data, ${text}) > 0 OR INSTR(COALESCE(earlier, ''), ${escaped}) > 0)`;
}

/** A column of the earlier event that `hasEarlier` and `json_each(events.earlier) AS event` find. */
export function earlierColumn(name: 'iteration' | 'type' | 'action_id' | 'data' | 'state'): string {
  return `event.value ->> ${EARLIER.indexOf(name)}`;
}

/** The columns of an earlier event, in order. */
const EARLIER = ['iteration', 'type', 'at', 'action_id', 'action_name', 'data', 'state'];

/** The events of a row, in order, each with the columns of a row; `stateless`: 1 if it certainly has no state. */
export function eventsIn(row: SqlRow): SqlRow[] {
  const { earlier } = row;
  if (typeof earlier !== 'string') return [row];
  const before = JSON.parse(earlier) as SqlValue[][];
  const first = Number(row['seq']) - before.length;
  const events = before.map((values, at): SqlRow => {
    const columns = Object.fromEntries(EARLIER.map((name, index) => [name, values[index] ?? null]));
    return { ...columns, seq: first + at, run: row['run'] ?? 0, stateless: columns['state'] === null ? 1 : 0 };
  });
  return [...events, row];
}

/** The events of rows, in order; reads a row only when its events are needed. */
export function* eachEvent(rows: Iterable<SqlRow>): Generator<SqlRow> {
  for (const row of rows) yield* eventsIn(row);
}

/**
 * The rows of a turn's events: few, because rows are what writing costs (J6). Events of a run that follow each other share a
 * row, up to one that queries look for.
 */
export function inRows(events: readonly PendingEvent[]): StoredRow[] {
  const rows: StoredRow[] = [];
  let earlier: string[] = [];
  let chars = 0;
  for (const [at, { row, apart }] of events.entries()) {
    const next = events[at + 1];
    const canBeEarlier =
      next !== undefined &&
      next.row[1] === row[1] &&
      apart.length + next.apart.length === 0 &&
      !IN_COLUMNS.has(row[3]) &&
      !isLong(row) &&
      !isLong(next.row) &&
      earlier.length < limits.rowEvents - 1;
    if (canBeEarlier) {
      const text = JSON.stringify(row.slice(2));
      chars += text.length;
      if (chars <= limits.inlineBytes) {
        earlier.push(text);
        continue;
      }
    }
    rows.push([...row, earlier.length === 0 ? null : `[${earlier.join(',')}]`]);
    earlier = [];
    chars = 0;
  }
  return rows;
}

function isLong(row: EventRow): boolean {
  return (row[7]?.length ?? 0) + (row[8]?.length ?? 0) > limits.inlineBytes;
}

/** The statements that write rows, in order. Values cost less than a JSON list of rows, which SQLite parses. */
export function* inserts(rows: readonly StoredRow[]): Generator<Statement> {
  let at = 0;
  for (const { count, sql } of INSERTS) {
    for (; rows.length - at >= count; at += count) yield [sql, ...rows.slice(at, at + count).flat()];
  }
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
