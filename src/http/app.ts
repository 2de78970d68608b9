/**
 * The Worker's surface: who may call, which agent, which session; everything about one session is
 * passed on to its object (H1). Decides nothing about runs.
 */
import type { Logger } from '../domain/ports.ts';
import { Hono } from 'hono';
import { EngineError } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { Share } from '../domain/turns.ts';
import type { ResolvedAgent } from '../domain/manifest.ts';
import { planText } from '../dry-run/dry-run.ts';
import type { RunStatus, SessionRecord } from '../domain/session.ts';
import { authenticate, checkCaller } from './auth.ts';
import type { AuthConfig, Principal } from './auth.ts';
import { readJson, readProtocolBody, readText } from './body.ts';
import { healthDocument, healthStatus } from './health.ts';
import type { SystemStatus } from './health.ts';
import { openApiDocument, QUERIES } from './openapi.ts';
import { logFault, problemResponse } from './problem.ts';
import { executeQuery, executionsQuery, healthQuery, onlyDeclared, planQuery, readQuery } from './query.ts';
import { createSessionBody, executeBody, planBody, tokenBody, validate } from './schemas.ts';
import { manifestRoutes } from './manifests.ts';
import type { ManifestHost } from './manifests.ts';
import { webhookRoutes, workflowRoutes } from './workflows.ts';
import type { WorkflowHost } from './workflows.ts';
import { EXPIRY_HEADER, PRINCIPAL_HEADER } from './session-app.ts';
import { allow, presentedToken } from './tokens.ts';
import type { SessionToken, SessionTokens } from './tokens.ts';

export interface ExecutionEntry {
  readonly execution_id: string;
  readonly session_id: string;
  readonly agent: string;
  readonly status: string;
  readonly started_at: number;
  readonly ended_at: number | null;
}

/** Newest first: those that come after `before` in that order, and have this status. */
export interface ExecutionsPage {
  readonly limit: number;
  readonly before: { readonly at: number; readonly id: string } | null;
  readonly status: RunStatus | null;
}

export interface AppOptions {
  readonly version: string;
  readonly auth: AuthConfig;
  readonly tokens: SessionTokens;
  readonly now: () => number;
  readonly newSessionId: () => Promise<string>;
  /** False = there never was a session with this id; no object is asked for it. */
  readonly mayBeSession: (id: string) => Promise<boolean>;
  /** The agent of this name in the catalogue of a namespace. */
  readonly agent: (name: string, owner: string | null) => Promise<ResolvedAgent | null>;
  readonly manifests: ManifestHost;
  /** Creates the session in its object. */
  readonly createSession: (record: SessionRecord, state: JsonObject) => Promise<void>;
  /** Passes a request on to a session's object; `path` is what the session's surface sees. */
  readonly forward: (sessionId: string, path: string, request: Request) => Promise<Response>;
  /** Executions of one API key, newest first. */
  readonly executions: (owner: string | null, page: ExecutionsPage) => Promise<readonly ExecutionEntry[]>;
  /** What runs here: action types with where they run, the model, the runner's sandbox; of endpoints, what this key has seen. */
  readonly status: (owner: string | null) => Promise<SystemStatus>;
  readonly workflows: WorkflowHost;
  /** A share of the thread for one request of this key. */
  readonly shareOf: (owner: string | null) => Share;
  readonly log: Logger;
}

type Env = { Variables: { principal: Principal; token: SessionToken | null } };

/** What a request stands for, by its route and the bytes of its body. */
function stepsOf(path: string, bytes: number): number {
  const body = Math.min(bytes, limits.bodyBytes);
  const text = path === '/plan' ? body * limits.textCharSteps : 0;
  const session = path.startsWith('/execute/') || path.endsWith('/session') ? limits.sessionSteps : 0;
  return limits.requestSteps + body * limits.bodyByteSteps + text + session;
}

