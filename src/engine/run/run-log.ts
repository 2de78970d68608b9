/**
 * One run's line to the journal and to its readers.
 *
 * Owns the order in which a turn's events go out. Does not own what they mean.
 *
 * Invariants (J1):
 *  1. An event is in the journal when it gets its seq, and on disk before it is published.
 *  2. Journaled events and live patches leave in the order in which they were made.
 *  3. Effects run after the events that announce them are on disk, and before readers hear of them. What may run
 *     twice runs when they are written: the platform holds back what it sends until they are on disk.
 *  4. What the run was told is written with the first event that came of it, or before too much of it
 *     has gathered (J6, J9).
 *  5. While a record is being replayed nothing is written, done or sent that the record holds.
 */
import { joinPatches } from '../../domain/event.ts';
import type {
  EventData,
  EventOf,
  JournaledEventType,
  LiveEventType,
  SessionEvent,
  WrittenEvent,
} from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Clock } from '../../domain/ports.ts';
import { limits } from '../../domain/limits.ts';
import type { Journal } from '../../journal/journal.ts';
import { addRecorded, encodeInputs } from './input-codec.ts';
import type { RecordedInput } from './run-input.ts';
import { isRepeated } from '../replay/replay.ts';
import type { Replay } from '../replay/replay.ts';

export interface ActionLabel {
  readonly id: string;
  readonly name: string | null;
}

interface AppendOptions {
  readonly action?: ActionLabel;
  readonly state?: JsonObject;
  readonly iteration?: number;
}

export class RunLog {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #runId: string;
  readonly #sessionId: string;
  readonly #runNumber: number;
  readonly #publish: (events: readonly SessionEvent[]) => void;
  readonly #replay: Replay | null;
  /** What the run was told and no event carries yet; how much text that is, and since when. */
  #unsaved: RecordedInput[] = [];
  #unsavedChars = 0;
  #unsavedSince: number | null = null;
  #iteration = 0;
  #outgoing: SessionEvent[] = [];
  #effects: (() => void)[] = [];
  #repeatable: (() => void)[] = [];

  constructor(options: {
    readonly journal: Journal;
    readonly clock: Clock;
    readonly runId: string;
    readonly runNumber: number;
    readonly sessionId: string;
    readonly publish: (events: readonly SessionEvent[]) => void;
    readonly replay: Replay | null;
  }) {
    this.#journal = options.journal;
    this.#clock = options.clock;
    this.#runId = options.runId;
    this.#sessionId = options.sessionId;
    this.#runNumber = options.runNumber;
    this.#publish = options.publish;
    this.#replay = options.replay;
  }

  /** Whether a record is being gone through: what happens now has happened before. */
  get replaying(): boolean {
    return this.#replay?.going === true;
  }

  /** Whether this event was on disk before the run was taken up again, and its effect may have begun. */
  wasRecorded(seq: number): boolean {
    return this.#replay?.holds(seq) === true;
  }

  /** Keeps what the run was told; written with the next event, or by `save`. */
  record(input: RecordedInput): void {
    if (this.replaying) return;
    this.#unsavedChars += addRecorded(this.#unsaved, input);
    if (this.#unsavedChars > 0) this.#unsavedSince ??= input.at;
  }

  /** When the text that stands in memory only has to be written (J6); null when there is none. */
  get saveBy(): number | null {
    if (this.#unsavedSince === null) return null;
    return this.#unsavedChars >= limits.unsavedTextChars
      ? this.#unsavedSince
      : this.#unsavedSince + limits.unsavedTextMs;
  }

  /** Writes what no event has carried so far. On disk with the next `commit`. */
  save(): void {
    const { length } = this.#unsaved;
    const small = this.#unsavedChars <= limits.unsavedTextChars * 2 && length <= 100;
    const unsaved = this.#takeUnsaved();
    if (small && length > 0) this.#journal.runs.addInputs(this.#runNumber, encodeInputs(unsaved));
    // A row holds so much and no more (J6).
    else for (const input of unsaved) this.#journal.runs.addInputs(this.#runNumber, encodeInputs([input]));
  }

  #takeUnsaved(): RecordedInput[] {
    const unsaved = this.#unsaved;
    this.#unsaved = [];
    this.#unsavedChars = 0;
    this.#unsavedSince = null;
    return unsaved;
  }

