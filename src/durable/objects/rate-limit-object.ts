/** The requests of one API key to one agent (RATE_LIMIT): all sessions ask here, so that they count together. */
import { DurableObject } from 'cloudflare:workers';
import type { EngineError } from '../../domain/errors.ts';
import { rateLimited, takeRequest } from '../../policies/rate-limit.ts';
import { platformClock } from '../platform.ts';
import type { Env, Settings } from '../settings.ts';

export class RateLimitObject extends DurableObject {
  #emptyAt: number;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    this.#emptyAt = ctx.storage.kv.get<number>('emptyAt') ?? 0;
  }

  /** @returns null, or for how many milliseconds there is no room */
  take(perMinute: number): number | null {
    const taken = takeRequest(this.#emptyAt, { perMinute, now: platformClock.now() });
    if (taken.emptyAt !== this.#emptyAt) this.ctx.storage.kv.put('emptyAt', taken.emptyAt);
    this.#emptyAt = taken.emptyAt;
    return taken.retryAfterMs;
  }
}

/** @returns the refusal, or null where there is room or no limit */
export async function takeTurn(
  env: Env,
  { rateLimit }: Pick<Settings, 'rateLimit'>,
  { owner, agent }: { readonly owner: string | null; readonly agent: string },
): Promise<EngineError | null> {
  if (rateLimit === null) return null;
  const name = JSON.stringify([owner, agent]);
  const retryAfterMs = await env.RATES.getByName(name).take(rateLimit);
  return retryAfterMs === null ? null : rateLimited(agent, rateLimit, retryAfterMs);
}
