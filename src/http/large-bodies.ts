/**
 * Admits large bodies of requests one after the other, because all sessions of an isolate share its memory (C2, X2).
 *
 * Owns the places of the isolate. Does not own the bodies, nor their size limits.
 *
 * Invariants:
 *  1. A body takes a place when more than `limits.largeBodyBytes` of it have arrived, whatever its stated length is.
 *     Smaller ones never wait.
 *  2. A session has one place at a time, a namespace `limits.largeBodiesPerOwner`, and the isolate `limits.largeBodies`.
 *  3. A body that waits too long for its place is refused as `large_bodies_busy`, which can be retried.
 *  4. A place is lost if another body waits for it, and its own body has stalled or takes too long: a client that sends
 *     slowly, or has gone without a trace, blocks the others for a limited time.
 *  5. No body waits for a promise of another request: each polls with its own timer.
 */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { sleep } from '../domain/sleep.ts';

/** Whose body it is. */
export interface BodyOwner {
  readonly session: string;
  readonly owner: string | null;
}

export class LargeBodies {
  readonly #clock: Clock;
  /** Places that are taken. */
  readonly #taken = new Set<BodyPlace>();
  #waiting = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs the work with a place for one body; it is free again afterwards. */
  async hold<T>(of: BodyOwner, work: (place: BodyPlace) => Promise<T>): Promise<T> {
    const place = new BodyPlace(of, this);
    try {
      return await work(place);
    } finally {
      place.isOver = true;
      this.#taken.delete(place);
    }
  }

  isTaken(place: BodyPlace): boolean {
    return this.#taken.has(place);
  }

  get now(): number {
    return this.#clock.now();
  }

  /** Resolves when the place is taken. @throws EngineError `large_bodies_busy` */
  async take(place: BodyPlace): Promise<void> {
    if (this.#tryToTake(place)) return;
    if (this.#waiting >= limits.largeBodiesWaiting) throw busy();
    const until = this.now + limits.largeBodyWaitMs;
    this.#waiting += 1;
    try {
      do {
        if (this.now >= until || place.isOver) throw busy();
        await sleep(limits.largeBodyPollMs, this.#clock);
      } while (!this.#tryToTake(place));
    } finally {
      this.#waiting -= 1;
    }
  }

  #tryToTake(place: BodyPlace): boolean {
    this.#releaseStalled();
    if (!this.#isFree(place)) return false;
    place.takenAt = this.now;
    place.receivedAt = this.now;
    this.#taken.add(place);
    return true;
  }

  #isFree({ of }: BodyPlace): boolean {
    const taken = [...this.#taken];
    const isOfOwner = ({ of: { owner } }: BodyPlace): boolean => owner === of.owner;
    return (
      taken.length < limits.largeBodies &&
      taken.filter(isOfOwner).length < limits.largeBodiesPerOwner &&
      !taken.some((other) => isOfOwner(other) && other.of.session === of.session)
    );
  }

  #releaseStalled(): void {
    const { now } = this;
    for (const place of this.#taken) {
      const isStalled = now - place.receivedAt > limits.largeBodyStallMs || now - place.takenAt > limits.largeBodyMs;
      if (isStalled) this.#taken.delete(place);
    }
  }
}

/** The place of one body. */
export class BodyPlace {
  readonly of: BodyOwner;
  takenAt = 0;
  receivedAt = 0;
  /** Its request has ended. */
  isOver = false;
  readonly #bodies: LargeBodies;
  #bytes = 0;
  /** Several files of a message may arrive at the same time. */
  #taken: Promise<void> | null = null;

  constructor(of: BodyOwner, bodies: LargeBodies) {
    this.of = of;
    this.#bodies = bodies;
  }

  /** Notes that more has arrived; waits if the body needs a place now. @throws EngineError `large_bodies_busy` */
  async received(bytes: number): Promise<void> {
    this.#bytes += bytes;
    this.receivedAt = this.#bodies.now;
    if (this.#bytes <= limits.largeBodyBytes) return;
    this.#taken ??= this.#bodies.take(this);
    await this.#taken;
    if (!this.#bodies.isTaken(this)) throw busy();
  }
}

function busy(): EngineError {
  const message = `Other bodies of more than ${limits.largeBodyBytes} bytes are being received; try again later`;
  return new EngineError('large_bodies_busy', message, { retry_after_ms: limits.largeBodyRetryMs });
}
