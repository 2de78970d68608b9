/**
 * The ledger (R1): every job with its outcome, and every event of every session, in SQLite.
 *
 * Owns the set of jobs, the order of events, and used tokens. Does not own running processes.
 * Invariants:
 * 1. A job id identifies one request: adding it again changes nothing.
 * 2. A job ends once; later ends are ignored. No event follows its `exited` event.
 * 3. Event numbers increase over all sessions and are never reused, also after a restart, and also in a new ledger that
 *    replaces one that was set aside: its first number is the current time.
 * 4. Opening the ledger marks queued and running jobs as `lost`.
 * 5. Opening the ledger repairs rows that cannot be parsed.
 * 6. A full or broken disk causes a `LedgerError`.
 */
import fs from 'node:fs';
import path from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';

import type { JobEnd, Outcome } from '../jobs/job.ts';
import { LedgerError, reasonOf } from './ledger-error.ts';
import { prepareTables } from './schema.ts';
import { limits } from '../limits.ts';

/** `build`: output of the build of a job's image. */
export type EventType = 'started' | 'build' | 'stdout' | 'stderr' | 'exited';

export interface LedgerEvent {
  readonly seq: number;
  readonly job: string;
  readonly type: EventType;
  /** JSON of the payload. */
  readonly data: string;
}

export interface JobRecord {
  readonly id: string;
  readonly session: string;
  readonly kind: string;
  readonly state: 'queued' | 'running' | 'ended';
  readonly sandbox: string | null;
  readonly requestHash: string;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly end: JobEnd | null;
  readonly exitCode: number | null;
  readonly truncated: boolean;
  /** Header `traceparent` of the request, in its normal form; null: none. */
  readonly traceparent: string | null;
  /** When the program started in its sandbox; null: it did not, or the runner was killed before the job ended. */
  readonly preparedAt: number | null;
}

export const LEDGER_FILE = 'jobs.sqlite';
/** Number of jobs that are deleted at a time when the ledger is too large. */
const PRUNE_STEP = 10;
/** Columns of a `JobRecord`. */
const COLUMNS =
  'id, session, kind, state, sandbox, request_hash, created_at, started_at, ended_at, end, exit_code, truncated, traceparent, prepared_at';

type Row = Record<string, unknown>;

export class Ledger {
  readonly #db: DatabaseSync;
  readonly #now: () => number;
  readonly #maxBytes: number;
  /** Characters of events since the last size check. */
  #sinceMeasured = 0;
  readonly #statements = new Map<string, StatementSync>();
  readonly #listeners = new Map<string, Set<() => void>>();

  /** Tokens that were used while the ledger could not be written, with their expiry. */
  readonly #spentInMemory = new Map<string, number>();
  readonly #lostAtStart: string[] = [];

  /**
   * @param file path of the database, or `:memory:`
   * @param maxBytes maximum size
   * @throws LedgerError if the file was written by a newer version, or cannot be written
   * @throws Error of SQLite or the file system
   * @see openLedger, which handles a file that is not a ledger
   */
  constructor(file: string, now: () => number, maxBytes: number = limits.ledgerBytes) {
    if (file !== ':memory:') {
      fs.mkdirSync(path.dirname(file), { recursive: true });
      // only the runner's user may read the output of jobs
      fs.closeSync(fs.openSync(file, 'a', 0o600));
    }
    this.#maxBytes = maxBytes;
    this.#now = now;
    this.#db = new DatabaseSync(file);
    try {
      this.#db.exec('PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;');
      prepareTables(this.#db, file, now());
      this.#markAbandonedLost();
      this.prune();
    } catch (fault) {
      this.#db.close();
      throw fault;
    }
  }

  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  /** Adds a job; false if the id is known. */
  add(job: {
    readonly id: string;
    readonly session: string;
    readonly kind: string;
    readonly requestHash: string;
    readonly traceparent?: string | null;
    /** Epoch milliseconds; default: now. */
    readonly createdAt?: number;
    /** Its spans will be exported. */
    readonly spansDue?: boolean;
  }): boolean {
    const { changes } = this.#run(
      `INSERT OR IGNORE INTO jobs (id, session, kind, state, request_hash, created_at, traceparent, spans_due)
       VALUES (?, ?, ?, 'queued', ?, ?, ?, ?)`,
      job.id,
      job.session,
      job.kind,
      job.requestHash,
      job.createdAt ?? this.#now(),
      job.traceparent ?? null,
      job.spansDue === true ? 1 : 0,
    );
    return changes === 1;
  }

  /** Removes a job that was added and then rejected. */
  remove(id: string): void {
    this.#run(`DELETE FROM jobs WHERE id = ? AND state = 'queued'`, id);
  }

