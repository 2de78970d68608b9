/**
 * One session: its runs one after the other, its readers, its variables.
 *
 * Owns the queue of messages and the live runs. Does not own the flow of a run (run.ts), the wire
 * (http/) or the platform (durable/).
 *
 * Invariants:
 *  1. One run at a time answers; fire_and_forget actions of earlier ones may still be at work (S4).
 *  2. A run that is in the journal as unfinished has an owner here, or is ended by `recover` (J3).
 *  3. A reader's leaving changes nothing (J5).
 *  4. What is checked of a message and the creation of its run happen in one synchronous stretch.
 *  5. Nobody is told of an end that is not on disk (J1).
 */
import { EngineError, messageOf } from '../../domain/errors.ts';
import type { SessionEvent } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition, FeedDefinition, ResolvedAgent, ResolvedWorkflow } from '../../domain/manifest.ts';
import { runIdOf, runNumberOf } from '../../journal/journal.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ChildBudget, ChildRequest } from '../../domain/ports.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import { Pacer } from '../../domain/work.ts';
import type { RunPolicy } from '../../scheduler/types.ts';
import { endAbandonedRun } from '../replay/abandoned-run.ts';
import { approvalClosed, approvalView } from '../actions/approval-view.ts';
import type { ApprovalView } from '../actions/approval-view.ts';
import { readConversation } from '../generation/conversation.ts';
import { OutcomeCache } from '../actions/outcome-cache.ts';
import { fetchFeed } from '../feeds/feed-sources.ts';
import { Feeds, viewJson } from '../feeds/feeds.ts';
import type { FetchFeed } from '../feeds/feeds.ts';
import type { RunInput } from '../run/run-input.ts';
import { LearnedDurations } from '../actions/learned-durations.ts';
import { resolveAgentVariables } from './resolve-agent-variables.ts';
import { Broadcaster } from './broadcaster.ts';
import type { EventListener } from './broadcaster.ts';
import { Inbox } from '../run/inbox.ts';
import { redactingExecutors } from './redact.ts';
import type { Redactor } from './redact.ts';
import { Replay } from '../replay/replay.ts';
import type { RecoveryQueue } from '../replay/recovery-queue.ts';
import { startRun } from '../run/run.ts';
import type { LiveRun } from '../run/run.ts';
import type { RunContext, RunEnd, RunSource } from '../run/run-context.ts';
import { SessionReading } from './session-reading.ts';
import { agentOfWorkflow } from '../workflow/workflow-agent.ts';
import { sessionFull } from './session-full.ts';
import { checkVariables, SessionVariables } from './session-variables.ts';

/** What a session needs of the outside world; the rest of a run's context it makes itself. */
export interface SessionPorts extends Pick<
  RunContext,
  | 'clock'
  | 'share'
  | 'random'
  | 'newApprovalId'
  | 'executors'
  | 'fetch'
  | 'readHtml'
  | 'runner'
  | 'edgeRelics'
  | 'children'
> {
  readonly journal: Journal;
  /** Notes about work that an earlier host left (J2). */
  readonly recoveryQueue: Pick<RecoveryQueue, 'take' | 'end' | 'forgive'>;
  /**
   * Looks up what the session's agent or workflow means now and keeps it for runs that start with it (M4).
   *
   * @returns what `resolve` and `workflow` find it by; null when nothing has to be kept
   */
  readonly pin: (record: SessionRecord) => Promise<string | null>;
  readonly resolve: (agent: string, pin: string | null) => ResolvedAgent | null;
  readonly workflow: (name: string, pin: string | null) => ResolvedWorkflow | null;
  readonly modelFor: (resolved: ResolvedAgent) => RunContext['model'];
  /** Keeps the host alive while the promise is pending (J2). */
  readonly hold: (work: Promise<unknown>) => void;
  /** How long the session is kept after it was last heard of (H1). Default: `limits.sessionExpiryMs`. */
  readonly expiryMs?: number;
  /** Least period of a periodic feed (F3). Default: `limits.feedMinMs`. */
  readonly feedMinMs?: number;
  /** Takes secrets of the environment out of a text (X3). */
  readonly redact: Redactor;
  /** Told of faults that are ours. */
  readonly log: (fault: unknown) => void;
  /** Told when a run has ended. */
  readonly runEnded: (run: RunRecord) => void;
}

