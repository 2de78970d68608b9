/**
 * The journal: everything that decides the future of a session, in order (J1).
 *
 * Owns the events: appends them and reads them. Its other duties are in parts: the database and what is on disk
 * (journal-database.ts), runs (run-table.ts), outcomes that stand for later actions (kept-outcomes.ts), and what is
 * looked up in earlier events (history.ts). Does not own the meaning of events, nor when they are sent.
 *
 * The tables are in schema.ts.
 */
import type { EventOf, EventType, JournalEntry, JournaledEventType, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlDatabase, SqlRow } from '../domain/ports.ts';
import type { RunRecord, SessionRecord } from '../domain/session.ts';
import { eventOf, outputOf, toEvent } from './event-rows.ts';
import type { Slice, StoredEvent } from './event-rows.ts';
import { History } from './history.ts';
import { JournalDatabase } from './journal-database.ts';
import { KeptOutcomes } from './kept-outcomes.ts';
import { runNumberOf } from './run-id.ts';
import { RunTable } from './run-table.ts';

export class Journal {
  readonly runs: RunTable;
  readonly outcomes: KeptOutcomes;
  readonly history: History;
  readonly #db: JournalDatabase;
  #work = 0;

  constructor(db: SqlDatabase) {
    this.#db = new JournalDatabase(db);
    this.runs = new RunTable(this.#db);
    this.outcomes = new KeptOutcomes(this.#db);
    this.history = new History(this.#db);
  }

  /** The session, or null when this database holds none. */
  get record(): SessionRecord | null {
    return this.#db.record;
  }

  get lastSeq(): number {
    return this.#db.lastSeq;
  }

  /** The last event that is known to be on disk: readers see nothing beyond it (J1). */
  get syncedSeq(): number {
    return this.#db.syncedSeq;
  }

  /** Whether the session takes up so much that nothing new may begin in it; what is at work is written still. */
  get full(): boolean {
    return this.#db.full;
  }

  /** What the events that were appended so far stand for, in steps of work. */
  get work(): number {
    return this.#work;
  }

  create(record: SessionRecord): void {
    this.#db.create(record);
  }

  /** Takes one event and returns it with its sequence number. On disk only after `sync`. */
  append<T extends JournaledEventType>(entry: JournalEntry<T>): EventOf<T> {
    const record = this.#db.requireRecord();
    const seq = this.#db.lastSeq + 1;
    const json = JSON.stringify(entry.data);
    const told = entry.state === undefined ? null : JSON.stringify(entry.state);
    this.#work += limits.eventSteps + (json.length + (told?.length ?? 0)) * limits.eventCharSteps;
    const data = this.#db.store(seq, 'data', json);
    const state = told === null ? null : this.#db.store(seq, 'state', told);
    this.#db.add([
      seq,
      runNumberOf(entry.runId),
      entry.iteration,
      entry.type,
      entry.at,
      entry.actionId ?? null,
      entry.actionName ?? null,
      data,
      state,
    ]);
    return toEvent(record.session_id, seq, entry);
  }

  /** Resolves when everything appended so far is on disk. */
  sync(): Promise<void> {
    // The database's own promise: a sync that fails at once must be seen to fail at once (RunLog.commit).
    return this.#db.sync();
  }

  /** Up to `limit` events with a seq above `after`, oldest first; of one run only, when it is named. */
  range(query: { readonly after: number; readonly limit: number; readonly run?: number }): StoredEvent[] {
    const rows =
      query.run === undefined
        ? this.#db.find(`SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?`, query.after, query.limit)
        : this.#db.find(
            `SELECT * FROM events WHERE seq > ? AND run = ? ORDER BY seq LIMIT ?`,
            query.after,
            query.run,
            query.limit,
          );
    return rows.map((row) => this.#db.readEvent(row));
  }

  /**
   * A page of what readers see: events above `after` that are on disk, oldest first, without what only
   * recovery reads. At most `limits.pageRows` of them, and no further one past `limits.readerPageBytes`.
   */
  page(after: number, until: number = this.#db.syncedSeq): SessionEvent[] {
    const last = Math.min(until, this.#db.syncedSeq);
    if (after >= last) return [];
    const rows = this.#db.exec(
      `SELECT seq, run, iteration, type, at, action_id, action_name,
         CASE WHEN OCTET_LENGTH(data) <= ? THEN data END AS data
       FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
      limits.inlineBytes,
      after,
      last,
      limits.pageRows,
    );
    return this.#within(rows, limits.readerPageBytes).events;
  }

  /**
   * A slice of a run's events above `after` up to `until`, oldest first, without what only recovery reads and without
   * what actions gave (`outputs` gives it by itself). Beyond `limits.passedEvents` of other runs it ends.
   *
   * @param only events of these types; default: all
   */
  slice(query: {
    readonly run: number;
    readonly after: number;
    readonly until: number;
    readonly only?: readonly EventType[];
  }): Slice<SessionEvent> {
    const { run, after, until, only } = query;
    const to = Math.min(until, after + limits.passedEvents);
    const rows = this.#db.find(
      `SELECT seq, run, iteration, type, at, action_id, action_name,
         CASE WHEN type = 'action_completed' THEN '{}' WHEN OCTET_LENGTH(data) <= ? THEN data END AS data
       FROM events WHERE seq > ? AND seq <= ? AND run = ?
         ${only === undefined ? '' : `AND type IN (${only.map((type) => `'${type}'`).join(', ')})`}
       ORDER BY seq LIMIT ?`,
      limits.inlineBytes,
      after,
      to,
      run,
      limits.pageRows,
    );
    const { events, chars } = this.#within(rows, limits.sliceChars);
    const isAll = events.length === rows.length && rows.length < limits.pageRows;
    const next = isAll ? to : (events.at(-1)?.seq ?? to);
    return {
      found: events,
      next,
      chars: chars + events.length * limits.eventChars + (next - after) * limits.passedEventChars,
    };
  }

  /** Events of these rows, and no further one past so many characters. Long values are fetched one by one. */
  #within(rows: readonly SqlRow[], mostChars: number): { readonly events: SessionEvent[]; readonly chars: number } {
    const { session_id: sessionId } = this.#db.requireRecord();
    const events: SessionEvent[] = [];
    let chars = 0;
    for (const row of rows) {
      const data = row['data'] ?? this.#db.exec(`SELECT data FROM events WHERE seq = ?`, row['seq'] ?? 0)[0]?.['data'];
      const text = this.#db.load(Number(row['seq']), 'data', data);
      events.push(eventOf(sessionId, row, text));
      chars += text.length;
      if (chars > mostChars) break;
    }
    return { events, chars };
  }

  /** One event, without what only recovery reads. */
  event(seq: number): SessionEvent | null {
    const rows = this.#db.find(
      `SELECT seq, run, iteration, type, at, action_id, action_name, data FROM events WHERE seq = ?`,
      seq,
    );
    return this.#within(rows, 0).events[0] ?? null;
  }

  /** What the data of an event takes up as JSON, without reading it; 0 when there is no such event. */
  dataBytes(seq: number): number {
    const [row] = this.#db.find(
      `SELECT COALESCE(OCTET_LENGTH(data), (SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = events.seq AND field = 'data')) AS bytes
       FROM events WHERE seq = ?`,
      seq,
    );
    return Number(row?.['bytes'] ?? 0);
  }

  /** All events of a run, oldest first. */
  *eventsOf(run: RunRecord): Generator<StoredEvent> {
    let after = run.firstSeq - 1;
    for (;;) {
      const page = this.range({ after, limit: limits.pageRows, run: run.run });
      yield* page;
      const last = page.at(-1)?.event.seq;
      if (last == null || page.length < limits.pageRows) return;
      after = last;
    }
  }

  /** The output that an `action_completed` event holds; null when there is none. */
  outputAt(seq: number): Json {
    const stored = this.range({ after: seq - 1, limit: 1 })[0];
    return stored === undefined ? null : outputOf(stored.event);
  }

  /** What only recovery reads of an event; null where there is nothing. */
  stateAt(seq: number): JsonObject | null {
    return this.range({ after: seq - 1, limit: 1 })[0]?.state ?? null;
  }

  /** Each variable's value as JSON, and what it takes up with its name, in bytes. */
  variables(): Map<string, { readonly json: string; readonly bytes: number }> {
    const rows = this.#db.find(
      `SELECT key, value, OCTET_LENGTH(key) + OCTET_LENGTH(value) AS bytes FROM variables ORDER BY key`,
    );
    return new Map(
      rows.map((row) => [String(row['key']), { json: String(row['value']), bytes: Number(row['bytes']) }]),
    );
  }

  setVariable(key: string, value: Json): void {
    this.#db.exec(
      `INSERT INTO variables (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
      key,
      JSON.stringify(value),
    );
    this.#db.changed();
  }

  deleteVariable(key: string): void {
    this.#db.exec(`DELETE FROM variables WHERE key = ?`, key);
    this.#db.changed();
  }

  feeds(): Map<string, Json> {
    const rows = this.#db.find(`SELECT id, data FROM feeds ORDER BY id`);
    return new Map(rows.map((row) => [String(row['id']), JSON.parse(String(row['data'])) as Json]));
  }

  setFeed(id: string, data: Json): void {
    this.#db.exec(`INSERT OR REPLACE INTO feeds (id, data) VALUES (?, ?)`, id, JSON.stringify(data));
    this.#db.changed();
  }
}
