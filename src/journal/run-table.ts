/** The table of runs: their state, their input, and inputs that are not part of an event (J3, J7, J9). */
import { readContent } from '../domain/content.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlRow } from '../domain/ports/storage.ts';
import type { RunPlace, RunRecord, RunStatus } from '../domain/session.ts';
import type { JournalDatabase } from './journal-database.ts';
import { runIdOf } from './run-id.ts';

/** A run's columns; null for a long input, or one in chunk rows. */
const RUN = `run, status, first_seq, last_seq, started_at, ended_at, idempotency_key, parent, retry_of,
  CASE WHEN input <> '' AND OCTET_LENGTH(input) <= ${limits.inlineBytes} THEN input END AS input`;

/** A query for the numbers of a run and its ancestors, newest first. */
function branchOf(last: string, limit: string): string {
  return `WITH RECURSIVE branch (run, parent) AS (
      SELECT run, parent FROM runs WHERE run = ${last}
      UNION ALL SELECT runs.run, runs.parent FROM branch JOIN runs ON runs.run = branch.parent ${limit}
    ) SELECT run FROM branch`;
}

/** Whether the input of a run is a message, so that the run is a turn of the conversation. */
export function isMessage(input: JsonObject): boolean {
  return readContent(input['content']) !== null;
}

/** Without the noise of sums: a billionth is far below any price. */
function dollars(sum: number): number {
  return Math.round(sum * 1e9) / 1e9;
}

/** Runs that may wait at once, and so begin in another order: a bound of what is searched. */
const MOST_QUEUED = 2 * (limits.queuedMessages + limits.steeredMessages);

