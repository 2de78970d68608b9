/** Context of the session routes. One router serves all sessions; each request passes its session as `c.env`. */
import type { EngineError } from '../domain/errors.ts';
import type { Logger } from '../domain/log.ts';
import type { Clock } from '../domain/ports.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import type { Session } from '../engine/session/session.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { EventSource } from './sse.ts';

/** Headers with which the Worker passes verified facts to the object; never accepted from a client. */
export const PRINCIPAL_HEADER = 'x-cortex-principal';
/** When the request's session token expires, epoch milliseconds; absent for an API key. */
export const EXPIRY_HEADER = 'x-cortex-expires';

export interface SessionAppOptions {
  readonly session: Session;
  readonly clock: Clock;
  /** Deletes everything in the object. */
  readonly destroy: () => Promise<void>;
  /** The error if the caller's rate limit for this agent is exceeded, or null. */
  readonly admit?: () => Promise<EngineError | null>;
  /** Open approvals of sub-agents and workflows that the session's actions run. Default: none. */
  readonly childApprovals?: (page: ApprovalsPage) => Promise<readonly OpenApproval[]>;
  readonly log: Logger;
}

export type SessionEnv = {
  Bindings: SessionAppOptions & { readonly heartbeat: Heartbeat; readonly events: EventSource };
};
