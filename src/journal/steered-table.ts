/**
 * Messages that came during a run, for the run's next generation (C5). The event `message_received` tells readers about
 * them; these rows have what their run would need if they become messages of their own.
 */
import type { JsonObject } from '../domain/json.ts';
import type { SqlRow } from '../domain/ports/storage.ts';
import { earlierColumn, hasEarlier } from './event-rows.ts';
import type { JournalDatabase } from './journal-database.ts';

export interface SteeredMessage {
  readonly run: number;
  /** Within its run, from 1. */
  readonly number: number;
  /** The event that announced it. */
  readonly seq: number;
  /** The iteration in which it came: the next one shows it. */
  readonly iteration: number;
  readonly idempotencyKey: string | null;
  /** The input of a run with this message. */
  readonly input: JsonObject;
}

/** A long input is in chunk rows; the field has the number of the message, the number of the rows is that of its run. */
const fieldOf = (number: number): string => `steered ${number}`;

export class SteeredTable {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  add({ run, number, seq, iteration, idempotencyKey, input }: SteeredMessage): void {
    this.#db.storeWith(-run, fieldOf(number), JSON.stringify(input), (column) => {
      this.#db.exec(
        `INSERT INTO steered (run, number, seq, iteration, idempotency_key, input) VALUES (?, ?, ?, ?, ?, ?)`,
        run,
        number,
        seq,
        iteration,
        idempotencyKey,
        column,
      );
    });
    this.#db.changed();
  }

  /** The messages that came during a run, in order, except those that have become messages of other runs. */
  of(run: number): SteeredMessage[] {
    return this.#db
      .findIn('steered', `SELECT * FROM steered WHERE run = ? ORDER BY number`, run)
      .map((row) => this.#read(row));
  }

  /** Number of those messages. */
  count(run: number): number {
    return Number(
      this.#db.findIn('steered', `SELECT COUNT(*) AS count FROM steered WHERE run = ?`, run)[0]?.['count'] ?? 0,
    );
  }

  /** Those that no generation has shown, if the run has ended. */
  unshown(run: number): SteeredMessage[] {
    const { all, last } = this.#withLast(run);
    return all.filter(({ iteration }) => iteration >= last);
  }

  /** Those that a generation has shown: the others may become messages of other runs. */
  shown(run: number): SteeredMessage[] {
    const { all, last } = this.#withLast(run);
    return all.filter(({ iteration }) => iteration < last);
  }

  /** With the last iteration that has begun. */
  #withLast(run: number): { readonly all: SteeredMessage[]; readonly last: number } {
    const all = this.of(run);
    if (all.length === 0) return { all, last: 0 };
    const began = `${earlierColumn('type')} = 'iteration_started'`;
    const rows = this.#db.find(
      `SELECT MAX(COALESCE(CASE type WHEN 'iteration_started' THEN iteration END, 0), COALESCE(
         (SELECT MAX(${earlierColumn('iteration')}) FROM json_each(events.earlier) AS event WHERE ${began}), 0)) AS iteration
       FROM events WHERE run = ?1 AND seq >= (SELECT first_seq FROM runs WHERE run = ?1)
         AND (type = 'iteration_started' OR ${hasEarlier(began)}) ORDER BY iteration DESC LIMIT 1`,
      run,
    );
    return { all, last: Number(rows[0]?.['iteration'] ?? 0) };
  }

  /** The message that was sent with this `Idempotency-Key`, unless it has become the message of another run (J7). */
  byIdempotencyKey(key: string): SteeredMessage | null {
    const [row] = this.#db.findIn('steered', `SELECT * FROM steered WHERE idempotency_key = ?`, key);
    return row === undefined ? null : this.#read(row);
  }

  /** The message has become that of another run. */
  remove({ run, number }: Pick<SteeredMessage, 'run' | 'number'>): void {
    this.#db.exec(`DELETE FROM steered WHERE run = ? AND number = ?`, run, number);
    this.#db.exec(`DELETE FROM chunks WHERE seq = ? AND field = ?`, -run, fieldOf(number));
    this.#db.changed();
  }

  #read(row: SqlRow): SteeredMessage {
    const run = Number(row['run']);
    const number = Number(row['number']);
    return {
      run,
      number,
      seq: Number(row['seq']),
      iteration: Number(row['iteration']),
      idempotencyKey: row['idempotency_key'] === null ? null : String(row['idempotency_key']),
      input: JSON.parse(this.#db.load(-run, fieldOf(number), row['input'])) as JsonObject,
    };
  }
}
