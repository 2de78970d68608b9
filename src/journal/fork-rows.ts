/**
 * A branch of a session as rows for another session, and back (C4).
 *
 * The other session has the runs of the branch as its own: numbered from 1, with events numbered from 1, and without the
 * place in a tree that they had. Ids of runs and artifacts follow from these numbers. What only a run in progress needs is
 * left out: its recorded inputs, idempotency keys and pinned manifests.
 *
 * Invariants:
 *  1. Reading holds a page of rows or one long value, and a number for each run. Writing holds the numbers of the blocks of
 *     runs that have not ended, and of the actions that others may refer to.
 *  2. Nothing of the other session exists before its record is written: that is the last step.
 */
import type { JournaledEventType } from '../domain/event.ts';
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlRow } from '../domain/ports/storage.ts';
import type { RunStatus, SessionIdentity } from '../domain/session.ts';
import type { WorkspaceFile } from '../domain/workspace.ts';
import type { FileAbout, Holder } from './blobs.ts';
import { eachEvent } from './event-rows.ts';
import type { JournalDatabase } from './journal-database.ts';
import { isRawApart, RAW_FIELD } from './raw-data.ts';
import { runIdOf, runNumberOf } from './run-id.ts';
import { isMessage } from './run-table.ts';
import { WorkspaceTable } from './workspace-table.ts';

/** Texts are JSON. `seq` is that of the source; runs have the numbers of the other session. */
export type ForkRow =
  | {
      readonly kind: 'seeded';
      readonly id: number;
      readonly turn: number;
      readonly role: string;
      readonly text: string;
    }
  | { readonly kind: 'variable'; readonly key: string; readonly text: string }
  | { readonly kind: 'feed'; readonly id: string; readonly text: string }
  | {
      readonly kind: 'run';
      readonly run: number;
      readonly retryOf: number | null;
      readonly status: RunStatus;
      readonly startedAt: number;
      readonly endedAt: number | null;
      readonly text: string;
    }
  | {
      readonly kind: 'event';
      readonly run: number;
      readonly seq: number;
      readonly iteration: number;
      readonly type: JournaledEventType;
      readonly at: number;
      readonly actionId: string | null;
      readonly actionName: string | null;
      readonly text: string;
      readonly state: string | null;
      /** What was redacted of the text, if it is not in the state (C9). */
      readonly raw?: string;
    }
  /** Follows the event that announced the message. */
  | {
      readonly kind: 'steered';
      readonly run: number;
      readonly number: number;
      readonly iteration: number;
      readonly text: string;
    }
  | { readonly kind: 'workspace'; readonly file: WorkspaceFile }
  | ({
      readonly kind: 'file';
      readonly sha256: string;
      readonly bytes: Uint8Array;
      readonly holder: Holder;
    } & FileAbout);

/** Events about the place of a run in a tree: the other session has none. */
const LEFT_OUT = 'run_branched';
/** What a run began with: the record of the other session has the patterns. */
const PINNED: readonly string[] = ['manifests', 'patterns'];
/** What of a state only recovery reads. */
const RECOVERY: readonly string[] = ['in'];
const OPENS: ReadonlySet<string> = new Set(['thought_started', 'text_started', 'response_started']);
const ENDS: ReadonlySet<string> = new Set(['agent_completed', 'agent_failed', 'agent_cancelled']);

export class ForkReader {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /**
   * The rows of a branch, without the files of the workspace and the bytes of files.
   *
   * @param branch the numbers of its runs in order, all of them complete
   */
  *rows(branch: readonly number[]): Generator<ForkRow> {
    yield* this.#seeded();
    yield* this.#simple('first_variables', 'key', 'value', (key, text) => ({ kind: 'variable', key, text }));
    yield* this.#simple('feeds', 'id', 'data', (id, text) => ({ kind: 'feed', id, text }));
    yield* this.#runs(branch);
  }

