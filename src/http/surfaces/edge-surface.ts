/**
 * Routes of other protocols in the Worker (E1 to E3): translate the request, find its session, and send the command to the
 * session's object.
 *
 * Invariants:
 *  1. A conversation that a client names has an id derived from namespace, user, protocol, agent and name. The id
 *     authorises nothing: the object checks owner and user as always (T5).
 *  2. Every error has the protocol's own form. A stream that breaks off gets a last frame that says so.
 */
import { Hono } from 'hono';
import { EngineError, ERROR_TABLE } from '../../domain/errors.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { Json } from '../../domain/json.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { readChat, readStop, readStream } from '../../surfaces/ai-sdk/index.ts';
import type { Surface, SurfaceInput, SurfaceRequest } from '../../surfaces/surface.ts';
import type { Caller } from '../access.ts';
import { readJson } from '../body.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { operation } from '../openapi/describe.ts';
import { findOperation, OPERATIONS } from '../operations.ts';
import type { Operation } from '../operations.ts';
import { retryAfter } from '../problem.ts';
import { surfaceBody, surfaceFrame } from '../responses/surfaces.ts';
import { requireAgentOf } from '../routes/sessions.ts';
import { SURFACE_PATH } from './session-surface.ts';
import type { SurfaceCall } from './session-surface.ts';
import { SURFACES } from './surfaces.ts';

interface SurfaceRoutesOptions {
  readonly gateway: Gateway;
  readonly now: () => number;
  /** The session id for a text; the same text always gives the same id. */
  readonly sessionIdOf: (start: string) => Promise<string>;
}

export function surfaceRoutes(options: SurfaceRoutesOptions): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  const events = { body: surfaceBody, response: surfaceFrame, media: 'events' } as const;
  operation(app, 'POST /ai/:name/chat', events, async (c) => {
    checkAgent(c.get('principal'), c.req.param('name'));
    const body = (await readJson(c.req.raw, limits.messageBodyBytes)) as Json;
    return await answer(options, SURFACES['ai-sdk'], c.req.raw, c.get('principal'), readChat(input(c.req, body)));
  });
  operation(
    app,
    'GET /ai/:name/chat/:chat/stream',
    { response: surfaceFrame, media: 'events', further: [204] },
    async (c) => {
      checkAgent(c.get('principal'), c.req.param('name'));
      return await answer(options, SURFACES['ai-sdk'], c.req.raw, c.get('principal'), readStream(input(c.req, null)));
    },
  );
  operation(app, 'POST /ai/:name/chat/:chat/stop', { status: 204 }, async (c) => {
    checkAgent(c.get('principal'), c.req.param('name'));
    return await answer(options, SURFACES['ai-sdk'], c.req.raw, c.get('principal'), readStop(input(c.req, null)));
  });
  return app;
}

/** @throws EngineError `forbidden` for a token of other agents, before anything is read */
function checkAgent({ token }: Caller, agent: string): void {
  if (token?.type === 'user') requireAgentOf(token, agent);
}

function input(request: { param(): Record<string, string> }, body: Json): SurfaceInput {
  return { body, params: request.param() };
}

async function answer(
  { gateway, now, sessionIdOf }: SurfaceRoutesOptions,
  surface: Surface,
  request: Request,
  caller: Caller,
  { agent, thread, userId, command }: SurfaceRequest,
): Promise<Response> {
  const { owner, token } = caller;
  await gateway.requireAgent(agent, owner);
  const user = token?.type === 'user' ? token.userId : userId;
  const isId = /^ses_[0-9a-f]{32}$/.test(thread.name);
  const start = JSON.stringify(['conversation', owner, user, surface.name, agent, thread.name]);
  const id = isId ? await gateway.requireId(thread.name) : await sessionIdOf(start);
  const record: SessionRecord = {
    session_id: id,
    agent,
    owner,
    user_id: user,
    kind: 'chat',
    metadata: {},
    created_at: now(),
  };
  const open = isId ? null : record;
  const call: SurfaceCall = { surface: surface.name, agent, open, command };
  const headers = new Headers(request.headers);
  headers.delete('content-length');
  const forwarded = new Request(request.url, { method: 'POST', headers, body: JSON.stringify(call) });
  const response = await gateway.forward(id, SURFACE_PATH, forwarded, caller);
  if (response.ok) return response.status === 204 ? response : guarded(response, surface);
  // A conversation of which nothing is known yet has nothing to follow or to stop.
  if (response.status === 404 && open !== null && command.type !== 'run') return new Response(null, { status: 204 });
  const { code, detail, ...details } = (await response.json()) as { code: ErrorCode; detail: string };
  throw new EngineError(Object.hasOwn(ERROR_TABLE, code) ? code : 'internal', detail, details);
}

const encoder = new TextEncoder();

/** A stream whose object is lost ends with the protocol's error: some clients take a bare end for a success. */
function guarded(response: Response, surface: Surface): Response {
  const reader = response.body?.getReader();
  if (reader === undefined) return response;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value as Uint8Array);
      } catch {
        controller.enqueue(encoder.encode(surface.lost));
        controller.close();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

/** The response for an error of a route of another protocol; null for a route of our own. */
export function surfaceProblem(request: { method: string; path: string }, fault: unknown): Response | null {
  const name = findOperation(request.method, request.path);
  const { surface }: Operation = name === null ? { summary: '' } : OPERATIONS[name];
  if (surface === undefined) return null;
  const known =
    fault instanceof EngineError ? fault : new EngineError('internal', 'An unexpected error; it has been logged');
  const { body, contentType } = SURFACES[surface].error(known);
  return new Response(body, {
    status: known.status,
    headers: {
      'content-type': contentType,
      'cache-control': 'no-store',
      ...retryAfter(known.status, known.details['retry_after_ms']),
    },
  });
}
