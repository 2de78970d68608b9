/** Counts the requests of one namespace to one agent, over all sessions (RATE_LIMIT). */
import { DurableObject } from 'cloudflare:workers';
import { takeRequest } from '../../policies/rate-limit.ts';
import type { Env, RateLimitRpc } from '../env.ts';
import { platformClock } from '../platform.ts';

const KEY = 'emptyAt';

export class RateLimitObject extends DurableObject<Env> implements RateLimitRpc {
  #emptyAt = this.ctx.storage.kv.get<number>(KEY) ?? 0;

  take(perMinute: number): number | null {
    const taken = takeRequest(this.#emptyAt, { perMinute, now: platformClock.now() });
    if (taken.emptyAt !== this.#emptyAt) this.ctx.storage.kv.put(KEY, taken.emptyAt);
    this.#emptyAt = taken.emptyAt;
    return taken.retryAfterMs;
  }
}