  *#seeded(): Generator<ForkRow> {
    for (let after = 0; ;) {
      const [row] = this.#db.findIn(
        'seeded',
        `SELECT id, turn, role, data FROM seeded WHERE id > ? ORDER BY id LIMIT 1`,
        after,
      );
      if (row === undefined) return;
      after = Number(row['id']);
      const text = this.#db.load(after, 'seeded', row['data']);
      yield { kind: 'seeded', id: after, turn: Number(row['turn']), role: String(row['role']), text };
    }
  }

  *#simple(
    table: 'first_variables' | 'feeds',
    key: string,
    value: string,
    rowOf: (key: string, text: string) => ForkRow,
  ): Generator<ForkRow> {
    for (let after = ''; ;) {
      const sql = `SELECT ${key} AS name, ${value} AS text FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT 1`;
      const [row] = this.#db.findIn(table, sql, after);
      if (row === undefined) return;
      after = String(row['name']);
      yield rowOf(after, String(row['text']));
    }
  }

  /**
   * The summary that covers most of the branch, if it was written after a run of another branch: it counts here as well
   * (C10). The events of the branch have the others.
   */
  *#summary(branch: readonly number[], numbers: ReadonlyMap<number, number>): Generator<ForkRow> {
    const last = branch.length;
    const [row] = this.#db.findIn(
      'summaries',
      `SELECT seq FROM summaries WHERE until_run = 0 OR until_run IN (SELECT value FROM JSON_EACH(?))
       ORDER BY turns DESC, seq DESC LIMIT 1`,
      JSON.stringify(branch),
    );
    const seq = Number(row?.['seq'] ?? 0);
    const [event] = this.#db.exec(
      `SELECT seq, run, iteration, type, at, action_id, action_name, data, state,
         state IS NULL AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.seq = events.seq AND field = 'state') AS stateless
       FROM events WHERE seq = ?`,
      seq,
    );
    if (event === undefined || last === 0 || numbers.has(Number(event['run']))) return;
    yield this.#event(event, last, numbers);
  }

  *#runs(branch: readonly number[]): Generator<ForkRow> {
    const numbers = new Map(branch.map((run, index) => [run, index + 1]));
    const begun = new Set<number>();
    const last = branch.at(-1) ?? 0;
    const first = this.#db.find(`SELECT MIN(first_seq) AS seq FROM runs WHERE run = ?`, branch[0] ?? 0)[0];
    for (let after = Number(first?.['seq'] ?? 1) - 1; ;) {
      // Long values are read one by one.
      const rows = this.#db.find(
        `SELECT seq, run, iteration, type, at, action_id, action_name, earlier,
           CASE WHEN OCTET_LENGTH(data) <= ?1 THEN data END AS data,
           CASE WHEN OCTET_LENGTH(state) <= ?1 THEN state END AS state,
           state IS NULL AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.seq = events.seq AND field = 'state') AS stateless
         FROM events WHERE seq > ?2 AND run <= ?3 ORDER BY seq LIMIT ?4`,
        limits.inlineBytes,
        after,
        last,
        limits.pageRows,
      );
      for (const row of eachEvent(rows)) {
        const run = Number(row['run']);
        const number = numbers.get(run);
        if (number === undefined || row['type'] === LEFT_OUT) continue;
        if (!begun.has(run)) yield this.#run(run, number, numbers);
        begun.add(run);
        yield this.#event(row, number, numbers);
        if (row['type'] === 'message_received') yield* this.#steered(run, number, Number(row['seq']));
      }
      if (rows.length < limits.pageRows) break;
      after = Number(rows.at(-1)?.['seq']);
    }
    yield* this.#summary(branch, numbers);
  }

  #run(run: number, number: number, numbers: ReadonlyMap<number, number>): ForkRow {
    const [row = {}] = this.#db.find(
      `SELECT status, started_at, ended_at, retry_of, input FROM runs WHERE run = ?`,
      run,
    );
    const retryOf = row['retry_of'] === null ? null : (numbers.get(Number(row['retry_of'])) ?? null);
    return {
      kind: 'run',
      run: number,
      retryOf,
      status: String(row['status']) as RunStatus,
      startedAt: Number(row['started_at']),
      endedAt: row['ended_at'] === null ? null : Number(row['ended_at']),
      text: withoutMembers(this.#db.load(-run, 'input', row['input']), PINNED),
    };
  }

  #event(row: SqlRow, run: number, numbers: ReadonlyMap<number, number>): ForkRow {
    const seq = Number(row['seq']);
    const column = (name: string): unknown =>
      row[name] ?? this.#db.exec(`SELECT ${name} FROM events WHERE seq = ?`, seq)[0]?.[name];
    const state = row['stateless'] === 1 ? '' : this.#db.load(seq, 'state', column('state'));
    const isApart = state !== '' && isRawApart(JSON.parse(state) as JsonObject);
    return {
      kind: 'event',
      run,
      seq,
      iteration: Number(row['iteration']),
      type: String(row['type']) as JournaledEventType,
      at: Number(row['at']),
      actionId: row['action_id'] === null ? null : String(row['action_id']),
      actionName: row['action_name'] === null ? null : String(row['action_name']),
      text: withUntilRun(
        row,
        this.#db.load(seq, 'data', column('data')),
        (id) => numbers.get(runNumberOf(String(id))) ?? 0,
      ),
      state: state === '' ? null : withoutMembers(state, RECOVERY),
      ...(isApart ? { raw: this.#db.load(seq, RAW_FIELD, null) } : {}),
    };
  }

  *#steered(run: number, number: number, seq: number): Generator<ForkRow> {
    const [row] = this.#db.findIn(
      'steered',
      `SELECT number, iteration, input FROM steered WHERE run = ? AND seq = ?`,
      run,
      seq,
    );
    if (row === undefined) return;
    const text = this.#db.load(-run, `steered ${String(row['number'])}`, row['input']);
    const iteration = Number(row['iteration']);
    yield {
      kind: 'steered',
      run: number,
      number: Number(row['number']),
      iteration,
      text: withoutMembers(text, PINNED),
    };
  }
}

