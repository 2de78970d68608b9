/** What a job requires of its runner, and what a runner reports (R2, R7). Pure. */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { SandboxLevel } from '../../domain/manifests/program.ts';
import type { RunnerJob } from '../../domain/ports/runner.ts';
import { RunnerError } from './error.ts';
import type { RunnerAddress } from './list.ts';

/** The requirements of a job, or of one that is expected. */
export type Needs = Pick<RunnerJob, 'session' | 'kind'> &
  Partial<Pick<RunnerJob, 'runtime' | 'image' | 'build' | 'sandbox' | 'labels' | 'workspace'>>;

export function hasLabels(address: RunnerAddress, labels: readonly string[]): boolean {
  return labels.every((label) => address.labels.includes(label));
}

/** Whether a runner reports that it can run a job; a runner without a report may be tried. */
export function canRun(address: RunnerAddress, health: JsonObject | null, needs: Needs): boolean {
  const { sandbox } = needs;
  if (sandbox !== undefined && !hasLevel(health, sandbox)) return false;
  const contained = needs.kind === 'docker' || needs.image !== undefined || needs.build !== undefined;
  return !contained || address.labels.includes('docker') || mayRun(health, 'docker');
}

/** Whether a runner reports that a sandbox level works. */
function hasLevel(health: JsonObject | null, sandbox: SandboxLevel): boolean {
  const report = health?.['sandbox'];
  const levels = isJsonObject(report) ? report['levels'] : null;
  if (!Array.isArray(levels)) return true;
  return levels.some(
    (level) => isJsonObject(level) && level['level'] === sandbox && namesOf(level['interpreters']).length > 0,
  );
}

export function mayRun(health: JsonObject | null, executor: string): boolean {
  return health === null || namesOf(health['executors']).includes(executor);
}

export function noRunnerFor({ kind, sandbox, labels = [] }: RunnerJob, known: readonly RunnerAddress[]): RunnerError {
  const level = sandbox === undefined ? '' : ` in the sandbox ${sandbox}`;
  const what = labels.length > 0 ? `has the labels ${labels.join(', ')}` : `runs ${kind}${level}`;
  const runners = known.map((address) => address.labels.join('+') || 'none').join('; ');
  return new RunnerError('runner_rejected', `No runner ${what} (labels of the runners: ${runners})`, {
    beforeDispatch: true,
  });
}

export function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name): name is string => typeof name === 'string') : [];
}
