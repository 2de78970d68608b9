/**
 * The Worker's environment (wrangler.toml, `.dev.vars`, secrets), and the RPC interfaces of its objects. The classes in
 * `objects/` implement these interfaces; nothing here imports them, so there are no import cycles. Values are passed
 * through RPC as structured clones, EngineErrors as a `Reply`.
 */
import type { ActionOutcome } from '../domain/action.ts';
import type { DirectoryPage, DirectoryRecord, DirectoryRows } from '../domain/directory.ts';
import type { JsonObject } from '../domain/json.ts';
import type { WorkflowDefinition } from '../domain/manifests/workflow.ts';
import type { ChildEnd, ChildRequest } from '../domain/ports/children.ts';
import type { CodeToolCall, CodeToolSession, ToolUpdate } from '../domain/ports/code-tools.ts';
import type { EdgeRelicCall } from '../domain/ports/edge-relics.ts';
import type { SharedFeeds } from '../domain/ports/shared-values.ts';
import type { FactAnswer, FactChange, FactsSnapshot } from '../domain/ports/user-facts.ts';
import type { PlatformPlan } from '../domain/platform-plan.ts';
import type { SeededHistory } from '../domain/seeded.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import type { EventBatch } from '../engine/session/broadcaster.ts';
import type { ForkPage } from '../engine/session/session-fork.ts';
import type { ExecutionRows, ExecutionsPage } from '../domain/execution.ts';
import type { CachedText } from '../catalog/store/definition-cache.ts';
import type { ManifestHost } from '../http/manifest-host.ts';
import type { ScheduleOutlook } from '../http/routes/workflows.ts';
import type { ForkedRecord } from '../http/session-env.ts';
import type { AiBinding } from '../llm/providers/workers-ai.ts';
import type { EndpointReport } from '../llm/routing/endpoints.ts';
import type { KeptSchedule, Schedule } from '../policies/schedule-times.ts';
import type { Identity } from '../policies/session-ids.ts';
import type { CodeToolStates, ReportedDeath } from '../policies/tool-deaths.ts';
import type { Variables } from '../settings/settings.ts';
import type { Reply } from './reply.ts';

/**
 * The stub of an object with the interface `T`: every method returns a promise. Used instead of the platform's
 * `DurableObjectStub<T>`, which maps every type inside parameters and results; for recursive types such as `Json`,
 * TypeScript then ends with "Type instantiation is excessively deep" (TS2589).
 */
export type Remote<T> = {
  readonly [Method in keyof T]: T[Method] extends (...parameters: infer P) => infer R
    ? (...parameters: P) => Promise<Awaited<R>>
    : never;
};

/** The objects of one class, by name. */
interface Objects<T> {
  getByName(name: string): Remote<T>;
}

export interface Env extends Variables {
  readonly SESSIONS: Objects<SessionRpc>;
  readonly SCHEDULES: Objects<ScheduleRpc>;
  readonly CATALOGS: Objects<CatalogRpc>;
  readonly RELICS: Objects<RelicRpc>;
  readonly FEEDS: Objects<SharedFeedRpc>;
  readonly DIRECTORY: Objects<DirectoryRpc>;
  readonly STATUS: Objects<StatusRpc>;
  /** Workers AI, in the environment `workers-ai` only (wrangler.toml). */
  readonly AI?: AiBinding;
  /** Large files of messages (docs/deploy.md); without it, all files are in the sessions' databases. */
  readonly FILES?: R2Bucket;
  /** Runners as Cloudflare Containers, in the environment `containers` only (wrangler.toml). */
  readonly RUNNERS?: DurableObjectNamespace;
}

export interface SessionRpc {
  /** @param copy the Worker's copy of the definition (Z1) */
  create(record: SessionRecord, state: JsonObject, history?: SeededHistory, copy?: CachedText | null): Promise<void>;
  /** The same, unless there is one of the same start. */
  open(
    record: SessionRecord,
    state: JsonObject,
    history: SeededHistory,
    copy?: CachedText | null,
  ): Promise<Reply<SessionRecord>>;
  /**
   * Starts the only run of a child or workflow session, once; returns its id (M6, M7).
   *
   * @param revision the latest change of the namespace's manifests that the caller knows (Z1)
   */
  startChild(record: SessionRecord, request: ChildRequest, revision?: number): Promise<string>;
  /** The session's own HTTP surface (http/session-app.ts). */
  fetch(request: Request): Promise<Response>;
  /**
   * Streams the events after this one to the parent session, in batches, until `take` returns false or the session is
   * deleted.
   */
  /** @param runId a run of the session: refused if it was made again under the same id (T5) */
  follow(runId: string, after: number, take: (batch: EventBatch) => boolean | Promise<boolean>): Promise<Reply<null>>;
  /** Open approvals of the session; without `only`, also those of the children that it is running. */
  openApprovals(page: ApprovalsPage): Promise<Reply<readonly OpenApproval[] | null>>;
  /**
   * Creates the session as a fork of another one, unless there is one of the same start (C4). A request that comes while it
   * is being made waits for it.
   *
   * @param from the session, and the run at whose end the fork begins; null: it has no runs
   */
  fork(
    record: SessionRecord,
    from: { readonly sessionId: string; readonly runId: string | null },
  ): Promise<Reply<ForkedRecord>>;
  /** Sends the branch that ends with a run to a fork, page by page. */
  sendFork(runId: string | null, take: (page: ForkPage) => Promise<void>): Promise<Reply<null>>;
  /** How the run ended, and what it spent, including its children. */
  childEnd(runId: string): Promise<Reply<ChildEnd>>;
  cancelChild(reason: string): Promise<Reply<null>>;
  /** Deletes the session and its child sessions. */
  remove(): Promise<Reply<null>>;
}

