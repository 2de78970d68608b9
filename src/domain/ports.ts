/**
 * The core's interfaces to the outside world. They are passed as arguments, so that a run can be replayed and tested
 * without sleeping. Test fakes implement only these interfaces.
 */
import type { Capability } from './action-types.ts';
import type { ActionError, ActionOutcome } from './action.ts';
import type { Json, JsonObject } from './json.ts';
import type { FeedSource, ImageBuild, RelicDefinition, SandboxLevel, ToolDefinition } from './manifest.ts';
import type { LearnedShapes } from './shape.ts';
import type { Spent } from './spent.ts';
import type { WorkspaceFile, WorkspaceResult } from './workspace.ts';

/** Time. `now` is epoch milliseconds. `schedule` calls back once, not before `delayMs`; it returns a cancel function. */
export interface Clock {
  now(): number;
  schedule(delayMs: number, callback: () => void): () => void;
}

/** 128-bit random ids with a readable prefix, `ses_…`, `run_…`. */
export type NewId = (prefix: 'ses' | 'run' | 'apr') => string;

/** Uniform in [0, 1). */
export type Random = () => number;

export type SqlValue = null | number | string | Uint8Array;
export type SqlRow = Record<string, SqlValue>;

/** A small synchronous SQLite: a Durable Object's database, or node:sqlite (J1). */
export interface SqlDatabase {
  exec(sql: string, ...parameters: SqlValue[]): SqlRow[];
  /** Runs `body` atomically: if it throws, its writes are rolled back. */
  transaction<T>(body: () => T): T;
  /** Resolves when everything written before the call is durable. */
  sync(): Promise<void>;
  /** Size of the database, including unsynced writes. */
  sizeBytes(): number;
}

/** An image or file of a message or a result (C2). Its bytes are read only if a model gets them. */
export interface Attachment {
  readonly kind: 'image' | 'file';
  /** As the client or the tool wrote it: hostile input. */
  readonly name: string;
  readonly mediaType: string;
  /** Bytes. */
  readonly size: number;
  /** Lower-case hexadecimal; absent for files in results. */
  readonly sha256?: string;
  /** Belongs to the turn in progress; a run warns if its model does not get it. */
  readonly isCurrent?: boolean;
  /** @throws Error if the bytes are no longer stored */
  read(): Promise<Uint8Array>;
}

/** Bytes of messages of a session, by their SHA-256 in lower-case hexadecimal (C2). */
export interface BlobStore {
  /** Null if they are not stored. */
  get(sha256: string): Promise<Uint8Array | null>;
}

/** Storage outside the session for the bytes of large files: R2. Each key is only ever put with the same bytes. */
export interface ObjectStore {
  /** @param sha256 of the bytes: others are refused */
  put(key: string, bytes: Uint8Array, sha256: string): Promise<void>;
  /** Null if the object does not exist. */
  get(key: string): Promise<Uint8Array | null>;
  /** Also succeeds if the object does not exist. */
  delete(key: string): Promise<void>;
  /** Deletes up to `limits.objectsPerDeletion` objects whose keys begin with the prefix. @returns whether none remains */
  deleteSome(prefix: string): Promise<boolean>;
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** Contains a placeholder line for each attachment. */
  readonly content: string;
  /** Only of user messages, in order. */
  readonly attachments?: readonly Attachment[];
  readonly toolCallId?: string;
  readonly toolCalls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly arguments: string;
    readonly extra?: JsonObject;
  }[];
}

/** A tool as described to a model. */
export interface ToolSummary {
  readonly name: string;
  readonly summary: string;
  /** JSON Schema of the parameters. */
  readonly parameters: JsonObject;
}

