/** Queries over earlier events, for prompts, names, estimates, approvals and lists of artifacts. */
import type { EventOf, EventType, SessionEvent } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { utf8Length } from '../domain/utf8.ts';
import type { SqlRow } from '../domain/ports/storage.ts';
import type { RunRecord } from '../domain/session.ts';
import { beginningOf, withCutOutput } from './cut-outputs.ts';
import { eachEvent, earlierColumn, eventsIn, hasEarlier, rowsUntil } from './event-rows.ts';
import type { Slice, StoredEvent } from './event-rows.ts';
import type { JournalDatabase } from './journal-database.ts';
import { RAW_FIELD } from './raw-data.ts';
import type { RunTable } from './run-table.ts';

/** A request for approval, and the event that ended it. */
export interface StoredApproval {
  readonly event: EventOf<'approval_requested'>;
  readonly state: JsonObject | null;
  readonly end: SessionEvent | null;
}

/** A call of a client tool, and the event that settled it. */
export interface StoredCall {
  readonly called: EventOf<'client_tool_called'>;
  readonly settled: EventOf<'client_tool_settled'> | null;
}

/** A completed action of an earlier run, with its names. */
export interface CachedOutcome {
  readonly seq: number;
  readonly id: string;
  readonly outputKey: string | null;
  readonly bytes: number;
}

/** The events that the prompt of a later run uses (L5). */
const IN_CONVERSATION: ReadonlySet<string> = new Set<EventType>([
  'thought_completed',
  'text_completed',
  'response_completed',
  'iteration_completed',
  'action_completed',
  'action_failed',
  'action_skipped',
  'action_cancelled',
  'action_rejected',
  'agent_completed',
  'agent_failed',
  'agent_cancelled',
]);
const CONVERSATION_TYPES = [...IN_CONVERSATION].map((type) => `'${type}'`).join(', ');
/** Rows with such events. */
const CONVERSATION = `(type IN (${CONVERSATION_TYPES})
  OR ${hasEarlier(`${earlierColumn('type')} IN (${CONVERSATION_TYPES})`)})`;

export class History {
  readonly #db: JournalDatabase;
  readonly #runs: RunTable;

  constructor(db: JournalDatabase, runs: RunTable) {
    this.#db = db;
    this.#runs = runs;
  }

