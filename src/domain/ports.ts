/**
 * The outside world as the core sees it. Everything here is an argument, so that a run can be
 * replayed and tested without sleeping; fakes implement only these interfaces.
 */
import type { Capability } from './action-types.ts';
import type { ActionOutcome } from './action.ts';
import type { Json, JsonObject } from './json.ts';
import type { ImageBuild, RelicDefinition, SandboxLevel } from './manifest.ts';
import type { Spent } from './spent.ts';

/** Time. `now` is epoch milliseconds; `schedule` calls back once, never before `delayMs`, and returns its cancel. */
export interface Clock {
  now(): number;
  schedule(delayMs: number, callback: () => void): () => void;
}

/** The operator's log. `fields` are data beside the message, such as the request or a stack. */
export type Logger = (
  level: 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** 128-bit random ids with a readable prefix, `ses_…`, `run_…`. */
export type NewId = (prefix: 'ses' | 'run' | 'apr') => string;

/** Uniform in [0, 1). */
export type Random = () => number;

export type SqlValue = null | number | string | Uint8Array;
export type SqlRow = Record<string, SqlValue>;

/** A small synchronous SQLite: a Durable Object's own, or node:sqlite (J1). */
export interface SqlDatabase {
  exec(sql: string, ...parameters: SqlValue[]): SqlRow[];
  /** Runs `body` atomically: what it throws undoes its writes. */
  transaction<T>(body: () => T): T;
  /** Resolves when everything written before the call is on disk. */
  sync(): Promise<void>;
  /** What the database takes up, written or not on disk yet. */
  sizeBytes(): number;
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
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
  /** Further request fields from the manifest, passed through. */
  readonly extra: JsonObject;
  /**
   * What the agent may use; the demo provider reads it. Null for a call
   * outside the conversation (`type="llm"`), whose answer is plain text and no protocol.
   */
  readonly agent: {
    readonly name: string;
    readonly tools: readonly ToolSummary[];
    readonly capabilities: readonly Capability[];
    /** Which form the prompt teaches (P18). */
    readonly form: 'full' | 'compact';
    /** Names of agents that it may ask. */
    readonly agents?: readonly string[];
    readonly workflows?: readonly ToolSummary[];
    /** Each endpoint by itself, `relic.endpoint`. */
    readonly relics?: readonly ToolSummary[];
  } | null;
  /** Declared to the endpoint as functions (P17); without it none are. */
  readonly tools?: readonly ToolSummary[];
  /** The functions that are declared may not be called this time: the generation may only answer (S11). */
  readonly answerOnly?: boolean;
  readonly signal: AbortSignal;
}

/** Tokens of one model call. `estimated` when the provider sent none (L6). */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly estimated: boolean;
  /** The model, as the endpoint was asked for it; absent when that is not known. Its price depends on it (S12). */
  readonly model?: string;
}

/** How a stream ended (P15). */
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
      /** What the endpoint wants back with the call as it is, such as a signature. */
      readonly extra?: JsonObject;
    }
  /** Information for the readers of the run, for example that a fallback model answers. */
  | { readonly type: 'notice'; readonly code: 'model_fallback'; readonly message: string }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason };

/** A source of model text. `stream` throws `EngineError` `model_*` for what it cannot recover from. */
export interface ModelProvider {
  readonly name: string;
  stream(request: ModelRequest): AsyncIterable<ModelDelta>;
}

/** A job for the runner (R1). Values travel in `inputs`, never inside the code (P14). */
export interface RunnerJob {
  /** The runtime key and attempt; the same id twice is one execution. */
  readonly id: string;
  readonly session: string;
  readonly kind: Capability | 'tool';
  /** Source text: python code, a shell command line, or a script tool's source; empty for a tool with an image. */
  readonly code: string;
  /** For a script of kind `tool`: which interpreter runs `code`. */
  readonly runtime: 'python3' | 'node' | 'shell' | null;
  /** For kind `docker` and tools that have one: the image by name, as the runner's engine knows it. */
  readonly image?: string;
  /** For kind `docker`: literal arguments behind the command. */
  readonly args?: readonly string[];
  /** For kind `tool`: what its image is made of, instead of `image` (R3). */
  readonly build?: ImageBuild;
  /** `inputs` of python, shell and docker; the parameters of a tool (R3). */
  readonly inputs: JsonObject;
  readonly limits: { readonly timeoutMs: number; readonly memoryMb: number | null; readonly cpus?: number };
  /** Required sandbox level (R2). */
  readonly sandbox?: SandboxLevel;
  /** Labels that a runner must have to get the job (R7). */
  readonly labels?: readonly string[];
  /** A second execution does no harm (S7): when its runner is gone, another one may run it (R7). */
  readonly movable?: boolean;
}

/** A sandbox that the runner may reserve, because an action that needs it has been opened. */
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
}

