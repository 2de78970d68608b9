/**
 * A run as its view shows it: a fold of its events into mutable, indexed state.
 *
 * Invariants:
 *  1. An event costs the same at any length of the run, except the end of a generation, which reads its plan.
 *  2. Actions, iterations and blocks keep their position: new ones are appended.
 *  3. The same journaled events give the same trace, except `progress`, which is live only.
 */
import type { EventOf, SessionEvent } from '../../src/client/index.ts';
import { applyToAction } from './trace-actions.ts';
import { keyOf } from './trace-types.ts';
import type {
  ActionStore,
  Change,
  Failure,
  Totals,
  TraceAction,
  TraceBlock,
  TraceIteration,
  Warning,
} from './trace-types.ts';

type RunStatus = 'queued' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

export class Trace implements ActionStore {
  status: RunStatus = 'queued';
  /** Where its protocol text comes from. */
  source: EventOf<'agent_started'>['data']['source'] = 'model';
  startedAt: number | null = null;
  endedAt: number | null = null;
  /** Of the newest event; 0 before. */
  lastAt = 0;
  /** Of the newest journaled event; 0 before. */
  lastSeq = 0;
  error: Failure | null = null;
  failures = 0;
  settled = 0;
  readonly actions: TraceAction[] = [];
  readonly iterations: TraceIteration[] = [];
  readonly blocks: TraceBlock[] = [];
  /** Calls of the model. */
  readonly calls: EventOf<'usage'>[] = [];
  readonly warnings: Warning[] = [];
  readonly changes: Change[] = [];
  readonly totals: Totals = { prompt: 0, completion: 0, cached: 0, cost: 0, isEstimated: false };
  /** Changes with each event. */
  revision = 0;
  readonly #byKey = new Map<string, TraceAction>();
  /** By id: the newest accepted action of earlier and of this iteration. */
  readonly #byId = new Map<string, TraceAction>();
  /** Actions that depend on an id that is not known yet, by `iteration.id`. */
  readonly #awaiting = new Map<string, TraceAction[]>();

  action(key: string): TraceAction | undefined {
    return this.#byKey.get(key);
  }

  apply(event: SessionEvent): void {
    const { seq, timestamp } = event;
    this.revision += 1;
    this.lastAt = Math.max(this.lastAt, timestamp);
    if (seq !== null) {
      this.lastSeq = seq;
      if (this.status === 'waiting') this.status = 'running';
    }
    switch (event.type) {
      case 'agent_started':
        this.status = 'running';
        this.startedAt = timestamp;
        this.source = event.data.source;
        break;
      case 'agent_waiting':
        this.status = 'waiting';
        break;
      case 'agent_completed':
        this.#end('completed', timestamp);
        break;
      case 'agent_failed':
        this.error = event.data.error;
        this.#end('failed', timestamp);
        break;
      case 'agent_cancelled':
        this.#end('cancelled', timestamp);
        break;
      case 'iteration_started':
        this.iterations.push({ iteration: event.iteration, startedAt: timestamp, generationEnd: null });
        break;
      case 'plan_generated':
        // Comes when the generation has ended, if it has accepted an action.
        this.#endGeneration(timestamp);
        for (const [wave, ids] of event.data.waves.entries()) {
          for (const id of ids) {
            const action = this.action(keyOf(event.iteration, id));
            if (action !== undefined) action.wave = wave;
          }
        }
        break;
      case 'iteration_completed':
        this.#endGeneration(timestamp);
        break;
      case 'usage': {
        const { data } = event;
        const { totals } = this;
        this.calls.push(event);
        totals.prompt += data.prompt_tokens;
        totals.completion += data.completion_tokens;
        totals.cached += data.cached_tokens;
        totals.cost += data.cost ?? 0;
        totals.isEstimated ||= data.estimated === true;
        break;
      }
      case 'warning':
      case 'budget_exceeded':
        this.warnings.push(event);
        break;
      case 'context_feed_updated':
      case 'variable_changed':
        this.changes.push(event);
        break;
      case 'thought_started':
      case 'text_started':
      case 'response_started':
        this.blocks.push({
          segment: event.seq,
          isResponse: event.type === 'response_started',
          startedAt: timestamp,
          endedAt: null,
        });
        break;
      case 'thought_completed':
      case 'text_completed':
      case 'response_completed': {
        const block = this.blocks.findLast(({ segment }) => segment === event.data.segment);
        if (block !== undefined) block.endedAt ??= timestamp;
        break;
      }
      default:
        applyToAction(this, event);
    }
  }

  /** Use `apply`. */
  add(action: TraceAction): void {
    this.actions.push(action);
    this.#byKey.set(action.key, action);
    if (action.status === 'rejected') return;
    this.#byId.set(action.id, action);
    for (const dependent of this.#awaiting.get(action.key) ?? []) connect(dependent, action);
    this.#awaiting.delete(action.key);
  }

  /** Use `apply`. An id means the action of this iteration, or else the newest of the earlier ones. */
  connectTo(action: TraceAction, id: string): void {
    const key = keyOf(action.iteration, id);
    const dependency = this.action(key) ?? this.#byId.get(id);
    if (dependency !== undefined) connect(action, dependency);
    else this.#awaiting.set(key, [...(this.#awaiting.get(key) ?? []), action]);
  }

  #endGeneration(at: number): void {
    const last = this.iterations.at(-1);
    if (last !== undefined) last.generationEnd ??= at;
    for (const block of this.blocks) block.endedAt ??= at;
  }

  #end(status: RunStatus, at: number): void {
    this.status = status;
    this.endedAt = at;
    this.#endGeneration(at);
  }
}

function connect(action: TraceAction, dependency: TraceAction): void {
  action.dependencies.push(dependency);
  dependency.dependents.push(action);
}
