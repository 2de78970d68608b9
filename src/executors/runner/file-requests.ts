/**
 * The requests that carry the files of workspaces to one runner and back (C7). Their formats: file-transfer.ts.
 *
 * Invariant: one transfer at a time, because each has a file of up to `limits.workspaceFileBytes` in memory, several times.
 */
import { joinedBytes } from '../../domain/bytes.ts';
import { parseObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { JobResult, JobWorkspace } from '../../domain/ports/runner.ts';
import { pause } from '../../domain/sleep.ts';
import { connectionFailure, NoAnswer, refusalOf, RunnerError } from './error.ts';
import { readFiles, sendFiles, type Send } from './file-transfer.ts';
import type { WatchedEnd } from './stream.ts';

/** An answer has as many bytes of files, or one larger file. */
const MAX_ANSWER_BYTES = limits.workspaceTransferBytes + limits.workspaceFileBytes;

/** A signed request. Rejects if the runner does not answer. */
type Request = (method: string, target: string, body: string | Uint8Array, signal: AbortSignal) => Promise<Response>;

export class FileRequests {
  readonly #request: Request;
  readonly #clock: Clock;
  /** The end of the last transfer; null if none is under way. */
  #last: Promise<void> | null = null;

  constructor(request: Request, clock: Clock) {
    this.#request = request;
    this.#clock = clock;
  }

  /**
   * Sends the files that a runner needs before it accepts a job.
   *
   * @param mayBeThere an earlier request for the job had no answer
   * @returns false: nothing was sent, because another transfer was under way, which may have brought the same files
   * @throws RunnerError if the runner does not take them; EngineError `storage_unavailable`
   */
  async send(
    { session, workspace }: { readonly session: string; readonly workspace: JobWorkspace },
    missing: ReadonlySet<string>,
    mayBeThere: boolean,
    signal: AbortSignal,
  ): Promise<boolean> {
    const isFirst = this.#last === null;
    const release = await this.#turn();
    try {
      signal.throwIfAborted();
      if (!isFirst) return false;
      await sendFiles(session, workspace, missing, (method, target, body) =>
        this.#once(method, target, body, { signal, beforeDispatch: !mayBeThere }),
      );
      return true;
    } finally {
      release();
    }
  }

  /** Waits for its turn. @returns ends it */
  async #turn(): Promise<() => void> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    return () => {
      if (this.#last === promise) this.#last = null;
      resolve();
    };
  }

  /** Gives the result of a job access to the bytes of its files. */
  withFiles({ workspace, ...result }: WatchedEnd, session: string): JobResult {
    if (workspace === undefined) return result;
    return {
      ...result,
      workspace: { ...workspace, read: (hashes, signal) => this.#read(session, hashes, signal) },
    };
  }

  async *#read(session: string, hashes: readonly string[], signal: AbortSignal): ReturnType<typeof readFiles> {
    const release = await this.#turn();
    try {
      signal.throwIfAborted();
      yield* readFiles(session, hashes, this.#patient(signal));
    } finally {
      release();
    }
  }

  /**
   * The program has ended, and cannot run again for its files: a runner that is busy or unreachable is asked again for as
   * long as a running job would be waited for.
   */
  #patient(signal: AbortSignal): Send {
    return async (method, target, body) => {
      const until = this.#clock.now() + limits.runnerLostMs;
      for (;;) {
        try {
          return await this.#once(method, target, body, { signal, beforeDispatch: false });
        } catch (fault) {
          const isOver = signal.aborted || this.#clock.now() >= until;
          if (isOver || !(fault instanceof RunnerError) || fault.code === 'runner_rejected') throw fault;
        }
        await pause(limits.runnerRetryMaxMs, this.#clock, signal);
      }
    };
  }

  /** One request; the whole answer has to come within `limits.workspaceTransferMs`. */
  async #once(
    method: string,
    target: string,
    body: string | Uint8Array,
    { signal, beforeDispatch }: { readonly signal: AbortSignal; readonly beforeDispatch: boolean },
  ): Promise<Uint8Array> {
    const stop = new AbortController();
    const ms = limits.workspaceTransferMs;
    const cancel = this.#clock.schedule(ms, () => stop.abort(new NoAnswer(`no answer within ${ms / 1_000} s`)));
    try {
      const response = await this.#request(method, target, body, AbortSignal.any([signal, stop.signal]));
      const { ok, status, headers } = response;
      if (!ok) throw refusalOf({ status, headers, text: await response.text() }, !beforeDispatch);
      return await wholeOf(response);
    } catch (fault) {
      signal.throwIfAborted();
      if (fault instanceof RunnerError) throw fault;
      const message = `The files of the job could not be transferred: ${connectionFailure(fault)}`;
      throw new RunnerError('runner_unavailable', message, { beforeDispatch, cause: fault });
    } finally {
      cancel();
    }
  }
}

/** @throws RunnerError for more than any answer has */
async function wholeOf({ body }: Response): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) {
      const message = `The runner sent more than ${MAX_ANSWER_BYTES} bytes of files in one answer`;
      throw new RunnerError('runner_rejected', message, { beforeDispatch: false });
    }
    pieces.push(piece);
  }
  return joinedBytes(pieces);
}

/** The files that the runner needs before it accepts the job; null if the answer says something else. */
export function missingFilesOf({
  status,
  text,
}: {
  readonly status: number;
  readonly text: string;
}): ReadonlySet<string> | null {
  const body = status === 409 ? parseObject(text) : null;
  if (body?.['code'] !== 'missing_files' || !Array.isArray(body['missing'])) return null;
  return new Set(body['missing'].map(String));
}
