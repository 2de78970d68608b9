/**
 * Outbound HTTP of tools under the operator's rules (X2).
 *
 * Owns: which addresses and headers are allowed, following redirects, and the limits of bytes and time.
 * Does not own: the meaning of a response; connections (these belong to the given `fetch` and the egress).
 *
 * Invariants
 * 1. Every fetched URL was checked first, including each redirect. With an egress, a connection goes to a checked
 *    address.
 * 2. A response has at most `limits.fetchBytes` after decompression, and takes at most `limits.fetchTimeoutMs` from the
 *    call to its last byte.
 * 3. No header of the caller is sent to another origin than the intended one.
 * 4. The caller's signal ends everything, including the body.
 */
import { Deadlines } from '../../domain/deadlines.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { OutboundFetch } from '../../domain/ports/outbound.ts';
import { isAddress, checkAddress, checkUrl, withRemedy } from './address.ts';
import type { Egress } from './egress.ts';
import { OutboundError } from '../../domain/outbound-error.ts';
import { readSmall, smallBody } from './small-body.ts';
import type { OpenBody } from './small-body.ts';

export interface OutboundOptions {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** `host:port` entries that are allowed regardless of their address. */
  readonly allowHosts: readonly string[];
  readonly clock: Clock;
  /**
   * Sends requests if the platform's network may reach private addresses: names are resolved, all addresses are
   * checked, and the request goes to one of them. Hosts allowed by the operator are reached directly.
   */
  readonly egress?: Egress | undefined;
  readonly limits?: { readonly fetchBytes: number; readonly fetchRedirects: number; readonly fetchTimeoutMs: number };
}

/** Headers that would change the target, the framing of the message, or the apparent sender. */
const REFUSED_HEADERS =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|via|forwarded|proxy-.*|x-forwarded-.*|x-real-ip|cf-.*|sec-.*|true-client-ip|metadata|metadata-flavor|x-aws-ec2-.*)$/i;
/** Additional headers that a model may not set, because they identify a user. */
const IDENTITY_HEADERS = /^(authorization|cookie|set-cookie|x-api-key|x-auth-token)$/i;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const HEADER_VALUE = /^[\t\u0020-\u007e\u00a0-\u00ff]{0,4096}$/;
const USER_AGENT = 'cortex-edge';

/** Why a header must not be sent, or null. `by`: whether a model or a manifest's author set it. */
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

/** Whether the response's body was cut at the byte limit; known once the body has been read. */
export function wasCut(response: Response): boolean {
  return cut.has(response);
}

/**
 * A `fetch` that checks addresses and headers, follows redirects itself, and limits bytes and time. A longer body is
 * cut, and `wasCut` returns true for it, or reading it rejects. Rejects with `OutboundError` only.
 */
