/**
 * The identities of the spans of one run (O1). They are hashes of what the journal names: a host that continues a run after
 * a crash, and an export that is repeated, give every span the same id.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { writeTraceparent } from '../domain/trace.ts';
import type { TraceParent } from '../domain/trace.ts';
import type { AttemptOf } from './observe.ts';

/** Which traces are exported. */
export interface Sampling {
  /** Share of the traces that begin here, 0 to 1. */
  readonly ratio: number;
  /** Whether the decision of the caller counts, if it has made one. */
  readonly followsParent: boolean;
}

const TRACE_ID_DIGITS = 32;
const SPAN_ID_DIGITS = 16;
/** Digits of a trace id that decide about sampling, and the number of their values. */
const SAMPLED_DIGITS = 14;
const SAMPLED_VALUES = 16 ** SAMPLED_DIGITS;

function digestOf(parts: readonly (string | number)[]): string {
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify(parts))));
}

/** A span as the `trace` of what it calls; empty without one. */
export function headerOf(span: TraceParent | undefined): { readonly trace?: string } {
  return span === undefined ? {} : { trace: writeTraceparent(span) };
}

/** What a run tells its models, tools, runners and children about its trace. */
export interface RunTrace {
  readonly traceId: string;
  /** The span that the run belongs to; null: its trace begins with it. */
  readonly parent: TraceParent | null;
  /** Whether its spans are exported. */
  readonly isSampled: boolean;
  /** The span of the run. */
  root(): TraceParent;
  /** The span of the model call of an iteration. */
  generation(iteration: number): TraceParent;
  /** The span of an attempt of an action. */
  attempt(of: AttemptOf): TraceParent;
  /** The span of the time in which a request waited for a person. */
  approval(approvalId: string): TraceParent;
}

/**
 * @param parent what the caller has sent; null: nothing
 * @param sampling null: nothing is exported here. The caller's span is then passed on unchanged, and without one there is no
 *   trace
 */
export function runTrace(runId: string, parent: TraceParent | null, sampling: Sampling | null): RunTrace | null {
  if (sampling === null) return parent === null ? null : passedOn(parent);
  const traceId = parent?.traceId ?? digestOf(['trace', runId]).slice(0, TRACE_ID_DIGITS);
  const isSampled = parent !== null && sampling.followsParent ? parent.isSampled : isChosen(traceId, sampling.ratio);
  const span = (...parts: readonly (string | number)[]): TraceParent => ({
    traceId,
    spanId: digestOf([runId, ...parts]).slice(0, SPAN_ID_DIGITS),
    isSampled,
  });
  return {
    traceId,
    parent,
    isSampled,
    root: () => span('run'),
    generation: (iteration) => span('generation', iteration),
    attempt: ({ iteration, actionId, attempt }) => span('attempt', iteration, actionId, attempt),
    approval: (approvalId) => span('approval', approvalId),
  };
}

function passedOn(parent: TraceParent): RunTrace {
  const same = (): TraceParent => parent;
  return {
    traceId: parent.traceId,
    parent,
    isSampled: false,
    root: same,
    generation: same,
    attempt: same,
    approval: same,
  };
}

/** The same for all spans of a trace, in whichever session they are. */
function isChosen(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-SAMPLED_DIGITS), 16) / SAMPLED_VALUES >= 1 - ratio;
}
