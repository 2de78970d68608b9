/** Tools that are an HTTP endpoint: sends parameters as query or JSON body, returns JSON or text (M3, X2). */
import type { ActionOutcome } from '../../domain/action.ts';
import { parseJson, type Json, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ToolImplementation } from '../../domain/manifest.ts';
import { httpFailure, readText } from '../builtin/web-page.ts';
import type { ActionContext } from '../executor.ts';
import { failure, failureOf } from '../failure.ts';
import { wasCut } from './outbound.ts';

export async function callEndpoint(
  implementation: Extract<ToolImplementation, { type: 'http' }>,
  parameters: JsonObject,
  { fetch, signal }: ActionContext,
): Promise<ActionOutcome> {
  const { method } = implementation;
  const { missingSecret = missingPlaceholder(implementation) } = implementation;
  if (missingSecret !== null) {
    return failure('missing_secret', `The tool needs a secret that is not available: ${missingSecret}`, {
      beforeDispatch: true,
    });
  }
  const inQuery = method === 'GET' || method === 'HEAD' || method === 'DELETE';
  const url = inQuery ? withQuery(implementation.url, parameters) : implementation.url;
  const headers: Record<string, string> = { accept: 'application/json, text/*;q=0.8', ...implementation.headers };
  if (!inQuery) headers['content-type'] = 'application/json';
  try {
    const response = await fetch(url, {
      method,
      headers,
      signal,
      ...(inQuery ? {} : { body: JSON.stringify(parameters) }),
    });
    if (response.status >= 400) return await httpFailure(response, method, implementation.url);
    const { text } = await readText(response, limits.fetchBytes);
    if (wasCut(response)) {
      return failure('response_too_large', `${implementation.url} returned more than ${limits.fetchBytes} bytes`);
    }
    return { ok: true, output: jsonOr(text) };
  } catch (fault) {
    return failureOf(fault, signal, 'fetch_failed');
  }
}

/** A secret placeholder that was not replaced; the request is not sent then. */
function missingPlaceholder({ url, headers }: Extract<ToolImplementation, { type: 'http' }>): string | null {
  const [, name] = /\$\{(TOOL_\w+)\}/.exec([url, ...Object.values(headers)].join(' ')) ?? [];
  return name === undefined ? null : `${name} is not set`;
}

function withQuery(url: string, parameters: JsonObject): string {
  const full = new URL(url);
  for (const [name, value] of Object.entries(parameters)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== null) full.searchParams.append(name, typeof item === 'string' ? item : JSON.stringify(item));
    }
  }
  return full.href;
}

function jsonOr(text: string): Json {
  if (text.trim() === '') return null;
  const value = parseJson(text);
  return value === undefined ? text : value;
}