  get iteration(): number {
    return this.#iteration;
  }

  enterIteration(iteration: number): void {
    this.#iteration = iteration;
  }

  /** Appends one event; returns its seq. `state` is for recovery and is never sent. */
  append<T extends JournaledEventType>(type: T, data: EventData[T], options: AppendOptions = {}): number {
    return this.write(type, data, options).seq;
  }

  /** Appends one event, or finds it in the record; what it returns holds then what was written at the time. */
  write<T extends JournaledEventType>(type: T, data: EventData[T], options: AppendOptions = {}): WrittenEvent<T> {
    if (this.#replay?.going === true) {
      if (!isRepeated(type)) return { seq: 0, data };
      const recorded = this.#replay.match(type, options.action?.id ?? null);
      if (recorded !== null) return recorded;
    }
    const told = this.#unsaved.length === 0 ? {} : { in: encodeInputs(this.#takeUnsaved()) };
    const state = { ...options.state, ...told };
    const event = this.#journal.append({
      type,
      runId: this.#runId,
      iteration: options.iteration ?? this.#iteration,
      at: this.#clock.now(),
      ...(options.action === undefined ? {} : { actionId: options.action.id }),
      ...(options.action?.name == null ? {} : { actionName: options.action.name }),
      data,
      ...(Object.keys(state).length === 0 ? {} : { state }),
    });
    this.#outgoing.push(event);
    return { seq: event.seq ?? 0, data };
  }

  warn(code: string, message: string, action?: ActionLabel): void {
    this.append('warning', { code, message }, action === undefined ? {} : { action });
  }

  /** Sends a live event: no seq, not journaled (J4). Text patches that continue each other are joined. */
  live<T extends LiveEventType>(type: T, data: EventData[T], action?: ActionLabel): void {
    if (this.replaying) return;
    const event = this.liveEvent(type, data, action);
    const last = this.#outgoing.at(-1);
    const joined = last === undefined ? null : joinPatches(last, event);
    if (joined === null) this.#outgoing.push(event);
    else this.#outgoing[this.#outgoing.length - 1] = joined;
  }

  /** A live event that is not sent to everyone: what a reader who comes late must be told. */
  liveEvent<T extends LiveEventType>(type: T, data: EventData[T], action?: ActionLabel): EventOf<T> {
    const event = {
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
    return event as unknown as EventOf<T>;
  }

  /** Something that may be done twice, to do once this turn is written; nothing is heard of it before it is on disk. */
  afterWrite(effect: () => void): void {
    this.#repeatable.push(effect);
  }

  /** Something to do once this turn is on disk. */
  afterSync(effect: () => void): void {
    this.#effects.push(effect);
  }

  /** Ends a turn: everything appended reaches the disk, then effects start, then readers are told. */
  async commit(): Promise<void> {
    const outgoing = this.#outgoing;
    const effects = this.#effects;
    const repeatable = this.#repeatable;
    this.#outgoing = [];
    this.#effects = [];
    this.#repeatable = [];
    const synced = this.#journal.sync();
    if (repeatable.length > 0 && (await isPending(synced))) for (const effect of repeatable) effect();
    else effects.unshift(...repeatable);
    await synced;
    for (const effect of effects) effect();
    if (outgoing.length > 0) this.#publish(outgoing);
  }
}

/** False when it is settled already: the sync of what could not be written, or of nothing. */
async function isPending(synced: Promise<void>): Promise<boolean> {
  let pending = true;
  const settled = (): void => {
    pending = false;
  };
  synced.then(settled, settled);
  await Promise.resolve();
  return pending;
}
