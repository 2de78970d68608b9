/** Every metric of the runner except those of its process (O2). The table in docs/runner.md has the same rows. */

export interface MetricInfo {
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
}

export const METRICS = {
  cortex_runner_jobs_running: { type: 'gauge', help: 'Running jobs.', labels: [] },
  cortex_runner_jobs_queued: { type: 'gauge', help: 'Queued jobs.', labels: [] },
  cortex_runner_jobs_max_running: { type: 'gauge', help: 'Maximum number of running jobs.', labels: [] },
  cortex_runner_jobs_ended_total: {
    type: 'counter',
    help: 'Ended jobs since the start of the runner.',
    labels: ['kind', 'sandbox', 'end'],
  },
  cortex_runner_jobs_rejected_total: {
    type: 'counter',
    help: 'Signed requests for jobs that were rejected, by error code.',
    labels: ['code'],
  },
  cortex_runner_job_wait_seconds: {
    type: 'histogram',
    help: 'Time from the request to the start of a job.',
    labels: [],
  },
  cortex_runner_job_prepare_seconds: {
    type: 'histogram',
    help: 'Time from the start of a job to the start of its program.',
    labels: ['kind', 'sandbox'],
  },
  cortex_runner_job_seconds: {
    type: 'histogram',
    help: 'Time from the start to the end of a job.',
    labels: ['kind', 'sandbox'],
  },
  cortex_runner_sandboxes_in_use: { type: 'gauge', help: 'Sandboxes that run a job.', labels: ['sandbox'] },
  cortex_runner_sandboxes_warm: { type: 'gauge', help: 'Loaded sandboxes that wait for a job.', labels: ['sandbox'] },
  cortex_runner_prewarmed: { type: 'gauge', help: 'Sandboxes that are reserved for a session.', labels: [] },
  cortex_runner_relics_running: { type: 'gauge', help: 'Running and starting relics.', labels: [] },
  cortex_runner_relic_restarts_total: {
    type: 'counter',
    help: 'Restarts of relics since the start of the runner.',
    labels: [],
  },
  cortex_runner_ledger_bytes: { type: 'gauge', help: 'Size of the job ledger.', labels: [] },
  cortex_runner_workspace_cache_bytes: {
    type: 'gauge',
    help: 'Size of the cached files of workspaces.',
    labels: [],
  },
  cortex_runner_spans_queued: { type: 'gauge', help: 'Spans that wait or are being exported.', labels: [] },
  cortex_runner_spans_exported_total: { type: 'counter', help: 'Exported spans.', labels: [] },
  cortex_runner_spans_dropped_total: {
    type: 'counter',
    help: 'Spans that were not exported, by reason.',
    labels: ['reason'],
  },
  cortex_runner_requests_total: {
    type: 'counter',
    help: 'Requests by route and status.',
    labels: ['method', 'route', 'status'],
  },
  cortex_runner_draining: {
    type: 'gauge',
    help: '1 while the runner is stopping and accepts no new jobs.',
    labels: [],
  },
  cortex_runner_info: { type: 'gauge', help: 'Version of the runner.', labels: ['version'] },
} as const satisfies Readonly<Record<string, MetricInfo>>;

export type MetricName = keyof typeof METRICS;
