/** The routes of agent-lib-cpp's server: an agent by its name, with or without a session. */
import { Hono } from 'hono';
import type { Context } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { readJson } from '../body.ts';
import { traceHeader } from '../gateway.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { operation } from '../openapi/describe.ts';
import { formatQuery } from '../query.ts';
import { messageResult } from '../responses/runs.ts';
import { validate } from '../schemas.ts';
import * as answers from './answers.ts';
import { promptBody } from './bodies.ts';

export function agentRoutes(gateway: Gateway): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  const prompt = async (c: Context<EdgeEnv>, agent: string, stream: boolean): Promise<Response> => {
    const principal = c.get('principal');
    await gateway.requireAgent(agent, principal.owner);
    const { prompt: content, session_id: given } = validate(promptBody, await readJson(c.req.raw));
    const session = { agent, user_id: null, metadata: {}, kind: 'chat' } as const;
    const id =
      typeof given === 'string'
        ? await sessionOf(c, agent, given)
        : (await gateway.createSession(principal, session, {})).session_id;
    const accept = stream ? 'text/event-stream' : 'application/json';
    const body = JSON.stringify({ content, stream });
    const request = new Request(c.req.url, { method: 'POST', headers: { accept, ...traceHeader(c) }, body });
    return await gateway.forward(id, `/message${new URL(c.req.url).search}`, request, principal);
  };

  /** @throws EngineError `unknown_session` also for a session of another agent */
  const sessionOf = async (c: Context<EdgeEnv>, agent: string, given: string): Promise<string> => {
    const id = await gateway.requireId(given);
    const response = await gateway.forward(id, '/', new Request(c.req.url), c.get('principal'));
    const session = response.ok ? ((await response.json()) as { agent: string }) : null;
    if (session?.agent === agent) return id;
    const message = `The agent "${agent.slice(0, limits.excerptChars)}" has no session with this id; without "session_id", a new one is created`;
    throw new EngineError('unknown_session', message);
  };

  operation(app, 'GET /api/v1/agents', { response: answers.agentNames }, async (c) =>
    c.json((await gateway.agents(c.get('principal').owner)).map(({ name }) => name)),
  );
  operation(
    app,
    'POST /api/v1/agents/:name/prompt',
    { body: promptBody, response: messageResult, run: true },
    async (c) => await prompt(c, c.req.param('name'), false),
  );
  operation(
    app,
    'POST /api/v1/agents/:name/stream',
    { body: promptBody, query: formatQuery, run: true, media: 'events' },
    async (c) => await prompt(c, c.req.param('name'), true),
  );
  return app;
}
