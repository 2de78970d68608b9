/**
 * When work that is suspected of freezing its host is taken up: apart from other work, so that a freeze speaks against
 * the one that caused it and not against those that were under way at the same time.
 *
 * One for a host. Work without a note against it begins at once. Work with one note against it gets a place of its own `limits.suspectSlotMs` after the one before;
 * with more notes it gets the host for `limits.provenMs` and a margin, in which nothing else is taken up.
 */
import { limits } from '../../domain/limits.ts';

/** A note is written a moment after the turn begins, and goes `limits.provenMs` after that. */
const ALONE_MS = limits.provenMs + limits.suspectMarginMs;

export class Suspects {
  /** When the next one with one note may begin. */
  #nextAt = 0;
  /** The latest time that was given to anything. */
  #lastAt = Number.NEGATIVE_INFINITY;
  /** Stretches in which one suspect has the host for itself: start and end, in order. */
  #reserved: (readonly [number, number])[] = [];

  /** Milliseconds to wait, from `now`, before work with so much against it begins. */
  waitFor(suspicion: number, now: number): number {
    this.#reserved = this.#reserved.filter(([, end]) => end > now);
    const at = suspicion < 2 ? this.#outside(suspicion === 0 ? now : Math.max(now, this.#nextAt)) : this.#alone(now);
    if (suspicion === 1) this.#nextAt = at + limits.suspectSlotMs;
    this.#lastAt = Math.max(this.#lastAt, at);
    return at - now;
  }

  /** After all that has been given a time, and after what the last of it may still do. */
  #alone(now: number): number {
    const at = Math.max(now, this.#lastAt + ALONE_MS);
    this.#reserved.push([at, at + ALONE_MS]);
    return at;
  }

  /** The first time from `at` on that neither falls into such a stretch nor so shortly before it that its note would. */
  #outside(at: number): number {
    let found = at;
    for (const [start, end] of this.#reserved) if (found > start - ALONE_MS && found < end) found = end;
    return found;
  }
}
