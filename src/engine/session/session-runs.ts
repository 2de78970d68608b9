/**
 * The runs of a session: one after the other, each from its start to its end.
 *
 * Owns the runs in memory, the queue behind the one that is going on, and who waits for an end. Does not own the flow
 * of a run (run/run.ts), what a run is made of (run-setup.ts), nor what an earlier host left (session-recovery.ts).
 *
 * Invariants:
 *  1. One run at a time answers; fire_and_forget actions of earlier ones may still be at work (S4).
 *  2. A run that was taken from the queue starts or ends: none stays without an owner (J3).
 *  3. Nobody is told of an end that is not on disk (J1).
 */
import type { ActionKey } from '../../domain/action.ts';
import { EngineError, messageOf } from '../../domain/errors.ts';
import type { EventData, SessionEvent } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord } from '../../domain/session.ts';
import { runIdOf } from '../../journal/run-id.ts';
import { endAbandonedRun } from '../replay/abandoned-run.ts';
import type { Replay } from '../replay/replay.ts';
import { Inbox } from '../run/inbox.ts';
import { startRun } from '../run/run.ts';
import type { RunSource } from '../run/run-context.ts';
import { ActiveRun } from './active-run.ts';
import type { Broadcaster } from './broadcaster.ts';
import { agentOfRun, recordOf, runPolicy } from './run-setup.ts';
import type { SessionMemory } from './session-memory.ts';
import type { SessionScope } from './session-ports.ts';

export interface QueuedRun {
  readonly run: number;
  readonly source: () => RunSource;
  /** An earlier host left it queued. */
  readonly isLeft: boolean;
}

/** The name of a run in notes about recovered work (recovery-queue.ts). */
export const workOf = (run: number): string => `run ${run}`;

export class SessionRuns {
  readonly #scope: SessionScope;
  readonly #journal: SessionScope['journal'];
  readonly #readers: Broadcaster;
  readonly #memory: SessionMemory;
  readonly #recover: (run: number) => Promise<string | null>;
  readonly #active = new Map<number, ActiveRun>();
  readonly #queue: QueuedRun[] = [];
  /** A run that an earlier host left queued, on its way to its start. */
  #starting: { readonly run: number; readonly done: Promise<void> } | null = null;
  readonly #ends = new Map<number, PromiseWithResolvers<void>>();
  readonly #followed = new Set<Promise<void>>();

  /** @param recover asks whether a run that an earlier host left may begin; resolves to why not, or to null */
  constructor(
    scope: SessionScope,
    readers: Broadcaster,
    memory: SessionMemory,
    recover: (run: number) => Promise<string | null>,
  ) {
    this.#scope = scope;
    this.#journal = scope.journal;
    this.#readers = readers;
    this.#memory = memory;
    this.#recover = recover;
  }

  /** Whether something is still at work: a run, or a fire_and_forget action of an ended one. */
  get busy(): boolean {
    return this.#queue.length > 0 || this.#starting !== null || this.active.some(({ isHeld }) => isHeld);
  }

