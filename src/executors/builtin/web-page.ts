/** Shared by `web_fetch` and `web_extract`: requests a page and checks the response. */
import type { ActionOutcome } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ActionContext } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { failureOf, isOverload, wrongParameter } from '../failure.ts';
import { refuseHeader } from '../outbound/outbound.ts';
import { bodyRead } from '../outbound/small-body.ts';

/** Maximum length of the returned text; `max_chars` overrides it. */
const DEFAULT_MAX_CHARS = 50_000;

export type PageResult = { readonly ok: true; readonly response: Response } | Extract<ActionOutcome, { ok: false }>;

/** Fetches `url` with the model's parameters. A status of 400 or above is a failure that includes the response. */
export async function requestPage(
  parameters: JsonObject,
  method: 'GET' | 'HEAD',
  accept: string,
  { fetch, signal }: ActionContext,
): Promise<PageResult> {
  const { url, headers } = parameters;
  if (typeof url !== 'string') return wrongParameter('url', 'an HTTP(S) URL', url);
  const sent: Record<string, string> = { accept };
  if (headers !== undefined && headers !== null) {
    if (!isJsonObject(headers)) return wrongParameter('headers', 'an object of header names and values', headers);
    for (const [name, value] of Object.entries(headers)) {
      if (typeof value !== 'string') return wrongParameter(`headers.${name}`, 'text', value);
      const reason = refuseHeader(name, value, 'model');
      if (reason !== null) return failure('header_refused', reason, { beforeDispatch: true });
      sent[name.toLowerCase()] = value;
    }
  }
  let response: Response;
  try {
    response = await fetch(url, { method, headers: sent, signal });
  } catch (fault) {
    return failureOf(fault, signal, 'fetch_failed');
  }
  if (response.status < 400) return { ok: true, response };
  return await httpFailure(response, method, url);
}

/** A status of 400 or above; retryable if the server reports an error of its own or overload. */
export async function httpFailure(
  response: Response,
  method: string,
  url: string,
): Promise<Extract<ActionOutcome, { ok: false }>> {
  const { status, statusText } = response;
  const excerpt = await startOf(response);
  const retryAfterMs = Math.min(Number(response.headers.get('retry-after')) * 1_000, limits.retryAfterMaxMs);
  const detail = excerpt === '' ? '' : `: ${excerpt}`;
  return failure(
    'http_error',
    `${method} ${url} answered ${status}${statusText === '' ? '' : ` ${statusText}`}${detail}`,
    {
      retryable: status === 408 || status === 425 || status === 429 || status >= 500,
      ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
      ...(isOverload(status) ? { overloaded: true } : {}),
    },
  );
}

async function startOf(response: Response): Promise<string> {
  const type = response.headers.get('content-type') ?? '';
  if (!/json|text\/plain/i.test(type)) {
    void response.body?.cancel().catch(() => {});
    return '';
  }
  try {
    return (await readText(response, 300)).text.trim();
  } catch {
    return '';
  }
}

export function maxCharsOf(parameters: JsonObject): number {
  const { max_chars: maxChars } = parameters;
  return typeof maxChars === 'number' && maxChars >= 1
    ? Math.min(Math.floor(maxChars), limits.fetchBytes)
    : DEFAULT_MAX_CHARS;
}

/** `text/html; charset=x` -> `text/html`. */
export function mediaTypeOf(response: Response): string {
  return (response.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

interface ReadText {
  readonly text: string;
  readonly truncated: boolean;
}

/** Reads at most `maxChars` characters in the response's character set and cancels the rest. */
export async function readText(response: Response, maxChars: number): Promise<ReadText> {
  const whole = bodyRead(response);
  if (typeof whole === 'string') return shortened(whole, maxChars);
  const type = response.headers.get('content-type') ?? '';
  if (whole !== null) return shortened((CHARSET.test(type) ? decoderFor(type) : UTF_8).decode(whole), maxChars);
  if (response.body === null) return { text: '', truncated: false };
  const decoder = decoderFor(type);
  const reader = response.body.getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    text += done ? decoder.decode() : decoder.decode(value, { stream: true });
    if (text.length > maxChars) {
      if (!done) void reader.cancel().catch(() => {});
      return shortened(text, maxChars);
    }
    if (done) return { text, truncated: false };
  }
}

function shortened(text: string, maxChars: number): ReadText {
  if (text.length <= maxChars) return { text, truncated: false };
  return { text: whole(text.slice(0, maxChars)), truncated: true };
}

const CHARSET = /charset\s*=\s*"?([^\s;"]+)/i;
/** For whole texts only: it keeps no state between them. */
const UTF_8 = new TextDecoder();

function decoderFor(contentType: string) {
  const label = CHARSET.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}

/** Never ends in half a surrogate pair. */
function whole(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
}