export interface ModelRequest {
  readonly messages: readonly ChatMessage[];
  readonly model: string | null;
  readonly temperature: number | null;
  readonly maxTokens: number | null;
  /** Additional request fields from the manifest, passed through. */
  readonly extra: JsonObject;
  /**
   * What the agent may use, for the demo provider. Null for a call outside the conversation (`type="llm"`), whose
   * answer is plain text and not protocol text.
   */
  readonly agent: {
    readonly name: string;
    readonly tools: readonly ToolSummary[];
    readonly capabilities: readonly Capability[];
    /** The form that the prompt teaches (P18). */
    readonly form: 'full' | 'compact';
    /** Names of callable agents. */
    readonly agents?: readonly string[];
    readonly workflows?: readonly ToolSummary[];
    /** Each endpoint separately, as `relic.endpoint`. */
    readonly relics?: readonly ToolSummary[];
  } | null;
  /** Functions declared to the endpoint (P17); absent means none. */
  readonly tools?: readonly ToolSummary[];
  /** The declared functions must not be called this time: the generation may only answer (S11). */
  readonly answerOnly?: boolean;
  readonly signal: AbortSignal;
}

/** Tokens of one model call. `estimated` if the provider sent none (L6). */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly estimated: boolean;
  /** The requested model; absent if unknown. Its price depends on it (S12). */
  readonly model?: string;
}

/** Why a stream ended (P15). */
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls' | 'error' | 'abort';

export type ModelDelta =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | {
      readonly type: 'tool_call';
      readonly index: number;
      readonly id: string | null;
      readonly name: string | null;
      readonly argumentsDelta: string;
      /** Opaque data that the endpoint expects back with the call, such as a signature. */
      readonly extra?: JsonObject;
    }
  /** Information for the readers of the run, for example that a fallback model answers. */
  | { readonly type: 'notice'; readonly code: 'model_fallback' | 'attachments_not_shown'; readonly message: string }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason };

/** A source of model text. `stream` throws `EngineError` `model_*` for errors that it cannot recover from. */
export interface ModelProvider {
  /** The model that it asks first, as its endpoint calls it: `gpt-4.1-mini`; `demo` for the demo model. */
  readonly name: string;
  /** What a reader of a run should know about the choice of the model; told once per run. */
  readonly notice?: string;
  stream(request: ModelRequest): AsyncIterable<ModelDelta>;
}

/** A job for the runner (R1). Values are passed in `inputs`, never inside the code (P14). */
export interface RunnerJob {
  /** The runtime key and attempt. Submitting the same id twice runs it once. */
  readonly id: string;
  readonly session: string;
  readonly kind: Capability | 'tool';
  /** Source text: python code, a shell command line, or a script tool's source. Empty for a tool with an image. */
  readonly code: string;
  /** For a script of kind `tool`: the interpreter of `code`. */
  readonly runtime: 'python3' | 'node' | 'shell' | null;
  /** For kind `docker` and tools with an image: its name in the runner's engine. */
  readonly image?: string;
  /** For kind `docker`: literal arguments after the command; for scripts of kind `tool`: instead of the input as JSON. */
  readonly args?: readonly string[];
  /** For kind `tool`: the contents of its image, instead of `image` (R3). */
  readonly build?: ImageBuild;
  /** `inputs` of python, shell and docker; the parameters of a tool (R3). */
  readonly inputs: JsonObject;
  readonly limits: { readonly timeoutMs: number; readonly memoryMb: number | null; readonly cpus?: number };
  /** Required sandbox level (R2). */
  readonly sandbox?: SandboxLevel;
  /** Labels that a runner must have to get the job (R7). */
  readonly labels?: readonly string[];
  /** A second execution is harmless (S7): if its runner is gone, another one may run it (R7). */
  readonly movable?: boolean;
  /** The files that its program sees (C7); absent: it has no workspace. */
  readonly workspace?: JobWorkspace;
}

/** The files of a session at the start of a job (C7). */
export interface JobWorkspace {
  readonly files: readonly WorkspaceFile[];
  /** Bytes that all files may have together at the end. */
  readonly maxBytes: number;
  /** The bytes of one of the files, for a runner that does not have them. */
  readonly read: (sha256: string) => Promise<Uint8Array>;
}

/** A sandbox that the runner may reserve, because the opening tag of an action that needs it was read. */
export interface PrewarmHint {
  readonly session: string;
  readonly kind: Capability | 'tool';
  /** For script tools. */
  readonly runtime: 'python3' | 'node' | 'shell' | null;
  readonly sandbox?: SandboxLevel;
  readonly labels?: readonly string[];
}

