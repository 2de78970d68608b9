/**
 * Writes one run's events to the journal and publishes them to readers.
 *
 * Owns the order in which a turn's events are published. Does not own their meaning.
 *
 * Invariants (J1):
 *  1. An event is in the journal when it gets its seq, and durable before it is published.
 *  2. Journaled events and live patches are published in the order in which they were created.
 *  3. Effects run after their events are durable, and before readers are notified. Effects that may run twice run when
 *     the events are written: the platform holds back outgoing messages until the events are durable.
 *  4. Inputs of the run are written with the first resulting event, or before too much text has accumulated (J6, J9).
 *  5. Journaled text is redacted before it is written; live text is redacted by its writer, as a stream (C9).
 *  6. During a replay, nothing is written, executed or sent that the record already contains.
 */
import type { Redaction } from '../../bounded/redaction.ts';
import { EVENTS } from '../../domain/event-table.ts';
import { joinPatches, toEvent } from '../../domain/event.ts';
import type {
  EventData,
  EventOf,
  JournaledEventType,
  LiveEventType,
  SessionEvent,
  WrittenEvent,
} from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { limits } from '../../domain/limits.ts';
import { isWorkflowHelper } from '../../domain/workflow-actions.ts';
import type { WarningCode } from '../../domain/protocol-event.ts';
import type { Journal } from '../../journal/journal.ts';
import type { StoredPrompt } from '../../journal/prompts.ts';
import { addRecorded, encodeInputs } from './input-codec.ts';
import { outgoingEntry } from './outgoing-events.ts';
import type { RunSource } from './run-context.ts';
import type { RecordedInput } from './run-input.ts';
import type { Replay } from '../replay/replay.ts';

/** Warnings that a run has once, also after a recovery: the same images are in each of its requests. */
const ONCE_PER_RUN: ReadonlySet<string> = new Set<WarningCode>(['attachments_not_shown']);

export interface ActionLabel {
  readonly id: string;
  readonly name: string | null;
}

interface AppendOptions<T extends JournaledEventType> {
  readonly action?: ActionLabel;
  /** Members of the data that are redacted already, because they were streamed (C9). */
  readonly shown?: Partial<EventData[T]>;
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
  readonly #outgoingText: Redaction | null;
  readonly #isWorkflow: boolean;
  /** Inputs that are not part of an event yet; their number of characters; and when the first one arrived. */
  #unsaved: RecordedInput[] = [];
  #unsavedChars = 0;
  #unsavedSince: number | null = null;
  /** Whether inputs of this generation were written without an event. */
  #hasSaved = false;
  /** When the prompt that is not written yet must be, epoch milliseconds; null if there is none. */
  #savePromptBy: number | null = null;
  #iteration = 0;
  #outgoing: SessionEvent[] = [];
  /** The journal's losses before the first of them was appended. */
  #losses = 0;
  #effects: (() => void)[] = [];
  #repeatable: ((durable: Promise<void>) => void)[] = [];
  #onPublished: () => void = () => undefined;
  /** Codes of warnings that a run has once. */
  readonly #warned = new Set<string>();

  constructor(options: {
    readonly journal: Journal;
    readonly clock: Clock;
    readonly runId: string;
    readonly runNumber: number;
    readonly sessionId: string;
    readonly publish: (events: readonly SessionEvent[]) => void;
    readonly replay: Replay | null;
    readonly outgoingText?: Redaction | null;
    readonly source?: Pick<RunSource, 'type'>;
  }) {
    this.#journal = options.journal;
    this.#clock = options.clock;
    this.#runId = options.runId;
    this.#sessionId = options.sessionId;
    this.#runNumber = options.runNumber;
    this.#publish = options.publish;
    this.#replay = options.replay;
    this.#outgoingText = options.outgoingText ?? null;
    this.#isWorkflow = options.source?.type === 'workflow';
  }

  /** Whether a record is being replayed. */
  get replaying(): boolean {
    return this.#replay?.active === true;
  }

  /** Whether this event was durable before the run was recovered, so that its effect may have begun. */
  wasRecorded(seq: number): boolean {
    return this.#replay?.contains(seq) === true;
  }

  /** Keeps an input; written with the next event, or by `save`. */
  record(input: RecordedInput): void {
    if (this.replaying) return;
    this.#unsavedChars += addRecorded(this.#unsaved, input);
    if (this.#unsavedChars > 0) this.#unsavedSince ??= input.at;
  }

