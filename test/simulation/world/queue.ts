/**
 * The world's time. Nothing waits for a real clock: the world runs the next thing that is due, one at a time, after
 * everything that needs no time has happened.
 *
 * Invariants:
 *  1. Things at the same time run in an order that the history decides.
 *  2. A cancelled thing never runs.
 */

interface Due {
  readonly at: number;
  readonly tie: number;
  readonly run: () => void;
}

export class TimeQueue {
  #now = 0;
  #count = 0;
  readonly #order: number;
  readonly #due: Due[] = [];

  /** @param order decides between things that are due at the same time */
  constructor(order: number) {
    this.#order = order;
  }

  /** Milliseconds since the beginning. */
  get now(): number {
    return this.#now;
  }

  /** When the next task is due; null if the queue is empty. */
  get next(): number | null {
    return this.#due[0]?.at ?? null;
  }

  /** @returns a function that cancels it */
  after(delayMs: number, run: () => void): () => void {
    const due: Due = { at: this.#now + Math.max(0, delayMs), tie: mix(this.#order, this.#count++), run };
    let low = 0;
    for (let high = this.#due.length; low < high;) {
      const middle = (low + high) >> 1;
      const other = this.#due[middle];
      if (other === undefined || other.at > due.at || (other.at === due.at && other.tie > due.tie)) high = middle;
      else low = middle + 1;
    }
    this.#due.splice(low, 0, due);
    return () => {
      const at = this.#due.indexOf(due);
      if (at >= 0) this.#due.splice(at, 1);
    };
  }

  /** Runs the next task at its time. @returns false if the queue was empty */
  step(): boolean {
    const due = this.#due.shift();
    if (due === undefined) return false;
    this.#now = due.at;
    due.run();
    return true;
  }

  /** Nothing happens until then. */
  skipTo(at: number): void {
    this.#now = Math.max(this.#now, at);
  }
}

/** A number in [0, 2^32) that depends on both in no visible way. */
function mix(a: number, b: number): number {
  let mixed = Math.imul((a ^ (b * 0x9e3779b1)) >>> 0, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