/** One request to a relic that runs as a service. */
export interface RelicCall {
  /** Scope: the session's id, or a name that all sessions of a key share. */
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
  /** Scope: the session's id, or a name that all sessions of a key share. */
  readonly space: string;
  /** Name of the API key that asks; null without keys. */
  readonly owner: string | null;
  readonly relic: RelicDefinition;
  readonly endpoint: string;
  readonly parameters: JsonObject;
  /** Runtime key: the same call again changes nothing twice and is answered as it was. */
  readonly key: string;
}

/** The stores that need no runner (R6). */
export interface EdgeRelics {
  /** @throws Error when the store could not be reached, or its answer was lost */
  call(call: EdgeRelicCall): Promise<ActionOutcome>;
  /** What a call has changed; null when nothing is known of it. */
  lookup(call: Pick<EdgeRelicCall, 'space' | 'relic' | 'key'>): Promise<ActionOutcome | null>;
}

/** Callbacks while a caller waits for a job. Aborting `signal` kills the job. */
export interface JobObserver {
  readonly signal: AbortSignal;
  /** Output of the job; `build`: output of the build of its image, which is not part of the job's output. */
  readonly output: (stream: 'stdout' | 'stderr' | 'build', text: string) => void;
  /** Called with the reason why the job waits before it is submitted, whenever the reason changes. */
  readonly waiting?: (reason: string) => void;
}

/** The companion service as the Worker sees it: one runner or several (R7). */
export interface RunnerClient {
  /**
   * Waits for a runner while none can be reached and nothing was sent, within the job's time.
   *
   * @throws EngineError `runner_busy`, `runner_unavailable`, `runner_rejected` when the job was not taken
   */
  run(job: RunnerJob, observe: JobObserver): Promise<JobResult>;
  /**
   * What became of a job that an earlier caller handed over (J2). Waits for its end while it runs, and
   * reports its output again from the beginning. A job that its runner lost, or whose runner stays out
   * of reach, ends as `lost`.
   *
   * @returns null when no runner knows the job: it was never started
   */
  lookup(job: Pick<RunnerJob, 'id' | 'session'>, observe: JobObserver): Promise<JobResult | null>;
  /**
   * One call of a relic's service (R5), which is started first where it does not run. Waits for a runner as `run` does.
   *
   * @throws EngineError `runner_busy`, `runner_unavailable`, `runner_rejected` when it was not asked
   */
  callRelic(call: RelicCall, observe: Pick<JobObserver, 'signal' | 'waiting'>): Promise<RelicAnswer>;
  /** Stops the relics of a space; `forget` removes their state, too. A runner out of reach is left to itself. */
  stopRelics(space: string, options: { readonly forget: boolean }): Promise<void>;
  /** Asks for a sandbox to be held ready, and waits for nothing; what is not used is released by the runner. */
  prewarm(hint: PrewarmHint): void;
  /** Null when unreachable. */
  health(): Promise<JsonObject | null>;
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

/** What `web_fetch` and `web_extract` want of a page. The Worker reads it with HTMLRewriter, as it streams. */
export interface HtmlReader {
  (
    page: Response,
    request: {
      /** CSS selectors whose text is collected; none = readable text of the whole page. */
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

/** What a sub-agent or a workflow may spend of its parent's budget (S12); null = no limit. */
export interface ChildBudget {
  readonly seconds: number;
  readonly modelCalls: number;
  readonly tokens: number | null;
  /** US dollars. */
  readonly cost: number | null;
  readonly actions: number;
  /** Sessions that it may start itself, with those that these start (M7). */
  readonly children: number;
}

/** A run in a separate session, for an action of another session (M6, M7). */
export interface ChildRequest {
  /** Runtime key and attempt of the action: the same key is the same child, however often it is asked for (J2). */
  readonly key: string;
  readonly type: 'agent' | 'workflow';
  readonly name: string;
  /** Message to a sub-agent; empty for a workflow. */
  readonly message: string;
  /** A sub-agent's first variables; a workflow's inputs. */
  readonly inputs: JsonObject;
  readonly budget: ChildBudget | null;
}

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
  /** Aborting it cancels the child, and what the child has started itself. */
  readonly signal: AbortSignal;
  /** The child's events as its own clients see them, in order; some may come again after a cut. */
  readonly event: (event: JsonObject) => void;
}

/** Sessions that a session starts. */
export interface ChildSessions {
  /** Starts the child, or joins the one with this key, and waits for its end. */
  run(child: ChildRequest, observer: ChildObserver): Promise<ChildEnd>;
}

/** A session's feeds, as internal actions see them (I). Throws `EngineError` for the model's mistakes. */
export interface FeedStore {
  list(): JsonObject[];
  add(written: JsonObject): Promise<JsonObject>;
  update(id: string, changes: JsonObject): Promise<JsonObject>;
  remove(id: string): boolean;
}

/** A session variable store, as internal actions and references use it. */
export interface VariableStore {
  get(key: string): Json | undefined;
  set(key: string, value: Json): void;
  delete(key: string): boolean;
  entries(): readonly (readonly [string, Json])[];
}
