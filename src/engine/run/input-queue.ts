/** Receives everything that happens to a run, in order; the run takes it one turn at a time. */
import type { RunInput } from './run-input.ts';

/** A queue with one consumer. The limits of generations and actions bound its size. */
export class InputQueue {
  #inputs: RunInput[] = [];
  #wake: (() => void) | null = null;
  /** Called at the end of the turn that takes the inputs present at the time of the call: before and after taking. */
  #waiting: (() => void)[] = [];
  #taken: (() => void)[] = [];

  put(input: RunInput): void {
    this.#inputs.push(input);
    this.#wake?.();
    this.#wake = null;
  }

  /** Ends the turn before. @returns what to wait for before the next one; null if there is an input */
  arrival(): Promise<void> | null {
    if (this.#taken.length > 0) {
      for (const resolve of this.#taken) resolve();
      this.#taken = [];
    }
    return this.#inputs.length > 0 ? null : new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** Takes all inputs for a turn. */
  take(): readonly RunInput[] {
    const taken = this.#inputs;
    this.#inputs = [];
    this.#taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Takes what no turn has taken, when there are no more turns. */
  rest(): readonly RunInput[] {
    const left = this.#inputs;
    this.#inputs = [];
    return left;
  }

  /** Resolves at the end of the turn that takes the current inputs. */
  async turnEnd(signal: AbortSignal): Promise<void> {
    if (this.#inputs.length === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => resolve());
    });
  }
}
