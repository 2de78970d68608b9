/** Fills a session's journal with runs that failed after many actions, at the write speed of SQLite. */
import type { SqlDatabase } from '../../src/domain/ports/storage.ts';

export interface LongSession {
  readonly runs: number;
  /** Actions per run; each has three events. */
  readonly actions: number;
  /** The output of each action, as JSON. */
  readonly output: string;
}

/** @param db with the tables of a journal */
export function fillSession(db: SqlDatabase, { runs, actions, output }: LongSession): void {
  const events = actions * 3 + 2;
  const last = (table: string, column: string): number =>
    Number(db.exec(`SELECT COALESCE(MAX(${column}), 0) AS last FROM ${table}`)[0]?.['last']);
  const firstRun = last('runs', 'run') + 1;
  const lastSeq = last('events', 'seq');
  db.transaction(() => {
    db.exec(
      `WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < ${runs * events}),
         p AS (SELECT seq + ${lastSeq} AS seq, (seq - 1) / ${events} + ${firstRun} AS run, (seq - 1) % ${events} AS place FROM n)
       INSERT INTO events (seq, run, iteration, type, at, action_id, action_name, data, state)
       SELECT seq, run, 1,
         CASE place WHEN 0 THEN 'agent_started' WHEN ${events - 1} THEN 'agent_failed'
           ELSE CASE place % 3 WHEN 1 THEN 'action_queued' WHEN 2 THEN 'action_started' ELSE 'action_completed' END END,
         seq,
         CASE WHEN place IN (0, ${events - 1}) THEN NULL ELSE 'a' || ((place - 1) / 3) END,
         CASE WHEN place IN (0, ${events - 1}) THEN NULL ELSE 'echo' END,
         CASE place WHEN 0 THEN '{"agent":"assistant"}'
           WHEN ${events - 1} THEN '{"error":{"code":"budget_exceeded","message":"too many actions"}}'
           ELSE CASE place % 3
             WHEN 1 THEN '{"type":"tool","mode":"async","depends_on":[],"output_key":null,"parameters":{}}'
             WHEN 2 THEN '{"attempt":1}'
             ELSE '{"output":' || ?1 || ',"ms":1,"attempt":1}' END END,
         NULL
       FROM p`,
      output,
    );
    db.exec(
      `WITH RECURSIVE n (run) AS (SELECT 0 UNION ALL SELECT run + 1 FROM n WHERE run < ${runs - 1})
       INSERT INTO runs (run, status, first_seq, last_seq, started_at, ended_at, input, open, parent)
       SELECT run + ${firstRun}, 'failed', ${lastSeq + 1} + run * ${events}, ${lastSeq} + (run + 1) * ${events}, run, run,
         '{"type":"message","content":"question ' || (run + ${firstRun}) || '"}', 0, run + ${firstRun} - 1 FROM n`,
    );
  });
}

/** Completed actions of known duration, 20 to a run, and nothing else. @param db with the tables of a journal */
export function fillActions(db: SqlDatabase, actions: number): void {
  db.exec(
    `WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < ${actions})
     INSERT INTO events (seq, run, iteration, type, at, action_id, action_name, data, state) SELECT seq, seq / 20 + 1, 1, 'action_completed', seq, 'a', 'echo',
       '{"output":"' || HEX(RANDOMBLOB(50)) || '","ms":1,"attempt":1}', '{"key":"1/0","target":"tool/echo","ms":1}' FROM n`,
  );
  db.exec(
    `WITH RECURSIVE n (run) AS (SELECT 1 UNION ALL SELECT run + 1 FROM n WHERE run < ${actions / 20})
     INSERT INTO runs (run, status, first_seq, last_seq, started_at, ended_at, input, open, parent)
     SELECT run, 'completed', run * 20 - 20, run * 20, run, run, '{"type":"message","content":"hello"}', 0, run - 1 FROM n`,
  );
}
