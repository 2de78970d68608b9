/**
 * The journal: everything that decides the future of a session, in order (J1).
 *
 * Owns the session's tables and the sequence numbers. Does not own the meaning of events, nor when
 * they are sent: it is told to append, and says when what was appended is on disk.
 *
 * Invariants:
 *  1. Sequence numbers are 1, 2, 3, … without a gap (J4); `append` gives the next one.
 *  2. What `append` wrote in one synchronous turn is on disk together, or not at all.
 *  3. A row holds at most `limits.rowBytes`; longer JSON stands in chunk rows (J6).
 *  4. Nothing is written before `create`: looking for a session that is not there leaves no trace.
 *  5. Events of one turn are written together, before any other statement of the journal and before `sync`.
 */
import { storedEvent } from '../domain/event.ts';
import type { EventOf, EventType, JournalEntry, JournaledEventType, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { RunRecord, RunStatus, SessionRecord } from '../domain/session.ts';
import { limits } from '../domain/limits.ts';
import type { SqlDatabase, SqlRow, SqlValue } from '../domain/ports.ts';
import { createSessionTable, migrate, schemaVersion } from './schema.ts';

/** An event together with the part that only recovery reads. */
export interface StoredEvent {
  readonly event: SessionEvent;
  readonly state: JsonObject | null;
}

/** A request for approval, with the event that ended it. */
export interface StoredApproval {
  readonly event: EventOf<'approval_requested'>;
  readonly state: JsonObject | null;
  readonly end: SessionEvent | null;
}

/** Part of what was asked for, small enough for one turn. */
export interface Slice<T> {
  readonly found: T[];
  /** The last event that was looked at: the next slice comes after it. */
  readonly next: number;
  /** What reading it counts for, in characters (`Slices`). */
  readonly chars: number;
}

/** A completed action of an earlier run, by the names that it has. */
export interface CachedOutcome {
  readonly seq: number;
  readonly id: string;
  readonly outputKey: string | null;
  readonly bytes: number;
}

/** That a completed action stands for later ones: until `expiresAt`, or as long as it is remembered (P6). */
export interface KeptOutcome {
  readonly key: string;
  /** Digest of what was asked. */
  readonly content: string;
  /** Its `action_completed` event. */
  readonly seq: number;
  readonly at: number;
  readonly expiresAt: number | null;
}

/** `ses_<hex>` and 3 -> `run_<hex>_3`: a run's id leads to its session without an index. */
export function runIdOf(sessionId: string, run: number): string {
  return `run_${sessionId.replace(/^ses_/, '')}_${run}`;
}

/** A run's columns; a long input, or one in chunk rows, as null. */
const RUN = `run, status, first_seq, last_seq, started_at, ended_at, idempotency_key,
  CASE WHEN input <> '' AND OCTET_LENGTH(input) <= ${limits.inlineBytes} THEN input END AS input`;

/** A row of `events`: seq, run, iteration, type, at, action_id, action_name, data, state. */
type EventRow = readonly [
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
/** What the prompt of a later run is made of (L5). */
const CONVERSATION_TYPES = `'thought_completed', 'text_completed', 'response_completed', 'iteration_completed',
  'action_completed', 'action_failed', 'action_skipped', 'action_cancelled', 'action_rejected',
  'agent_completed', 'agent_failed', 'agent_cancelled'`;
const INSERT_ONE = `INSERT INTO events (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
/** Takes a JSON list of rows. */
const INSERT_MANY = `INSERT INTO events (${COLUMNS})
  SELECT ${COLUMNS.split(', ')
    .map((_, at) => `value ->> ${at}`)
    .join(', ')} FROM json_each(?)`;

/** The rows in order: those that stand alone or are long as they are, the others as JSON lists of limited length. */
function* inParts(rows: readonly EventRow[]): Generator<string | EventRow> {
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

export class Journal {
  readonly #storage: SqlDatabase;
  /** Only the session's row is there, or not even that: the other tables are made when something happens (`#db`). */
  #bare = true;
  #record: SessionRecord | null = null;
  #lastSeq = 0;
  #syncedSeq = 0;
  #dirty = false;
  /** Appended, and not given to the database yet: rows of `events`, in order. */
  #pending: EventRow[] = [];
  /** How many outcomes are kept with and without an expiry; null = not counted yet. */
  #kept: { expiring: number; lasting: number } | null = null;
  #syncing: Promise<void> = Promise.resolve();
  #work = 0;

  constructor(db: SqlDatabase) {
    this.#storage = db;
    const version = schemaVersion(db);
    if (version === null) return;
    const row = db.exec(`SELECT data FROM session`)[0];
    if (row !== undefined) this.#record = JSON.parse(String(row['data'])) as SessionRecord;
    if (version === 0) return;
    migrate(db);
    this.#bare = false;
    this.#lastSeq = Number(this.#db.exec(`SELECT COALESCE(MAX(seq), 0) AS seq FROM events`)[0]?.['seq'] ?? 0);
    this.#syncedSeq = this.#lastSeq;
  }

  /** The database with its tables. */
  get #db(): SqlDatabase {
    if (this.#bare) migrate(this.#storage);
    this.#bare = false;
    return this.#storage;
  }

  /** The session, or null when this database holds none. */
  get record(): SessionRecord | null {
    return this.#record;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Whether the session takes up so much that nothing new may begin in it; what is at work is written still. */
  get full(): boolean {
    return this.#storage.sizeBytes() >= limits.sessionBytes;
  }

  /** What the events that were appended so far stand for, in steps of work. */
  get work(): number {
    return this.#work;
  }

  /** The last event that is known to be on disk: readers see nothing beyond it (J1). */
  get syncedSeq(): number {
    return this.#syncedSeq;
  }

  create(record: SessionRecord): void {
    createSessionTable(this.#storage);
    this.#storage.exec(`INSERT INTO session (id, data) VALUES (1, ?)`, JSON.stringify(record));
    this.#record = record;
    this.#dirty = true;
  }

  /** Takes one event and returns it with its sequence number. On disk only after `sync`. */
  append<T extends JournaledEventType>(entry: JournalEntry<T>): EventOf<T> {
    const record = this.#requireRecord();
    const seq = this.#lastSeq + 1;
    const json = JSON.stringify(entry.data);
    const told = entry.state === undefined ? null : JSON.stringify(entry.state);
    this.#work += limits.eventSteps + (json.length + (told?.length ?? 0)) * limits.eventCharSteps;
    const data = this.#stored(seq, 'data', json);
    const state = told === null ? null : this.#stored(seq, 'state', told);
    this.#pending.push([
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
    this.#lastSeq = seq;
    this.#dirty = true;
    return toEvent(record.session_id, seq, entry);
  }

  /** Every statement but those of `#write`: it finds what was appended before it. */
  #exec(sql: string, ...parameters: SqlValue[]): SqlRow[] {
    this.#write();
    return this.#db.exec(sql, ...parameters);
  }

  /** One that only reads: where nothing has happened yet it finds nothing, and leaves no trace. */
  #find(sql: string, ...parameters: SqlValue[]): SqlRow[] {
    this.#write();
    return this.#bare ? [] : this.#db.exec(sql, ...parameters);
  }

  /** Writes what was appended: a statement for many rows costs little more than one for a single row. */
  #write(): void {
    if (this.#pending.length === 0) return;
    const rows = this.#pending;
    this.#pending = [];
    try {
      for (const part of inParts(rows)) {
        if (typeof part === 'string') this.#db.exec(INSERT_MANY, part);
        else this.#db.exec(INSERT_ONE, ...part);
      }
    } catch (fault) {
      // What was not written has no number: the next event takes it (invariant 1), and nothing of its long values.
      this.#lastSeq = Number(this.#db.exec(`SELECT COALESCE(MAX(seq), 0) AS seq FROM events`)[0]?.['seq'] ?? 0);
      this.#db.exec(`DELETE FROM chunks WHERE seq > ?`, this.#lastSeq);
      throw fault;
    }
  }

  /** Resolves when everything appended so far is on disk. */
  async sync(): Promise<void> {
    this.#write();
    if (this.#dirty) {
      this.#dirty = false;
      this.#syncing = this.#syncTo(this.#lastSeq);
    }
    await this.#syncing;
  }

  async #syncTo(seq: number): Promise<void> {
    try {
      await this.#storage.sync();
    } catch (fault) {
      // Not on disk: the next call must try again.
      this.#dirty = true;
      throw fault;
    }
    this.#syncedSeq = Math.max(this.#syncedSeq, seq);
  }

  /** Up to `limit` events with a seq above `after`, oldest first; of one run only, when it is named. */
  range(query: { readonly after: number; readonly limit: number; readonly run?: number }): StoredEvent[] {
    const record = this.#requireRecord();
    const rows =
      query.run === undefined
        ? this.#find(`SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?`, query.after, query.limit)
        : this.#find(
            `SELECT * FROM events WHERE seq > ? AND run = ? ORDER BY seq LIMIT ?`,
            query.after,
            query.run,
            query.limit,
          );
    return rows.map((row) => this.#read(record.session_id, row));
  }

  /**
   * A page of what readers see: events above `after` that are on disk, oldest first, without what only
   * recovery reads. At most `limits.pageRows` of them, and no further one past `limits.readerPageBytes`.
   */
  page(after: number, until: number = this.#syncedSeq): SessionEvent[] {
    const last = Math.min(until, this.#syncedSeq);
    if (after >= last) return [];
    const rows = this.#exec(
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
    const rows = this.#find(
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
    const { session_id: sessionId } = this.#requireRecord();
    const events: SessionEvent[] = [];
    let chars = 0;
    for (const row of rows) {
      const data = row['data'] ?? this.#exec(`SELECT data FROM events WHERE seq = ?`, row['seq'] ?? 0)[0]?.['data'];
      const text = this.#loaded(Number(row['seq']), 'data', data);
      events.push(eventOf(sessionId, row, text));
      chars += text.length;
      if (chars > mostChars) break;
    }
    return { events, chars };
  }

  /** One event, without what only recovery reads. */
  event(seq: number): SessionEvent | null {
    const rows = this.#find(
      `SELECT seq, run, iteration, type, at, action_id, action_name, data FROM events WHERE seq = ?`,
      seq,
    );
    return this.#within(rows, 0).events[0] ?? null;
  }

  /** What the data of an event takes up as JSON, without reading it; 0 when there is no such event. */
  dataBytes(seq: number): number {
    const [row] = this.#find(
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

  /**
   * How many bytes `conversationOf` reads of a run, its input included, without reading them. Runs of more than
   * `limits.historyEvents` events count as infinitely long.
   */
  conversationBytes(run: RunRecord): number {
    const last = run.lastSeq ?? this.#lastSeq;
    if (last - run.firstSeq >= limits.historyEvents) return Infinity;
    const chunked = (field: string): string =>
      `COALESCE((SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = events.seq AND field = '${field}'), 0)`;
    const [events] = this.#exec(
      `SELECT COALESCE(SUM(
         CASE type WHEN 'action_completed' THEN MIN(COALESCE(OCTET_LENGTH(data), ?1), ?1)
           ELSE COALESCE(OCTET_LENGTH(data), ${chunked('data')}) END
         + COALESCE(OCTET_LENGTH(state), ${chunked('state')})), 0) AS bytes
       FROM events WHERE seq BETWEEN ?2 AND ?3 AND run = ?4 AND type IN (${CONVERSATION_TYPES})`,
      limits.historyResultChars,
      run.firstSeq,
      last,
      run.run,
    );
    const [input] = this.#exec(
      `SELECT CASE WHEN input <> '' THEN OCTET_LENGTH(input)
         ELSE (SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = ?) END AS bytes FROM runs WHERE run = ?`,
      -run.run,
      run.run,
    );
    return Number(events?.['bytes'] ?? 0) + Number(input?.['bytes'] ?? 0);
  }

  /** The events that a later prompt is made of, oldest first; an output past `limits.historyResultChars` as its beginning. */
  *conversationOf(run: RunRecord): Generator<StoredEvent> {
    const record = this.#requireRecord();
    const last = run.lastSeq ?? this.#lastSeq;
    for (let after = run.firstSeq - 1; after < last;) {
      const rows = this.#exec(
        `SELECT seq, run, iteration, type, at, action_id, action_name, state,
           CASE WHEN type <> 'action_completed' OR OCTET_LENGTH(data) <= ?1 THEN data
             ELSE SUBSTR(COALESCE(data, (SELECT text FROM chunks WHERE chunks.seq = events.seq AND field = 'data' AND part = 0)), 1, ?1)
           END AS data,
           type = 'action_completed' AND COALESCE(OCTET_LENGTH(data) > ?1, 1) AS cut
         FROM events WHERE seq > ?2 AND seq <= ?3 AND run = ?4 AND type IN (${CONVERSATION_TYPES}) ORDER BY seq LIMIT ?5`,
        limits.historyResultChars,
        after,
        last,
        run.run,
        limits.pageRows,
      );
      for (const row of rows) {
        yield row['cut'] === 1
          ? this.#read(record.session_id, {
              ...row,
              data: JSON.stringify({ output: beginningOf(String(row['data'])) }),
            })
          : this.#read(record.session_id, row);
      }
      if (rows.length < limits.pageRows) return;
      after = Number(rows.at(-1)?.['seq']);
    }
  }

  /**
   * What the names of runs before `run` stand for (P12, L5): completed actions since the context was cleared last,
   * newest first, at most `limits.outcomeCache` of them. `bytes`: what reading the event costs.
   */
  outcomeCache(run: number): CachedOutcome[] {
    return this.#find(
      `SELECT seq, action_id, state ->> '$.output_key' AS output_key,
         COALESCE(OCTET_LENGTH(data), (SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = events.seq AND field = 'data')) AS bytes
       FROM events WHERE type = 'action_completed' AND run < ?
         AND seq > COALESCE((SELECT MAX(seq) FROM events WHERE type = 'action_completed' AND action_name = 'clear_context'), 0)
       ORDER BY seq DESC LIMIT ?`,
      run,
      limits.outcomeCache,
    ).map((row) => ({
      seq: Number(row['seq']),
      id: String(row['action_id']),
      outputKey: row['output_key'] === null ? null : String(row['output_key']),
      bytes: Number(row['bytes'] ?? 0),
    }));
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

  /** A request for approval, with the event that ended it; null when no request has this id (J8). */
  approval(id: string): StoredApproval | null {
    const record = this.#requireRecord();
    const row = this.#find(
      `SELECT * FROM events WHERE type = 'approval_requested' AND data ->> '$.approval_id' = ? ORDER BY seq DESC LIMIT 1`,
      id,
    )[0];
    if (row === undefined) return null;
    const { event, state } = this.#read(record.session_id, row);
    if (event.type !== 'approval_requested') return null;
    const end = this.#find(
      `SELECT * FROM events WHERE seq > ? AND run = ? AND iteration = ? AND action_id = ?
         AND type IN ('approval_resolved', 'action_failed', 'action_cancelled') ORDER BY seq LIMIT 1`,
      event.seq,
      row['run'] ?? 0,
      row['iteration'] ?? 0,
      row['action_id'] ?? '',
    )[0];
    return { event, state, end: end === undefined ? null : this.#read(record.session_id, end).event };
  }

  /** What stands for actions with this key, with its output; null when there is none. */
  outcome(key: string): (KeptOutcome & { readonly output: Json }) | null {
    const record = this.#requireRecord();
    const row = this.#exec(`SELECT * FROM outcomes WHERE key = ?`, key)[0];
    if (row === undefined) return null;
    const seq = Number(row['seq']);
    const event = this.#exec(`SELECT * FROM events WHERE seq = ?`, seq)[0];
    if (event === undefined) return null;
    return {
      key,
      content: String(row['content']),
      seq,
      at: Number(row['at']),
      expiresAt: row['expires_at'] === null ? null : Number(row['expires_at']),
      output: outputOf(this.#read(record.session_id, event).event),
    };
  }

  /** Keeps an outcome in place of what was kept under its key. Past the limits expired ones go, then the oldest. */
  rememberOutcome({ key, content, seq, at, expiresAt }: KeptOutcome): void {
    this.#kept ??= this.#countKept(at);
    this.#exec(
      `INSERT OR REPLACE INTO outcomes (key, content, seq, at, expires_at) VALUES (?, ?, ?, ?, ?)`,
      key,
      content,
      seq,
      at,
      expiresAt,
    );
    this.#dirty = true;
    // A key that was kept already is counted twice, which only makes the next count come sooner.
    if (expiresAt === null) this.#kept.lasting += 1;
    else this.#kept.expiring += 1;
    const { expiring, lasting } = this.#kept;
    if (expiring > limits.cachedOutcomes || lasting > limits.idempotencyKeys) this.#kept = this.#countKept(at);
  }

  /** Forgets what has expired and, where too much is left, the oldest tenth; counts the rest. */
  #countKept(now: number): { expiring: number; lasting: number } {
    this.#exec(`DELETE FROM outcomes WHERE expires_at <= ?`, now);
    const count = (which: string): number =>
      Number(this.#exec(`SELECT COUNT(*) AS n FROM outcomes WHERE expires_at IS ${which}`)[0]?.['n'] ?? 0);
    const within = (which: 'NULL' | 'NOT NULL', most: number): number => {
      const found = count(which);
      if (found <= most) return found;
      this.#exec(
        `DELETE FROM outcomes WHERE key IN
           (SELECT key FROM outcomes WHERE expires_at IS ${which} ORDER BY seq LIMIT ?)`,
        found - Math.floor(most * 0.9),
      );
      return count(which);
    };
    this.#dirty = true;
    return { expiring: within('NOT NULL', limits.cachedOutcomes), lasting: within('NULL', limits.idempotencyKeys) };
  }

  /** A slice of the completed actions whose output is large or may hold files: after the event `after`, oldest first. */
  outcomesWithArtifacts(after: number, until: number): Slice<number> {
    const next = Math.min(until, after + limits.searchedEvents);
    const [row] = this.#find(
      `SELECT JSON_GROUP_ARRAY(seq) FILTER (WHERE data IS NULL OR OCTET_LENGTH(data) > ?1
           OR INSTR(data, '"files":[') > 0 OR INSTR(data, '"mimeType":"') > 0) AS found,
         SUM(MIN(COALESCE(OCTET_LENGTH(data), 0), ?1)) AS bytes
       FROM (SELECT seq, data FROM events WHERE seq > ?2 AND seq <= ?3 AND type = 'action_completed' ORDER BY seq)`,
      limits.artifactBytes,
      after,
      next,
    );
    return {
      found: row === undefined ? [] : (JSON.parse(String(row['found'])) as number[]),
      next,
      chars: (next - after) * limits.passedEventChars + Number(row?.['bytes'] ?? 0) / limits.searchedCharsPerChar,
    };
  }

  /** How long the latest completed actions took, oldest first, at most `limits.durationsRead` of them (S5). */
  durations(): { readonly target: string; readonly ms: number }[] {
    const rows = this.#exec(
      `SELECT state ->> '$.target' AS target, state ->> '$.ms' AS ms FROM events
       WHERE seq > ? AND type = 'action_completed' AND state ->> '$.target' IS NOT NULL ORDER BY seq DESC LIMIT ?`,
      this.#lastSeq - limits.durationsEvents,
      limits.durationsRead,
    );
    return rows.map((row) => ({ target: String(row['target']), ms: Number(row['ms']) })).reverse();
  }

  /** Registers the next run of the session. */
  createRun(
    input: JsonObject,
    at: number,
    status: 'queued' | 'running',
    idempotencyKey: string | null = null,
  ): RunRecord {
    const run = this.runCount + 1;
    this.#exec(
      `INSERT INTO runs (run, status, first_seq, started_at, input, idempotency_key, open) VALUES (?, ?, ?, ?, ?, ?, 1)`,
      run,
      status,
      this.#lastSeq + 1,
      at,
      this.#stored(-run, 'input', JSON.stringify(input)) ?? '',
      idempotencyKey,
    );
    this.#dirty = true;
    return this.requireRun(run);
  }

  /** A run that waited in the queue begins now. */
  startRun(run: number, at: number): void {
    this.#exec(
      `UPDATE runs SET status = 'running', first_seq = ?, started_at = ? WHERE run = ?`,
      this.#lastSeq + 1,
      at,
      run,
    );
    this.#dirty = true;
  }

  /** @param open something of the run is still to come: an approval, or an action that nobody waits for */
  endRun(run: number, status: RunStatus, at: number, open: boolean): void {
    this.#exec(
      `UPDATE runs SET status = ?, last_seq = ?, ended_at = ?, open = ? WHERE run = ?`,
      status,
      this.#lastSeq,
      at,
      open ? 1 : 0,
      run,
    );
    this.#dirty = true;
  }

  /** Nothing of the run is to come any more. */
  closeRun(run: number): void {
    this.#exec(`UPDATE runs SET open = 0 WHERE run = ? AND open = 1`, run);
    this.#dirty = true;
  }

  run(run: number): RunRecord | null {
    const row = this.#find(`SELECT ${RUN} FROM runs WHERE run = ?`, run)[0];
    return row === undefined ? null : this.#toRun(row);
  }

  /** The run that a message with this `Idempotency-Key` started (J7). */
  runByIdempotencyKey(key: string): RunRecord | null {
    const row = this.#find(`SELECT ${RUN} FROM runs WHERE idempotency_key = ?`, key)[0];
    return row === undefined ? null : this.#toRun(row);
  }

  requireRun(run: number): RunRecord {
    const found = this.run(run);
    if (found === null) throw new Error(`run ${run} is not in the journal`);
    return found;
  }

  /** Runs in order: the newest `limit` of them, or of those before `before`. */
  runs(limit: number = limits.pageRows, before: number = Number.MAX_SAFE_INTEGER): RunRecord[] {
    return this.#find(
      `SELECT * FROM (SELECT ${RUN} FROM runs WHERE run < ? ORDER BY run DESC LIMIT ?) ORDER BY run`,
      before,
      limit,
    ).map((row) => this.#toRun(row));
  }

  /** How many runs there are; their numbers go from 1 to this. */
  get runCount(): number {
    return Number(this.#find(`SELECT COALESCE(MAX(run), 0) AS run FROM runs`)[0]?.['run'] ?? 0);
  }

  /** Runs of which something is still to come: after a crash, these need an owner (J3). */
  openRuns(): RunRecord[] {
    return this.#find(`SELECT ${RUN} FROM runs WHERE open = 1 ORDER BY run`).map((row) => this.#toRun(row));
  }

  /** Writes inputs of a run that no event carries; they come after the last event that was appended (J9). */
  addInputs(run: number, inputs: Json): void {
    this.#exec(
      `INSERT INTO inputs (run, after_seq, data) VALUES (?, ?, ?)`,
      run,
      this.#lastSeq,
      JSON.stringify(inputs),
    );
    this.#dirty = true;
  }

  /** What `addInputs` wrote of a run, in order. */
  looseInputs(run: number): { readonly afterSeq: number; readonly inputs: Json }[] {
    return this.#db
      .exec(`SELECT after_seq, data FROM inputs WHERE run = ? ORDER BY id`, run)
      .map((row) => ({ afterSeq: Number(row['after_seq']), inputs: JSON.parse(String(row['data'])) as Json }));
  }

  /** Each variable's value as JSON, and what it takes up with its name, in bytes. */
  variables(): Map<string, { readonly json: string; readonly bytes: number }> {
    const rows = this.#find(
      `SELECT key, value, OCTET_LENGTH(key) + OCTET_LENGTH(value) AS bytes FROM variables ORDER BY key`,
    );
    return new Map(
      rows.map((row) => [String(row['key']), { json: String(row['value']), bytes: Number(row['bytes']) }]),
    );
  }

  setVariable(key: string, value: Json): void {
    this.#exec(
      `INSERT INTO variables (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
      key,
      JSON.stringify(value),
    );
    this.#dirty = true;
  }

  deleteVariable(key: string): void {
    this.#exec(`DELETE FROM variables WHERE key = ?`, key);
    this.#dirty = true;
  }

  feeds(): Map<string, Json> {
    const rows = this.#find(`SELECT id, data FROM feeds ORDER BY id`);
    return new Map(rows.map((row) => [String(row['id']), JSON.parse(String(row['data'])) as Json]));
  }

  setFeed(id: string, data: Json): void {
    this.#exec(`INSERT OR REPLACE INTO feeds (id, data) VALUES (?, ?)`, id, JSON.stringify(data));
    this.#dirty = true;
  }

  /** The latest ends of actions, newest first (F5). */
  recentActions(limit: number): SessionEvent[] {
    const record = this.#requireRecord();
    return this.#db
      .exec(
        `SELECT * FROM events WHERE seq > ? AND type IN ('action_completed', 'action_failed', 'action_skipped', 'action_cancelled', 'action_rejected')
         ORDER BY seq DESC LIMIT ?`,
        this.#lastSeq - limits.durationsEvents,
        limit,
      )
      .map((row) => this.#read(record.session_id, row).event);
  }

  #requireRecord(): SessionRecord {
    if (this.#record === null) throw new Error('the journal holds no session');
    return this.#record;
  }

  /** Returns the text for its column, or writes it to chunk rows and returns null. */
  #stored(seq: number, field: string, text: string): string | null {
    // A UTF-16 unit is at most 3 bytes of UTF-8: short texts need no exact count.
    if (text.length * 3 <= limits.rowBytes) return text;
    const chars = Math.floor(limits.rowBytes / 3);
    let part = 0;
    let start = 0;
    while (start < text.length) {
      let end = Math.min(text.length, start + chars);
      if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
      this.#exec(
        `INSERT INTO chunks (seq, field, part, text) VALUES (?, ?, ?, ?)`,
        seq,
        field,
        part,
        text.slice(start, end),
      );
      part += 1;
      start = end;
    }
    return null;
  }

  #loaded(seq: number, field: string, column: unknown): string {
    if (typeof column === 'string' && column !== '') return column;
    return this.#db
      .exec(`SELECT text FROM chunks WHERE seq = ? AND field = ? ORDER BY part`, seq, field)
      .map((row) => String(row['text']))
      .join('');
  }

  #read(sessionId: string, row: SqlRow): StoredEvent {
    const seq = Number(row['seq']);
    const state = this.#loaded(seq, 'state', row['state']);
    const event = eventOf(sessionId, row, this.#loaded(seq, 'data', row['data']));
    return { event, state: state === '' ? null : (JSON.parse(state) as JsonObject) };
  }

  #toRun(row: SqlRow): RunRecord {
    const run = Number(row['run']);
    const load = (text: unknown): JsonObject => JSON.parse(this.#loaded(-run, 'input', text)) as JsonObject;
    // A long input is read when somebody asks for it: a page of runs would not fit in memory with all of theirs.
    let input = row['input'] === null ? null : load(row['input']);
    const read = (): JsonObject =>
      (input ??= load(this.#exec(`SELECT input FROM runs WHERE run = ?`, run)[0]?.['input']));
    return {
      run,
      runId: runIdOf(this.#requireRecord().session_id, run),
      status: String(row['status']) as RunStatus,
      firstSeq: Number(row['first_seq']),
      lastSeq: row['last_seq'] === null ? null : Number(row['last_seq']),
      startedAt: Number(row['started_at']),
      endedAt: row['ended_at'] === null ? null : Number(row['ended_at']),
      get input() {
        return read();
      },
      idempotencyKey: row['idempotency_key'] == null ? null : String(row['idempotency_key']),
    };
  }
}

function outputOf(event: SessionEvent): Json {
  return event.type === 'action_completed' ? event.data.output : null;
}

/** The beginning of the output in the beginning of an `action_completed` event's JSON: text, or JSON as text. */
function beginningOf(data: string): string {
  const output = data.slice('{"output":'.length);
  if (!output.startsWith('"')) return output;
  // The cut may have left part of an escape, of six characters at most.
  for (let end = output.length; end > output.length - 6; end -= 1) {
    try {
      return JSON.parse(`${output.slice(0, end)}"`) as string;
    } catch {
      // One character less.
    }
  }
  return '';
}

/** `run_<hex>_3` -> 3; 0 when the id has another form. */
export function runNumberOf(runId: string): number {
  const match = /_(\d{1,9})$/.exec(runId);
  return match === null ? 0 : Number(match[1]);
}

function toEvent<T extends JournaledEventType>(sessionId: string, seq: number, entry: JournalEntry<T>): EventOf<T> {
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
  return event as unknown as EventOf<T>;
}

function eventOf(sessionId: string, row: SqlRow, data: string): SessionEvent {
  const head = {
    seq: Number(row['seq']),
    type: String(row['type']) as EventType,
    session_id: sessionId,
    run_id: runIdOf(sessionId, Number(row['run'])),
    iteration: Number(row['iteration']),
    timestamp: Number(row['at']),
    ...(row['action_id'] === null ? {} : { action_id: String(row['action_id']) }),
    ...(row['action_name'] === null ? {} : { action_name: String(row['action_name']) }),
  };
  return storedEvent(head, data);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
