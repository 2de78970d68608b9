/**
 * What `wrangler dev` does after a change, from its output: it builds the Worker, during which requests wait, and then
 * replaces the process that runs it. A health check without an answer means nothing in this time.
 *
 * Invariants:
 * 1. While it builds, the processes of the Worker exist. While it reloads, they may not.
 * 2. A rebuild that has no end in the output, such as a failed build, counts for `startLimits.rebuildMs` after its last line.
 */
import { startLimits } from './start-limits.ts';

/** `building`: requests wait; `reloading`: the process is being replaced. */
export type RebuildPhase = 'building' | 'reloading';

export class Rebuilds {
  readonly #now: () => number;
  #isBuilding = false;
  /** Reloads without an end. They are serial, but each is announced at once. */
  #open = 0;
  #done = 0;
  #lastAt = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Number of reloads that have ended: each has replaced the process. */
  get reloads(): number {
    return this.#done;
  }

  /** Null if the Worker should answer. */
  get phase(): RebuildPhase | null {
    if (this.#now() - this.#lastAt > startLimits.rebuildMs) this.reset();
    if (this.#open > 0) return 'reloading';
    return this.#isBuilding ? 'building' : null;
  }

  /** Forgets what was announced, for example by an earlier process. */
  reset(): void {
    this.#isBuilding = false;
    this.#open = 0;
  }

  /** @param line of the output of wrangler, without colours */
  read(line: string): void {
    const step = STEPS.find(([start]) => line.startsWith(start))?.[1];
    if (step === undefined || (step === 'failed' && this.phase !== 'reloading')) return;
    if (this.phase === null || step === 'failed' || step === 'started') this.reset();
    this.#lastAt = this.#now();
    switch (step) {
      case 'building':
        this.#isBuilding = true;
        return;
      case 'reloading':
        this.#isBuilding = false;
        this.#open += 1;
        return;
      case 'reloaded':
        this.#open = Math.max(0, this.#open - 1);
        this.#done += 1;
        return;
      case 'started':
      case 'failed':
    }
  }
}

const STEPS = [
  ['[custom build] Running:', 'building'],
  // the first build of a process ends with it
  ['⎔ Starting local server', 'started'],
  ['⎔ Reloading local server', 'reloading'],
  ['⎔ Local server updated and ready', 'reloaded'],
  ['✘ [ERROR]', 'failed'],
] as const;
