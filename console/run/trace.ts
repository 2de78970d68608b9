/**
 * A run as its picture and its tables show it: the view of the run, with the graph of its actions and what the tables list.
 *
 * Invariants:
 *  1. Actions, iterations and blocks keep their position: new ones are appended.
 *  2. The same journaled events give the same trace, except `progress`, which is live only.
 */
import { emptyMessage, fold } from '../../src/client/index.ts';
import { tokensOf } from '../../src/view/run-view.ts';
import type { Action, EventOf, Message, SessionEvent } from '../../src/client/index.ts';
import { isSettled, keyOf } from './trace-types.ts';
import type {
  ActionStatus,
  Change,
  Failure,
  Totals,
  TraceAction,
  TraceBlock,
  TraceIteration,
  Warning,
} from './trace-types.ts';

export class Trace {
  /** Of the newest event; 0 before. */
  lastAt = 0;
  /** Of the newest journaled event; 0 before. */
  lastSeq = 0;
  readonly actions: TraceAction[] = [];
  /** Calls of the model. */
  readonly calls: EventOf<'usage'>[] = [];
  readonly warnings: Warning[] = [];
  readonly changes: Change[] = [];
  /** Changes with each event. */
  revision = 0;
  #message: Message;
  readonly #byKey = new Map<string, TraceAction>();
  /** By id: the newest accepted action of earlier and of this iteration. */
  readonly #byId = new Map<string, TraceAction>();
  /** Actions that depend on an id that is not known yet, by `iteration.id`. */
  readonly #awaiting = new Map<string, TraceAction[]>();

  constructor(runId = '') {
    this.#message = emptyMessage(runId);
  }

  /** The run as its conversation shows it. */
  get message(): Message {
    return this.#message;
  }

  get status(): Message['status'] {
    return this.#message.status;
  }

  /** Where its protocol text comes from. */
  get source(): Message['source'] {
    return this.#message.source;
  }

  get startedAt(): number | null {
    return this.#message.started_at;
  }

  get endedAt(): number | null {
    return this.#message.ended_at;
  }

  get error(): Failure | null {
    return this.#message.error;
  }

  /** Number of actions that failed or were rejected. */
  get failures(): number {
    return this.actions.filter(({ status }) => status === 'failed' || status === 'rejected').length;
  }

  /** Number of actions that have ended. */
  get settled(): number {
    return this.actions.filter(isSettled).length;
  }

  get iterations(): readonly TraceIteration[] {
    return this.#message.iterations.map(({ iteration, started_at: startedAt, written_at: generationEnd }) => {
      return { iteration, startedAt, generationEnd };
    });
  }

  get blocks(): readonly TraceBlock[] {
    return this.#message.blocks.map(({ segment, type, started_at: startedAt, written_at: endedAt }) => {
      return { segment, isResponse: type === 'response', startedAt, endedAt };
    });
  }

  get totals(): Totals {
    const calls = this.#message.model_calls;
    return { ...tokensOf(calls), isEstimated: calls.some(({ estimated }) => estimated === true) };
  }

  action(key: string): TraceAction | undefined {
    return this.#byKey.get(key);
  }

  apply(event: SessionEvent): void {
    const { seq, timestamp } = event;
    this.revision += 1;
    this.lastAt = Math.max(this.lastAt, timestamp);
    this.lastSeq = seq ?? this.lastSeq;
    const { actions } = this.#message;
    this.#message = fold(this.#message, event);
    if (actions !== this.#message.actions) this.#update(actions);
    if (event.type === 'plan_generated') this.#place(event);
    if (event.type === 'usage') this.calls.push(event);
    if (event.type === 'warning' || event.type === 'budget_exceeded') this.warnings.push(event);
    if (event.type === 'context_feed_updated' || event.type === 'variable_changed') this.changes.push(event);
  }

  /** @param before the actions before the event */
  #update(before: Message['actions']): void {
    for (const [index, action] of this.#message.actions.entries()) {
      const known = before[index];
      if (known === action) continue;
      const shown = this.actions[index] ?? this.#add(action, index);
      Object.assign(shown, shownOf(action));
      if (known?.seqs.written !== action.seqs.written) for (const id of action.depends_on) this.#connect(shown, id);
    }
  }

  #add(action: Action, index: number): TraceAction {
    const { id, iteration, status, seqs } = action;
    const isRejected = status === 'rejected';
    const own = keyOf(iteration, id);
    const added: TraceAction = {
      // It was never accepted, and its id is free: the key contains the number of the event.
      key: isRejected ? `${own}!${seqs.ended}` : own,
      id,
      iteration,
      index,
      queuedAt: action.queued_at,
      dependencies: [],
      dependents: [],
      wave: null,
      ...shownOf(action),
    };
    this.actions.push(added);
    this.#byKey.set(added.key, added);
    if (isRejected) return added;
    this.#byId.set(id, added);
    for (const dependent of this.#awaiting.get(own) ?? []) connect(dependent, added);
    this.#awaiting.delete(own);
    return added;
  }

  /** An id means the action of this iteration, or else the newest of the earlier ones. */
  #connect(action: TraceAction, id: string): void {
    const key = keyOf(action.iteration, id);
    const dependency = this.action(key) ?? this.#byId.get(id);
    if (dependency !== undefined) connect(action, dependency);
    else this.#awaiting.set(key, [...(this.#awaiting.get(key) ?? []), action]);
  }

  #place({ iteration, data }: EventOf<'plan_generated'>): void {
    for (const [wave, ids] of data.waves.entries()) {
      for (const id of ids) {
        const action = this.action(keyOf(iteration, id));
        if (action !== undefined) action.wave = wave;
      }
    }
  }
}

function connect(action: TraceAction, dependency: TraceAction): void {
  action.dependencies.push(dependency);
  dependency.dependents.push(action);
}

/** The members of an action that change. */
type Shown = Omit<
  TraceAction,
  'key' | 'id' | 'iteration' | 'index' | 'queuedAt' | 'dependencies' | 'dependents' | 'wave'
>;

function shownOf(action: Action): Shown {
  const { type, mode, written, parameters, tries, waits } = action;
  const isKnown = action.seqs.written !== null || action.status === 'rejected';
  return {
    name: action.name,
    written: {
      ...(isKnown ? { type, mode } : {}),
      ...(written === null ? {} : { parameters: written }),
      embedded_in_thought: action.is_in_thought,
      repaired: action.is_repaired,
    },
    status: statusOf(action),
    executed: parameters === null || parameters === written ? undefined : parameters,
    output: action.status === 'completed' ? action.output : undefined,
    error: errorOf(action),
    isCached: action.is_cached,
    attempts: tries.map((attempt) => ({
      attempt: attempt.attempt,
      startedAt: attempt.started_at,
      endedAt: attempt.ended_at,
      error: attempt.error,
      retryDelayMs: attempt.retry_delay_ms,
    })),
    waits,
    endedAt: action.ended_at,
    progress: action.progress,
    childSessionId: action.child_session_id,
  };
}

function statusOf({ status, waits, tries }: Action): ActionStatus {
  if (status !== 'queued' && status !== 'running') return status;
  if (waits.at(-1)?.to === null) return 'waiting';
  return tries.at(-1)?.ended_at === null ? 'running' : 'queued';
}

function errorOf({ error, skipped }: Action): Failure | null {
  if (skipped === null) return error;
  const message = skipped.reason === 'condition' ? 'The condition is false' : 'A dependency did not complete';
  return { code: 'skipped', message: skipped.because === null ? message : `${message}: ${skipped.because}` };
}
