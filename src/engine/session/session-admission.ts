/**
 * The checks before a run is created, and its creation.
 *
 * Owns whether the session still accepts anything, and the messages whose files are being fetched. Does not own the runs
 * (session-runs.ts) or the bytes of files (session-files.ts).
 *
 * Invariants:
 *  1. The checks of a message and the creation of its run happen synchronously. If its files must be put somewhere first,
 *     the checks are repeated.
 *  2. A run exists with its files, or neither does. What waits goes on waiting if its successor could not be stored.
 *  3. Nothing is accepted after `close`.
 */
import { filesOfContent } from '../../domain/content.ts';
import type { MessageContent } from '../../domain/content.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ChildRequest } from '../../domain/ports/children.ts';
import type { RunPlace, RunRecord, SessionRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { runIdOf } from '../../journal/run-id.ts';
import { admitTools } from './passed-tools.ts';
import type { PassedTool } from './passed-tools.ts';
import { PendingMessages } from './pending-messages.ts';
import { recordOf, sourceOf, withKnownPatterns } from './run-setup.ts';
import { NO_FILES, NOTHING_STAGED } from './session-files.ts';
import type { FileBytes, SessionFiles } from './session-files.ts';
import { sessionFull } from './session-full.ts';
import type { SessionPorts, SessionScope } from './session-ports.ts';
import type { SessionRecovery } from './session-recovery.ts';
import type { SessionRuns } from './session-runs.ts';
import { certain, SessionSteering } from './session-steering.ts';
import type { Accepted } from './session-steering.ts';
import type { SessionWorkspace } from './session-workspace.ts';

/** The content of a message with files that are not fetched yet (C2). */
export interface PendingContent {
  /** The SHA-256 of what the client sent: a repeated message has the same, whatever its URLs serve by then. */
  readonly sent: string;
  /** The files that came with the message. */
  readonly files: FileBytes;
  /** Writes nothing. Rejects with the signal's reason if it aborts. */
  readonly fetch: (
    signal: AbortSignal,
  ) => Promise<Required<Pick<MessageRequest, 'files'>> & { content: MessageContent }>;
}

export interface MessageRequest {
  readonly content: MessageContent;
  /** What the client sent, if the files were fetched. */
  readonly sent?: string;
  /** The bytes of its files by their SHA-256 (policies/message-content.ts). */
  readonly files?: FileBytes;
  /** Client tools of this message (C3). */
  readonly tools?: readonly PassedTool[];
  /** For this run; only from callers with an API key. Default: none. */
  readonly instructions?: string;
  /** Stored with the message. */
  readonly metadata?: JsonObject | undefined;
  /** The caller's span, as `traceparent` (O1). */
  readonly trace?: string;
  /** During a run: the message waits behind it, is refused, or is shown to the model in its next generation (C5). */
  readonly ifBusy: 'queue' | 'reject' | 'steer';
  readonly tokens: boolean;
  readonly idempotencyKey: string | null;
  /** Where its run is in the tree of runs. Default: it follows the head (C4). */
  readonly place?: RunPlace;
  /** The place must be behind the head when the message is accepted: the sender may not branch. */
  readonly mayBranch?: false;
}

/** A message without its content, which is being fetched. */
export type UnfetchedMessage = Omit<MessageRequest, 'content' | 'files' | 'sent'>;

function bytesOf(files: FileBytes): number {
  return [...files.values()].reduce((sum, { length }) => sum + length, 0);
}

interface AdmissionParts {
  readonly scope: SessionScope;
  readonly runs: SessionRuns;
  readonly files: SessionFiles;
  readonly workspace: Pick<SessionWorkspace, 'addUploads'>;
  readonly recovery: Pick<SessionRecovery, 'forgiveFeeds'>;
  /** What an earlier host left unfinished comes first (J3). */
  readonly recover: () => Promise<void>;
}

export class SessionAdmission {
  readonly #scope: SessionScope;
  readonly #journal: Journal;
  readonly #runs: SessionRuns;
  readonly #files: SessionFiles;
  readonly #workspace: AdmissionParts['workspace'];
  readonly #recovery: AdmissionParts['recovery'];
  readonly #recover: AdmissionParts['recover'];
  readonly #pending = new PendingMessages();
  readonly #steering: SessionSteering;
  #isClosed = false;

  constructor({ scope, runs, files, workspace, recovery, recover }: AdmissionParts) {
    this.#scope = scope;
    this.#journal = scope.journal;
    this.#runs = runs;
    this.#files = files;
    this.#workspace = workspace;
    this.#recovery = recovery;
    this.#recover = recover;
    this.#steering = new SessionSteering({ scope, runs, recovery, requireOpen: () => this.#requireOpen() });
  }

  /** The session is about to be deleted and accepts nothing more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    this.#isClosed = true;
    this.#pending.close(unknownSession());
  }

  get #record(): SessionRecord {
    return recordOf(this.#scope);
  }

  /**
   * Accepts a message: starts its run, queues it behind the active one (H1), or gives it to the active one (C5). Resolves to
   * its run; of a message that is given to a run, once it is certain which run takes it.
   *
   * @throws EngineError `run_in_progress`, `queue_full`, `session_full`, `idempotency_mismatch`, `storage_unavailable`;
   *   `invalid_request` in a workflow session
   */
  async message(request: MessageRequest): Promise<RunRecord> {
    return await (
      await this.accept(request)
    ).run;
  }

  /** The same; resolves when the message is durable. @throws EngineError the same */
  async accept(request: MessageRequest): Promise<Accepted> {
    const {
      content,
      files = NO_FILES,
      sent,
      tools = [],
      instructions,
      metadata,
      tokens,
      idempotencyKey,
      place,
    } = request;
    await this.#recover();
    this.#requireConversation();
    const passed = (): { tools?: Json } => (tools.length === 0 ? {} : { tools: this.#admitTools(tools, manifests) });
    let manifests = await this.#pin();
    if (request.ifBusy === 'steer') requireSteerable(request);
    // The message is accepted, or given to a run, in the turn in which it was checked.
    while (this.#steering.underWay(idempotencyKey) !== undefined) await this.#steering.underWay(idempotencyKey);
    let earlier = this.#check(request, this.#files.rowBytes(files));
    let staged = NOTHING_STAGED;
    try {
      if (earlier === null && this.#files.needsStage(files)) {
        passed();
        staged = await this.#files.stage(files, content);
        // Much may have happened meanwhile; manifests are kept only for runs that exist.
        manifests = await this.#pin();
        while (this.#steering.underWay(idempotencyKey) !== undefined) await this.#steering.underWay(idempotencyKey);
        earlier = this.#check(request, this.#files.rowBytes(files));
      }
      if (earlier !== null) return await this.#durable(earlier);
      const run = { type: 'message', content: content as Json, ...passed() };
      const stored = {
        ...(instructions === undefined ? {} : { instructions }),
        ...(metadata === undefined ? {} : { metadata }),
        ...tracedBy(request),
        ...(sent === undefined || idempotencyKey === null ? {} : { sent_sha256: sent }),
      };
      const input = { ...run, ...stored, tokens, manifests };
      const store = (): void => {
        this.#files.commit(files, [content], staged);
        this.#workspace.addUploads(filesOfContent(content));
      };
      const submit = async (): Promise<Accepted> =>
        certain(await this.#submit(input, { idempotencyKey, store: files.size === 0 ? null : store, place }));
      const { receiving } = this.#runs;
      if (request.ifBusy !== 'steer' || receiving === null) return await submit();
      const steering = { input, content, idempotencyKey, store };
      return await this.#steering.alone(
        idempotencyKey,
        async () => (await this.#steering.steer(receiving, steering)) ?? (await submit()),
      );
    } finally {
      staged.release();
    }
  }

  /**
   * Accepts a message once its files are fetched. Until then nothing of it is stored, and nothing else waits for it. What
   * can be refused before is refused before, and a repeated message is recognised.
   *
   * @param signal aborts when the client leaves: then the message is not accepted
   * @throws EngineError like `message` and `pending.fetch`
   */
  async pendingMessage(
    request: UnfetchedMessage,
    { sent, files: own, fetch }: PendingContent,
    signal: AbortSignal,
  ): Promise<Accepted> {
    await this.#recover();
    this.#requireConversation();
    if (request.ifBusy === 'steer') requireSteerable(request);
    return await this.#pending.run(request.idempotencyKey, signal, async (either) => {
      const { tools = [] } = request;
      const manifests = tools.length === 0 ? null : await this.#pin();
      const earlier = this.#check({ ...request, content: '', sent }, this.#files.rowBytes(own));
      if (earlier !== null) return await this.#durable(earlier);
      if (tools.length > 0) this.#admitTools(tools, manifests);
      const { content, files } = await fetch(either);
      this.#scope.share.charge(bytesOf(files) * limits.bodyByteSteps);
      either.throwIfAborted();
      return await this.accept({ ...request, content, files, sent });
    });
  }

  #requireConversation(): void {
    const { workflow } = this.#record;
    if (workflow === undefined) return;
    const message = `This session is a run of the workflow "${workflow}" and accepts no messages`;
    throw new EngineError('invalid_request', message);
  }

  /**
   * Whether a message can be accepted now.
   *
   * @param size of its files
   * @returns a repeated message
   */
  #check(request: MessageRequest, size: number): Accepted | null {
    const earlier = this.#earlier(request);
    if (earlier !== null) return earlier;
    if (!this.#journal.hasRoomFor(size)) {
      throw new EngineError('session_full', sessionFull('accepts no further messages'));
    }
    if (request.mayBranch === false && request.place?.parent !== this.#journal.runs.head) {
      throw new EngineError(
        'forbidden',
        'Another message has arrived, and only the scope "branch" may go back behind it',
      );
    }
    const current = this.#runs.answering;
    if (request.ifBusy === 'reject') {
      if (current !== null) throw this.#inProgress(current, 'has not ended yet');
      const parked = this.#journal.runs.open().find(({ status }) => status === 'waiting');
      if (parked !== undefined) throw this.#inProgress(parked.run, this.#whatItWaitsFor(parked.run));
    }
    this.#runs.requireRoom();
    return null;
  }

  /** A repeated message is accepted once the first one is durable: its sync may be under way. */
  async #durable(earlier: Accepted): Promise<Accepted> {
    await this.#journal.sync();
    return earlier;
  }

  /** The message that was accepted with this key. @throws EngineError `idempotency_mismatch` if it was another one */
  #earlier(request: MessageRequest): Accepted | null {
    const { idempotencyKey: key } = request;
    if (key === null) return null;
    const run = this.#journal.runs.byIdempotencyKey(key);
    const received = run === null ? this.#journal.steered.byIdempotencyKey(key) : null;
    const record = run ?? (received === null ? null : this.#journal.runs.require(received.run));
    if (record === null) return null;
    if (isSame(received === null ? record : { ...UNPLACED, input: received.input }, request)) {
      return received === null ? certain(record) : this.#steering.takerOf(received);
    }
    throw new EngineError(
      'idempotency_mismatch',
      `Idempotency-Key "${key}" was used for another message (run ${record.runId})`,
      { run_id: record.runId },
    );
  }

  /** @throws EngineError `client_tools_denied`, `invalid_client_tools` */
  #admitTools(tools: readonly PassedTool[], manifests: string | null): Json {
    const resolved = this.#scope.resolve(this.#record.agent, manifests);
    // A run without its agent fails when it begins.
    return resolved === null ? [] : (admitTools(tools, resolved) as unknown as Json);
  }

  #whatItWaitsFor(run: number): string {
    return this.#runs.get(run)?.live.openApprovals().length === 0
      ? 'waits for the result of a client tool'
      : 'waits for an approval';
  }

  /**
   * Pins the session's manifests.
   *
   * @throws EngineError `unknown_session` if the session was closed meanwhile: then its tables may be gone
   */
  async #pin(): Promise<Awaited<ReturnType<SessionPorts['pin']>>> {
    try {
      return await this.#scope.pin(this.#record);
    } finally {
      // Pinning reads the tables as well: its own error is then about them.
      this.#requireOpen();
    }
  }

  #requireOpen(): void {
    if (this.#isClosed) throw unknownSession();
  }

  #inProgress(run: number, why: string): EngineError {
    const runId = runIdOf(this.#record, run);
    return new EngineError('run_in_progress', `Run ${runId} ${why}`, { run_id: runId });
  }

  /**
   * Runs one action again, in a run of its own (C4).
   *
   * @param input of `rerunInput`
   * @param placeNow where its run would be in the tree of runs at this moment
   * @throws EngineError like `message`
   */
  async rerun(
    input: JsonObject,
    request: Pick<MessageRequest, 'ifBusy' | 'idempotencyKey' | 'trace'>,
    placeNow: () => RunPlace,
  ): Promise<Accepted> {
    await this.#recover();
    this.#requireConversation();
    const manifests = await this.#pin();
    const { idempotencyKey: key } = request;
    while (this.#steering.underWay(key) !== undefined) await this.#steering.underWay(key);
    const placed = { ...request, place: placeNow() };
    const earlier = this.#check({ ...placed, content: String(input['content']), tokens: false }, 0);
    if (earlier !== null) return await this.#durable(earlier);
    return certain(await this.#submit({ ...input, manifests, ...tracedBy(request) }, placed));
  }

  /** Runs protocol text without a model; `text` is null if the text is still arriving. */
  async execute(chunks: AsyncIterable<string>, text: string | null, by: Traced = {}): Promise<RunRecord> {
    await this.#recover();
    const manifests = await this.#pin();
    const input: JsonObject = text === null ? { type: 'stream' } : { type: 'text', text };
    return await this.#submit({ ...input, manifests, ...tracedBy(by) }, { chunks });
  }

  /** Starts the only run of a child, or finds it if the parent asks again (M7). */
  async child(request: ChildRequest): Promise<RunRecord> {
    const { type, message, inputs, budget, trigger, trace, policies = [], redact = [] } = request;
    await this.#recover();
    const manifests = await this.#pin();
    const known = this.#journal.runs.get(1);
    if (known !== null) return known;
    const input: JsonObject =
      type === 'agent' ? { type: 'message', content: message, tokens: false } : { type: 'workflow', inputs };
    const started = { ...(trigger === undefined ? {} : { trigger }), ...tracedBy({ trace }) };
    const bound = {
      ...(policies.length === 0 ? {} : { policies: policies as unknown as Json }),
      ...(redact.length === 0 ? {} : { redact: redact.slice(0, limits.redactPatternsPerRun) }),
    };
    return await this.#submit({ ...input, ...started, ...bound, budget: budget as JsonObject | null, manifests });
  }

  /** Runs the session's workflow (M6). */
  async workflow(inputs: JsonObject, by: Traced = {}): Promise<RunRecord> {
    await this.#recover();
    const manifests = await this.#pin();
    return await this.#submit({ type: 'workflow', inputs, manifests, ...tracedBy(by) });
  }

  async #submit(
    input: JsonObject,
    { idempotencyKey = null, chunks = null, store = null, place }: Submission = {},
  ): Promise<RunRecord> {
    this.#requireOpen();
    this.#recovery.forgiveFeeds();
    const isBusy = this.#runs.isTaken;
    const now = this.#scope.clock.now();
    const create = (): RunRecord => {
      store?.();
      return this.#journal.runs.create(
        withKnownPatterns(this.#scope, input),
        now,
        isBusy ? 'queued' : 'running',
        idempotencyKey,
        place,
      );
    };
    // The run exists with its files, or neither does.
    const record = store === null ? create() : this.#journal.atomically(create);
    // Not before: what waits goes on waiting if its successor could not be stored.
    this.#runs.supersede();
    const source = (): ReturnType<typeof sourceOf> => sourceOf(this.#scope, record, chunks);
    this.#runs.add({ run: record.run, source, isRecovered: false }, !isBusy);
    await this.#journal.sync();
    return record;
  }
}

/** The caller's span, as `traceparent`; a run's input has it as `trace` (O1). */
export type Traced = { readonly trace?: string | undefined };

function tracedBy({ trace }: Traced): { readonly trace?: string } {
  return trace === undefined ? {} : { trace };
}

/** A message that a run has received has no place of its own. */
const UNPLACED = { parent: 0, retryOf: null };

/** @throws EngineError `invalid_request` for what only a run of its own can have */
function requireSteerable({ tools = [], instructions, place }: UnfetchedMessage): void {
  const what =
    tools.length > 0
      ? 'tools'
      : instructions !== undefined
        ? 'instructions'
        : place !== undefined
          ? 'parent_run'
          : null;
  if (what === null) return;
  throw new EngineError(
    'invalid_request',
    `A message with "${what}" cannot be shown to a run that is active; use if_busy=queue`,
  );
}

interface Submission {
  readonly idempotencyKey?: string | null;
  readonly chunks?: AsyncIterable<string> | null;
  readonly store?: (() => void) | null;
  readonly place?: RunPlace | undefined;
}

/** Whether a repeated message is the same one. If files were fetched, what the client sent is compared. */
function isSame(
  { input, parent, retryOf }: Pick<RunRecord, 'input' | 'parent' | 'retryOf'>,
  { content, sent, tools = [], instructions, place }: MessageRequest,
): boolean {
  if (place !== undefined && (place.parent !== parent || place.retryOf !== retryOf)) return false;
  if (input['instructions'] !== instructions) return false;
  const before = input['sent_sha256'];
  if (before !== undefined || sent !== undefined) return before === sent;
  const text = JSON.stringify([input['content'], input['tools'] ?? []]);
  return text === JSON.stringify([content, tools]);
}
