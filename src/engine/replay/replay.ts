/**
 * The record of a run, given back to its own code: the inputs in their order, and the events that came
 * of them, so that nothing is written or done a second time (J2, J9).
 *
 * Owns the place in the record. Does not own what the inputs lead to: the run decides as it did, and
 * the record is what it is held to.
 *
 * Invariants:
 *  1. Every event that the run makes again is matched with the recorded one, in order. What does not
 *     match is a divergence: the record stands, and the run does not go on from it.
 *  2. When the record is used up, the run writes again: a turn that a crash tore is finished.
 *  3. Events that depend on what was so at the time (warnings, changes of variables) are not made
 *     again and not matched.
 */
import type { ActionError } from '../../domain/action.ts';
import { EngineError } from '../../domain/errors.ts';
import type { EventOf, JournaledEventType, WrittenEvent } from '../../domain/event.ts';
import type { Json } from '../../domain/json.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { decodeInputs } from '../run/input-codec.ts';
import type { ConditionResult, RecordedInput } from '../run/run-input.ts';

/** Made by what was so at the moment, or beside the run's own turns. */
const UNREPEATED: ReadonlySet<JournaledEventType> = new Set<JournaledEventType>([
  'warning',
  'variable_changed',
  'context_feed_updated',
]);

/** A recorded event that the run makes again. */
type Recorded = Pick<EventOf<JournaledEventType>, 'seq' | 'type' | 'run_id' | 'action_id' | 'data'>;

export function isRepeated(type: JournaledEventType): boolean {
  return !UNREPEATED.has(type);
}

export class Replay {
  readonly inputs: readonly RecordedInput[];
  /** How often the run was taken up again before. */
  readonly recoveries: number;
  readonly #events: readonly Recorded[];
  readonly #lastSeq: number;
  readonly #outputs = new Map<string, number>();
  readonly #estimates = new Map<string, number>();
  readonly #conditions = new Map<string, ConditionResult>();
  readonly #asked = new Map<string, EventOf<'approval_requested'>>();
  readonly #unasked = new Map<string, ActionError>();
  readonly #started = new Map<string, number>();
  readonly #load: (seq: number) => Json;
  #place = 0;
  #over = false;

  /**
   * @throws EngineError `not_recoverable` when the record does not begin with the run's start: it was
   *   written by code that did not keep one
   */
  constructor(journal: Journal, run: RunRecord) {
    const inputs: RecordedInput[] = [];
    const events: Recorded[] = [];
    const loose = journal.runs.looseInputs(run.run);
    let next = 0;
    let lastSeq = 0;
    let recoveries = 0;
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
        if (event.type === 'approval_requested') this.#asked.set(key, event);
        if (type === 'action_started' && !this.#started.has(key)) this.#started.set(key, seq);
      }
      if (event.type === 'warning' && event.data.code === 'run_recovered') recoveries += 1;
      if (!isRepeated(type)) continue;
      events.push(event.type === 'action_completed' ? withoutOutput(event) : (event as Recorded));
    }
    takeLooseBefore(Infinity);
    if (lastSeq > 0 && inputs[0]?.type !== 'run_started') {
      throw new EngineError('not_recoverable', `Run ${run.runId} has no record that it could go on from`);
    }
    for (const input of inputs) {
      if (input.type === 'condition_evaluated') this.#conditions.set(input.key, input.result);
      if (input.type === 'approval_asked') this.#unasked.set(input.key, input.error);
    }
    this.inputs = inputs;
    this.recoveries = recoveries;
    this.#events = events;
    this.#lastSeq = lastSeq;
    this.#load = (seq) => journal.outputAt(seq);
  }

  /** Whether nothing was recorded: the run had not begun. */
  get empty(): boolean {
    return this.#lastSeq === 0;
  }

  /** Whether the record is still being gone through. */
  get going(): boolean {
    return !this.#over;
  }

  /** The record has been gone through: from here on the run is live. */
  finish(): void {
    this.#over = true;
    const left = this.#events[this.#place];
    if (left !== undefined) throw divergence(left, 'nothing');
  }

  /**
   * The recorded event in the place of one that the run makes now; null when the record is used up.
   *
   * @throws EngineError `not_recoverable` when another one stands there
   */
  match<T extends JournaledEventType>(type: T, actionId: string | null): WrittenEvent<T> | null {
    const recorded = this.#events[this.#place];
    if (recorded === undefined) return null;
    if (recorded.type !== type || (recorded.action_id ?? null) !== actionId) {
      throw divergence(recorded, actionId === null ? type : `${type} of "${actionId}"`);
    }
    this.#place += 1;
    return recorded as unknown as WrittenEvent<T>;
  }

  /** Whether an event was on disk before the crash. */
  holds(seq: number): boolean {
    return seq <= this.#lastSeq;
  }

  /** What a completed action gave; null when it did not complete. */
  outputOf(key: string): Json {
    const seq = this.#outputs.get(key);
    return seq === undefined ? null : this.#load(seq);
  }

  /** The duration that the action was ordered by (S5), as it was known then. */
  estimateOf(key: string): number | null {
    return this.#estimates.get(key) ?? null;
  }

  /** What a person was asked about an action; null when nobody was. */
  askedOf(key: string): EventOf<'approval_requested'> | null {
    return this.#asked.get(key) ?? null;
  }

  /** Why a person could not be asked about an action. */
  unaskedOf(key: string): ActionError | null {
    return this.#unasked.get(key) ?? null;
  }

  /** The event that started an action for the first time; null when it has not started. */
  startedAt(key: string): number | null {
    return this.#started.get(key) ?? null;
  }

  conditionOf(key: string): ConditionResult | null {
    return this.#conditions.get(key) ?? null;
  }
}

/** Outputs are read when they are asked for: all of them may be large. */
function withoutOutput({ seq, type, run_id, action_id }: EventOf<'action_completed'>): Recorded {
  return { seq, type, run_id, action_id, data: { output: null, ms: 0, attempt: 0 } };
}

function divergence(recorded: Recorded, made: string): EngineError {
  const id = recorded.action_id === undefined ? '' : ` of "${recorded.action_id}"`;
  return new EngineError(
    'not_recoverable',
    `The record of run ${recorded.run_id} holds ${recorded.type}${id} at ${recorded.seq}, where this version would write ${made}`,
  );
}