  /**
   * Number of bytes that `conversationOf` reads of a run, including its input, computed without reading them. Infinite
   * for runs of more than `limits.historyEvents` events.
   */
  conversationBytes(run: RunRecord): number {
    const last = run.lastSeq ?? this.#db.lastSeq;
    if (last - run.firstSeq >= limits.historyEvents) return Infinity;
    const chunked = (field: string): string =>
      `COALESCE((SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = events.seq AND field = '${field}'), 0)`;
    const [events] = this.#db.exec(
      `SELECT COALESCE(SUM(
         CASE WHEN type = 'action_completed' THEN MIN(COALESCE(OCTET_LENGTH(data), ?1), ?1)
           WHEN type IN (${CONVERSATION_TYPES}) THEN COALESCE(OCTET_LENGTH(data), ${chunked('data')}) ELSE 0 END
         + CASE WHEN type IN (${CONVERSATION_TYPES}) THEN COALESCE(OCTET_LENGTH(state), ${chunked('state')}) ELSE 0 END
         + COALESCE((SELECT SUM(OCTET_LENGTH(${earlierColumn('data')}) + COALESCE(OCTET_LENGTH(${earlierColumn('state')}), 0))
           FROM json_each(events.earlier) AS event WHERE ${earlierColumn('type')} IN (${CONVERSATION_TYPES})), 0)), 0) AS bytes
       FROM events WHERE seq >= ?2 AND ${rowsUntil('?3')} AND run = ?4`,
      limits.historyResultChars,
      run.firstSeq,
      last,
      run.run,
    );
    const [input] = this.#db.exec(
      `SELECT CASE WHEN input <> '' THEN OCTET_LENGTH(input)
         ELSE (SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = ?) END AS bytes FROM runs WHERE run = ?`,
      -run.run,
      run.run,
    );
    const [steered] = this.#db.findIn(
      'steered',
      `SELECT SUM(OCTET_LENGTH(input)) AS bytes FROM steered WHERE run = ?`,
      run.run,
    );
    return [events, input, steered].reduce((sum, row) => sum + Number(row?.['bytes'] ?? 0), 0);
  }

  /** Events for a later prompt, oldest first. An output longer than `limits.historyResultChars` is cut. */
  *conversationOf(run: RunRecord): Generator<StoredEvent> {
    const last = run.lastSeq ?? this.#db.lastSeq;
    for (let after = run.firstSeq - 1; after < last;) {
      const rows = this.#db.exec(
        `SELECT seq, run, iteration, type, at, action_id, action_name, state, earlier,
           CASE WHEN type <> 'action_completed' OR OCTET_LENGTH(data) <= ?1 THEN data
             ELSE SUBSTR(COALESCE(data, (SELECT text FROM chunks WHERE chunks.seq = events.seq AND field = 'data' AND part = 0)), 1, ?1)
           END AS data,
           type = 'action_completed' AND COALESCE(OCTET_LENGTH(data) > ?1, 1) AS cut
         FROM events WHERE seq > ?2 AND ${rowsUntil('?3')} AND run = ?4 AND ${CONVERSATION} ORDER BY seq LIMIT ?5`,
        limits.historyResultChars,
        after,
        last,
        run.run,
        limits.pageRows,
      );
      for (const row of eachEvent(rows)) {
        if (!IN_CONVERSATION.has(String(row['type'])) || Number(row['seq']) > last) continue;
        yield withCutOutput(row['cut'] === 1 ? this.#cutEvent(row) : this.#db.readEvent(row));
      }
      if (rows.length < limits.pageRows) return;
      after = Number(rows.at(-1)?.['seq']);
    }
  }

  /** An action whose output is long: only its beginning is read. */
  #cutEvent(row: SqlRow): StoredEvent {
    const cut = (text: string): string => JSON.stringify({ output: beginningOf(text) });
    const apart = (): string => cut(this.#db.beginning(Number(row['seq']), RAW_FIELD, limits.historyResultChars));
    return this.#db.readEvent({ ...row, data: cut(String(row['data'])) }, apart);
  }

  /**
   * The actions that a run accepted after this event, in order: of a generation that was interrupted. At most
   * `limits.actionsPerGeneration`, and `limits.historyResultChars` together.
   */
  *declaredAfter(run: RunRecord, after: number): Generator<EventOf<'action_queued'>> {
    const last = run.lastSeq ?? this.#db.lastSeq;
    const rows = this.#db.exec(
      `SELECT seq, run, iteration, type, at, action_id, action_name, data, state, earlier FROM events
       WHERE seq > ?1 AND ${rowsUntil('?2')} AND run = ?3 AND (type = 'action_queued' AND OCTET_LENGTH(data) <= ?4
         OR ${hasEarlier(`${earlierColumn('type')} = 'action_queued'`)}) ORDER BY seq LIMIT ?5`,
      after,
      last,
      run.run,
      limits.historyResultChars,
      limits.actionsPerGeneration,
    );
    const queued = rows
      .flatMap(eventsIn)
      .filter(({ seq, type, data }) => {
        const isWithin = Number(seq) > after && Number(seq) <= last;
        return isWithin && type === 'action_queued' && utf8Length(String(data)) <= limits.historyResultChars;
      })
      .slice(0, limits.actionsPerGeneration);
    let chars = 0;
    for (const row of queued) {
      chars += String(row['data']).length;
      if (chars > limits.historyResultChars) return;
      const { event } = this.#db.readEvent(row);
      if (event.type === 'action_queued') yield event;
    }
  }

  /** The last action of a run that was accepted under this id; null if there is none. */
  actionOf(run: number, id: string): EventOf<'action_queued'> | null {
    const row = this.#ofAction('action_queued', run, id, 0, 'DESC').at(-1);
    const event = row === undefined ? null : this.#db.readEvent(row).event;
    return event?.type === 'action_queued' ? event : null;
  }

  /** The event that started the first attempt of an action; null if it did not start. */
  startOf(run: number, { seq, action_id: id = '' }: EventOf<'action_queued'>): number | null {
    const [row] = this.#ofAction('action_started', run, id, seq, 'ASC');
    return row === undefined ? null : Number(row['seq']);
  }

  /** Events of an action above a seq, in order: all of them in the first or the last row that has one. */
  #ofAction(type: EventType, run: number, id: string, after: number, from: 'ASC' | 'DESC'): SqlRow[] {
    const isEarlier = `${earlierColumn('type')} = ?3 AND ${earlierColumn('action_id')} = ?4
      AND events.seq - json_array_length(events.earlier) + event.key > ?2`;
    const rows = this.#db.find(
      `SELECT * FROM events WHERE run = ?1 AND seq > ?2 AND (type = ?3 AND action_id = ?4 OR ${hasEarlier(isEarlier)})
       ORDER BY seq ${from} LIMIT 1`,
      run,
      after,
      type,
      id,
    );
    return rows
      .flatMap(eventsIn)
      .filter((event) => Number(event['seq']) > after && event['type'] === type && event['action_id'] === id);
  }

  /** The completed actions of a run, by the names of their results: with a name of several results, the last one. */
  resultsOf(run: number): Map<string, number> {
    const sql = `SELECT seq, action_id, state ->> '$.output_key' AS output_key FROM events
      WHERE run = ? AND type = 'action_completed' ORDER BY seq`;
    const named = new Map<string, number>();
    for (const { seq, action_id: id, output_key: key } of this.#db.find(sql, run)) {
      for (const name of [id, key]) if (typeof name === 'string') named.set(name, Number(seq));
    }
    return named;
  }

  /**
   * The values of names from a run and its ancestors (P12, L5, C4): completed actions since the context was last cleared,
   * newest first, at most `limits.outcomeCache`. `bytes`: the cost of reading the event.
   */
  outcomeCache(last: number): CachedOutcome[] {
    const onBranch = this.#runs.onBranch(last, '?1');
    return this.#db
      .find(
        `SELECT seq, action_id, state ->> '$.output_key' AS output_key,
         COALESCE(OCTET_LENGTH(data), (SELECT SUM(OCTET_LENGTH(text)) FROM chunks WHERE chunks.seq = events.seq AND field = 'data')) AS bytes
       FROM events WHERE type = 'action_completed' AND ${onBranch}
         AND seq > COALESCE((SELECT MAX(seq) FROM events
           WHERE type = 'action_completed' AND action_name = 'clear_context' AND ${onBranch}), 0)
       ORDER BY seq DESC LIMIT ?2`,
        last,
        limits.outcomeCache,
      )
      .map((row) => ({
        seq: Number(row['seq']),
        id: String(row['action_id']),
        outputKey: row['output_key'] === null ? null : String(row['output_key']),
        bytes: Number(row['bytes'] ?? 0),
      }));
  }

  /** Durations of the latest completed actions, oldest first, at most `limits.durationsRead` (S5). */
  durations(): { readonly target: string; readonly ms: number }[] {
    const rows = this.#db.exec(
      `SELECT state ->> '$.target' AS target, state ->> '$.ms' AS ms FROM events
       WHERE seq > ? AND type = 'action_completed' AND state ->> '$.target' IS NOT NULL ORDER BY seq DESC LIMIT ?`,
      this.#db.lastSeq - limits.durationsEvents,
      limits.durationsRead,
    );
    return rows.map((row) => ({ target: String(row['target']), ms: Number(row['ms']) })).reverse();
  }

  /** The latest ended actions of a run and its ancestors, newest first (F5, C4). */
  recentActions(limit: number, last: number): SessionEvent[] {
    return this.#db
      .find(
        `SELECT * FROM events WHERE seq > ?1 AND type IN ('action_completed', 'action_failed', 'action_skipped', 'action_cancelled', 'action_rejected')
           AND ${this.#runs.onBranch(last, '?3')} ORDER BY seq DESC LIMIT ?2`,
        this.#db.lastSeq - limits.durationsEvents,
        limit,
        last,
      )
      .map((row) => this.#db.readEvent(row).event);
  }

  /** A request for approval and the event that ended it; null if no request has this id (J8). */
  approval(id: string): StoredApproval | null {
    const row = this.#db.find(
      `SELECT * FROM events WHERE type = 'approval_requested' AND data ->> '$.approval_id' = ? ORDER BY seq DESC LIMIT 1`,
      id,
    )[0];
    if (row === undefined) return null;
    const { event, state } = this.#db.readEvent(row);
    if (event.type !== 'approval_requested') return null;
    const end = this.#db.find(
      `SELECT * FROM events WHERE seq > ? AND run = ? AND iteration = ? AND action_id = ?
         AND type IN ('approval_resolved', 'action_failed', 'action_cancelled') ORDER BY seq LIMIT 1`,
      event.seq,
      row['run'] ?? 0,
      row['iteration'] ?? 0,
      row['action_id'] ?? '',
    )[0];
    return { event, state, end: end === undefined ? null : this.#db.readEvent(end).event };
  }

  /** A call of a client tool and the event that settled it; null if there is no such call (C3). */
  clientCall(run: number, iteration: number, id: string): StoredCall | null {
    const beginning = `{"call_id":${JSON.stringify(id)}`;
    // The condition on the type is that of the index.
    const rows = this.#db.find(
      `SELECT * FROM events WHERE type IN ('client_tool_called', 'client_tool_settled') AND run = ? AND iteration = ?
         AND SUBSTR(COALESCE(data, (SELECT text FROM chunks WHERE chunks.seq = events.seq AND field = 'data' AND part = 0)), 1, ?)
           = ? ORDER BY seq`,
      run,
      iteration,
      beginning.length,
      beginning,
    );
    const [called, settled] = rows.map((row) => this.#db.readEvent(row).event);
    if (called?.type !== 'client_tool_called') return null;
    return { called, settled: settled?.type === 'client_tool_settled' ? settled : null };
  }

  /** When these events were written, by seq: epoch milliseconds. */
  timesOf(seqs: readonly number[]): Map<number, number> {
    return new Map(
      seqs.flatMap((seq): [number, number][] => {
        const row = this.#db.eventRow(seq);
        return row === null ? [] : [[seq, Number(row['at'])]];
      }),
    );
  }

  /** A slice of the completed actions after `after` whose output is large or may contain files, oldest first. */
  outcomesWithArtifacts(after: number, until: number): Slice<number> {
    const next = Math.min(until, after + limits.searchedEvents);
    const [row] = this.#db.find(
      `SELECT JSON_GROUP_ARRAY(seq) FILTER (WHERE data IS NULL OR OCTET_LENGTH(data) > ?1
           OR INSTR(data, '"files":[') > 0 OR INSTR(data, '"mimeType":"') > 0) AS found,
         SUM(MIN(COALESCE(OCTET_LENGTH(data), 0), ?1)) AS bytes
       FROM (SELECT seq, data FROM events WHERE seq > ?2 AND seq <= ?3 AND type = 'action_completed'
         AND action_name IS NOT NULL ORDER BY seq)`,
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
}
