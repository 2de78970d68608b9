/**
 * A session's HTTP surface, mounted inside its object. The Worker has authenticated the caller and forwards the request
 * unchanged, so that bodies and responses are streamed (H1, H2).
 */
import { Hono } from 'hono';
import { EngineError, unknownSession } from '../domain/errors.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { Session } from '../engine/session/session.ts';
import { onlyDeclared } from './openapi/describe.ts';
import { Heartbeat } from './heartbeat.ts';
import { LargeBodies } from './large-bodies.ts';
import { PatchCoalescer } from './patch-coalescer.ts';
import { logFault, problemResponse } from './problem.ts';
import { sessionActions } from './routes/session-actions.ts';
import { sessionBranches } from './routes/session-branches.ts';
import { sessionHistory } from './routes/session-history.ts';
import { sessionReading } from './routes/session-reading.ts';
import { sessionWorkspace } from './routes/session-workspace.ts';
import { grantOf, PRINCIPAL_HEADER } from './session-env.ts';
import type { Grant, SessionAppOptions, SessionEnv } from './session-env.ts';
import type { EventSource } from './sse.ts';
import { surfaceCommands } from './surfaces/session-surface.ts';
import { unknownRoute } from './unknown-route.ts';

/** The session routes, shared by all sessions of the isolate. */
export const sessionRoutes = new Hono<SessionEnv>();

sessionRoutes.onError((fault, c) => {
  logFault(c.env.log, fault, { method: c.req.method, path: new URL(c.req.url).pathname });
  return problemResponse(fault);
});
sessionRoutes.notFound((c) => unknownRoute(sessionRoutes, c.req.raw));

/**
 * A session is visible only to the keys of its namespace (H5, T4), to the tokens of its user (T3), and to its own tokens
 * if they were made for this incarnation (T5). For others it does not exist.
 */
sessionRoutes.use(async (c, next) => {
  const { session } = c.env;
  if (session.exists) {
    const principal = c.req.header(PRINCIPAL_HEADER) ?? null;
    const grant = grantOf(c);
    if (session.record.owner !== principal || !isFor(session.record, grant)) {
      throw unknownSession();
    }
    const { agent } = session.record;
    if (grant.agents !== null && !grant.agents.includes(agent)) {
      throw new EngineError('forbidden', `This token is not for the agent "${agent}"`);
    }
  }
  await session.recover(c.req.method === 'GET' ? 'read' : 'act');
  await next();
});

/** For an unknown session, the only error is the unknown session. */
sessionRoutes.use(async (c, next) => (c.env.session.exists ? await onlyDeclared(c, next) : await next()));

sessionRoutes.route('/', sessionReading);
sessionRoutes.route('/', sessionHistory);
sessionRoutes.route('/', sessionActions);
sessionRoutes.route('/', sessionBranches);
sessionRoutes.route('/', sessionWorkspace);
sessionRoutes.route('/', surfaceCommands);

function isFor({ incarnation = '', user_id: id }: SessionRecord, grant: Grant): boolean {
  if (grant.incarnation !== null && grant.incarnation !== incarnation) return false;
  // An id that is not valid Unicode has no encoding, and no token.
  return grant.user === null || (id !== null && id.isWellFormed() && encodeURIComponent(id) === grant.user);
}

/** The HTTP surface of one session. */
export function createSessionApp(options: SessionAppOptions): {
  fetch(request: Request): Response | Promise<Response>;
} {
  const { session, clock, bodies = new LargeBodies(clock), events = eventSource(session, clock) } = options;
  const env = { ...options, bodies, events, heartbeat: new Heartbeat(clock) };
  return { fetch: (request) => sessionRoutes.fetch(request, env) };
}

/** A session's events for its readers, with coalesced patches. */
export function eventSource(session: Session, clock: Clock): EventSource {
  const coalescer = new PatchCoalescer(clock, (listener) => session.listen(listener));
  return {
    events: (after) => session.events(after),
    openBlocks: () => session.openBlocks(),
    listen: (listener) => coalescer.listen(listener),
    hasEnded: (runId) => session.hasEnded(runId),
    isWaiting: (runId) => session.isWaiting(runId),
  };
}
