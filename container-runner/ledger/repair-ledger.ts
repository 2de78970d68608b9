/** Checks an existing ledger: its pages, its tables, and rows that readers could not parse (R1). */
import type { DatabaseSync } from 'node:sqlite';

import { UNCHANGED, type WireResult } from '../workspace/receiver.ts';

const COLUMNS = {
  jobs: 'id, session, kind, state, sandbox, request_hash, created_at, started_at, ended_at, end, exit_code, truncated, workspace, traceparent, prepared_at, spans_due',
  events: 'seq, session, job, type, data',
  tokens: 'id, expires_at',
} as const;

/** Has SQLite's error code for a damaged file, so callers handle it like SQLite's own errors. */
class DamagedFile extends Error {
  readonly errcode = 11;
}

/** @throws Error of SQLite if a page is damaged or a table has the wrong columns */
export function checkTables(db: DatabaseSync): void {
  // takes about 0.1 s for 100 MB
  const result = Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {})[0];
  if (result !== 'ok') throw new DamagedFile(String(result));
  for (const [table, columns] of Object.entries(COLUMNS)) {
    db.prepare(`SELECT ${columns} FROM ${table} LIMIT 1`).get();
  }
}

/** Condition for valid payloads of each event type. They must be one line, because SSE frames end at line breaks. */
const VALID_PAYLOAD = `
  CASE WHEN json_valid(data) AND instr(data, char(10)) = 0 AND instr(data, char(13)) = 0 THEN
    CASE type
      WHEN 'started' THEN json_type(data, '$.sandbox') = 'text'
      WHEN 'exited' THEN json_type(data, '$.end') = 'text' AND coalesce(json_type(data, '$.workspace'), 'object') = 'object'
      ELSE json_type(data, '$.text') = 'text'
    END
  ELSE 0 END`;
const LOST_WORKSPACE = JSON.stringify({
  ...UNCHANGED,
  error: { code: 'workspace_lost', message: 'The files that the program left are damaged in the ledger of the runner' },
} satisfies WireResult);
const REPAIRS = [
  `DELETE FROM events WHERE type NOT IN ('started', 'build', 'stdout', 'stderr', 'exited')`,
  `UPDATE events SET data = CASE type
     WHEN 'started' THEN '{"sandbox":"unknown"}'
     WHEN 'exited' THEN '{"end":"lost","exit_code":null,"truncated":false}'
     ELSE '{"text":"\uFFFD"}' END
   WHERE ${VALID_PAYLOAD} IS NOT 1`,
  // an unknown end becomes `lost`; opening the ledger then marks unfinished jobs as lost
  `UPDATE jobs SET state = 'running' WHERE state NOT IN ('queued', 'running', 'ended')`,
  `UPDATE jobs SET end = 'lost', exit_code = NULL WHERE state = 'ended' AND (end IS NULL OR end NOT IN
     ('exited', 'timeout', 'killed', 'oom', 'output_limit', 'lost', 'build_failed'))`,
  `UPDATE jobs SET workspace = CASE end WHEN 'exited' THEN '${LOST_WORKSPACE}' END
   WHERE workspace IS NOT NULL AND (end IS NOT 'exited' OR
     CASE WHEN json_valid(workspace) THEN json_type(workspace) END IS NOT 'object')`,
];

/** Repairs rows, so that one damaged row does not fail requests for others. */
export function repairRows(db: DatabaseSync, now: number): void {
  for (const repair of REPAIRS) db.exec(repair);
  db.prepare(`UPDATE jobs SET ended_at = ? WHERE state = 'ended' AND ended_at IS NULL`).run(now);
}
