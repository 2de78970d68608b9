/** What the world reads from the disk of a session, without its host. */
import type { RunEnd } from '../observation.ts';
import { markedIn } from './marks.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';
import type { Disk } from './disk.ts';

/** @param has whether a table exists: some are created on first use */
function orphans(has: (table: string) => boolean): string {
  const seeded = has('seeded') ? `seq NOT IN (SELECT id FROM seeded)` : '1';
  const steered = has('steered')
    ? `NOT EXISTS (SELECT 1 FROM steered WHERE steered.run = -chunks.seq AND chunks.field = 'steered ' || steered.number)`
    : '1';
  return `SELECT seq, field FROM chunks WHERE
    (field IN ('data', 'state', 'raw') AND seq NOT IN (SELECT seq FROM events)) OR
    (field = 'prompt' AND seq NOT IN (SELECT id FROM prompts)) OR
    (field = 'seeded' AND ${seeded}) OR
    (field = 'input' AND -seq NOT IN (SELECT run FROM runs)) OR
    (field LIKE 'steered %' AND ${steered})`;
}

/** Open runs that wait, or that have ended and whose background actions have not. */
const WAITING = `SELECT run FROM runs WHERE open = 1 AND status NOT IN ('queued', 'running')`;
/** Open runs that do not wait, or have continued: then the last thing about their waiting is not that it began. */
const WORKING = `SELECT run FROM runs WHERE open = 1 AND (status IN ('queued', 'running') OR status = 'waiting' AND 'agent_waiting' IS NOT
  (SELECT type FROM ${EVERY_EVENT} AS events WHERE events.run = runs.run AND type NOT IN ('action_completed', 'action_failed',
    'action_retrying', 'action_started', 'context_feed_updated', 'message_received') ORDER BY seq DESC LIMIT 1))`;
/** Actions that have started, or will be repeated, and have not ended; not those that wait for a client. */
const WORKING_ACTIONS = `SELECT type FROM (SELECT type, MAX(seq) FROM ${EVERY_EVENT} AS events WHERE type LIKE 'action_%' OR type LIKE 'client_%'
  GROUP BY run, iteration, action_id) WHERE type IN ('action_started', 'action_retrying')`;
/** Long parameters are in chunk rows. */
const CALLS = `SELECT action_id, COALESCE(data, (SELECT text FROM chunks WHERE chunks.seq = events.seq AND field = 'data' AND part = 0)) AS data
  FROM ${EVERY_EVENT} AS events WHERE type = 'client_tool_called' AND seq <= ?`;
/** The generation that is open: one run at a time answers. */
const GENERATION = `SELECT run, iteration FROM ${EVERY_EVENT} AS began WHERE type = 'iteration_started'
  AND run IN (SELECT run FROM runs WHERE status IN ('running', 'waiting'))
  AND NOT EXISTS (SELECT 1 FROM ${EVERY_EVENT} AS events WHERE type = 'iteration_completed' AND seq > began.seq AND run = began.run)
  ORDER BY seq DESC`;
/** Long inputs are in chunk rows; the message is at their beginning. */
const INPUT = `SELECT idempotency_key, CASE WHEN input <> '' THEN input ELSE
  (SELECT text FROM chunks WHERE seq = -runs.run AND field = 'input' AND part = 0) END AS input FROM runs WHERE run = ?`;
/** A run that never began has no record. */
const ENDED = `SELECT run FROM ${EVERY_EVENT} AS events WHERE type IN ('agent_completed', 'agent_failed', 'agent_cancelled')
  AND json_extract(data, '$.usage') IS NOT NULL
  AND ? > (SELECT COUNT(*) FROM ${EVERY_EVENT} AS warnings WHERE warnings.run = events.run
    AND type = 'warning' AND data ->> '$.code' = 'run_recovered')`;

/** The idempotency key of a message. */
export const keyOf = (message: number): string => `key-${message}`;

/** The message of a run: by its key, or by what its input names. */
export function messageOf(key: unknown, input: string): number | null {
  const number = /^key-(\d+)$/.exec(String(key))?.[1];
  return number === undefined ? markedIn(input) : Number(number);
}

interface Read {
  readonly version: number;
  readonly parameters: readonly (string | number)[];
  readonly rows: readonly Record<string, unknown>[];
}

