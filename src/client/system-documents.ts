/** Documents about the system, its catalogue and its programs (docs/http.md), with the members as they are sent. */
import type { ActionMode, ActionType } from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { RunStatus } from '../domain/session.ts';
import type { OpenApproval, SessionDocument } from './documents.ts';

/** `GET /health`. What is optional is for callers with a key only. */
export interface HealthDocument {
  readonly status: 'healthy' | 'starting' | 'degraded';
  readonly version: string;
  /** The state of each configured part, such as `healthy`, `starting` and `unreachable`. */
  readonly parts: { readonly runner?: string };
  /** Configured parts that do not work. */
  readonly missing?: readonly { readonly part: string; readonly reason: string }[];
  /** Available action types. */
  readonly executors: readonly Json[];
  /** The default model. */
  readonly model?: string;
  /** Endpoints that are avoided because they failed. */
  readonly model_endpoints?: readonly JsonObject[];
  /** The runner's own health; null without one. */
  readonly runner?: JsonObject | null;
  /** Databases that could not be read and were renamed. */
  readonly set_aside?: readonly string[];
}

/** An entry of `GET /agents`. */
export interface AgentEntry {
  readonly name: string;
  readonly summary: string;
}

/** `GET /agents/{name}/prompt`. Tokens are estimates. */
export interface AgentPrompt {
  readonly agent: string;
  readonly prompt: string;
  readonly characters: number;
  readonly tokens: number;
  readonly sections: readonly { readonly title: string; readonly tokens: number }[];
  /** In the order of the prompt; `share` is 0 to 1. */
  readonly parts: readonly {
    readonly id: string;
    readonly state: 'built_in' | 'replaced' | 'left_out';
    readonly tokens: number;
    readonly share: number;
  }[];
  /** Mistakes in examples of the manifest. */
  readonly warnings: readonly string[];
}

export type ManifestKind = 'agent' | 'tool' | 'relic' | 'workflow' | 'skill' | 'monument';

/** An entry of `GET /manifests`. */
export interface ManifestEntry {
  readonly kind: ManifestKind;
  readonly name: string;
  /** The author's version. */
  readonly version: string;
  /** Counts the changes of one name, from 1; null for a bundled manifest. */
  readonly revision: number | null;
  readonly summary: string;
  readonly tags: readonly string[];
  /** Whether it is bundled and cannot be changed. */
  readonly common: boolean;
  readonly updated_at: number | null;
  /** Why it cannot be used. */
  readonly error?: string;
}

/** `GET /manifests/{kind}/{name}`. */
export interface ManifestDocument extends ManifestEntry {
  readonly file: string | null;
  readonly source: string | null;
  /** The loaded definition; null if it cannot be read. */
  readonly definition: Json;
  /** Its revisions, with `revision`, `version` and `created_at`. */
  readonly versions: readonly JsonObject[];
}

/** Which manifest, if it is not the current one. */
export interface ManifestChoice {
  readonly version?: string | undefined;
  readonly revision?: number | undefined;
}

/** `GET /manifests/graph`. Ids are `kind/name`. */
export interface ManifestGraph {
  readonly nodes: readonly (Pick<ManifestEntry, 'kind' | 'name' | 'version'> & { readonly id: string })[];
  readonly edges: readonly { readonly from: string; readonly to: string; readonly how: 'import' | 'feed' }[];
}

/** What was found in a manifest. Line and column are 1-based. */
export interface ManifestIssue {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Path of the field; empty for the whole manifest. */
  readonly field: string;
  readonly message: string;
}

/** `POST /manifests/validate`. */
export interface ManifestCheck {
  readonly valid: boolean;
  readonly manifests: readonly ManifestEntry[];
  readonly problems: readonly ManifestIssue[];
  /** Issues that do not prevent the use. */
  readonly warnings: readonly ManifestIssue[];
  /** YAML files that are not manifests. */
  readonly skipped: readonly ManifestIssue[];
}

export type ExecutionKind = 'chat' | 'execution' | 'workflow';

/** An ended or waiting run of any session. */
export interface ExecutionEntry {
  readonly session_id: string;
  readonly run_id: string;
  readonly kind: ExecutionKind;
  /** Name of the agent, or of the workflow. */
  readonly agent: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly started_at: number;
  readonly ended_at: number | null;
}

/** `GET /executions`: newest first. */
export interface ExecutionPage {
  readonly executions: readonly ExecutionEntry[];
  /** `before` of the next page; null on the last page. */
  readonly next: string | null;
}

/** Which executions, and which page of them. */
export interface ExecutionFilter {
  readonly status?: RunStatus | undefined;
  readonly kind?: ExecutionKind | undefined;
  /** 1 to 100; default 100. */
  readonly limit?: number | undefined;
  readonly before?: string | undefined;
}

