/**
 * The runs of a session: one after the other, each from start to end.
 *
 * Owns the runs in memory, the queue behind the current one, and the waiters for an end. Does not own the flow of a run
 * (run/run.ts), its setup (run-setup.ts), or the recovery (session-recovery.ts).
 *
 * Invariants:
 *  1. One run at a time answers; fire_and_forget actions of earlier runs may still be running (S4).
 *  2. A run that was taken from the queue starts or ends: none stays without an owner (J3).
 *  3. An end is reported only after it is durable (J1).
 */
import type { ActionKey } from '../../domain/action.ts';
import { EngineError, messageOf } from '../../domain/errors.ts';
import type { RunError } from '../../domain/errors.ts';
import type { EventData, SessionEvent } from '../../domain/event.ts';
import { MEMORY_FEED } from '../../domain/facts.ts';
import { limits } from '../../domain/limits.ts';
import { sessionKey } from '../../domain/session.ts';
import type { RunRecord } from '../../domain/session.ts';
import { runIdOf } from '../../journal/run-id.ts';
import { boundChildren } from '../policy/policy-lists.ts';
import type { UnwrittenText } from '../generation/segments.ts';
import { endAbandonedRun } from '../replay/abandoned-run.ts';
import type { Replay } from '../replay/replay.ts';
import { savedTexts } from '../replay/saved-texts.ts';
import { InputQueue } from '../run/input-queue.ts';
import { outgoingEntry } from '../run/outgoing-events.ts';
import { startRun } from '../run/run.ts';
import type { RunSource } from '../run/run-context.ts';
import { ActiveRun } from './active-run.ts';
import type { Broadcaster } from './broadcaster.ts';
import { agentOfRun, policiesOfRun, recordOf, runPolicy, sourceOf, textOf, traceOfRun } from './run-setup.ts';
import { redactedChildren } from './patterns-of-children.ts';
import { redactionOfEnd, redactionOfRun } from './outgoing-text.ts';
import type { SessionMemory } from './session-memory.ts';
import type { SessionScope } from './session-ports.ts';
import type { SessionSummaries } from './session-summaries.ts';
import { SteeredMessages } from './steered-messages.ts';

export interface QueuedRun {
  readonly run: number;
  readonly source: () => RunSource;
  /** It was queued by an earlier host. */
  readonly isRecovered: boolean;
}

const SUPERSEDED = 'a new message arrived instead of an approval or a result';

/** The name of a run in recovery notes (recovery-queue.ts). */
export const workOf = (run: number): string => `run ${run}`;

export class SessionRuns {
  readonly #scope: SessionScope;
  readonly #journal: SessionScope['journal'];
  readonly #readers: Broadcaster;
  readonly #memory: SessionMemory;
  readonly #recover: (run: number) => Promise<string | null>;
  readonly #orphaned: () => void;
  readonly #active = new Map<number, ActiveRun>();
  readonly #queue: QueuedRun[] = [];
  /** A run queued by an earlier host that is being started. */
  #starting: { readonly run: number; readonly done: Promise<void> } | null = null;
  /** A run has lost its owner, and was not recovered yet. */
  #hasLost = false;
  readonly #ends = new Map<number, PromiseWithResolvers<void>>();
  readonly #followed = new Set<Promise<void>>();
  /** Runs that have begun on this host, and are not over: recovered, they have lost their owner, and not their host. */
  readonly #begunHere = new Set<number>();
  readonly #steering: SteeredMessages;
  readonly #summaries: SessionSummaries;

