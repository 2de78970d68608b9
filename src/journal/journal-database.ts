/**
 * The database of one session: its row, tables and statements, and which events are durable.
 *
 * Owns the events that were appended and not written yet, and the sequence numbers. Does not own the meaning of any
 * table except the session's.
 *
 * Invariants:
 *  1. Sequence numbers are 1, 2, 3, … without a gap (J4); `add` assigns the next one.
 *  2. Everything added in one synchronous turn becomes durable together, or not at all. Events that are written together,
 *     with their chunk rows, are written completely or not at all, also if a statement fails and the host lives on.
 *  3. A row contains at most `limits.rowBytes`; longer JSON is stored in chunk rows (J6).
 *  4. Nothing is written before `create`: looking for a session that does not exist leaves no trace.
 *  5. Events of one turn are written together, before any other statement and before `sync`: in few rows (event-rows.ts).
 */
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlDatabase, SqlRow, SqlValue } from '../domain/ports/storage.ts';
import type { SessionRecord } from '../domain/session.ts';
import { eventOf, eventsIn, inRows, inserts, ROW_WITH } from './event-rows.ts';
import type { EventRow, PendingEvent, Statement, StoredEvent } from './event-rows.ts';
import { RAW_FIELD, rawEvent } from './raw-data.ts';
import { missingTables, OPTIONAL_TABLES, statementOf } from './optional-tables.ts';
import type { OptionalTable } from './optional-tables.ts';
import { createSessionTable, readSchema, tableNames, upgradeSchema } from './schema.ts';

export class JournalDatabase {
  readonly #storage: SqlDatabase;
  /** Only the session's row exists, or nothing; `#db` creates the other tables on first use. */
  #bare = true;
  /** Optional tables that do not exist. */
  #missing = missingTables(new Set());
  #record: SessionRecord | null = null;
  #notes: string | null = null;
  #lastSeq = 0;
  #syncedSeq = 0;
  #dirty = false;
  /** Events that were added and not written yet, in order. */
  #pending: PendingEvent[] = [];
  #syncing: Promise<void> = Promise.resolve();
  /** Number of syncs that have not ended. */
  #syncs = 0;
  #isAtomic = false;
  /** To run once the open transaction is written. */
  #whenWritten: (() => void)[] = [];
  #losses = 0;
  #lostAfter = 0;
  #runsVersion = 0;
  #statements = 0;
  /** The size of the database, and the number of statements until which it is close enough. */
  #size: { readonly bytes: number; readonly until: number } | null = null;

  constructor(db: SqlDatabase) {
    this.#storage = db;
    const found = readSchema(db);
    if (found === null) return;
    const { version, tables } = found;
    const row = db.exec(`SELECT data, notes FROM session`)[0];
    if (row !== undefined) {
      this.#record = JSON.parse(String(row['data'])) as SessionRecord;
      this.#notes = typeof row['notes'] === 'string' ? row['notes'] : null;
    }
    if (version === 0) return;
    this.#missing = missingTables(upgradeSchema(db, version) ? tableNames(db) : tables);
    this.#bare = false;
    this.#lastSeq = this.#highestSeq();
    this.#syncedSeq = this.#lastSeq;
  }

  /** The database; creates its tables on first use. */
  get #db(): SqlDatabase {
    if (this.#bare) upgradeSchema(this.#storage, readSchema(this.#storage)?.version ?? 0);
    this.#bare = false;
    return this.#storage;
  }

  /** The session, or null if this database is empty. */
  get record(): SessionRecord | null {
    return this.#record;
  }

