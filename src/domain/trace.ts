/** The identity of a span, as W3C Trace Context passes it between systems in the header `traceparent` (O1). */

/** The header, in lower case. */
export const TRACEPARENT = 'traceparent';

/** A span of this or another system, as the parent of further ones. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all zero. */
  readonly spanId: string;
  /** Whether the caller records the trace. */
  readonly isSampled: boolean;
}

/** Version 00 has exactly these fields; later versions may append further ones after another hyphen. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;

/** @returns null for text that is not a valid header value: the specification says to ignore it then */
export function readTraceparent(text: string | null | undefined): TraceParent | null {
  const [, version, traceId = '', spanId = '', flags = '', more] = FORM.exec(text?.trim() ?? '') ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

/** The value of the header for what this span calls. */
export function writeTraceparent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}
