/** What the routes of a session work with. One router serves every session; each request brings its own as `c.env`. */
import type { EngineError } from '../domain/errors.ts';
import type { Clock, Logger } from '../domain/ports.ts';
import type { Session } from '../engine/session/session.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { EventSource } from './sse.ts';

/** Headers by which the Worker tells the object what it has established; never taken from a client. */
export const PRINCIPAL_HEADER = 'x-cortex-principal';
/** When the session token expires that the request came with, epoch milliseconds; absent for an API key. */
export const EXPIRY_HEADER = 'x-cortex-expires';

export interface SessionAppOptions {
  readonly session: Session;
  readonly clock: Clock;
  /** Deletes everything that the object holds. */
  readonly destroy: () => Promise<void>;
  /** Why there is no room for another request of this caller to this agent, or null. */
  readonly admit?: () => Promise<EngineError | null>;
  readonly log: Logger;
}

export type SessionEnv = {
  Bindings: SessionAppOptions & { readonly heartbeat: Heartbeat; readonly events: EventSource };
};
