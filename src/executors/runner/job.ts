/** Runs a job on the runner: shared by `python`, `shell`, `docker`, script and container tools (R1-R4). */
import type { ActionOutcome } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';
import type { ActionWorkspace } from '../../domain/ports/session-stores.ts';
import type { JobResult, JobWorkspace, RunnerJob } from '../../domain/ports/runner.ts';
import type { ActionCall, ActionContext } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { failureOf } from '../failure.ts';
import { RunnerError } from './error.ts';
import { reportAtExit } from './failure-report.ts';
import { parseOutput } from './job-output.ts';
import { OUTCOME_UNKNOWN } from './record.ts';

const OUTPUT_LINES = 10;
const OUTPUT_CHARS = 2_000;

/**
 * Runs one job and converts its end to an outcome: its output (parsed if it is JSON), or a failure with the code
 * `nonzero_exit`, `timeout`, `oom`, `killed`, `output_limit`, `build_failed`, `lost` (`outcome_unknown` if a second
 * execution could do harm), `runner_unavailable`, `input_too_large`, `workspace_full` or `workspace_lost`. Output is streamed as progress `{stream, text}`.
 */
export async function runJob(
  call: ActionCall,
  context: ActionContext,
  job: Omit<RunnerJob, 'id' | 'session' | 'limits' | 'movable' | 'workspace'> & {
    readonly memoryMb?: number | null;
    readonly cpus?: number | null;
  },
): Promise<ActionOutcome> {
  const { runner, session, signal, progress } = context;
  const what = nameOf(call);
  if (runner === null) {
    return failure('runner_unavailable', `${what} needs a runner, but none is configured (RUNNER_URLS)`, {
      beforeDispatch: true,
    });
  }
  const { memoryMb = null, cpus = null, ...program } = job;
  const bytes = new TextEncoder().encode(JSON.stringify(program)).byteLength;
  if (bytes > limits.jobInputBytes) {
    return failure(
      'input_too_large',
      `${what} has ${bytes} bytes of code and inputs (allowed: ${limits.jobInputBytes})`,
      {
        beforeDispatch: true,
      },
    );
  }
  const run = async (workspace?: JobWorkspace): Promise<JobResult> =>
    await runner.run(
      {
        ...program,
        id: jobIdOf(call),
        session,
        limits: { timeoutMs: call.timeoutMs, memoryMb, ...(cpus === null ? {} : { cpus }) },
        movable: isRepeatable(call),
        ...(call.trace === undefined ? {} : { trace: call.trace }),
        ...(workspace === undefined ? {} : { workspace }),
      },
      { signal, output: (stream, text) => progress({ stream, text }), waiting: waitingFor(progress) },
    );
  const workspace = workspaceOf(call, context);
  let result: JobResult;
  try {
    result = await (workspace === null ? run() : workspace.use(run));
  } catch (fault) {
    const isUnknown = fault instanceof RunnerError && fault.details['problem'] === OUTCOME_UNKNOWN;
    if (isUnknown && !signal.aborted && !isRepeatable(call)) {
      return failure('outcome_unknown', `${what} was sent to a runner once. ${fault.message}`);
    }
    return failureOf(fault, signal, 'runner_unavailable');
  }
  return await withFiles(outcomeOf(result, what, call), result, call, context);
}

/**
 * The workspace of a program (C7). The result of a `pure` tool depends on its parameters only, so it has none; a tool's
 * manifest may opt out, and an agent's for its own code.
 */
function workspaceOf({ tool }: ActionCall, { workspace }: ActionContext): ActionWorkspace | null {
  const hasNone = tool !== null && (tool.workspace === false || tool.effects === 'pure');
  return hasNone ? null : (workspace ?? null);
}

/** Commits the files that a program left. If that fails, the action fails: later actions would not find them. */
async function withFiles(
  outcome: ActionOutcome,
  { end, workspace: left }: JobResult,
  call: ActionCall,
  context: ActionContext,
): Promise<ActionOutcome> {
  const workspace = workspaceOf(call, context);
  // A program that was stopped changes nothing, whatever its runner reports.
  if (left === undefined || workspace === null || end !== 'exited') return outcome;
  const error = await workspace.commit(left);
  if (error === null) return outcome;
  if (outcome.ok) return { ok: false, error: { ...error, message: `${nameOf(call)}: ${error.message}` } };
  return { ...outcome, error: { ...outcome.error, message: `${outcome.error.message} (${error.message})` } };
}