export interface MessageRequest {
  readonly content: string;
  readonly ifBusy: 'queue' | 'reject';
  readonly tokens: boolean;
  readonly idempotencyKey: string | null;
}

interface ActiveRun {
  readonly live: LiveRun;
  readonly inbox: Inbox;
  /** Keeps the host while the run is at work; null while it waits for a person (J8). */
  held: PromiseWithResolvers<void> | null;
  /** How it ended; null while it has not answered yet. */
  end: RunEnd['status'] | null;
}

export class Session {
  readonly #ports: SessionPorts & Pick<RunContext, 'pacer'>;
  readonly #journal: Journal;
  readonly #hub = new Broadcaster();
  readonly #active = new Map<number, ActiveRun>();
  readonly #waiting: { readonly run: number; readonly source: () => RunSource; readonly left: boolean }[] = [];
  /** A run that an earlier host left queued, on its way to its start. */
  #beginning: { readonly run: number; readonly done: Promise<void> } | null = null;
  /** What it holds is about to be deleted: nothing more is taken. */
  #closed = false;
  /** Set once what an earlier host left has been taken up. */
  #recovering: Promise<void> | null = null;
  #hasTakenUp = false;
  /** Resolves when something of it has to wait for its place among suspects. */
  readonly #delayed = Promise.withResolvers<void>();
  /** Feeds whose first refresh on this host has been noted. */
  readonly #notedFeeds = new Set<string>();
  /** Approvals that are being decided about: the decision is not on disk. */
  readonly #decided = new Set<string>();
  readonly #ends = new Map<number, PromiseWithResolvers<void>>();
  readonly #followed = new Set<Promise<void>>();
  #learned: LearnedDurations | null = null;
  readonly #earlier: OutcomeCache;
  readonly #feeds: Feeds;
  #variables: SessionVariables | null = null;

