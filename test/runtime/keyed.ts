/** Requests to the Worker with other settings than those of its bindings, such as API keys. */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { edge } from '../../src/durable/edge.ts';
import type { Env } from '../../src/durable/env.ts';

type Handler = NonNullable<typeof edge.fetch>;

async function handled(env: Env, path: string, init: RequestInit, ctx: ExecutionContext): Promise<Response> {
  const request = new Request(`http://127.0.0.1:8787${path}`, init) as Parameters<Handler>[0];
  const response = await edge.fetch?.(request, env, ctx);
  if (response === undefined) throw new Error('the Worker has no fetch');
  return response;
}

/** The answer may be a stream. */
export const fetchWith = (env: Env, path: string, init: RequestInit = {}): Promise<Response> =>
  handled(env, path, init, createExecutionContext());

/** Sends text as it is, and other bodies as JSON. @returns after everything that the Worker does behind its answer */
export async function ask(
  env: Env,
  key: string | null,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  const headers = new Headers(key === null ? {} : { authorization: `Bearer ${key}` });
  headers.set('content-type', 'application/json');
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const ctx = createExecutionContext();
  const response = await handled(env, path, { method, headers, ...(body === undefined ? {} : { body: text }) }, ctx);
  const bytes = await response.arrayBuffer();
  await waitOnExecutionContext(ctx);
  return new Response(bytes.byteLength === 0 ? null : bytes, response);
}