  /** Records that an unknown job was killed, so that it does not start if its request arrives later. */
  recordKilled(id: string): void {
    this.#run(
      `INSERT OR IGNORE INTO jobs (id, session, kind, state, request_hash, created_at, ended_at, end)
       VALUES (?, '', '', 'ended', '', ?, ?, 'killed')`,
      id,
      this.#now(),
      this.#now(),
    );
  }

  start(id: string, session: string, sandbox: string): void {
    this.#run(`UPDATE jobs SET state = 'running', sandbox = ?, started_at = ? WHERE id = ?`, sandbox, this.#now(), id);
    this.#append(session, id, 'started', { sandbox });
  }

  output(id: string, session: string, stream: 'stdout' | 'stderr' | 'build', text: string): void {
    this.#append(session, id, stream, { text });
  }

  /**
   * Ends a job; false if it has already ended.
   *
   * @param preparedAt epoch milliseconds; null: the program did not start
   */
  finish(id: string, session: string, outcome: Outcome, preparedAt: number | null = null): boolean {
    const at = this.#now();
    const workspace = outcome.workspace === undefined ? null : JSON.stringify(outcome.workspace);
    try {
      this.#db.exec('BEGIN IMMEDIATE');
      const { changes } = this.#run(
        `UPDATE jobs SET state = 'ended', ended_at = ?, end = ?, exit_code = ?, truncated = ?, workspace = ?, prepared_at = ? WHERE id = ? AND state <> 'ended'`,
        at,
        outcome.end,
        outcome.exitCode,
        outcome.truncated ? 1 : 0,
        workspace,
        preparedAt,
        id,
      );
      if (changes === 1) {
        this.#insert(session, id, 'exited', {
          end: outcome.end,
          exit_code: outcome.exitCode,
          truncated: outcome.truncated,
          ...(outcome.workspace === undefined ? {} : { workspace: outcome.workspace }),
        });
        this.#sinceMeasured += workspace?.length ?? 0;
      }
      this.#db.exec('COMMIT');
      if (changes === 1) this.#notify(session);
      // jobs could print much more than the limit between two prunings
      if (this.#sinceMeasured > limits.ledgerSlackChars) this.#shrink();
      return changes === 1;
    } catch (fault) {
      // a full disk has already rolled the transaction back
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw named(fault);
    }
  }

  job(id: string): JobRecord | null {
    const row = this.#get(`SELECT ${COLUMNS} FROM jobs WHERE id = ?`, id);
    return row === undefined ? null : recordOf(row);
  }

  /** Jobs that opening the ledger ended as `lost`. */
  lostAtStart(): JobRecord[] {
    return this.#lostAtStart.flatMap((id) => this.job(id) ?? []);
  }

  /** The latest ended jobs whose spans have not been exported, oldest first. */
  spansDue(most: number): JobRecord[] {
    const sql = `SELECT ${COLUMNS} FROM jobs WHERE spans_due = 1 AND state = 'ended' ORDER BY ended_at DESC LIMIT ?`;
    return this.#all(sql, most).map(recordOf).toReversed();
  }

  /** Their spans were exported, or cannot be. */
  spansDone(ids: readonly string[]): void {
    this.#run('UPDATE jobs SET spans_due = 0 WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids));
  }

  /** What a job left in its workspace; null unless it had one and exited. */
  workspace(id: string): unknown {
    const text = this.#get('SELECT workspace FROM jobs WHERE id = ?', id)?.['workspace'];
    return typeof text === 'string' ? JSON.parse(text) : null;
  }

  /** The complete output of a job on one stream. */
  printed(id: string, stream: 'stdout' | 'stderr'): string {
    const rows = this.#all('SELECT data FROM events WHERE job = ? AND type = ? ORDER BY seq', id, stream);
    return rows.map((row) => (JSON.parse(String(row['data'])) as { text: string }).text).join('');
  }

  /** Number of a job's latest event; 0 before the first. */
  lastEvent(id: string): number {
    return Number(this.#get('SELECT MAX(seq) AS seq FROM events WHERE job = ?', id)?.['seq'] ?? 0);
  }

  /**
   * Events of a session after a number, oldest first, at most `limits.eventRows`, and none after
   * `limits.eventBatchChars`.
   */
  events(session: string, after: number): LedgerEvent[] {
    const sql = `SELECT seq, job, type, data FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ${limits.eventRows}`;
    const events: LedgerEvent[] = [];
    let chars = 0;
    try {
      for (const row of this.#statement(sql).iterate(session, after)) {
        const data = String(row['data']);
        events.push({
          seq: Number(row['seq']),
          job: String(row['job']),
          type: String(row['type']) as EventType,
          data,
        });
        chars += data.length;
        if (chars >= limits.eventBatchChars) break;
      }
    } catch (fault) {
      throw named(fault);
    }
    return events;
  }

  /** Position for a reader without one: before the first event of unfinished and recently ended jobs. */
  startingPoint(session: string): number {
    const row = this.#get(
      `SELECT MIN(seq) AS seq FROM events WHERE session = ? AND job IN
        (SELECT id FROM jobs WHERE session = ? AND (ended_at IS NULL OR ended_at > ?))`,
      session,
      session,
      this.#now() - limits.recentMs,
    );
    if (typeof row?.['seq'] === 'number') return row['seq'] - 1;
    return Number(this.#get('SELECT MAX(seq) AS seq FROM events WHERE session = ?', session)?.['seq'] ?? 0);
  }

  /** Calls `listener` after every append to the session; returns a function that stops it. */
  watch(session: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(session) ?? new Set();
    this.#listeners.set(session, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(session);
    };
  }

  /**
   * Records the use of a token; false if it was used before (R7). If the ledger cannot be written, the token is kept in
   * memory, so that jobs can still be queried and killed when the disk is full.
   *
   * @throws LedgerError beyond `limits.tokensInMemory`
   */
  spend(tokenId: string, expiresAt: number): boolean {
    if (this.#spentInMemory.has(tokenId)) return false;
    try {
      return this.#run('INSERT OR IGNORE INTO tokens (id, expires_at) VALUES (?, ?)', tokenId, expiresAt).changes === 1;
    } catch (fault) {
      if (!(fault instanceof LedgerError)) throw fault;
      if (this.#get('SELECT 1 FROM tokens WHERE id = ?', tokenId) !== undefined) return false;
      for (const [id, end] of this.#spentInMemory) if (end < this.#now()) this.#spentInMemory.delete(id);
      if (this.#spentInMemory.size >= limits.tokensInMemory) throw fault;
      this.#spentInMemory.set(tokenId, expiresAt);
      return true;
    }
  }

  /** Deletes jobs beyond the retention or the maximum size, oldest first, and expired tokens. */
  prune(): void {
    const before = this.#now() - limits.retentionMs;
    this.#forget('SELECT id FROM jobs WHERE ended_at < ?', before);
    this.#shrink();
    this.#run('DELETE FROM tokens WHERE expires_at < ?', this.#now());
  }

  #shrink(): void {
    this.#sinceMeasured = 0;
    while (this.sizeBytes > this.#maxBytes) {
      const forgotten = this.#forget(
        'SELECT id FROM jobs WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT ?',
        PRUNE_STEP,
      );
      if (forgotten === 0) break;
    }
  }

  /** Deletes the selected jobs with their events; returns their number. */
  #forget(selection: string, value: number): number {
    this.#run(`DELETE FROM events WHERE job IN (${selection})`, value);
    return this.#run(`DELETE FROM jobs WHERE id IN (${selection})`, value).changes;
  }

  /** Size of the used pages. */
  get sizeBytes(): number {
    const pragma = (name: string): number =>
      Number(Object.values(this.#db.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
    return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  }

  #markAbandonedLost(): void {
    for (const row of this.#all(`SELECT id, session FROM jobs WHERE state <> 'ended'`)) {
      const id = String(row['id']);
      this.finish(id, String(row['session']), { end: 'lost', exitCode: null, truncated: false });
      this.#lostAtStart.push(id);
    }
  }

  #append(session: string, job: string, type: EventType, data: unknown): void {
    this.#insert(session, job, type, data);
    this.#notify(session);
  }

  #insert(session: string, job: string, type: EventType, data: unknown): void {
    const json = JSON.stringify(data);
    this.#sinceMeasured += json.length;
    this.#run('INSERT INTO events (session, job, type, data) VALUES (?, ?, ?, ?)', session, job, type, json);
  }

  #notify(session: string): void {
    for (const listener of this.#listeners.get(session) ?? []) listener();
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const prepared = this.#db.prepare(sql);
    this.#statements.set(sql, prepared);
    return prepared;
  }

  #run(sql: string, ...values: readonly (string | number | null)[]): { readonly changes: number } {
    try {
      return { changes: Number(this.#statement(sql).run(...values).changes) };
    } catch (fault) {
      throw named(fault);
    }
  }

  #get(sql: string, ...values: readonly (string | number | null)[]): Row | undefined {
    try {
      return this.#statement(sql).get(...values);
    } catch (fault) {
      throw named(fault);
    }
  }

  #all(sql: string, ...values: readonly (string | number | null)[]): Row[] {
    try {
      return this.#statement(sql).all(...values);
    } catch (fault) {
      throw named(fault);
    }
  }
}

/** Converts an error of the disk to a `LedgerError`. */
function named(fault: unknown): unknown {
  const reason = reasonOf(fault);
  return reason === null ? fault : new LedgerError(`The ledger ${LEDGER_FILE} failed: ${reason}`, { cause: fault });
}

function recordOf(row: Row): JobRecord {
  const number = (value: unknown): number | null => (value === null ? null : Number(value));
  return {
    id: String(row['id']),
    session: String(row['session']),
    kind: String(row['kind']),
    state: String(row['state']) as JobRecord['state'],
    sandbox: row['sandbox'] === null ? null : String(row['sandbox']),
    requestHash: String(row['request_hash']),
    createdAt: Number(row['created_at']),
    startedAt: number(row['started_at']),
    endedAt: number(row['ended_at']),
    end: row['end'] === null ? null : (String(row['end']) as JobEnd),
    exitCode: number(row['exit_code']),
    truncated: row['truncated'] === 1,
    traceparent: row['traceparent'] === null ? null : String(row['traceparent']),
    preparedAt: number(row['prepared_at']),
  };
}
