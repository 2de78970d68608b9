/** The progress of an evaluation on a terminal: one line, rewritten in place (O3). Nothing is written to a pipe. */
import type { CaseResult } from './evaluate.ts';

/** Milliseconds between two drawings. */
const REDRAW_MS = 100;

export interface ProgressOptions {
  /** Number of runs. */
  readonly total: number;
  /** Null if the output is not a terminal. */
  readonly write: ((text: string) => void) | null;
  /** Milliseconds of any clock. */
  readonly now: () => number;
}

export class EvalProgress {
  readonly #options: ProgressOptions;
  readonly #beganAt: number;
  #drawnAt = -Infinity;
  #done = { passed: 0, failed: 0, error: 0 };

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#beganAt = options.now();
  }

  take({ outcome }: Pick<CaseResult, 'outcome'>): void {
    this.#done = { ...this.#done, [outcome]: this.#done[outcome] + 1 };
    const now = this.#options.now();
    if (now < this.#drawnAt + REDRAW_MS) return;
    this.#drawnAt = now;
    this.#options.write?.(`\r\u001b[K${this.line(now)}`);
  }

  line(now: number): string {
    const { passed, failed, error } = this.#done;
    const done = passed + failed + error;
    const left = ((now - this.#beganAt) / Math.max(1, done)) * (this.#options.total - done);
    const errors = error === 0 ? '' : `, ${error} without a result`;
    const time = done === 0 || done === this.#options.total ? '' : `, about ${timeText(left)} left`;
    return `${done} of ${this.#options.total} runs: ${passed} passed, ${failed} failed${errors}${time}`;
  }

  /** Removes the line. */
  clear(): void {
    if (this.#drawnAt !== -Infinity) this.#options.write?.('\r\u001b[K');
  }
}

function timeText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}
