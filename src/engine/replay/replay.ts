/**
 * The record of a run, replayed by the same code: the inputs in order, and the resulting events, so that nothing is
 * written or executed twice (J2, J9).
 *
 * Owns the position in the record. Does not own the consequences of the inputs: the run decides as it did before, and
 * is compared with the record.
 *
 * Invariants:
 *  1. Every event that the run produces again is matched with the recorded one, in order. A mismatch is a divergence:
 *     the record is kept, and the run does not continue.
 *  2. After the end of the record, the run writes again: a turn interrupted by a crash is completed.
 *  3. Events that depend on the circumstances of the time (warnings, changes of variables) are not produced again and
 *     not matched.
 */
import type { ActionError } from '../../domain/action.ts';
import { EngineError } from '../../domain/errors.ts';
import { EVENTS } from '../../domain/event-table.ts';
import type { EventOf, JournaledEventType, WrittenEvent } from '../../domain/event.ts';
import type { Json } from '../../domain/json.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { decodeInputs } from '../run/input-codec.ts';
import type { ConditionResult, RecordedInput } from '../run/run-input.ts';

/** Whether the run produces it again. An event of a later version is matched, and then differs. */
function isRepeated(type: string): boolean {
  return !Object.hasOwn(EVENTS, type) || EVENTS[type as JournaledEventType].isRepeated;
}

/** Events of an action that follow its judgement. A cancelled action may have been cancelled before. */
const GOES_ON: ReadonlySet<JournaledEventType> = new Set<JournaledEventType>([
  'approval_requested',
  'action_started',
  'action_completed',
  'action_failed',
]);

/** A recorded event that the run produces again. */
type Recorded = Pick<EventOf<JournaledEventType>, 'seq' | 'type' | 'run_id' | 'action_id' | 'data'>;

export class Replay {
  readonly inputs: readonly RecordedInput[];
  /** The codes of its warnings. */
  readonly warned: ReadonlySet<string>;
  /** How often the run was recovered before. */
  readonly recoveries: number;
  readonly #events: readonly Recorded[];
  readonly #lastSeq: number;
  readonly #outputs = new Map<string, number>();
  readonly #estimates = new Map<string, number>();
  readonly #conditions = new Map<string, ConditionResult>();
  /** Approval requests of each action, in order: its approval, then the questions of its target. */
  readonly #approvals = new Map<string, EventOf<'approval_requested'>[]>();
  readonly #approvalErrors = new Map<string, ActionError>();
  readonly #started = new Map<string, number>();
  /** Events with the outside values of actions that were judged (C9). */
  readonly #namesAt = new Map<string, number>();
  readonly #judged = new Set<string>();
  readonly #goneOn = new Set<string>();
  /** Whether a generation ended its run, by iteration; and those whose responses were written again. */
  readonly #final = new Map<number, boolean>();
  readonly #completed = new Set<number>();
  readonly #load: (seq: number) => Json;
  #position = 0;
  #over = false;

