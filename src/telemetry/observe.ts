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
  /** Null if it is unknown. */
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

/** An attempt of an action, by what identifies it: an id may be used again in a later iteration. */
export interface AttemptOf {
  readonly iteration: number;
  readonly actionId: string;
  /** 1-based; 0 for a reused outcome. */
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
  readonly dependsOn: readonly AttemptOf[];
  /** The failed attempt before it; null: there is none. */
  readonly retryOf: AttemptOf | null;
  /** Whether it began without waiting for other actions. */
  readonly isIndependent: boolean;
  /** Of the first attempt: milliseconds since nothing but a free slot was missing; null for other attempts. */
  readonly queuedMs: number | null;
  /** Of the model calls of an action of type `llm`; null: it made none. */
  readonly usage: ObservedUsage | null;
}

/** An action at its end. */
export interface ObservedEnd extends Observed {
  readonly kind: 'action';
  readonly iteration: number;
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

/** A model call of an action, of a feed or for a summary. That of an action is a part of its attempt. */
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
  'iteration_completed',
  'agent_waiting',
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
  'memory_changed',
] as const satisfies readonly EventType[];

/** `error` of a generation that a crash or a cancel interrupted. */
const INTERRUPTED = 'interrupted';

interface OpenAction {
  readonly key: string;
  readonly action: ObservedAction;
  readonly iteration: number;
  /** Added by the runtime for the groups and outputs of a workflow: not a step of its author, and not observed. */
  readonly isHelper: boolean;
  /** Keys of the actions that it waits for. */
  readonly dependsOn: readonly string[];
  /** When nothing but its dependencies and a slot was missing. */
  readyMs: number;
  attempt: { readonly number: number; readonly startMs: number } | null;
  /** Of the latest attempt; 0: none has begun. */
  last: number;
  failed: AttemptOf | null;
  usage: ObservedUsage | null;
}

interface Ended {
  readonly endMs: number;
  /** Its last attempt; of a helper, those of the actions that it waited for. */
  readonly attempts: readonly AttemptOf[];
}

interface Generation {
  readonly iteration: number;
  readonly startMs: number;
  firstMs: number | null;
  /** When the endpoint reported the usage, which is at the end of its answer. */
  endMs: number | null;
  usage: ObservedUsage | null;
}

type ActionEvent = SessionEvent & { readonly action_id: string };

export class RunObserver {
  readonly #actions = new Map<string, OpenAction>();
  readonly #ended = new Map<string, Ended>();
  /** The latest action with an id: references and dependencies mean this one. */
  readonly #latest = new Map<string, string>();
  readonly #approvals = new Map<string, { readonly event: EventOf<'approval_requested'>; readonly key: string }>();
  #startMs: number | null = null;
  #version: string | null = null;
  #hasModel = false;
  #generation: Generation | null = null;
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
      case 'iteration_completed':
        return this.#completed(event);
      case 'agent_waiting':
        return this.#generation?.endMs == null ? [] : this.#closeGeneration(event, null);
      case 'thought_started':
      case 'text_started':
      case 'response_started':
        this.#first(event);
        return [];
      case 'usage':
        return this.#used(event);
      case 'memory_changed':
        return this.#summarised(event);
      case 'action_queued':
        this.#queued(event);
        return [];
      case 'action_rejected':
        return this.#rejected(event);
      case 'action_started':
        this.#started(event, event.data.attempt);
        return [];
      case 'client_tool_called':
        this.#started(event, Math.max(1, this.#actions.get(keyOf(event))?.last ?? 1));
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

  #begin(event: EventOf<'iteration_started'>): readonly Observation[] {
    const { iteration, timestamp: startMs } = event;
    const interrupted = this.#closeGeneration(event, INTERRUPTED);
    this.#iterations = Math.max(this.#iterations, iteration);
    if (this.#hasModel) this.#generation = { iteration, startMs, firstMs: null, endMs: null, usage: null };
    return interrupted;
  }

  #first({ timestamp }: Pick<SessionEvent, 'timestamp'>): void {
    if (this.#generation !== null) this.#generation.firstMs ??= timestamp;
  }

