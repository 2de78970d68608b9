/** The few figures of the runner in Prometheus' text format. */
import type { JobCounts } from './jobs.ts';

export function metricsOf(counts: JobCounts): string {
  const lines = [
    '# HELP cortex_runner_jobs_running Jobs that run now.',
    '# TYPE cortex_runner_jobs_running gauge',
    `cortex_runner_jobs_running ${counts.running}`,
    '# HELP cortex_runner_jobs_queued Accepted jobs that wait for a place.',
    '# TYPE cortex_runner_jobs_queued gauge',
    `cortex_runner_jobs_queued ${counts.queued}`,
    '# HELP cortex_runner_jobs_ended_total Jobs that ended since the start, by how.',
    '# TYPE cortex_runner_jobs_ended_total counter',
    ...Object.entries(counts.ended).map(([end, count]) => `cortex_runner_jobs_ended_total{end="${end}"} ${count}`),
  ];
  return `${lines.join('\n')}\n`;
}