  constructor(ports: SessionPorts) {
    const executors = redactingExecutors(ports.executors, ports.redact);
    this.#ports = { ...ports, executors, pacer: new Pacer(ports.share) };
    this.#journal = ports.journal;
    this.#earlier = new OutcomeCache(ports.journal, ports.clock);
    this.#feeds = new Feeds(ports.journal, ports.clock, ports.feedMinMs ?? limits.feedMinMs, (data) =>
      this.#feedChanged(data),
    );
  }

  /** @throws EngineError `unknown_session` when there is none */
  get record(): SessionRecord {
    const { record } = this.#journal;
    if (record === null) throw new EngineError('unknown_session', 'There is no session with this id');
    return record;
  }

  get exists(): boolean {
    return this.#journal.record !== null;
  }

  /** Whether something is still at work: a run, or a fire_and_forget action of an ended one. */
  get busy(): boolean {
    return (
      this.#waiting.length > 0 ||
      this.#beginning !== null ||
      [...this.#active.values()].some(({ held }) => held !== null)
    );
  }

  get lastSeq(): number {
    return this.#journal.lastSeq;
  }

  async create(record: SessionRecord, state: JsonObject): Promise<void> {
    if (this.exists) throw new EngineError('invalid_request', 'This session exists already');
    // Before anything is written: a session is there whole, or not at all.
    checkVariables(state);
    this.#journal.create(record);
    for (const [key, value] of Object.entries(state)) this.#session().set(key, value);
    await this.#journal.sync();
  }

  /**
   * Takes a message: starts its run, or queues it behind the one that is going on (H1).
   *
   * @throws EngineError `run_in_progress`, `queue_full`, `session_full`, `idempotency_mismatch`; `invalid_request` where a
   *   workflow runs
   */
  async message(request: MessageRequest): Promise<RunRecord> {
    const { content, tokens, idempotencyKey } = request;
    await this.recover();
    const { workflow } = this.record;
    if (workflow !== undefined) {
      const message = `This session is a run of the workflow "${workflow}": nobody in it answers messages`;
      throw new EngineError('invalid_request', message);
    }
    const manifests = await this.#ports.pin(this.record);
    if (idempotencyKey !== null) {
      const earlier = this.#journal.runByIdempotencyKey(idempotencyKey);
      if (earlier !== null) {
        if (earlier.input['content'] === content) return earlier;
        throw new EngineError(
          'idempotency_mismatch',
          `Idempotency-Key "${idempotencyKey}" was used for another message (run ${earlier.runId})`,
          { run_id: earlier.runId },
        );
      }
    }
    if (this.#journal.full) throw new EngineError('session_full', sessionFull('takes no further message'));
    for (const active of this.#active.values()) {
      if (active.end === 'waiting')
        this.#put(active, { type: 'cancel_requested', reason: 'a new message came instead of an approval' });
    }
    const current = this.#answering();
    if (current !== null && request.ifBusy === 'reject') {
      const runId = runIdOf(this.record.session_id, current);
      throw new EngineError('run_in_progress', `Run ${runId} has not ended yet`, { run_id: runId });
    }
    if (this.#waiting.length >= limits.queuedMessages) {
      throw new EngineError('queue_full', `${limits.queuedMessages} messages are waiting already`);
    }
    return await this.#submit({ type: 'message', content, tokens, manifests }, idempotencyKey, null);
  }

  /** Runs protocol text without a model; `text` is null when the text streams in and is not known yet. */
  async execute(chunks: AsyncIterable<string>, text: string | null): Promise<RunRecord> {
    await this.recover();
    const manifests = await this.#ports.pin(this.record);
    const input: JsonObject = text === null ? { type: 'stream' } : { type: 'text', text };
    return await this.#submit({ ...input, manifests }, null, chunks);
  }

  /** Starts the one run of a child, or finds it when its parent asks again (M7). */
  async child({ kind, message, inputs, budget }: ChildRequest): Promise<RunRecord> {
    await this.recover();
    const manifests = await this.#ports.pin(this.record);
    const known = this.#journal.run(1);
    if (known !== null) return known;
    const input: JsonObject =
      kind === 'agent' ? { type: 'message', content: message, tokens: false } : { type: 'workflow', inputs };
    return await this.#submit({ ...input, budget: budget as JsonObject | null, manifests }, null, null);
  }

  /** Runs the session's workflow (M6). */
  async workflow(inputs: JsonObject): Promise<RunRecord> {
    await this.recover();
    const manifests = await this.#ports.pin(this.record);
    return await this.#submit({ type: 'workflow', inputs, manifests }, null, null);
  }

  /** Cancels the run that is going on and everything that waits behind it (J5). Returns the run's id. */
  async cancel(reason: string): Promise<string | null> {
    await this.recover();
    if (this.#beginning !== null) await this.#beginning.done;
    const active = [...this.#active];
    for (const [, run] of active) this.#put(run, { type: 'cancel_requested', reason });
    const waiting = this.#waiting.splice(0).map(({ run }) => run);
    const batch = waiting.map((run) => {
      this.#journal.startRun(run, this.#ports.clock.now());
      return this.#close(run, 'agent_cancelled', { reason });
    });
    await this.#tell(waiting, batch);
    await Promise.all(active.map(([run]) => this.#ends.get(run)?.promise));
    const last = active.at(-1);
    return last === undefined ? null : runIdOf(this.record.session_id, last[0]);
  }

  /**
   * Decides about an action that waits for a person; resolves when the decision is on disk (J1). The first
   * decision counts.
   *
   * @throws EngineError `unknown_approval`; `approval_closed` where another decision came first, or the end of the
   *   question
   */
  async resolveApproval(approvalId: string, approved: boolean, note: string | null): Promise<void> {
    for (const [run, active] of this.#active) {
      const key = active.live.approvalKey(approvalId);
      if (key === null) continue;
      if (this.#decided.has(approvalId)) throw approvalClosed(approvalId, 'deciding');
      this.#decided.add(approvalId);
      this.#goOn(run, active);
      try {
        const counts = await new Promise<boolean>((told) => {
          active.inbox.put({ type: 'approval_resolved', key, approved, note, told });
          // A run that ends first was not told.
          active.live.drained.catch(() => undefined).finally(() => told(false));
        });
        if (counts) return;
        break;
      } finally {
        this.#decided.delete(approvalId);
      }
    }
    throw approvalClosed(approvalId, this.approval(approvalId).status);
  }

  /**
   * What a person is asked, or was: the whole call, as it is executed (J8).
   *
   * @throws EngineError `unknown_approval`
   */
  approval(approvalId: string): ApprovalView {
    const now = this.#ports.clock.now();
    const open = [...this.#active.values()].some(({ live }) => live.approvalKey(approvalId) !== null);
    const found = approvalView(this.#journal, approvalId, now, open);
    if (found !== null) return found;
    throw new EngineError(
      'unknown_approval',
      `No approval of this session has the id "${approvalId.slice(0, limits.excerptChars)}"`,
    );
  }

  /** A page of events after `after` that are on disk, oldest first; empty when there are no more. */
  events(after: number): readonly SessionEvent[] {
    return this.#journal.page(after);
  }

  listen(listener: EventListener): () => void {
    if (this.#closed) void Promise.resolve().then(() => listener(null));
    return this.#hub.listen(listener);
  }

  /** Whole-text patches of every open block: what a reader who has just caught up still lacks (J4). */
  openBlocks(): SessionEvent[] {
    return [...this.#active.values()].flatMap(({ live }) => live.catchUp());
  }

  /** Resolves when the run has ended: at once, when it has. */
  async ended(run: number): Promise<void> {
    await this.#ends.get(run)?.promise;
  }

  /** @throws EngineError `unknown_run` */
  run(runId: string): RunRecord {
    const run = runId === runIdOf(this.record.session_id, runNumberOf(runId)) ? runNumberOf(runId) : 0;
    const found = this.#journal.run(run);
    if (found === null)
      throw new EngineError('unknown_run', `This session has no run "${runId.slice(0, limits.excerptChars)}"`);
    return found;
  }

  get runCount(): number {
    return this.#journal.runCount;
  }

  /** Runs in order: the newest `limit` of them, or of those before the run number `before`. */
  runs(limit?: number, before?: number): readonly RunRecord[] {
    return this.#journal.runs(limit, before);
  }

  /** The session as it is now, to be read in slices. */
  read(): SessionReading {
    return new SessionReading(this.#journal, this.record, this.#ports.share.another(), () => this.#closed);
  }

  /** Everything of the session that is on disk, as JSON Lines. */
  export(): AsyncIterable<string> {
    return this.read().export(this.#session().snapshot());
  }

  /** The session's variables as one JSON document, in pieces. */
  state(): AsyncIterable<string> {
    return this.read().state(this.#session().snapshot());
  }

  /**
   * The completed runs as training examples, as JSON Lines, for an agent that is still in the catalogue.
   *
   * @throws EngineError `unknown_agent`
   */
  transcript(): AsyncIterable<string> {
    const { record } = this;
    const last = this.#journal.runs(1)[0];
    // A workflow's steps are what its author wrote: there is nothing to learn from.
    const resolved =
      record.workflow !== undefined || last === undefined ? null : this.#ports.resolve(record.agent, pinOf(last));
    if (resolved !== null) return this.read().transcript(resolveAgentVariables(resolved, record), this.#ports.redact);
    if (record.workflow !== undefined || last === undefined) return nothing();
    throw new EngineError('unknown_agent', `The agent "${record.agent}" is not in the catalogue any more`);
  }

  /**
   * After the host came back: every run that an earlier host left unfinished goes on where its record
   * ends, in the order in which they came (J2, J3). One whose record cannot be gone through again, or
   * that was taken up too often, is ended.
   *
   * @param purpose who only reads does not wait for work that has to wait for its own turn
   */
  async recover(purpose: 'to act' | 'to read' = 'to act'): Promise<void> {
    if (!this.exists) return;
    this.#recovering ??= this.#takeUp().catch((fault: unknown) => {
      // The next touch tries again.
      this.#recovering = null;
      throw fault;
    });
    await (purpose === 'to act' ? this.#recovering : Promise.race([this.#recovering, this.#delayed.promise]));
  }

  async #takeUp(): Promise<void> {
    for (const record of this.#journal.openRuns()) {
      if (this.#active.has(record.run) || this.#waiting.some(({ run }) => run === record.run)) continue;
      const source = (): RunSource => this.#sourceOf(record, null);
      this.#awaited(record.run);
      if (record.status === 'queued') {
        this.#waiting.push({ run: record.run, source, left: true });
        continue;
      }
      const aside = await this.#take(workOf(record.run));
      if (aside !== null) {
        await this.#setAside(record, aside);
        continue;
      }
      try {
        const replay = new Replay(this.#journal, record);
        if (replay.recoveries >= limits.recoveries) {
          const message = `The host was restarted ${replay.recoveries} times during this run: it is given up`;
          await this.#giveUp(record, { code: 'recovery_exhausted', message });
        } else this.#start(record.run, source(), replay.empty ? null : replay);
        // Waiting for a person is no work that could freeze its host.
        if (this.#active.get(record.run)?.end === 'waiting') this.#ports.recoveryQueue.end(workOf(record.run));
      } catch (fault) {
        this.#ports.log(fault);
        await this.#giveUp(record, {
          code: 'interrupted',
          message: `The session was restarted while this run was going on, and it cannot go on: ${messageOf(fault)}`,
        });
      }
    }
    this.#hasTakenUp = true;
    this.#next();
  }

  /** @returns why the work is not taken up, where it froze its hosts; null when it is */
  async #take(work: string): Promise<string | null> {
    return await this.#ports.recoveryQueue.take(work, () => this.#delayed.resolve());
  }

  /** A run that was under way each time that its host froze: it ends, and what waits behind it goes on. */
  async #setAside(record: RunRecord, why: string): Promise<void> {
    this.#ports.log(`run ${record.runId} of session ${this.record.session_id} is set aside: ${why}`);
    await this.#giveUp(record, { code: 'recovery_exhausted', message: `The run is set aside: ${why}` });
  }

  /** Ends a run that nobody can go on with: its actions get their ends, then it gets its own (S10). */
  async #giveUp(record: RunRecord, error: { readonly code: string; readonly message: string }): Promise<void> {
    await this.#tell([record.run], endAbandonedRun(this.#journal, record, this.#ports.clock.now(), error));
  }

  /**
   * When the host must be woken, epoch milliseconds: to watch over what is at work, for an approval that
   * expires, for a periodic feed, for the session's own end; null for no session (J2, J8, F3).
   */
  nextWake(): number | null {
    if (!this.exists) return null;
    const now = this.#ports.clock.now();
    const times = [this.expiresAt];
    // What an earlier host left has no owner yet: it must be woken for, whatever becomes of this host.
    const isLeft = !this.#hasTakenUp && this.#journal.openRuns().length > 0;
    if (this.busy || isLeft) times.push(now + limits.watchdogMs);
    for (const { live, end } of this.#active.values()) if (end === 'waiting') times.push(live.wakeAt() ?? Infinity);
    if (!this.#feedsRest(now)) times.push(this.#dueFeeds()?.next ?? Infinity);
    return Math.min(...times);
  }

  /** When nobody has said anything for so long that the session ends (H1). */
  get expiresAt(): number {
    return this.#lastHeard() + (this.#ports.expiryMs ?? limits.sessionExpiryMs);
  }

  /** What the alarm has come for: runs go on, approvals expire, periodic feeds are refreshed. */
  async wake(): Promise<void> {
    await this.recover();
    const now = this.#ports.clock.now();
    for (const active of this.#active.values()) {
      if (active.end === 'waiting' && (active.live.wakeAt() ?? Infinity) <= now) this.#hold(active);
    }
    if (!this.exists || this.#feedsRest(now)) return;
    const due = this.#dueFeeds();
    if (due === null) return;
    await Promise.all(
      due.now.map(async (feed) => {
        if (await this.#mayRefresh(feed)) await this.#feeds.refresh(feed, this.#fetchFeed(due.resolved));
      }),
    );
    await this.#journal.sync();
  }

  /** Whether a feed's clock may refresh it: not one that froze its hosts, until somebody speaks in the session again. */
  async #mayRefresh(feed: FeedDefinition): Promise<boolean> {
    if (this.#notedFeeds.has(feed.id)) return true;
    const aside = await this.#take(`${FEED_WORK}${feed.id}`);
    if (aside !== null) {
      const isNews = this.#feeds.refuse(feed, `recovery_exhausted: set aside until the next message: ${aside}`);
      if (isNews) this.#ports.log(`feed "${feed.id}" of session ${this.record.session_id} is set aside: ${aside}`);
      return false;
    }
    this.#notedFeeds.add(feed.id);
    return true;
  }

  /** The session's feeds as they stand (F1). */
  feeds(): JsonObject[] {
    const resolved = this.#current();
    return resolved === null ? [] : this.#feeds.list(resolved).map(viewJson);
  }

  #lastHeard(): number {
    const last = this.#journal.runs(1)[0];
    return Math.max(this.record.created_at, last?.startedAt ?? 0, last?.endedAt ?? 0);
  }

  /** No periodic feed is refreshed where nobody listens, or where there is no room for what it brings (F3). */
  #feedsRest(now: number): boolean {
    return this.#journal.full || (!this.busy && now - this.#lastHeard() >= limits.feedIdleMs);
  }

  /** What the session's agent means now: as its latest run saw it. */
  #current(): ResolvedAgent | null {
    const { record } = this;
    if (record.workflow !== undefined) return null;
    return this.#ports.resolve(record.agent, pinOf(this.#journal.runs(1)[0]));
  }

  #dueFeeds(): (ReturnType<Feeds['due']> & { readonly resolved: ResolvedAgent }) | null {
    const resolved = this.#current();
    return resolved === null ? null : { ...this.#feeds.due(resolved), resolved };
  }

  #fetchFeed(resolved: ResolvedAgent): FetchFeed {
    const ports = {
      ...this.#ports,
      record: this.record,
      resolved: resolveAgentVariables(resolved, this.record),
      model: this.#ports.modelFor(resolved),
      variables: this.#session(),
      used: (): void => undefined,
      moment: null,
    };
    return (feed, signal) => fetchFeed(feed, ports, signal);
  }

  /** Readers hear of a feed through the run that is at work, else directly, in the order of the journal. */
  #feedChanged(data: JsonObject): void {
    for (const { held, inbox } of this.#active.values()) {
      if (held !== null) return inbox.put({ type: 'feed', data });
    }
    const runId = runIdOf(this.record.session_id, this.#journal.runs(1)[0]?.run ?? 0);
    const at = this.#ports.clock.now();
    const event = this.#journal.append({ type: 'context_feed_updated', runId, iteration: 0, at, data });
    this.#tell([], [event]).catch((fault: unknown) => this.#ports.log(fault));
  }

  /** Ends everything for good: what runs is cancelled, and every reader's stream closes. */
  async dispose(reason: string): Promise<void> {
    await this.cancel(reason);
    await Promise.allSettled(this.#followed);
    this.#hub.close();
  }

  /** The same, before what it holds is deleted: no message is taken from here on, and no reader stays. */
  async close(reason: string): Promise<void> {
    this.#closed = true;
    await this.dispose(reason);
  }

  /** Whether nothing of this run will come any more, so that a reader who has it all may go. */
  hasEnded(runId: string): boolean {
    const run = this.run(runId);
    return run.status !== 'queued' && run.status !== 'running' && !this.#active.has(run.run);
  }

  async #submit(
    input: JsonObject,
    idempotencyKey: string | null,
    chunks: AsyncIterable<string> | null,
  ): Promise<RunRecord> {
    if (this.#closed) throw new EngineError('unknown_session', 'There is no session with this id');
    this.#ports.recoveryQueue.forgive(FEED_WORK);
    const busy = this.#answering() !== null;
    const now = this.#ports.clock.now();
    const record = this.#journal.createRun(input, now, busy ? 'queued' : 'running', idempotencyKey);
    const source = (): RunSource => this.#sourceOf(record, chunks);
    this.#awaited(record.run);
    if (busy) this.#waiting.push({ run: record.run, source, left: false });
    else this.#begin(record.run, source);
    await this.#journal.sync();
    return record;
  }

  /** Starts a run; ends it where what it is made of is not there any more: none stays without an owner (J3). */
  #begin(run: number, source: () => RunSource): void {
    try {
      this.#start(run, source());
    } catch (fault) {
      if (!(fault instanceof EngineError)) this.#ports.log(fault);
      const code = fault instanceof EngineError ? fault.code : 'internal';
      const error = { code, message: messageOf(fault) };
      this.#ports.hold(this.#tell([run], [this.#close(run, 'agent_failed', { error })]).finally(() => this.#next()));
    }
  }

  #awaited(run: number): void {
    const end = Promise.withResolvers<void>();
    // Often nobody waits for it; a fault is told by the log.
    end.promise.catch(() => undefined);
    this.#ends.set(run, end);
  }

  /** @param chunks of text that is arriving; null where there is none, or where a crash took it */
  #sourceOf(record: RunRecord, chunks: AsyncIterable<string> | null): RunSource {
    const { run, input } = record;
    const { content, text, tokens, type } = input;
    if (type === 'workflow') {
      const { workflow } = this.#requireWorkflow(record);
      return { type, definition: workflow, inputs: isJsonObject(input['inputs']) ? input['inputs'] : {} };
    }
    if (typeof content === 'string') {
      const history = readConversation(this.#journal, run);
      return { type: 'model', content, tokens: tokens === true, history };
    }
    const whole = typeof text === 'string' ? text : null;
    return { type: 'text', chunks: chunks ?? restOf(whole), text: whole };
  }

  /** The run that has not answered yet, or null. */
  #answering(): number | null {
    for (const [run, { end }] of this.#active) if (end === null) return run;
    return this.#beginning?.run ?? null;
  }

  #resolved({ agent, workflow }: SessionRecord, run: RunRecord): ResolvedAgent | null {
    return workflow === undefined
      ? this.#ports.resolve(agent, pinOf(run))
      : agentOfWorkflow(this.#requireWorkflow(run));
  }

  /** @throws EngineError `unknown_agent` when the session's workflow is not in the catalogue any more */
  #requireWorkflow(run: RunRecord): ResolvedWorkflow {
    const { workflow = '' } = this.record;
    const found = this.#ports.workflow(workflow, pinOf(run));
    if (found !== null) return found;
    throw new EngineError('unknown_workflow', `No workflow is called "${workflow.slice(0, limits.excerptChars)}"`);
  }

  #start(run: number, source: RunSource, replay: Replay | null = null): void {
    const { record } = this;
    const resolved = this.#resolved(record, this.#journal.requireRun(run));
    if (resolved === null) {
      const message = `The agent "${record.agent}" of this session is not in the catalogue any more`;
      const told = this.#tell([run], [this.#close(run, 'agent_failed', { error: { code: 'unknown_agent', message } })]);
      // Those behind it must not wait for one that never was at work (J3).
      this.#ports.hold(told.finally(() => this.#next()));
      return;
    }
    const { status, input } = this.#journal.requireRun(run);
    const inbox = new Inbox();
    const live = startRun(
      {
        ...this.#ports,
        sessionId: record.session_id,
        owner: record.owner,
        runId: runIdOf(record.session_id, run),
        runNumber: run,
        source,
        resolved: resolveAgentVariables(resolved, record),
        policy: policyOf(resolved.agent, source.type, input['budget'] as ChildBudget | null | undefined),
        publish: (batch) => this.#hub.publish(batch),
        ended: ({ status }) => {
          const active = this.#active.get(run);
          if (active !== undefined) {
            active.end = status;
            if (status === 'waiting') {
              this.#release(active);
              active.live.rest();
            }
          }
          this.#ended(run);
          this.#next();
        },
        model: this.#ports.modelFor(resolved),
        variables: this.#session(),
        learned: (this.#learned ??= new LearnedDurations(this.#journal.durations())),
        earlier: this.#earlier,
        feeds: this.#feeds,
        record,
        resumed: () => {
          const active = this.#active.get(run);
          if (active !== undefined) this.#goOn(run, active);
        },
      },
      inbox,
      replay,
    );
    // One that waited for a person, and had the answer when it broke off, has not answered yet.
    const atWork = status === 'running' || status === 'queued' || (status === 'waiting' && !live.isParked());
    const active: ActiveRun = { live, inbox, held: null, end: atWork ? null : status };
    this.#active.set(run, active);
    if (active.end === 'waiting') live.rest();
    else this.#hold(active);
    if (active.end !== null) this.#ends.get(run)?.resolve();
    const followed = this.#follow(run, active);
    this.#followed.add(followed);
    void followed.finally(() => this.#followed.delete(followed));
  }

  /** A run that waited for a person has not answered after all: it is at work again, and others wait for it. */
  #goOn(run: number, active: ActiveRun): void {
    if (active.end === 'waiting') {
      active.end = null;
      this.#awaited(run);
    }
    this.#hold(active);
  }

  /** Something for a run; one that waited for a person is at work again. */
  #put(active: ActiveRun, input: RunInput): void {
    this.#hold(active);
    active.inbox.put(input);
  }

  #hold(active: ActiveRun): void {
    if (active.held !== null) return;
    active.held = Promise.withResolvers<void>();
    this.#ports.hold(active.held.promise);
    active.live.rouse();
  }

  #release(active: ActiveRun): void {
    active.held?.resolve();
    active.held = null;
  }

  /** Sees a run to its end, whatever it is. */
  async #follow(run: number, active: ActiveRun): Promise<void> {
    try {
      await active.live.drained;
    } catch (fault) {
      const error = { code: 'internal', message: messageOf(fault) };
      const now = this.#ports.clock.now();
      this.#ports.log(fault);
      this.#active.delete(run);
      try {
        await this.#tell([run], endAbandonedRun(this.#journal, this.#journal.requireRun(run), now, error));
      } catch (again) {
        this.#ends.get(run)?.reject(again);
        this.#ports.log(again);
        // Nobody can be told of the end: streams that waited for it end without it, and whoever comes back reads the journal.
        this.#hub.close();
      }
    }
    this.#active.delete(run);
    this.#ports.recoveryQueue.end(workOf(run));
    this.#release(active);
    this.#next();
  }

  #next(): void {
    if (this.#answering() !== null) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    if (next.left) {
      const done = this.#beginLeft(next);
      this.#beginning = { run: next.run, done };
      this.#ports.hold(done);
      return;
    }
    this.#journal.startRun(next.run, this.#ports.clock.now());
    this.#begin(next.run, next.source);
  }

  /** Begins a run that an earlier host left queued: that host may have begun it, too, and frozen. */
  async #beginLeft({ run, source }: { readonly run: number; readonly source: () => RunSource }): Promise<void> {
    try {
      const aside = await this.#take(workOf(run));
      this.#journal.startRun(run, this.#ports.clock.now());
      if (aside === null) this.#begin(run, source);
      else await this.#setAside(this.#journal.requireRun(run), aside);
    } catch (fault) {
      // The next host finds it queued, and begins it.
      this.#ports.log(fault);
      this.#ends.get(run)?.reject(fault);
    } finally {
      this.#beginning = null;
      this.#next();
    }
  }

  /** Writes the end of a run that has no engine; to be told once it is on disk. */
  #close(run: number, type: 'agent_failed' | 'agent_cancelled', data: JsonObject): SessionEvent {
    const at = this.#ports.clock.now();
    const event = this.#journal.append({ type, runId: runIdOf(this.record.session_id, run), iteration: 0, at, data });
    this.#journal.endRun(run, type === 'agent_failed' ? 'failed' : 'cancelled', at, false);
    return event;
  }

  /** Tells of ends once they are on disk: readers first, then whoever waits for the document. */
  async #tell(runs: readonly number[], batch: readonly SessionEvent[]): Promise<void> {
    await this.#journal.sync();
    if (batch.length > 0) this.#hub.publish(batch);
    for (const run of runs) this.#ended(run);
  }

  #ended(run: number): void {
    this.#ends.get(run)?.resolve();
    this.#ends.delete(run);
    this.#ports.runEnded(this.#journal.requireRun(run));
  }

  #session(): SessionVariables {
    this.#variables ??= new SessionVariables(this.#journal);
    return this.#variables;
  }
}

