/**
 * Enforces the platform's limits of one I/O context where the platform does not, such as on a local system with
 * `PLATFORM_LIMITS`: a request waits while six others wait for their headers, and fails past the plan's number of requests.
 * CPU time and memory cannot be measured here.
 */
import { limits } from '../../domain/limits.ts';
import { PLAN_SUBREQUESTS } from '../../domain/platform-plan.ts';
import type { PlatformPlan } from '../../domain/platform-plan.ts';

export type NetworkFetch = (url: string, init?: RequestInit) => Promise<Response>;

export class PlatformLimits {
  readonly #plan: PlatformPlan;
  readonly #fetch: NetworkFetch;
  /** Called in order when a connection has received its headers. */
  readonly #queue = new Set<() => void>();
  #waiting = 0;
  #used = 0;

  constructor(plan: PlatformPlan, fetch: NetworkFetch) {
    this.#plan = plan;
    this.#fetch = fetch;
  }

  /** A new event has been delivered to an object. */
  topUp(): void {
    this.#used = 0;
  }

  /** Like the platform's `fetch`, including its error for too many requests. */
  readonly fetch: NetworkFetch = async (url, init = {}) => {
    if (this.#used >= PLAN_SUBREQUESTS[this.#plan])
      throw new Error('Too many subrequests by single Worker invocation.');
    this.#used += 1;
    if (this.#waiting < limits.platformConnections) this.#waiting += 1;
    else await this.#connection(init.signal ?? null);
    try {
      return await this.#fetch(url, init);
    } finally {
      this.#release();
    }
  };

  /** Waits for a connection, which its last user passes on. */
  async #connection(signal: AbortSignal | null): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = (): void => {
      if (this.#queue.delete(resolve)) reject(signal?.reason);
    };
    this.#queue.add(resolve);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  #release(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#waiting -= 1;
      return;
    }
    this.#queue.delete(next);
    next();
  }
}
