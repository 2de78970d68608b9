/** Outcomes that later actions can reuse (P6): their position in the journal and their expiry. */
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { outputOf } from './event-rows.ts';
import type { JournalDatabase } from './journal-database.ts';

/** A completed action that later ones can reuse: until `expiresAt`, or as long as it is kept (P6). */
export interface KeptOutcome {
  readonly key: string;
  /** Digest of the request. */
  readonly content: string;
  /** Its `action_completed` event. */
  readonly seq: number;
  readonly at: number;
  readonly expiresAt: number | null;
}

export class KeptOutcomes {
  readonly #db: JournalDatabase;
  /** Number of kept outcomes with and without an expiry; null means not counted yet. */
  #kept: { readonly expiring: number; readonly lasting: number } | null = null;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** The kept outcome for this key, with its output; null if there is none. */
  get(key: string): (KeptOutcome & { readonly output: Json }) | null {
    const row = this.#db.findIn('outcomes', `SELECT * FROM outcomes WHERE key = ?`, key)[0];
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

  /** Keeps an outcome, replacing the one under its key. Past the limits, drops expired ones, then the oldest. */
  remember({ key, content, seq, at, expiresAt }: KeptOutcome): void {
    const kept = this.#kept ?? this.#countKept(at);
    // Counted again if this is not written.
    this.#kept = null;
    this.#db.exec(
      `INSERT OR REPLACE INTO outcomes (key, content, seq, at, expires_at) VALUES (?, ?, ?, ?, ?)`,
      key,
      content,
      seq,
      at,
      expiresAt,
    );
    this.#db.changed();
    // A replaced key is counted twice, so the next count only happens earlier.
    const [expiring, lasting] = [
      kept.expiring + (expiresAt === null ? 0 : 1),
      kept.lasting + (expiresAt === null ? 1 : 0),
    ];
    const isPast = expiring > limits.cachedOutcomes || lasting > limits.idempotencyKeys;
    const counted = isPast ? this.#countKept(at) : { expiring, lasting };
    this.#db.whenWritten(() => (this.#kept = counted));
  }

  /** Drops expired outcomes and, if too many are left, the oldest tenth; counts the rest. */
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