export function createApp(options: AppOptions): Hono<Env> {
  const app = new Hono<Env>();
  const { auth, agent, forward } = options;

  app.onError((fault, c) => {
    logFault(options.log, fault, { method: c.req.method, path: new URL(c.req.url).pathname });
    return problemResponse(fault);
  });
  app.notFound((c) =>
    problemResponse(
      new EngineError(
        'not_found',
        `No route ${c.req.method} ${new URL(c.req.url).pathname.slice(0, 200)} (see /openapi.json)`,
      ),
    ),
  );

  /** Pages of listed origins may read answers, refusals among them. */
  app.use(async (c, next) => {
    const origin = c.req.header('origin');
    if (origin === undefined || !auth.allowedOrigins.includes(origin)) return await next();
    const preflight = c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined;
    if (preflight) return cors(new Response(null, { status: 204 }), origin);
    await next();
    c.res = cors(c.res, origin);
    return undefined;
  });

  /**
   * Whether the system is up, for probes without a key; still not for pages of other origins, nor, without keys, for other
   * hosts. Which model, which endpoints and which runners there are is for callers with a key.
   */
  app.get('/health', async (c) => {
    checkCaller(c.req.raw, auth);
    const { ready = false } = readQuery(healthQuery, c.req.url);
    const presents = c.req.header('authorization') !== undefined && presentedToken(c.req.raw) === null;
    const principal = presents || auth.keys.length === 0 ? await authenticate(c.req.raw, auth) : null;
    const status = await options.status(principal?.name ?? null);
    // The platform's probes ask whether to restart it (alive: 200), a load balancer's whether to send work (`?ready`).
    const isHeldBack = ready && healthStatus(status) !== 'healthy';
    return c.json(healthDocument(options.version, status, principal !== null), isHeldBack ? 503 : 200);
  });

  // Those who sign what they send need no key.
  app.use('/webhooks/*', async (c, next) => {
    checkCaller(c.req.raw, auth);
    await next();
  });
  app.use('/webhooks/*', onlyDeclared(QUERIES));
  app.route('/', webhookRoutes(options.workflows, auth.keys));

  app.use(async (c, next) => {
    const presented = presentedToken(c.req.raw);
    if (presented === null) {
      c.set('token', null);
      c.set('principal', await authenticate(c.req.raw, auth));
    } else {
      checkCaller(c.req.raw, auth);
      const token = await options.tokens.read(presented);
      const known = token.owner === null ? auth.keys.length === 0 : auth.keys.some(({ name }) => name === token.owner);
      if (!known) throw new EngineError('unauthorized', 'The API key that this session token came from is gone');
      // Only a session's own routes take tokens; the others do not know them.
      if (!c.req.path.startsWith('/agent/session/')) {
        throw new EngineError('forbidden', 'A session token is good for its session only');
      }
      c.set('token', token);
      c.set('principal', { name: token.owner, role: 'run' });
    }
    await next();
  });

  app.use(onlyDeclared(QUERIES));

  /** Requests that make work take turns where their key has made much of it. */
  app.use(async (c, next) => {
    if (c.req.method === 'POST' || c.req.method === 'PUT') {
      const share = options.shareOf(c.get('principal').name);
      if (share.isDue) await share.turn();
      share.charge(stepsOf(c.req.path, Number(c.req.header('content-length') ?? 0) || 0));
    }
    await next();
  });

  app.get('/openapi.json', (c) => c.json(openApiDocument(options.version)));
  app.get('/executors', async (c) => c.json({ executors: (await options.status(c.get('principal').name)).executors }));
  const agentList = async (owner: string | null): Promise<{ readonly name: string; readonly summary: string }[]> => {
    const agents = (await options.manifests.ask(owner, { type: 'list', kind: 'agent' })) as {
      readonly name: string;
      readonly summary: string;
    }[];
    return agents.map(({ name, summary }) => ({ name, summary }));
  };
  app.get('/agents', async (c) => c.json({ agents: await agentList(c.get('principal').name) }));

  const requireAgent = async (name: string, owner: string | null): Promise<ResolvedAgent> => {
    const found = await agent(name, owner);
    if (found !== null) return found;
    const known = (await agentList(owner)).map((one) => one.name);
    throw new EngineError(
      'unknown_agent',
      `No agent is called "${name.slice(0, limits.excerptChars)}" (known: ${known.join(', ')})`,
      {
        known,
      },
    );
  };

  const newSession = async (
    principal: Principal,
    request: Pick<SessionRecord, 'agent' | 'user_id' | 'metadata' | 'kind'>,
    state: JsonObject,
  ): Promise<SessionRecord> => {
    const record: SessionRecord = {
      session_id: await options.newSessionId(),
      owner: principal.name,
      created_at: options.now(),
      ...request,
    };
    await options.createSession(record, state);
    return record;
  };

  /** To the session's object: with the caller's name, without anything that only the Worker may say. */
  const toSession = (
    sessionId: string,
    path: string,
    request: Request,
    principal: Principal,
    token: SessionToken | null = null,
  ): Promise<Response> => {
    const headers = new Headers(request.headers);
    headers.delete(PRINCIPAL_HEADER);
    headers.delete(EXPIRY_HEADER);
    if (token !== null) headers.set(EXPIRY_HEADER, String(token.expiresAt));
    headers.delete('authorization');
    if (principal.name !== null) headers.set(PRINCIPAL_HEADER, principal.name);
    return forward(sessionId, path, new Request(request, { headers }));
  };

  app.route('/', manifestRoutes(options.manifests));
  app.route('/', workflowRoutes(options.workflows, toSession));

  app.post('/agent/:name/session', async (c) => {
    const name = c.req.param('name');
    await requireAgent(name, c.get('principal').name);
    const body = validate(createSessionBody, await readJson(c.req.raw));
    const state = (body.initial_state ?? {}) as JsonObject;
    const record = await newSession(
      c.get('principal'),
      { agent: name, user_id: body.user_id ?? null, metadata: (body.metadata ?? {}) as JsonObject, kind: 'chat' },
      state,
    );
    return c.json(
      { session_id: record.session_id, agent: name, user_id: record.user_id, created_at: record.created_at },
      201,
    );
  });

  const requireId = async (id: string): Promise<string> => {
    if (/^ses_[0-9a-f]{32}$/.test(id) && (await options.mayBeSession(id))) return id;
    throw new EngineError('unknown_session', 'There is no session with this id');
  };

  app.post('/agent/session/:id/tokens', async (c) => {
    const token = c.get('token');
    if (token !== null) allow(token, c.req.param('id'), 'POST', '/tokens');
    const id = await requireId(c.req.param('id'));
    const principal = c.get('principal');
    const body: unknown = await readJson(c.req.raw);
    const session = await toSession(id, '/', new Request(c.req.url), principal);
    if (!session.ok) return session;
    await session.body?.cancel();
    const { scopes, expires_in: seconds } = validate(tokenBody, body);
    const expiresAt = (Math.floor(options.now() / 1_000) + seconds) * 1_000;
    const issued = await options.tokens.issue({ sessionId: id, owner: principal.name, scopes, expiresAt });
    return c.json({ token: issued, session_id: id, scopes, expires_at: expiresAt }, 201, {
      'cache-control': 'no-store',
    });
  });

  app.all('/agent/session/:id/*', async (c) => {
    const { pathname, searchParams } = new URL(c.req.url);
    const given = pathname.split('/', 4)[3] ?? '';
    const root = `/agent/session/${given}`;
    const path = pathname.slice(root.length) || '/';
    // What is allowed is judged by what the session's router will read, however it is spelled.
    const read = c.req.path.slice(root.length) || '/';
    if (read.startsWith('/-')) throw new EngineError('not_found', 'No such route under a session');
    const id = await requireId(given);
    const token = c.get('token');
    if (token !== null) allow(token, id, c.req.method, read);
    if (searchParams.getAll('token').length > 1) {
      throw new EngineError('invalid_request', '"token" is given more than once: it takes a session token');
    }
    // What opens a session goes no further than here.
    searchParams.delete('token');
    const search = searchParams.size === 0 ? '' : `?${searchParams.toString()}`;
    return await toSession(id, `${path}${search}`, await whole(c.req.raw), c.get('principal'), token);
  });

  /** Every execution is a session of its own, resumable and cancellable (H1). */
  const execute = async (request: Request, principal: Principal): Promise<Response> => {
    const query = readQuery(executeQuery, request.url);
    const posted = await readProtocolBody(request);
    if ('streamed' in posted) {
      const name = query.agent ?? 'assistant';
      await requireAgent(name, principal.name);
      const record = await newSession(principal, { agent: name, user_id: null, metadata: {}, kind: 'execution' }, {});
      return await toSession(record.session_id, `/-/execute-stream${new URL(request.url).search}`, request, principal);
    }
    if ('json' in posted) onlyWithText(query);
    const raw =
      'json' in posted
        ? posted.json
        : { protocol_text: posted.text, agent: query.agent, stream: query.stream !== 'false' };
    const named = (raw as { agent?: unknown } | null)?.agent;
    await requireAgent(typeof named === 'string' ? named : 'assistant', principal.name);
    const body = validate(executeBody, raw);
    const record = await newSession(
      principal,
      { agent: body.agent, user_id: null, metadata: {}, kind: 'execution' },
      (body.context ?? {}) as JsonObject,
    );
    const headers = new Headers(request.headers);
    headers.set('content-type', 'application/json');
    headers.delete('content-length');
    const forwarded = new Request(request.url, { method: 'POST', headers, body: JSON.stringify(body) });
    return await toSession(record.session_id, '/-/execute', forwarded, principal);
  };
  app.post('/execute/direct', (c) => execute(c.req.raw, c.get('principal')));
  app.post('/execute/streaming_protocol', (c) => execute(c.req.raw, c.get('principal')));

  app.post('/plan', async (c) => {
    const query = readQuery(planQuery, c.req.url);
    const posted = await readProtocolBody(c.req.raw);
    if ('json' in posted) onlyWithText(query);
    const raw =
      'json' in posted
        ? posted.json
        : { protocol_text: 'text' in posted ? posted.text : await readText(c.req.raw), agent: query.agent };
    const body = validate(planBody, raw);
    if (body.protocol_text.length > limits.planChars) {
      throw new EngineError('body_too_large', `The text is longer than ${limits.planChars} characters`);
    }
    const owner = c.get('principal').name;
    return c.json(
      planText(body.protocol_text, body.agent === undefined ? null : await requireAgent(body.agent, owner)),
    );
  });

  app.get('/executions', async (c) => {
    const { status = null, limit = limits.pageRows, before } = readQuery(executionsQuery, c.req.url);
    const [at = '', id = ''] = before?.split('-', 2) ?? [];
    const found = await options.executions(c.get('principal').name, {
      limit: limit + 1,
      before: before === undefined ? null : { at: Number(at), id },
      status,
    });
    const executions = found.slice(0, limit);
    const last = found.length > limit ? executions.at(-1) : undefined;
    return c.json({
      executions,
      next: last === undefined ? null : `${last.started_at}-${last.execution_id}`,
    });
  });
  app.get('/executions/:id', (c) => {
    const id = c.req.param('id');
    const path = id.startsWith('run_') ? `/runs/${encodeURIComponent(id)}` : '/-/latest-run';
    return toExecution(id, path, c.req.raw, c.get('principal'));
  });
  app.post('/executions/:id/cancel', async (c) =>
    toExecution(c.req.param('id'), '/cancel', await whole(c.req.raw), c.get('principal')),
  );

  const toExecution = async (id: string, path: string, request: Request, principal: Principal): Promise<Response> => {
    const hex = /^(?:ses|run)_([0-9a-f]{32})(?:_\d+)?$/.exec(id)?.[1];
    const unknown = new EngineError('unknown_execution', `There is no execution "${id.slice(0, limits.excerptChars)}"`);
    if (hex === undefined || !(await options.mayBeSession(`ses_${hex}`))) throw unknown;
    const response = await toSession(`ses_${hex}`, path, request, principal);
    if (response.status === 404) throw unknown;
    return response;
  };

  return app;
}

/** The request with its body read: a session that refuses early leaves no half-read stream behind. */
async function whole(request: Request): Promise<Request> {
  if (request.body === null) return request;
  const { method, headers, url } = request;
  return new Request(url, { method, headers, body: await readText(request) });
}

/** @throws EngineError `invalid_request` where a JSON body says the same, or could */
function onlyWithText(query: Readonly<Record<string, unknown>>): void {
  const [name] = Object.keys(query);
  if (name === undefined) return;
  const message = `"${name}" in the address goes with a text/plain body: with JSON it is a member of the body`;
  throw new EngineError('invalid_request', message);
}

function cors(response: Response, origin: string): Response {
  const open = new Response(response.body, response);
  open.headers.set('access-control-allow-origin', origin);
  open.headers.set('access-control-allow-headers', 'authorization, content-type, idempotency-key, last-event-id');
  open.headers.set('access-control-allow-methods', 'GET, POST, PUT, DELETE');
  open.headers.set('access-control-expose-headers', 'x-session-id, x-run-id, retry-after');
  open.headers.set('access-control-max-age', '600');
  open.headers.append('vary', 'origin');
  return open;
}
