/**
 * What a host takes up of the work that an earlier host left, and whether that work froze the hosts before (J2).
 *
 * Before a piece of work is taken up, it is written down that it is, with the life of the host; the note goes when the
 * host has lived for `limits.provenMs` after it, or the work is over. A note that is still there at the next start says
 * that its host ended shortly after it took up this work. Where somebody watches the hosts, a note counts only when its
 * host was seen to freeze: hosts that are killed or deployed anew say nothing about the work. Where nobody does, an
 * object that ends has ended by itself, and every note counts.
 *
 * Invariants:
 *  1. The note is on disk before the work begins.
 *  2. Work whose notes count `limits.frozenStarts` is not taken up. It stays set aside until it is forgiven.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock, SqlDatabase } from '../../domain/ports.ts';
import type { Suspects } from './suspects.ts';

/** The host as whoever started it describes it. */
export interface HostLife {
  /** Counts the starts of the host; null where nobody watches it. */
  readonly life: number | null;
  /** Lives that ended because the host answered nothing any more. */
  readonly frozen: readonly number[];
}

interface Note {
  /** Lives of hosts that took the work up and did not prove it harmless. */
  readonly lives: readonly number[];
  readonly aside: boolean;
}

const NO_NOTE: Note = { lives: [], aside: false };

export class RecoveryQueue {
  readonly #db: SqlDatabase;
  readonly #host: HostLife;
  readonly #clock: Clock;
  readonly #suspects: Pick<Suspects, 'waitFor'>;
  readonly #pending = new Map<string, () => void>();
  #hasTable: boolean | null = null;

  constructor(db: SqlDatabase, host: HostLife, clock: Clock, suspects: Pick<Suspects, 'waitFor'>) {
    this.#db = db;
    this.#host = host;
    this.#clock = clock;
    this.#suspects = suspects;
  }

  /**
   * Writes down that the work is taken up, in its turn among suspects; it may begin when this resolves.
   *
   * @param onDelay told when it has to wait for its turn
   * @returns why it is not taken up, in words for people; null when it is
   */
  async take(work: string, onDelay: () => void = () => undefined): Promise<string | null> {
    const aside = this.#whyAside(work);
    if (aside !== null) return aside;
    const waitMs = this.#suspects.waitFor(this.#suspicion(work), this.#clock.now());
    if (waitMs > 0) {
      onDelay();
      await new Promise<void>((resolve) => {
        this.#clock.schedule(waitMs, resolve);
      });
    }
    await this.#begin(work);
    return null;
  }

  /** How many starts in a row speak against the work. */
  #suspicion(work: string): number {
    const { lives } = this.#read(work);
    return this.#host.life === null
      ? lives.length
      : new Set(lives.filter((life) => this.#host.frozen.includes(life))).size;
  }

  /** Why the work is not taken up any more, in words for people; null when it may be. What is set aside stays so. */
  #whyAside(work: string): string | null {
    const { lives, aside } = this.#read(work);
    const against = this.#suspicion(work);
    // Hosts that crash or are killed each time count, too, later: what they did may be what ended them.
    if (!aside && against < limits.frozenStarts && lives.length < limits.recoveries) return null;
    if (!aside) this.#write(work, { lives, aside: true });
    const what = this.#host.life === null || against < limits.frozenStarts ? 'ended' : 'froze';
    return `the host ${what} at ${Math.max(against, lives.length)} starts in a row, shortly after it took this up`;
  }

  async #begin(work: string): Promise<void> {
    const { lives } = this.#read(work);
    this.#write(work, { lives: [...lives, this.#host.life ?? 0], aside: false });
    await this.#db.sync();
    this.#pending.get(work)?.();
    this.#pending.set(
      work,
      this.#clock.schedule(limits.provenMs, () => this.end(work)),
    );
  }

  /** The work is over, or its host is alive in spite of it. */
  end(work: string): void {
    const cancel = this.#pending.get(work);
    if (cancel === undefined) return;
    cancel();
    this.#pending.delete(work);
    try {
      this.#db.exec(`DELETE FROM taken_up WHERE work = ?`, work);
    } catch {
      // A note too many: it says at the next start that this host ended, and so it has.
    }
  }

  /** What was set aside may be taken up again: all whose names begin like this. */
  forgive(prefix: string): void {
    if (!this.#exists()) return;
    this.#db.exec(`DELETE FROM taken_up WHERE aside = 1 AND SUBSTR(work, 1, ?) = ?`, prefix.length, prefix);
  }

  #read(work: string): Note {
    if (!this.#exists()) return NO_NOTE;
    const row = this.#db.exec(`SELECT lives, aside FROM taken_up WHERE work = ?`, work)[0];
    if (row === undefined) return NO_NOTE;
    return { lives: JSON.parse(String(row['lives'])) as number[], aside: Number(row['aside']) === 1 };
  }

  #write(work: string, { lives, aside }: Note): void {
    this.#db.exec(
      `CREATE TABLE IF NOT EXISTS taken_up
         (work TEXT PRIMARY KEY, lives TEXT NOT NULL, aside INTEGER NOT NULL) WITHOUT ROWID`,
    );
    this.#hasTable = true;
    this.#db.exec(
      `INSERT OR REPLACE INTO taken_up (work, lives, aside) VALUES (?, ?, ?)`,
      work,
      JSON.stringify(lives),
      aside ? 1 : 0,
    );
  }

  #exists(): boolean {
    this.#hasTable ??=
      this.#db.exec(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'taken_up'`).length > 0;
    return this.#hasTable;
  }
}
