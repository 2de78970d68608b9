/** One session: a conversation with an agent. */
import type { SessionEvent } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Decision } from './approvals.ts';
import { PATIENT_RETRIES } from './connection.ts';
import type { Connection } from './connection.ts';
import { declarationsOf } from './declarations.ts';
import type {
  Approval,
  ArtifactPage,
  CallResult,
  ContentPart,
  HistoryPage,
  OpenApproval,
  SessionDocument,
  ToolDeclaration,
} from './documents.ts';
import { CortexError } from './error.ts';
import { follow } from './follow.ts';
import { openRun } from './open-run.ts';
import type { OpenStream } from './open-run.ts';
import { LinkedSignal } from './pause.ts';
import { Run } from './run.ts';
import type { Attend, RunOptions, RunSession } from './run.ts';
import type { Feed, RunPage, Scope, SessionToken } from './system-documents.ts';

export interface SendOptions extends RunOptions {
  /** Client tools whose calls you settle yourself, with `settle`. */
  readonly tools?: readonly ToolDeclaration[];
  /** Stored with the message, not shown to the model. */
  readonly metadata?: JsonObject;
  /** Instructions of the application for this message; require an API key. */
  readonly instructions?: string;
  /** The same key with the same content gives the same run. Default: a new one, which repeated attempts share. */
  readonly idempotencyKey?: string;
  /** During another run: `queue` (default), or an error 409 `run_in_progress`. */
  readonly ifBusy?: 'queue' | 'reject';
}

interface Leave {
  readonly signal?: AbortSignal | undefined;
}

interface Page extends Leave {
  readonly limit?: number;
  readonly before?: string;
}

interface Download extends Leave {
  /** One range of bytes, such as `bytes=0-99`. */
  readonly range?: string;
}

interface TokenOptions extends Leave {
  readonly scopes: readonly Scope[];
  readonly expiresIn?: number;
}

interface Attempts extends Leave {
  readonly retries?: number;
}

export class Session {
  readonly id: string;
  readonly #path: string;
  readonly #connection: Connection;
  readonly #attend: Attend;

  /** Use `client.createSession()` or `client.session()`. */
  constructor(connection: Connection, id: string, attend: Attend) {
    this.#connection = connection;
    this.#attend = attend;
    this.id = id;
    this.#path = `/agent/session/${encodeURIComponent(id)}`;
  }

  async document({ signal }: Leave = {}): Promise<SessionDocument> {
    return await this.#connection.json(this.#path, { signal });
  }

