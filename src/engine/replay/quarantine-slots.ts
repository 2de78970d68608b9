/**
 * Assigns start times to recovered work that may have frozen its host. Such work runs in separate time slots, so that a
 * freeze counts against the work that caused it and not against other running work.
 *
 * There is one object per host. Work without a note begins immediately. Work with one note gets a slot that begins
 * `limits.quarantineSlotMs` after the previous one. Work with more notes gets the host exclusively for `limits.provenMs`
 * plus a margin, during which no other recovered work begins.
 */
import { limits } from '../../domain/limits.ts';

/** A note is written shortly after the slot begins, and removed `limits.provenMs` after that. */
const EXCLUSIVE_MS = limits.provenMs + limits.quarantineMarginMs;

export class QuarantineSlots {
  /** When the next work with one note may begin. */
  #nextAt = 0;
  /** The latest assigned time. */
  #lastAt = Number.NEGATIVE_INFINITY;
  /** Exclusive intervals: start and end, in order. */
  #reserved: (readonly [number, number])[] = [];

  /** Milliseconds to wait, from `now`, before work with this number of notes begins. */
  delayOf(notes: number, now: number): number {
    this.#reserved = this.#reserved.filter(([, end]) => end > now);
    const at = notes < 2 ? this.#sharedTime(notes === 0 ? now : Math.max(now, this.#nextAt)) : this.#exclusiveTime(now);
    if (notes === 1) this.#nextAt = at + limits.quarantineSlotMs;
    this.#lastAt = Math.max(this.#lastAt, at);
    return at - now;
  }

  /** A time after all assigned times, including what the last work may still do. */
  #exclusiveTime(now: number): number {
    const at = Math.max(now, this.#lastAt + EXCLUSIVE_MS);
    this.#reserved.push([at, at + EXCLUSIVE_MS]);
    return at;
  }

  /**
   * The first time from `at` that is neither inside an exclusive interval nor so shortly before it that notes overlap.
   */
  #sharedTime(at: number): number {
    let found = at;
    for (const [start, end] of this.#reserved) if (found > start - EXCLUSIVE_MS && found < end) found = end;
    return found;
  }
}