/** Why a job ended (R4); `build_failed`: its image could not be built, and it never ran. */
export type JobEnd = 'exited' | 'timeout' | 'killed' | 'oom' | 'output_limit' | 'lost' | 'build_failed';

export interface JobResult {
  readonly end: JobEnd;
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  /** What the program left in its workspace; absent unless it had one and ended by itself. */
  readonly workspace?: WorkspaceResult & {
    /** The bytes of changed files, each once, in any order. @throws EngineError `runner_unavailable` */
    readonly read: (
      hashes: readonly string[],
      signal: AbortSignal,
    ) => AsyncIterable<readonly [sha256: string, bytes: Uint8Array]>;
  };
}

/** One request to a relic that runs as a container. */
export interface RelicCall {
  /** Scope: the session's id, or a name shared by all sessions of a namespace. */
  readonly space: string;
  readonly relic: RelicDefinition;
  readonly method: string;
  /** Path and query, escaped. */
  readonly path: string;
  readonly body: JsonObject | null;
  readonly timeoutMs: number;
}

export type RelicAnswer =
  | { readonly ok: true; readonly status: number; readonly type: string; readonly body: string }
  | {
      readonly ok: false;
      readonly code: 'relic_unavailable' | 'relic_broken' | 'relic_timeout' | 'relic_answer_too_large';
      readonly message: string;
      /** Nothing was sent to the service. */
      readonly beforeDispatch: boolean;
    };

/** One request to an edge relic (R6). */
export interface EdgeRelicCall {
  /** Scope: the session's id, or a name shared by all sessions of a namespace. */
  readonly space: string;
  /** Namespace of the calling session; null without keys. */
  readonly owner: string | null;
  readonly relic: RelicDefinition;
  readonly endpoint: string;
  readonly parameters: JsonObject;
  /** Runtime key: repeating a call with the same key changes nothing and returns the same answer. */
  readonly key: string;
}

/** Edge relics: stores that need no runner (R6). */
export interface EdgeRelics {
  /** @throws Error if the store could not be reached, or its answer was lost */
  call(call: EdgeRelicCall): Promise<ActionOutcome>;
  /** The result of an earlier call; null if the call is unknown. */
  lookup(call: Pick<EdgeRelicCall, 'space' | 'relic' | 'key'>): Promise<ActionOutcome | null>;
}

/** Callbacks while a caller waits for a job. Aborting `signal` kills the job. */
export interface JobObserver {
  readonly signal: AbortSignal;
  /** Output of the job. `build` is output of its image build, which is not part of the job's output. */
  readonly output: (stream: 'stdout' | 'stderr' | 'build', text: string) => void;
  /** Called with the reason why a job waits before submission, whenever the reason changes. */
  readonly waiting?: (reason: string) => void;
}

/** The runner service as seen by the Worker: one runner or several (R7). */
export interface RunnerClient {
  /**
   * Runs a job. While no runner can be reached and nothing was sent, it waits, up to the job's timeout.
   *
   * @throws EngineError `runner_busy`, `runner_unavailable`, `runner_rejected` if the job was not accepted
   */
  run(job: RunnerJob, observe: JobObserver): Promise<JobResult>;
  /**
   * The result of a job that an earlier caller submitted (J2). Waits while it runs, and reports its output again from
   * the beginning. A job that its runner lost, or whose runner stays unreachable, ends as `lost`.
   *
   * @returns null if no runner knows the job: it was never started
   */
  lookup(job: Pick<RunnerJob, 'id' | 'session'>, observe: JobObserver): Promise<JobResult | null>;
  /**
   * Calls a relic's service (R5), and starts it first if necessary. Waits for a runner like `run`.
   *
   * @throws EngineError `runner_busy`, `runner_unavailable`, `runner_rejected` if the call was not sent
   */
  callRelic(call: RelicCall, observe: Pick<JobObserver, 'signal' | 'waiting'>): Promise<RelicAnswer>;
  /** Stops the relics of a scope; `forget` also removes their state. Unreachable runners are skipped. */
  stopRelics(space: string, options: { readonly forget: boolean }): Promise<void>;
  /** Deletes the cached files of a deleted session (C7). Unreachable runners are skipped: they delete unused files by age. */
  forgetWorkspace(session: string): Promise<void>;
  /** Asks for a sandbox to be prepared, without waiting. The runner releases unused ones. */
  prewarm(hint: PrewarmHint): void;
  /** Null if unreachable. */
  health(): Promise<JsonObject | null>;
}