  get active(): readonly ActiveRun[] {
    return [...this.#active.values()];
  }

  /** Whether the run is in memory, or in the queue. */
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

  /** @throws EngineError `queue_full` */
  requireRoom(): void {
    if (this.#queue.length >= limits.queuedMessages) {
      throw new EngineError('queue_full', `${limits.queuedMessages} messages are waiting already`);
    }
  }

  /** The run that waits for this approval, and the action that it is about; null when none does. */
  waitingFor(approvalId: string): { readonly run: number; readonly active: ActiveRun; readonly key: ActionKey } | null {
    for (const [run, active] of this.#active) {
      const key = active.live.approvalKey(approvalId);
      if (key !== null) return { run, active, key };
    }
    return null;
  }

  /** Queues the run, or begins it where it was not created as queued. */
  add(queued: QueuedRun, begin: boolean): void {
    this.expect(queued.run);
    if (begin) this.#begin(queued.run, queued.source);
    else this.#queue.push(queued);
  }

  /** The end of this run can be waited for from here on. */
  expect(run: number): void {
    const end = Promise.withResolvers<void>();
    // Often nothing waits for it; a fault is in the log.
    end.promise.catch(() => undefined);
    this.#ends.set(run, end);
  }

  /** Resolves when the run has ended: at once, when it has. */
  async ended(run: number): Promise<void> {
    await this.#ends.get(run)?.promise;
  }

  /** Cancels everything and waits for the ends. @returns the run that was going on, or null */
  async cancel(reason: string): Promise<number | null> {
    if (this.#starting !== null) await this.#starting.done;
    const active = [...this.#active];
    for (const [, run] of active) run.put({ type: 'cancel_requested', reason });
    const queued = this.#queue.splice(0).map(({ run }) => run);
    const batch = queued.map((run) => {
      this.#journal.runs.start(run, this.#scope.clock.now());
      return this.#close(run, 'agent_cancelled', { reason });
    });
    await this.tell(queued, batch);
    await Promise.all(active.map(async ([run]) => await this.ended(run)));
    return active.at(-1)?.[0] ?? null;
  }

  /** Resolves when nothing of the runs is at work any more. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#followed);
  }

  /**
   * Starts a run.
   *
   * @param replay the record of a run that a crash broke off
   * @throws EngineError where the run cannot go through its record, or what it is made of is gone
   */
  start(run: number, source: RunSource, replay: Replay | null = null): void {
    const record = recordOf(this.#scope);
    const { status, input } = this.#journal.runs.require(run);
    const resolved = agentOfRun(this.#scope, this.#journal.runs.require(run));
    if (resolved === null) {
      const message = `The agent "${record.agent}" of this session is not in the catalogue any more`;
      return this.#fail(run, { code: 'unknown_agent', message });
    }
    const inbox = new Inbox();
    const { variables, learned, earlier, feeds } = this.#memory;
    const live = startRun(
      {
        ...this.#scope,
        sessionId: record.session_id,
        owner: record.owner,
        runId: runIdOf(record.session_id, run),
        runNumber: run,
        source,
        resolved,
        policy: runPolicy(resolved.agent, source.type, input),
        publish: (batch) => this.#readers.publish(batch),
        ended: ({ status: end }) => {
          const active = this.#active.get(run);
          if (active !== undefined) {
            active.end = end;
            if (end === 'waiting') {
              active.release();
              active.live.rest();
            }
          }
          this.#resolveEnd(run);
          this.next();
        },
        model: this.#scope.modelFor(resolved),
        variables,
        learned,
        earlier,
        feeds,
        record,
        resumed: () => this.resume(run),
      },
      inbox,
      replay,
    );
    // One that waited for a person, and had the answer when it broke off, has not answered yet.
    const isAtWork = status === 'running' || status === 'queued' || (status === 'waiting' && !live.isParked());
    const active = new ActiveRun(live, inbox, isAtWork ? null : status, this.#scope.hold);
    this.#active.set(run, active);
    if (active.end === 'waiting') live.rest();
    else active.hold();
    if (active.end !== null) this.#ends.get(run)?.resolve();
    const followed = this.#follow(run, active);
    this.#followed.add(followed);
    void followed.finally(() => this.#followed.delete(followed));
  }

  /** A run that waited for a person has not answered after all: it is at work again, and others wait for it. */
  resume(run: number): void {
    const active = this.#active.get(run);
    if (active === undefined) return;
    if (active.end === 'waiting') {
      active.end = null;
      this.expect(run);
    }
    active.hold();
  }

  /** Begins the next run of the queue, where none is going on. */
  next(): void {
    if (this.answering !== null) return;
    const next = this.#queue.shift();
    if (next === undefined) return;
    if (next.isLeft) {
      const done = this.#beginLeft(next);
      this.#starting = { run: next.run, done };
      this.#scope.hold(done);
      return;
    }
    this.#journal.runs.start(next.run, this.#scope.clock.now());
    this.#begin(next.run, next.source);
  }

  /** Ends a run that cannot go on: its actions get their ends, then it gets its own (S10). */
  async giveUp(record: RunRecord, error: { readonly code: string; readonly message: string }): Promise<void> {
    await this.tell([record.run], endAbandonedRun(this.#journal, record, this.#scope.clock.now(), error));
  }

  /** A run that was under way each time that its host froze: it ends, and the runs behind it go on. */
  async setAside(record: RunRecord, why: string): Promise<void> {
    this.#scope.log(`run ${record.runId} of session ${recordOf(this.#scope).session_id} is set aside: ${why}`);
    await this.giveUp(record, { code: 'recovery_exhausted', message: `The run is set aside: ${why}` });
  }

  /** Tells of events and ends once they are on disk: readers first, then those who wait for an end. */
  async tell(runs: readonly number[], batch: readonly SessionEvent[]): Promise<void> {
    await this.#journal.sync();
    if (batch.length > 0) this.#readers.publish(batch);
    for (const run of runs) this.#resolveEnd(run);
  }

  #begin(run: number, source: () => RunSource): void {
    try {
      this.start(run, source());
    } catch (fault) {
      if (!(fault instanceof EngineError)) this.#scope.log(fault);
      const code = fault instanceof EngineError ? fault.code : 'internal';
      this.#fail(run, { code, message: messageOf(fault) });
    }
  }

  /** Begins a run that an earlier host left queued: that host may have begun it, too, and frozen. */
  async #beginLeft({ run, source }: QueuedRun): Promise<void> {
    try {
      const aside = await this.#recover(run);
      this.#journal.runs.start(run, this.#scope.clock.now());
      if (aside === null) this.#begin(run, source);
      else await this.setAside(this.#journal.runs.require(run), aside);
    } catch (fault) {
      // The next host finds it queued, and begins it.
      this.#scope.log(fault);
      this.#ends.get(run)?.reject(fault);
    } finally {
      this.#starting = null;
      this.next();
    }
  }

  /** Follows a run to its end, whatever it is. */
  async #follow(run: number, active: ActiveRun): Promise<void> {
    try {
      await active.live.drained;
    } catch (fault) {
      this.#scope.log(fault);
      this.#active.delete(run);
      try {
        await this.giveUp(this.#journal.runs.require(run), { code: 'internal', message: messageOf(fault) });
      } catch (again) {
        this.#ends.get(run)?.reject(again);
        this.#scope.log(again);
        // The end cannot be written: readers' streams end without it, and find it in the journal later.
        this.#readers.close();
      }
    }
    this.#active.delete(run);
    this.#scope.recoveryQueue.end(workOf(run));
    active.release();
    this.next();
  }

  /** Ends a run that could not start; the runs behind it go on (J3). */
  #fail(run: number, error: EventData['agent_failed']['error']): void {
    const told = this.tell([run], [this.#close(run, 'agent_failed', { error })]);
    this.#scope.hold(told.finally(() => this.next()));
  }

  /** Writes the end of a run that has no engine; to be told once it is on disk. */
  #close<T extends 'agent_failed' | 'agent_cancelled'>(run: number, type: T, data: EventData[T]): SessionEvent {
    const at = this.#scope.clock.now();
    const runId = runIdOf(recordOf(this.#scope).session_id, run);
    const event = this.#journal.append({ type, runId, iteration: 0, at, data });
    this.#journal.runs.end(run, type === 'agent_failed' ? 'failed' : 'cancelled', at, false);
    return event;
  }

  #resolveEnd(run: number): void {
    this.#ends.get(run)?.resolve();
    this.#ends.delete(run);
    this.#scope.runEnded(this.#journal.runs.require(run));
  }
}
