/**
 * One Durable Object per session: gives the engine its storage, clock and alarm, and serves the session's HTTP surface.
 * Contains the platform code only. engine/session/session-alarm.ts decides when the object is woken and what follows.
 */
import { DurableObject } from 'cloudflare:workers';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { LogEvent, LogFields } from '../../domain/log.ts';
import type { ChildEnd, ChildRequest } from '../../domain/ports/children.ts';
import { mergeApprovals } from '../../engine/actions/approval-list.ts';
import type { ApprovalsPage, OpenApproval } from '../../engine/actions/approval-list.ts';
import { lazyRedactor } from '../../engine/session/redact.ts';
import type { EventBatch } from '../../engine/session/broadcaster.ts';
import type { ForkPage } from '../../engine/session/session-fork.ts';
import { childEnd } from '../../engine/session/child-end.ts';
import { DirectoryOutbox } from '../../engine/session/directory-outbox.ts';
import { objectNotes } from '../../engine/session/object-notes.ts';
import { pinsInUse } from '../../engine/session/run-setup.ts';
import { listedSession } from '../../engine/session/run-listing.ts';
import { SessionAlarm } from '../../engine/session/session-alarm.ts';
import { SessionDeletion } from '../../engine/session/session-deletion.ts';
import { Session } from '../../engine/session/session.ts';
import type { NoteStorage } from '../../domain/ports/storage.ts';
import { createExecutors } from '../../executors/registry.ts';
import { isOwner } from '../../http/api-keys.ts';
import { problemResponse } from '../../http/problem.ts';
import { createSessionApp, eventSource } from '../../http/session-app.ts';
import { PRINCIPAL_HEADER, REVISION_HEADER } from '../../http/session-env.ts';
import type { ForkedRecord } from '../../http/session-env.ts';
import { batchStream } from '../../http/sse.ts';
import { Journal } from '../../journal/journal.ts';
import { NO_HISTORY } from '../../domain/seeded.ts';
import type { SeededHistory } from '../../domain/seeded.ts';
import { sessionKey } from '../../domain/session.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { CachedText } from '../../catalog/store/definition-cache.ts';
import { catalogRevisions, PinnedManifests, takeCopy } from '../catalogs.ts';
import { ApprovalsOutbox } from '../approvals.ts';
import { approvalsOfChildren, childSessions, deleteChildren, spentByChildren } from '../children.ts';
import { codeToolsOf } from '../code-tools.ts';
import { mcpAccess, mcpServersOf } from '../mcp.ts';
import { directoryIndex, shardFor } from '../directory.ts';
import { DeletedFiles } from '../deleted-files.ts';
import { ForkedSession } from '../fork.ts';
import type { SendFork } from '../fork.ts';
import { readHtml } from '../html-reader.ts';
import { modelOf } from '../model.ts';
import { recoveryQueueOf } from '../host.ts';
import { sessionNetwork } from '../network.ts';
import { objectStoreOf } from '../object-store.ts';
import { ThreadShare } from '../../domain/fair-queue.ts';
import { newId, newIncarnation, platformBodies, platformClock, platformQueue } from '../platform.ts';
import { edgeRelics, forgetRelics } from '../relics.ts';
import { egressOf, fileFetchOf, outboundOf, runnerOf } from '../runner.ts';
import { sharedFeeds } from '../shared-feeds.ts';
import { statusOf } from '../status.ts';
import { telemetryOf } from '../telemetry.ts';
import type { TelemetryOutbox } from '../../telemetry/outbox.ts';
import { userFacts } from '../user-facts.ts';
import { rateLimited } from '../../policies/rate-limit.ts';
import { apiKeysOf } from '../../settings/keys.ts';
import { secretsOf } from '../../settings/secrets.ts';
import { readSettings } from '../../settings/settings.ts';
import type { Env, SessionRpc } from '../env.ts';
import { loggerOf } from '../log.ts';
import { replyOf, valueOf } from '../reply.ts';
import type { Reply } from '../reply.ts';
import { durableSql } from '../sql-storage.ts';

/** @returns an error if code of another schema has written the storage; then nothing is read or written (J9) */
function openJournal(storage: DurableObjectStorage): Journal | EngineError {
  try {
    return new Journal(durableSql(storage));
  } catch (fault) {
    if (fault instanceof EngineError) return fault;
    throw fault;
  }
}