/** One attempt of a code tool (K2). */
export interface CodeToolCall {
  readonly name: string;
  readonly parameters: JsonObject;
  /** The same for every attempt of an action. */
  readonly idempotencyKey: string;
  readonly attempt: number;
  readonly bindings: readonly string[];
  readonly secrets: readonly string[];
}

/** Runs code tools apart from the session. */
export interface CodeTools {
  /** Settles soon after the signal aborts. @throws Error if the tool's host ended */
  run(
    call: CodeToolCall,
    options: {
      readonly signal: AbortSignal;
      readonly progress: (update: { readonly text: string; readonly percent?: number }) => void;
    },
  ): Promise<ActionOutcome>;
  /** Reports that the host of the session ended while this tool ran. */
  lost(name: string): Promise<void>;
}

/** Outbound HTTP under the operator's rules (X2). */
export interface OutboundFetch {
  (
    url: string,
    init: {
      readonly method?: string;
      readonly headers?: Record<string, string>;
      readonly body?: string;
      readonly signal: AbortSignal;
    },
  ): Promise<Response>;
}

/** A file that is being fetched. Its body throws the errors of `FileFetch` as well. */
export interface FetchedFile {
  /** As its server states it. */
  readonly contentType: string | null;
  /** After decompression. Leaving the loop stops the transfer. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Fetches the files that messages name by URL, under the operator's rules (C2, X2). */
export interface FileFetch {
  /**
   * @throws EngineError `url_refused`, `url_failed`, `url_timeout`, `runner_unavailable`. Their messages say nothing about
   *   the network behind the URL: no addresses, no targets of redirects, no text of the server.
   */
  (
    url: string,
    init: {
      readonly signal: AbortSignal;
      /** Whether the hosts that the operator allows for tools (`ALLOW_HOSTS`) are allowed. */
      readonly operatorHosts: boolean;
    },
  ): Promise<FetchedFile>;
}

/** Reads a page for `web_fetch` and `web_extract`. The Worker streams it through HTMLRewriter. */
export interface HtmlReader {
  (
    page: Response,
    request: {
      /** CSS selectors whose text is collected; empty means the readable text of the whole page. */
      readonly selectors: readonly string[];
      readonly maxChars: number;
    },
  ): Promise<{
    readonly title: string | null;
    readonly text: string;
    readonly matches: Readonly<Record<string, readonly string[]>>;
    readonly links: readonly { readonly href: string; readonly text: string }[];
    readonly truncated: boolean;
  }>;
}

/** The part of its parent's budget that a sub-agent or workflow may spend (S12); null means no limit. */
export interface ChildBudget {
  readonly seconds: number;
  readonly modelCalls: number;
  readonly tokens: number | null;
  /** US dollars. */
  readonly cost: number | null;
  readonly actions: number;
  /** Sessions that it may start itself, including nested ones (M7). */
  readonly children: number;
}

/** A run in a separate session, for an action of another session (M6, M7). */
export interface ChildRequest {
  /** Runtime key and attempt of the action: the same key always identifies the same child (J2). */
  readonly key: string;
  readonly type: 'agent' | 'workflow';
  readonly name: string;
  /** Of a definition that only the parent sees (M2). */
  readonly scope?: string;
  /** Message to a sub-agent; empty for a workflow. */
  readonly message: string;
  /** A sub-agent's initial variables; a workflow's inputs. */
  readonly inputs: JsonObject;
  readonly budget: ChildBudget | null;
  /** What started a workflow by itself, so that no client follows it (M6, C3). */
  readonly trigger?: AutomaticTrigger;
}

/** A caller of `POST /events/{event}` gets the sessions and can follow them; these two have no such caller. */
export type AutomaticTrigger = 'schedule' | 'webhook';

/** How a child ended. */
export interface ChildEnd {
  readonly sessionId: string;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** A sub-agent's answer; a workflow's outputs. */
  readonly output: Json;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly spent: Spent;
}

export interface ChildObserver {
  /** Aborting it cancels the child and everything that the child has started. */
  readonly signal: AbortSignal;
  /** The child's events as its own clients see them, in order; some may repeat after a reconnect. */
  readonly event: (event: JsonObject) => void;
}

/** Starts child sessions. */
export interface ChildSessions {
  /** Starts the child, or joins the one with this key, and waits for its end. */
  run(child: ChildRequest, observer: ChildObserver): Promise<ChildEnd>;
}

/** A shared feed, with everything that its value depends on: equal requests have the same value (F6). */
export interface SharedFeedRequest {
  /** Namespace that owns the session; null without keys. */
  readonly owner: string | null;
  readonly source: FeedSource;
  /** The definitions of the source, with resolved variables and secrets. */
  readonly tool: ToolDefinition | null;
  readonly relic: RelicDefinition | null;
  /** A longer value is cut (F4). */
  readonly maxChars: number;
  /** An older value is fetched again. */
  readonly maxAgeMs: number;
  /** How long to wait for the fetch if there is an older value. */
  readonly waitMs: number;
}

/** The latest value: when it was fetched (null: never), and why the latest fetch failed (null: it succeeded). */
export interface SharedFeedValue {
  readonly value: Json;
  readonly at: number | null;
  readonly error: string | null;
}

/** Values of feeds that the sessions of a namespace share (F6). */
export interface SharedFeeds {
  /** @throws Error if the value could not be read */
  read(request: SharedFeedRequest): Promise<SharedFeedValue>;
}

/** The shapes of results that the runs of a namespace have learned (L4). */
export interface ShapeStore {
  /** Stores shapes that differ from the known ones, without waiting. They may be lost. */
  learn(shapes: LearnedShapes): void;
}

/** A session's feeds, for internal actions (I). Throws `EngineError` for the model's mistakes. */
export interface FeedStore {
  list(): JsonObject[];
  add(written: JsonObject): Promise<JsonObject>;
  update(id: string, changes: JsonObject): Promise<JsonObject>;
  remove(id: string): boolean;
}

/** A session's workspace, for its programs, its skills and people (C7, C8). */
export interface WorkspaceStore {
  /** In the order of their paths. */
  list(): readonly WorkspaceFile[];
  file(path: string): WorkspaceFile | null;
  /** Bytes that all files may have together. */
  readonly maxBytes: number;
  /** The bytes of a file by their hash; null if no file of the workspace has them. @throws EngineError `storage_unavailable` */
  read(sha256: string): Promise<Uint8Array | null>;
  /**
   * Writes files: all of them, or none. A file at a path that is a folder replaces the folder, and the other way round.
   *
   * @param check called in the same turn as the change, directly before it; what it throws refuses the change
   * @throws EngineError `invalid_request` for a path that is not allowed, `workspace_full`, `storage_unavailable`
   */
  write(
    files: readonly { readonly path: string; readonly bytes: Uint8Array; readonly executable?: boolean }[],
    check?: () => void,
  ): Promise<readonly WorkspaceFile[]>;
  /** Removes a file, or all files of a folder. @param check as in `write` @returns what was removed */
  remove(path: string, check?: () => void): Promise<readonly WorkspaceFile[]>;
}

/** The workspace as one attempt of an action sees it (C7). */
export interface ActionWorkspace extends Pick<WorkspaceStore, 'write'> {
  /** Runs a job with the files of this moment. Their bytes stay readable until it has ended. */
  use<T>(job: (workspace: JobWorkspace) => Promise<T>): Promise<T>;
  /**
   * Commits what the attempt's program changed, with an event and its warnings. A second call for the same attempt changes
   * nothing: a recovered job reports its files again (J2).
   *
   * @returns why nothing was committed, or null
   */
  commit(changed: NonNullable<JobResult['workspace']>): Promise<ActionError | null>;
}

/** A session's variables, for internal actions and references. */
export interface VariableStore {
  get(key: string): Json | undefined;
  set(key: string, value: Json): void;
  delete(key: string): boolean;
  entries(): readonly (readonly [string, Json])[];
}
