/**
 * One run's line to the journal and to its readers.
 *
 * Owns the order in which a turn's events go out. Does not own what they mean.
 *
 * Invariants (J1):
 *  1. An event is in the journal when it gets its seq, and on disk before it is published.
 *  2. Journaled events and live patches leave in the order in which they were made.
 *  3. Effects run after the events that announce them are on disk, and before readers hear of them.
 */
import type { EventType, JournaledEventType, LiveEventType, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { Clock } from '../domain/ports.ts';
import type { Journal } from '../journal/journal.ts';

export interface ActionLabel {
  readonly id: string;
  readonly name: string | null;
}

export class RunLog {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #runId: string;
  readonly #sessionId: string;
  readonly #publish: (events: readonly SessionEvent[]) => void;
  #iteration = 0;
  #outgoing: SessionEvent[] = [];
  #effects: (() => void)[] = [];

  constructor(options: {
    readonly journal: Journal;
    readonly clock: Clock;
    readonly runId: string;
    readonly sessionId: string;
    readonly publish: (events: readonly SessionEvent[]) => void;
  }) {
    this.#journal = options.journal;
    this.#clock = options.clock;
    this.#runId = options.runId;
    this.#sessionId = options.sessionId;
    this.#publish = options.publish;
  }

  get iteration(): number {
    return this.#iteration;
  }

  enterIteration(iteration: number): void {
    this.#iteration = iteration;
  }

  /** Appends one event; returns its seq. `state` is for recovery and is never sent. */
  append(
    type: JournaledEventType,
    data: JsonObject,
    options: { readonly action?: ActionLabel; readonly state?: JsonObject; readonly iteration?: number } = {},
  ): number {
    const event = this.#journal.append({
      type,
      runId: this.#runId,
      iteration: options.iteration ?? this.#iteration,
      at: this.#clock.now(),
      ...(options.action === undefined ? {} : { actionId: options.action.id }),
      ...(options.action?.name == null ? {} : { actionName: options.action.name }),
      data,
      ...(options.state === undefined ? {} : { state: options.state }),
    });
    this.#outgoing.push(event);
    return event.seq ?? 0;
  }

  warn(code: string, message: string, action?: ActionLabel): void {
    this.append('warning', { code, message }, action === undefined ? {} : { action });
  }

  /** Sends a live event: no seq, not journaled (J4). Text patches that continue each other are joined. */
  live(type: LiveEventType, data: JsonObject, action?: ActionLabel): void {
    const last = this.#outgoing.at(-1);
    if (last !== undefined && continues(last, type, data)) {
      this.#outgoing[this.#outgoing.length - 1] = {
        ...last,
        data: { ...last.data, delta: `${String(last.data['delta'])}${String(data['delta'])}` },
      };
      return;
    }
    this.#outgoing.push(this.patch(type, data, action));
  }

  /** A live event that is not sent to everyone: what a reader who comes late must be told. */
  patch(type: EventType, data: JsonObject, action?: ActionLabel): SessionEvent {
    return {
      seq: null,
      type,
      session_id: this.#sessionId,
      run_id: this.#runId,
      iteration: this.#iteration,
      timestamp: this.#clock.now(),
      ...(action === undefined ? {} : { action_id: action.id }),
      ...(action?.name == null ? {} : { action_name: action.name }),
      data,
    };
  }

  /** Something to do once this turn is on disk. */
  afterSync(effect: () => void): void {
    this.#effects.push(effect);
  }

  /** Ends a turn: everything appended reaches the disk, then effects start, then readers are told. */
  async commit(): Promise<void> {
    const outgoing = this.#outgoing;
    const effects = this.#effects;
    this.#outgoing = [];
    this.#effects = [];
    await this.#journal.sync();
    for (const effect of effects) effect();
    if (outgoing.length > 0) this.#publish(outgoing);
  }
}

/** Whether `data` goes on exactly where the patch `last` stops. */
function continues(last: SessionEvent, type: LiveEventType, data: JsonObject): boolean {
  if (last.seq !== null || last.type !== type) return false;
  const { segment, offset, delta } = last.data as Record<string, Json | undefined>;
  return (
    typeof segment === 'number' &&
    typeof offset === 'number' &&
    typeof delta === 'string' &&
    segment === data['segment'] &&
    offset + delta.length === data['offset']
  );
}