  /** Keeps the prompt of a generation, which is written with its first text without an event, or at its end. */
  keepPrompt(prompt: StoredPrompt): void {
    this.#journal.prompts.hold(prompt);
    this.#savePromptBy = this.#clock.now() + limits.unsavedTextLaterMs;
  }

  /** The generation has ended: its prompt is written at the end of the turn. */
  releasePrompt(): void {
    if (this.#savePromptBy !== null) this.#savePromptBy = 0;
  }

  /** When what is only in memory must be written (J6), epoch milliseconds; 0: at once, by any clock; null if there is nothing. */
  get saveBy(): number | null {
    const times = [this.#saveTextBy, this.#savePromptBy].filter((at) => at !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  get #saveTextBy(): number | null {
    if (this.#unsavedSince === null) return null;
    if (this.#unsavedChars >= limits.unsavedTextChars) return 0;
    return this.#unsavedSince + (this.#hasSaved ? limits.unsavedTextLaterMs : limits.unsavedTextMs);
  }

  /** Writes the prompt, and the inputs that are not part of an event yet. Durable with the next `commit`. */
  save(): void {
    const { length } = this.#unsaved;
    const small = this.#unsavedChars <= limits.unsavedTextChars * 2 && length <= 100;
    const unsaved = this.#takeUnsaved();
    this.#hasSaved ||= length > 0;
    if (small && length > 0) this.#journal.addInputs(this.#runNumber, encodeInputs(unsaved));
    // The size of a row is limited (J6).
    else for (const input of unsaved) this.#journal.addInputs(this.#runNumber, encodeInputs([input]));
    if (this.#savePromptBy !== null) this.#journal.prompts.write();
    this.#savePromptBy = null;
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
    this.#hasSaved = false;
  }

  /** Appends one event; returns its seq. `state` is stored for recovery and never sent. */
  append<T extends JournaledEventType>(type: T, data: EventData[T], options: AppendOptions<T> = {}): number {
    return this.write(type, data, options).seq;
  }

  /**
   * Appends one event, or finds it in the record; then the result contains what was written at the time.
   *
   * @param data before it is redacted; so is the data of the result
   */
  write<T extends JournaledEventType>(type: T, data: EventData[T], options: AppendOptions<T> = {}): WrittenEvent<T> {
    if (this.#replay?.active === true) {
      if (!EVENTS[type].isRepeated) return { seq: 0, data };
      const recorded = this.#replay.match(type, options.action?.id ?? null);
      if (recorded !== null) return recorded;
    }
    const carried = this.#unsaved.length === 0 ? {} : { in: encodeInputs(this.#takeUnsaved()) };
    const given = { data, ...(options.state === undefined ? {} : { state: options.state }) };
    const written = outgoingEntry(this.#outgoingText, type, given, options.shown);
    const state = { ...written.state, ...carried };
    if (this.#outgoing.length === 0) this.#losses = this.#journal.losses;
    const event = this.#journal.append({
      type,
      runId: this.#runId,
      iteration: options.iteration ?? this.#iteration,
      at: this.#clock.now(),
      ...this.#labelled(options.action, data),
      data: written.data,
      ...(Object.keys(state).length === 0 ? {} : { state }),
      ...(written.raw === undefined ? {} : { raw: written.raw }),
    });
    this.#outgoing.push(event);
    return { seq: event.seq ?? 0, data };
  }

  /**
   * The id and the name of an action. A name that the engine does not know is text of the model (C9). Actions that the runtime
   * adds to a workflow have none (M6).
   */
  #labelled(
    action: ActionLabel | undefined,
    data: object,
  ): { readonly actionId?: string; readonly actionName?: string } {
    if (action === undefined) return {};
    const { id, name } = action;
    if (name === null || (this.#isWorkflow && isWorkflowHelper(name))) return { actionId: id };
    const isUnknown = 'code' in data && data.code === 'unknown_name';
    return {
      actionId: id,
      actionName: isUnknown && this.#outgoingText !== null ? this.#outgoingText.text(name) : name,
    };
  }

  /** Runs `body` atomically: if it throws, its events are neither written nor published. */
  atomically<T>(body: () => T): T {
    const before = { outgoing: this.#outgoing.length, unsaved: this.#unsaved };
    const [chars, since] = [this.#unsavedChars, this.#unsavedSince];
    try {
      return this.#journal.atomically(body);
    } catch (fault) {
      this.#outgoing.length = before.outgoing;
      this.#unsaved = before.unsaved;
      [this.#unsavedChars, this.#unsavedSince] = [chars, since];
      throw fault;
    }
  }

  warn(code: string, message: string, action?: ActionLabel): void {
    if (ONCE_PER_RUN.has(code)) {
      if (this.#warned.has(code) || this.#replay?.warned.has(code) === true) return;
      this.#warned.add(code);
    }
    this.append('warning', { code, message }, action === undefined ? {} : { action });
  }

  /** Sends a live event: no seq, not journaled (J4). Adjacent text patches are joined. */
  live<T extends LiveEventType>(type: T, data: EventData[T], action?: ActionLabel): void {
    if (this.replaying) return;
    const event = this.liveEvent(type, data, action);
    if (this.#outgoing.length === 0) this.#losses = this.#journal.losses;
    const last = this.#outgoing.at(-1);
    const joined = last === undefined ? null : joinPatches(last, event);
    if (joined === null) this.#outgoing.push(event);
    else this.#outgoing[this.#outgoing.length - 1] = joined;
  }

  /** Creates a live event without publishing it, for a reader who connects late. */
  liveEvent<T extends LiveEventType>(type: T, data: EventData[T], action?: ActionLabel): EventOf<T> {
    return toEvent(this.#sessionId, null, {
      type,
      runId: this.#runId,
      iteration: this.#iteration,
      at: this.#clock.now(),
      ...this.#labelled(action, data),
      data,
    });
  }

  /**
   * Adds an effect that may run twice, to run once this turn is written; its results are not visible before that is durable.
   *
   * @param effect gets a promise of that
   */
  afterWrite(effect: (durable: Promise<void>) => void): void {
    this.#repeatable.push(effect);
  }

  /** Adds an effect, to run once this turn is durable. */
  afterSync(effect: () => void): void {
    this.#effects.push(effect);
  }

  /**
   * Ends a turn: makes everything appended durable, starts the effects, then notifies readers.
   *
   * @returns null if there was nothing to wait for: patches of text are not journaled, and everything before them is durable
   * @throws if that fails, or if another writer's failure has lost events of this turn: the run cannot continue
   */
  commit(): Promise<void> | null {
    const isLive = this.#effects.length + this.#repeatable.length === 0 && this.#outgoing.every(isUnnumbered);
    if (!isLive || !this.#journal.isSynced) return this.#commit();
    const outgoing = this.#outgoing;
    this.#outgoing = [];
    this.#publishAll(outgoing);
    return null;
  }

  /** @param listener called when everything so far is durable, and readers have it */
  whenPublished(listener: () => void): void {
    this.#onPublished = listener;
  }

  #publishAll(events: readonly SessionEvent[]): void {
    if (events.length > 0) this.#publish(events);
    this.#onPublished();
  }

  async #commit(): Promise<void> {
    const outgoing = this.#outgoing;
    const effects = this.#effects;
    const repeatable = this.#repeatable;
    this.#outgoing = [];
    this.#effects = [];
    this.#repeatable = [];
    this.#requireWritten(outgoing);
    const synced = this.#journal.sync();
    if (repeatable.length > 0 && (await isPending(synced))) for (const effect of repeatable) effect(synced);
    else effects.unshift(...repeatable.map((effect) => () => effect(synced)));
    await synced;
    for (const effect of effects) effect();
    this.#publishAll(outgoing);
  }

  #requireWritten(events: readonly SessionEvent[]): void {
    const { losses, lostAfter } = this.#journal;
    if (losses === this.#losses || events.every(({ seq }) => seq === null || seq <= lostAfter)) return;
    throw new Error('Events of this run could not be written');
  }
}

function isUnnumbered({ seq }: SessionEvent): boolean {
  return seq === null;
}

/** False if it has already settled: the sync of a failed write, or of nothing. */
async function isPending(synced: Promise<void>): Promise<boolean> {
  let pending = true;
  const settled = (): void => {
    pending = false;
  };
  synced.then(settled, settled);
  await Promise.resolve();
  return pending;
}
