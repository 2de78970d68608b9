/**
 * A run in memory, and its hold on the host.
 *
 * Invariant: the host is held while the run is at work, and not while it only waits for a person (J2, J8).
 */
import type { Inbox } from '../run/inbox.ts';
import type { LiveRun } from '../run/run.ts';
import type { RunEnd } from '../run/run-context.ts';
import type { RunInput } from '../run/run-input.ts';
import type { SessionPorts } from './session-ports.ts';

export class ActiveRun {
  readonly live: LiveRun;
  /** How it has answered; null while it has not. */
  end: RunEnd['status'] | null;
  readonly #inbox: Inbox;
  readonly #keep: SessionPorts['hold'];
  #held: PromiseWithResolvers<void> | null = null;

  /** @param keep keeps the host alive while the promise is pending */
  constructor(live: LiveRun, inbox: Inbox, end: RunEnd['status'] | null, keep: SessionPorts['hold']) {
    this.live = live;
    this.#inbox = inbox;
    this.end = end;
    this.#keep = keep;
  }

  /** Whether it is at work, rather than waiting for a person. */
  get isHeld(): boolean {
    return this.#held !== null;
  }

  /** Gives the run an input; one that waited for a person is at work again. */
  put(input: RunInput): void {
    this.hold();
    this.#inbox.put(input);
  }

  hold(): void {
    if (this.#held !== null) return;
    this.#held = Promise.withResolvers<void>();
    this.#keep(this.#held.promise);
    this.live.rouse();
  }

  release(): void {
    this.#held?.resolve();
    this.#held = null;
  }
}
