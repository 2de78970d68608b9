/**
 * What happened in a run, as its journal tells: model calls, attempts, actions, approvals, the run itself (O1, O2). Spans and
 * metrics are made of these.
 *
 * Owns the fold over the events of one run. Does not own the reading of the journal, or the form in which anything is
 * exported.
 *
 * Invariants:
 *  1. The result depends on the events alone: the same events give the same observations, in every host.
 *  2. What begins is observed once, with the event that ends it. What never ends in the events is not observed.
 *  3. No text of the model, of people or of tools is part of an observation: names, codes and numbers only.
 */
import type { ActionType } from '../domain/action-types.ts';
import type { EventOf, EventType, SessionEvent } from '../domain/event.ts';
import { isWorkflowHelper } from '../domain/workflow-actions.ts';

/** A period. Times are those of the events, epoch milliseconds. */
interface Observed {
  readonly startMs: number;
  readonly endMs: number;
  /** The event that ended it. */
  readonly seq: number;
}

/** Tokens and cost of model calls. */
export interface ObservedUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** US dollars; null if no price is known. */
  readonly cost: number | null;
  readonly model: string | null;
  readonly isEstimated: boolean;
}

export interface ObservedGeneration extends Observed {
  readonly kind: 'generation';
  readonly iteration: number;
  /** When the first block or action of its text was read; null: it had none. */
  readonly firstMs: number | null;
  /** Null if it was interrupted. */
  readonly usage: ObservedUsage | null;
  /** A code; null: it ended by itself. */
  readonly error: string | null;
}

/** An action, as events name it. */
export interface ObservedAction {
  readonly id: string;
  readonly name: string;
  readonly type: ActionType;
}

/** An action and the attempt that gave its outcome. */
export interface DependencyAttempt {
  readonly actionId: string;
  readonly attempt: number;
}

export interface ObservedAttempt extends Observed {
  readonly kind: 'attempt';
  readonly action: ObservedAction;
  readonly iteration: number;
  /** 1-based; 0 for a reused outcome. */
  readonly attempt: number;
  /** A code; null: it has succeeded. */
  readonly error: string | null;
  readonly willRetry: boolean;
  readonly dependsOn: readonly DependencyAttempt[];
  /** Of the first attempt: milliseconds since nothing but a free slot was missing; null for other attempts. */
  readonly queuedMs: number | null;
  /** Of the model calls of an action of type `llm`; null: it made none. */
  readonly usage: ObservedUsage | null;
}

/** An action at its end. */
export interface ObservedEnd extends Observed {
  readonly kind: 'action';
  readonly action: ObservedAction;
  readonly status: 'completed' | 'failed' | 'skipped' | 'cancelled' | 'rejected';
  readonly error: string | null;
  /** The outcome of an earlier action was reused. */
  readonly isReused: boolean;
  /** Whether an attempt began. */
  readonly hasStarted: boolean;
}

export interface ObservedApproval extends Observed {
  readonly kind: 'approval';
  readonly approvalId: string;
  readonly action: ObservedAction;
  readonly decision: 'approved' | 'denied' | 'closed';
  readonly isQuestion: boolean;
}

/** A model call of an action; it is a part of the action's attempt. */
export interface ObservedCall extends Observed {
  readonly kind: 'call';
  readonly usage: ObservedUsage;
}

export interface ObservedRun extends Observed {
  readonly kind: 'run';
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly error: string | null;
  readonly iterations: number;
  readonly version: string | null;
  readonly usage: ObservedUsage | null;
}

export type Observation =
  | ObservedGeneration
  | ObservedAttempt
  | ObservedEnd
  | ObservedApproval
  | ObservedCall
  | ObservedRun;

/** The events that are read. */
export const OBSERVED_EVENTS = [
  'agent_started',
  'iteration_started',
  'thought_started',
  'text_started',
  'response_started',
  'usage',
  'action_queued',
  'action_rejected',
  'action_started',
  'client_tool_called',
  'action_retrying',
  'action_completed',
  'action_failed',
  'action_skipped',
  'action_cancelled',
  'approval_requested',
  'approval_resolved',
  'agent_completed',
  'agent_failed',
  'agent_cancelled',
] as const satisfies readonly EventType[];

/** `error` of a model call that a crash or a cancel interrupted. */
const INTERRUPTED = 'interrupted';

interface OpenAction {
  readonly action: ObservedAction;
  readonly iteration: number;
  readonly dependsOn: readonly string[];
  /** When nothing but its dependencies and a slot was missing. */
  readyMs: number;
  attempt: { readonly number: number; readonly startMs: number } | null;
  /** Of the latest attempt; 0: none has begun. */
  last: number;
  usage: ObservedUsage | null;
}

interface Ended {
  readonly attempt: number;
  readonly endMs: number;
}

export class RunObserver {
  readonly #actions = new Map<string, OpenAction>();
  readonly #ended = new Map<string, Ended>();
  readonly #approvals = new Map<
    string,
    { readonly event: EventOf<'approval_requested'>; readonly action: ObservedAction }
  >();
  #startMs: number | null = null;
  #version: string | null = null;
  #hasModel = false;
  #generation: { readonly iteration: number; readonly startMs: number; firstMs: number | null } | null = null;
  #iterations = 0;
  #usage: ObservedUsage | null = null;

