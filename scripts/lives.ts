/**
 * The lives of the Worker over a state folder: each start has a number, and those that froze are told to the later ones,
 * which set aside the work that was under way at several of them (docs/decisions/015).
 *
 * A life counts as frozen only when it was seen to freeze. One that was killed, deployed anew, or ended by a person while
 * it answered, says nothing about its work. A start that was itself killed leaves its last observation behind.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startLimits } from './start-limits.ts';

/** What was seen last of a life: nothing yet, answers, or none for so long that something is wrong. */
type Phase = 'unknown' | 'answers' | 'silent';

interface Kept {
  readonly life: number;
  readonly phase: Phase;
  readonly frozen: readonly number[];
}

const FILE = 'lives.json';
const NONE: Kept = { life: 0, phase: 'unknown', frozen: [] };

export class Lives {
  readonly #file: string;
  #kept: Kept;

  constructor(folder: string) {
    this.#file = join(folder, FILE);
    this.#kept = this.#read();
  }

  /** A new life begins. @returns its number, and which earlier ones froze */
  begin(): { readonly life: number; readonly frozen: readonly number[] } {
    if (this.#kept.phase === 'silent') this.froze();
    this.#write({ ...this.#kept, life: this.#kept.life + 1, phase: 'unknown' });
    return this.#kept;
  }

  /** The present life has answered, or not for so long that it may be frozen. */
  seen(phase: 'answers' | 'silent'): void {
    if (this.#kept.phase !== phase) this.#write({ ...this.#kept, phase });
  }

  /** The present life answers nothing any more, and is ended. */
  froze(): void {
    const { life, frozen } = this.#kept;
    const all = frozen.includes(life) ? frozen : [...frozen, life];
    this.#write({ life, phase: 'unknown', frozen: all.slice(-startLimits.frozenLives) });
  }

  #read(): Kept {
    try {
      const { life, phase, frozen } = JSON.parse(readFileSync(this.#file, 'utf8')) as Partial<
        Record<keyof Kept, unknown>
      >;
      if (!Number.isSafeInteger(life) || !Array.isArray(frozen) || !frozen.every(Number.isSafeInteger)) return NONE;
      return { life: Number(life), phase: phase === 'silent' || phase === 'answers' ? phase : 'unknown', frozen };
    } catch {
      return NONE;
    }
  }

  /** What cannot be written is no reason not to serve: then no work is set aside. */
  #write(kept: Kept): void {
    this.#kept = kept;
    try {
      writeFileSync(`${this.#file}.new`, JSON.stringify(kept), { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    } catch {
      // As above.
    }
  }
}
