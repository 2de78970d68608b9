/**
 * One run: what a message has started.
 *
 * Invariants:
 *  1. Each reader of `events()` gets every journaled event and all text once (follow.ts), from the first event on.
 *  2. Calls of client tools are executed, and approvals are asked for, while someone reads; once, however many read.
 *  3. Leaving, by `break` or by a signal, never cancels the run.
 */
import type { SessionEvent } from '../domain/event.ts';
import type { ApprovalRequestsOptions, OnApproval } from './approvals.ts';
import type { ToolCallsOptions } from './client-tools.ts';
import { PATIENT_RETRIES } from './connection.ts';
import type { Connection } from './connection.ts';
import type { ClientTools } from './declarations.ts';
import type { RunDocument } from './documents.ts';
import { CortexError } from './error.ts';
import { follow } from './follow.ts';
import { fold } from '../view/reduce.ts';
import { emptyView, hasEnded } from '../view/run-view.ts';
import type { RunView } from '../view/run-view.ts';
import type { OpenStream } from './open-run.ts';
import { LinkedSignal } from './pause.ts';
import type { RunPrompt } from './system-documents.ts';

export interface RunOptions {
  /** Executes calls of these tools. */
  readonly clientTools?: ClientTools;
  /** Is asked about each open request for approval. */
  readonly onApproval?: OnApproval;
  /** Ends reading, and the tools that run. The run continues. */
  readonly signal?: AbortSignal | undefined;
}

/** What a run needs of its session. */
export interface RunSession extends Pick<ApprovalRequestsOptions, 'list' | 'decide'>, Pick<ToolCallsOptions, 'settle'> {
  readonly id: string;
  /** Its path in the HTTP API. */
  readonly path: string;
  readonly attend: Attend;
}

/** Accompanies a run while someone reads it. */
interface Attendant {
  /** @param isLive the event has happened just now */
  take(event: SessionEvent, isLive: boolean): void;
  /** Live events may have been missed. */
  missed?(): void;
}

/** Gives a run what its options ask for. */
export type Attend = (
  options: RunOptions,
  run: Omit<ToolCallsOptions, 'tools' | 'signal'> & Omit<ApprovalRequestsOptions, 'onApproval'>,
) => readonly Attendant[];

interface Fault {
  readonly cause: unknown;
}

interface Reader {
  readonly linked: LinkedSignal;
  fault: Fault | null;
}

const END_EVENT = /^agent_(completed|failed|cancelled)$/;

export class Run {
  readonly id: string;
  readonly sessionId: string;
  readonly #path: string;
  readonly #connection: Connection;
  readonly #signal: AbortSignal | undefined;
  readonly #attendants: readonly Attendant[];
  readonly #readers = new Set<Reader>();
  #open: OpenStream | null;
  /** The event before the run's first one; null until the first one is known. */
  #before: number | null = null;
  /** Why a result or a decision was not accepted, if nobody read: for the next reader. */
  #fault: Fault | null = null;
  #result: RunView | null = null;

  /** Use `session.send()` or `session.run()`. */
  constructor(
    connection: Connection,
    session: RunSession,
    id: string,
    options: RunOptions,
    open: OpenStream | null = null,
  ) {
    this.#connection = connection;
    this.sessionId = session.id;
    this.id = id;
    this.#path = session.path;
    this.#signal = options.signal;
    this.#open = open;
    const fail = (fault: unknown): void => this.#fail(fault);
    const document = (): Promise<RunDocument> => this.#document(PATIENT_RETRIES);
    this.#attendants = session.attend(options, { ...session, sessionId: session.id, runId: id, document, fail });
  }

  /**
   * The events of the run, from its first one to `agent_completed`, `agent_failed` or `agent_cancelled`, also while it
   * waits for approvals and results. Lost connections are resumed: every journaled event comes once, and the deltas of
   * a block are its whole text. If a crash has cut a block off, `content` of its closing event counts.
   *
   * @param options.signal ends the events without an error; the run continues
   * @throws CortexError if the server refuses, is lost for long, or accepts no result of a client tool
   */
  async *events({ signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<SessionEvent, void, undefined> {
    const missed = this.#fault;
    this.#fault = null;
    if (missed !== null) throw missed.cause;
    const linked = new LinkedSignal(this.#signal, signal);
    const reader: Reader = { linked, fault: null };
    this.#readers.add(reader);
    const open = this.#open;
    this.#open = null;
    let isLive = open?.isLive === true;
    try {
      const events = follow(this.#connection, {
        path: `${this.#path}/events`,
        run: this.id,
        after: this.#before ?? 0,
        open: open?.response ?? null,
        signal: linked.signal,
        isLast: ({ type }) => END_EVENT.test(type),
        onResume: () => (isLive = false),
        onGap: () => this.#attendants.forEach((attendant) => attendant.missed?.()),
      });
      for await (const event of events) {
        if (event.seq !== null) this.#before ??= event.seq - 1;
        for (const attendant of this.#attendants) attendant.take(event, isLive);
        yield event;
      }
      if (reader.fault !== null) throw reader.fault.cause;
    } finally {
      linked.abort();
      this.#readers.delete(reader);
    }
  }

  /**
   * The run as a message, after each event: for display. See `fold`.
   *
   * @throws like `events()`
   */
  async *messages(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<RunView, void, undefined> {
    let message = emptyView(this.id);
    for await (const event of this.events(options)) {
      message = fold(message, event);
      if (hasEnded(message)) this.#result = message;
      yield message;
    }
  }

  /**
   * The run as a message, at its end: also if it has failed or was cancelled.
   *
   * @throws the signal's reason if it is aborted; CortexError like `events()`
   */
  async result(options: { readonly signal?: AbortSignal } = {}): Promise<RunView> {
    if (this.#result === null) for await (const _ of this.messages(options));
    if (this.#result !== null) return this.#result;
    throw options.signal?.reason ?? this.#signal?.reason ?? new Error('The run was left');
  }

  /** The answer. @throws CortexError with the code of a failed run, or `cancelled`; and like `result()` */
  async text(options: { readonly signal?: AbortSignal } = {}): Promise<string> {
    const { status, response, error } = await this.result(options);
    if (status === 'completed') return response ?? '';
    throw new CortexError(error ?? { code: 'cancelled', message: `The run ${this.id} was cancelled` });
  }

  /** The run so far as one document. */
  async document(): Promise<RunDocument> {
    return await this.#document();
  }

  /** What the run has sent to the model. Requires an admin key. */
  async prompt(): Promise<RunPrompt> {
    return await this.#connection.json(`${this.#path}/runs/${this.id}/prompt`, { signal: this.#signal });
  }

  async #document(retries?: number): Promise<RunDocument> {
    return await this.#connection.json(`${this.#path}/runs/${this.id}`, { signal: this.#signal, retries });
  }

  /** Those who read now end, and throw it; or else the next one. */
  #fail(cause: unknown): void {
    if (this.#signal?.aborted === true) return;
    if (this.#readers.size === 0) this.#fault ??= { cause };
    for (const reader of this.#readers) {
      reader.fault ??= { cause };
      reader.linked.abort();
    }
  }
}
