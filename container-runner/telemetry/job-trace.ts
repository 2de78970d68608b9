/**
 * The trace of a job (O1): a projection of its record in the ledger. All ids are hashes of the record, so the spans of a
 * record are the same whenever and however often they are made.
 */
import { createHash } from 'node:crypto';

import type { JobRecord } from '../ledger/ledger.ts';
import { formatTraceparent, isSampled, parseTraceparent, SAMPLED, type SpanContext } from './trace-context.ts';

/** At most. */
export const SPANS_OF_JOB = 4;
/** The attribute that names the job; only the span of the job has it. */
export const JOB_ID = 'cortex.job.id';

/** What identifies a job and its trace. */
export type TracedJob = Pick<JobRecord, 'id' | 'createdAt' | 'traceparent'>;

export interface JobSpan {
  readonly name: string;
  readonly kind: 'server' | 'internal';
  readonly context: SpanContext;
  /** Null: the span is the root of its trace. */
  readonly parent: { readonly spanId: string; readonly isRemote: boolean } | null;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly isError: boolean;
}

/** The span that sent the job; null: none, or not valid. */
function parentOf({ traceparent }: TracedJob): SpanContext | null {
  return parseTraceparent(traceparent);
}

/** Context of one of the job's spans. A job that was sent without a trace has a trace of its own, which is sampled. */
function contextOf(job: TracedJob, span: 'job' | 'queued' | 'prepare' | 'run'): SpanContext {
  const parent = parentOf(job);
  return {
    traceId: parent?.traceId ?? hashOf(job, 'trace').slice(0, 32),
    spanId: hashOf(job, span).slice(0, 16),
    flags: parent?.flags ?? SAMPLED,
  };
}

/** Runners that run the same job after each other have different times, and therefore different spans. */
/** The session's id without its incarnation, as the spans of the Worker have it. */
function conversationOf(session: string): string {
  return /^ses_[0-9a-f]{32}(?=_)/.exec(session)?.[0] ?? session;
}

function hashOf({ id, createdAt }: TracedJob, what: string): string {
  return createHash('sha256')
    .update(JSON.stringify([what, id, createdAt]))
    .digest('hex');
}

/** Whether the job has spans, if the runner exports any. */
function isRecorded(job: TracedJob): boolean {
  const parent = parentOf(job);
  return parent === null || isSampled(parent);
}

/**
 * The variable `TRACEPARENT` of the job's program.
 *
 * @param exportsSpans the runner exports spans: then the program's parent is the span `run` of the job. Otherwise, and if
 *   the trace is not sampled, the program gets the context that the runner was given
 * @returns null if the program has no trace
 */
export function traceparentOfProgram(job: TracedJob, exportsSpans: boolean): string | null {
  if (exportsSpans && isRecorded(job)) return formatTraceparent(contextOf(job, 'run'));
  const parent = parentOf(job);
  return parent === null ? null : formatTraceparent(parent);
}

/** The trace id of a job whose spans are exported; null otherwise. */
export function recordedTrace(job: TracedJob): SpanContext | null {
  return isRecorded(job) ? contextOf(job, 'job') : null;
}

/**
 * The spans of an ended job: `job KIND`, and its phases `queued`, `prepare` (of the sandbox) and `run`. They hold ids,
 * times and codes, and never code, arguments, output, environment and error messages. For a job that was lost with its
 * runner, the time between `prepare` and `run` is unknown, and both are missing.
 *
 * @returns none if the sender's trace is not sampled, or if the job has not ended
 */
export function spansOf(job: JobRecord): JobSpan[] {
  const { createdAt, startedAt, preparedAt, endedAt, end } = job;
  if (endedAt === null || end === null || !isRecorded(job)) return [];
  const parent = parentOf(job);
  const whole = contextOf(job, 'job');
  const isError = end !== 'exited' || job.exitCode !== 0;
  const span: JobSpan = {
    name: `job ${job.kind}`,
    kind: 'server',
    context: whole,
    parent: parent === null ? null : { spanId: parent.spanId, isRemote: true },
    startedAt: createdAt,
    endedAt,
    attributes: {
      [JOB_ID]: job.id,
      'cortex.job.kind': job.kind,
      'cortex.job.end': end,
      'cortex.job.truncated': job.truncated,
      'gen_ai.conversation.id': conversationOf(job.session),
      ...(job.sandbox === null ? {} : { 'cortex.sandbox.level': job.sandbox }),
      ...(job.exitCode === null ? {} : { 'process.exit.code': job.exitCode }),
      ...(isError ? { 'error.type': end === 'exited' ? 'nonzero_exit' : end } : {}),
    },
    isError,
  };
  const phase = (name: 'queued' | 'prepare' | 'run', from: number, to: number): JobSpan => ({
    name,
    kind: 'internal',
    context: contextOf(job, name),
    parent: { spanId: whole.spanId, isRemote: false },
    startedAt: from,
    endedAt: to,
    attributes: {},
    isError: false,
  });
  return [
    span,
    phase('queued', createdAt, startedAt ?? endedAt),
    ...(startedAt === null || (preparedAt === null && end === 'lost')
      ? []
      : [phase('prepare', startedAt, preparedAt ?? endedAt)]),
    ...(preparedAt === null ? [] : [phase('run', preparedAt, endedAt)]),
  ];
}
