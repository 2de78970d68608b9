/** Documents of the HTTP API (docs/http.md), with the members as they are sent. Later versions may add members. */
import type { ActionType } from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { RunStatus } from '../domain/session.ts';

/** `GET /agent/session/{id}`. Times are epoch milliseconds. */
export interface SessionDocument {
  readonly session_id: string;
  /** The agent or the workflow. */
  readonly agent: string;
  /** `execution`: protocol text or a workflow; `child`: it was started by an action of another session. */
  readonly kind: 'chat' | 'execution' | 'child';
  /** Its name, if the session runs a workflow. */
  readonly workflow?: string;
  readonly user_id: string | null;
  readonly metadata: JsonObject;
  readonly created_at: number;
  readonly updated_at: number;
  readonly message_count: number;
  readonly status: 'running' | 'waiting' | 'idle';
  readonly last_seq: number;
  readonly runs: number;
  /** The run that the next message follows; null before the first one. */
  readonly head: string | null;
  /** The session that this one was copied from, and the last run that was copied. */
  readonly forked_from?: { readonly session_id: string; readonly run_id: string | null };
}

/** A call of a client tool that waits for its result (C3). */
export interface OpenCall {
  readonly call_id: string;
  readonly name: string;
  readonly parameters: JsonObject;
}

/** `GET …/runs/{run}` (docs/runs.md). */
export type { RunResult as RunDocument } from '../view/result.ts';

/** A message or an answer in `GET …/history`. */
export interface HistoryMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  /** Absent in the history that the session was created with. */
  readonly run_id?: string;
  readonly status?: RunStatus;
  readonly timestamp?: number | null;
  readonly metadata?: JsonObject;
  readonly parts?: readonly MessagePart[];
  readonly error?: { readonly code: string; readonly message: string };
  readonly seeded?: true;
  /** The run that its run follows; null at the beginning. */
  readonly parent_run?: string | null;
  /** Of a user's message with other versions: the runs of all of them, oldest first. */
  readonly branches?: readonly string[];
  /** The run of which its run is a retry. */
  readonly retry_of?: string;
  /** The message was sent into its run, which was active. */
  readonly steered?: boolean;
}

export type MessagePart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image' | 'file';
      readonly name: string;
      readonly media_type: string;
      readonly size: number;
      readonly sha256: string;
    };

export interface HistoryPage {
  readonly messages: readonly HistoryMessage[];
  /** `before` of the page with earlier messages; null on the last page. */
  readonly next: string | null;
}

/** A request for approval that waits for a decision, also of a sub-agent's session (J8). */
export interface OpenApproval {
  readonly approval_id: string;
  /** The session in which it is decided. */
  readonly session_id: string;
  readonly parent_session_id: string | null;
  readonly run_id: string;
  readonly agent: string;
  readonly action_id: string;
  readonly type: ActionType;
  readonly name: string | null;
  readonly requested_at: number;
  readonly expires_at: number;
  /** Whether `parameters` and `inputs` are included; `session.approval(id)` always has them. */
  readonly complete: boolean;
  readonly parameters: JsonObject | null;
  readonly inputs: JsonObject | null;
  /** Message of the policy that asks; null: none does, or it has no message. */
  readonly reason: string | null;
  /** What the target of the running action asks; null: the action needs an approval to start. */
  readonly question: Question | null;
}

/** What the target of an action asks. All of it is text of the target: show it as a quotation. */
export interface Question {
  /** Who asks. */
  readonly from: string;
  readonly message: string;
  /** JSON Schema of the values that it asks for, a flat object of primitives. Absent: a yes or no is enough. */
  readonly schema?: JsonObject;
  /** A page that the person is asked to open. */
  readonly url?: string;
}

/** A request for approval with the whole call and the decision. */
export interface Approval {
  readonly approval_id: string;
  readonly status: 'open' | 'approved' | 'denied' | 'expired' | 'cancelled';
  readonly run_id: string;
  readonly action_id: string;
  readonly type: ActionType;
  readonly name: string | null;
  readonly requested_at: number;
  readonly expires_at: number;
  readonly decided_at: number | null;
  readonly note: string | null;
  readonly parameters: JsonObject | null;
  readonly inputs: JsonObject | null;
  readonly reason: string | null;
  readonly question: Question | null;
  /** The values that answered the question; null if there are none. */
  readonly content: JsonObject | null;
}

/** An entry of `GET …/artifacts`. */
export interface Artifact {
  readonly id: string;
  readonly run_id: string;
  readonly action_id: string | null;
  readonly action_name: string | null;
  readonly name: string;
  readonly content_type: string;
  readonly size_bytes: number;
  readonly created_at: number;
}

export interface ArtifactPage {
  readonly artifacts: readonly Artifact[];
  /** `after` of the next page; null on the last page. */
  readonly next: number | null;
}

/** A part of a message that is sent (C2). `data` is base64; a URL is fetched once, by the server. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'image'; readonly media_type?: string } & FileSource)
  | ({ readonly type: 'file'; readonly name: string; readonly media_type?: string } & FileSource);

export type FileSource = { readonly url: string } | { readonly data: string };

/** A tool that the client executes, as it is sent with a message (C3). */
export interface ToolDeclaration {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the parameters object. */
  readonly parameters?: JsonObject;
}

/** The result of a call of a client tool. */
export type CallResult = { readonly output: Json } | { readonly error: { readonly message: string } };
