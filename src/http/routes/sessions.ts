/** Session routes of the Worker: it creates sessions, issues their tokens, and forwards everything else (H1, H5). */
import { Hono } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { admitHistory } from '../../policies/seeded-history.ts';
import { readJson } from '../body.ts';
import { describe } from '../openapi/describe.ts';
import { whole } from '../gateway.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { tokensQuery } from '../query.ts';
import * as answers from '../responses/sessions.ts';
import { createSessionBody, tokenBody, validate } from '../schemas.ts';
import { allow, showsPrompt } from '../tokens.ts';
import type { SessionTokens } from '../tokens.ts';

interface SessionRoutesOptions {
  readonly gateway: Gateway;
  readonly tokens: SessionTokens;
  readonly now: () => number;
  /** Whether every key may read prompts; default: only admin keys. */
  readonly debugPrompts?: boolean;
}

export function sessionsRoutes({ gateway, tokens, now, debugPrompts = false }: SessionRoutesOptions): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  app.post(
    '/agent/:name/session',
    describe({
      summary: 'Create a session with an agent',
      body: createSessionBody,
      status: 201,
      response: answers.createdSession,
    }),
    async (c) => {
      const name = c.req.param('name');
      await gateway.requireAgent(name, c.get('principal').owner);
      const body = validate(createSessionBody, await readJson(c.req.raw, limits.createBodyBytes));
      // It can contain anything, also what the agent never said.
      if (body.history !== undefined && c.get('token') !== null) {
        throw new EngineError('forbidden', 'A history requires an API key');
      }
      const history = admitHistory(body.history ?? []);
      if (typeof body.agent_name === 'string' && body.agent_name !== name) {
        throw new EngineError(
          'invalid_request',
          `"agent_name" is "${body.agent_name.slice(0, limits.excerptChars)}", but the URL names the agent "${name}"`,
        );
      }
      const record = await gateway.createSession(
        c.get('principal'),
        { agent: name, user_id: body.user_id ?? null, metadata: body.metadata ?? {}, kind: 'chat' },
        body.initial_state ?? {},
        history,
      );
      const { session_id, user_id, created_at } = record;
      const names = { agent: name, agent_name: name };
      const rest = { status: 'active', created_at, updated_at: created_at, message_count: history.length };
      return c.json({ session_id, ...names, user_id, ...rest }, 201);
    },
  );

  app.post(
    '/agent/session/:id/tokens',
    describe({
      summary:
        'Create a token for a browser: for this session, limited in time, with the scopes read, message, approve',
      body: tokenBody,
      query: tokensQuery,
      status: 201,
      response: answers.token,
    }),
    async (c) => {
      const token = c.get('token');
      if (token !== null) allow(token, c.req.param('id'), 'POST', '/tokens');
      const id = await gateway.requireId(c.req.param('id'));
      const principal = c.get('principal');
      const body: unknown = await readJson(c.req.raw);
      const session = await gateway.forward(id, '/', new Request(c.req.url), principal);
      if (!session.ok) return session;
      await session.body?.cancel();
      const { scopes, expires_in: seconds } = validate(tokenBody, body);
      const expiresAt = (Math.floor(now() / 1_000) + seconds) * 1_000;
      const issued = await tokens.issue({ sessionId: id, owner: principal.owner, scopes, expiresAt });
      return c.json({ token: issued, session_id: id, scopes, expires_at: expiresAt }, 201, {
        'cache-control': 'no-store',
      });
    },
  );

  // The routes of session-app.ts, in the session's object.
  app.all('/agent/session/:id/*', async (c) => {
    const { pathname, searchParams } = new URL(c.req.url);
    const given = pathname.split('/', 4)[3] ?? '';
    const root = `/agent/session/${given}`;
    const path = pathname.slice(root.length) || '/';
    // Permissions are checked on the path as the session's router will read it, regardless of its encoding.
    const read = c.req.path.slice(root.length) || '/';
    if (read.startsWith('/-')) throw new EngineError('not_found', 'No such session route');
    const id = await gateway.requireId(given);
    const token = c.get('token');
    if (token !== null) allow(token, id, c.req.method, read);
    if (showsPrompt(read) && c.get('principal').role !== 'admin' && !debugPrompts) {
      throw new EngineError(
        'forbidden',
        'Prompts require a key with the role admin, or DEBUG_PROMPTS=1 (docs/runs.md)',
      );
    }
    if (searchParams.getAll('token').length > 1) {
      throw new EngineError('invalid_request', '"token" is given more than once; expected a session token');
    }
    // The token is not forwarded.
    searchParams.delete('token');
    const search = searchParams.size === 0 ? '' : `?${searchParams.toString()}`;
    return await gateway.forward(id, `${path}${search}`, await whole(c.req.raw), c.get('principal'), token);
  });

  return app;
}
