/** Session routes of the Worker: it creates sessions, issues their tokens, and forwards everything else (H1, H5). */
import { bytesToHex } from '@noble/hashes/utils.js';
import { Hono } from 'hono';
import type { Context } from 'hono';
import type * as z from 'zod';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { admitHistory, requireSeededCount } from '../../policies/seeded-history.ts';
import { readJson } from '../body.ts';
import { forwardBody } from '../forward-body.ts';
import { untilInvalid } from '../history-body.ts';
import { creationKey, forkKey } from '../headers.ts';
import { operation, readHeader } from '../openapi/describe.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { tokensQuery } from '../query.ts';
import * as answers from '../responses/sessions.ts';
import { createSessionBody, forkBody, tokenBody, userTokenBody, validate } from '../schemas.ts';
import { FORK_PATH, INCARNATION_PATH } from '../session-env.ts';
import type { ForkOrigin, ForkRequest } from '../session-env.ts';
import type { BodyPlace, LargeBodies } from '../large-bodies.ts';
import type { Token, Tokens } from '../tokens.ts';

interface SessionRoutesOptions {
  readonly gateway: Gateway;
  readonly tokens: Tokens;
  readonly now: () => number;
  /** The session id for a text; the same text always gives the same id. */
  readonly sessionIdOf: (start: string) => Promise<string>;
  /** Large bodies of the isolate. Default: they are not counted. */
  readonly bodies?: LargeBodies;
}

/** A namespace creates one session with a large body at a time. */
const NEW_SESSION = 'new';