export class Rows {
  readonly #disk: Disk;
  /** What was read last, by statement. */
  readonly #reads = new Map<string, Read>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  query(table: string, sql: string, ...parameters: readonly (string | number)[]): readonly Record<string, unknown>[] {
    const { version } = this.#disk;
    const read = this.#reads.get(sql);
    if (read?.version === version && parameters.every((value, at) => value === read.parameters[at])) return read.rows;
    const rows = this.#disk.has(table) ? this.#disk.exec(sql, parameters, false) : [];
    this.#reads.set(sql, { version, parameters, rows });
    return rows;
  }

  get openRuns(): number[] {
    return this.query('runs', `SELECT run FROM runs WHERE open = 1`).map(({ run }) => Number(run));
  }

  /** What has not ended, as a text. */
  get openWork(): string {
    const runs = this.query('runs', `SELECT run, status FROM runs WHERE open = 1`);
    const list = runs.map(({ run, status }) => `run ${String(run)} is ${String(status)}`).join(', ');
    return list === '' ? 'no run is open' : list;
  }

  /** The requests for approvals that no crash can lose. `token`: of the action. */
  get approvals(): { readonly id: string; readonly token: string }[] {
    const sql = `SELECT action_id, json_extract(data, '$.approval_id') AS id FROM ${EVERY_EVENT} AS events WHERE type = 'approval_requested' AND seq <= ?`;
    return this.query('events', sql, this.#disk.durableSeq).map(({ id, action_id: token }) => ({
      id: String(id),
      token: String(token),
    }));
  }

  /** The calls of client tools that no crash can lose. */
  get calls(): { readonly id: string; readonly token: string }[] {
    return this.query('events', CALLS, this.#disk.durableSeq).flatMap(({ action_id: token, data }) => {
      const id = /"call_id":"([^"]+)"/.exec(String(data))?.[1];
      return id === undefined ? [] : [{ id, token: String(token) }];
    });
  }

  /** Whether a run waits, and nothing else is running. */
  get isWaiting(): boolean {
    if (this.query('runs', WAITING).length === 0) return false;
    return this.query('runs', WORKING).length === 0 && this.query('events', WORKING_ACTIONS).length === 0;
  }

  get runs(): RunEnd[] {
    return this.query('runs', `SELECT run, status, open FROM runs ORDER BY run`).map(({ run, status, open }) => ({
      run: Number(run),
      status: String(status),
      isOpen: Number(open) === 1,
    }));
  }

  /** When the latest run began or ended, on the hosts' clock; null without runs. */
  get lastActivity(): number | null {
    const sql = `SELECT COALESCE(ended_at, started_at) AS at FROM runs ORDER BY run DESC LIMIT 1`;
    const at = this.query('runs', sql)[0]?.['at'];
    return at === undefined ? null : Number(at);
  }

  /** Parts of long texts whose row is missing. */
  get orphans(): number {
    return this.query(
      'chunks',
      orphans((table) => this.#disk.has(table)),
    ).length;
  }

  /** Runs that have ended with a record, except those that were recovered as often as allowed. */
  endedRuns(mostRecoveries: number): number[] {
    return this.query('events', ENDED, mostRecoveries).map(({ run }) => Number(run));
  }

  /** Notes of a host about recoveries of runs that have ended. */
  staleNotes(life: number): number {
    if (!this.#disk.has('runs')) return 0;
    const sql = `SELECT 1 FROM taken_up JOIN runs ON work = 'run ' || run
      WHERE open = 0 AND aside = 0 AND lives ->> '$[#-1]' = ?`;
    return this.query('taken_up', sql, life).length;
  }

  /**
   * The generations that are open, newest first, and the messages of their runs. There are two while a run that is cancelled,
   * because it waited, has not written its end.
   */
  get generations(): { readonly run: number; readonly iteration: number; readonly message: number }[] {
    return this.query('events', GENERATION).flatMap((row) => {
      const [stored] = this.query('runs', INPUT, Number(row['run']));
      const message = messageOf(stored?.['idempotency_key'], String(stored?.['input']));
      return message === null ? [] : [{ run: Number(row['run']), iteration: Number(row['iteration']), message }];
    });
  }

  /** Names of the variables. */
  get variables(): string[] {
    return this.query('variables', `SELECT key FROM variables ORDER BY key`).map(({ key }) => String(key));
  }

  /** The files of the workspace; `text`: null if their bytes are not stored. */
  get workspace(): { readonly path: string; readonly text: string | null }[] {
    const sql = `SELECT path, (SELECT GROUP_CONCAT(CAST(bytes AS TEXT), '') FROM
      (SELECT bytes FROM blobs WHERE blobs.sha256 = workspace.sha256 ORDER BY part)) AS text FROM workspace ORDER BY path`;
    return this.query('workspace', sql).map(({ path, text }) => ({
      path: String(path),
      text: text === null ? null : String(text),
    }));
  }

  /** How many runs there were when the head was moved to this run; null if it was moved again, or nothing had to be moved. */
  runsAtMove(run: number): number | null {
    const [row] = this.query('head', `SELECT newest FROM head WHERE run = ?`, run);
    return row === undefined ? null : Number(row['newest']);
  }

  /** Up to this run. The first one is not in the queue if no other run is at work: it is being started. */
  queuedUpTo(run: number): number {
    const queued = this.query('runs', `SELECT run FROM runs WHERE status = 'queued' AND run <= ?`, run).length;
    const isOneAtWork = this.query('runs', `SELECT run FROM runs WHERE status = 'running'`).length > 0;
    return isOneAtWork ? queued : Math.max(0, queued - 1);
  }

  /** Whether the journal has an event of this type, with these values of two members; durable or not. */
  has(type: string, [member, value]: readonly [string, string], [other, values]: readonly [string, string[]]): boolean {
    const list = values.map(() => '?').join(', ');
    const sql = `SELECT 1 FROM ${EVERY_EVENT} AS events WHERE type = ? AND data ->> ? = ? AND CAST(data ->> ? AS TEXT) IN (${list})`;
    return this.query('events', sql, type, `$.${member}`, value, `$.${other}`, ...values).length > 0;
  }

  /** Whether an event of this type, with this value of a member, is durable. */
  isRecorded(type: string, member: string, value: string): boolean {
    const sql = `SELECT 1 FROM ${EVERY_EVENT} AS events WHERE type = ? AND data ->> ? = ? AND seq <= ?`;
    return this.query('events', sql, type, `$.${member}`, value, this.#disk.durableSeq).length > 0;
  }
}
