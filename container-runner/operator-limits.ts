/** Maximum resources of a job or a relic, and concurrency; the operator can set them within bounds. */
import { z } from 'zod';

import { limits } from './limits.ts';
import { RunnerError } from './problem.ts';

export interface OperatorLimits {
  /** Running jobs, and queued ones. */
  readonly running: number;
  readonly queued: number;
  readonly relics: number;
  readonly timeoutMs: number;
  readonly memoryMb: number;
  readonly cpus: number;
  readonly processes: number;
  readonly diskMb: number;
}

export const DEFAULT_OPERATOR_LIMITS: OperatorLimits = {
  running: limits.jobsRunning,
  queued: limits.jobsQueued,
  relics: limits.relicsRunning,
  timeoutMs: limits.maxTimeoutMs,
  memoryMb: limits.maxMemoryMb,
  cpus: limits.maxCpus,
  processes: limits.maxProcesses,
  diskMb: limits.maxDiskMb,
};

const whole = (least: number, most: number): z.ZodOptional<z.ZodCoercedNumber> =>
  z.coerce.number().int().min(least).max(most).optional();

/** Lower bounds are the default resources, so that a job without limits runs on every runner. */
export const operatorLimitVariables = {
  RUNNER_MAX_JOBS: whole(1, limits.mostJobsRunning),
  RUNNER_MAX_QUEUED: whole(0, limits.mostJobsQueued),
  RUNNER_MAX_RELICS: whole(0, limits.mostRelics),
  RUNNER_MAX_SECONDS: whole(limits.timeoutMs / 1_000, limits.maxTimeoutMs / 1_000),
  RUNNER_MAX_MEMORY_MB: whole(limits.memoryMb, limits.mostMebibytes),
  RUNNER_MAX_CPUS: z.coerce.number().min(limits.cpus).max(limits.mostCpus).optional(),
  RUNNER_MAX_PROCESSES: whole(limits.processes, limits.mostProcesses),
  RUNNER_MAX_DISK_MB: whole(limits.diskMb, limits.mostMebibytes),
};

export function operatorLimitsOf(given: {
  readonly [Name in keyof typeof operatorLimitVariables]?: number | undefined;
}): OperatorLimits {
  const seconds = given.RUNNER_MAX_SECONDS;
  return {
    running: given.RUNNER_MAX_JOBS ?? DEFAULT_OPERATOR_LIMITS.running,
    queued: given.RUNNER_MAX_QUEUED ?? DEFAULT_OPERATOR_LIMITS.queued,
    relics: given.RUNNER_MAX_RELICS ?? DEFAULT_OPERATOR_LIMITS.relics,
    timeoutMs: seconds === undefined ? DEFAULT_OPERATOR_LIMITS.timeoutMs : seconds * 1_000,
    memoryMb: given.RUNNER_MAX_MEMORY_MB ?? DEFAULT_OPERATOR_LIMITS.memoryMb,
    cpus: given.RUNNER_MAX_CPUS ?? DEFAULT_OPERATOR_LIMITS.cpus,
    processes: given.RUNNER_MAX_PROCESSES ?? DEFAULT_OPERATOR_LIMITS.processes,
    diskMb: given.RUNNER_MAX_DISK_MB ?? DEFAULT_OPERATOR_LIMITS.diskMb,
  };
}

/** Requested resources, with the names of the API. */
interface Asked {
  readonly timeout_ms?: number;
  readonly memory_mb?: number;
  readonly cpus?: number;
  readonly processes?: number;
  readonly disk_mb?: number;
}

/** @throws RunnerError `invalid_request` that names the exceeded limit */
export function requireWithinLimits(asked: Asked, operatorLimits: OperatorLimits): void {
  const pairs = [
    ['timeout_ms', asked.timeout_ms, operatorLimits.timeoutMs],
    ['memory_mb', asked.memory_mb, operatorLimits.memoryMb],
    ['cpus', asked.cpus, operatorLimits.cpus],
    ['processes', asked.processes, operatorLimits.processes],
    ['disk_mb', asked.disk_mb, operatorLimits.diskMb],
  ] as const;
  for (const [name, wanted = 0, most] of pairs) {
    if (wanted > most) throw new RunnerError('invalid_request', `${name}: ${wanted} (maximum of this runner: ${most})`);
  }
}
