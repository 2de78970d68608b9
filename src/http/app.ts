/**
 * The Worker's HTTP surface: authenticates callers, selects the agent and session, and forwards everything about one
 * session to its object (H1). Makes no decisions about runs.
 */
import { Hono } from 'hono';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { Logger } from '../domain/log.ts';
import type { UserFacts } from '../domain/ports/user-facts.ts';
import type { ThreadShare } from '../domain/fair-queue.ts';
import { isOwner } from './api-keys.ts';
import { authenticate, checkCaller } from './auth.ts';
import { allow } from './access.ts';
import { onlyDeclared } from './openapi/describe.ts';
import { Gateway } from './gateway.ts';
import type { EdgeEnv, GatewayPorts } from './gateway.ts';
import { openApiDocument } from './openapi/document.ts';
import { logFault, problemResponse } from './problem.ts';
import { approvalRoutes } from './routes/approvals.ts';
import type { ApprovalsOf } from './routes/approvals.ts';
import { directoryRoutes } from './routes/directory.ts';
import type { DirectoryOf } from './routes/directory.ts';
import { executionRoutes } from './routes/executions.ts';
import type { ExecutionsOf } from './routes/executions.ts';
import { NO_REVISIONS } from './manifest-host.ts';
import type { CatalogRevisions } from './manifest-host.ts';
import { memoryRoutes } from './routes/memory.ts';
import { manifestRoutes } from './routes/manifests.ts';
import type { LargeBodies } from './large-bodies.ts';
import { sessionsRoutes } from './routes/sessions.ts';
import { healthRoute, systemRoutes } from './routes/system.ts';
import type { SystemRoutesOptions } from './routes/system.ts';
import { webhookRoutes, workflowRoutes } from './routes/workflows.ts';
import type { WorkflowHost } from './routes/workflows.ts';
import { REVISION_HEADER } from './session-env.ts';
import { sessionRoutes } from './session-app.ts';
import { surfaceProblem, unknownSurfaceRoute } from './surfaces/edge-surface.ts';
import { mcpRoute } from './surfaces/mcp/mcp-route.ts';
import { surfaceRoutes } from './surfaces/routes.ts';
import { presentedToken } from './tokens.ts';
import { unknownRoute } from './unknown-route.ts';
import type { Tokens } from './tokens.ts';

export interface AppOptions extends GatewayPorts, SystemRoutesOptions {
  readonly tokens: Tokens;
  readonly debugPrompts?: boolean;
  /** Executions of one namespace, newest first. */
  readonly executions: ExecutionsOf;
  readonly approvals: ApprovalsOf;
  readonly directory: DirectoryOf;
  readonly facts: UserFacts;
  readonly workflows: WorkflowHost;
  /** A share of the thread for one request of this namespace. */
  readonly shareOf: (owner: string | null) => ThreadShare;
  /** Default: manifests are not copied. */
  readonly catalogRevisions?: CatalogRevisions;
  /** Large bodies of the isolate, of new sessions. Default: they are not counted. */
  readonly bodies?: LargeBodies;
  readonly log: Logger;
}

/** The work of a request without its body, estimated from its route. */
function stepsOf(path: string): number {
  const session = /^\/execute\/|\/session$/.test(path) ? limits.sessionSteps : 0;
  return limits.requestSteps + session;
}

/** The work of a part of its body. What exceeds the largest limit of a body is not parsed. */
function bodySteps(path: string, bytes: number): number {
  const perByte = limits.bodyByteSteps + (path === '/plan' ? limits.textCharSteps : 0);
  return Math.min(bytes, limits.messageBodyBytes) * perByte;
}

/** The request with a body that is charged while it arrives, because its length is unknown. */
function metered(request: Request, path: string, share: ThreadShare): Request {
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      if (share.isDue) await share.waitTurn();
      share.charge(bodySteps(path, chunk.byteLength));
      controller.enqueue(chunk);
    },
  });
  const init: RequestInit & { readonly duplex: 'half' } = {
    body: request.body?.pipeThrough(counter) ?? null,
    duplex: 'half',
  };
  return new Request(request, init);
}

