/**
 * Collects the failing model endpoints from reports of many isolates. Each isolate reports the state changes of its circuit
 * breakers; the latest report per endpoint and model counts.
 */
import { limits } from '../../domain/limits.ts';
import type { EndpointReport } from './endpoints.ts';

interface Told extends EndpointReport {
  /** Epoch milliseconds. */
  readonly at: number;
}

/** As it is stored. */
export type StoredReports = [place: string, told: Told][];

export class EndpointReports {
  readonly #told: Map<string, Told>;

  constructor(stored: StoredReports = []) {
    this.#told = new Map(stored);
  }

  tell(report: EndpointReport, now: number): void {
    const place = JSON.stringify([report.endpoint, report.key, report.model]);
    this.#told.delete(place);
    if (report.state !== 'closed') this.#told.set(place, { ...report, at: now });
    // a discarded isolate never closes its breaker, so reports expire
    for (const [known, { at }] of this.#told) {
      if (now - at > limits.endpointReportMs || this.#told.size > limits.knownEndpoints) this.#told.delete(known);
    }
  }

  stored(): StoredReports {
    return [...this.#told];
  }

  /** Those that are not closed. */
  list(now: number): EndpointReport[] {
    return [...this.#told.values()]
      .filter(({ at }) => now - at <= limits.endpointReportMs)
      .map(({ at: _at, ...report }) => {
        const isDue = report.next_try_at !== null && now >= report.next_try_at;
        return isDue ? { ...report, state: 'half_open' } : report;
      });
  }
}