export class RunTable {
  readonly #db: JournalDatabase;
  /** What `cost` returns, until a run ends. */
  #cost: number | null | undefined;
  /** What `newest` returns, while the rows are of this version. */
  #newest: { readonly run: RunRecord | null; readonly version: number } | null = null;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** Registers the next run of the session. @param place default: it follows the head */
  create(
    input: JsonObject,
    at: number,
    status: 'queued' | 'running',
    idempotencyKey: string | null = null,
    { parent, retryOf }: RunPlace = { parent: this.head, retryOf: null },
  ): RunRecord {
    const run = this.count + 1;
    this.#db.storeWith(-run, 'input', JSON.stringify(input), (column) => {
      this.#db.exec(
        `INSERT INTO runs (run, status, first_seq, started_at, input, idempotency_key, open, parent, retry_of, turn, spent)
         VALUES (?1, ?, ?, ?, ?, ?, 1, ?, ?, ?, (SELECT spent FROM runs WHERE run = ?1 - 1))`,
        run,
        status,
        this.#db.lastSeq + 1,
        at,
        column,
        idempotencyKey,
        parent,
        retryOf,
        this.turnOf(parent) + (isMessage(input) ? 1 : 0),
      );
    });
    this.#db.changed();
    return this.require(run);
  }

  /** Starts a queued run. */
  start(run: number, at: number): void {
    this.#db.exec(
      `UPDATE runs SET status = 'running', first_seq = ?, started_at = ? WHERE run = ?`,
      this.#db.lastSeq + 1,
      at,
      run,
    );
    this.#db.changed();
  }

  /**
   * @param open the run is not complete: it waits for an approval or a client, or for an action that nothing waits for
   * @param cost US dollars of the whole run; null: nothing more is known than at its last end
   */
  end(run: number, status: RunStatus, at: number, open: boolean, cost: number | null = null): void {
    this.#cost = undefined;
    const ended = `UPDATE runs SET status = ?, last_seq = ?, ended_at = ?, open = ?`;
    const values = [status, this.#db.lastSeq, at, open ? 1 : 0];
    if (cost === null) this.#db.exec(`${ended} WHERE run = ?`, ...values, run);
    else {
      const { count } = this;
      const more = cost - this.#costOf(run);
      const spent = `spent = COALESCE(spent, 0) + ?`;
      if (run === count) this.#db.exec(`${ended}, cost = ?, ${spent} WHERE run = ?`, ...values, cost, more, run);
      else {
        this.#db.exec(`${ended}, cost = ? WHERE run = ?`, ...values, cost, run);
        this.#db.exec(`UPDATE runs SET ${spent} WHERE run = ?`, more, count);
      }
    }
    this.#db.changed();
  }

  /** Marks the run as complete: nothing more will happen in it. */
  close(run: number): void {
    this.#db.exec(`UPDATE runs SET open = 0 WHERE run = ? AND open = 1`, run);
    this.#db.changed();
  }

  get(run: number): RunRecord | null {
    const { newest } = this;
    if (newest?.run === run) return newest;
    const row = this.#db.find(`SELECT ${RUN} FROM runs WHERE run = ?`, run)[0];
    return row === undefined ? null : this.#toRun(row);
  }

  /** The run started by a message with this `Idempotency-Key` (J7). */
  byIdempotencyKey(key: string): RunRecord | null {
    const row = this.#db.find(`SELECT ${RUN} FROM runs WHERE idempotency_key = ?`, key)[0];
    return row === undefined ? null : this.#toRun(row);
  }

  require(run: number): RunRecord {
    const found = this.get(run);
    if (found === null) throw new Error(`run ${run} is not in the journal`);
    return found;
  }

  /** The run that was created last, or null. The most frequent query: its result is kept until the table changes. */
  get newest(): RunRecord | null {
    const { runsVersion: version } = this.#db;
    if (this.#newest?.version !== version) {
      const [row] = this.#db.find(`SELECT ${RUN} FROM runs ORDER BY run DESC LIMIT 1`);
      this.#newest = { run: row === undefined ? null : this.#toRun(row), version };
    }
    return this.#newest.run;
  }

  /** Runs in order: the newest `limit` of them, or of those before `before`. */
  list(limit: number = limits.pageRows, before: number = Number.MAX_SAFE_INTEGER): RunRecord[] {
    if (limit !== 1) return this.#read(limit, before);
    const { newest } = this;
    if (newest !== null && newest.run >= before) return this.#read(limit, before);
    return newest === null ? [] : [newest];
  }

  #read(limit: number, before: number = Number.MAX_SAFE_INTEGER): RunRecord[] {
    return this.#db
      .find(
        `SELECT * FROM (SELECT ${RUN} FROM runs WHERE run < ? ORDER BY run DESC LIMIT ?) ORDER BY run`,
        before,
        limit,
      )
      .map((row) => this.#toRun(row));
  }

  /** The run that the next message follows: the one that `setHead` named, or the newest; 0 if there is none (C4). */
  get head(): number {
    const { count } = this;
    const [row] = this.#db.findIn('head', `SELECT run FROM head WHERE newest = ?`, count);
    return row === undefined ? count : Number(row['run']);
  }

  /**
   * The run that began last, this one left out, and its first event; 0 if there is none. Runs begin in order, except after
   * failed writes; those that were cancelled in the queue never began.
   */
  lastBegun(without: number): { readonly run: number; readonly seq: number } {
    const began = `SELECT COALESCE(earlier ->> '$[0][1]', type) FROM events WHERE seq >= first_seq ORDER BY seq LIMIT 1`;
    const sql = `SELECT run, first_seq FROM runs WHERE run <> ?1 AND run > ?2 - ${MOST_QUEUED} AND status <> 'queued'
      AND (${began}) = 'agent_started' ORDER BY first_seq DESC LIMIT 1`;
    const [row] = this.#db.find(sql, without, this.count);
    return { run: Number(row?.['run'] ?? 0), seq: Number(row?.['first_seq'] ?? 0) };
  }

  /** The next message follows this run. */
  setHead(run: number): void {
    this.#db.exec(`INSERT OR REPLACE INTO head (id, run, newest) VALUES (1, ?, ?)`, run, this.count);
    this.#db.changed();
  }

  /** A run and its ancestors in order: the newest `limit` of them (C4). @param last 0: none */
  branch(last: number, limit: number = limits.pageRows): RunRecord[] {
    const sql = `SELECT ${RUN} FROM runs WHERE run IN (${branchOf('?', 'LIMIT ?')}) ORDER BY run`;
    return this.#db.find(sql, last, limit).map((row) => this.#toRun(row));
  }

  /** The numbers of a run and all of its ancestors, in order. */
  branchNumbers(last: number): number[] {
    const sql = `SELECT run FROM (${branchOf('?', '')}) ORDER BY run`;
    return this.#db.find(sql, last).map((row) => Number(row['run']));
  }

  /** Number of messages on the branch up to this run, which is the position of its turn (C10). @param run 0: none */
  turnOf(run: number): number {
    return Number(this.#db.find(`SELECT turn FROM runs WHERE run = ?`, run)[0]?.['turn'] ?? 0);
  }

  /** The run with this turn on the branch that ends with `last`; 0 if there is none. */
  ofTurn(turn: number, last: number): number {
    const sql = `SELECT MIN(run) AS run FROM runs WHERE turn = ? AND ${this.onBranch(last, '?2')}`;
    return turn < 1 ? 0 : Number(this.#db.find(sql, turn, last)[0]?.['run'] ?? 0);
  }

  /** Whether a run is on the branch that ends with another one. */
  isAncestor(run: number, last: number): boolean {
    const sql = `SELECT 1 FROM (${branchOf('?2', '')}) WHERE run = ?1`;
    return run <= last && (this.#isStraight(last) ? run > 0 : this.#db.find(sql, run, last).length > 0);
  }

  /** Whether every run up to this one follows the run before it. */
  #isStraight(last: number): boolean {
    return this.#db.find(`SELECT 1 FROM runs WHERE parent <> run - 1 AND run <= ? LIMIT 1`, last).length === 0;
  }

  /** A condition in SQL that `run` is on the branch that ends with `last`, which is this parameter of the statement. */
  onBranch(last: number, parameter: `?${number}`): string {
    return this.#isStraight(last) ? `run <= ${parameter}` : `run IN (${branchOf(parameter, '')})`;
  }

  /** The runs with the same parent, oldest first, this one included: the newest `limits.pageRows`. */
  versions({ parent }: Pick<RunRecord, 'parent'>): number[] {
    const sql = `SELECT run FROM runs WHERE parent = ?1 AND parent <> run - 1
      UNION SELECT run FROM runs WHERE run = ?1 + 1 AND parent = ?1 ORDER BY run DESC LIMIT ?2`;
    return this.#db
      .find(sql, parent, limits.pageRows)
      .map((row) => Number(row['run']))
      .reverse();
  }

  /** Number of runs; they are numbered from 1. */
  get count(): number {
    return this.newest?.run ?? 0;
  }

  /** US dollars of all runs but this one, as far as they are known. */
  costWithout(run: number): number {
    return Math.max(0, dollars((this.#spent ?? 0) - this.#costOf(run)));
  }

  /** US dollars of all runs that have ended or wait, and of summaries; null if no price is known. */
  get cost(): number | null {
    if (this.#cost !== undefined) return this.#cost;
    const summaries =
      this.#db.findIn('summary_work', `SELECT cost FROM summary_work WHERE cost IS NOT NULL`)[0]?.['cost'] ?? null;
    const spent = this.#spent;
    this.#cost = spent === null && summaries === null ? null : dollars((spent ?? 0) + Number(summaries ?? 0));
    return this.#cost;
  }

  /** US dollars of all runs; null if no price is known. The newest run has the sum, so that it needs no index (J6). */
  get #spent(): number | null {
    const spent = this.#db.find(`SELECT spent FROM runs ORDER BY run DESC LIMIT 1`)[0]?.['spent'] ?? null;
    return spent === null ? null : Number(spent);
  }

  #costOf(run: number): number {
    return Number(this.#db.find(`SELECT cost FROM runs WHERE run = ?`, run)[0]?.['cost'] ?? 0);
  }

  /** The cost of a summary was added: the sum is read again. */
  forgetCost(): void {
    this.#cost = undefined;
  }

  /** Runs that are not complete: after a crash, these must be resumed (J3). */
  open(): RunRecord[] {
    return this.#db.find(`SELECT ${RUN} FROM runs WHERE open = 1 ORDER BY run`).map((row) => this.#toRun(row));
  }

  /** Writes inputs of a run that are not part of an event; they follow the last appended event (J9). */
  addInputs(run: number, inputs: Json): void {
    this.#db.exec(
      `INSERT INTO inputs (run, after_seq, data) VALUES (?, ?, ?)`,
      run,
      this.#db.lastSeq,
      JSON.stringify(inputs),
    );
    this.#db.changed();
  }

  /** The inputs of a run that no event contains, in order: those in the row of a prompt are the first of a generation. */
  looseInputs(run: number): { readonly afterSeq: number; readonly inputs: Json }[] {
    const sql = `SELECT after_seq, 0 AS place, id, inputs AS data FROM prompts WHERE run = ?1 AND inputs IS NOT NULL
      UNION ALL SELECT after_seq, 1, id, data FROM inputs WHERE run = ?1 ORDER BY after_seq, place, id`;
    return this.#db
      .find(sql, run)
      .map((row) => ({ afterSeq: Number(row['after_seq']), inputs: JSON.parse(String(row['data'])) as Json }));
  }

  #toRun(row: SqlRow): RunRecord {
    const run = Number(row['run']);
    const load = (text: unknown): JsonObject => JSON.parse(this.#db.load(-run, 'input', text)) as JsonObject;
    let input: JsonObject | null = null;
    let text: unknown = row['input'];
    const read = (): JsonObject => {
      // A long input is read on demand: a page of runs would not fit in memory with all inputs.
      input ??= load(text ?? this.#db.exec(`SELECT input FROM runs WHERE run = ?`, run)[0]?.['input']);
      text = null;
      return input;
    };
    return {
      run,
      runId: runIdOf(this.#db.requireRecord(), run),
      status: String(row['status']) as RunStatus,
      firstSeq: Number(row['first_seq']),
      lastSeq: row['last_seq'] === null ? null : Number(row['last_seq']),
      startedAt: Number(row['started_at']),
      endedAt: row['ended_at'] === null ? null : Number(row['ended_at']),
      get input() {
        return read();
      },
      idempotencyKey: row['idempotency_key'] == null ? null : String(row['idempotency_key']),
      parent: Number(row['parent']),
      retryOf: row['retry_of'] == null ? null : Number(row['retry_of']),
    };
  }
}
