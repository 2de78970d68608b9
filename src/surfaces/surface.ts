/**
 * The contract of protocol adapters: unchanged clients of other systems use our sessions (E1 to E4).
 *
 * An adapter translates in both directions and decides nothing: `read` turns a request into a command, `fold` turns the
 * events of a run into the frames of its protocol. It does no I/O, and knows neither HTTP nor the engine. The routes are
 * in http/surfaces/.
 *
 * Invariants:
 *  1. A fold depends only on its run and on the events that it was given. Folding a run again from its first event gives
 *     the same folded message, however its patches were cut.
 *  2. A stream always ends with a frame that says how. Only a run that has completed ends as a success.
 */
import type { ArtifactEntry } from '../domain/artifact.ts';
import type { EngineError } from '../domain/errors.ts';
import type { MessageContent } from '../domain/content.ts';
import type { EventType, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { RunStatus } from '../domain/session.ts';

/** The protocols that clients may speak; `http` is our own. User tokens name those that they are for (T3). */
export const SURFACE_NAMES = ['ai-sdk', 'openai', 'ag-ui', 'mcp'] as const;
export type SurfaceName = (typeof SURFACE_NAMES)[number];

// --- requests ---

/** A request, with its body parsed. */
export interface SurfaceInput {
  readonly body: Json;
  /** Parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Parameters of the query, as the route declares them. */
  readonly query: Readonly<Record<string, unknown>>;
  /** `Idempotency-Key`. */
  readonly key: string | null;
  /** `X-Session-Id`. */
  readonly session: string | null;
  /** Whether the caller has an API key. Others may neither give instructions nor a history. */
  readonly isKey: boolean;
}

/** The session that a request is for. */
export type Thread =
  /** The session of the client's own name for a conversation; created if there is none. An id of a session names itself. */
  | { readonly type: 'named'; readonly name: string }
  /** A session that exists. */
  | { readonly type: 'session'; readonly sessionId: string }
  /** A session of its own. */
  | {
      readonly type: 'new';
      /** Messages as of `POST /agent/{name}/session`, also in OpenAI's spelling (C1); from API keys only. */
      readonly history: readonly Json[];
      /** Whether it is unlisted, and deleted one hour after its last run. */
      readonly isEphemeral: boolean;
      /** The same key with the same history gives the same session; null: always another one. */
      readonly key: string | null;
    };

/** A tool that the client executes (C3). */
export interface SurfaceTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** The result of a call of a client tool. */
export type SurfaceAnswer =
  | { readonly callId: string; readonly output: Json }
  | { readonly callId: string; readonly error: { readonly message: string } };

export interface SurfaceDecision {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly note: string | null;
  /** The values that answer a question; absent: the defaults of its schema. */
  readonly content?: JsonObject;
}

export interface SurfaceMessage {
  /** A text, or parts as in `POST …/message` (C2). */
  readonly content: string | readonly JsonObject[];
  readonly tools: readonly SurfaceTool[];
  /** What the `system` messages of the request say; only from API keys. */
  readonly instructions: string | null;
  /** Idempotency key; null: every request is another message. */
  readonly key: string | null;
  readonly metadata: JsonObject | null;
  /** The client has the message from the list of messages: it is that of this run, if the session has such a run. */
  readonly runId?: string;
  /**
   * The client means a message that it has sent before: to change it, or to have it answered again (C4). The message may
   * never have arrived. `of`: the run whose answer the client wants another one for; null: it does not say.
   */
  readonly changes?: { readonly how: 'edited' } | { readonly how: 'again'; readonly of: string | null };
  /** The conversation of the request has the same message before: a repeated request cannot be told from a new message. */
  readonly isSaidBefore?: true;
}

export type SurfaceCommand =
  /** Settles calls and approvals, or sends a message; answers with the run that follows. */
  | {
      readonly type: 'run';
      readonly answers: readonly SurfaceAnswer[];
      readonly decisions: readonly SurfaceDecision[];
      /** If there are answers or decisions too, these come first. */
      readonly message: SurfaceMessage | null;
      /**
       * For a continued run: the client's last answer begins after the event with this seq, and ends where the run waits
       * next. Null: the request does not say.
       */
      readonly since: number | null;
      /**
       * The run that the message follows (C4); null: the head. `unanswered`: there may be this number of runs between, whose
       * answers the client did not want. `key`: the idempotency key of its message. Without such a run, the one with the id
       * `runId`, then the one whose id ends with `shown` after the session's; without any, the head.
       */
      readonly follows:
        | { readonly runId: string; readonly unanswered: number }
        | { readonly key: string; readonly runId: string; readonly shown: string | null }
        | null;
      /** Answers and decisions that come too late have no effect, and the run says what happened. Default: they are errors. */
      readonly ignoresLate?: boolean;
      readonly stream: boolean;
      /** How the run depends on its stream. Default: not at all. */
      readonly attached?: Attached;
      readonly options: JsonObject;
    }
  /** Does this in the session, which was made for it and has no run yet, or this one; answers with a stream. */
  | {
      readonly type: 'work';
      readonly work:
        | { readonly type: 'program'; readonly text: string }
        | { readonly type: 'workflow'; readonly inputs: JsonObject };
      readonly attached?: Attached;
      readonly options: JsonObject;
    }
  /** Answers with a run, from its first event or as its document: this one, or the one that is active or has just ended. */
  | {
      readonly type: 'follow';
      readonly runId: string | null;
      /** Seq of the last event that the client has. Default: 0. */
      readonly after: number;
      readonly stream: boolean;
      readonly options: JsonObject;
    }
  /** Answers with the last messages of the conversation, as a list. */
  | { readonly type: 'conversation'; readonly options: JsonObject }
  /** Cancels this run if it is active, or all that is running. If it is one run, and there is a document, answers with it. */
  | {
      readonly type: 'cancel';
      readonly runId: string | null;
      /** Only the first run of the session, whose id the client does not know. */
      readonly isFirst?: true;
      /** For the document, as in `follow`. */
      readonly after: number;
      readonly options: JsonObject;
    };

/** A run that its client waits for: it is cancelled if the client leaves the stream. */
export interface Attached {
  /** The stream ends after this time, milliseconds, and the run goes on without it; null: it does not. */
  readonly forMs: number | null;
}

/** A request in terms of the system. */
export interface SurfaceRequest {
  /** Null: that of the session, which exists. */
  readonly agent: string | null;
  readonly thread: Thread;
  /** The user of a session that is created by an API key; a token always has its own. */
  readonly userId: string | null;
  readonly command: SurfaceCommand;
  /** What is asked instead if the session or the call that this request continues is unknown. */
  readonly otherwise?: SurfaceRequest;
}

// --- answers ---

/** A run that is folded. */
export interface FoldedRun {
  readonly sessionId: string;
  readonly runId: string;
  readonly agent: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /**
   * The client has the frames of the events up to this seq: `add` gets these events too and returns '' for them; 0: it has
   * none. The first frame of a continued stream says what it continues.
   */
  readonly after: number;
  /** Names of the run's client tools: the client executes their calls (C3). */
  readonly clientTools: readonly string[];
  /** `options` of the command: one protocol may have several forms of answers. */
  readonly options: JsonObject;
  /** The artifacts of an event of the run (J6). Absent: none are shown. */
  readonly artifactsOf?: (
    event: SessionEvent,
  ) => readonly { readonly entry: ArtifactEntry; readonly read: () => Uint8Array }[];
}

/** Why a stream ends: the run has ended or waits (its events say which); or, while the run continues, another reason. */
export type StreamEnd = 'stopped' | 'token_expired' | 'session_deleted' | 'connection_lost';

/** What a client is told about an end that is not that of the run. */
export const LOST: Readonly<Record<StreamEnd, { readonly code: string; readonly message: string }>> = {
  stopped: { code: 'connection_lost', message: 'The connection to the session was lost; the run continues' },
  token_expired: { code: 'token_expired', message: 'The token has expired; the run continues' },
  session_deleted: { code: 'session_deleted', message: 'The session was deleted' },
  connection_lost: { code: 'connection_lost', message: 'The connection to the session was lost; the run continues' },
};

/** Folds the events of one run into the text of the response's body. */
export interface Fold {
  /** @param event the run's events in order, live or replayed. @returns frames; '' for none */
  add(event: SessionEvent): string;
  /** The last frames. Called once. */
  end(how: StreamEnd): string;
  /** The same for a stream that ends after a time, although the run goes on (`Attached`). Called instead of `end`. */
  detached?(): string;
}

/** A response that is not a stream. */
export interface SurfaceDocument {
  readonly status: number;
  readonly body: Json;
}

/** Folds the events of one run, or of a part of it, into a document. */
export interface DocumentFold {
  /** @param event in order; text comes with the events that close its blocks */
  add(event: SessionEvent): void;
  /** Called once. @param status of the run now */
  end(status: RunStatus): SurfaceDocument;
}

/** A run as a part of a conversation, with the message that began it. */
export interface Turn {
  readonly run: FoldedRun;
  /** Idempotency key of the message. */
  readonly key: string | null;
  readonly content: MessageContent;
  /** Whether nothing more of the run will follow. */
  readonly hasEnded: boolean;
}

/** Folds the events of a run into messages. */
export interface TurnFold {
  /** @param event in order; text comes with the events that close its blocks */
  add(event: SessionEvent): void;
  /** Called once. */
  end(): readonly Json[];
}

export interface SurfaceError {
  readonly body: string;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Surface {
  readonly name: SurfaceName;
  /** Headers of a stream, added to those of every event stream. */
  readonly streamHeaders: Readonly<Record<string, string>>;
  readonly fold: (run: FoldedRun) => Fold;
  /**
   * Whether an answer ends where the run first waits after its beginning, and asks again for what is open there. Default: no.
   *
   * @param options of the command
   */
  readonly endsAtWait?: (options: JsonObject) => boolean;
  /** The run as a document, for clients that want no stream. Only these types of events are given to it. */
  readonly document?: {
    readonly events: readonly EventType[];
    /** The same for a run with this status. Default: `events`. */
    readonly eventsAt?: (status: RunStatus) => readonly EventType[];
    readonly of: (run: FoldedRun) => DocumentFold;
  };
  /** The conversation as messages, for pages that are loaded again. Only these types of events are given to it. */
  readonly conversation?: { readonly events: readonly EventType[]; readonly of: (turn: Turn) => TurnFold };
  /** The last frames of a stream that broke off outside of the session. */
  readonly lost: string;
  /** An error before the first frame, in the protocol's own form. Its status is that of the error. */
  readonly error: (fault: EngineError) => SurfaceError;
}