/** By which names notes about work that is taken up go (take-ups.ts). */
const FEED_WORK = 'feed ';
const workOf = (run: number): string => `run ${run}`;

/** What the manifests of a run are found by. */
function pinOf(run: RunRecord | undefined): string | null {
  const { manifests } = run?.input ?? {};
  return typeof manifests === 'string' ? manifests : null;
}

/** @param given what a parent has set aside for it (S12): it spends that and no more */
function policyOf(agent: AgentDefinition, source: RunSource['type'], given: ChildBudget | null | undefined): RunPolicy {
  const least = (own: number | null, most: number | null | undefined): number | null =>
    own === null || most == null ? (own ?? most ?? null) : Math.min(own, most);
  const { budgets, loop, protocol } = agent;
  return {
    source: source === 'model' ? 'model' : 'text',
    maxParallelActions: loop.maxParallelActions,
    maxParallelByType: loop.maxParallelByType,
    maxIterations: loop.maxIterations,
    maxActions: Math.min(budgets.actions, given?.actions ?? Infinity),
    seconds: Math.min(budgets.seconds, given?.seconds ?? Infinity),
    modelCalls: Math.min(budgets.modelCalls, given?.modelCalls ?? Infinity),
    tokens: least(budgets.tokens, given?.tokens),
    cost: least(budgets.cost, given?.cost),
    maxChildren: given?.children ?? limits.childrenPerRun,
    failFast: loop.failFast,
    responseDefault: protocol.responseDefault,
    onFailedFinal: protocol.onFailedFinal,
  };
}

/** The text of a run that goes on: whole where it was posted whole; else the client's stream is gone. */
async function* restOf(whole: string | null): AsyncGenerator<string> {
  if (whole === null) {
    throw new Error('The session was restarted while the text was still arriving');
  }
  yield whole;
}

async function* nothing(): AsyncGenerator<string> {
  // There are no lines.
}
