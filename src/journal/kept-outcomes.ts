/** Outcomes that stand for later actions (P6): where each is in the journal, and for how long. */
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { outputOf } from './event-rows.ts';
import type { JournalDatabase } from './journal-database.ts';

/** That a completed action stands for later ones: until `expiresAt`, or as long as it is remembered (P6). */
export interface KeptOutcome {
  readonly key: string;
  /** Digest of what was asked. */
  readonly content: string;
  /** Its `action_completed` event. */
  readonly seq: number;
  readonly at: number;
  readonly expiresAt: number | null;
}

export class KeptOutcomes {
  readonly #db: JournalDatabase;
  /** How many outcomes are kept with and without an expiry; null = not counted yet. */
  #kept: { expiring: number; lasting: number } | null = null;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** What stands for actions with this key, with its output; null when there is none. */
  get(key: string): (KeptOutcome & { readonly output: Json }) | null {
    const row = this.#db.exec(`SELECT * FROM outcomes WHERE key = ?`, key)[0];
    if (row === undefined) return null;
    const seq = Number(row['seq']);
    const event = this.#db.exec(`SELECT * FROM events WHERE seq = ?`, seq)[0];
    if (event === undefined) return null;
    return {
      key,
      content: String(row['content']),
      seq,
      at: Number(row['at']),
      expiresAt: row['expires_at'] === null ? null : Number(row['expires_at']),
      output: outputOf(this.#db.readEvent(event).event),
    };
  }

  /** Keeps an outcome in place of what was kept under its key. Past the limits expired ones go, then the oldest. */
  remember({ key, content, seq, at, expiresAt }: KeptOutcome): void {
    this.#kept ??= this.#countKept(at);
    this.#db.exec(
      `INSERT OR REPLACE INTO outcomes (key, content, seq, at, expires_at) VALUES (?, ?, ?, ?, ?)`,
      key,
      content,
      seq,
      at,
      expiresAt,
    );
    this.#db.changed();
    // A key that was kept already is counted twice, which only makes the next count come sooner.
    if (expiresAt === null) this.#kept.lasting += 1;
    else this.#kept.expiring += 1;
    const { expiring, lasting } = this.#kept;
    if (expiring > limits.cachedOutcomes || lasting > limits.idempotencyKeys) this.#kept = this.#countKept(at);
  }

  /** Forgets what has expired and, where too much is left, the oldest tenth; counts the rest. */
  #countKept(now: number): { expiring: number; lasting: number } {
    this.#db.exec(`DELETE FROM outcomes WHERE expires_at <= ?`, now);
    const count = (which: string): number =>
      Number(this.#db.exec(`SELECT COUNT(*) AS n FROM outcomes WHERE expires_at IS ${which}`)[0]?.['n'] ?? 0);
    const within = (which: 'NULL' | 'NOT NULL', most: number): number => {
      const found = count(which);
      if (found <= most) return found;
      this.#db.exec(
        `DELETE FROM outcomes WHERE key IN
           (SELECT key FROM outcomes WHERE expires_at IS ${which} ORDER BY seq LIMIT ?)`,
        found - Math.floor(most * 0.9),
      );
      return count(which);
    };
    this.#db.changed();
    return { expiring: within('NOT NULL', limits.cachedOutcomes), lasting: within('NULL', limits.idempotencyKeys) };
  }
}
