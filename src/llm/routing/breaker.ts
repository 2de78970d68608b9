/**
 * The circuit breaker of one endpoint (L2): after too many failures in a row it is left alone for a
 * while, then tried by a single call.
 *
 * Owns the count of failures and the time of the next try. Does not own what counts as a failure.
 *
 * Invariants
 * 1. closed -> open after `limits.breakerFailures` failures in a row, or when the endpoint asks to be left alone.
 * 2. open -> half-open when its time is over; then exactly one call is let through until it reports.
 * 3. half-open -> closed by a success, -> open for twice as long (at most `limits.breakerOpenMaxMs`) by a failure.
 * 4. Every call that was let through reports once: `succeeded`, `failed` or `abandoned`.
 */
import { backoffMs } from '../../domain/backoff.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports.ts';

export type BreakerState = 'closed' | 'open' | 'half_open';

export class Breaker {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #changed: () => void;
  #failures = 0;
  #openUntil: number | null = null;
  /** Times in a row that it opened. */
  #openings = 1;
  #probing = false;

  /** @param changed called after every change of the state that a call has caused */
  constructor(clock: Pick<Clock, 'now'>, changed: () => void = () => {}) {
    this.#clock = clock;
    this.#changed = changed;
  }

  get state(): BreakerState {
    if (this.#openUntil === null) return 'closed';
    return this.#probing || this.#clock.now() >= this.#openUntil ? 'half_open' : 'open';
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** When the next call is let through, epoch milliseconds; null while it is closed. */
  get openUntil(): number | null {
    return this.#openUntil;
  }

  /** @returns null = call; else for how many milliseconds the endpoint is left alone */
  enter(): number | null {
    if (this.#openUntil === null) return null;
    const leftMs = this.#openUntil - this.#clock.now();
    if (leftMs > 0) return leftMs;
    if (this.#probing) return limits.retryDelayMs;
    this.#probing = true;
    this.#changed();
    return null;
  }

  succeeded(): void {
    const wasClosed = this.#openUntil === null;
    this.#failures = 0;
    this.#openUntil = null;
    this.#openings = 1;
    this.#probing = false;
    if (!wasClosed) this.#changed();
  }

  /** @param retryAfterMs for how long the endpoint itself asked to be left alone */
  failed(retryAfterMs: number | null = null): void {
    this.#failures += 1;
    const asked = retryAfterMs !== null && retryAfterMs > limits.retryMaxDelayMs;
    if (this.#probing) {
      this.#openings += 1;
    } else if (this.#openUntil !== null || (this.#failures < limits.breakerFailures && !asked)) {
      // Calls that were under way when it opened change nothing.
      return;
    }
    this.#probing = false;
    const least = backoffMs({ delayMs: limits.breakerOpenMs, maxDelayMs: limits.breakerOpenMaxMs }, this.#openings);
    const openMs = asked ? Math.min(Math.max(retryAfterMs, least), limits.breakerOpenMaxMs) : least;
    this.#openUntil = this.#clock.now() + openMs;
    this.#changed();
  }

  /** The call ended without saying anything about the endpoint. */
  abandoned(): void {
    if (!this.#probing) return;
    this.#probing = false;
    this.#changed();
  }
}