/** The small states that a deployment shares, by the kind in the names of their objects (status.ts). */
export interface StatusKinds {
  /** One: the key with which a deployment checks session ids. Made at the first request; another one would hide all sessions. */
  readonly identity: { identity(): Identity };
  /** The requests of one namespace to one agent, over all sessions (RATE_LIMIT). */
  readonly rate: {
    /** @returns null, or the milliseconds until the next request is allowed */
    take(perMinute: number): number | null;
  };
  /** The model endpoints of one namespace, for `/health` (llm/routing/endpoint-reports.ts). */
  readonly endpoints: {
    recordEndpoint(report: EndpointReport): void;
    /** Those whose breaker is not closed. */
    failingEndpoints(): EndpointReport[];
  };
  /** The code tools of one version of the project: changed code starts anew (policies/tool-deaths.ts). */
  readonly 'code-tools': {
    /** A host ended while this tool ran. */
    toolDied(name: string, death: ReportedDeath): void;
    tools(): CodeToolStates;
  };
}

export type StatusRpc = StatusKinds['identity'] &
  StatusKinds['rate'] &
  StatusKinds['endpoints'] &
  StatusKinds['code-tools'];

export interface ScheduleRpc {
  /** Loads the current schedules from the catalogue of `owner`. */
  follow(owner: string | null): Promise<void>;
  /** Replaces all schedules. */
  keep(schedules: readonly Schedule[], owner: string | null): Promise<void>;
  /** Due times, soonest first. */
  upcoming(): readonly KeptSchedule[];
  /** Due times with the next `count` times of each schedule. */
  outlook(count: number): Promise<ScheduleOutlook[]>;
}

/** The reply to a change of a catalogue; its number is larger than those of earlier changes (Z1). Default: unknown. */
export type Changed<T> = Reply<T> & { readonly revision?: number };

/** The calls of the routes. */
type CatalogCalls = {
  [Call in keyof ManifestHost]: (
    ...given: Parameters<ManifestHost[Call]>
  ) => Promise<Changed<Awaited<ReturnType<ManifestHost[Call]>>>>;
};

export interface CatalogRpc extends CatalogCalls {
  /**
   * The current definition of an agent or workflow, as text stored with a run (`fromPinned`); null if
   * there is none.
   */
  resolve(kind: 'agent' | 'workflow', name: string, scope?: string): Promise<Reply<string | null>>;
  workflows(): Promise<WorkflowDefinition[]>;
}

export interface RelicRpc {
  call(call: EdgeRelicCall): Promise<ActionOutcome>;
  /** The result of the call with this key, after all earlier calls are done. */
  lookup(key: string): Promise<ActionOutcome | null>;
  /** Deletes everything. */
  forget(): Promise<void>;
  /** Of an object that has the facts about a user instead (user-facts.ts). */
  readFacts(): FactsSnapshot;
  changeFacts(change: FactChange): FactAnswer;
  lookupFacts(call: string): { readonly changed: number } | null;
}

export type SharedFeedRpc = SharedFeeds;

export interface DirectoryRpc {
  write(record: DirectoryRecord): void;
  forget(sessionId: string, incarnation: string): void;
  list(page: DirectoryPage): DirectoryRows;
  executions(page: ExecutionsPage): ExecutionRows;
  /** Replaces the open approvals of a session. */
  keepApprovals(sessionId: string, approvals: readonly OpenApproval[]): void;
  /** Removes settled approvals. */
  settleApprovals(ids: readonly string[]): void;
  approvals(page: ApprovalsPage): OpenApproval[];
}

/** What a running code tool calls back. */
export interface CodeToolLink {
  /** Resolves with the reason when the call is aborted. */
  aborted(): Promise<string>;
  progress(update: ToolUpdate): Promise<void>;
}

export interface CodeToolHostRpc {
  parse(call: Pick<CodeToolCall, 'name' | 'parameters'>, link: Pick<CodeToolLink, 'aborted'>): Promise<ActionOutcome>;
  run(call: CodeToolCall, session: CodeToolSession, link: CodeToolLink): Promise<ActionOutcome>;
}

/** A request that a helper sends; its address was checked (X2). */
export interface HelperRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | Uint8Array | null;
  readonly redirect: string;
}

interface HelperHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [string, string])[];
}

/** `failed`: the error of `fetch`; a rejection means that the helper itself has ended. */
export type HelperAnswer =
  | (HelperHead & { readonly type: 'whole'; readonly body: Uint8Array<ArrayBuffer> })
  | (HelperHead & { readonly type: 'stream'; readonly body: ReadableStream<Uint8Array> })
  | { readonly type: 'failed'; readonly name: string; readonly message: string };

/** The connections of one helper invocation, which lasts until its stub is disposed of. */
export interface OutboundConnections {
  /** @param id chosen by the caller, for `cancel` */
  send(id: number, request: HelperRequest): Promise<HelperAnswer>;
  cancel(id: number): void;
}

export interface OutboundHostRpc {
  /** @param enforced the plan whose limits the helper enforces on itself; null: the platform does */
  open(enforced: PlatformPlan | null): OutboundConnections;
}