export function createApp(options: AppOptions): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  const { auth, manifests, workflows } = options;
  const gateway = new Gateway(options);
  const { catalogRevisions = NO_REVISIONS } = options;

  let documented: Promise<object> | null = null;
  /** The OpenAPI document of these routes and of the session routes. Created once. */
  const document = (): Promise<object> =>
    (documented ??= openApiDocument(
      new Hono().route('/', app).route('/agent/session/:id', sessionRoutes),
      options.version,
    ));

  app.onError((fault, c) => {
    logFault(options.log, fault, { method: c.req.method, path: c.req.path });
    return surfaceProblem(c.req, fault) ?? problemResponse(fault);
  });
  app.notFound((c) => unknownRoute(app, c.req.raw, (fault) => unknownSurfaceRoute(c.req.path, fault)));

  /** Pages of listed origins may read responses, including errors. */
  app.use(async (c, next) => {
    const origin = c.req.header('origin');
    if (origin === undefined || !auth.allowedOrigins.includes(origin)) return await next();
    const preflight = c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined;
    const asked = c.req.header('access-control-request-headers');
    if (preflight) return cors(new Response(null, { status: 204 }), origin, asked);
    await next();
    c.res = cors(c.res, origin);
    return undefined;
  });

  app.route('/', healthRoute(options));

  // Webhook callers sign their requests and need no key.
  app.use('/webhooks/*', async (c, next) => {
    checkCaller(c.req.raw, auth);
    await next();
  });
  app.use('/webhooks/*', onlyDeclared);
  app.route('/', webhookRoutes(workflows, auth.keys, options.log));

  app.use(async (c, next) => {
    const presented = presentedToken(c.req.raw);
    if (presented === null) {
      c.set('principal', { ...(await authenticate(c.req.raw, auth)), token: null });
    } else {
      checkCaller(c.req.raw, auth);
      const token = await options.tokens.read(presented);
      if (!isOwner(auth.keys, token.owner)) {
        throw new EngineError('unauthorized', 'The namespace of this token no longer has an API key');
      }
      c.set('principal', { owner: token.owner, role: 'run', token });
    }
    allow(c.get('principal'), c.req, options.debugPrompts === true);
    await next();
  });

  app.use(onlyDeclared);

  /** A caller that has changed manifests sees its change in every isolate, if it says which one it was (Z1). */
  app.use(async (c, next) => {
    const { owner, token } = c.get('principal');
    const asked = c.req.header(REVISION_HEADER) ?? '';
    if (token === null && /^\d{1,15}$/.test(asked)) catalogRevisions.require(owner, Number(asked));
    await next();
  });

  /** The answer to a change says which one it was. Other answers are those of sessions, which may be under way meanwhile. */
  app.use('/manifests/*', async (c, next) => {
    const { owner } = c.get('principal');
    const before = catalogRevisions.of(owner);
    await next();
    const after = catalogRevisions.of(owner);
    if (c.req.method !== 'GET' && after > before) c.res.headers.set(REVISION_HEADER, String(after));
  });

  /** Expensive requests wait for their turn if their namespace has used the thread for long. */
  app.use(async (c, next) => {
    if (c.req.method === 'POST' || c.req.method === 'PUT') {
      const share = options.shareOf(c.get('principal').owner);
      if (share.isDue) await share.waitTurn();
      const { path, raw } = c.req;
      const bytes = Number(c.req.header('content-length') ?? NaN);
      share.charge(stepsOf(path) + (bytes >= 0 ? bodySteps(path, bytes) : 0));
      if (!(bytes >= 0) && raw.body !== null) c.req.raw = metered(raw, path, share);
    }
    await next();
  });

  app.route('/', systemRoutes({ ...options, gateway, document }));
  app.route('/', manifestRoutes(manifests));
  app.route('/', workflowRoutes(workflows, gateway));
  const sessionIdOf = (start: string): Promise<string> => workflows.sessionIdOf(start);
  app.route('/', sessionsRoutes({ ...options, gateway, sessionIdOf }));
  app.route('/', directoryRoutes(options.directory));
  app.route('/', memoryRoutes(gateway, options.facts));
  app.route('/', executionRoutes({ ...options, gateway }));
  app.route('/', approvalRoutes(options.approvals));
  app.route('/', surfaceRoutes({ ...options, gateway, sessionIdOf }));
  app.route('/', mcpRoute({ ...options, gateway, sessionIdOf }));

  return app;
}

/** @param asked the headers that a page will send: clients of other protocols have their own */
function cors(response: Response, origin: string, asked = 'authorization, content-type'): Response {
  const open = new Response(response.body, response);
  open.headers.set('access-control-allow-origin', origin);
  open.headers.set('access-control-allow-headers', asked);
  open.headers.set('access-control-allow-methods', 'GET, POST, PUT, DELETE');
  open.headers.set(
    'access-control-expose-headers',
    'x-session-id, x-run-id, x-manifest-revision, retry-after, content-disposition, content-range, etag',
  );
  open.headers.set('access-control-max-age', '600');
  open.headers.append('vary', 'origin');
  return open;
}
