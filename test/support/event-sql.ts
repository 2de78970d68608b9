/** Events in SQL, for tests that look at stored rows: a row may hold several events (src/journal/event-rows.ts). */
import type { SqlDatabase } from '../../src/domain/ports/storage.ts';

const EARLIER = `SELECT seq - json_array_length(earlier) + event.key AS seq, run, event.value ->> 0 AS iteration,
    event.value ->> 1 AS type, event.value ->> 2 AS at, event.value ->> 3 AS action_id, event.value ->> 4 AS action_name,
    event.value ->> 5 AS data, event.value ->> 6 AS state
  FROM events, json_each(events.earlier) AS event`;
const COLUMNS = `seq, run, iteration, type, at, action_id, action_name, data, state`;

/** Every event, with the columns of the table `events`. */
export const EVERY_EVENT = `(SELECT ${COLUMNS} FROM events UNION ALL ${EARLIER})`;

/** Gives each event its own row, as earlier versions stored them, for tests that change stored events. */
export function splitRows(db: Pick<SqlDatabase, 'exec'>): void {
  db.exec(`INSERT INTO events (${COLUMNS}) ${EARLIER} ORDER BY seq`);
  db.exec(`UPDATE events SET earlier = NULL`);
}
