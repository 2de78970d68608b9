/** Errors on the wire: RFC 9457 problem documents with a stable `code` (H4). */
import type { Logger } from '../domain/log.ts';
import { EngineError, ERROR_TABLE } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly [member: string]: unknown;
}

/** The problem document of any thrown value; unexpected errors reveal no internals. */
export function toProblem(fault: unknown): Problem {
  if (!(fault instanceof EngineError)) {
    return problem('internal', 'An unexpected error; it has been logged');
  }
  const standard = problem(fault.code, fault.message);
  // The standard members come first for readability, and again last so that no detail can replace one.
  return { ...standard, ...fault.details, ...standard };
}

function problem(code: keyof typeof ERROR_TABLE, detail: string): Problem {
  const { status, title } = ERROR_TABLE[code];
  return { type: 'about:blank', title, status, code, detail };
}

/** The response for any thrown value. */
export function problemResponse(fault: unknown): Response {
  const body = toProblem(fault);
  return new Response(`${JSON.stringify(body)}\n`, {
    status: body.status,
    headers: {
      'content-type': 'application/problem+json; charset=utf-8',
      'cache-control': 'no-store',
      ...retryAfter(body.status, body['retry_after_ms']),
      // RFC 9110, 15.5.17: how long the file is.
      ...(body.status === 416 ? { 'content-range': `bytes */${String(body['size'])}` } : {}),
      ...(body.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    },
  });
}

/** The `Retry-After` header of a response with this status; none if it is neither 429 nor 503. Default: a second. */
export function retryAfter(status: number, waitMs: unknown = null): Record<string, string> {
  if (status !== 429 && status !== 503) return {};
  return { 'retry-after': String(typeof waitMs === 'number' ? Math.max(1, Math.ceil(waitMs / 1_000)) : 1) };
}

/** A caller chose the URL; its server is no part of the system. */
const URL_CODES: ReadonlySet<ErrorCode> = new Set(['url_failed', 'url_timeout']);

/** Logs internal errors only, not the caller's mistakes. */
export function logFault(
  log: Logger,
  fault: unknown,
  request: { readonly method: string; readonly path: string },
): void {
  if (fault instanceof EngineError && (fault.status < 500 || URL_CODES.has(fault.code))) return;
  log(fault instanceof EngineError ? 'request_failed' : 'internal_error', { ...request, fault });
}
