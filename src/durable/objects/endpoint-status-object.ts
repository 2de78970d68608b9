/** The failing model endpoints of one namespace, for `/health` (llm/routing/endpoint-reports.ts). */
import { DurableObject } from 'cloudflare:workers';
import { EndpointReports } from '../../llm/routing/endpoint-reports.ts';
import type { StoredReports } from '../../llm/routing/endpoint-reports.ts';
import type { EndpointReport } from '../../llm/routing/endpoints.ts';
import type { EndpointStatusRpc, Env } from '../env.ts';
import { platformClock } from '../platform.ts';

const KEY = 'endpoints';

export class EndpointStatusObject extends DurableObject<Env> implements EndpointStatusRpc {
  readonly #reports = new EndpointReports(this.ctx.storage.kv.get<StoredReports>(KEY));

  record(report: EndpointReport): void {
    this.#reports.record(report, platformClock.now());
    this.ctx.storage.kv.put(KEY, this.#reports.stored());
  }

  list(): EndpointReport[] {
    return this.#reports.list(platformClock.now());
  }
}