export function createOutboundFetch(options: OutboundOptions): OutboundFetch {
  const caps = options.limits ?? limits;
  const deadlines = new Deadlines(options.clock);

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
    const cancelTimer = deadlines.schedule(caps.fetchTimeoutMs, () => {
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
          `${short(url)} did not complete its response within ${seconds} s`,
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
        headers: withUserAgent(new Headers(init.headers)),
        body: init.body ?? null,
      };
      for (let hop = 0; hop <= caps.fetchRedirects; hop += 1) {
        const hopOptions = { ...options, timeoutMs: caps.fetchTimeoutMs, maxBytes: caps.fetchBytes + 1, hop };
        const { url, response } = await fetchOnce(current, { ...request, signal: abort.signal }, hopOptions);
        const target = redirectTarget(response);
        if (target === null) {
          const { whenTooLarge = 'cut' } = init;
          const cap = { url: url.href, maxBytes: caps.fetchBytes, whenTooLarge };
          if (init.readsAll === true) {
            const rest = await readSmall(response, caps.fetchBytes);
            if (rest !== null) return capped(response, cap, settle, (fault) => asOutbound(fault, url.href), rest);
            settle();
            return response;
          }
          const small = await smallBody(response, caps.fetchBytes);
          if (small !== null) {
            settle();
            return withUrl(new Response(small, partsOf(response)), url.href);
          }
          return capped(response, cap, settle, (fault) => asOutbound(fault, url.href));
        }
        void response.body?.cancel().catch(() => {});
        current = nextUrl(target, url);
        const refusal = (await init.redirectRefusal?.(current)) ?? null;
        if (refusal !== null) {
          throw new OutboundError(
            'redirect_refused',
            `a redirect to ${short(current)} is not allowed: ${refusal}`,
            false,
          );
        }
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
 * One request without redirects, to a checked URL. With an egress, the resolved addresses are checked as well.
 *
 * @throws OutboundError `address_refused`, and errors of the egress; errors of `fetch` unchanged
 */
export async function fetchOnce(
  written: string,
  request: OneRequest,
  options: Pick<OutboundOptions, 'fetch' | 'allowHosts' | 'egress'> & {
    readonly timeoutMs: number;
    readonly maxBytes: number;
    /** Number of redirects before this request. */
    readonly hop?: number;
  },
): Promise<{ readonly url: URL; readonly response: Response }> {
  const { egress, hop = 0, timeoutMs, maxBytes } = options;
  const refuse = (reason: string): OutboundError => {
    const what = hop === 0 ? short(written) : `a redirect to ${short(written)}`;
    return new OutboundError('address_refused', `${what} is not allowed: it ${reason}`, hop === 0);
  };
  const checked = checkUrl(written, options);
  if (!checked.ok) throw refuse(checked.reason);
  const { url, host } = checked;
  request.signal.throwIfAborted();
  // Hosts allowed by the operator need no check. Without an egress, the platform reaches no private address.
  if (checked.allowedByOperator || egress === undefined) {
    return { url, response: await options.fetch(url.href, { ...request, redirect: 'manual' }) };
  }
  try {
    const addresses = isAddress(host) ? [literalOf(host)] : await egress.resolve(host, request.signal);
    for (const address of addresses) {
      const reason = checkAddress(address);
      if (reason !== null) throw refuse(withRemedy(reason, url, options));
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

/** A URL's host as an address, without brackets. */
function literalOf(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

function redirectTarget(response: Response): string | null {
  if (![301, 302, 303, 307, 308].includes(response.status)) return null;
  return response.headers.get('location');
}

function nextUrl(location: string, from: URL): string {
  // An absolute location is checked as written, because resolving it would remove tabs.
  if (/^[a-z][a-z0-9+.-]*:/i.test(location) || !URL.canParse(location, from.href)) return location;
  return new URL(location, from).href;
}

/** A caller's own `User-Agent`, in any spelling of the name, replaces the default. */
function withUserAgent(headers: Headers): Headers {
  if (!headers.has('user-agent')) headers.set('user-agent', USER_AGENT);
  return headers;
}

/** The request for the next hop: GET after 303 and after a redirected POST; no private headers to another origin. */
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

interface Cap {
  readonly url: string;
  readonly maxBytes: number;
  readonly whenTooLarge: 'cut' | 'fail';
}

/** The response with a body that ends at the limit and releases timer and signal when it ends. */
function capped(
  response: Response,
  { url, maxBytes, whenTooLarge }: Cap,
  settle: () => void,
  asOutbound: (fault: unknown) => OutboundError,
  open: OpenBody | null = null,
): Response {
  const { status, statusText, headers } = partsOf(response);
  if (response.body === null || [204, 205, 304].includes(status)) {
    settle();
    return withUrl(new Response(null, { status, statusText, headers }), url);
  }
  const { reader, pieces } = open ?? { reader: response.body.getReader(), pieces: [] };
  const first = [...pieces];
  const next = async () => {
    const value = first.shift();
    return value === undefined ? await reader.read() : { done: false as const, value };
  };
  let left = maxBytes;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await next();
        if (done) {
          settle();
          controller.close();
          return;
        }
        if (value.byteLength > left) {
          settle();
          void reader.cancel().catch(() => {});
          if (whenTooLarge === 'fail') {
            const message = `the response of ${short(url)} has more than ${maxBytes} bytes`;
            controller.error(new OutboundError('response_too_large', message, false));
            return;
          }
          cut.add(result);
          if (left > 0) controller.enqueue(value.subarray(0, left));
          controller.close();
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

/** Status and headers of a response whose body is passed on. */
function partsOf(response: Response): { status: number; statusText: string; headers: Headers } {
  const { status, statusText } = response;
  const headers = new Headers(response.headers);
  // The body is already decompressed, and may end earlier.
  headers.delete('content-encoding');
  headers.delete('content-length');
  return { status, statusText, headers };
}

function withUrl(response: Response, url: string): Response {
  return Object.defineProperty(response, 'url', { value: url });
}

function short(url: string): string {
  const shown = url.length > limits.excerptChars ? `${url.slice(0, limits.excerptChars)}…` : url;
  return JSON.stringify(shown);
}
