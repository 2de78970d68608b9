/** The client of one system: its address, its credentials, and its sessions. What is not of a session is in system.ts. */
import type { JsonObject } from '../domain/json.ts';
import { attend } from './attendants.ts';
import { Connection } from './connection.ts';
import type { TokenSource } from './connection.ts';
import type { CortexError } from './error.ts';
import { systemClock } from './pause.ts';
import type { Clock } from './pause.ts';
import { Session } from './session.ts';
import { System } from './system.ts';

export interface ClientOptions {
  /** For example `https://cortex.example`. */
  readonly url: string;
  /** An API key: for servers only. */
  readonly key?: string;
  /** A user or session token, or a function that gets one: it is called before each request. */
  readonly token?: TokenSource;
  /** Default: the `fetch` of the platform. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Further attempts of a request. Default 5: about 6 seconds. A run that is read has more patience. */
  readonly retries?: number;
  /** Milliseconds until a request must be answered. Default 120,000. */
  readonly timeoutMs?: number;
  /** Milliseconds without a byte after which a stream counts as cut. Default 15,000: three heartbeats. */
  readonly silenceMs?: number;
  /** Is told why a request or a stream is about to be repeated: for example to show that the connection is lost. */
  readonly onRetry?: (fault: CortexError) => void;
  /** Is told that a stream which was lost is open again. */
  readonly onResumed?: () => void;
  /** For tests. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface CreateSessionOptions {
  /** With a user token: its own user only. */
  readonly userId?: string;
  /** Stored with the session, not shown to the model. */
  readonly metadata?: JsonObject;
  /** Session variables, readable as `$name`. */
  readonly variables?: JsonObject;
  /** The conversation before the session; requires an API key. */
  readonly history?: readonly JsonObject[];
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** A client for pages that only show runs, and smaller: its runs ignore `clientTools` and `onApproval`. */
export class BaseClient extends System {
  constructor(options: ClientOptions) {
    const { url, key, token = null, retries = 5, timeoutMs = 120_000, silenceMs = 15_000 } = options;
    const { clock = systemClock, random = Math.random, onRetry, onResumed } = options;
    // A method of an object: `fetch` must be called without one.
    const fetch = options.fetch ?? ((...args: Parameters<typeof globalThis.fetch>) => globalThis.fetch(...args));
    const shared = { url, fetch, clock, random, retries, timeoutMs, silenceMs, onRetry, onResumed };
    super(new Connection({ ...shared, token: key ?? token }));
  }

  /** Creates a session with an agent. @throws CortexError, for example `unknown_agent` */
  async createSession(agent: string, options: CreateSessionOptions = {}): Promise<Session> {
    const { userId, metadata, variables, history, idempotencyKey, signal } = options;
    const { session_id: id } = await this.connection.json<{ session_id: string }>(
      `/agent/${encodeURIComponent(agent)}/session`,
      {
        method: 'POST',
        body: { user_id: userId, metadata, initial_state: variables, history },
        idempotencyKey,
        signal,
      },
    );
    return this.session(id);
  }

  /** A session that exists. Sends nothing. */
  session(id: string): Session {
    return new Session(this.connection, id, this.attend);
  }
}

export class Client extends BaseClient {
  protected override readonly attend = attend;
}
