/**
 * Tools that are an HTTP endpoint (M3, X2): sends parameters in place of `{name}` in URL and headers, and the others as
 * query or JSON body; returns JSON or text.
 */
import type { ActionOutcome } from '../../domain/action.ts';
import { parseJson, type Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ToolImplementation } from '../../domain/manifests/tool.ts';
import { encoded, RequestTemplate, textOf } from '../../domain/request-template.ts';
import { httpFailure, readText } from '../builtin/web-page.ts';
import { TRACEPARENT } from '../../domain/trace.ts';
import type { ActionCall, ActionContext } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { failureOf } from '../failure.ts';
import { wasCut } from './outbound.ts';

type HttpImplementation = Extract<ToolImplementation, { type: 'http' }>;

export async function callEndpoint(
  implementation: HttpImplementation,
  { parameters, trace }: Pick<ActionCall, 'parameters' | 'trace'>,
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
  const template = new RequestTemplate(parameters);
  const target = template.url(implementation.url);
  if (!target.ok) return failure('invalid_parameters', target.reason, { beforeDispatch: true });
  const headers: Record<string, string> = {
    accept: 'application/json, text/*;q=0.8',
    ...(trace === undefined ? {} : { [TRACEPARENT]: trace }),
    ...(inQuery ? {} : { 'content-type': 'application/json' }),
  };
  for (const [name, written] of Object.entries(implementation.headers)) {
    const value = template.header(name, written);
    if (!value.ok) return failure('invalid_parameters', value.reason, { beforeDispatch: true });
    // Header names are case-insensitive: a manifest's `Accept` replaces the default.
    if (value.text !== null) headers[name.toLowerCase()] = value.text;
  }
  const url = inQuery ? withQuery(target.text, template.rest) : target.text;
  try {
    const response = await fetch(url, {
      method,
      headers,
      signal,
      readsAll: true,
      ...(inQuery ? {} : { body: JSON.stringify(Object.fromEntries(template.rest)) }),
    });
    if (response.status >= 400) return await httpFailure(response, method, target.text);
    const { text } = await readText(response, limits.fetchBytes);
    if (wasCut(response)) {
      return failure('response_too_large', `${target.text} returned more than ${limits.fetchBytes} bytes`);
    }
    // Without a body, the status is the result: a response cannot refer to null.
    const isEmpty = text.trim() === '';
    return { ok: true, output: isEmpty ? { status: response.status } : jsonOr(text) };
  } catch (fault) {
    return failureOf(fault, signal, 'fetch_failed');
  }
}

/** A secret placeholder that was not replaced; the request is not sent then. */
function missingPlaceholder({ url, headers }: HttpImplementation): string | null {
  const [, name] = /\$\{(TOOL_\w+)\}/.exec([url, ...Object.values(headers)].join(' ')) ?? [];
  return name === undefined ? null : `${name} is not set`;
}

/** An absolute URL without a query that the parser of URLs would not change. */
const PLAIN_URL = /^https?:\/\/[a-z0-9.-]+(?::\d+)?(?:\/[\w~-][\w~.-]*)+$/;

function withQuery(url: string, parameters: readonly (readonly [string, Json])[]): string {
  const pairs = parameters.flatMap(([name, value]) => {
    const items = (Array.isArray(value) ? value : [value]).filter((item) => item !== null);
    return items.map((item): [string, string] => [name, textOf(item)]);
  });
  // Objects of the platform for the URL and its query would cost more than the text.
  if (PLAIN_URL.test(url)) {
    const query = pairs.map(([name, text]) => `${inForm(name)}=${inForm(text)}`).join('&');
    return query === '' ? url : `${url}?${query}`;
  }
  const full = new URL(url);
  for (const [name, text] of pairs) full.searchParams.append(name, text);
  return full.href;
}

/** As `URLSearchParams` writes it. */
function inForm(text: string): string {
  return encoded(text).replace(/%20|[!'()~]/g, (found) =>
    found === '%20' ? '+' : `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function jsonOr(text: string): Json {
  const value = parseJson(text);
  return value === undefined ? text : value;
}
