/**
 * Ctrl-C and SIGTERM during an evaluation (O3): the first one ends the runs, so that the finished ones are reported. The next
 * one ends the process.
 */

/** What ends an evaluation in a terminal, and in CI. */
export const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export class Interruption {
  readonly #stop = new AbortController();
  readonly #tell: (line: string) => void;
  #takesNext = false;

  constructor(tell: (line: string) => void) {
    this.#tell = tell;
  }

  /** Is aborted when the runs have to end. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether the next signal only ends the runs, and not the process. */
  get takesNext(): boolean {
    return this.#takesNext;
  }

  /** Takes the first signal while the work is done. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    for (const name of SIGNALS) process.on(name, this.#interrupt);
    this.#takesNext = true;
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  readonly #interrupt = (): void => {
    this.#release();
    this.#tell('cancels the runs in progress, and reports the finished ones; Ctrl-C again ends at once');
    this.#stop.abort(new Error('the evaluation was stopped'));
  };

  #release(): void {
    this.#takesNext = false;
    for (const name of SIGNALS) process.off(name, this.#interrupt);
  }
}