  requireRecord(): SessionRecord {
    if (this.#record === null) throw new Error('the journal contains no session');
    return this.#record;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The last event that is known to be durable: readers see nothing after it (J1). */
  get syncedSeq(): number {
    return this.#syncedSeq;
  }

  /** How often events could not be written. The statement that failed may have been another writer's. */
  get losses(): number {
    return this.#losses;
  }

  /** The events above this seq were lost the last time; later events have their numbers. */
  get lostAfter(): number {
    return this.#lostAfter;
  }

  /** Whether the session is so large that nothing new may begin in it; running work is still recorded. */
  get full(): boolean {
    return !this.hasRoomFor(0);
  }

  hasRoomFor(bytes: number): boolean {
    // Reading the size is a query. Far below the limit, the size of a few statements ago is exact enough.
    const known = this.#size;
    const isClose = known !== null && known.bytes < limits.sessionBytes / 2 && this.#statements < known.until;
    const size = isClose ? known.bytes : this.#storage.sizeBytes();
    if (!isClose) this.#size = { bytes: size, until: this.#statements + limits.sizeCheckStatements };
    return size + bytes < limits.sessionBytes;
  }

  /** @param fill writes what the session begins with: the session exists with it, or not at all */
  create(record: SessionRecord, fill: (() => void) | null): void {
    const insert = (db: SqlDatabase): void => {
      db.exec(`INSERT INTO session (id, data) VALUES (1, ?)`, JSON.stringify(record));
      this.#record = record;
      this.#dirty = true;
    };
    if (fill === null) {
      createSessionTable(this.#storage);
      insert(this.#storage);
      return;
    }
    try {
      this.atomically(() => {
        insert(this.#db);
        fill();
      });
    } catch (fault) {
      this.#record = null;
      throw fault;
    }
  }

  /** The notes in the session's row; null: none. */
  get notes(): string | null {
    return this.#notes;
  }

  /** Replaces them, with the next commit. The session exists. */
  writeNotes(notes: string | null): void {
    this.#storage.exec(`UPDATE session SET notes = ?`, notes);
    this.#notes = notes;
  }

  /** Something other than an event was written: the next `sync` waits for it. */
  changed(): void {
    this.#dirty = true;
  }

  /** Increases with each write to the table of runs, and if one is undone: what was read before is still the same. */
  get runsVersion(): number {
    return this.#runsVersion;
  }

  /** Adds the next event and increments `lastSeq`. @param apart its texts for chunk rows */
  add(row: EventRow, apart: PendingEvent['apart']): void {
    this.#pending.push({ row, apart });
    this.#lastSeq = row[0];
    this.#dirty = true;
  }

  /** Runs a statement, which sees every event added before it. */
  exec(sql: string, ...parameters: SqlValue[]): SqlRow[] {
    this.#write();
    return this.#run(sql, parameters);
  }

  /** Runs a read-only statement. In an unused session it finds nothing and leaves no trace. */
  find(sql: string, ...parameters: SqlValue[]): SqlRow[] {
    this.#write();
    return this.#bare ? [] : this.#run(sql, parameters);
  }

  /** The same for rows of an optional table: there are none if it was never needed. */
  findIn(table: OptionalTable, sql: string, ...parameters: SqlValue[]): SqlRow[] {
    return this.#missing.has(table) ? [] : this.find(sql, ...parameters);
  }

  /** Creates the optional tables that a statement needs. */
  #run(sql: string, parameters: readonly SqlValue[]): SqlRow[] {
    const db = this.#db;
    const { optional, writesRuns } = statementOf(sql);
    for (const table of optional) {
      if (!this.#missing.has(table)) continue;
      db.script(OPTIONAL_TABLES[table]);
      this.#missing.delete(table);
    }
    if (writesRuns) this.#runsVersion += 1;
    this.#statements += 1;
    return db.exec(sql, ...parameters);
  }

  /**
   * Runs `body` atomically: if it throws, neither its events nor its other writes are written. Events that were added before
   * are written with them, or else by themselves.
   */
  atomically<T>(body: () => T): T {
    if (this.#isAtomic) return body();
    const db = this.#db;
    const [pending, lastSeq, missing] = [[...this.#pending], this.#lastSeq, new Set(this.#missing)];
    this.#isAtomic = true;
    let value: T;
    try {
      value = db.transaction(() => {
        const made = body();
        this.#write();
        return made;
      });
    } catch (fault) {
      this.#isAtomic = false;
      this.#whenWritten = [];
      this.#runsVersion += 1;
      this.#pending = pending;
      this.#lastSeq = lastSeq;
      this.#missing = missing;
      try {
        this.#write();
      } catch {
        // Their writer finds it in `losses`.
      }
      throw fault;
    }
    this.#isAtomic = false;
    const effects = this.#whenWritten;
    this.#whenWritten = [];
    for (const effect of effects) effect();
    return value;
  }

  /** Changes what is in memory together with rows: at once, or when the open transaction is written. If it fails: never. */
  whenWritten(effect: () => void): void {
    if (this.#isAtomic) this.#whenWritten.push(effect);
    else effect();
  }

  /** Writes the pending events: a statement for many rows costs little more than one for a single row. */
  #write(): void {
    const [first] = this.#pending;
    if (first === undefined) return;
    const statements = [...statementsFor(this.#pending)];
    this.#pending = [];
    const write = (): void => this.#execAll(statements);
    if (this.#isAtomic) return write();
    try {
      if (statements.length === 1) write();
      else this.#db.transaction(write);
    } catch (fault) {
      // Unwritten events lose their numbers, which the next events reuse (invariant 1).
      this.#losses += 1;
      this.#lastSeq = first.row[0] - 1;
      this.#lastSeq = this.#highestSeq();
      this.#lostAfter = this.#lastSeq;
      throw fault;
    }
  }

  #highestSeq(): number {
    return Number(this.#db.exec(`SELECT COALESCE(MAX(seq), 0) AS seq FROM events`)[0]?.['seq'] ?? 0);
  }

  #execAll(statements: Iterable<Statement>): void {
    for (const statement of statements) {
      this.#statements += 1;
      this.#db.exec(...statement);
    }
  }

  /** Whether everything written so far is durable: `sync` has nothing to wait for. */
  get isSynced(): boolean {
    return this.#syncs === 0 && !this.#dirty;
  }

  /** Resolves when everything appended so far is durable. */
  async sync(): Promise<void> {
    this.#write();
    if (this.#dirty) {
      this.#dirty = false;
      this.#syncing = this.#syncTo(this.#lastSeq);
    }
    await this.#syncing;
  }

  async #syncTo(seq: number): Promise<void> {
    this.#syncs += 1;
    try {
      await this.#storage.sync();
    } catch (fault) {
      // Not durable: the next call must try again.
      this.#dirty = true;
      throw fault;
    } finally {
      this.#syncs -= 1;
    }
    this.#syncedSeq = Math.max(this.#syncedSeq, seq);
  }

  /** Writes a row and its text, completely or not at all. @param write gets the column; empty if the text is in chunk rows */
  storeWith(seq: number, field: string, text: string, write: (column: string) => void): void {
    if (fitsInRow(text)) return write(text);
    this.atomically(() => {
      this.#execAll(chunkInserts(seq, field, text));
      write('');
    });
  }

  /** The text for a column of an event; null if it is longer: then it is added to the texts for chunk rows. */
  column(field: string, text: string, apart: [field: string, text: string][]): string | null {
    if (fitsInRow(text)) return text;
    apart.push([field, text]);
    return null;
  }

  /** Whether a text fits into its column. */
  fits(text: string): boolean {
    return fitsInRow(text);
  }

  /** The text of a column, or of its chunk rows. */
  load(seq: number, field: string, column: unknown): string {
    if (typeof column === 'string' && column !== '') return column;
    return this.#db
      .exec(`SELECT text FROM chunks WHERE seq = ? AND field = ? ORDER BY part`, seq, field)
      .map((row) => String(row['text']))
      .join('');
  }

  /** The beginning of a text in chunk rows. */
  beginning(seq: number, field: string, chars: number): string {
    const sql = `SELECT SUBSTR(text, 1, ?) AS text FROM chunks WHERE seq = ? AND field = ? AND part = 0`;
    return String(this.#db.exec(sql, chars, seq, field)[0]?.['text'] ?? '');
  }

  /** The columns of one event; null if there is no such event. */
  eventRow(seq: number): SqlRow | null {
    const [row] = this.find(`SELECT * FROM events WHERE ${ROW_WITH}`, seq);
    return row === undefined ? null : (eventsIn(row).find((event) => event['seq'] === seq) ?? null);
  }

  /**
   * An event with its state, as its writer meant it: readers get redacted text instead (C9).
   *
   * @param apart the text of the chunk rows with what was redacted; default: reads all of it
   */
  readEvent(row: SqlRow, apart?: () => string): StoredEvent {
    const seq = Number(row['seq']);
    const text = row['stateless'] === 1 ? '' : this.load(seq, 'state', row['state']);
    const state = text === '' ? null : (JSON.parse(text) as JsonObject);
    const event = eventOf(this.requireRecord(), row, this.load(seq, 'data', row['data']));
    return { event: rawEvent(event, state, apart ?? (() => this.load(seq, RAW_FIELD, null))), state };
  }
}

/** A UTF-16 code unit has at most 3 bytes in UTF-8: short texts need no exact count. */
function fitsInRow(text: string): boolean {
  return text.length * 3 <= limits.rowBytes;
}

/** The statements that write events, in order. */
function* statementsFor(events: readonly PendingEvent[]): Generator<Statement> {
  for (const { row, apart } of events) for (const [field, text] of apart) yield* chunkInserts(row[0], field, text);
  yield* inserts(inRows(events));
}

function* chunkInserts(seq: number, field: string, text: string): Generator<Statement> {
  const chars = Math.floor(limits.rowBytes / 3);
  for (let part = 0, start = 0; start < text.length; part += 1) {
    let end = Math.min(text.length, start + chars);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    const sql = `INSERT INTO chunks (seq, field, part, text) VALUES (?, ?, ?, ?)`;
    yield [sql, seq, field, part, text.slice(start, end)];
    start = end;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
