/**
 * The lives of the Worker: each start of the Worker on a state folder has a number. Later lives are told which earlier
 * ones froze, and quarantine work that was in progress in several of them (docs/decisions/015).
 *
 * A life counts as frozen only if it was seen to freeze. A life that was killed, redeployed, or stopped while it answered
 * is no evidence against its work. If `npm start` itself is killed, the file holds its last observation.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../project/real-path.ts';
import { startLimits } from './start-limits.ts';

/** The last observation of a life: none yet, answers, or a long silence. */
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

  /** Starts a new life. @returns its number, and the earlier lives that froze */
  begin(): { readonly life: number; readonly frozen: readonly number[] } {
    if (this.#kept.phase === 'silent') this.froze();
    this.#write({ ...this.#kept, life: this.#kept.life + 1, phase: 'unknown' });
    return this.#kept;
  }

  /** Records that the current life answered, or that it has been silent for a long time. */
  seen(phase: 'answers' | 'silent'): void {
    if (this.#kept.phase !== phase) this.#write({ ...this.#kept, phase });
  }

  /** Records that the current life froze and was ended. */
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

  /** Ignores write errors: the system can serve without the file, but then quarantines nothing. */
  #write(kept: Kept): void {
    this.#kept = kept;
    try {
      replaceFile(this.#file, JSON.stringify(kept), 0o600);
    } catch {
      // see above
    }
  }
}
