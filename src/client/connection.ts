/**
 * Requests to one system, with credentials, time-outs and retries.
 *
 * Invariants:
 *  1. A request is sent again only after a lost connection, a time-out, or a status that may pass (429, 500, 502, 503,
 *     504), at most `retries` times, and not before `Retry-After`.
 *  2. Every POST has an idempotency key, which its attempts share.
 *  3. When the caller's signal is aborted, nothing more is sent, and its reason is thrown.
 *  4. A server that does not know the compact form of events has refused the parameter, and is asked without it.
 *  5. A token that no header can carry, and an id that would lead to another path, are refused before anything is sent.
 */
import { connectionLost, CortexError, errorOf, invalidResponse, invalidToken, unusableId } from './error.ts';
import { newKey } from './key.ts';
import { backoffMs, LinkedSignal, pause } from './pause.ts';
import type { Clock } from './pause.ts';

/** A token, or what gets one: called before each request, so that it can renew a token that expires. */
export type TokenSource = string | (() => string | Promise<string>);

export interface ConnectionOptions {
  readonly url: string;
  readonly token: TokenSource | null;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Further attempts after the first one. */
  readonly retries: number;
  /** Milliseconds until the server must have answered, and until the next byte of a stream. */
  readonly timeoutMs: number;
  readonly silenceMs: number;
  /** Is told why a request is sent again, or a stream is followed again. */
  readonly onRetry: ((fault: CortexError) => void) | undefined;
  /** Is told that a stream which was lost is open again. */
  readonly onResumed: (() => void) | undefined;
}

/** The content of a file. It is not a stream, because it may have to be sent again. */
export type FileContent = string | Blob | ArrayBuffer | Uint8Array<ArrayBuffer>;

export interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** A body that is sent as it is, instead of `body`. */
  readonly raw?: FileContent;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of a POST. Default: a new one. */
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: that of the client. */
  readonly retries?: number | undefined;
  /** Milliseconds until the answer is there; until it begins, if its body is left to the caller. Default: that of the client. */
  readonly timeoutMs?: number;
  /** Whether an error of a repeated request means that the first one has succeeded, and only its answer was lost. */
  readonly isDone?: (fault: CortexError) => boolean;
  /** The request is sent again. */
  readonly onRetry?: () => void;
}

/** Longest `Retry-After` that is waited for. */
export const MOST_WAIT_MS = 60_000;
/** Further attempts of what a run that is read needs: results, decisions and look-ups. About 8 minutes. */
export const PATIENT_RETRIES = 100;
/** What streams of events ask for. */
export const COMPACT = { format: 'compact' } as const;

export class Connection {
  readonly options: ConnectionOptions;
  readonly #root: string;

  constructor(options: ConnectionOptions) {
    this.options = options;
    this.#root = options.url.replace(/\/+$/, '');
  }