  /** @returns what ended with this event, in order */
  take(event: SessionEvent): readonly Observation[] {
    switch (event.type) {
      case 'agent_started':
        this.#startMs = event.timestamp;
        this.#version = event.data.version;
        this.#hasModel = event.data.source === 'model';
        return [];
      case 'iteration_started':
        return this.#begin(event);
      case 'thought_started':
      case 'text_started':
      case 'response_started':
        this.#first(event);
        return [];
      case 'usage':
        return this.#used(event);
      case 'action_queued':
        this.#queued(event);
        return [];
      case 'action_rejected':
        return this.#rejected(event);
      case 'action_started':
        this.#started(event.action_id, event.data.attempt, event.timestamp);
        return [];
      case 'client_tool_called':
        this.#started(event.action_id, Math.max(1, this.#actions.get(event.action_id)?.last ?? 1), event.timestamp);
        return [];
      case 'action_retrying':
        return this.#attempted(event, event.data.error.code, true);
      case 'action_completed':
      case 'action_failed':
      case 'action_skipped':
      case 'action_cancelled':
        return this.#settled(event);
      case 'approval_requested':
        return this.#asked(event);
      case 'approval_resolved':
        return this.#resolved(event);
      case 'agent_completed':
      case 'agent_failed':
      case 'agent_cancelled':
        return this.#finished(event);
      default:
        return [];
    }
  }

  #begin({ iteration, timestamp, seq }: EventOf<'iteration_started'>): readonly Observation[] {
    const interrupted = this.#closeGeneration(timestamp, seq, null, INTERRUPTED);
    this.#iterations = Math.max(this.#iterations, iteration);
    if (this.#hasModel) this.#generation = { iteration, startMs: timestamp, firstMs: null };
    return interrupted;
  }

  #first({ timestamp }: Pick<SessionEvent, 'timestamp'>): void {
    if (this.#generation !== null) this.#generation.firstMs ??= timestamp;
  }

