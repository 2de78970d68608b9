/**
 * The requests of one connection to an MCP server, under the operator's rules for outbound requests (X2).
 *
 * Every request is checked like those of tools: its address, and that of every redirect, which the client follows within
 * the origin only. All answers of a connection together have a limit of bytes.
 */
import { messageOf } from '../../domain/errors.ts';
import { parseObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { OutboundError } from '../../domain/outbound-error.ts';
import { fetchOnce } from '../outbound/outbound.ts';
import type { OutboundOptions } from '../outbound/outbound.ts';

/** How MCP servers are reached from here. */
export type McpNetwork = Pick<OutboundOptions, 'fetch' | 'allowHosts' | 'egress' | 'clock'>;

/** The requests of one connection. */
export interface ConnectionHttp {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** Why the latest request of a call failed, as the library's own error may not say it; null if none did. */
  readonly fault: () => OutboundError | null;
  /** The latest answer to a call with a status of 400 or above; null if there was none. */
  readonly refusal: () => Refusal | null;
  /** A request begins: its answers may have this many bytes in total, and earlier failures are forgotten. */
  readonly begin: (bytes: number) => void;
}

export interface Refusal {
  readonly status: number;
  /** Whether the call itself was refused; else its answer, after the server had accepted the call. */
  readonly isOfRequest: boolean;
  /** How long the server asks to wait; 0: it does not say. */
  readonly retryAfterMs: number;
}

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

export function connectionHttp(network: McpNetwork): ConnectionHttp {
  let most: number = limits.mcpResponseBytes;
  let left = most;
  let latest: OutboundError | null = null;
  let refusal: Refusal | null = null;

  const failed = (fault: unknown, url: string, part: PartOfCall | null): OutboundError => {
    const outbound =
      fault instanceof OutboundError
        ? fault
        : new OutboundError('fetch_failed', `${url} could not be reached: ${messageOf(fault)}`, false, fault);
    // Of a resumed answer, only the request for the rest was not sent.
    if (part === 'request') latest = outbound;
    if (part === 'answer') latest = new OutboundError(outbound.code, outbound.message, false, outbound);
    return outbound;
  };

  const bounded = (response: Response, url: string, part: PartOfCall | null): Response => {
    const { status, statusText } = response;
    const headers = new Headers(response.headers);
    headers.delete('content-encoding');
    headers.delete('content-length');
    if (response.body === null || WITHOUT_BODY.has(status)) return new Response(null, { status, statusText, headers });
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          left -= value.byteLength;
          if (left >= 0) return controller.enqueue(value);
          void reader.cancel().catch(() => {});
          controller.error(failed(new OutboundError('response_too_large', tooLarge(url, most), false), url, part));
        } catch (fault) {
          controller.error(failed(fault, url, part));
        }
      },
      cancel: (reason) => reader.cancel(reason),
    });
    return new Response(body, { status, statusText, headers });
  };

  return {
    fault: () => latest,
    refusal: () => refusal,
    begin: (bytes) => {
      most = bytes;
      left = bytes;
      latest = null;
      refusal = null;
    },
    fetch: async (input, init = {}) => {
      const url = String(input);
      const signal = init.signal ?? new AbortController().signal;
      const request = {
        method: (init.method ?? 'GET').toUpperCase(),
        headers: new Headers(init.headers),
        body: typeof init.body === 'string' ? init.body : null,
        signal,
      };
      const part = partOfCall(request);
      const caps = { timeoutMs: limits.maxActionTimeoutMs, maxBytes: Math.max(1, left) };
      try {
        if (left < 0) throw new OutboundError('response_too_large', tooLarge(url, most), false);
        const { response } = await fetchOnce(url, request, { ...network, ...caps });
        if (part !== null && response.status >= 400) refusal = refusalOf(response, part);
        return bounded(response, url, part);
      } catch (fault) {
        if (signal.aborted) throw fault;
        throw failed(fault, url, part);
      }
    },
  };
}

/** `answer`: a resumed stream, which brings the answer to a call that the server has accepted. */
type PartOfCall = 'request' | 'answer';

/**
 * Null for the stream of announcements of a server of 2025-11-25, which most servers refuse, for the end of its session,
 * and for replies to its questions: they say nothing about whether the call was accepted.
 */
function partOfCall({
  method,
  headers,
  body,
}: {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
}): PartOfCall | null {
  if (headers.has('last-event-id')) return 'answer';
  if (method !== 'POST') return null;
  const sent = parseObject(body ?? '')?.['method'];
  return sent === undefined || sent === 'notifications/cancelled' ? null : 'request';
}

function refusalOf({ status, headers }: Response, part: PartOfCall): Refusal {
  const retryAfterMs = Number(headers.get('retry-after')) * 1_000;
  return {
    status,
    isOfRequest: part === 'request',
    retryAfterMs: retryAfterMs > 0 ? Math.min(retryAfterMs, limits.retryAfterMaxMs) : 0,
  };
}

function tooLarge(url: string, bytes: number): string {
  return `${url} answered with more than ${bytes} bytes`;
}
