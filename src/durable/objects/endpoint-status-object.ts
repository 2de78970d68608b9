/**
 * Which model endpoints are in trouble for one API key, for `/health`. Breakers live in the isolates that call models;
 * each tells this object of its changes, and the latest word on a model of an endpoint counts.
 */
import { DurableObject } from 'cloudflare:workers';
import { limits } from '../../domain/limits.ts';
import type { EndpointReport } from '../../llm/routing/endpoints.ts';
import { platformClock } from '../platform.ts';
import type { Env } from '../settings.ts';

interface Told extends EndpointReport {
  readonly at: number;
}

export class EndpointStatusObject extends DurableObject {
  #told: Map<string, Told>;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    this.#told = new Map(ctx.storage.kv.get<[string, Told][]>('endpoints') ?? []);
  }

  tell(report: EndpointReport): void {
    const now = platformClock.now();
    const place = JSON.stringify([report.endpoint, report.key, report.model]);
    this.#told.delete(place);
    if (report.state !== 'closed') this.#told.set(place, { ...report, at: now });
    // An isolate that is gone never closes its breaker.
    for (const [known, { at }] of this.#told) {
      if (now - at > limits.endpointReportMs || this.#told.size > limits.knownEndpoints) this.#told.delete(known);
    }
    this.ctx.storage.kv.put('endpoints', [...this.#told]);
  }

  /** Those that are not closed. */
  list(): EndpointReport[] {
    const now = platformClock.now();
    return [...this.#told.values()]
      .filter(({ at }) => now - at <= limits.endpointReportMs)
      .map(({ at: _at, ...report }) => {
        const due = report.next_try_at !== null && now >= report.next_try_at;
        return due ? { ...report, state: 'half_open' } : report;
      });
  }
}

/** There is one for each API key. */
export function endpointStatus(env: Env, owner: string | null): DurableObjectStub<EndpointStatusObject> {
  return env.ENDPOINTS.getByName(owner === null ? 'local' : `key:${owner}`);
}
