/**
 * Collects the failing model endpoints from reports of many isolates. Each isolate reports the state changes of its circuit
 * breakers; the latest report per endpoint and model counts.
 */
import { limits } from '../../domain/limits.ts';
import type { EndpointReport } from './endpoints.ts';

interface TimedReport extends EndpointReport {
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The stored form. */
export type StoredReports = [place: string, told: TimedReport][];

export class EndpointReports {
  readonly #reports: Map<string, TimedReport>;

  constructor(stored: StoredReports = []) {
    this.#reports = new Map(stored);
  }

  record(report: EndpointReport, now: number): void {
    const place = JSON.stringify([report.endpoint, report.key, report.model]);
    this.#reports.delete(place);
    if (report.state !== 'closed') this.#reports.set(place, { ...report, at: now });
    // A discarded isolate never closes its breaker, so reports expire.
    for (const [known, { at }] of this.#reports) {
      if (now - at > limits.endpointReportMs || this.#reports.size > limits.knownEndpoints) this.#reports.delete(known);
    }
  }

  stored(): StoredReports {
    return [...this.#reports];
  }

  /** The endpoints whose breaker is not closed. */
  list(now: number): EndpointReport[] {
    return [...this.#reports.values()]
      .filter(({ at }) => now - at <= limits.endpointReportMs)
      .map(({ at: _at, ...report }) => {
        const isDue = report.next_try_at !== null && now >= report.next_try_at;
        return isDue ? { ...report, state: 'half_open' } : report;
      });
  }
}
