/**
 * One session: accepts messages and programs, and answers queries about its content. Each duty has its own part:
 *
 *  - session-admission.ts: the checks before a run is created; pending-messages.ts: messages whose files are being fetched;
 *    session-steering.ts: messages into a run
 *  - session-runs.ts: the runs, one after the other; session-branches.ts: their tree
 *  - session-recovery.ts: recovery of an earlier host's work
 *  - session-feeds.ts: periodic feeds
 *  - session-summaries.ts: summaries of older turns
 *  - session-approvals.ts: people's decisions
 *  - session-calls.ts: results of clients for calls of client tools
 *  - session-files.ts: the bytes of files; session-workspace.ts: the files of programs
 *  - session-reading.ts: exports and documents; session-listing.ts: its entry in the directory
 *  - run-setup.ts: setup of a run; session-memory.ts: state shared by runs
 *
 * Owns the session's creation and end. Does not own the flow of a run (run/run.ts), the alarm
 * of its host (session-alarm.ts), the wire (http/) or the platform (durable/).
 *
 * Invariants:
 *  1. A run that is unfinished in the journal has an owner here, or is ended by `recover` (J3).
 *  2. A reader who disconnects changes nothing (J5).
 */
import { filesOfContent } from '../../domain/content.ts';
import type { DirectoryEntry, SessionStatus } from '../../domain/directory.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import type { SessionEvent, TextPatch } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ChildRequest } from '../../domain/ports/children.ts';
import type { NoteStorage } from '../../domain/ports/storage.ts';
import { NO_HISTORY } from '../../domain/seeded.ts';
import type { SeededHistory } from '../../domain/seeded.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import { Pacer } from '../../domain/work.ts';
import { runIdOf, runNumberOf } from '../../journal/run-id.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ApprovalsPage, OpenApproval } from '../actions/approval-list.ts';
import type { Decision } from '../actions/question-answer.ts';
import { outgoingView } from '../actions/approval-view.ts';
import type { ApprovalView } from '../actions/approval-view.ts';
import { summaryOf } from '../memory/earlier-turns.ts';
import { Broadcaster } from './broadcaster.ts';
import type { EventListener } from './broadcaster.ts';
import type { OutgoingText } from './outgoing-text.ts';
import { redactingExecutors } from './redact.ts';
import { resolveAgentVariables } from './resolve-agent-variables.ts';
import { agentOfRun, currentAgent, definedPatterns, recordOf } from './run-setup.ts';
import { SessionAdmission } from './session-admission.ts';
import type { MessageRequest, PendingContent, Traced, UnfetchedMessage } from './session-admission.ts';
import type { Accepted } from './session-steering.ts';
import { SessionApprovals } from './session-approvals.ts';
import { SessionBranches } from './session-branches.ts';
import { SessionCalls } from './session-calls.ts';
import type { CallResult, SettledCall } from './session-calls.ts';
import { SessionFeeds } from './session-feeds.ts';
import { NOTHING_STAGED, objectPrefix, SessionFiles } from './session-files.ts';
import { forkPages } from './session-fork.ts';
import type { ForkPage } from './session-fork.ts';
import { SessionListing } from './session-listing.ts';
import { SessionMemory } from './session-memory.ts';
import type { SessionPorts, SessionScope } from './session-ports.ts';
import { SessionReading } from './session-reading.ts';
import type { ExportOptions } from './session-export.ts';
import { SessionRecovery } from './session-recovery.ts';
import { SessionRedaction } from './session-redaction.ts';
import { SessionRuns } from './session-runs.ts';
import { SessionSummaries } from './session-summaries.ts';
import { SessionTelemetry } from './session-telemetry.ts';
import { checkVariables } from './session-variables.ts';
import type { SessionView } from './session-view.ts';
import { SessionWorkspace } from './session-workspace.ts';

/** An answer to what a run has asked: the result of a call, or a decision. */
export type ClientAnswer =
  | { readonly callId: string; readonly result: CallResult }
  | ({ readonly approvalId: string } & Omit<Decision, 'content'> & Partial<Pick<Decision, 'content'>>);

