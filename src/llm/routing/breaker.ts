/**
 * The circuit breaker of one endpoint (L2): opens after several failures in a row, then lets a single call test the
 * endpoint.
 *
 * Owns the count of failures and the time of the next call. Does not own the definition of a failure.
 *
 * Invariants
 * 1. closed -> open after `limits.breakerFailures` consecutive failures, or if the endpoint requests a pause.
 * 2. open -> half-open after its time; then exactly one call is allowed until it reports.
 * 3. half-open -> closed after a success, -> open for twice as long (at most `limits.breakerOpenMaxMs`) after a failure.
 * 4. Every allowed call reports once: `succeeded`, `failed` or `abandoned`.
 */
import { backoffMs } from '../../domain/backoff.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';

export type BreakerState = 'closed' | 'open' | 'half_open';

export class Breaker {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #changed: () => void;
  #failures = 0;
  #openUntil: number | null = null;
  /** Number of consecutive openings. */
  #openings = 1;
  #probing = false;

  /** @param changed called after every state change that a call causes */
  constructor(clock: Pick<Clock, 'now'>, changed: () => void = () => {}) {
    this.#clock = clock;
    this.#changed = changed;
  }

  get state(): BreakerState {
    if (this.#openUntil === null) return 'closed';
    return this.#probing || this.#clock.now() >= this.#openUntil ? 'half_open' : 'open';
  }

  /** Number of consecutive failures. */
  get failures(): number {
    return this.#failures;
  }

  /** When the next call is allowed, epoch milliseconds; null while closed. */
  get openUntil(): number | null {
    return this.#openUntil;
  }

  /** @returns null if the call is allowed; otherwise the remaining time in milliseconds */
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

  /** @param retryAfterMs the pause that the endpoint requested */
  failed(retryAfterMs: number | null = null): void {
    this.#failures += 1;
    const asked = retryAfterMs !== null && retryAfterMs > limits.retryMaxDelayMs;
    if (this.#probing) {
      this.#openings += 1;
    } else if (this.#openUntil !== null || (this.#failures < limits.breakerFailures && !asked)) {
      // Calls that started before it opened change nothing.
      return;
    }
    this.#probing = false;
    const least = backoffMs({ delayMs: limits.breakerOpenMs, maxDelayMs: limits.breakerOpenMaxMs }, this.#openings);
    const openMs = asked ? Math.min(Math.max(retryAfterMs, least), limits.breakerOpenMaxMs) : least;
    this.#openUntil = this.#clock.now() + openMs;
    this.#changed();
  }

  /** The call ended without information about the endpoint. */
  abandoned(): void {
    if (!this.#probing) return;
    this.#probing = false;
    this.#changed();
  }
}
