/**
 * Decides which work of an earlier host is recovered, and detects work that froze its hosts (J2).
 *
 * A note with the current host life is stored before a piece of work is recovered. It is removed when the host has run
 * for `limits.provenMs` after that, or when the work has ended. A note that still exists at the next start means that
 * the host ended shortly after recovering this work. If hosts are supervised, a note counts only if its host froze:
 * killed or redeployed hosts prove nothing about the work. Without supervision, every note counts.
 *
 * Invariants:
 *  1. The note is durable before the work begins.
 *  2. Work with `limits.frozenStarts` counted notes is not recovered. It stays quarantined until it is forgiven.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { SqlDatabase } from '../../domain/ports/storage.ts';
import type { QuarantineSlots } from './quarantine-slots.ts';

/** The current host life, as reported by its supervisor. */
export interface HostLife {
  /** Number of this start of the host; null without supervision. */
  readonly life: number | null;
  /** Lives that ended because the host froze. */
  readonly frozen: readonly number[];
}

interface Note {
  /** Lives of hosts that started the work and did not prove it harmless. */
  readonly lives: readonly number[];
  readonly aside: boolean;
}

const NO_NOTE: Note = { lives: [], aside: false };

export class RecoveryQueue {
  readonly #db: SqlDatabase;
  readonly #host: HostLife;
  readonly #clock: Clock;
  readonly #slots: Pick<QuarantineSlots, 'delayOf'>;
  readonly #pending = new Map<string, () => void>();
  #hasTable: boolean | null = null;

  constructor(db: SqlDatabase, host: HostLife, clock: Clock, slots: Pick<QuarantineSlots, 'delayOf'>) {
    this.#db = db;
    this.#host = host;
    this.#clock = clock;
    this.#slots = slots;
  }

  /**
   * Stores a note for the work and waits for its slot; the work may begin when this resolves.
   *
   * @param onDelay called if it has to wait for its slot
   * @returns why it is not recovered, as a message; null if it is
   */
  async take(work: string, onDelay: () => void = () => undefined): Promise<string | null> {
    const aside = this.#whyQuarantined(work);
    if (aside !== null) return aside;
    const waitMs = this.#slots.delayOf(this.#notesAgainst(work), this.#clock.now());
    if (waitMs > 0) {
      onDelay();
      await new Promise<void>((resolve) => {
        this.#clock.schedule(waitMs, resolve);
      });
    }
    await this.#begin(work);
    return null;
  }

  /** Number of consecutive starts that count against the work. */
  #notesAgainst(work: string): number {
    const { lives } = this.#read(work);
    return this.#host.life === null
      ? lives.length
      : new Set(lives.filter((life) => this.#host.frozen.includes(life))).size;
  }

  /** Why the work is not recovered any more, as a message; null if it may be. Quarantined work stays quarantined. */
  #whyQuarantined(work: string): string | null {
    const { lives, aside } = this.#read(work);
    const against = this.#notesAgainst(work);
    // Hosts that crash or are killed each time also count, later: the work may have caused it.
    if (!aside && against < limits.frozenStarts && lives.length < limits.recoveries) return null;
    if (!aside) this.#write(work, { lives, aside: true });
    const what = this.#host.life === null || against < limits.frozenStarts ? 'ended' : 'froze';
    return `the host ${what} at ${Math.max(against, lives.length)} starts in a row, shortly after recovering this`;
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

  /** The work has ended, or the host survived it. */
  end(work: string): void {
    const cancel = this.#pending.get(work);
    if (cancel === undefined) return;
    cancel();
    this.#pending.delete(work);
    try {
      this.#db.exec(`DELETE FROM taken_up WHERE work = ?`, work);
    } catch {
      // An extra note does no harm: it states at the next start that this host ended, which is true.
    }
  }

  /** Quarantined work whose name begins with this prefix may be recovered again. */
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
