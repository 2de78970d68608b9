/**
 * Shared by the Worker's routes: looks up agents, creates sessions, and forwards requests to session objects (H1).
 *
 * Owns which headers of a request an object sees. Does not own the behaviour of a session.
 */
import { EngineError, unknownSession } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import { nearestNames } from '../domain/nearest.ts';
import { NO_HISTORY } from '../domain/seeded.ts';
import type { SeededHistory } from '../domain/seeded.ts';
import type { SessionRecord } from '../domain/session.ts';
import { TRACEPARENT } from '../domain/trace.ts';
import type { Principal } from './auth.ts';
import type { ManifestHost } from './manifest-host.ts';
import type { Caller } from './access.ts';
import {
  AGENTS_HEADER,
  EXPIRY_HEADER,
  INCARNATION_HEADER,
  PRINCIPAL_HEADER,
  SCOPES_HEADER,
  USER_HEADER,
  WORKER_HEADERS,
} from './session-env.ts';
import type { ForkedRecord } from './session-env.ts';

export interface GatewayPorts {
  readonly now: () => number;
  readonly newSessionId: () => Promise<string>;
  /** False means that no session can have this id, so no object is called. */
  readonly mayBeSession: (id: string) => Promise<boolean>;
  /** Looks up an agent in the catalogue of a namespace. */
  readonly agent: (name: string, owner: string | null) => Promise<ResolvedAgent | null>;
  /** The agent with the tools of its MCP servers (E5). Never rejects. */
  readonly withServers: (agent: ResolvedAgent, owner: string | null) => Promise<ResolvedAgent>;
  readonly manifests: ManifestHost;
  /** Creates the session in its object. */
  readonly createSession: (record: SessionRecord, state: JsonObject, history: SeededHistory) => Promise<void>;
  /**
   * Creates the session in its object, unless there is one of the same start. @returns its record
   *
   * @throws EngineError `unknown_session`, `idempotency_mismatch`
   */
  readonly openSession: (record: SessionRecord, state: JsonObject, history: SeededHistory) => Promise<SessionRecord>;
  /**
   * Creates a session as a fork of another one, unless there is one of the same start. @returns its record
   *
   * @throws EngineError `unknown_session`, `idempotency_mismatch`, and why the other session cannot be forked there
   */
  readonly forkSession: (
    record: SessionRecord,
    from: { readonly sessionId: string; readonly runId: string | null },
  ) => Promise<ForkedRecord>;
  /** Forwards a request to a session's object; `path` is relative to the session. */
  readonly forward: (sessionId: string, path: string, request: Request) => Promise<Response>;
}

/** Context of every authenticated request. */
export type EdgeEnv = { Variables: { principal: Caller } };

export class Gateway {
  readonly #ports: GatewayPorts;

  constructor(ports: GatewayPorts) {
    this.#ports = ports;
  }

  async agents(owner: string | null): Promise<{ readonly name: string; readonly summary: string }[]> {
    const agents = await this.#ports.manifests.list(owner, 'agent');
    return agents.map(({ name, summary }) => ({ name, summary }));
  }

  /** @throws EngineError `unknown_agent` with the known names */
  async requireAgent(name: string, owner: string | null): Promise<ResolvedAgent> {
    const found = await this.#ports.agent(name, owner);
    if (found !== null) return found;
    const known = (await this.agents(owner)).map((one) => one.name);
    const near = nearestNames(name, known).map((one) => `"${one}"`);
    const hint = near.length === 0 ? '' : `did you mean ${near.join(' or ')}? `;
    const message = `No agent is called "${name.slice(0, limits.excerptChars)}" (${hint}known: ${known.join(', ')})`;
    throw new EngineError('unknown_agent', message, { known });
  }

  /** The agent as a run has it: with the tools of its MCP servers (E5). @throws EngineError `unknown_agent` */
  async requireEquippedAgent(name: string, owner: string | null): Promise<ResolvedAgent> {
    return await this.#ports.withServers(await this.requireAgent(name, owner), owner);
  }

  async createSession(
    principal: Principal,
    request: Pick<SessionRecord, 'agent' | 'user_id' | 'metadata' | 'kind' | 'redact'>,
    state: JsonObject,
    history: SeededHistory = NO_HISTORY,
  ): Promise<SessionRecord> {
    const record: SessionRecord = {
      session_id: await this.#ports.newSessionId(),
      owner: principal.owner,
      created_at: this.#ports.now(),
      ...request,
    };
    await this.#ports.createSession(record, state, history);
    return record;
  }

  /** Creates a session with this id, unless there is one of the same start. @returns its record */
  async openSession(record: SessionRecord, state: JsonObject, history: SeededHistory): Promise<SessionRecord> {
    return await this.#ports.openSession(record, state, history);
  }

  /** The same with the conversation of another session up to the end of a run (C4); null: it has no runs. */
  async forkSession(
    record: SessionRecord,
    from: { readonly sessionId: string; readonly runId: string | null },
  ): Promise<ForkedRecord> {
    return await this.#ports.forkSession(record, from);
  }

  async newSessionId(): Promise<string> {
    return await this.#ports.newSessionId();
  }

  /** @returns the id. @throws EngineError `unknown_session` for an id that no session can have */
  async requireId(id: string): Promise<string> {
    if (/^ses_[0-9a-f]{32}$/.test(id) && (await this.#ports.mayBeSession(id))) return id;
    throw unknownSession();
  }

  /** The session of an execution, by either id. @throws EngineError `unknown_execution` */
  async requireExecution(id: string): Promise<string> {
    const hex = /^(?:ses_([0-9a-f]{32})|run_([0-9a-f]{32})(?:_[0-9a-f]{12})?_\d{1,9})$/
      .exec(id)
      ?.slice(1)
      .find(Boolean);
    if (hex !== undefined && (await this.#ports.mayBeSession(`ses_${hex}`))) return `ses_${hex}`;
    throw unknownExecution(id);
  }

  /**
   * Forwards a request to the session's object: adds what is known about the caller, removes headers that only the
   * Worker may set.
   *
   * @param incarnation the one that the request is for; empty: a session without one; null: any (T5)
   */
  async forward(
    sessionId: string,
    path: string,
    request: Request,
    { owner, token }: Caller,
    incarnation: string | null = null,
  ): Promise<Response> {
    const headers = new Headers(request.headers);
    for (const name of WORKER_HEADERS) headers.delete(name);
    if (token !== null) {
      headers.delete(TRACEPARENT);
      headers.set(EXPIRY_HEADER, String(token.expiresAt));
      headers.set(SCOPES_HEADER, token.scopes.join(' '));
      if (token.type === 'session') headers.set(INCARNATION_HEADER, token.incarnation ?? '');
      else {
        headers.set(USER_HEADER, encodeURIComponent(token.userId));
        if (token.agents !== null) headers.set(AGENTS_HEADER, token.agents.map(encodeURIComponent).join(' '));
      }
    }
    headers.delete('authorization');
    if (incarnation !== null) headers.set(INCARNATION_HEADER, incarnation);
    if (owner !== null) headers.set(PRINCIPAL_HEADER, owner);
    return await this.#ports.forward(sessionId, path, new Request(request, { headers }));
  }
}

export function unknownExecution(id: string): EngineError {
  return new EngineError('unknown_execution', `There is no execution "${id.slice(0, limits.excerptChars)}"`);
}