  /** The parsed answer; null for an empty one. @throws CortexError */
  async json<T>(path: string, options: RequestOptions = {}): Promise<T> {
    // The body belongs to the attempt: its connection may be lost as well.
    return await this.#retry(options, async (attempt) => {
      const { response, release } = await this.#send(path, attempt);
      try {
        const text = await response.text();
        return (text === '' ? null : JSON.parse(text)) as T;
      } catch (fault) {
        options.signal?.throwIfAborted();
        if (fault instanceof SyntaxError) throw invalidResponse(`${path} did not answer with JSON`, response.status);
        throw connectionLost(`The answer of ${path} was cut off`, fault);
      } finally {
        release();
      }
    });
  }

  /** The answer, with its body unread: the signal ends it as well. @throws CortexError */
  async response(path: string, options: RequestOptions = {}): Promise<Response> {
    return await this.#retry(options, async (attempt) => {
      const { response, begun } = await this.#send(path, attempt);
      begun();
      return response;
    });
  }

  async #retry<T>(given: RequestOptions, attempt: (options: RequestOptions) => Promise<T>): Promise<T> {
    const { clock, random } = this.options;
    const { retries = this.options.retries } = given;
    let options = given.method === 'POST' ? { ...given, idempotencyKey: given.idempotencyKey ?? newKey() } : given;
    for (let failures = 0; ;) {
      try {
        return await attempt(options);
      } catch (fault) {
        options.signal?.throwIfAborted();
        if (!(fault instanceof CortexError)) throw fault;
        if (failures > 0 && options.isDone?.(fault) === true) return null as T;
        // A repeated refusal is the same: nothing was done.
        if (fault.code === 'invalid_request' && options.query?.['format'] !== undefined) {
          const query = { ...options.query, format: undefined };
          options = Object.assign({}, options, { query });
          continue;
        }
        failures += 1;
        const waitMs = fault.retryAfterMs ?? backoffMs(failures, random());
        if (!fault.isPassing || failures > retries || waitMs > MOST_WAIT_MS) throw fault;
        this.options.onRetry?.(fault);
        await pause(waitMs, clock, options.signal ?? NEVER);
        options.signal?.throwIfAborted();
        options.onRetry?.();
      }
    }
  }

  /** One attempt, with a new token if the first one has expired. */
  async #send(path: string, options: RequestOptions): Promise<Answer> {
    const token = await this.#token();
    const first = await this.#fetch(path, options, token);
    if (first.response.status !== 401 || typeof this.options.token !== 'function') return await checked(first);
    const renewed = await this.#token();
    if (renewed === token) return await checked(first);
    drop(first.response);
    first.release();
    return await checked(await this.#fetch(path, options, renewed));
  }

  /** @throws CortexError `unauthorized` */
  async #token(): Promise<string | null> {
    const { token: source } = this.options;
    const token = typeof source === 'function' ? await source() : source;
    if (token !== null && !HEADER_TOKEN.test(token)) throw invalidToken();
    return token;
  }

  async #fetch(path: string, options: RequestOptions, token: string | null): Promise<Answer> {
    const { clock, fetch } = this.options;
    const { method = 'GET', query = {}, body, raw, headers = {}, idempotencyKey: key, signal } = options;
    const { timeoutMs = this.options.timeoutMs } = options;
    if (DOT_SEGMENT.test(path)) throw unusableId();
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    const url = `${this.#root}${path}?${search.toString()}`.replace(/\?$/, '');
    const linked = new LinkedSignal(signal);
    const begun = clock.schedule(timeoutMs, () => linked.abort(new Error(`No answer within ${timeoutMs} ms`)));
    const release = (): void => {
      begun();
      linked.release();
    };
    try {
      signal?.throwIfAborted();
      const response = await fetch(url, {
        method,
        headers: {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(key === undefined ? {} : { 'idempotency-key': key }),
          ...headers,
        },
        // Undefined without a body.
        body: raw ?? JSON.stringify(body),
        signal: linked.signal,
      });
      return { response, begun, release };
    } catch (fault) {
      release();
      signal?.throwIfAborted();
      throw connectionLost(`${method} ${path} did not reach the server`, fault);
    }
  }
}

/** Nothing more of it is read. */
export function drop({ body }: Response): void {
  void body?.cancel().catch(() => undefined);
}

interface Answer {
  readonly response: Response;
  /** The time no longer counts: the body is read by the caller. */
  readonly begun: () => void;
  /** The body was read: neither the time nor the caller's signal matters any more. */
  readonly release: () => void;
}

const NEVER = new AbortController().signal;
/** What a header can carry: visible characters up to U+00FF. */
const HEADER_TOKEN = /^[\x21-\x7e\x80-\xff]*$/;
/** `.` and `..` in a path are resolved before the request is sent. */
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;

/** @throws CortexError of an error status */
async function checked(answer: Answer): Promise<Answer> {
  const { response, release } = answer;
  if (response.ok) return answer;
  try {
    throw await errorOf(response);
  } catch (fault) {
    throw fault instanceof CortexError ? fault : connectionLost('The answer was cut off', fault);
  } finally {
    release();
  }
}
