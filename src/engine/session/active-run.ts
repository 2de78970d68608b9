/**
 * A run in memory, which keeps the host in memory.
 *
 * Invariant: the host is kept while the run is running, but not while it only waits for people and clients (J2, J8, C3).
 */
import type { InputQueue } from '../run/input-queue.ts';
import type { LiveRun } from '../run/run.ts';
import type { RunEnd } from '../run/run-context.ts';
import type { RunInput } from '../run/run-input.ts';
import type { SessionPorts } from './session-ports.ts';

export class ActiveRun {
  readonly live: LiveRun;
  /** How it has ended; null if it has not. */
  end: RunEnd['status'] | null;
  readonly #inputQueue: InputQueue;
  readonly #keep: SessionPorts['hold'];
  #held: PromiseWithResolvers<void> | null = null;

  /** @param keep keeps the host alive while the promise is pending */
  constructor(live: LiveRun, inputQueue: InputQueue, end: RunEnd['status'] | null, keep: SessionPorts['hold']) {
    this.live = live;
    this.#inputQueue = inputQueue;
    this.end = end;
    this.#keep = keep;
  }

  /** Whether it is running, rather than waiting for people and clients. */
  get isHeld(): boolean {
    return this.#held !== null;
  }

  /** Passes an input to the run; a run that waited for people and clients continues. */
  put(input: RunInput): void {
    this.hold();
    this.#inputQueue.put(input);
  }

  /** The run is over: what it was given last, and has not taken, is given back (C5). */
  returnRest(): void {
    for (const input of this.#inputQueue.rest()) if (input.type === 'message_received') input.onLate?.();
  }

  hold(): void {
    if (this.#held !== null) return;
    this.#held = Promise.withResolvers<void>();
    this.#keep(this.#held.promise);
    this.live.resume();
  }

  release(): void {
    this.#held?.resolve();
    this.#held = null;
  }
}
