/** Checks a ledger that was there before: its pages, its tables, and every row that something would choke on (R1). */
import type { DatabaseSync } from 'node:sqlite';

const COLUMNS = {
  jobs: 'id, session, kind, state, sandbox, request_hash, created_at, started_at, ended_at, end, exit_code, truncated',
  events: 'seq, session, job, type, data',
  tokens: 'id, expires_at',
} as const;

/** A row that is no error of SQLite, so that opening such a file fails like any other that is no ledger. */
class DamagedFile extends Error {
  readonly errcode = 11;
}

/** @throws Error of SQLite when a page is damaged or a table is not as it should be */
export function checkTables(db: DatabaseSync): void {
  // some 0.1 s for 100 MB
  const said = Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {})[0];
  if (said !== 'ok') throw new DamagedFile(String(said));
  for (const [table, columns] of Object.entries(COLUMNS)) {
    db.prepare(`SELECT ${columns} FROM ${table} LIMIT 1`).get();
  }
}

/** Payloads of the right shape for each type of event, in one line: a reader's frame ends with it. */
const SOUND = `
  CASE WHEN json_valid(data) AND instr(data, char(10)) = 0 AND instr(data, char(13)) = 0 THEN
    CASE type
      WHEN 'started' THEN json_type(data, '$.sandbox') = 'text'
      WHEN 'exited' THEN json_type(data, '$.end') = 'text'
      ELSE json_type(data, '$.text') = 'text'
    END
  ELSE 0 END`;
const REPAIRS = [
  `DELETE FROM events WHERE type NOT IN ('started', 'build', 'stdout', 'stderr', 'exited')`,
  `UPDATE events SET data = CASE type
     WHEN 'started' THEN '{"sandbox":"unknown"}'
     WHEN 'exited' THEN '{"end":"lost","exit_code":null,"truncated":false}'
     ELSE '{"text":"\uFFFD"}' END
   WHERE ${SOUND} IS NOT 1`,
  // an end that nobody knows is the end of a job that was lost; what has not ended is lost by the next step
  `UPDATE jobs SET state = 'running' WHERE state NOT IN ('queued', 'running', 'ended')`,
  `UPDATE jobs SET end = 'lost', exit_code = NULL WHERE state = 'ended' AND (end IS NULL OR end NOT IN
     ('exited', 'timeout', 'killed', 'oom', 'output_limit', 'lost', 'build_failed'))`,
];

/** Repairs them, so that one broken row fails no request for the others. */
export function repairRows(db: DatabaseSync, now: number): void {
  for (const repair of REPAIRS) db.exec(repair);
  db.prepare(`UPDATE jobs SET ended_at = ? WHERE state = 'ended' AND ended_at IS NULL`).run(now);
}