/** An entry of `GET /sessions`. Times are epoch milliseconds. */
export interface SessionEntry {
  readonly session_id: string;
  readonly agent: string;
  readonly user_id: string | null;
  /** From the first message. */
  readonly title: string | null;
  readonly status: SessionDocument['status'];
  readonly created_at: number;
  readonly updated_at: number;
  /** US dollars; null if no price is known. */
  readonly cost: number | null;
}

/** `GET /sessions`: newest activity first. */
export interface SessionListPage {
  readonly sessions: readonly SessionEntry[];
  /** `before` of the next page; null on the last page. */
  readonly next: string | null;
}

/** Which sessions, and which page of them. */
export interface SessionFilter {
  readonly userId?: string | undefined;
  readonly agent?: string | undefined;
  readonly status?: SessionDocument['status'] | undefined;
  readonly limit?: number | undefined;
  readonly before?: string | undefined;
}

/** An entry of `GET /workflows`. */
export interface WorkflowEntry {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  /** What starts it: `type`, and what belongs to that. */
  readonly trigger: JsonObject;
  /** JSON Schema of its inputs. */
  readonly inputs: Json;
  readonly steps: readonly { readonly name: string; readonly type: string; readonly target: Json }[];
}

/** An entry of `GET /schedules`. */
export interface ScheduleEntry {
  readonly workflow: string;
  readonly cron: string;
  readonly timezone: string;
  readonly inputs: JsonObject;
  /** Next start times. */
  readonly next: readonly number[];
}

/** `GET /approvals`: oldest first. */
export interface ApprovalPage {
  readonly approvals: readonly OpenApproval[];
  /** `after` of the next page; null on the last page. */
  readonly next: string | null;
}

export interface CodeAndMessage {
  readonly code: string;
  readonly message: string;
}

/** `POST /plan`. */
export interface Plan {
  readonly actions: readonly {
    readonly id: string;
    readonly type: ActionType;
    readonly mode: ActionMode;
    readonly name: string;
    readonly parameters: JsonObject;
    readonly depends_on: readonly string[];
    readonly embedded_in_thought: boolean;
    /** Whether its body was not strict JSON. */
    readonly repaired: boolean;
    readonly estimate_ms: number;
  }[];
  readonly rejected: readonly (CodeAndMessage & { readonly id: string })[];
  readonly warnings: readonly CodeAndMessage[];
  readonly thoughts: readonly string[];
  readonly responses: readonly { readonly content: string; readonly final: boolean | null }[];
  /** The text outside of all tags. */
  readonly text: string;
  /** Ids by wave. For display only: nothing waits for a wave to end. */
  readonly waves: readonly (readonly string[])[];
  readonly estimates: {
    readonly sequential_ms: number;
    readonly waves_ms: number;
    readonly critical_path_ms: number;
    readonly speedup: number;
  };
  readonly critical_path: readonly string[];
  /** `to` depends on `from`. */
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

/** `GET …/runs`: in order. */
export interface RunPage {
  readonly runs: readonly {
    readonly run_id: string;
    readonly status: RunStatus;
    readonly started_at: number;
    readonly ended_at: number | null;
    /** The run that it follows; null at the beginning. */
    readonly parent_run: string | null;
    readonly retry_of?: string;
  }[];
  /** The run that the next message follows. */
  readonly head: string | null;
  /** `before` of the page with earlier runs; null on the last page. */
  readonly next: string | null;
}

/** A context feed in `GET …/feeds`. */
export interface Feed {
  readonly id: string;
  /** When it is refreshed. */
  readonly type: string;
  readonly source: JsonObject;
  readonly enabled: boolean;
  readonly added_by_model: boolean;
  /** The latest value; null if there is none yet. */
  readonly value: Json;
  readonly updated_at: number | null;
  /** Why the last refresh failed. */
  readonly error: string | null;
}

export type Scope = 'read' | 'message' | 'approve' | 'tools' | 'files' | 'branch' | 'view';

/** `POST …/tokens`. */
export interface SessionToken {
  readonly token: string;
  readonly scopes: readonly Scope[];
  readonly expires_at: number;
}

/** `GET …/runs/{run}/prompt`: what the run sent to the model. */
export interface RunPrompt {
  readonly generations: readonly {
    readonly iteration: number;
    readonly sent_at: number;
    readonly model: string;
    readonly max_tokens?: number;
    /** Names of the declared functions. */
    readonly tools?: readonly string[];
    /** An estimate. */
    readonly tokens: number;
    readonly messages: readonly {
      readonly role: 'system' | 'user' | 'assistant' | 'tool';
      readonly content: string;
      readonly tool_calls?: Json;
      readonly tool_call_id?: string;
      readonly attachments?: readonly {
        readonly type: 'image' | 'file';
        readonly name: string;
        readonly media_type: string;
        readonly size: number;
        readonly sha256?: string;
      }[];
    }[];
  }[];
  /** Number of generations whose messages were deleted to save space. */
  readonly dropped: number;
}
