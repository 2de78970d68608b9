/**
 * The facts that an agent keeps about a user (C10): for the operator's own pages, with a key of the namespace, and for the
 * user, with a user token.
 *
 * Facts stay readable and deletable if the agent's manifest no longer says that it keeps some.
 */
import { Hono } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import { FACT_KEY, FACT_KEY_RULE, FACT_VALUE_RULE, factsChars, factText } from '../../domain/facts.ts';
import type { Fact } from '../../domain/facts.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { FactAnswer, FactsOwner, UserFacts } from '../../domain/ports/user-facts.ts';
import type { Caller } from '../access.ts';
import { readJson } from '../body.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { operation } from '../openapi/describe.ts';
import { memoryQuery, readQuery } from '../query.ts';
import * as answers from '../responses/memory.ts';
import { factBody, validate } from '../schemas.ts';
import { requireAgentOf } from './sessions.ts';

interface Asked {
  readonly of: FactsOwner;
  readonly resolved: ResolvedAgent;
}

export function memoryRoutes(gateway: Gateway, facts: UserFacts): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  const asked = async (agent: string, caller: Caller, url: string): Promise<Asked> => {
    if (caller.token !== null) requireAgentOf(caller.token, agent);
    const resolved = await gateway.requireAgent(agent, caller.owner);
    return { of: { owner: caller.owner, agent, userId: userOf(caller, url) }, resolved };
  };

  operation(app, 'GET /agent/:name/memory', { query: memoryQuery, response: answers.facts }, async (c) => {
    const { of } = await asked(c.req.param('name'), c.get('principal'), c.req.url);
    const { facts: found } = await facts.read(of);
    return c.json({ agent: of.agent, user_id: of.userId, facts: found.map(factJson) });
  });

  operation(app, 'DELETE /agent/:name/memory', { query: memoryQuery, response: answers.forgotten }, async (c) => {
    const { of } = await asked(c.req.param('name'), c.get('principal'), c.req.url);
    const { changed } = done(await facts.change(of, { type: 'forget_all' }), c.get('principal'));
    return c.json({ agent: of.agent, user_id: of.userId, forgotten: changed });
  });

  operation(
    app,
    'PUT /agent/:name/memory/:key',
    { query: memoryQuery, body: factBody, response: answers.fact },
    async (c) => {
      const { of, resolved } = await asked(c.req.param('name'), c.get('principal'), c.req.url);
      const key = keyOf(c.req.param('key'));
      const policy = resolved.agent.memory.facts;
      if (policy === undefined) {
        const message = `The agent "${of.agent}" keeps no facts about its users (memory.facts in its manifest)`;
        throw new EngineError('invalid_request', message);
      }
      const value = factText(validate(factBody, await readJson(c.req.raw)).value);
      if (value === null) throw new EngineError('invalid_request', `"value" must be ${FACT_VALUE_RULE}`);
      const room = { facts: policy.max, chars: factsChars(policy) };
      const change = { type: 'remember', key, value, room, by: null } as const;
      const { after } = done(await facts.change(of, change), c.get('principal'));
      const written = after.facts.find((fact) => fact.key === key);
      if (written === undefined) throw new Error(`the store has not written "${key}"`);
      return c.json(factJson(written));
    },
  );

  operation(app, 'DELETE /agent/:name/memory/:key', { query: memoryQuery, response: answers.forgotten }, async (c) => {
    const { of } = await asked(c.req.param('name'), c.get('principal'), c.req.url);
    const key = keyOf(c.req.param('key'));
    const { changed, after } = done(await facts.change(of, { type: 'forget', key, call: null }), c.get('principal'));
    if (changed > 0) return c.json({ agent: of.agent, user_id: of.userId, forgotten: changed });
    const known = after.facts.map((fact) => fact.key).join(', ');
    const listed = mayList(c.get('principal')) ? ` (known: ${known === '' ? 'none' : known})` : '';
    throw new EngineError('unknown_fact', `There is no fact "${key}"${listed}`);
  });

  return app;
}

/** @throws EngineError `forbidden` for another user than the token's; `invalid_request` if no user is named */
function userOf({ token }: Caller, url: string): string {
  const { user_id: asked = null } = readQuery(memoryQuery, url);
  if (token === null) {
    if (asked !== null) return asked;
    throw new EngineError('invalid_request', '"user_id" is missing: an API key names the user');
  }
  if (token.type === 'user' && (asked === null || asked === token.userId)) return token.userId;
  throw new EngineError('forbidden', 'A user token is for the facts about its own user only');
}

/** @throws EngineError `invalid_request` */
function keyOf(key: string): string {
  if (FACT_KEY.test(key)) return key;
  const excerpt = key.slice(0, limits.excerptChars);
  throw new EngineError('invalid_request', `The key of a fact must be ${FACT_KEY_RULE}, not "${excerpt}"`);
}

/** Whether errors may name the facts that there are. */
function mayList({ token }: Caller): boolean {
  return token === null || token.scopes.includes('read');
}

/** @throws EngineError `memory_full` */
function done(answer: FactAnswer, caller: Caller): Extract<FactAnswer, { ok: true }> {
  if (answer.ok) return answer;
  // Only a call of an action can come too late.
  const why = mayList(caller) ? answer.message : 'the facts are at their limit; forget one first';
  throw new EngineError('memory_full', `The fact was not written: ${why}`);
}

function factJson({ key, value, updatedAt, sessionId, runId }: Fact): {
  readonly key: string;
  readonly value: string;
  readonly updated_at: number;
  readonly session_id: string | null;
  readonly run_id: string | null;
} {
  return { key, value, updated_at: updatedAt, session_id: sessionId, run_id: runId };
}