  #used(event: EventOf<'usage'>): readonly Observation[] {
    const { action_id: id, data, timestamp: endMs, seq } = event;
    const usage: ObservedUsage = {
      inputTokens: data.prompt_tokens,
      outputTokens: data.completion_tokens,
      cachedTokens: data.cached_tokens,
      cost: data.cost ?? null,
      model: data.model ?? null,
      isEstimated: data.estimated === true,
    };
    this.#usage = addUsage(this.#usage, usage);
    const generation = id === undefined && data.feed !== true ? this.#generation : null;
    if (generation !== null) {
      generation.endMs = endMs;
      generation.usage = addUsage(generation.usage, usage);
      return [];
    }
    const open = id === undefined ? undefined : this.#actions.get(keyOf({ ...event, action_id: id }));
    if (open !== undefined) open.usage = addUsage(open.usage, usage);
    return [{ kind: 'call', startMs: open?.attempt?.startMs ?? endMs, endMs, seq, usage }];
  }

  #summarised({ data: { usage }, timestamp: at, seq }: EventOf<'memory_changed'>): readonly Observation[] {
    if (usage === undefined) return [];
    const spent: ObservedUsage = {
      inputTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
      cachedTokens: usage.cached_tokens,
      cost: usage.cost ?? null,
      model: null,
      isEstimated: usage.estimated,
    };
    return [{ kind: 'call', startMs: at, endMs: at, seq, usage: spent }];
  }

  /** The text of a generation ends before its actions: why it ended early is known when they have ended. */
  #completed(event: EventOf<'iteration_completed'>): readonly Observation[] {
    const { failure } = event.data;
    const generation = this.#generation;
    if (generation !== null && failure !== undefined) generation.endMs = generation.startMs + failure.ms;
    return this.#closeGeneration(event, failure?.code ?? null);
  }

  #closeGeneration(
    { timestamp, seq }: { readonly timestamp: number; readonly seq: number },
    error: string | null,
  ): readonly ObservedGeneration[] {
    const open = this.#generation;
    if (open === null) return [];
    this.#generation = null;
    const { iteration, startMs, firstMs, endMs, usage } = open;
    return [{ kind: 'generation', iteration, startMs, firstMs, endMs: endMs ?? timestamp, seq, usage, error }];
  }

  #queued(event: EventOf<'action_queued'>): void {
    const { action_id: id, iteration, timestamp: readyMs, data } = event;
    this.#first(event);
    const key = keyOf(event);
    this.#actions.set(key, {
      key,
      action: { id, name: event.action_name ?? data.type, type: data.type },
      iteration,
      isHelper: event.action_name === undefined,
      dependsOn: data.depends_on.flatMap((on) => this.#latest.get(on) ?? []),
      readyMs,
      attempt: null,
      last: 0,
      failed: null,
      usage: null,
    });
    this.#latest.set(id, key);
  }

  #rejected(event: EventOf<'action_rejected'>): readonly Observation[] {
    const { action_id: id, action_name: name, iteration, timestamp, seq, data } = event;
    this.#first(event);
    const type = data.type ?? 'tool';
    const action = { id, name: name ?? type, type };
    const end = { iteration, action, error: data.code, isReused: false, hasStarted: false };
    return [{ kind: 'action', status: 'rejected', startMs: timestamp, endMs: timestamp, seq, ...end }];
  }

  #started(event: ActionEvent, attempt: number): void {
    const open = this.#actions.get(keyOf(event));
    // An attempt that a crash interrupted begins again as the same one.
    if (open === undefined || open.attempt?.number === attempt) return;
    open.attempt = { number: attempt, startMs: event.timestamp };
    open.last = attempt;
  }

  #attempted(
    event: ActionEvent & { readonly seq: number | null },
    error: string | null,
    willRetry: boolean,
  ): readonly ObservedAttempt[] {
    const { timestamp: endMs, seq } = event;
    const open = this.#actions.get(keyOf(event));
    if (open?.attempt == null || seq === null) return [];
    const { action, iteration, usage, attempt, failed: retryOf } = open;
    const { number, startMs } = attempt;
    open.attempt = null;
    open.usage = null;
    open.failed = willRetry ? { iteration, actionId: action.id, attempt: number } : null;
    if (open.isHelper) return [];
    const dependsOn = this.#attemptsBefore(open);
    const isIndependent = open.dependsOn.length === 0;
    const queuedMs = number === 1 ? Math.max(0, startMs - this.#readyMs(open)) : null;
    const how = { attempt: number, error, willRetry, retryOf, dependsOn, isIndependent, queuedMs, usage };
    return [{ kind: 'attempt', startMs, endMs, seq, action, iteration, ...how }];
  }

  #attemptsBefore({ dependsOn }: OpenAction): readonly AttemptOf[] {
    return dependsOn.flatMap((key) => this.#ended.get(key)?.attempts ?? []);
  }

  /** When its dependencies had ended, and a person had approved it. */
  #readyMs({ dependsOn, readyMs }: OpenAction): number {
    return Math.max(readyMs, ...dependsOn.map((key) => this.#ended.get(key)?.endMs ?? 0));
  }

  #settled(
    event: EventOf<'action_completed' | 'action_failed' | 'action_skipped' | 'action_cancelled'>,
  ): readonly Observation[] {
    const { timestamp: endMs, seq } = event;
    const key = keyOf(event);
    const open = this.#actions.get(key);
    if (open === undefined) return [];
    const status = STATUS_OF[event.type];
    const error = endOf(event);
    const hasStarted = open.last > 0;
    // Nothing was executed: the outcome of an earlier action is the result.
    const isReused = status === 'completed' && !hasStarted;
    const startMs = Math.min(this.#readyMs(open), endMs);
    if (isReused) open.attempt = { number: 0, startMs: endMs };
    const attempts = this.#attempted(event, error, false);
    const closed = [...this.#approvals].flatMap(([id, asked]) =>
      asked.key === key ? [this.#closeApproval(id, open.action, 'closed', event)] : [],
    );
    const { action, iteration, isHelper } = open;
    const own = isHelper ? this.#attemptsBefore(open) : [{ iteration, actionId: action.id, attempt: open.last }];
    this.#ended.set(key, { endMs, attempts: hasStarted || isReused || isHelper ? own : [] });
    this.#actions.delete(key);
    if (isHelper) return closed;
    const end = { iteration, action, status, error, isReused, hasStarted };
    return [...closed, ...attempts, { kind: 'action', startMs, endMs, seq, ...end }];
  }

  /** An attempt that asks a question ends with it: after the answer, another one begins. */
  #asked(event: EventOf<'approval_requested'>): readonly Observation[] {
    const attempts = event.data.question === undefined ? [] : this.#attempted(event, null, false);
    this.#approvals.set(event.data.approval_id, { event, key: keyOf(event) });
    return attempts;
  }

  #resolved(event: EventOf<'approval_resolved'>): readonly Observation[] {
    const { approval_id: id, approved } = event.data;
    const asked = this.#approvals.get(id);
    const open = asked === undefined ? undefined : this.#actions.get(asked.key);
    if (open === undefined) return [];
    open.readyMs = event.timestamp;
    return [this.#closeApproval(id, open.action, approved ? 'approved' : 'denied', event)];
  }

  #closeApproval(
    approvalId: string,
    action: ObservedAction,
    decision: ObservedApproval['decision'],
    { timestamp: endMs, seq }: { readonly timestamp: number; readonly seq: number },
  ): ObservedApproval {
    const asked = this.#approvals.get(approvalId)?.event;
    this.#approvals.delete(approvalId);
    const isQuestion = asked?.data.question !== undefined;
    const startMs = asked?.timestamp ?? endMs;
    return { kind: 'approval', startMs, endMs, seq, approvalId, action, decision, isQuestion };
  }

  #finished(event: EventOf<'agent_completed' | 'agent_failed' | 'agent_cancelled'>): readonly Observation[] {
    const { timestamp: endMs, seq } = event;
    const status = END_OF[event.type];
    const error = event.type === 'agent_failed' ? event.data.error.code : null;
    const hasEnded = this.#generation?.endMs != null && error?.startsWith(MODEL_ERRORS) !== true;
    const cut = this.#closeGeneration(event, hasEnded ? null : (error ?? INTERRUPTED));
    const startMs = this.#startMs ?? endMs;
    const iterations = event.data.iterations ?? this.#iterations;
    const run = { status, error, iterations, version: this.#version, usage: this.#usage };
    return [...cut, { kind: 'run', startMs, endMs, seq, ...run }];
  }
}

/** Codes of runs that a model has failed. */
const MODEL_ERRORS = 'model_';

const STATUS_OF = {
  action_completed: 'completed',
  action_failed: 'failed',
  action_skipped: 'skipped',
  action_cancelled: 'cancelled',
} as const;

const END_OF = { agent_completed: 'completed', agent_failed: 'failed', agent_cancelled: 'cancelled' } as const;

/** An id may be used again in a later iteration, while the earlier action is still running. */
function keyOf({ iteration, action_id: id }: { readonly iteration: number; readonly action_id: string }): string {
  return `${iteration}/${id}`;
}

function endOf(event: SessionEvent): string | null {
  if (event.type === 'action_failed') return event.data.error.code;
  return event.type === 'action_cancelled' ? 'cancelled' : null;
}

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