/** A run whose end has not been written. */
interface OpenRun {
  readonly row: Extract<ForkRow, { kind: 'run' }>;
  firstSeq: number;
  /** The blocks that it has opened: seq here by seq there. */
  readonly blocks: Map<number, number>;
}

export class ForkWriter {
  readonly #db: JournalDatabase;
  readonly #record: SessionIdentity;
  readonly #open = new Map<number, OpenRun>();
  /** Of results, and of starts that recorded names: seq here by seq there. */
  readonly #referred = new Map<number, number>();

  /** @param record of the session that is written, which its database does not have yet */
  constructor(db: JournalDatabase, record: SessionIdentity) {
    this.#db = db;
    this.#record = record;
  }

  /** Writes rows in the order in which they were read. Files go elsewhere. */
  write(rows: readonly ForkRow[]): void {
    this.#db.atomically(() => {
      for (const row of rows) this.#one(row);
    });
    this.#db.changed();
  }

  #one(row: ForkRow): void {
    switch (row.kind) {
      case 'seeded':
        return this.#db.storeWith(row.id, 'seeded', row.text, (column) => {
          const bytes = new TextEncoder().encode(row.text).length;
          const sql = `INSERT INTO seeded (id, turn, role, bytes, data) VALUES (?, ?, ?, ?, ?)`;
          this.#db.exec(sql, row.id, row.turn, row.role, bytes, column);
        });
      case 'variable':
        this.#db.exec(`INSERT INTO first_variables (key, value) VALUES (?, ?)`, row.key, row.text);
        return;
      case 'feed':
        this.#db.exec(`INSERT INTO feeds (id, data) VALUES (?, ?)`, row.id, row.text);
        return;
      case 'run':
        this.#open.set(row.run, { row, firstSeq: this.#db.lastSeq + 1, blocks: new Map() });
        return;
      case 'event':
        return this.#event(row);
      case 'steered':
        return this.#db.storeWith(-row.run, `steered ${row.number}`, row.text, (column) => {
          const sql = `INSERT INTO steered (run, number, seq, iteration, idempotency_key, input) VALUES (?, ?, ?, ?, NULL, ?)`;
          this.#db.exec(sql, row.run, row.number, this.#db.lastSeq, row.iteration, column);
        });
      case 'workspace':
        return new WorkspaceTable(this.#db).set(row.file);
      case 'file':
        throw new Error('The bytes of files are not rows of the journal');
    }
  }

  #event(row: Extract<ForkRow, { kind: 'event' }>): void {
    const seq = this.#db.lastSeq + 1;
    const run = this.#open.get(row.run);
    const own = run === undefined ? row.text : withBlocks(row.text, run.blocks);
    const text = withUntilRun(row, own, (number) => runIdOf(this.#record, Number(number)));
    if (OPENS.has(row.type)) run?.blocks.set(row.seq, seq);
    const apart: [field: string, text: string][] = [];
    const data = this.#db.column('data', text, apart);
    if (row.type === 'action_completed' || row.state?.includes('"names":') === true) this.#referred.set(row.seq, seq);
    const state = row.state === null ? null : this.#db.column('state', withNames(row.state, this.#referred), apart);
    if (row.raw !== undefined) apart.push([RAW_FIELD, row.raw]);
    this.#db.add([seq, row.run, row.iteration, row.type, row.at, row.actionId, row.actionName, data, state], apart);
    if (row.type === 'memory_changed') this.#summary(seq, text);
    if (run === undefined || !ENDS.has(row.type)) return;
    this.#open.delete(row.run);
    const { status, startedAt, endedAt, text: input, retryOf } = run.row;
    this.#db.storeWith(-row.run, 'input', withNames(input, this.#referred), (column) => {
      this.#db.exec(
        `INSERT INTO runs (run, status, first_seq, last_seq, started_at, ended_at, input, open, parent, retry_of, turn)
         VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)`,
        row.run,
        status,
        run.firstSeq,
        seq,
        startedAt,
        endedAt,
        column,
        row.run - 1,
        retryOf,
        isMessage(JSON.parse(input) as JsonObject) ? 1 : 0,
      );
    });
  }

  /** All rows are written. A run may have ended before an earlier one: only now are their turns counted. */
  finish(): void {
    this.#db.exec(
      `UPDATE runs SET turn = counted.turn FROM (SELECT run AS at, SUM(turn) OVER (ORDER BY run) AS turn FROM runs) AS counted
       WHERE counted.at = runs.run`,
    );
    this.#db.changed();
  }

  #summary(seq: number, text: string): void {
    const { turns, until_run: untilRun } = JSON.parse(text) as JsonObject;
    if (typeof turns !== 'number') return;
    const sql = `INSERT INTO summaries (seq, until_run, turns) VALUES (?, ?, ?)`;
    this.#db.exec(sql, seq, typeof untilRun === 'string' ? runNumberOf(untilRun) : 0, turns);
  }
}