  #used({ action_id: id, data, timestamp, seq }: EventOf<'usage'>): readonly Observation[] {
    const usage: ObservedUsage = {
      inputTokens: data.prompt_tokens,
      outputTokens: data.completion_tokens,
      cachedTokens: data.cached_tokens,
      cost: data.cost ?? null,
      model: data.model ?? null,
      isEstimated: data.estimated === true,
    };
    this.#usage = addUsage(this.#usage, usage);
    if (id === undefined) return this.#closeGeneration(timestamp, seq, usage, null);
    const open = this.#actions.get(id);
    if (open !== undefined) open.usage = addUsage(open.usage, usage);
    return [{ kind: 'call', startMs: open?.attempt?.startMs ?? timestamp, endMs: timestamp, seq, usage }];
  }

  #closeGeneration(
    endMs: number,
    seq: number,
    usage: ObservedUsage | null,
    error: string | null,
  ): readonly ObservedGeneration[] {
    const open = this.#generation;
    if (open === null) return [];
    this.#generation = null;
    const { iteration, startMs, firstMs } = open;
    return [{ kind: 'generation', iteration, startMs, firstMs, endMs, seq, usage, error }];
  }

  #queued(event: EventOf<'action_queued'>): void {
    const { action_id: id, iteration, timestamp, data } = event;
    this.#first(event);
    // Added by the runtime for the groups and outputs of a workflow: not a step of its author.
    if (isWorkflowHelper(event.action_name ?? null)) return;
    this.#actions.set(id, {
      action: this.#actionOf(event, data.type),
      iteration,
      dependsOn: data.depends_on,
      readyMs: timestamp,
      attempt: null,
      last: 0,
      usage: null,
    });
  }

  #rejected(event: EventOf<'action_rejected'>): readonly Observation[] {
    const { timestamp, seq, data } = event;
    this.#first(event);
    const at = { startMs: timestamp, endMs: timestamp, seq };
    const action = this.#actionOf(event, data.type ?? 'tool');
    return [
      { kind: 'action', ...at, action, status: 'rejected', error: data.code, isReused: false, hasStarted: false },
    ];
  }

  #started(id: string, attempt: number, at: number): void {
    const open = this.#actions.get(id);
    // An attempt that a crash interrupted begins again as the same one.
    if (open === undefined || open.attempt?.number === attempt) return;
    open.attempt = { number: attempt, startMs: at };
    open.last = attempt;
  }

  #attempted(
    { action_id: id, timestamp: endMs, seq }: EventOf<EventType> & { readonly action_id: string },
    error: string | null,
    willRetry: boolean,
  ): readonly ObservedAttempt[] {
    const open = this.#actions.get(id);
    if (open?.attempt == null || seq === null) return [];
    const { action, iteration, usage, attempt } = open;
    const { number, startMs } = attempt;
    open.attempt = null;
    open.usage = null;
    const dependsOn = open.dependsOn.flatMap((on) => {
      const ended = this.#ended.get(on);
      return ended === undefined ? [] : [{ actionId: on, attempt: ended.attempt }];
    });
    const queuedMs = number === 1 ? Math.max(0, startMs - this.#readyMs(open)) : null;
    const what = { action, iteration, attempt: number, error, willRetry, dependsOn, queuedMs, usage };
    return [{ kind: 'attempt', startMs, endMs, seq, ...what }];
  }

  /** When its dependencies had ended, and a person had approved it. */
  #readyMs({ dependsOn, readyMs }: OpenAction): number {
    return Math.max(readyMs, ...dependsOn.map((id) => this.#ended.get(id)?.endMs ?? 0));
  }

  #settled(
    event: EventOf<'action_completed' | 'action_failed' | 'action_skipped' | 'action_cancelled'>,
  ): readonly Observation[] {
    const { action_id: id, timestamp: endMs, seq } = event;
    const open = this.#actions.get(id);
    if (open === undefined) return [];
    const status = STATUS_OF[event.type];
    const error =
      event.type === 'action_failed' ? event.data.error.code : event.type === 'action_cancelled' ? 'cancelled' : null;
    const hasStarted = open.last > 0;
    // Nothing was executed: the outcome of an earlier action is the result.
    const isReused = status === 'completed' && !hasStarted;
    const readyMs = this.#readyMs(open);
    if (isReused) open.attempt = { number: 0, startMs: endMs };
    const attempts = this.#attempted(event, error, false);
    const closed = [...this.#approvals].flatMap(([approvalId, { event: asked, action }]) =>
      action.id === id ? [this.#closeApproval(approvalId, asked, action, 'closed', endMs, seq)] : [],
    );
    this.#ended.set(id, { attempt: open.last, endMs });
    this.#actions.delete(id);
    const { action } = open;
    const startMs = Math.min(readyMs, endMs);
    return [
      ...closed,
      ...attempts,
      { kind: 'action', startMs, endMs, seq, action, status, error, isReused, hasStarted },
    ];
  }

  /** An attempt that asks a question ends with it: after the answer, another one begins. */
  #asked(event: EventOf<'approval_requested'>): readonly Observation[] {
    const attempts = event.data.question === undefined ? [] : this.#attempted(event, null, false);
    this.#approvals.set(event.data.approval_id, { event, action: this.#actionOf(event, event.data.type) });
    return attempts;
  }

  #resolved({ data, timestamp, seq }: EventOf<'approval_resolved'>): readonly Observation[] {
    const asked = this.#approvals.get(data.approval_id);
    if (asked === undefined) return [];
    const open = this.#actions.get(asked.action.id);
    if (open !== undefined) open.readyMs = timestamp;
    const decision = data.approved ? 'approved' : 'denied';
    return [this.#closeApproval(data.approval_id, asked.event, asked.action, decision, timestamp, seq)];
  }

  #closeApproval(
    approvalId: string,
    { timestamp: startMs, data }: EventOf<'approval_requested'>,
    action: ObservedAction,
    decision: ObservedApproval['decision'],
    endMs: number,
    seq: number,
  ): ObservedApproval {
    this.#approvals.delete(approvalId);
    const isQuestion = data.question !== undefined;
    return { kind: 'approval', startMs, endMs, seq, approvalId, action, decision, isQuestion };
  }

  #finished(event: EventOf<'agent_completed' | 'agent_failed' | 'agent_cancelled'>): readonly Observation[] {
    const { timestamp: endMs, seq } = event;
    const status = END_OF[event.type];
    const error = event.type === 'agent_failed' ? event.data.error.code : null;
    const cut = this.#closeGeneration(endMs, seq, null, error ?? INTERRUPTED);
    const startMs = this.#startMs ?? endMs;
    const iterations = event.data.iterations ?? this.#iterations;
    const run = { status, error, iterations, version: this.#version, usage: this.#usage };
    return [...cut, { kind: 'run', startMs, endMs, seq, ...run }];
  }

  #actionOf(
    { action_id: id, action_name: name }: Pick<SessionEvent, 'action_name'> & { readonly action_id: string },
    type: ActionType,
  ): ObservedAction {
    return this.#actions.get(id)?.action ?? { id, name: name ?? type, type };
  }
}

const STATUS_OF = {
  action_completed: 'completed',
  action_failed: 'failed',
  action_skipped: 'skipped',
  action_cancelled: 'cancelled',
} as const;

const END_OF = { agent_completed: 'completed', agent_failed: 'failed', agent_cancelled: 'cancelled' } as const;

function addUsage(sum: ObservedUsage | null, more: ObservedUsage): ObservedUsage {
  if (sum === null) return more;
  return {
    inputTokens: sum.inputTokens + more.inputTokens,
    outputTokens: sum.outputTokens + more.outputTokens,
    cachedTokens: sum.cachedTokens + more.cachedTokens,
    cost: sum.cost === null && more.cost === null ? null : (sum.cost ?? 0) + (more.cost ?? 0),
    model: more.model ?? sum.model,
    isEstimated: sum.isEstimated || more.isEstimated,
  };
}
