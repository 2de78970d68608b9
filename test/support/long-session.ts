/** Fills a session's journal with runs that failed after many actions, as fast as SQLite writes. */
import type { SqlDatabase } from '../../src/domain/ports.ts';

export interface LongSession {
  readonly runs: number;
  /** Of each run; an action has three events. */
  readonly actions: number;
  /** JSON of what each action gave. */
  readonly output: string;
  /** Further data of the events that declare actions, as JSON. */
  readonly parameters?: string;
}

/** @param db with the tables of a journal in which nothing has happened yet */
export function fillSession(db: SqlDatabase, { runs, actions, output, parameters = '{}' }: LongSession): void {
  const events = actions * 3 + 2;
  db.transaction(() => {
    db.exec(
      `WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < ${runs * events}),
         p AS (SELECT seq, (seq - 1) / ${events} + 1 AS run, (seq - 1) % ${events} AS place FROM n)
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
             WHEN 1 THEN '{"type":"tool","mode":"async","parameters":' || ?1 || '}'
             WHEN 2 THEN '{"attempt":1}'
             ELSE '{"output":' || ?2 || ',"ms":1,"attempt":1}' END END,
         NULL
       FROM p`,
      parameters,
      output,
    );
    db.exec(
      `WITH RECURSIVE n (run) AS (SELECT 1 UNION ALL SELECT run + 1 FROM n WHERE run < ${runs})
       INSERT INTO runs (run, status, first_seq, last_seq, started_at, ended_at, input, open)
       SELECT run, 'failed', (run - 1) * ${events} + 1, run * ${events}, run, run,
         '{"type":"message","content":"question ' || run || '"}', 0 FROM n`,
    );
  });
}
