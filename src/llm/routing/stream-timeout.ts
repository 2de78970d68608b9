/**
 * Waits for several promises in sequence, each with its own timeout, using a single timer: a stream has thousands of
 * pieces, and setting and clearing a timer for each would cost more than reading it.
 *
 * Invariant: at most one timer is set, never later than the current deadline.
 */
import { EngineError } from '../../domain/errors.ts';
import type { Clock } from '../../domain/ports/clock.ts';

export class StreamTimeout {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #aborted = (): void => this.#fail(new EngineError('model_unavailable', 'The model call was aborted'));
  #waiting: { readonly reject: (fault: Error) => void; readonly deadline: number; readonly late: () => Error } | null =
    null;
  #timer: { readonly at: number; readonly cancel: () => void } | null = null;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    signal.addEventListener('abort', this.#aborted, { once: true });
  }

  /**
   * Waits for `work`, but not beyond `timeoutMs` or the abort, even if the work ignores both.
   *
   * @throws the error from `late`, or EngineError `model_unavailable` for an abort
   */
  async wait<T>(work: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
    try {
      return await new Promise<T>((resolve, reject) => {
        work.then(resolve, reject);
        const deadline = this.#clock.now() + timeoutMs;
        this.#waiting = { reject, deadline, late };
        if (this.#signal.aborted) this.#aborted();
        else if (this.#timer === null || this.#timer.at > deadline) this.#set(deadline);
      });
    } finally {
      this.#waiting = null;
    }
  }

  /** Ends all waiting. */
  end(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#signal.removeEventListener('abort', this.#aborted);
  }

  #set(at: number): void {
    this.#timer?.cancel();
    this.#timer = { at, cancel: this.#clock.schedule(Math.max(0, at - this.#clock.now()), () => this.#ring()) };
  }

  #ring(): void {
    this.#timer = null;
    if (this.#waiting === null) return;
    const { deadline, late } = this.#waiting;
    // The timer was set for an earlier piece.
    if (deadline > this.#clock.now()) this.#set(deadline);
    else this.#fail(late());
  }

  #fail(fault: Error): void {
    this.#waiting?.reject(fault);
  }
}
