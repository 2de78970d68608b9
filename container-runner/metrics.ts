/** Prometheus metrics (R1): current load, ended jobs, and durations. No contents. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

import type { JobCounts } from './jobs/jobs.ts';
import type { JobRecord } from './ledger/ledger.ts';
import { VERSION } from './version.ts';

export interface MetricSources {
  readonly jobs: { readonly counts: JobCounts };
  readonly relics: { readonly running: number; readonly restarts: number };
  readonly prewarmer: { readonly held: number };
  readonly ledger: { readonly sizeBytes: number };
  readonly files: { readonly sizeBytes: number };
  readonly maxRunning: number;
  readonly draining: () => boolean;
}

export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  jobEnded(job: JobRecord): void;
  requestAnswered(method: string, route: string, status: number): void;
}

const SECONDS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 900, 3_600];

export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'cortex_runner_' });

  function gauge(name: string, help: string, read: () => number): void {
    const made: Gauge = new Gauge({ name: `cortex_runner_${name}`, help, registers, collect: () => made.set(read()) });
  }
  gauge('jobs_running', 'Running jobs.', () => sources.jobs.counts.running);
  gauge('jobs_queued', 'Queued jobs.', () => sources.jobs.counts.queued);
  gauge('jobs_max_running', 'Maximum number of running jobs.', () => sources.maxRunning);
  gauge('relics_running', 'Running and starting relics.', () => sources.relics.running);
  gauge('relic_restarts', 'Restarts of relics since the start of the runner.', () => sources.relics.restarts);
  gauge('prewarmed', 'Sandboxes that are reserved for a session.', () => sources.prewarmer.held);
  gauge('ledger_bytes', 'Size of the job ledger.', () => sources.ledger.sizeBytes);
  gauge('workspace_cache_bytes', 'Size of the cached files of workspaces.', () => sources.files.sizeBytes);
  gauge('draining', '1 while the runner is stopping and accepts no new jobs.', () => (sources.draining() ? 1 : 0));
  new Gauge({ name: 'cortex_runner_info', help: 'Version of the runner.', labelNames: ['version'], registers }).set(
    { version: VERSION },
    1,
  );
  const ended = new Counter({
    name: 'cortex_runner_jobs_ended_total',
    help: 'Ended jobs since the start of the runner.',
    labelNames: ['kind', 'sandbox', 'end'],
    registers,
  });
  const waited = new Histogram({
    name: 'cortex_runner_job_wait_seconds',
    help: 'Time from the request to the start of a job.',
    buckets: SECONDS,
    registers,
  });
  const ran = new Histogram({
    name: 'cortex_runner_job_seconds',
    help: 'Time from the start to the end of a job.',
    labelNames: ['kind', 'sandbox'],
    buckets: SECONDS,
    registers,
  });
  const requests = new Counter({
    name: 'cortex_runner_requests_total',
    help: 'Requests by route and status.',
    labelNames: ['method', 'route', 'status'],
    registers,
  });

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    jobEnded({ kind, sandbox, end, createdAt, startedAt, endedAt }) {
      const where = { kind, sandbox: sandbox ?? 'none' };
      ended.inc({ ...where, end: end ?? 'lost' });
      if (startedAt === null || endedAt === null) return;
      waited.observe((startedAt - createdAt) / 1_000);
      ran.observe(where, (endedAt - startedAt) / 1_000);
    },
    requestAnswered(method, route, status) {
      requests.inc({ method, route, status });
    },
  };
}
