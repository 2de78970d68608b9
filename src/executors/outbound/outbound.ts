/**
 * Outbound HTTP of tools under the operator's rules (X2).
 *
 * Owns: which addresses and headers go out, following redirects, the byte and time caps.
 * Does not own: what a response means; connections (the given `fetch` and the egress do).
 *
 * Invariants
 * 1. Every URL that is fetched was judged first, each hop of a redirect anew; with an egress, a connection goes to an
 *    address that was judged.
 * 2. No response gives more than `limits.fetchBytes` after decompression, nor lives longer than
 *    `limits.fetchTimeoutMs` from the call to its last byte.
 * 3. No header of the caller reaches another origin than the one it was meant for.
 * 4. The caller's signal ends everything, the body included.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock, OutboundFetch } from '../../domain/ports.ts';
import { isAddress, judgeAddress, judgeUrl } from './address.ts';
import type { Egress } from './egress.ts';
import { OutboundError } from './outbound-error.ts';

export interface OutboundOptions {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** `host:port` entries that are let through whatever their address. */
  readonly allowHosts: readonly string[];
  readonly clock: Clock;
  /**
   * Sends requests where the platform's own network cannot be trusted to refuse private addresses: names are resolved,
   * every address is judged, and the request goes to one of these. What the operator lets through goes directly.
   */
  readonly egress?: Egress | undefined;
  readonly limits?: { readonly fetchBytes: number; readonly fetchRedirects: number; readonly fetchTimeoutMs: number };
}

/** Headers that would change who is asked, how the message is framed, or who seems to ask. */
const REFUSED_HEADERS =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|via|forwarded|proxy-.*|x-forwarded-.*|x-real-ip|cf-.*|sec-.*|true-client-ip|metadata|metadata-flavor|x-aws-ec2-.*)$/i;
/** Further ones that a model may not set: they would carry somebody's identity. */
const IDENTITY_HEADERS = /^(authorization|cookie|set-cookie|x-api-key|x-auth-token)$/i;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const HEADER_VALUE = /^[\t\u0020-\u007e\u00a0-\u00ff]{0,4096}$/;
const USER_AGENT = 'cortex-edge';

/** Why a header may not be sent, or null. `by`: whether a model or a manifest's author set it. */
export function refuseHeader(name: string, value: string, by: 'model' | 'author'): string | null {
  const shown = JSON.stringify(name.slice(0, limits.excerptChars));
  if (!HEADER_NAME.test(name)) return `${shown} is not a header name`;
  if (!HEADER_VALUE.test(value))
    return `the header ${shown} has a line break, a control character, or too long a value`;
  if (REFUSED_HEADERS.test(name)) return `the header ${shown} may not be set`;
  if (by === 'model' && IDENTITY_HEADERS.test(name)) return `the header ${shown} may not be set by a model`;
  return null;
}

const cut = new WeakSet<Response>();

/** Whether the response's body was ended at the byte cap; known once the body has been read. */
export function wasCut(response: Response): boolean {
  return cut.has(response);
}

/**
 * A `fetch` that judges addresses and headers, follows redirects itself and caps bytes and time. A
 * body past the cap ends there, and `wasCut` says so. Rejects with `OutboundError` only.
 */
export function createOutboundFetch(options: OutboundOptions): OutboundFetch {
  const caps = options.limits ?? limits;

  return async (written, init) => {
    for (const [name, value] of Object.entries(init.headers ?? {})) {
      const reason = refuseHeader(name, value, 'author');
      if (reason !== null) throw new OutboundError('header_refused', reason, true);
    }
    const abort = new AbortController();
    const stop = (): void => abort.abort(init.signal.reason);
    if (init.signal.aborted) stop();
    init.signal.addEventListener('abort', stop, { once: true });
    let timedOut = false;
    const cancelTimer = options.clock.schedule(caps.fetchTimeoutMs, () => {
      timedOut = true;
      abort.abort(new DOMException('the time limit was reached', 'TimeoutError'));
    });
    const settle = (): void => {
      cancelTimer();
      init.signal.removeEventListener('abort', stop);
    };
    const asOutbound = (fault: unknown, url: string): OutboundError => {
      if (fault instanceof OutboundError) return fault;
      if (timedOut) {
        const seconds = caps.fetchTimeoutMs / 1_000;
        return new OutboundError(
          'fetch_timeout',
          `${short(url)} did not answer in full within ${seconds} s`,
          false,
          fault,
        );
      }
      const message = fault instanceof Error ? fault.message : String(fault);
      return new OutboundError('fetch_failed', `${short(url)} could not be fetched: ${message}`, false, fault);
    };

    let current = written;
    try {
      let request: { method: string; headers: Headers; body: string | null } = {
        method: (init.method ?? 'GET').toUpperCase(),
        headers: new Headers({ 'user-agent': USER_AGENT, ...init.headers }),
        body: init.body ?? null,
      };
      for (let hop = 0; hop <= caps.fetchRedirects; hop += 1) {
        const hopOptions = { ...options, timeoutMs: caps.fetchTimeoutMs, maxBytes: caps.fetchBytes + 1, hop };
        const { url, response } = await fetchOnce(current, { ...request, signal: abort.signal }, hopOptions);
        const target = redirectTarget(response);
        if (target === null)
          return capped(response, url.href, caps.fetchBytes, settle, (fault) => asOutbound(fault, url.href));
        void response.body?.cancel().catch(() => {});
        current = nextUrl(target, url);
        request = redirected(request, response.status, url, current);
      }
      throw new OutboundError(
        'too_many_redirects',
        `${short(written)} redirects more than ${caps.fetchRedirects} times`,
        false,
      );
    } catch (fault) {
      settle();
      throw asOutbound(fault, current);
    }
  };
}