  /**
   * @throws EngineError `not_recoverable` if the record does not begin with the run's start: it was written by code
   *   without records
   */
  constructor(journal: Journal, run: RunRecord) {
    const inputs: RecordedInput[] = [];
    const events: Recorded[] = [];
    const loose = journal.runs.looseInputs(run.run);
    let next = 0;
    let lastSeq = 0;
    let recoveries = 0;
    const warned = new Set<string>();
    const takeLooseBefore = (seq: number): void => {
      for (let row = loose[next]; row !== undefined && row.afterSeq < seq; row = loose[++next]) {
        inputs.push(...decodeInputs(row.inputs));
      }
    };
    for (const { event, state } of journal.eventsOf(run)) {
      const seq = event.seq ?? 0;
      takeLooseBefore(seq);
      inputs.push(...decodeInputs(state?.['in']));
      lastSeq = seq;
      const key = state?.['key'];
      const type = event.type as JournaledEventType;
      if (typeof key === 'string') {
        if (type === 'action_completed') this.#outputs.set(key, seq);
        if (type === 'action_queued') this.#estimates.set(key, Number(state?.['estimate'] ?? 0));
        if (event.type === 'approval_requested') {
          const asked = this.#approvals.get(key);
          if (asked === undefined) this.#approvals.set(key, [event]);
          else asked.push(event);
        }
        if (type === 'action_started' && !this.#started.has(key)) this.#started.set(key, seq);
        if (type === 'policy_applied' && state?.['names'] !== undefined) this.#namesAt.set(key, seq);
        if (GOES_ON.has(type)) this.#goneOn.add(key);
      }
      if (event.type === 'iteration_completed') this.#final.set(event.data.iteration, event.data.final);
      if (event.type === 'response_started' && event.data.completes !== undefined) this.#completed.add(event.iteration);
      if (event.type === 'warning') warned.add(event.data.code);
      if (event.type === 'warning' && event.data.code === 'run_recovered') recoveries += 1;
      // A summary follows the run, and is not written by it (C10).
      const isSummary = event.type === 'memory_changed' && event.data.change === 'summarised';
      if (isSummary || !isRepeated(type)) continue;
      events.push(event.type === 'action_completed' ? withoutOutput(event) : (event as Recorded));
    }
    takeLooseBefore(Infinity);
    if (lastSeq > 0 && inputs[0]?.type !== 'run_started') {
      throw new EngineError('not_recoverable', `Run ${run.runId} has no record to continue from`);
    }
    for (const input of inputs) {
      if (input.type === 'condition_evaluated') this.#conditions.set(input.key, input.result);
      if (input.type === 'policy_judged') this.#judged.add(input.key);
      if (input.type === 'approval_asked') this.#approvalErrors.set(input.key, input.error);
    }
    this.inputs = inputs;
    this.recoveries = recoveries;
    this.warned = warned;
    this.#events = events;
    this.#lastSeq = lastSeq;
    this.#load = (seq) => journal.outputAt(seq);
  }

  /** Whether nothing was recorded: the run had not begun. */
  get empty(): boolean {
    return this.#lastSeq === 0;
  }

  /** Whether the record is still being replayed. */
  get active(): boolean {
    return !this.#over;
  }

  /** The record has been replayed: the run is live from here on. */
  finish(): void {
    this.#over = true;
    const left = this.#events[this.#position];
    if (left !== undefined) throw divergence(left, 'nothing');
  }

  /**
   * The recorded event for one that the run produces now; null at the end of the record.
   *
   * @throws EngineError `not_recoverable` if the record has a different event
   */
  match<T extends JournaledEventType>(type: T, actionId: string | null): WrittenEvent<T> | null {
    const recorded = this.#events[this.#position];
    if (recorded === undefined) return null;
    if (recorded.type !== type || (recorded.action_id ?? null) !== actionId) {
      throw divergence(recorded, actionId === null ? type : `${type} of "${actionId}"`);
    }
    this.#position += 1;
    // The comparison of the types above does not narrow the generic type.
    return recorded as unknown as WrittenEvent<T>;
  }

  /** Whether an event was durable before the crash. */
  contains(seq: number): boolean {
    return seq <= this.#lastSeq;
  }

  /** The output of a completed action; null if it did not complete. */
  outputOf(key: string): Json {
    const seq = this.#outputs.get(key);
    return seq === undefined ? null : this.#load(seq);
  }

  /** The recorded duration estimate of the action (S5). */
  estimateOf(key: string): number | null {
    return this.#estimates.get(key) ?? null;
  }

  /** The next approval request for an action; null if there was no further one. */
  nextApprovalRequest(key: string): EventOf<'approval_requested'> | null {
    return this.#approvals.get(key)?.shift() ?? null;
  }

  /** Why an approval could not be requested for an action. */
  approvalErrorOf(key: string): ActionError | null {
    return this.#approvalErrors.get(key) ?? null;
  }

  /** The event that first started an action; null if it has not started. */
  startedAt(key: string): number | null {
    return this.#started.get(key) ?? null;
  }

  /** The event with the outside values of an action's names; null if there is none. */
  namesAt(key: string): number | null {
    return this.startedAt(key) ?? this.#namesAt.get(key) ?? null;
  }

  /** Whether the action's judgement is recorded (C9). */
  isJudged(key: string): boolean {
    return this.#judged.has(key);
  }

  /** Whether the action has gone further than a judgement. */
  hasGoneOn(key: string): boolean {
    return this.#goneOn.has(key);
  }

  /** What was known about the values in a generation's answer; null if the generation is not complete in the record. */
  answerOf(iteration: number): { readonly missing: boolean; readonly pending: boolean } | null {
    const final = this.#final.get(iteration);
    return final === undefined ? null : { missing: !final, pending: this.#completed.has(iteration) };
  }

  conditionOf(key: string): ConditionResult | null {
    return this.#conditions.get(key) ?? null;
  }
}

/** Outputs are read on demand, because all of them together may be large. */
function withoutOutput({ seq, type, run_id, action_id }: EventOf<'action_completed'>): Recorded {
  return { seq, type, run_id, action_id, data: { output: null, ms: 0, attempt: 0 } };
}

function divergence(recorded: Recorded, made: string): EngineError {
  const id = recorded.action_id === undefined ? '' : ` of "${recorded.action_id}"`;
  return new EngineError(
    'not_recoverable',
    `The record of run ${recorded.run_id} has ${recorded.type}${id} at ${recorded.seq}, but this version would write ${made}`,
  );
}
