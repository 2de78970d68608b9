/** One request to the collector, by the rules of OTLP/HTTP: which answers are final, and which are worth a repeat (O1). */
import { isJsonObject, parseJson } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { SendResult } from './outbox.ts';

export interface Collector {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface SendPorts {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly clock: Clock;
}

/** The specification allows a repeat after these alone. */
const REPEATABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const SECOND_MS = 1_000;

/** Never rejects. @param timeoutMs for the whole answer */
export async function sendTelemetry(
  { url, headers }: Collector,
  body: string,
  { fetch, clock, timeoutMs }: SendPorts & { readonly timeoutMs: number },
): Promise<SendResult> {
  const stop = new AbortController();
  const cancel = clock.schedule(timeoutMs, () => stop.abort());
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      redirect: 'manual',
      signal: stop.signal,
    });
    const answer = await beginningOf(response);
    if (response.ok) return partialSuccess(answer);
    const why = `the collector answered ${response.status}`;
    if (!REPEATABLE.has(response.status)) return { type: 'refused', why };
    return { type: 'failed', why, afterMs: retryAfterMs(response.headers.get('retry-after'), clock.now()) };
  } catch {
    // The reason may contain the address, which may contain a key.
    const why = stop.signal.aborted
      ? `the collector did not answer within ${timeoutMs / SECOND_MS} s`
      : 'the collector could not be reached';
    return { type: 'failed', why, afterMs: null };
  } finally {
    cancel();
  }
}

/** Reads no more of an answer than is needed. */
async function beginningOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  let text = '';
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    text += decoder.decode(read.value, { stream: true });
    if (text.length < limits.telemetryAnswerChars) continue;
    await reader.cancel().catch(() => undefined);
    break;
  }
  return text;
}

/** The collector may take a request and drop a part of it; a repeat must not be tried then. */
function partialSuccess(answer: string): SendResult {
  const parsed = parseJson(answer);
  const partial = isJsonObject(parsed) ? parsed['partialSuccess'] : undefined;
  if (!isJsonObject(partial)) return { type: 'sent' };
  const dropped = Number(partial['rejectedSpans'] ?? partial['rejectedDataPoints'] ?? 0);
  if (!(dropped > 0)) return { type: 'sent' };
  return { type: 'refused', why: `the collector dropped ${dropped} of the items of a request` };
}

/** `Retry-After` as seconds or as a date; null if there is none. */
function retryAfterMs(value: string | null, now: number): number | null {
  if (value === null) return null;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * SECOND_MS;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
