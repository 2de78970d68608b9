/** One session: a conversation with an agent. */
import type { SessionEvent } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { AbortOptions } from './abort-options.ts';
import type { Decision } from './approvals.ts';
import { drop, PATIENT_RETRIES } from './connection.ts';
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
  /**
   * During another run: `queue` (default), an error 409 `run_in_progress`, or `steer`: the model sees the message in its
   * next generation, and `send` returns the run that has received it. If that run ends before, the message has its own.
   */
  readonly ifBusy?: 'queue' | 'reject' | 'steer';
  /** The run that the message follows, null: none. Default: the head. */
  readonly parentRun?: string | null;
}

export interface RerunOptions extends RunOptions, Pick<SendOptions, 'idempotencyKey'> {
  readonly ifBusy?: 'queue' | 'reject';
}

export interface RetryOptions extends RerunOptions {
  /** Instead of the content of the message. */
  readonly content?: string | readonly ContentPart[];
}

export interface ForkOptions extends AbortOptions {
  /** The last run that is copied. Default: the head. */
  readonly atRun?: string;
  readonly idempotencyKey?: string;
}

export interface PageOptions extends AbortOptions {
  readonly limit?: number;
  readonly before?: string;
}

export interface HistoryOptions extends PageOptions {
  /** The last run of a branch. Default: the head. */
  readonly run?: string | undefined;
}

export interface DownloadOptions extends AbortOptions {
  /** One range of bytes, such as `bytes=0-99`. */
  readonly range?: string;
}

export interface SessionTokenOptions extends AbortOptions {
  readonly scopes: readonly Scope[];
  readonly expiresIn?: number;
}

export class Session {
  readonly id: string;
  /** For the functions of files.ts. */
  readonly connection: Connection;
  readonly #path: string;
  readonly #attend: Attend;

  /** Use `client.createSession()` or `client.session()`. */
  constructor(connection: Connection, id: string, attend: Attend) {
    this.connection = connection;
    this.#attend = attend;
    this.id = id;
    this.#path = `/agent/session/${encodeURIComponent(id)}`;
  }

  async document({ signal }: AbortOptions = {}): Promise<SessionDocument> {
    return await this.connection.json(this.#path, { signal });
  }

  /**
   * Sends a message. Resolves when the server has accepted it. Then read the run: its stream stays open until you do.
   *
   * @param content text, or parts with images and files
   * @throws CortexError if the message was refused, or the server cannot be reached
   */
  async send(content: string | readonly ContentPart[], options: SendOptions = {}): Promise<Run> {
    const { clientTools = {}, tools = [], metadata, instructions, parentRun } = options;
    const all = [...declarationsOf(clientTools), ...tools];
    const body = {
      content,
      metadata,
      instructions,
      parent_run: parentRun,
      ...(all.length === 0 ? {} : { tools: all }),
    };
    return await this.#start('message', body, options);
  }

  /**
   * Runs the message of a run again, in a branch of its own, which the conversation continues. Like `send()`.
   *
   * @throws CortexError if it was refused, or the server cannot be reached
   */
  async retry(runId: string, { content, ...options }: RetryOptions = {}): Promise<Run> {
    return await this.#start(`runs/${encodeURIComponent(runId)}/retry`, { content }, options);
  }

  /** Runs one action of a run again, alone, in a run of its own. Like `retry()`. */
  async rerun(runId: string, actionId: string, options: RerunOptions = {}): Promise<Run> {
    return await this.#start(`runs/${encodeURIComponent(runId)}/retry`, { action: actionId }, options);
  }

  async #start(path: string, body: object, options: SendOptions): Promise<Run> {
    const { idempotencyKey, ifBusy, signal } = options;
    const request = { query: { if_busy: ifBusy }, body, idempotencyKey, signal };
    const { id, open } = await openRun(this.connection, `${this.#path}/${path}`, request);
    if (ifBusy !== 'steer') return this.run(id, options, open);
    // The run may have begun before: it is read from its first event on.
    drop(open.response);
    return this.run(id, options);
  }

