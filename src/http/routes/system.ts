/** Routes of the system: its health, action types, agents, and OpenAPI document. */
import { Hono } from 'hono';
import { grammarDocument, promptDocument } from '../../dry-run/agent-documents.ts';
import { authenticate, checkCaller } from '../auth.ts';
import type { AuthConfig } from '../auth.ts';
import { accepts, operation } from '../openapi/describe.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { healthDocument, healthStatus } from '../health.ts';
import type { SystemStatus } from '../health.ts';
import { grammarQuery, healthQuery, readQuery } from '../query.ts';
import * as answers from '../responses/system.ts';
import { presentedToken } from '../tokens.ts';

export interface SystemRoutesOptions {
  readonly version: string;
  readonly auth: AuthConfig;
  /** The current status: action types with where they run, the model, the runner; endpoints as seen by this key. */
  readonly status: (owner: string | null) => Promise<SystemStatus>;
}

/**
 * The status for probes without a key; not for pages of other origins and, without keys, not for other hosts. Details
 * of models, endpoints and runners are only for callers with a key.
 */
export function healthRoute({ version, auth, status: statusFor }: SystemRoutesOptions): Hono {
  const app = new Hono();
  operation(app, 'GET /health', { query: healthQuery, response: answers.health, further: [503] }, async (c) => {
    checkCaller(c.req.raw, auth);
    const { ready = false } = readQuery(healthQuery, c.req.url);
    const presents = c.req.header('authorization') !== undefined && presentedToken(c.req.raw) === null;
    const principal = presents || auth.keys.length === 0 ? await authenticate(c.req.raw, auth) : null;
    const status = await statusFor(principal?.owner ?? null);
    // The platform's probes ask whether to restart it (alive: 200), a load balancer whether to send work (`?ready`).
    const isHeldBack = ready && healthStatus(status) !== 'healthy';
    return c.json(healthDocument(version, status, principal !== null), isHeldBack ? 503 : 200);
  });
  return app;
}

/** Routes for callers with a key. @param given `document` is the OpenAPI document */
export function systemRoutes(given: {
  readonly status: SystemRoutesOptions['status'];
  readonly gateway: Gateway;
  readonly document: () => Promise<object>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}): Hono<EdgeEnv> {
  const { status, gateway, document, now } = given;
  const app = new Hono<EdgeEnv>();
  operation(app, 'GET /openapi.json', { response: answers.document }, async (c) => c.json(await document()));
  operation(app, 'GET /executors', { response: answers.executors }, async (c) =>
    c.json({ executors: (await status(c.get('principal').owner)).executors }),
  );
  operation(app, 'GET /agents', { response: answers.agents }, async (c) =>
    c.json({ agents: await gateway.agents(c.get('principal').owner) }),
  );
  operation(app, 'GET /agents/:name/prompt', { response: answers.agentPrompt, text: 'text/plain' }, async (c) => {
    const { owner } = c.get('principal');
    const document = promptDocument(await gateway.requireEquippedAgent(c.req.param('name'), owner), owner, now());
    return accepts(c, 'application/json') ? c.json(document) : c.text(document.prompt);
  });
  operation(
    app,
    'GET /agents/:name/grammar',
    { query: grammarQuery, response: answers.agentGrammar, text: 'text/plain' },
    async (c) => {
      const { format = 'gbnf', protocol_form: form = null } = readQuery(grammarQuery, c.req.url);
      const resolved = await gateway.requireEquippedAgent(c.req.param('name'), c.get('principal').owner);
      const { text, notes } = grammarDocument(resolved, { format, form });
      return accepts(c, 'application/json') ? c.json({ grammar: text, notes }) : c.text(text);
    },
  );
  return app;
}
