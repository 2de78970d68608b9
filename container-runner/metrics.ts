/** The metrics of the runner (O2): current load, ended jobs, and durations. No contents. */
import {
  collectDefaultMetrics,
  Counter,
  type CounterConfiguration,
  Gauge,
  Histogram,
  type OpenMetricsContentType,
  Registry,
} from 'prom-client';

import { type CollectedMetric, CONTENT_TYPE, expose, type MetricsFormat } from './exposition.ts';
import type { JobCounts } from './jobs/jobs.ts';
import type { JobRecord } from './ledger/ledger.ts';
import { type MetricName, METRICS } from './metric-table.ts';
import { SANDBOX_LEVELS, type SandboxLevel } from './sandbox/sandbox.ts';
import type { SpanCounts } from './telemetry/span-counts.ts';
import type { SpanContext } from './telemetry/trace-context.ts';
import { VERSION } from './version.ts';

export interface MetricSources {
  readonly jobs: { readonly counts: JobCounts };
  readonly sandboxes: {
    report(): { readonly levels: readonly { readonly level: SandboxLevel; readonly ready: number }[] };
  };
  readonly relics: { readonly running: number; readonly restarts: number };
  readonly prewarmer: { readonly held: number };
  readonly ledger: { readonly sizeBytes: number };
  readonly files: { readonly sizeBytes: number };
  /** Null: the runner exports no spans. */
  readonly spans: { readonly counts: SpanCounts } | null;
  readonly maxRunning: number;
  readonly draining: () => boolean;
}

export interface Metrics {
  /** All metrics in a format, and its content type. */
  read(format: MetricsFormat): Promise<{ readonly contentType: string; readonly text: string }>;
  /** @param trace of the job, if its spans are exported: the exemplar of its duration */
  jobEnded(job: JobRecord, trace: SpanContext | null): void;
  jobRejected(code: string): void;
  requestAnswered(method: string, route: string, status: number): void;
}

const SECONDS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 900, 3_600];
const NO_SPANS: SpanCounts = {
  queued: 0,
  exported: 0,
  dropped: { queue_full: 0, failed: 0, rejected: 0, shutdown: 0 },
};

type Described = Pick<CounterConfiguration<string>, 'name' | 'help' | 'labelNames'> & {
  readonly registers: Registry<OpenMetricsContentType>[];
};
/** Values of a metric, each with its labels. */
type Values = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];

export function createMetrics(sources: MetricSources): Metrics {
  // the type that allows exemplars
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'cortex_runner_' });
  // gauges with the suffix of counters; they are the sums of the metrics without it
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`cortex_runner_nodejs_active_${what}_total`);
  }

  const described = (name: MetricName): Described => {
    const { help, labels } = METRICS[name];
    return { name, help, labelNames: labels, registers };
  };
  /** A gauge or a counter whose values are elsewhere. */
  function observe(name: MetricName, read: () => Values): void {
    const collect = (): void => {
      metric.reset();
      for (const [labels, value] of read()) metric.inc(labels, value);
    };
    const settings = { ...described(name), collect };
    const metric: Gauge | Counter = METRICS[name].type === 'gauge' ? new Gauge(settings) : new Counter(settings);
  }
  const one = (name: MetricName, read: () => number): void => observe(name, () => [[{}, read()]]);
  const histogram = (name: MetricName): Histogram =>
    new Histogram({ ...described(name), buckets: SECONDS, enableExemplars: true });

  const spans = (): SpanCounts => sources.spans?.counts ?? NO_SPANS;
  one('cortex_runner_jobs_running', () => sources.jobs.counts.running);
  one('cortex_runner_jobs_queued', () => sources.jobs.counts.queued);
  one('cortex_runner_jobs_max_running', () => sources.maxRunning);
  observe('cortex_runner_sandboxes_in_use', () => {
    const { inUse } = sources.jobs.counts;
    return SANDBOX_LEVELS.map((sandbox) => [{ sandbox }, inUse.get(sandbox) ?? 0]);
  });
  observe('cortex_runner_sandboxes_warm', () =>
    sources.sandboxes.report().levels.map(({ level, ready }) => [{ sandbox: level }, ready]),
  );
  one('cortex_runner_prewarmed', () => sources.prewarmer.held);
  one('cortex_runner_relics_running', () => sources.relics.running);
  one('cortex_runner_relic_restarts_total', () => sources.relics.restarts);
  one('cortex_runner_ledger_bytes', () => sources.ledger.sizeBytes);
  one('cortex_runner_workspace_cache_bytes', () => sources.files.sizeBytes);
  one('cortex_runner_spans_queued', () => spans().queued);
  one('cortex_runner_spans_exported_total', () => spans().exported);
  observe('cortex_runner_spans_dropped_total', () =>
    Object.entries(spans().dropped).map(([reason, count]) => [{ reason }, count]),
  );
  one('cortex_runner_draining', () => (sources.draining() ? 1 : 0));
  observe('cortex_runner_info', () => [[{ version: VERSION }, 1]]);
  const ended = new Counter(described('cortex_runner_jobs_ended_total'));
  const rejected = new Counter(described('cortex_runner_jobs_rejected_total'));
  const requests = new Counter(described('cortex_runner_requests_total'));
  const waited = histogram('cortex_runner_job_wait_seconds');
  const prepared = histogram('cortex_runner_job_prepare_seconds');
  const ran = histogram('cortex_runner_job_seconds');

  return {
    async read(format) {
      const collected = (await registry.getMetricsAsJSON()) as readonly CollectedMetric[];
      return { contentType: CONTENT_TYPE[format], text: expose(collected, format) };
    },
    jobEnded({ kind, sandbox, end, createdAt, startedAt, preparedAt, endedAt }, trace) {
      const labels = { kind, sandbox: sandbox ?? 'none' };
      ended.inc({ ...labels, end: end ?? 'lost' });
      // the time of a job that was lost ends at the next start of its runner
      if (startedAt === null || endedAt === null || end === 'lost') return;
      const exemplarLabels = trace === null ? {} : { trace_id: trace.traceId, span_id: trace.spanId };
      waited.observe({ labels: {}, value: (startedAt - createdAt) / 1_000, exemplarLabels });
      ran.observe({ labels, value: (endedAt - startedAt) / 1_000, exemplarLabels });
      if (preparedAt === null) return;
      prepared.observe({ labels, value: (preparedAt - startedAt) / 1_000, exemplarLabels });
    },
    jobRejected(code) {
      rejected.inc({ code });
    },
    requestAnswered(method, route, status) {
      requests.inc({ method, route, status });
    },
  };
}