interface OneRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
  readonly signal: AbortSignal;
}

/**
 * One request without redirects, to an address that was judged; what a name leads to is judged where there is an egress.
 *
 * @throws OutboundError `address_refused`, and what the egress says; faults of `fetch` as they are
 */
export async function fetchOnce(
  written: string,
  request: OneRequest,
  options: Pick<OutboundOptions, 'fetch' | 'allowHosts' | 'egress'> & {
    readonly timeoutMs: number;
    readonly maxBytes: number;
    /** Redirects before this one. */
    readonly hop?: number;
  },
): Promise<{ readonly url: URL; readonly response: Response }> {
  const { egress, hop = 0, timeoutMs, maxBytes } = options;
  const refuse = (reason: string): OutboundError => {
    const what = hop === 0 ? short(written) : `a redirect to ${short(written)}`;
    return new OutboundError('address_refused', `${what} is refused: it ${reason}`, hop === 0);
  };
  const judged = judgeUrl(written, options);
  if (!judged.ok) throw refuse(judged.reason);
  const { url, host } = judged;
  request.signal.throwIfAborted();
  // what the operator lets through needs no judgement; elsewhere the platform itself reaches no private address
  if (judged.allowedByOperator || egress === undefined) {
    return { url, response: await options.fetch(url.href, { ...request, redirect: 'manual' }) };
  }
  try {
    const addresses = isAddress(host) ? [literalOf(host)] : await egress.resolve(host, request.signal);
    for (const address of addresses) {
      const reason = judgeAddress(address);
      if (reason !== null) throw refuse(reason);
    }
    const response = await egress.send({ ...request, url, timeoutMs, maxBytes }, addresses);
    return { url, response };
  } catch (fault) {
    if (!(fault instanceof OutboundError) || fault.code === 'address_refused') throw fault;
    const beforeDispatch = fault.beforeDispatch && hop === 0;
    throw new OutboundError(
      fault.code,
      `${short(written)} could not be fetched: ${fault.message}`,
      beforeDispatch,
      fault,
    );
  }
}

/** An address as a URL has it, without its brackets. */
function literalOf(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

function redirectTarget(response: Response): string | null {
  if (![301, 302, 303, 307, 308].includes(response.status)) return null;
  return response.headers.get('location');
}

function nextUrl(location: string, from: URL): string {
  // an absolute location is checked as written, because resolving would remove its tabs
  if (/^[a-z][a-z0-9+.-]*:/i.test(location) || !URL.canParse(location, from.href)) return location;
  return new URL(location, from).href;
}

/** What the next hop is asked: GET after 303 and after a redirected POST, and nothing private elsewhere. */
function redirected(
  request: { method: string; headers: Headers; body: string | null },
  status: number,
  from: URL,
  to: string,
): { method: string; headers: Headers; body: string | null } {
  const headers = new Headers(request.headers);
  const becomesGet = (status === 303 && request.method !== 'HEAD') || (status <= 302 && request.method === 'POST');
  if (becomesGet) headers.delete('content-type');
  if (!URL.canParse(to) || new URL(to).origin !== from.origin) {
    const kept = new Headers();
    for (const name of ['user-agent', 'accept', 'accept-language', 'content-type']) {
      const value = headers.get(name);
      if (value !== null) kept.set(name, value);
    }
    return becomesGet ? { method: 'GET', headers: kept, body: null } : { ...request, headers: kept };
  }
  return becomesGet ? { method: 'GET', headers, body: null } : { ...request, headers };
}

/** The response with a body that ends at the cap and lets go of timer and signal when it is done. */
function capped(
  response: Response,
  url: string,
  maxBytes: number,
  settle: () => void,
  asOutbound: (fault: unknown) => OutboundError,
): Response {
  const { status, statusText } = response;
  const headers = new Headers(response.headers);
  // the body is already decompressed, and may end earlier
  headers.delete('content-encoding');
  headers.delete('content-length');
  if (response.body === null || [204, 205, 304].includes(status)) {
    settle();
    return withUrl(new Response(null, { status, statusText, headers }), url);
  }
  const reader = response.body.getReader();
  let left = maxBytes;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          settle();
          controller.close();
          return;
        }
        if (value.byteLength > left) {
          cut.add(result);
          if (left > 0) controller.enqueue(value.subarray(0, left));
          settle();
          controller.close();
          void reader.cancel().catch(() => {});
          return;
        }
        left -= value.byteLength;
        controller.enqueue(value);
      } catch (fault) {
        settle();
        controller.error(asOutbound(fault));
      }
    },
    async cancel(reason) {
      settle();
      await reader.cancel(reason);
    },
  });
  const result = withUrl(new Response(body, { status, statusText, headers }), url);
  return result;
}

function withUrl(response: Response, url: string): Response {
  return Object.defineProperty(response, 'url', { value: url });
}

function short(url: string): string {
  const shown = url.length > limits.excerptChars ? `${url.slice(0, limits.excerptChars)}…` : url;
  return JSON.stringify(shown);
}