  /**
   * @param recover asks whether a run queued by an earlier host may begin; resolves to the reason against it, or null
   * @param orphaned called when a run has lost its owner and is still open in the journal: it must be recovered again
   */
  constructor(
    scope: SessionScope,
    readers: Broadcaster,
    memory: SessionMemory,
    summaries: SessionSummaries,
    recover: (run: number) => Promise<string | null>,
    orphaned: () => void,
  ) {
    this.#scope = scope;
    this.#journal = scope.journal;
    this.#readers = readers;
    this.#memory = memory;
    this.#summaries = summaries;
    this.#recover = recover;
    this.#orphaned = orphaned;
    this.#steering = new SteeredMessages(scope, {
      create: (input, key) => this.#journal.runs.create(input, scope.clock.now(), 'queued', key),
      add: (run, cancelReason) => this.#addQueued(run, cancelReason),
    });
  }

  /** Whether anything is running: a run, or a fire_and_forget action of an ended one. */
  get busy(): boolean {
    return this.#queue.length > 0 || this.#starting !== null || this.active.some(({ isHeld }) => isHeld);
  }

  get active(): readonly ActiveRun[] {
    return [...this.#active.values()];
  }

  /** Whether the run is in memory or in the queue. */
  has(run: number): boolean {
    return this.#active.has(run) || this.#queue.some((queued) => queued.run === run);
  }

  get(run: number): ActiveRun | null {
    return this.#active.get(run) ?? null;
  }

  /** The run that has not answered yet, or null. */
  get answering(): number | null {
    for (const [run, { end }] of this.#active) if (end === null) return run;
    return this.#starting?.run ?? null;
  }

  /** Whether a new run has to wait: one answers, or others wait already, also while the one before them is being ended. */
  get isTaken(): boolean {
    return this.answering !== null || this.#queue.length > 0 || this.#hasLost;
  }

  /** @throws EngineError `queue_full` */
  requireRoom(): void {
    if (this.#queue.length >= limits.queuedMessages) {
      throw new EngineError('queue_full', `${limits.queuedMessages} messages are already queued`);
    }
  }

  /** The run that can show another message to its model: the one that answers, or else the newest that waits (C5). */
  get receiving(): { readonly run: number; readonly active: ActiveRun } | null {
    const { answering } = this;
    const open = [...this.#active].filter(([run, { end }]) =>
      answering === null ? end === 'waiting' : run === answering,
    );
    const [run, active] = open.at(-1) ?? [];
    return run === undefined || active?.live.canReceive() !== true ? null : { run, active };
  }

  /** Messages that came during runs. */
  get steering(): SteeredMessages {
    return this.#steering;
  }

  /** The run that waits for this approval, and its action; null if none does. */
  waitingFor(approvalId: string): { readonly run: number; readonly active: ActiveRun; readonly key: ActionKey } | null {
    for (const [run, active] of this.#active) {
      const key = active.live.approvalKey(approvalId);
      if (key !== null) return { run, active, key };
    }
    return null;
  }

  /** Queues the run, or begins it if it was not created as queued. */
  add(queued: QueuedRun, begin: boolean): void {
    this.trackEnd(queued.run);
    if (begin) return this.#owning(() => this.#begin(queued.run, queued.source));
    // One that has lost its owner returns to its place.
    const behind = this.#queue.findIndex(({ run }) => run > queued.run);
    this.#queue.splice(behind < 0 ? this.#queue.length : behind, 0, queued);
  }

  /** From here on, the end of this run can be awaited. */
  trackEnd(run: number): void {
    const end = Promise.withResolvers<void>();
    // Often nothing waits for it; an error is logged.
    end.promise.catch(() => undefined);
    this.#ends.set(run, end);
  }

  /** Resolves when the run has ended. */
  async ended(run: number): Promise<void> {
    await this.#ends.get(run)?.promise;
  }

  /**
   * Cancels runs and waits for their ends.
   *
   * @param only this run; null: all
   * @returns the last one that was active, or null
   * @throws EngineError `storage_unavailable` if a run could not be written, which would go on
   */
  async cancel(reason: string, only: number | null = null): Promise<number | null> {
    if (this.#starting !== null) await this.#starting.done;
    const isMeant = (run: number): boolean => only === null || run === only;
    const active = [...this.#active].filter(([run]) => isMeant(run));
    for (const [, run] of active) run.put({ type: 'cancel_requested', reason });
    const waiting = this.#queue.splice(0);
    this.#queue.push(...waiting.filter(({ run }) => !isMeant(run)));
    const queued = waiting.flatMap(({ run }) => (isMeant(run) ? [run] : []));
    const close = (run: number): SessionEvent => {
      this.#journal.runs.start(run, this.#scope.clock.now());
      return this.#close(run, 'agent_cancelled', { reason });
    };
    const batch = this.#owning(() => this.#journal.atomically(() => queued.map(close)));
    await this.publish(queued, batch);
    await Promise.all(active.map(async ([run]) => await this.ended(run)));
    // Its storage has failed: it will be recovered, and would run.
    if (this.#hasLost) throw new EngineError('storage_unavailable', 'A run could not be cancelled; cancel it again');
    return active.at(-1)?.[0] ?? null;
  }

  /** Resolves when nothing of the runs is running any more. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#followed);
  }

  /**
   * Starts a run.
   *
   * @param replay the record of an interrupted run
   * @throws EngineError if the record cannot be replayed, or a definition of the run is missing
   */
  start(run: number, source: RunSource, replay: Replay | null = null): void {
    const record = recordOf(this.#scope);
    const stored = this.#journal.runs.require(run);
    const { status, input } = stored;
    const resolved = agentOfRun(this.#scope, stored);
    if (resolved === null) {
      const message = `The agent "${record.agent}" of this session is no longer in the catalogue`;
      const error = { code: 'unknown_agent', message } as const;
      if (replay === null) return this.#failToStart(run, error);
      // Its actions, and what it asked of people and clients, end first (S10).
      const ended = this.fail(stored, error).catch(async (fault: unknown) => {
        this.#scope.log('internal_error', { fault });
        await this.#tellEnd(run, fault);
      });
      return this.#scope.hold(ended.finally(() => this.next()));
    }
    const isSameHost = this.#begunHere.has(run);
    this.#begunHere.add(run);
    const inputQueue = new InputQueue();
    const begins = replay === null;
    // It continues another branch than the run before it (C4).
    if (begins && this.#journal.variables.tip(run) !== stored.parent) this.#memory.restoreVariables(stored.parent);
    const variables = this.#memory.variablesOf(run, begins);
    const { learned, outcomeCache, feeds } = this.#memory;
    const policies = policiesOfRun(this.#scope, resolved.agent, input);
    const outgoingText = redactionOfRun(this.#scope, resolved.agent.redact, stored);
    if (resolved.agent.memory.facts !== undefined) feeds.expire(MEMORY_FEED);
    const live = startRun(
      {
        ...this.#scope,
        sessionId: record.session_id,
        sessionKey: sessionKey(record),
        owner: record.owner,
        runId: runIdOf(record, run),
        runNumber: run,
        parent: stored.parent,
        retryOf: stored.retryOf,
        source,
        resolved,
        policy: runPolicy(resolved.agent, source.type, input),
        policies,
        outgoingText,
        children: redactedChildren(boundChildren(this.#scope.children, policies), outgoingText),
        publish: (batch) => this.#readers.publish(batch),
        ending: (cancelReason) => {
          this.#steering.passOn(run, cancelReason === null || cancelReason === SUPERSEDED ? null : cancelReason);
          // A cancelled run has no answer.
          if (cancelReason === null) this.#summaries.ended(run, resolved.agent);
        },
        shown: (iteration) => this.#steering.settle(run, iteration),
        ended: ({ status: end }) => {
          const active = this.#active.get(run);
          if (active !== undefined) active.end = end;
          this.#steering.settle(run);
          // It still ran when the next message arrived.
          if (this.#queue.length > 0) this.supersede();
          this.#resolveEnd(run);
          this.next();
          this.#summaries.begin();
        },
        model: this.#scope.modelFor(resolved),
        variables,
        learned,
        outcomeCache,
        feeds,
        record,
        trace: traceOfRun(this.#scope, stored),
        resumed: () => this.resume(run),
        rested: () => this.#rest(run),
        isSameHost,
      },
      inputQueue,
      replay,
    );
    // A run that waited for a person or a client, and got the answer before the interruption, has not answered yet.
    const isAtWork = status === 'running' || status === 'queued' || (status === 'waiting' && !live.isParked());
    const active = new ActiveRun(live, inputQueue, isAtWork ? null : status, this.#scope.hold);
    this.#active.set(run, active);
    if (active.end !== null && live.isAtRest()) live.suspend();
    else active.hold();
    if (active.end !== null) this.#ends.get(run)?.resolve();
    const followed = this.#follow(run, active);
    this.#followed.add(followed);
    void followed.finally(() => this.#followed.delete(followed));
  }

  /**
   * The next message takes the place of what waits for people and clients: those runs end, and background actions of
   * ended runs that wait for them are cancelled (J8, C3).
   */
  supersede(): void {
    const { count } = this.#journal.runs;
    for (const [run, active] of this.#active) {
      if (run === count) continue;
      if (active.end === 'waiting') active.put({ type: 'cancel_requested', reason: SUPERSEDED });
      else if (active.end !== null && active.live.wakeAt() !== null)
        active.put({ type: 'cancel_requested', reason: SUPERSEDED, only: 'waiting' });
    }
  }

  /** A run that waited for people and clients is running again, and other runs wait for it. */
  resume(run: number): void {
    const active = this.#active.get(run);
    if (active === undefined) return;
    if (active.end === 'waiting') {
      active.end = null;
      this.trackEnd(run);
    }
    active.hold();
  }

  /** A run, or what is left of one that has ended, only waits for a person or a client: it keeps neither its host nor a timer. */
  #rest(run: number): void {
    const active = this.#active.get(run);
    if (active?.end == null) return;
    if (active.end === 'waiting') this.#steering.settle(run);
    active.release();
    active.live.suspend();
    // It did not freeze its host; the note's timer would keep the host.
    this.#scope.recoveryQueue.end(workOf(run));
  }

  /** A run is still open in the journal, and nothing continues it: later runs wait until it is recovered. */
  #lose(): void {
    this.#hasLost = true;
    this.#orphaned();
  }

  /** All open runs have an owner again. */
  recovered(): void {
    this.#hasLost = false;
  }

  /** Begins the next queued run, if none is active. */
  next(): void {
    if (this.answering !== null || this.#hasLost) return;
    const next = this.#queue.shift();
    if (next === undefined) return;
    if (next.isRecovered) {
      // It was accepted before the host was lost, perhaps together with the cancel of what waits.
      this.supersede();
      const done = this.#beginRecovered(next);
      this.#starting = { run: next.run, done };
      this.#scope.hold(done);
      return;
    }
    this.#owning(() => {
      this.#journal.runs.start(next.run, this.#scope.clock.now());
      this.#begin(next.run, next.source);
    });
  }

  /** Writes about runs that were taken from the queue. If that fails, they have no owner until they are recovered. */
  #owning<T>(write: () => T): T {
    try {
      return write();
    } catch (fault) {
      this.#lose();
      throw fault;
    }
  }

  /**
   * Ends a run that cannot continue: first its blocks and actions, then the run itself (S10).
   *
   * @param unwritten what readers have of its open blocks from this host; they also have what an earlier one has saved
   */
  async fail(record: RunRecord, error: RunError, unwritten: readonly UnwrittenText[] = []): Promise<void> {
    const at = this.#scope.clock.now();
    const texts = longest([...this.#savedTexts(record), ...unwritten]);
    const outgoingText = redactionOfEnd(this.#scope, record);
    const end = this.#journal.atomically(() => {
      const ended = endAbandonedRun(this.#journal, record, { at, error, texts, outgoingText });
      this.#steering.passOn(record.run, null);
      return ended;
    });
    await this.publish([record.run], end);
    this.#steering.settle(record.run);
  }

  /** None if the record or the definition of the run cannot be read. */
  #savedTexts(record: RunRecord): readonly UnwrittenText[] {
    try {
      const resolved = agentOfRun(this.#scope, record);
      if (resolved === null) return [];
      const outgoingText = redactionOfEnd(this.#scope, record);
      return savedTexts(this.#journal, record, { resolved, ...textOf(record), outgoingText });
    } catch {
      return [];
    }
  }

  /** A run that was active each time its host froze: ends it; the next runs continue. */
  async endFrozen(record: RunRecord, why: string): Promise<void> {
    const { session_id: session } = recordOf(this.#scope);
    const message = `run ${record.runId} of session ${session} is quarantined: ${why}`;
    this.#scope.log('work_quarantined', { run_id: record.runId, message });
    await this.fail(record, { code: 'recovery_exhausted', message: `The run was stopped: ${why}` });
  }

  /** Publishes events and ends once they are durable: first to readers, then to waiters. */
  async publish(runs: readonly number[], batch: readonly SessionEvent[]): Promise<void> {
    await this.#journal.sync();
    if (batch.length > 0) this.#readers.publish(batch);
    else this.#readers.flush(this.#journal.syncedSeq);
    for (const run of runs) this.#resolveEnd(run);
  }

  /** @param cancelReason ends it instead; null: it waits behind all others */
  #addQueued(run: number, cancelReason: string | null): void {
    const source = (): RunSource => sourceOf(this.#scope, this.#journal.runs.require(run), null);
    this.add({ run, source, isRecovered: false }, false);
    if (cancelReason !== null) this.#scope.hold(this.cancel(cancelReason, run));
  }

  #begin(run: number, source: () => RunSource): void {
    try {
      this.start(run, source());
    } catch (fault) {
      if (!(fault instanceof EngineError)) this.#scope.log('internal_error', { fault });
      const code = fault instanceof EngineError ? fault.code : 'internal';
      this.#failToStart(run, { code, message: messageOf(fault) });
    }
  }

  /** Begins a run queued by an earlier host, which may already have begun it and frozen. */
  async #beginRecovered({ run, source }: QueuedRun): Promise<void> {
    try {
      const aside = await this.#recover(run);
      this.#journal.runs.start(run, this.#scope.clock.now());
      if (aside === null) this.#begin(run, source);
      else await this.endFrozen(this.#journal.runs.require(run), aside);
    } catch (fault) {
      // It stays queued, and is recovered again.
      this.#scope.log('internal_error', { fault });
      this.#lose();
      this.#ends.get(run)?.reject(fault);
    } finally {
      this.#starting = null;
      this.next();
    }
  }

  /** Follows a run to its end. */
  async #follow(run: number, active: ActiveRun): Promise<void> {
    let isOver = true;
    try {
      await active.live.drained;
      this.#begunHere.delete(run);
      // If it was recovered, an earlier end of it was not announced.
      this.#steering.settle(run);
    } catch (fault) {
      this.#scope.log('internal_error', { fault });
      this.#active.delete(run);
      try {
        const error = { code: 'internal' as const, message: messageOf(fault) };
        await this.fail(this.#journal.runs.require(run), error, active.live.unwritten());
        this.#begunHere.delete(run);
      } catch (again) {
        this.#scope.log('internal_error', { fault: again });
        isOver = await this.#tellEnd(run, again);
      }
    }
    this.#active.delete(run);
    this.#memory.forgetRun(run);
    this.#scope.recoveryQueue.end(workOf(run));
    active.release();
    active.returnRest();
    try {
      // If it is not over, it is recovered first: later runs need what it still does.
      if (isOver) this.next();
    } catch (fault) {
      // The start cannot be written: the run has no owner until it is recovered.
      this.#scope.log('internal_error', { fault });
    }
  }

  /** Tells the end of a run if it was written before the failures. @returns whether it was; otherwise it has no owner */
  async #tellEnd(run: number, fault: unknown): Promise<boolean> {
    try {
      if (this.#journal.runs.open().some((open) => open.run === run)) throw fault;
      await this.publish([run], []);
      this.#steering.settle(run);
      return true;
    } catch {
      this.#ends.get(run)?.reject(fault);
      // The end cannot be written: readers' streams close without it, and find it in the journal later.
      this.#lose();
      this.#readers.close();
      return false;
    }
  }

  /** Ends a run that could not start; the next runs continue (J3). */
  #failToStart(run: number, error: RunError): void {
    const published = this.publish([run], [this.#close(run, 'agent_failed', { error })]);
    this.#scope.recoveryQueue.end(workOf(run));
    this.#scope.hold(published.finally(() => this.next()));
  }

  /** Writes the end of a run that was not started; published once it is durable. */
  #close<T extends 'agent_failed' | 'agent_cancelled'>(run: number, type: T, data: EventData[T]): SessionEvent {
    const at = this.#scope.clock.now();
    const runId = runIdOf(recordOf(this.#scope), run);
    return this.#journal.atomically(() => {
      const redaction = redactionOfEnd(this.#scope, this.#journal.runs.require(run));
      const entry = outgoingEntry(redaction, type, { data });
      const event = this.#journal.append({ type, runId, iteration: 0, at, ...entry });
      this.#journal.runs.end(run, type === 'agent_failed' ? 'failed' : 'cancelled', at, false);
      return event;
    });
  }

  #resolveEnd(run: number): void {
    this.#ends.get(run)?.resolve();
    this.#ends.delete(run);
    const record = this.#journal.runs.require(run);
    const failure = this.#journal.runFailure(record);
    if (failure !== null) this.#scope.log('run_failed', { run_id: record.runId, ...failure.data.error });
  }
}

/** Of several texts of one block, the longest. */
function longest(texts: readonly UnwrittenText[]): UnwrittenText[] {
  const known = new Map<number, UnwrittenText>();
  for (const text of texts) {
    if (text.content.length >= (known.get(text.segment)?.content.length ?? 0)) known.set(text.segment, text);
  }
  return [...known.values()];
}