/**
 * The outcome of an attempt's job that an earlier host submitted (J2); waits for a running one. Null if no runner knows
 * the job.
 */
export async function recoverJob(call: ActionCall, context: ActionContext): Promise<ActionOutcome | null> {
  const { runner, session, signal, progress } = context;
  if (runner === null) return null;
  const result = await runner.lookup(
    { id: jobIdOf(call), session },
    { signal, output: (stream, text) => progress({ stream, text }) },
  );
  return result === null ? null : await withFiles(outcomeOf(result, nameOf(call), call), result, call, context);
}

/** Reports in the action's progress why it waits before submission. */
export function waitingFor(progress: ActionContext['progress']): (reason: string) => void {
  return (reason) => progress({ stream: 'runner', text: `waiting for a runner: ${reason}\n` });
}

/** The same id runs only once; the attempt makes the ids of retries different. */
function jobIdOf({ runtimeKey, attempt }: ActionCall): string {
  return `${runtimeKey}/${attempt}`;
}

function nameOf({ tool, action }: ActionCall): string {
  return tool === null ? action.type : `The tool "${tool.name}"`;
}

function outcomeOf(result: JobResult, what: string, call: ActionCall): ActionOutcome {
  // Failures for external reasons may succeed elsewhere; the scheduler still does not retry unsafe actions.
  switch (result.end) {
    case 'timeout':
      return failure('timeout', withStderr(`${what} ran longer than ${call.timeoutMs / 1_000} s`, result), {
        retryable: true,
      });
    case 'oom':
      return failure('oom', withStderr(`${what} used more memory than allowed`, result));
    case 'killed':
      return failure('killed', withStderr(`${what} was killed`, result), { retryable: true });
    case 'output_limit':
      return failure('output_limit', `${what} printed more than ${limits.jobOutputBytes} bytes`);
    case 'lost':
      return isRepeatable(call)
        ? failure('lost', `${what} was lost: its runner became unavailable while it was running`, { retryable: true })
        : failure(
            'outcome_unknown',
            `${what} was lost: its runner became unavailable while it was running, and it is unknown whether it finished`,
          );
    case 'build_failed':
      return failure('build_failed', withStderr(`The image of ${what} could not be built`, result));
    case 'exited':
      break;
  }
  if (result.exitCode !== 0) return exitFailure(result, what, call);
  return { ok: true, output: parseOutput(result.stdout) };
}

/** A non-zero exit code, with the reason that the program gave: in its own report (R3), else the end of its output. */
function exitFailure(result: JobResult, what: string, { tool }: ActionCall): ActionOutcome {
  const ended = `${what} ended with exit code ${result.exitCode ?? 'unknown'}`;
  const report = reportAtExit(result.stdout);
  const message =
    report?.reason == null ? withEndOf(ended, result.stderr, result.stdout) : `${ended}: ${report.reason}`;
  return failure('nonzero_exit', message, { retryable: report?.retryable ?? tool?.effects === 'idempotent' });
}

/** Whether a second execution is harmless (S7); code without a manifest may do anything. */
function isRepeatable({ tool }: ActionCall): boolean {
  return tool !== null && tool.effects !== 'unsafe';
}

/** The message with the last lines of the process's stderr. */
function withStderr(message: string, { stderr }: JobResult): string {
  return withEndOf(message, stderr);
}

/** The message with the last lines of the first of these texts that is not blank. */
function withEndOf(message: string, ...texts: readonly string[]): string {
  const ends = texts.map((text) => text.trimEnd().split('\n').slice(-OUTPUT_LINES).join('\n'));
  const last = ends.map((end) => end.slice(-OUTPUT_CHARS).trim()).find((end) => end !== '');
  return last === undefined ? message : `${message}: ${last}`;
}
