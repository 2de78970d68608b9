/**
 * One small state that a deployment shares (status.ts), in memory and in the key-value storage. The kind in the object's name
 * decides which of the methods are called; the rules of each kind are in a module of its own.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { DurableObject } from 'cloudflare:workers';
import { EndpointReports } from '../../llm/routing/endpoint-reports.ts';
import type { StoredReports } from '../../llm/routing/endpoint-reports.ts';
import type { EndpointReport } from '../../llm/routing/endpoints.ts';
import { takeRequest } from '../../policies/rate-limit.ts';
import type { Identity } from '../../policies/session-ids.ts';
import { recentDeaths, toolStates, withDeath } from '../../policies/tool-deaths.ts';
import type { CodeToolStates, Deaths, ReportedDeath } from '../../policies/tool-deaths.ts';
import type { Env, StatusRpc } from '../env.ts';
import { platformClock } from '../platform.ts';

/** Storage keys, one for each kind. */
const IDENTITY = 'identity';
const EMPTY_AT = 'emptyAt';
const ENDPOINTS = 'endpoints';
const DEATHS = 'deaths';

export class StatusObject extends DurableObject<Env> implements StatusRpc {
  readonly #kv = this.ctx.storage.kv;
  #emptyAt: number | null = null;
  #reports: EndpointReports | null = null;

  identity(): Identity {
    const known = this.#kv.get<Identity>(IDENTITY);
    if (known !== undefined) return known;
    const made = { secret: bytesToHex(crypto.getRandomValues(new Uint8Array(32))) };
    // The platform holds the answer back until it is durable.
    this.#kv.put(IDENTITY, made);
    return made;
  }

  take(perMinute: number): number | null {
    const before = (this.#emptyAt ??= this.#kv.get<number>(EMPTY_AT) ?? 0);
    const taken = takeRequest(before, { perMinute, now: platformClock.now() });
    if (taken.emptyAt !== before) this.#kv.put(EMPTY_AT, taken.emptyAt);
    this.#emptyAt = taken.emptyAt;
    return taken.retryAfterMs;
  }

  recordEndpoint(report: EndpointReport): void {
    const reports = this.#openReports();
    reports.record(report, platformClock.now());
    this.#kv.put(ENDPOINTS, reports.stored());
  }

  failingEndpoints(): EndpointReport[] {
    return this.#openReports().list(platformClock.now());
  }

  #openReports(): EndpointReports {
    return (this.#reports ??= new EndpointReports(this.#kv.get<StoredReports>(ENDPOINTS)));
  }

  toolDied(name: string, death: ReportedDeath): void {
    const now = platformClock.now();
    const deaths = this.#deaths(now);
    const after = withDeath(deaths, name, { ...death, at: now });
    if (after !== deaths) this.#kv.put(DEATHS, after);
  }

  tools(): CodeToolStates {
    return toolStates(this.#deaths(platformClock.now()));
  }

  #deaths(now: number): Deaths {
    return recentDeaths(this.#kv.get<Deaths>(DEATHS) ?? {}, now);
  }
}
