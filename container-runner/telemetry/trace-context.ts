/**
 * W3C Trace Context (O1): the header `traceparent` of a request, and the value of the variable `TRACEPARENT` of a program.
 * `tracestate` is ignored: programs and relics have no network, so no other vendor would read it.
 */

export interface SpanContext {
  /** 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits in lower case, not all zero. */
  readonly spanId: string;
  /** The known flags: 1 = sampled, 2 = the trace id is random. */
  readonly flags: number;
}

export const SAMPLED = 1;
const RANDOM = 2;

/** Version, trace id, parent id and flags; only versions after 00 may have more fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** @returns null for a missing or an invalid header; the request then counts as one without a trace */
export function parseTraceparent(header: string | null | undefined): SpanContext | null {
  const [, version, traceId, spanId, flags, rest] = TRACEPARENT.exec(header ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  if (version === '00' && rest !== undefined) return null;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & (SAMPLED | RANDOM) };
}

/** The header of version 00. */
export function formatTraceparent({ traceId, spanId, flags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}

export function isSampled({ flags }: SpanContext): boolean {
  return (flags & SAMPLED) !== 0;
}