export class Session {
  /** Its runs as a tree. */
  readonly branches: SessionBranches;
  /** Its files, which programs and people share (C7). */
  readonly workspace: SessionWorkspace;
  readonly #scope: SessionScope;
  readonly #journal: Journal;
  readonly #readers: Broadcaster;
  readonly #memory: SessionMemory;
  readonly #runs: SessionRuns;
  readonly #recovery: SessionRecovery;
  readonly #feeds: SessionFeeds;
  readonly #approvals: SessionApprovals;
  readonly #calls: SessionCalls;
  readonly #files: SessionFiles;
  readonly #admission: SessionAdmission;
  readonly #listing: SessionListing;
  readonly #redaction: SessionRedaction;
  readonly #summaries: SessionSummaries;

  constructor(ports: SessionPorts) {
    const executors = redactingExecutors(ports.executors, ports.redact);
    this.#files = new SessionFiles({
      journal: ports.journal,
      clock: ports.clock,
      objects: ports.objects ?? null,
      hold: ports.hold,
      isGone: () => this.#admission.isClosed,
    });
    this.workspace = new SessionWorkspace({
      journal: ports.journal,
      clock: ports.clock,
      files: this.#files,
      hasObjects: ports.objects != null,
      charge: (steps) => ports.share.charge(steps),
      isGone: () => this.#admission.isClosed,
    });
    this.#scope = {
      ...ports,
      executors,
      blobs: ports.blobs ?? this.#files,
      workspace: this.workspace,
      pacer: new Pacer(ports.share),
    };
    this.#journal = ports.journal;
    this.#readers = new Broadcaster(ports.journal.lastSeq, (after, before) => ports.journal.between(after, before));
    this.#memory = new SessionMemory(ports, (data) => this.#feeds.changed(data));
    this.#summaries = new SessionSummaries(this.#scope, this.#readers);
    this.#runs = new SessionRuns(
      this.#scope,
      this.#readers,
      this.#memory,
      this.#summaries,
      async (run) => await this.#recovery.admitRun(run),
      () => this.#recovery.repeat(),
    );
    this.#recovery = new SessionRecovery(this.#scope, this.#runs, this.#memory.feeds);
    this.#redaction = new SessionRedaction(this.#scope);
    this.#feeds = new SessionFeeds(this.#scope, this.#memory, this.#runs, this.#recovery, this.#redaction);
    this.#approvals = new SessionApprovals(this.#scope, this.#runs);
    this.#calls = new SessionCalls(this.#scope, this.#runs);
    this.#listing = new SessionListing(ports.journal, () => this.outgoing());
    this.#admission = new SessionAdmission({
      scope: this.#scope,
      runs: this.#runs,
      files: this.#files,
      workspace: this.workspace,
      recovery: this.#recovery,
      recover: () => this.recover(),
    });
    this.branches = new SessionBranches({
      scope: this.#scope,
      runs: this.#runs,
      memory: this.#memory,
      admission: this.#admission,
      recover: () => this.recover(),
      current: (record) => this.#current(record),
    });
  }

  // --- the session ---

  /** @throws EngineError `unknown_session` if there is none */
  get record(): SessionRecord {
    return recordOf(this.#scope);
  }

  get exists(): boolean {
    return this.#journal.record !== null;
  }

  /** Whether anything is running: a run, or a fire_and_forget action of an ended one. */
  get busy(): boolean {
    return this.#runs.busy;
  }

  /** `waiting`: nothing is running, and a run waits for people or clients (J8, C3). */
  get status(): SessionStatus {
    if (this.busy) return 'running';
    const isParked =
      this.#runs.active.some(({ end }) => end === 'waiting') ||
      // Not recovered yet on this host.
      (this.#recovery.isPending && this.#journal.runs.open().some(({ status }) => status === 'waiting'));
    return isParked ? 'waiting' : 'idle';
  }

  /**
   * When the latest run began or ended, epoch milliseconds; at least the creation, because the runs of a fork are older than
   * itself.
   */
  get updatedAt(): number {
    const { created_at: createdAt } = this.record;
    const last = this.runs(1).at(-1);
    return last === undefined ? createdAt : Math.max(createdAt, last.endedAt ?? last.startedAt);
  }

  /** What the directory lists (C6); null if it does not list the session, or if its runs are not recovered yet. */
  get directoryEntry(): DirectoryEntry | null {
    if (!this.exists || this.isRecovering) return null;
    return this.#listing.entry({ status: this.status, updated_at: this.updatedAt });
  }

  /** @param history admitted (policies/seeded-history.ts) */
  async create(record: SessionRecord, state: JsonObject, history: SeededHistory = NO_HISTORY): Promise<void> {
    if (this.exists) throw new EngineError('invalid_request', 'This session already exists');
    // Before anything is written: a session exists completely, or not at all.
    checkVariables(state);
    const { messages, files } = history;
    const variables = Object.entries(state);
    const fill = (): void => {
      for (const [key, value] of variables) this.#journal.variables.setFirst(key, value);
      if (messages.length > 0) this.#journal.seeded.write(messages);
      // Files of a history are not put into the object storage: the session does not exist yet.
      this.#files.commit(
        files,
        messages.map(({ content }) => content ?? ''),
        NOTHING_STAGED,
      );
      for (const { content } of messages) this.workspace.addUploads(filesOfContent(content ?? ''));
    };
    this.#journal.create(record, variables.length + messages.length === 0 ? null : fill);
    this.#memory.forgetVariables();
    await this.#journal.sync();
  }

  /** Ends everything: cancels all runs and closes all readers' streams. */
  async dispose(reason: string): Promise<void> {
    const summarised = this.#summaries.close();
    await this.cancel(reason).catch((fault: unknown) => {
      // What no host has taken up again ends with the session.
      if (!(fault instanceof EngineError && fault.code === 'storage_unavailable')) throw fault;
    });
    await this.#runs.drained();
    await summarised;
    this.#readers.close();
  }

  /** The same, before the session is deleted: also rejects new messages and readers. */
  async close(reason: string): Promise<void> {
    this.#admission.close();
    this.#memory.feeds.close();
    await this.dispose(reason);
  }

  // --- runs ---

  /**
   * Accepts a message: starts its run, or queues it behind the active one (H1).
   *
   * @throws EngineError `run_in_progress`, `queue_full`, `session_full`, `idempotency_mismatch`, `storage_unavailable`;
   *   `invalid_request` in a workflow session
   */
  async message(request: MessageRequest): Promise<RunRecord> {
    return await this.#admission.message(request);
  }

  /** The same; resolves when the message is durable, which may be before it is certain which run takes it (C5). */
  async accept(request: MessageRequest): Promise<Accepted> {
    return await this.#admission.accept(request);
  }

  /**
   * Accepts a message once its files are fetched.
   *
   * @param signal aborts when the client leaves: then the message is not accepted
   * @throws EngineError like `message` and `content.fetch`
   */
  async pendingMessage(request: UnfetchedMessage, content: PendingContent, signal: AbortSignal): Promise<Accepted> {
    return await this.#admission.pendingMessage(request, content, signal);
  }

  /** Runs protocol text without a model; `text` is null if the text is still arriving. */
  async execute(chunks: AsyncIterable<string>, text: string | null, by: Traced = {}): Promise<RunRecord> {
    return await this.#admission.execute(chunks, text, by);
  }

  /** Starts the only run of a child, or finds it if the parent asks again (M7). */
  async child(request: ChildRequest): Promise<RunRecord> {
    return await this.#admission.child(request);
  }

  /** Runs the session's workflow (M6). */
  async workflow(inputs: JsonObject, by: Traced = {}): Promise<RunRecord> {
    return await this.#admission.workflow(inputs, by);
  }

  /**
   * Cancels the active run and everything queued behind it (J5).
   *
   * @param only the id of a run: nothing else is cancelled
   * @returns the id of the run that was active
   * @throws EngineError `storage_unavailable`: some of it may go on; cancel again
   */
  async cancel(reason: string, only: string | null = null): Promise<string | null> {
    await this.recover();
    const run = await this.#runs.cancel(reason, only === null ? null : runNumberOf(only));
    return run === null ? null : runIdOf(this.record, run);
  }

  /**
   * Decides about an action that waits for approval; resolves when the decision is durable (J1). The first decision
   * counts.
   *
   * @param content values for the question of an action's target; null: the defaults of its schema
   * @throws EngineError `unknown_approval`; `approval_closed` if another decision was first, or the request has ended;
   *   `invalid_answer` if the values are not those that the question asks for: it stays open
   */
  async resolveApproval(
    approvalId: string,
    approved: boolean,
    note: string | null,
    content: JsonObject | null = null,
  ): Promise<void> {
    await this.#approvals.decide(approvalId, { approved, note, content });
  }

  /**
   * Settles a call of a client tool; resolves when the result is durable (C3, J1).
   *
   * @throws EngineError `unknown_call`, `call_settled`, `run_in_progress`
   */
  async settleCall(callId: string, result: CallResult): Promise<SettledCall> {
    await this.recover();
    return await this.#calls.settle(callId, result);
  }

  /**
   * Takes several answers of a client together: their run does not wait in between, and no client sees it between them.
   *
   * @returns for each answer, in order: the id of its run, or why it was refused, as in `settleCall` and `resolveApproval`
   */
  async answer(answers: readonly ClientAnswer[]): Promise<PromiseSettledResult<string>[]> {
    await this.recover();
    // All of them are queued before the run takes the first one.
    return await Promise.allSettled(answers.map((answer) => this.#take(answer)));
  }

  async #take(answer: ClientAnswer): Promise<string> {
    if ('callId' in answer) return (await this.#calls.settle(answer.callId, answer.result)).run_id;
    const { approvalId, approved, note, content = null } = answer;
    return await this.#approvals.accept(approvalId, { approved, note, content });
  }

  /** The approval requests that wait for a decision, oldest first (J8). */
  openApprovals(page: ApprovalsPage): OpenApproval[] {
    return this.#approvals.open(page);
  }

  /** Ids of all of them. */
  get openApprovalIds(): readonly string[] {
    return this.#runs.active.flatMap(({ live }) => live.openApprovals().map(({ id }) => id));
  }

  /** Whether runs of an earlier host are not recovered yet, so that their requests are unknown. */
  get isRecovering(): boolean {
    return this.#recovery.isPending;
  }

  /** The whole call of an approval request, open or not (J8). @throws EngineError `unknown_approval` */
  approval(approvalId: string): ApprovalView {
    return outgoingView(this.#approvals.view(approvalId), this.outgoing());
  }

  /** Resolves when the run has ended. */
  async ended(run: number): Promise<void> {
    await this.#runs.ended(run);
  }

  /** @throws EngineError `unknown_run` */
  run(runId: string): RunRecord {
    const run = runId === runIdOf(this.record, runNumberOf(runId)) ? runNumberOf(runId) : 0;
    const found = this.#journal.runs.get(run);
    if (found === null)
      throw new EngineError('unknown_run', `This session has no run "${runId.slice(0, limits.excerptChars)}"`);
    return this.#current(found);
  }

  /** A run that has continued after a decision is `waiting` in its table until its next end (J8). */
  #current(record: RunRecord): RunRecord {
    if (record.status !== 'waiting' || this.#runs.get(record.run)?.end !== null) return record;
    // Not a copy, because the input is read on demand.
    return Object.create(record, {
      status: { value: 'running' },
      lastSeq: { value: null },
      endedAt: { value: null },
    }) as RunRecord;
  }

  /** The run that is being answered, else the newest that waits; null if all have ended. */
  openRun(): RunRecord | null {
    const open = this.#journal.runs.open().map((record) => this.#current(record));
    return (
      open.find(({ status }) => status === 'running') ?? open.findLast(({ status }) => status === 'waiting') ?? null
    );
  }

  /** The run of the message with this idempotency key; null if none was accepted. */
  runOf(key: string): RunRecord | null {
    return this.#journal.runs.byIdempotencyKey(key);
  }

  /** Names of the client tools that a run may call (C3). */
  clientTools(run: RunRecord): string[] {
    const tools = agentOfRun(this.#scope, run)?.tools ?? new Map();
    return [...tools.values()].filter(({ implementation }) => implementation.type === 'client').map(({ name }) => name);
  }

  /** The summary that covers most of the branch up to a run, as it leaves the session; null if there is none (C10). */
  summary({
    run,
  }: RunRecord): { readonly text: string; readonly turns: number; readonly until_run: string | null } | null {
    const found = summaryOf(this.#journal, run);
    if (found === null) return null;
    const { text, turns, untilRun } = found;
    return {
      text: this.outgoing().text(text),
      turns,
      until_run: untilRun === 0 ? null : runIdOf(this.record, untilRun),
    };
  }

  /** Number of messages of the seeded history (C1). */
  get seededCount(): number {
    return this.#journal.seeded.count;
  }

  get runCount(): number {
    return this.#journal.runs.count;
  }

  /** Runs in order: the newest `limit` of them, or of those before the run number `before`. */
  runs(limit?: number, before?: number): readonly RunRecord[] {
    return this.#journal.runs.list(limit, before).map((record) => this.#current(record));
  }

  /** Whether nothing more of this run will follow, so that a reader who has everything may disconnect. */
  hasEnded(runId: string): boolean {
    const { run, status } = this.run(runId);
    const isOpen = status === 'queued' || status === 'running' || status === 'waiting';
    return !isOpen && this.#runs.get(run) === null;
  }

  /** Whether this run waits for people and clients only now (J8, C3). */
  isWaiting(runId: string): boolean {
    return this.run(runId).status === 'waiting';
  }

  // --- the host ---

  /**
   * After a restart of the host: every run that an earlier host left unfinished continues after its record (J2, J3).
   *
   * @param purpose readers do not wait for work that has to wait for its own slot
   */
  recover(purpose: 'act' | 'read' = 'act'): Promise<void> {
    return this.exists ? this.#recovery.recover(purpose) : Promise.resolve();
  }

  /**
   * When the host must be woken, epoch milliseconds: to watch over running work, for a summary that is due, for an approval
   * that expires, for a periodic feed, for the session's expiry; null if there is no session (J2, J8, F3).
   */
  nextWake(): number | null {
    if (!this.exists) return null;
    const times = [this.expiresAt, this.#feeds.nextRefresh(this.#isIdle), this.#files.collectsAt];
    times.push(this.#summaries.wakeAt ?? Infinity);
    // Runs of an earlier host have no owner yet: this host may end before it recovers them.
    if (this.busy || this.#recovery.isPending) times.push(this.#scope.clock.now() + limits.watchdogMs);
    // A run that is held has its own timers.
    for (const { live, end, isHeld } of this.#runs.active) {
      if (end !== null && !isHeld) times.push(live.wakeAt() ?? Infinity);
    }
    return Math.min(...times);
  }

  /** Does the work that is due: runs continue, approvals expire, periodic feeds are refreshed. */
  async wake(): Promise<void> {
    await this.recover();
    this.#summaries.begin();
    const now = this.#scope.clock.now();
    for (const active of this.#runs.active) {
      if (active.end !== null && (active.live.wakeAt() ?? Infinity) <= now) active.hold();
    }
    if (this.exists) await this.#feeds.refresh(this.#isIdle);
    // It may have been deleted since.
    if (!this.exists || this.#admission.isClosed) return;
    // Repeated later.
    await this.#files.collect().catch((fault: unknown) => this.#scope.log('internal_error', { fault }));
  }

  /**
   * Where the session's objects are, for its deletion; null if it has none. `isPending`: some may still be put.
   */
  get objects(): { readonly prefix: string; readonly isPending: boolean } | null {
    const { blobs } = this.#journal;
    if (blobs.objectBytes === 0) return null;
    return { prefix: objectPrefix(this.record), isPending: blobs.oldestUnreferred('object') !== null };
  }

  /** When the session expires, unless it is used before (H1). While something is running, it is being used. */
  get expiresAt(): number {
    const usedAt = this.busy ? this.#scope.clock.now() : this.#lastUsedAt();
    const expiryMs = this.#scope.expiryMs ?? limits.sessionExpiryMs;
    return usedAt + (this.record.ephemeral === true ? Math.min(expiryMs, limits.ephemeralExpiryMs) : expiryMs);
  }

  /**
   * Whether no feed must be kept fresh (F3). Executions and children need feeds only during their run; a conversation
   * may get another message for a while.
   */
  get #isIdle(): boolean {
    if (this.record.kind !== 'chat') return this.#runs.answering === null;
    return !this.busy && this.#scope.clock.now() - this.#lastUsedAt() >= limits.feedIdleMs;
  }

  #lastUsedAt(): number {
    const last = this.#journal.runs.list(1)[0];
    return Math.max(this.record.created_at, last?.startedAt ?? 0, last?.endedAt ?? 0);
  }

  // --- readers ---

  get lastSeq(): number {
    return this.#journal.lastSeq;
  }

  /** A page of durable events after `after`, oldest first; empty if there are no more. */
  events(after: number): readonly SessionEvent[] {
    return this.#journal.page(after);
  }

  listen(listener: EventListener): () => void {
    if (this.#admission.isClosed) void Promise.resolve().then(() => listener(null));
    return this.#readers.listen(listener);
  }

  /** Patches with the whole text of every open block, which a reader needs after catching up (J4). */
  openBlocks(): TextPatch[] {
    return this.#runs.active.flatMap(({ live }) => live.catchUp());
  }

  /** The session's current feeds (F1). */
  feeds(): JsonObject[] {
    return this.#feeds.list();
  }

  /** The patterns that bind the session, for a fork of it; null: unknown (C9). */
  get patterns(): readonly string[] | null {
    return definedPatterns(this.#scope, this.#journal.runs.list(1)[0]?.input ?? {});
  }

  /** Redacts what leaves the session without being an event (C9). */
  outgoing(): OutgoingText {
    return this.#redaction.outgoing;
  }

  /** Notes for later hosts of this session. Null if there is no session. */
  get notes(): NoteStorage | null {
    return this.exists ? this.#journal.notes : null;
  }

  /** What is exported to a collector (O1); null: there is no session. */
  get telemetry(): SessionTelemetry | null {
    if (!this.exists) return null;
    const { slices } = this.read();
    return new SessionTelemetry({
      journal: this.#journal,
      record: this.record,
      slices,
      outgoing: () => this.outgoing(),
    });
  }

  /** The session's current state, to be read in slices. @param view what the reader may have; null: everything (T1) */
  read(view: SessionView | null = null): SessionReading {
    return new SessionReading({
      journal: this.#journal,
      record: this.record,
      files: this.#files,
      outgoing: () => this.outgoing(),
      share: this.#scope.share.fork(),
      isGone: () => this.#admission.isClosed,
      view,
    });
  }

  /** The branch that ends with a run, for another session; null: there are no runs (C4). */
  forkPages(run: RunRecord | null): AsyncIterable<ForkPage> {
    const { slices } = this.read();
    const took = async (chars: number): Promise<void> => {
      slices.count(chars);
      if (slices.full) await slices.pause();
    };
    const requireOpen = (): void => {
      if (this.#admission.isClosed) throw unknownSession();
    };
    return forkPages({ journal: this.#journal, files: this.#files, took, requireOpen }, run?.run ?? 0);
  }

  /** Everything of the session that is durable, as JSON Lines. @param view like that of `read` */
  export({
    view = null,
    ...options
  }: ExportOptions & { readonly view?: SessionView | null } = {}): AsyncIterable<string> {
    return this.read(view).export(this.#memory.variables.snapshot(), options);
  }

  /** The session's variables as one JSON document, in pieces. */
  state(): AsyncIterable<string> {
    return this.read().state(this.#memory.variables.snapshot());
  }

  /**
   * The completed runs as training examples, as JSON Lines, if the agent is still in the catalogue.
   *
   * @throws EngineError `unknown_agent`
   */
  transcript(): AsyncIterable<string> {
    const { record } = this;
    // A workflow's steps are written by its author, so there is nothing to learn from.
    if (record.workflow !== undefined || this.runCount === 0) return nothing();
    const agent = currentAgent(this.#scope);
    if (agent !== null) return this.read().transcript(resolveAgentVariables(agent, record), this.#scope.redact);
    throw new EngineError('unknown_agent', `The agent "${record.agent}" is no longer in the catalogue`);
  }
}

async function* nothing(): AsyncGenerator<string> {
  // There are no lines.
}
