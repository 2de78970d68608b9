/**
 * The outbound requests of one I/O context, such as a session's object, on a platform where at most six of its connections
 * wait for response headers at once (Z3).
 *
 * Owns: which connection a request uses, the queue of requests without one, and the helpers: invocations of our own, each
 * with six connections. Does not own: addresses, redirects, sizes, time-outs and retries. All of them are decided before a
 * request comes here.
 *
 * Invariants
 * 1. At most `limits.platformConnections` direct requests wait for headers, at most `limits.directToolConnections` of them
 *    for tools. The others are for the model and the runner.
 * 2. A helper is used only while no direct connection is free. At most `limits.outboundHelpers` are open.
 * 3. A request is sent once. If its helper ends, it fails like a lost connection; only a helper that could not be opened
 *    passes its requests on.
 * 4. Requests without a connection wait in their order; an aborted one leaves the queue.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { NetworkFetch } from './platform-limits.ts';
import type { RequestPurpose, Subrequests } from './subrequests.ts';

/** An invocation that sends requests. */
export interface OutboundHelper {
  /**
   * Resolves when the headers have arrived. `ended` resolves when the body has ended or was cancelled; then the helper may
   * be closed.
   *
   * @throws HelperNotOpened if nothing was sent, HelperLost if the helper has ended, else the error of `fetch`
   */
  send(url: string, init: RequestInit): Promise<{ readonly response: Response; readonly ended: Promise<void> }>;
  close(): void;
}

/** The invocation could not be started. Nothing was sent. */
export class HelperNotOpened extends Error {
  override readonly name = 'HelperNotOpened';
}

/** The invocation ended during a request. The request may have been sent. */
export class HelperLost extends Error {
  override readonly name = 'HelperLost';
}

export interface PoolOptions {
  readonly direct: NetworkFetch;
  /** Null: there are no helpers, and every request is direct. The platform then queues what is too much for it. */
  readonly openHelper: (() => OutboundHelper) | null;
  readonly subrequests: Subrequests;
  /** Requests of one helper, at most. Default: `limits.outboundHelperRequests`. */
  readonly helperRequests?: number;
  readonly clock: Clock;
}

/** A place for one request that waits for its headers. */
interface Place {
  send(url: string, init: RequestInit): Promise<Response>;
  free(): void;
}

interface OpenHelper {
  readonly helper: OutboundHelper;
  /** Requests that wait for headers, and bodies that are being read. */
  waiting: number;
  reading: number;
  /** Requests so far: an invocation has limits of its own. */
  sent: number;
  cancelClose: () => void;
}

interface Waiter {
  readonly purpose: RequestPurpose;
  readonly isPlain: boolean;
  readonly take: (place: Place) => void;
}

export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #helperRequests: number;
  readonly #waiting: Record<RequestPurpose, number> = { tool: 0, service: 0 };
  readonly #helpers = new Set<OpenHelper>();
  readonly #queue = new Set<Waiter>();
  /** Until then no helper is opened, because one could not be opened. */
  #withoutHelpersUntil = Number.NEGATIVE_INFINITY;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#helperRequests = options.helperRequests ?? limits.outboundHelperRequests;
  }

  /** A `fetch` for these requests. @throws `platform_limit`, as `Subrequests.take` does, and the errors of `fetch` */
  fetcher(purpose: RequestPurpose): NetworkFetch {
    return async (url, init = {}) => {
      const { subrequests } = this.#options;
      subrequests.take(purpose);
      try {
        return await this.#send(purpose, url, init);
      } catch (fault) {
        throw subrequests.errorOf(fault, purpose);
      }
    };
  }

  async #send(purpose: RequestPurpose, url: string, init: RequestInit): Promise<Response> {
    if (this.#options.openHelper === null) return await this.#options.direct(url, init);
    const isPlain = isPlainRequest(init);
    for (;;) {
      const place = this.#place(purpose, isPlain) ?? (await this.#queued(purpose, isPlain, init.signal ?? null));
      try {
        return await place.send(url, init);
      } catch (fault) {
        if (!(fault instanceof HelperNotOpened)) throw fault;
        this.#withoutHelpersUntil = this.#options.clock.now() + limits.outboundHelperIdleMs;
      } finally {
        place.free();
        this.#next();
      }
    }
  }

  /** A free place, or null. */
  #place(purpose: RequestPurpose, isPlain: boolean): Place | null {
    const { tool, service } = this.#waiting;
    const isDirect =
      tool + service < limits.platformConnections && (purpose === 'service' || tool < limits.directToolConnections);
    if (isDirect) return this.#direct(purpose);
    if (!isPlain) return null;
    for (const open of this.#helpers) {
      if (open.waiting < limits.platformConnections && open.sent < this.#helperRequests) {
        return this.#through(open);
      }
    }
    const mayOpen =
      this.#helpers.size < limits.outboundHelpers && this.#options.clock.now() >= this.#withoutHelpersUntil;
    return mayOpen ? this.#through(this.#open()) : null;
  }

  #direct(purpose: RequestPurpose): Place {
    this.#waiting[purpose] += 1;
    return {
      send: this.#options.direct,
      free: () => {
        this.#waiting[purpose] -= 1;
      },
    };
  }

  #open(): OpenHelper {
    const { openHelper } = this.#options;
    if (openHelper === null) throw new Error('this pool has no helpers');
    const open: OpenHelper = { helper: openHelper(), waiting: 0, reading: 0, sent: 0, cancelClose: () => undefined };
    this.#helpers.add(open);
    return open;
  }

  #through(open: OpenHelper): Place {
    open.cancelClose();
    open.waiting += 1;
    open.sent += 1;
    return {
      send: async (url, init) => {
        try {
          const { response, ended } = await open.helper.send(url, init);
          open.reading += 1;
          void ended.finally(() => {
            open.reading -= 1;
            this.#closeLater(open);
            // Another one may be opened in its place.
            this.#next();
          });
          return response;
        } catch (fault) {
          if (fault instanceof HelperNotOpened || fault instanceof HelperLost) this.#close(open);
          throw fault;
        }
      },
      free: () => {
        open.waiting -= 1;
        this.#closeLater(open);
      },
    };
  }

  /** Once it has been idle for a while, at once if it has sent as many requests as it may. */
  #closeLater(open: OpenHelper): void {
    if (open.waiting > 0 || open.reading > 0 || !this.#helpers.has(open)) return;
    if (open.sent >= this.#helperRequests) {
      this.#close(open);
      return;
    }
    open.cancelClose();
    open.cancelClose = this.#options.clock.schedule(limits.outboundHelperIdleMs, () => this.#close(open));
  }

  #close(open: OpenHelper): void {
    open.cancelClose();
    if (this.#helpers.delete(open)) open.helper.close();
  }

  async #queued(purpose: RequestPurpose, isPlain: boolean, signal: AbortSignal | null): Promise<Place> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Place>();
    const waiter: Waiter = { purpose, isPlain, take: resolve };
    const stop = (): void => {
      if (this.#queue.delete(waiter)) reject(signal?.reason);
    };
    this.#queue.add(waiter);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  /** Gives free places to the requests that have waited longest. */
  #next(): void {
    for (const waiter of this.#queue) {
      const place = this.#place(waiter.purpose, waiter.isPlain);
      if (place === null) continue;
      this.#queue.delete(waiter);
      waiter.take(place);
    }
  }
}

/** Whether a request can be sent by a helper: its body is not a stream. */
function isPlainRequest({ body }: RequestInit): boolean {
  return body == null || typeof body === 'string' || body instanceof Uint8Array;
}
