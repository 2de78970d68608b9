/** Everything that happens to a run arrives here, in order, and is taken one turn at a time. */
import type { RunInput } from './run-input.ts';

/** A queue with one taker. What it holds is bounded by the generation's and the actions' own limits. */
export class Inbox {
  #inputs: RunInput[] = [];
  #wake: (() => void) | null = null;
  /** Told when the turn is over that takes what was there when they asked: before it is taken, and while it is worked on. */
  #waiting: (() => void)[] = [];
  #taken: (() => void)[] = [];

  put(input: RunInput): void {
    this.#inputs.push(input);
    this.#wake?.();
    this.#wake = null;
  }

  /**
   * Everything that is there; waits for the first input when there is none.
   *
   * @param turn is waited for once there is one: more may gather meanwhile
   */
  async take(turn: () => Promise<void> | null): Promise<readonly RunInput[]> {
    for (const resolve of this.#taken) resolve();
    this.#taken = [];
    if (this.#inputs.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    const waited = turn();
    if (waited !== null) await waited;
    const taken = this.#inputs;
    this.#inputs = [];
    this.#taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Resolves when the turn is over that takes what is there now. */
  async turnOver(signal: AbortSignal): Promise<void> {
    if (this.#inputs.length === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