/** A summary names its last run by id. In a row, it is the number of that run in the other session. */
function withUntilRun(
  { type }: { readonly type?: unknown },
  text: string,
  runOf: (written: Json | undefined) => Json,
): string {
  if (type !== 'memory_changed' || !text.includes('"until_run":')) return text;
  const { until_run: run, ...data } = JSON.parse(text) as JsonObject;
  return JSON.stringify({ ...data, until_run: runOf(run) });
}

/**
 * The numbers by which a state, and the input of an action that ran again, refer to the values of names. A name of an event
 * that this session does not have is left out.
 */
function withNames(text: string, referred: ReadonlyMap<number, number>): string {
  if (!text.includes('"names":')) return text;
  const value = JSON.parse(text) as JsonObject;
  const { names, at } = value;
  if (!isJsonObject(names)) return text;
  const moved = (seq: Json | undefined): number | undefined =>
    typeof seq === 'number' ? referred.get(seq) : undefined;
  const named = Object.entries(names).flatMap(([name, meaning]): [string, Json][] => {
    const member = isJsonObject(meaning) ? ['seq', 'at'].find((one) => Object.hasOwn(meaning, one)) : undefined;
    const seq = moved(isJsonObject(meaning) ? meaning[member ?? ''] : meaning);
    if (typeof meaning === 'number') return seq === undefined ? [] : [[name, seq]];
    if (!isJsonObject(meaning) || member === undefined) return [[name, meaning]];
    return seq === undefined ? [] : [[name, { ...meaning, [member]: seq }]];
  });
  const start = value['type'] === 'rerun' ? { at: moved(at) } : {};
  return JSON.stringify({ ...value, ...start, names: Object.fromEntries(named) });
}

function withoutMembers(text: string, names: readonly string[]): string {
  const value = JSON.parse(text) as JsonObject;
  if (!isJsonObject(value) || !names.some((name) => Object.hasOwn(value, name))) return text;
  return JSON.stringify(Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name))));
}

/** The numbers by which an event refers to blocks: `segment`, and `completes` of a response that replaces another one. */
function withBlocks(text: string, blocks: ReadonlyMap<number, number>): string {
  if (!text.includes('"segment":') && !text.includes('"completes":')) return text;
  const data = JSON.parse(text) as JsonObject;
  const moved = ['segment', 'completes'].flatMap((name): [string, number][] => {
    const seq = data[name];
    return typeof seq === 'number' && blocks.has(seq) ? [[name, blocks.get(seq) ?? 0]] : [];
  });
  return moved.length === 0 ? text : JSON.stringify({ ...data, ...Object.fromEntries(moved) });
}