  /**
   * Copies the conversation up to the end of a run into a new session.
   *
   * @throws CortexError, for example `run_in_progress`
   */
  async fork({ atRun, idempotencyKey, signal }: ForkOptions = {}): Promise<Session> {
    const { session_id: id } = await this.connection.json<{ session_id: string }>(`${this.#path}/fork`, {
      method: 'POST',
      body: { at_run: atRun },
      idempotencyKey,
      signal,
    });
    return new Session(this.connection, id, this.#attend);
  }

  /** The conversation continues after this run. */
  async setHead(runId: string, { signal }: AbortOptions = {}): Promise<void> {
    await this.connection.json(`${this.#path}/head`, { method: 'POST', body: { run_id: runId }, signal });
  }

  /**
   * A run that exists, for example after a page was loaded again. Its events begin with the first one.
   *
   * @param open for the client itself: a stream of the run that is read first
   */
  run(id: string, options: RunOptions = {}, open: OpenStream | null = null): Run {
    return new Run(this.connection, this.#forRun(options), id, options, open);
  }

  /** All events of the session after `after`, then live ones, until the signal is aborted. Resumed like `run.events()`. */
  async *events({ after = 0, signal }: AbortOptions & { readonly after?: number } = {}): AsyncGenerator<
    SessionEvent,
    void,
    undefined
  > {
    const reader = new LinkedSignal(signal);
    try {
      const path = `${this.#path}/events`;
      yield* follow(this.connection, { path, after, signal: reader.signal, isLast: () => false });
    } finally {
      reader.abort();
    }
  }

  /** Messages and answers of one branch in order: the newest page, or the one before `before`. */
  async history({ signal, ...query }: HistoryOptions = {}): Promise<HistoryPage> {
    return await this.connection.json(`${this.#path}/history`, { query, signal });
  }

  /** Runs in order: the newest page, or the one before `before`. */
  async runs({ signal, ...query }: PageOptions = {}): Promise<RunPage> {
    return await this.connection.json(`${this.#path}/runs`, { query, signal });
  }

  /** Context feeds, with their latest values and errors. */
  async feeds({ signal }: AbortOptions = {}): Promise<readonly Feed[]> {
    const { feeds } = await this.connection.json<{ feeds: Feed[] }>(`${this.#path}/feeds`, { signal });
    return feeds;
  }

  /** The session variables. */
  async variables({ signal }: AbortOptions = {}): Promise<JsonObject> {
    const { variables } = await this.connection.json<{ variables: JsonObject }>(`${this.#path}/state`, { signal });
    return variables;
  }

  /** Cancels running and queued runs. @returns whether anything was running */
  async cancel({ reason, signal }: AbortOptions & { readonly reason?: string } = {}): Promise<boolean> {
    const { cancelled } = await this.connection.json<{ cancelled: boolean }>(`${this.#path}/cancel`, {
      method: 'POST',
      body: { reason },
      signal,
    });
    return cancelled;
  }

  /** All open requests for approval, oldest first, with those of sub-agents: decide these in `approval.session_id`. */
  async approvals(options: AbortOptions = {}): Promise<OpenApproval[]> {
    const all: OpenApproval[] = [];
    for (let after: string | undefined; ;) {
      const page: { approvals: OpenApproval[]; next: string | null } = await this.connection.json(
        `${this.#path}/approvals`,
        {
          ...options,
          query: { after },
        },
      );
      all.push(...page.approvals);
      if (page.next === null) return all;
      after = page.next;
    }
  }

  /** One request for approval, with the whole call. */
  async approval(id: string, options: AbortOptions = {}): Promise<Approval> {
    return await this.connection.json(`${this.#path}/approvals/${encodeURIComponent(id)}`, { ...options });
  }

  /**
   * Decides a request for approval, or answers the question of a target.
   *
   * @throws CortexError `approval_closed` if another decision was first; `invalid_answer` if the values are not those that
   *   the question asks for, and it stays open
   */
  async decide(id: string, decision: Decision, options: AbortOptions = {}): Promise<void> {
    const path = `${this.#path}/approvals/${encodeURIComponent(id)}`;
    try {
      await this.connection.json(path, { ...options, method: 'POST', body: decision });
    } catch (fault) {
      if (!(fault instanceof CortexError) || fault.code !== 'approval_closed') throw fault;
      // The answer to an earlier attempt was lost, or someone else has decided the same.
      const decided = await this.approval(id, options);
      const { approve, note = null } = decision;
      const isSame = decided.status === (approve ? 'approved' : 'denied') && decided.note === note;
      if (!isSame) throw fault;
    }
  }

  /**
   * Gives the result of a client tool's call. The same result again is accepted.
   *
   * @throws CortexError `call_settled` if another result was first, or the call was cancelled or has expired
   */
  async settle(callId: string, result: CallResult, options: AbortOptions = {}): Promise<void> {
    const path = `${this.#path}/calls/${encodeURIComponent(callId)}`;
    await this.connection.json(path, { ...options, method: 'POST', body: result });
  }

  /** Large outputs and files of actions, oldest first: one page. */
  async artifacts({
    signal,
    ...query
  }: AbortOptions & { readonly after?: number | undefined } = {}): Promise<ArtifactPage> {
    return await this.connection.json(`${this.#path}/artifacts`, { query, signal });
  }

  /** Downloads an artifact: `(await session.artifact(id)).blob()`. */
  async artifact(id: string, options: DownloadOptions = {}): Promise<Response> {
    return await this.#download(`artifacts/${encodeURIComponent(id)}`, options);
  }

  /** Downloads a file of a message, by the `sha256` in its part. */
  async content(sha256: string, options: DownloadOptions = {}): Promise<Response> {
    return await this.#download(`content/${encodeURIComponent(sha256)}`, options);
  }

  /** Creates a token for this session. Requires an API key. @param options.expiresIn seconds; default 3,600 */
  async createToken({ scopes, expiresIn, signal }: SessionTokenOptions): Promise<SessionToken> {
    const body = { scopes, expires_in: expiresIn };
    return await this.connection.json(`${this.#path}/tokens`, { method: 'POST', body, signal });
  }

  /** Cancels all runs and deletes the session. Requires an API key. */
  async delete({ signal }: AbortOptions = {}): Promise<void> {
    await this.connection.json(this.#path, {
      method: 'DELETE',
      isDone: ({ code }) => code === 'unknown_session',
      signal,
    });
  }

  /** For a run that is read until the signal is aborted. */
  #forRun({ signal }: RunOptions): RunSession {
    // Passed on with each request.
    const options: AbortOptions & { readonly retries: number } = { signal, retries: PATIENT_RETRIES };
    return {
      id: this.id,
      path: this.#path,
      attend: this.#attend,
      list: () => this.approvals(options),
      settle: (call, result) => this.settle(call, result, options),
      // A sub-agent has a session of its own.
      decide: ({ session_id: id, approval_id: approval }, decision) =>
        new Session(this.connection, id, this.#attend).decide(approval, decision, options),
    };
  }

  async #download(path: string, { range, signal }: DownloadOptions): Promise<Response> {
    const headers: Record<string, string> = range === undefined ? {} : { range };
    return await this.connection.response(`${this.#path}/${path}`, { headers, signal });
  }
}