  /**
   * Sends a message. Resolves when the server has accepted it. Then read the run: its stream stays open until you do.
   *
   * @param content text, or parts with images and files
   * @throws CortexError if the message was refused, or the server cannot be reached
   */
  async send(content: string | readonly ContentPart[], options: SendOptions = {}): Promise<Run> {
    const { clientTools = {}, tools = [], metadata, instructions, idempotencyKey, ifBusy, signal } = options;
    const all = [...declarationsOf(clientTools), ...tools];
    const body = { content, metadata, instructions, ...(all.length === 0 ? {} : { tools: all }) };
    const request = { query: { if_busy: ifBusy }, body, idempotencyKey, signal };
    const { id, open } = await openRun(this.#connection, `${this.#path}/message`, request);
    return this.run(id, options, open);
  }

  /**
   * A run that exists, for example after a page was loaded again. Its events begin with the first one.
   *
   * @param open for the client itself: a stream of the run that is read first
   */
  run(id: string, options: RunOptions = {}, open: OpenStream | null = null): Run {
    return new Run(this.#connection, this.#forRun(options), id, options, open);
  }

  /** All events of the session after `after`, then live ones, until the signal is aborted. Resumed like `run.events()`. */
  async *events({ after = 0, signal }: Leave & { readonly after?: number } = {}): AsyncGenerator<
    SessionEvent,
    void,
    undefined
  > {
    const reader = new LinkedSignal(signal);
    try {
      const path = `${this.#path}/events`;
      yield* follow(this.#connection, { path, after, signal: reader.signal, isLast: () => false });
    } finally {
      reader.abort();
    }
  }

  /** Messages and answers in order: the newest page, or the one before `before`. */
  async history({ limit, before, signal }: Page = {}): Promise<HistoryPage> {
    return await this.#connection.json(`${this.#path}/history`, { query: { limit, before }, signal });
  }

  /** Runs in order: the newest page, or the one before `before`. */
  async runs({ limit, before, signal }: Page = {}): Promise<RunPage> {
    return await this.#connection.json(`${this.#path}/runs`, { query: { limit, before }, signal });
  }

  /** Context feeds, with their latest values and errors. */
  async feeds({ signal }: Leave = {}): Promise<readonly Feed[]> {
    const { feeds } = await this.#connection.json<{ feeds: Feed[] }>(`${this.#path}/feeds`, { signal });
    return feeds;
  }

  /** The session variables. */
  async variables({ signal }: Leave = {}): Promise<JsonObject> {
    const { variables } = await this.#connection.json<{ variables: JsonObject }>(`${this.#path}/state`, { signal });
    return variables;
  }

  /** Cancels running and queued runs. @returns whether anything was running */
  async cancel({ reason, signal }: Leave & { readonly reason?: string } = {}): Promise<boolean> {
    const { cancelled } = await this.#connection.json<{ cancelled: boolean }>(`${this.#path}/cancel`, {
      method: 'POST',
      body: { reason },
      signal,
    });
    return cancelled;
  }

  /** All open requests for approval, oldest first, with those of sub-agents: decide these in `approval.session_id`. */
  async approvals(options: Leave = {}): Promise<OpenApproval[]> {
    return await this.#approvals(options);
  }

  async #approvals(options: Attempts): Promise<OpenApproval[]> {
    const all: OpenApproval[] = [];
    for (let after: string | undefined; ;) {
      const page: { approvals: OpenApproval[]; next: string | null } = await this.#connection.json(
        `${this.#path}/approvals`,
        { ...options, query: { after } },
      );
      all.push(...page.approvals);
      if (page.next === null) return all;
      after = page.next;
    }
  }

  /** One request for approval, with the whole call. */
  async approval(id: string, options: Leave = {}): Promise<Approval> {
    return await this.#connection.json(`${this.#path}/approvals/${encodeURIComponent(id)}`, { ...options });
  }

  /** Decides a request for approval. @throws CortexError `approval_closed` if another decision was first */
  async decide(id: string, decision: Decision, options: Leave = {}): Promise<void> {
    await this.#decide(id, decision, options);
  }

  /**
   * Gives the result of a client tool's call. The same result again is accepted.
   *
   * @throws CortexError `call_settled` if another result was first, or the call was cancelled or has expired
   */
  async settle(callId: string, result: CallResult, options: Leave = {}): Promise<void> {
    await this.#settle(callId, result, options);
  }

  /** Large outputs and files of actions, oldest first: one page. */
  async artifacts({ after, signal }: Leave & { readonly after?: number } = {}): Promise<ArtifactPage> {
    return await this.#connection.json(`${this.#path}/artifacts`, { query: { after }, signal });
  }

  /** Downloads an artifact: `(await session.artifact(id)).blob()`. */
  async artifact(id: string, options: Download = {}): Promise<Response> {
    return await this.#download(`artifacts/${encodeURIComponent(id)}`, options);
  }

  /** Downloads a file of a message, by the `sha256` in its part. */
  async content(sha256: string, options: Download = {}): Promise<Response> {
    return await this.#download(`content/${encodeURIComponent(sha256)}`, options);
  }

  /** Creates a token for this session. Requires an API key. @param options.expiresIn seconds; default 3,600 */
  async createToken({ scopes, expiresIn, signal }: TokenOptions): Promise<SessionToken> {
    const body = { scopes, expires_in: expiresIn };
    return await this.#connection.json(`${this.#path}/tokens`, { method: 'POST', body, signal });
  }

  /** Cancels all runs and deletes the session. Requires an API key. */
  async delete({ signal }: Leave = {}): Promise<void> {
    await this.#connection.json(this.#path, {
      method: 'DELETE',
      isDone: ({ code }) => code === 'unknown_session',
      signal,
    });
  }

  /** For a run that is read until the signal is aborted. */
  #forRun({ signal }: RunOptions): RunSession {
    const options = { signal, retries: PATIENT_RETRIES };
    return {
      id: this.id,
      path: this.#path,
      attend: this.#attend,
      list: () => this.#approvals(options),
      settle: (call, result) => this.#settle(call, result, options),
      // A sub-agent has a session of its own.
      decide: ({ session_id: id, approval_id: approval }, decision) =>
        new Session(this.#connection, id, this.#attend).#decide(approval, decision, options),
    };
  }

  async #decide(id: string, { approve, note }: Decision, options: Attempts): Promise<void> {
    const path = `${this.#path}/approvals/${encodeURIComponent(id)}`;
    try {
      await this.#connection.json(path, { ...options, method: 'POST', body: { approve, note } });
    } catch (fault) {
      if (!(fault instanceof CortexError) || fault.code !== 'approval_closed') throw fault;
      // The answer to an earlier attempt was lost, or someone else has decided the same.
      const decided = await this.approval(id, options);
      const isSame = decided.status === (approve ? 'approved' : 'denied') && decided.note === (note ?? null);
      if (!isSame) throw fault;
    }
  }

  async #settle(callId: string, result: CallResult, options: Attempts): Promise<void> {
    const path = `${this.#path}/calls/${encodeURIComponent(callId)}`;
    await this.#connection.json(path, { ...options, method: 'POST', body: result });
  }

  async #download(path: string, { range, signal }: Download): Promise<Response> {
    const headers: Record<string, string> = range === undefined ? {} : { range };
    return await this.#connection.response(`${this.#path}/${path}`, { headers, signal });
  }
}
