/** Context of the session routes. One router serves all sessions; each request passes its session as `c.env`. */
import type { Context } from 'hono';
import { EngineError } from '../domain/errors.ts';
import type { Logger } from '../domain/log.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { FileFetch } from '../domain/ports/outbound.ts';
import type { SessionRecord } from '../domain/session.ts';
import { readTraceparent, TRACEPARENT, writeTraceparent } from '../domain/trace.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import type { Session } from '../engine/session/session.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { LargeBodies } from './large-bodies.ts';
import type { EventSource } from './sse.ts';
import type { Scope } from './operations.ts';

/** Headers with which the Worker passes verified facts to the object; never accepted from a client. */
export const PRINCIPAL_HEADER = 'x-cortex-principal';
/** When the request's token expires, epoch milliseconds; absent for an API key. */
export const EXPIRY_HEADER = 'x-cortex-expires';
/** The scopes of the request's token, separated by spaces; absent for an API key. */
export const SCOPES_HEADER = 'x-cortex-scopes';
/** The user of the request's user token, URI-encoded; absent for an API key and for a session token. */
export const USER_HEADER = 'x-cortex-user';
/** The agents that the request's user token may use, URI-encoded, separated by spaces; absent: all. */
export const AGENTS_HEADER = 'x-cortex-agents';
/** The incarnation that the request is for: that of a session token, or of a run's id. Empty: a session without one. */
export const INCARNATION_HEADER = 'x-cortex-incarnation';
/**
 * The change of the namespace's manifests that the request must see, in decimal digits (Z1). Answers to changes have it;
 * a caller with an API key may send it, and the Worker passes the latest that it knows.
 */
export const REVISION_HEADER = 'x-manifest-revision';
/** All of them. The Worker removes those that a client sends. */
export const WORKER_HEADERS = [
  PRINCIPAL_HEADER,
  EXPIRY_HEADER,
  SCOPES_HEADER,
  USER_HEADER,
  AGENTS_HEADER,
  INCARNATION_HEADER,
  REVISION_HEADER,
] as const;

/** Where the Worker asks a session for its incarnation. */
export const INCARNATION_PATH = '/-/incarnation';

/** Where the Worker asks a session what a fork of it begins with. */
export const FORK_PATH = '/-/fork';

/** A validated request for a fork. */
export interface ForkRequest {
  readonly at_run?: string | undefined;
  /** With an idempotency key: there may be a fork already, so the run is checked only if there is none. */
  readonly has_key: boolean;
}

/** What a fork begins with. */
export interface ForkOrigin {
  readonly run_id: string | null;
  readonly agent: string;
  readonly user_id: string | null;
  readonly metadata: SessionRecord['metadata'];
  /** The patterns that bind the session; absent if they are unknown (C9). */
  readonly redact?: readonly string[];
  /** Of the session: empty for one without it. */
  readonly incarnation: string;
}

/** The record of a fork. */
export interface ForkedRecord extends SessionRecord {
  /** With which it began, as of `…/history`. */
  readonly message_count: number;
}

export interface SessionAppOptions {
  readonly session: Session;
  readonly clock: Clock;
  /** Creates the session of a conversation that another protocol names. Default: such requests are refused. */
  readonly create?: (record: SessionRecord) => Promise<void>;
  /** Deletes everything in the object. */
  readonly destroy: () => Promise<void>;
  /** The error if the caller's rate limit for this agent is exceeded, or null. */
  readonly admit?: () => Promise<EngineError | null>;
  /** Open approvals of sub-agents and workflows that the session's actions run. Default: none. */
  readonly childApprovals?: (page: ApprovalsPage) => Promise<readonly OpenApproval[]>;
  /** Fetches the files that messages name by URL. Default: such messages are refused. */
  readonly fetchFile?: FileFetch;
  /** Large bodies of all sessions of the isolate. Default: of this session alone. */
  readonly bodies?: LargeBodies;
  /** What its readers get. Default: the session's events, with coalesced patches. */
  readonly events?: EventSource;
  readonly log: Logger;
}

export type SessionEnv = {
  Bindings: SessionAppOptions & {
    readonly heartbeat: Heartbeat;
    readonly events: EventSource;
    readonly bodies: LargeBodies;
  };
};

/** What the caller's token restricts the request to; null: no restriction. */
export interface Grant {
  /** The only incarnation that the request is for; empty: a session without one. */
  readonly incarnation: string | null;
  /** URI-encoded. */
  readonly user: string | null;
  readonly agents: readonly string[] | null;
}

export function grantOf(c: Context<SessionEnv>): Grant {
  const agents = c.req.header(AGENTS_HEADER)?.split(' ').map(decodeURIComponent) ?? null;
  return { incarnation: c.req.header(INCARNATION_HEADER) ?? null, user: c.req.header(USER_HEADER) ?? null, agents };
}

/**
 * The caller's span, for what the request starts (O1); empty if it sends none. The Worker removes it from requests with a
 * token: whoever holds one is not a part of the operator's system.
 */
export function traceOf(c: Context<SessionEnv>): { readonly trace?: string } {
  const parent = readTraceparent(c.req.header(TRACEPARENT));
  return parent === null ? {} : { trace: writeTraceparent(parent) };
}

/** Whether the request may do what this scope allows: an API key may do everything. */
export function hasScope(c: Context<SessionEnv>, scope: Scope): boolean {
  const held = c.req.header(SCOPES_HEADER);
  return held === undefined || held.split(' ').includes(scope);
}

/**
 * For members of a body that need more than the scope of the operation (T1).
 *
 * @throws EngineError `forbidden` for a token without the scope
 */
export function requireScope(c: Context<SessionEnv>, scope: Scope): void {
  if (hasScope(c, scope)) return;
  throw new EngineError('forbidden', `This request requires an API key, or a token with the scope "${scope}"`);
}

/**
 * For members of a body that only an API key may give.
 *
 * @param what the member, as the subject of a sentence
 * @throws EngineError `forbidden` for a token
 */
export function requireKey(c: Context<SessionEnv>, what: string): void {
  if (c.req.header(SCOPES_HEADER) === undefined) return;
  throw new EngineError('forbidden', `${what} require an API key`);
}