/** Whether a session was started by the same caller for the same thing. */
function isSameStart(known: SessionRecord, asked: SessionRecord): boolean {
  const same = (member: 'owner' | 'user_id' | 'agent' | 'workflow' | 'kind'): boolean =>
    known[member] === asked[member];
  const { parent: one } = known;
  const { parent: other } = asked;
  return (
    same('owner') &&
    same('user_id') &&
    same('agent') &&
    same('workflow') &&
    same('kind') &&
    one?.session_id === other?.session_id &&
    one?.key === other?.key
  );
}

export class SessionObject extends DurableObject<Env> implements SessionRpc {
  readonly #log = loggerOf(this.env);
  readonly #network = sessionNetwork(readSettings(this.env), this.ctx.exports);
  /** Child sessions whose end is awaited. */
  readonly #children = new Set<string>();
  readonly #alarm = new SessionAlarm({
    session: () => (this.#opened instanceof EngineError ? null : this.#opened),
    clock: platformClock,
    setAlarm: (at) => this.#setAlarm(at),
    keepAlive: (work) => this.ctx.waitUntil(work),
    isServed: (owner) => isOwner(apiKeysOf(this.env), owner),
    approvals: () => this.#outbox,
    telemetry: () => this.#telemetry,
    directory: () => ({ dueAt: this.#directory.dueAt, update: () => this.#updateDirectory() }),
    forgetRelics: () => this.#forgetRelics(),
    deletedObjects: () => ({ dueAt: this.#deletedFiles.dueAt, collect: () => this.#collectFiles() }),
    destroy: (session) => this.#destroy(session),
    log: (event, fields) => this.#logHere(event, fields),
  });
  readonly #deletedFiles = new DeletedFiles(this.ctx.storage, objectStoreOf(this.env), platformClock);
  readonly #fork = new ForkedSession({
    storage: this.ctx.storage,
    objects: objectStoreOf(this.env),
    clock: platformClock,
    deletedFiles: this.#deletedFiles,
    closeDirectory: () => this.#directory.close(),
    reopen: () => this.#reopen(),
  });
  readonly #deletion = new SessionDeletion({
    current: () => this.#opened,
    forget: () => this.#forget(),
    clear: () => this.#deleteData(),
    reopen: () => this.#reopen(),
  });
  #opened: Session | EngineError;
  #outbox: ApprovalsOutbox;
  #directory: DirectoryOutbox;
  #telemetry: TelemetryOutbox | null;
  #app: Pick<ReturnType<typeof createSessionApp>, 'fetch'>;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#opened = this.#openSession();
    this.#outbox = this.#openOutbox();
    this.#directory = this.#openDirectory();
    this.#telemetry = this.#openTelemetry();
    this.#app = this.#openApp();
  }

  /** @throws EngineError `schema_too_new` or `schema_too_old` */
  get #session(): Session {
    if (this.#opened instanceof EngineError) throw this.#opened;
    return this.#opened;
  }

  #openSession(): Session | EngineError {
    const { ctx, env } = this;
    const journal = openJournal(ctx.storage);
    if (journal instanceof EngineError) return journal;
    const settings = readSettings(env);
    const network = this.#network;
    const runner = runnerOf(env, settings, network, () => this.#session.record.owner);
    const egress = egressOf(env, settings, network, () => this.#session.record);
    const pinned = new PinnedManifests(env, ctx.storage, {
      inUse: () => pinsInUse(journal),
      mcp: mcpAccess(env, settings, network, egress),
    });
    const redact = lazyRedactor(() => secretsOf(env, this.#session.record));
    const session = new Session({
      journal,
      recoveryQueue: recoveryQueueOf(env, ctx.storage),
      objects: objectStoreOf(env),
      clock: platformClock,
      share: new ThreadShare(platformQueue, () => (this.#session.exists ? this.#session.record.owner : null)),
      random: Math.random,
      newApprovalId: () => newId('apr'),
      executors: createExecutors(),
      fetch: outboundOf(settings, network, egress),
      readHtml,
      runner,
      edgeRelics: edgeRelics(env, ctx.storage, () => sessionKey(this.#session.record)),
      codeTools: codeToolsOf(env, ctx.exports, () => this.#session.record),
      mcp: mcpServersOf(env, settings, network, egress, () => this.#session.record.owner),
      sharedFeeds: sharedFeeds(env),
      userFacts: userFacts(env),
      children: childSessions(env, platformClock, ctx.storage, () => this.#session.record, this.#children),
      pin: (record) => pinned.pin(record),
      resolve: (name, pin) => pinned.agent(name, pin, this.#session.record.owner),
      workflow: (name, pin) => pinned.workflow(name, pin, this.#session.record.owner),
      policies: settings.policies,
      redact,
      redactPatterns: settings.redact,
      sampling: settings.telemetry?.sampling ?? null,
      expiryMs: settings.sessionExpiryMs,
      feedMinMs: settings.intervals.feedMinMs,
      modelFor: (resolved) => modelOf(env, settings, resolved, this.#session.record.owner, network, egress),
      hold: (work) => this.#alarm.hold(work),
      log: (event, fields) => this.#logHere(event, fields),
    });
    session.listen((batch) => this.#alarm.published(batch));
    return session;
  }

  #openOutbox(): ApprovalsOutbox {
    return new ApprovalsOutbox({
      storage: this.ctx.storage,
      sessionId: () => this.#session.record.session_id,
      index: () => {
        const { owner, session_id: id } = this.#session.record;
        return shardFor(this.env, owner, id);
      },
      ids: () => this.#session.openApprovalIds,
      open: (page) => this.#session.openApprovals(page),
    });
  }

  /** The key-value storage of a plain session stays empty: its first key would cost more memory than its notes. */
  #openNotes(): NoteStorage {
    const session = this.#opened;
    return session instanceof EngineError ? this.ctx.storage.kv : objectNotes(() => session.notes, this.ctx.storage.kv);
  }

  #openDirectory(): DirectoryOutbox {
    return new DirectoryOutbox({
      storage: this.#openNotes(),
      current: () => (this.#opened instanceof EngineError ? null : listedSession(this.#opened)),
      index: (owner, sessionId) => directoryIndex(this.env, owner, sessionId),
      clock: platformClock,
    });
  }

  #openTelemetry(): TelemetryOutbox | null {
    const session = this.#opened;
    if (session instanceof EngineError) return null;
    return telemetryOf(
      this.env,
      this.#network,
      this.#openNotes(),
      () => session.telemetry,
      (event, fields) => this.#logHere(event, fields),
    );
  }

  /** With the end of this object's storage, if the directory has forgotten its last session. */
  #updateDirectory(): Promise<void> | null {
    return this.#directory.update()?.then(() => this.#clearRest()) ?? null;
  }

  /** Earlier, if an incomplete fork needs it. */
  async #setAlarm(at: number): Promise<void> {
    const isSession = !(this.#opened instanceof EngineError) && this.#opened.exists;
    await this.ctx.storage.setAlarm(isSession ? at : Math.min(at, this.#fork.dueAt ?? at));
  }

  /** Adds the session to an entry of the log. */
  #logHere(event: LogEvent, fields: LogFields): void {
    this.#log(event, { ...this.#whose(), ...fields });
  }

  #whose(): LogFields {
    if (this.#opened instanceof EngineError || !this.#opened.exists) return {};
    const { session_id, agent, workflow, kind, owner } = this.#opened.record;
    const name = workflow === undefined ? { agent } : { workflow };
    return { session_id, ...name, kind, ...(owner === null ? {} : { namespace: owner }) };
  }

  #openApp(): Pick<ReturnType<typeof createSessionApp>, 'fetch'> {
    const session = this.#opened;
    if (session instanceof EngineError) return { fetch: () => problemResponse(session) };
    const settings = readSettings(this.env);
    const egress = egressOf(this.env, settings, this.#network, () => session.record);
    return createSessionApp({
      session,
      clock: platformClock,
      admit: () => this.#admit(),
      childApprovals: (page) => approvalsOfChildren(this.env, this.#children, page),
      create: (record) => this.create(record, {}),
      destroy: () => this.#destroy(session),
      fetchFile: fileFetchOf(settings, this.#network, egress),
      bodies: platformBodies,
      log: this.#log,
    });
  }

  /** @returns an error, or null if the rate limit allows another request */
  async #admit(): Promise<EngineError | null> {
    const { rateLimit } = readSettings(this.env);
    if (rateLimit === null) return null;
    const { owner, agent } = this.#session.record;
    const retryAfterMs = await statusOf(this.env, 'rate', JSON.stringify([owner, agent])).take(rateLimit);
    return retryAfterMs === null ? null : rateLimited(agent, rateLimit, retryAfterMs);
  }

  async #forgetRelics(): Promise<void> {
    const space = sessionKey(this.#session.record);
    const runner = runnerOf(this.env, readSettings(this.env), this.#network);
    if (runner !== null) {
      this.ctx.waitUntil(runner.stopRelics(space, { forget: true }));
      if (this.#session.workspace.list().length > 0) this.ctx.waitUntil(runner.forgetWorkspace(space));
    }
    await forgetRelics(this.env, this.ctx.storage, space);
  }

  /** Deletes what the session has outside of its storage. */
  async #forget(): Promise<void> {
    await Promise.all([
      this.#telemetry?.close(),
      this.#forgetRelics(),
      deleteChildren(this.env, this.ctx.storage),
      this.#outbox.clear(),
    ]);
  }

  async #destroy(session: Pick<Session, 'close'>): Promise<void> {
    await this.#deletion.delete(session);
    this.#alarm.updateLists();
    await this.#collectFiles();
  }

  #reopen(): void {
    this.#directory.close();
    this.#opened = this.#openSession();
    this.#outbox = this.#openOutbox();
    this.#directory = this.#openDirectory();
    this.#telemetry = this.#openTelemetry();
    this.#app = this.#openApp();
  }

  /**
   * What remains of a session are notes: about its objects, until the object storage has deleted them (C2), and about its
   * entry, until the directory has forgotten it (C6).
   */
  async #deleteData(): Promise<void> {
    const { storage } = this.ctx;
    const { objects } = this.#session;
    const notes = this.#directory.close();
    if (objects === null && this.#deletedFiles.isEmpty && notes.length === 0) {
      // In this order: with its alarm, what could not be deleted is deleted later.
      await storage.deleteAll();
      await storage.deleteAlarm();
      return;
    }
    // In one turn, so that all of it becomes durable together.
    this.#deletedFiles.replaceSession(objects, notes);
    await storage.setAlarm(platformClock.now() + limits.watchdogMs);
  }

  /** Deletes the objects of deleted sessions that are due. */
  async #collectFiles(): Promise<void> {
    if (this.#deletedFiles.isEmpty) return;
    const fault = await this.#deletedFiles.collect();
    if (fault !== null) this.#logHere('internal_error', { fault });
    if (this.#opened instanceof EngineError) return;
    if (!this.#deletedFiles.isEmpty || this.#opened.exists) return await this.#alarm.arm();
    await this.#clearRest();
  }

  /** Deletes the rest of this object, if it has no session and nothing is left to do for earlier ones. */
  async #clearRest(): Promise<void> {
    if (this.#opened instanceof EngineError || this.#opened.exists) return;
    if (this.#fork.isIncomplete || !this.#deletedFiles.isEmpty || this.#directory.hasUnlisted) return;
    // In one turn, so that no session begins in between.
    const deleted = Promise.all([this.ctx.storage.deleteAlarm(), this.ctx.storage.deleteAll()]);
    this.#reopen();
    await deleted;
  }

  override async fetch(request: Request): Promise<Response> {
    this.#network.topUp();
    const revision = request.headers.get(REVISION_HEADER);
    if (revision !== null) catalogRevisions.changed(request.headers.get(PRINCIPAL_HEADER), Number(revision));
    const response = await this.#app.fetch(request);
    // Only once the request has recovered the session. Usually nothing has changed.
    this.#alarm.updateLists();
    return response;
  }

  async create(
    record: SessionRecord,
    state: JsonObject,
    history: SeededHistory = NO_HISTORY,
    copy: CachedText | null = null,
  ): Promise<void> {
    if (copy !== null) takeCopy(record, copy);
    // The incarnation is chosen here alone, so that no caller can (T5). Both in one turn, so that they become durable
    // together.
    const created = { ...record, incarnation: newIncarnation() };
    await this.#alarm.precede();
    // The first write to the directory is noted in the same turn, and sent later.
    const stored = this.#session.create(created, state, history);
    this.#alarm.updateLists();
    await Promise.all([stored, this.#alarm.arm()]);
  }

  async open(
    record: SessionRecord,
    state: JsonObject,
    history: SeededHistory,
    copy: CachedText | null = null,
  ): Promise<Reply<SessionRecord>> {
    return await replyOf(async () => {
      if (!this.#session.exists) await this.create(record, state, history, copy);
      const known = this.#session.record;
      // Its id is derived, and a derived id authorises nothing (T5).
      if (!isSameStart(known, record)) throw unknownSession();
      if (known.request_sha256 === record.request_sha256) return known;
      throw new EngineError('idempotency_mismatch', 'This idempotency key was used for a session with another body');
    });
  }

  async follow(
    runId: string,
    after: number,
    take: (batch: EventBatch) => boolean | Promise<boolean>,
  ): Promise<Reply<null>> {
    return await replyOf(async () => {
      const session = await this.#recoveredSession('read');
      // Not of a session that was made again under the same id (T5).
      session.run(runId);
      const source = eventSource(session, platformClock);
      const { slices } = session.read();
      const batches = batchStream(source, { after: Math.min(after, session.lastSeq), runId: null, slices });
      // Leaving the loop, or a lost parent, cancels the stream.
      for await (const batch of batches) if (!(await take(batch))) break;
      return null;
    });
  }

  async fork(
    record: SessionRecord,
    { sessionId, runId }: { readonly sessionId: string; readonly runId: string | null },
  ): Promise<Reply<ForkedRecord>> {
    return await replyOf(async () => {
      if (!this.#session.exists) {
        const made = { ...record, incarnation: newIncarnation() };
        const send: SendFork = async (take) =>
          void valueOf(await this.env.SESSIONS.getByName(sessionId).sendFork(runId, take));
        await this.#fork.make(made, send);
        await this.#alarm.arm();
        this.#alarm.updateLists();
      }
      const known = this.#session.record;
      // Its id is derived, and a derived id authorises nothing (T5).
      if (!isSameStart(known, record) || known.forked_from?.session_id !== sessionId) throw unknownSession();
      if (known.request_sha256 === record.request_sha256) return { ...known, message_count: this.#fork.messageCount };
      throw new EngineError('idempotency_mismatch', 'This idempotency key was used for a fork with another body');
    });
  }

  async sendFork(runId: string | null, take: (page: ForkPage) => Promise<void>): Promise<Reply<null>> {
    return await replyOf(async () => {
      const session = await this.#recoveredSession('read');
      const run = runId === null ? null : session.run(runId);
      session.branches.requireForkable(run);
      for await (const page of session.forkPages(run)) await take(page);
      return null;
    });
  }

  async openApprovals(page: ApprovalsPage): Promise<Reply<readonly OpenApproval[] | null>> {
    return await replyOf(async () => {
      const session = await this.#recoveredSession('read');
      if (session.isRecovering) return null;
      const own = session.openApprovals(page);
      if (page.only !== undefined) return own;
      return mergeApprovals([own, await approvalsOfChildren(this.env, this.#children, page)], page.limit);
    });
  }

  async childEnd(runId: string): Promise<Reply<ChildEnd>> {
    return await replyOf(async () => {
      const session = await this.#recoveredSession('read');
      return await childEnd(session.read(), session.record, session.run(runId), spentByChildren(this.ctx.storage));
    });
  }

  async cancelChild(reason: string): Promise<Reply<null>> {
    return await replyOf(async () => {
      await (await this.#recoveredSession('act')).cancel(reason);
      return null;
    });
  }

  async remove(): Promise<Reply<null>> {
    return await replyOf(async () => {
      const session = await this.#recoveredSession('act');
      await session.dispose('the session was deleted');
      await this.#destroy(session);
      return null;
    });
  }

  /** The session, after recovery of what an earlier host left. @throws EngineError `unknown_session` */
  async #recoveredSession(purpose: 'act' | 'read'): Promise<Session> {
    const session = this.#session;
    void session.record;
    await session.recover(purpose);
    return session;
  }

  /** Starts the only run of a child or workflow session, once; returns its id (M6, M7). */
  async startChild(record: SessionRecord, request: ChildRequest, revision = 0): Promise<string> {
    catalogRevisions.changed(record.owner, revision);
    // A workflow's inputs are not variables, so they are not limited by the variables quota; an agent's context is.
    if (!this.#session.exists) await this.create(record, request.type === 'agent' ? request.inputs : {});
    // Its id is derived, and a derived id authorises nothing (T5).
    else if (!isSameStart(this.#session.record, record)) throw unknownSession();
    const { runId } = await this.#session.child(request);
    return runId;
  }

  /** The session's only alarm. */
  override async alarm(): Promise<void> {
    this.#network.topUp();
    await this.#fork.wake();
    await this.#alarm.fire();
  }
}
