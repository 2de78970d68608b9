/**
 * Which model endpoints are in trouble, for `/health`. Breakers live in the isolates that call models;
 * each tells this object of its changes, and the latest word on an endpoint counts.
 */
import { DurableObject } from 'cloudflare:workers';
import { limits } from '../domain/limits.ts';
import type { EndpointReport } from '../llm/endpoints.ts';
import { platformClock } from './platform.ts';
import type { Env } from './settings.ts';

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
    this.#told.delete(report.endpoint);
    if (report.state !== 'closed') this.#told.set(report.endpoint, { ...report, at: now });
    // An isolate that is gone never closes its breaker.
    for (const [endpoint, { at }] of this.#told) {
      if (now - at > limits.endpointReportMs || this.#told.size > limits.knownEndpoints) this.#told.delete(endpoint);
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

/** There is one for the whole deployment. */
export function endpointStatus(env: Env): DurableObjectStub<EndpointStatusObject> {
  return env.ENDPOINTS.getByName('all');
}