export function sessionsRoutes({ gateway, tokens, now, sessionIdOf, bodies }: SessionRoutesOptions): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  const create = async (c: Context<EdgeEnv, '/agent/:name/session'>, place: BodyPlace | null): Promise<Response> => {
    const name = c.req.param('name');
    const principal = c.get('principal');
    const { token } = principal;
    if (token !== null) requireAgentOf(token, name);
    const { redact = [] } = (await gateway.requireAgent(name, principal.owner)).agent;
    // What only an API key may send makes a body large.
    const maxBytes = token === null ? limits.createBodyBytes : limits.bodyBytes;
    const raw = await readJson(c.req.raw, maxBytes, async (bytes) => await place?.received(bytes));
    const given = isJsonObject(raw) ? raw['history'] : undefined;
    // It can contain anything, also what the agent never said.
    if (given !== undefined && token !== null) throw new EngineError('forbidden', 'A history requires an API key');
    if (Array.isArray(given)) requireSeededCount(given.length);
    const checked = given === undefined ? raw : { ...(raw as object), history: untilInvalid(given) };
    const body = validate(createSessionBody, checked);
    const history = await admitHistory(body.history ?? []);
    const userId = token === null ? (body.user_id ?? null) : userOf(token, body.user_id);
    if (typeof body.agent_name === 'string' && body.agent_name !== name) {
      throw new EngineError(
        'invalid_request',
        `"agent_name" is "${body.agent_name.slice(0, limits.excerptChars)}", but the URL names the agent "${name}"`,
      );
    }
    const { metadata = {}, initial_state: state = {} } = body;
    const key = readHeader(c, creationKey);
    const asked = { agent: name, user_id: userId, metadata, kind: 'chat', redact } as const;
    const record =
      key === null
        ? await gateway.createSession(principal, asked, state, history)
        : await gateway.openSession(
            {
              ...asked,
              owner: principal.owner,
              session_id: await sessionIdOf(JSON.stringify(['created', principal.owner, userId, name, key])),
              request_sha256: await sha256Hex(JSON.stringify([metadata, state, given ?? []])),
              created_at: now(),
            },
            state,
            history,
          );
    return c.json(createdDocument(record, history.messages.length), 201);
  };

  operation(
    app,
    'POST /agent/:name/session',
    { body: createSessionBody, headers: [creationKey], status: 201, response: answers.createdSession },
    async (c) => {
      const of = { session: NEW_SESSION, owner: c.get('principal').owner };
      // Until the session exists: its files are in memory.
      return bodies === undefined ? await create(c, null) : await bodies.hold(of, (place) => create(c, place));
    },
  );

  const expiryAfter = (seconds: number): number => (Math.floor(now() / 1_000) + seconds) * 1_000;

  operation(
    app,
    'POST /tokens',
    { body: userTokenBody, query: tokensQuery, status: 201, response: answers.userToken },
    async (c) => {
      const { owner } = c.get('principal');
      const body = validate(userTokenBody, await readJson(c.req.raw));
      const { user_id: userId, agents = null, surfaces, scopes } = body;
      for (const name of agents ?? []) await gateway.requireAgent(name, owner);
      const expiresAt = expiryAfter(body.expires_in);
      const token = await tokens.issue({ type: 'user', userId, agents, surfaces, scopes, owner, expiresAt });
      return c.json({ token, user_id: userId, agents, surfaces, scopes, expires_at: expiresAt }, 201, {
        'cache-control': 'no-store',
      });
    },
  );

  operation(
    app,
    'POST /agent/session/:id/tokens',
    { body: tokenBody, query: tokensQuery, status: 201, response: answers.token },
    async (c) => {
      const id = await gateway.requireId(c.req.param('id'));
      const principal = c.get('principal');
      const body: unknown = await readJson(c.req.raw);
      const session = await gateway.forward(id, INCARNATION_PATH, new Request(c.req.url), principal);
      if (!session.ok) return session;
      const { incarnation } = (await session.json()) as { readonly incarnation: string | null };
      const { scopes, expires_in: seconds } = validate(tokenBody, body);
      const expiresAt = expiryAfter(seconds);
      const issued = await tokens.issue({
        type: 'session',
        sessionId: id,
        incarnation,
        owner: principal.owner,
        scopes,
        expiresAt,
      });
      return c.json({ token: issued, session_id: id, scopes, expires_at: expiresAt }, 201, {
        'cache-control': 'no-store',
      });
    },
  );

  operation(
    app,
    'POST /agent/session/:id/fork',
    { body: forkBody, headers: [forkKey], status: 201, response: answers.forkedSession },
    async (c) => {
      const id = await gateway.requireId(c.req.param('id'));
      const principal = c.get('principal');
      const key = readHeader(c, forkKey);
      const asked = validate(forkBody, await readJson(c.req.raw));
      const body = JSON.stringify({ ...asked, has_key: key !== null } satisfies ForkRequest);
      const request = new Request(c.req.url, { method: 'POST', body });
      const response = await gateway.forward(id, FORK_PATH, request, principal);
      if (!response.ok) return response;
      const { run_id: runId, incarnation, ...origin } = (await response.json()) as ForkOrigin;
      // Not the run: the head may have moved when the request is repeated.
      const start = ['fork', principal.owner, id, incarnation, key];
      const record = await gateway.forkSession(
        {
          session_id: key === null ? await gateway.newSessionId() : await sessionIdOf(JSON.stringify(start)),
          ...origin,
          owner: principal.owner,
          kind: 'chat',
          forked_from: { session_id: id, run_id: runId },
          ...(key === null ? {} : { request_sha256: await sha256Hex(JSON.stringify(asked)) }),
          created_at: now(),
        },
        { sessionId: id, runId },
      );
      const { forked_from = { session_id: id, run_id: runId }, message_count } = record;
      return c.json({ ...createdDocument(record, message_count), forked_from }, 201);
    },
  );

  // The routes of session-app.ts, in the session's object.
  app.all('/agent/session/:id/*', async (c) => {
    const { pathname, searchParams } = new URL(c.req.url);
    const given = pathname.split('/', 4)[3] ?? '';
    const root = `/agent/session/${given}`;
    const path = pathname.slice(root.length) || '/';
    // As the session's router will read it, regardless of its encoding.
    const read = c.req.path.slice(root.length) || '/';
    if (read.startsWith('/-')) throw new EngineError('not_found', 'No such session route');
    const id = await gateway.requireId(given);
    if (searchParams.getAll('token').length > 1) {
      throw new EngineError('invalid_request', '"token" is given more than once; expected one token');
    }
    // The token is not forwarded.
    searchParams.delete('token');
    const search = searchParams.size === 0 ? '' : `?${searchParams.toString()}`;
    const maxBytes = bodyLimit(c.req.method, read);
    const caller = c.get('principal');
    return await forwardBody(c.req.raw, maxBytes, (request) =>
      gateway.forward(id, `${path}${search}`, request, caller),
    );
  });

  return app;
}

/** Largest body of a request to a session, in bytes. @param path relative to the session */
function bodyLimit(method: string, path: string): number {
  if (/^\/(message|runs\/[^/]+\/retry)$/.test(path)) return limits.messageBodyBytes;
  return method === 'PUT' && path.startsWith('/files/') ? limits.workspaceFileBytes : limits.bodyBytes;
}

/** The response about a new session. */
function createdDocument(
  { session_id, agent, user_id, created_at }: SessionRecord,
  message_count: number,
): z.output<typeof answers.createdSession> {
  const names = { agent, agent_name: agent };
  return { session_id, ...names, user_id, status: 'active', created_at, updated_at: created_at, message_count };
}

/** Of its UTF-8, in hexadecimal. */
export async function sha256Hex(text: string): Promise<string> {
  return bytesToHex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))));
}

/** @throws EngineError `forbidden` if the token is not for this agent */
export function requireAgentOf(token: Token, name: string): void {
  if (token.type === 'user' && (token.agents === null || token.agents.includes(name))) return;
  throw new EngineError('forbidden', `This token is not for the agent "${name.slice(0, limits.excerptChars)}"`);
}

/** The user of a token's sessions. @throws EngineError `forbidden` if the body names another one */
function userOf(token: Token, given: string | null | undefined): string {
  if (token.type === 'user' && (given === undefined || given === null || given === token.userId)) return token.userId;
  throw new EngineError('forbidden', 'A user token creates sessions of its own user only');
}
