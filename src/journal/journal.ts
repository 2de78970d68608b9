/**
 * The journal: everything that determines the future of a session, in order (J1).
 *
 * Owns the events: appends and reads them. Other duties are separate: the database and durability
 * (journal-database.ts), runs (run-table.ts), reusable outcomes (kept-outcomes.ts), the history before the session
 * (seeded.ts), branches for other sessions (fork-rows.ts), messages that came during a run (steered-table.ts), bytes of files (blobs.ts), the workspace (workspace-table.ts), variables (variable-table.ts), notes for later hosts (session-notes.ts), and queries over earlier events (history.ts). Does not own the meaning of events, or when they are sent.
 *
 * schema.ts defines the tables.
 */
import { toEvent } from '../domain/event.ts';
import type { EventOf, EventType, JournalEntry, JournaledEventType, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { utf8Length } from '../domain/utf8.ts';
import type { SqlDatabase, SqlRow } from '../domain/ports/storage.ts';
import type { RunRecord, SessionRecord } from '../domain/session.ts';
import { Blobs } from './blobs.ts';
import { eachEvent, earlierColumn, eventOf, hasEarlier, mentions, outputOf, rowsUntil } from './event-rows.ts';
import type { Slice, StoredEvent } from './event-rows.ts';
import { ForkReader, ForkWriter } from './fork-rows.ts';
import { History } from './history.ts';
import { JournalDatabase } from './journal-database.ts';
import { KeptOutcomes } from './kept-outcomes.ts';
import { Prompts } from './prompts.ts';
import { RAW_FIELD, withRaw } from './raw-data.ts';
import { runNumberOf } from './run-id.ts';
import { RunEnds } from './run-ends.ts';
import { RunTable } from './run-table.ts';
import { Seeded } from './seeded.ts';
import { SessionNotes } from './session-notes.ts';
import { SteeredTable } from './steered-table.ts';
import { SummaryTable } from './summary-table.ts';
import { VariableTable } from './variable-table.ts';
import { WorkspaceTable } from './workspace-table.ts';

export class Journal {
  readonly runs: RunTable;
  readonly ends: RunEnds;
  readonly outcomes: KeptOutcomes;
  readonly history: History;
  readonly prompts: Prompts;
  readonly seeded: Seeded;
  readonly blobs: Blobs;
  readonly steered: SteeredTable;
  readonly forkReader: ForkReader;
  readonly variables: VariableTable;
  readonly workspace: WorkspaceTable;
  readonly summaries: SummaryTable;
  readonly notes: SessionNotes;
  readonly #db: JournalDatabase;
  #work = 0;

  constructor(db: SqlDatabase) {
    this.#db = new JournalDatabase(db);
    this.runs = new RunTable(this.#db);
    this.ends = new RunEnds(this.#db);
    this.outcomes = new KeptOutcomes(this.#db);
    this.history = new History(this.#db, this.runs);
    this.prompts = new Prompts(this.#db);
    this.seeded = new Seeded(this.#db);
    this.blobs = new Blobs(this.#db);
    this.steered = new SteeredTable(this.#db);
    this.forkReader = new ForkReader(this.#db);
    this.variables = new VariableTable(this.#db, this.runs);
    this.workspace = new WorkspaceTable(this.#db);
    this.summaries = new SummaryTable(this.#db, this.runs);
    this.notes = new SessionNotes(this.#db);
  }

  /** The session, or null if this database is empty. */
  get record(): SessionRecord | null {
    return this.#db.record;
  }

  get lastSeq(): number {
    return this.#db.lastSeq;
  }

  /** The last event that is known to be durable: readers see nothing after it (J1). */
  get syncedSeq(): number {
    return this.#db.syncedSeq;
  }

  /** How often events could not be written. The statement that failed may have been another writer's. */
  get losses(): number {
    return this.#db.losses;
  }

  /** The events above this seq were lost the last time; later events have their numbers. */
  get lostAfter(): number {
    return this.#db.lostAfter;
  }

  /** Whether the session is so large that nothing new may begin in it; running work is still recorded. */
  get full(): boolean {
    return this.#db.full;
  }

  /** Whether new work with this many bytes may begin. */
  hasRoomFor(bytes: number): boolean {
    return this.#db.hasRoomFor(bytes);
  }

  /** The cost of all events appended so far, in steps of work. */
  get work(): number {
    return this.#work;
  }

  /** The session's; null if it has none (T5). */
  get incarnation(): string | null {
    return this.#db.requireRecord().incarnation ?? null;
  }

  /** @param fill writes what the session begins with: the session exists with it, or not at all */
  create(record: SessionRecord, fill: (() => void) | null = null): void {
    this.#db.create(record, fill);
  }

  /** Writes a branch of another session into this empty database; `create` ends it. @param record of this session */
  forkWriter(record: SessionRecord): ForkWriter {
    return new ForkWriter(this.#db, record);
  }

  /** Appends one event and returns it with its sequence number. It is durable only after `sync`. */
  append<T extends JournaledEventType>(entry: JournalEntry<T>): EventOf<T> {
    const record = this.#db.requireRecord();
    const seq = this.#db.lastSeq + 1;
    const apart: [field: string, text: string][] = [];
    const json = JSON.stringify(entry.data);
    const stateJson = this.#stateJson(entry, apart);
    this.#work += limits.eventSteps + (json.length + (stateJson?.length ?? 0)) * limits.eventCharSteps;
    const data = this.#db.column('data', json, apart);
    const state = stateJson === null ? null : this.#db.column('state', stateJson, apart);
    const run = runNumberOf(entry.runId);
    const [id, name] = [entry.actionId ?? null, entry.actionName ?? null];
    this.#db.add([seq, run, entry.iteration, entry.type, entry.at, id, name, data, state], apart);
    return toEvent(record.session_id, seq, entry);
  }

  /** The state with what was redacted of the data; if that is long, it is in chunk rows (C9). */
  #stateJson({ state, raw }: Pick<JournalEntry, 'state' | 'raw'>, apart: [string, string][]): string | null {
    if (raw === undefined) return state === undefined ? null : JSON.stringify(state);
    const whole = JSON.stringify(withRaw(state, raw));
    if (whole.length <= limits.inlineBytes && this.#db.fits(whole)) return whole;
    const text = JSON.stringify(raw);
    this.#work += text.length * limits.eventCharSteps;
    apart.push([RAW_FIELD, text]);
    return JSON.stringify(withRaw(state, true));
  }

  /** Runs `body` atomically: if it throws, none of its writes remains. */
  atomically<T>(body: () => T): T {
    return this.#db.atomically(body);
  }

  /** Changes what is in memory together with rows: at once, or when the open transaction is written. If it fails: never. */
  whenWritten(effect: () => void): void {
    this.#db.whenWritten(effect);
  }

  /** Writes inputs of a run that are not part of an event; they follow the last appended event (J9). */
  addInputs(run: number, inputs: Json): void {
    if (!this.prompts.writeWith(run, inputs)) this.runs.addInputs(run, inputs);
  }

  /** Whether everything appended so far is durable. */
  get isSynced(): boolean {
    return this.#db.isSynced;
  }

  /** Resolves when everything appended so far is durable. */
  sync(): Promise<void> {
    // Returns the database's own promise: an immediate failure must be visible immediately (RunLog.commit).
    return this.#db.sync();
  }

  /** Up to `limit` events with a seq above `after`, oldest first. */
  range({ after, limit }: { readonly after: number; readonly limit: number }): StoredEvent[] {
    const rows = this.#db.find(`SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?`, after, limit);
    const events: StoredEvent[] = [];
    for (const row of eachEvent(rows)) {
      if (events.length === limit) break;
      if (Number(row['seq']) > after) events.push(this.#db.readEvent(row));
    }
    return events;
  }

  /**
   * A page of events for readers: durable events above `after`, oldest first, without the state for recovery. At most
   * `limits.pageRows` rows; stops after `limits.readerPageBytes`.
   */
  page(after: number, until: number = this.#db.syncedSeq): SessionEvent[] {
    const last = Math.min(until, this.#db.syncedSeq);
    if (after >= last) return [];
    const rows = this.#db.exec(
      `SELECT seq, run, iteration, type, at, action_id, action_name, earlier,
         CASE WHEN OCTET_LENGTH(data) <= ?1 THEN data END AS data
       FROM events WHERE seq > ?2 AND ${rowsUntil('?3')} ORDER BY seq LIMIT ?4`,
      limits.inlineBytes,
      after,
      last,
      limits.pageRows,
    );
    return this.#within(rows, { after, until: last, chars: limits.readerPageBytes, eventChars: 0 }).events;
  }

  /** All events between two others, without the state for recovery. For the few that were not published in their turn. */
  between(after: number, before: number): SessionEvent[] {
    const events: SessionEvent[] = [];
    for (let last = after; last + 1 < before;) {
      const page = this.page(last, before - 1);
      if (page.length === 0) break;
      events.push(...page);
      last = page.at(-1)?.seq ?? before;
    }
    return events;
  }

  /**
   * A slice of a run's events above `after` up to `until`, oldest first, without the state for recovery and without
   * outputs of actions (see `outputs`). Ends after `limits.passedEvents` events of other runs.
   *
   * @param only events of these types; default: all
   * @param mentioning leaves out most events whose data does not contain this piece of JSON, without reading them; default: none
   */
  slice(query: {
    readonly run: number;
    readonly after: number;
    readonly until: number;
    readonly only?: readonly EventType[];
    readonly mentioning?: string;
  }): Slice<SessionEvent> {
    const { run, after, until, only, mentioning } = query;
    const to = Math.min(until, after + limits.passedEvents);
    const types = only?.map((type) => `'${type}'`).join(', ');
    const rows = this.#db.find(
      `SELECT seq, run, iteration, type, at, action_id, action_name, earlier,
         CASE WHEN type = 'action_completed' THEN '{}' WHEN OCTET_LENGTH(data) <= ?1 THEN data END AS data
       FROM events WHERE seq > ?2 AND ${rowsUntil('?3')} AND run = ?4
         ${mentioning === undefined ? '' : `AND ${mentions('?6', '?7')}`}
         ${types === undefined ? '' : `AND (type IN (${types}) OR ${hasEarlier(`${earlierColumn('type')} IN (${types})`)})`}
       ORDER BY seq LIMIT ?5`,
      limits.inlineBytes,
      after,
      to,
      run,
      limits.pageRows,
      ...(mentioning === undefined ? [] : [mentioning, JSON.stringify(mentioning).slice(1, -1)]),
    );
    const { events, chars, isAll } = this.#within(rows, {
      after,
      until: to,
      chars: limits.sliceChars,
      eventChars: limits.eventChars,
      ...(only === undefined ? {} : { only }),
    });
    const lastRow = rows.length < limits.pageRows ? to : Math.min(to, Number(rows.at(-1)?.['seq']));
    const next = isAll ? lastRow : (events.at(-1)?.seq ?? to);
    return {
      found: events,
      next,
      chars: chars + events.length * limits.eventChars + (next - after) * limits.passedEventChars,
    };
  }

  /** Events of these rows, until they have the given number of characters. Long values are fetched one by one. */
  #within(
    rows: readonly SqlRow[],
    query: {
      readonly after: number;
      readonly until: number;
      readonly chars: number;
      /** Cost of an event in addition to its text. */
      readonly eventChars: number;
      readonly only?: readonly EventType[];
    },
  ): { readonly events: SessionEvent[]; readonly chars: number; readonly isAll: boolean } {
    const { after, until, only } = query;
    const record = this.#db.requireRecord();
    const events: SessionEvent[] = [];
    let chars = 0;
    for (const row of eachEvent(rows)) {
      const seq = Number(row['seq']);
      if (seq <= after || seq > until || only?.includes(row['type'] as EventType) === false) continue;
      if (chars + events.length * query.eventChars > query.chars) return { events, chars, isAll: false };
      const data = row['data'] ?? this.#db.exec(`SELECT data FROM events WHERE seq = ?`, seq)[0]?.['data'];
      const text = this.#db.load(seq, 'data', data);
      events.push(eventOf(record, row, text));
      chars += text.length;
    }
    return { events, chars, isAll: true };
  }

  /** One event as its writer meant it; readers get `event` instead (C9). */
  rawEvent(seq: number): SessionEvent | null {
    return this.range({ after: seq - 1, limit: 1 }).find(({ event }) => event.seq === seq)?.event ?? null;
  }

  /** One event, without the state for recovery. */
  event(seq: number): SessionEvent | null {
    const row = this.#db.eventRow(seq);
    return row === null ? null : eventOf(this.#db.requireRecord(), row, this.#db.load(seq, 'data', row['data']));
  }

  /** The event that says why a run failed; null if it did not. */
  runFailure({ run, status, lastSeq }: RunRecord): EventOf<'agent_failed'> | null {
    if (status !== 'failed' || lastSeq === null) return null;
    // Only ends of other runs' background actions may follow the event within the run.
    const [row] = this.#db.find(
      `SELECT seq FROM events WHERE seq <= ? AND run = ? AND type = 'agent_failed' ORDER BY seq DESC LIMIT 1`,
      lastSeq,
      run,
    );
    const event = row === undefined ? null : this.event(Number(row['seq']));
    return event?.type === 'agent_failed' ? event : null;
  }

  /** Size of an event's data as JSON, without reading it if it is long; 0 if there is no such event. */
  dataBytes(seq: number): number {
    const [row] = this.#db.find(
      `SELECT COALESCE(OCTET_LENGTH(data), (SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = events.seq AND field = 'data')) AS bytes
       FROM events WHERE seq = ?`,
      seq,
    );
    return Number(row?.['bytes'] ?? utf8Length(String(this.#db.eventRow(seq)?.['data'] ?? '')));
  }

  /** All events of a run, oldest first. */
  *eventsOf({ run, firstSeq }: RunRecord): Generator<StoredEvent> {
    const sql = `SELECT * FROM events WHERE seq > ? AND run = ? ORDER BY seq LIMIT ?`;
    for (let after = firstSeq - 1; ;) {
      const rows = this.#db.find(sql, after, run, limits.pageRows);
      for (const row of eachEvent(rows)) if (Number(row['seq']) > after) yield this.#db.readEvent(row);
      if (rows.length < limits.pageRows) return;
      after = Number(rows.at(-1)?.['seq']);
    }
  }

  /** The output of an `action_completed` event; null if there is none. */
  outputAt(seq: number): Json {
    const stored = this.range({ after: seq - 1, limit: 1 })[0];
    return stored === undefined ? null : outputOf(stored.event);
  }

  /** The state of an event that only recovery reads; null if there is none. */
  stateAt(seq: number): JsonObject | null {
    return this.range({ after: seq - 1, limit: 1 })[0]?.state ?? null;
  }

  /** The stored states of the session's feeds. Their form belongs to the writer. */
  feeds(): Map<string, unknown> {
    const rows = this.#db.findIn('feeds', `SELECT id, data FROM feeds ORDER BY id`);
    return new Map(rows.map((row) => [String(row['id']), JSON.parse(String(row['data']))]));
  }

  /** @param data plain JSON */
  setFeed(id: string, data: unknown): void {
    this.#db.exec(`INSERT OR REPLACE INTO feeds (id, data) VALUES (?, ?)`, id, JSON.stringify(data));
    this.#db.changed();
  }
}
