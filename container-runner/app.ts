/** The routes of the runner (R1): authentication and error answers. Makes no decisions about jobs. */
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { routePath } from 'hono/route';
import { parseAccept } from 'hono/utils/accept';
import type { Logger } from 'pino';

import type { Authority } from './auth.ts';
import { addEgressRoutes, type Egress } from './egress/routes.ts';
import { formatOf } from './exposition.ts';
import { eventStream } from './jobs/event-stream.ts';
import { interpreterOf, jobId, parseJob, parsePrewarm, sessionId } from './jobs/job.ts';
import { type Jobs, LOAD_HEADER } from './jobs/jobs.ts';
import type { JobRecord, Ledger } from './ledger/ledger.ts';
import { LedgerError } from './ledger/ledger-error.ts';
import { limits } from './limits.ts';
import type { OperatorLimits } from './operator-limits.ts';
import type { Metrics } from './metrics.ts';
import type { Prewarmer } from './prewarm.ts';
import { type ProblemCode, RunnerError } from './problem.ts';
import { tenantOf } from './fair-share.ts';
import type { Relics } from './relics/relics.ts';
import { addRelicRoutes } from './relics/routes.ts';
import type { SandboxRegistry } from './sandbox/registry.ts';
import type { StateFolder } from './state.ts';
import { parseTraceparent } from './telemetry/trace-context.ts';
import { SERVICE, VERSION } from './version.ts';
import type { FileCache } from './workspace/file-cache.ts';
import { signedPart, WorkspaceRoutes } from './workspace/routes.ts';

export interface AppParts {
  readonly jobs: Jobs;
  readonly ledger: Ledger;
  readonly state: StateFolder;
  readonly files: FileCache;
  readonly sandboxes: SandboxRegistry;
  readonly relics: Relics;
  readonly prewarmer: Prewarmer;
  /** Null when it is disabled. */
  readonly egress: Egress | null;
  readonly authority: Authority;
  readonly metrics: Metrics;
  readonly operatorLimits: OperatorLimits;
  readonly log: Logger;
  /** Aborted when the runner stops; ends the event streams. */
  readonly stopping: AbortSignal;
}

export function createApp(parts: AppParts): Hono {
  const { jobs, ledger, state, sandboxes, relics, prewarmer, authority, metrics, operatorLimits, log, stopping } =
    parts;
  const app = new Hono();

  app.onError((fault) => {
    if (fault instanceof RunnerError) return fault.toResponse();
    if (fault instanceof LedgerError) {
      log.error({ reason: fault.message }, 'the ledger failed');
      const headers = { 'retry-after': String(limits.ledgerRetrySeconds) };
      return new RunnerError('storage', fault.message, headers).toResponse();
    }
    log.error({ reason: fault.message, stack: fault.stack }, 'request failed');
    return new RunnerError('internal', 'The request failed because of an internal error').toResponse();
  });
  app.use(async (c, next) => {
    const startedAt = performance.now();
    await next();
    // the route's pattern, because ids would create a time series each
    const route = routePath(c, -1);
    metrics.requestAnswered(c.req.method, route, c.res.status);
    const ms = Math.round(performance.now() - startedAt);
    log.debug({ method: c.req.method, route, status: c.res.status, ms }, 'request');
  });
  app.notFound((c) => new RunnerError('not_found', `No route ${c.req.method} ${c.req.path}`).toResponse());

  app.get('/health', (c) => {
    const sandbox = sandboxes.report();
    const { running, queued } = jobs.counts;
    return c.json({
      status: stopping.aborted ? 'stopping' : jobs.draining ? 'draining' : 'healthy',
      service: SERVICE,
      version: VERSION,
      executors: [
        ...(sandbox.active.python3 === null ? [] : ['python']),
        ...(sandbox.active.shell === null ? [] : ['shell']),
        'tool',
        ...(sandbox.levels.some(({ level, interpreters }) => level === 'docker' && interpreters.length > 0)
          ? ['docker']
          : []),
        ...(relics.level === null ? [] : ['relic']),
      ],
      sandbox,
      relics: { level: relics.level, running: relics.running, max_running: operatorLimits.relics },
      jobs: {
        running,
        queued,
        max_running: operatorLimits.running,
        max_queued: operatorLimits.queued,
      },
      set_aside: state.setAsideNames(),
    });
  });
  app.get('/metrics', async (c) => {
    const { contentType, text } = await metrics.read(formatOf(parseAccept(c.req.header('accept') ?? '')));
    return c.body(text, 200, { 'content-type': contentType, vary: 'accept' });
  });

  const workspaces = new WorkspaceRoutes(parts.files, authority);
  workspaces.addUpload(app);

  // all routes below need a signed request
  app.use(
    bodyLimit({
      maxSize: limits.bodyBytes,
      onError: () => {
        throw new RunnerError('body_too_large', `The body is larger than ${limits.bodyBytes} bytes`);
      },
    }),
  );
  app.use(async (c, next) => {
    await authority.check(signedPart(c), new Uint8Array(await c.req.arrayBuffer()));
    await next();
  });

  app.put('/jobs/:id', async (c) => {
    const id = idOf(c.req.param('id'));
    const trace = parseTraceparent(c.req.header('traceparent'));
    const tenant = tenantOf(c.req.query('tenant'));
    try {
      const { record, created } = await jobs.submit(id, parseJob(await c.req.text()), tenant, trace);
      c.header(LOAD_HEADER, jobs.load);
      return c.json(summaryOf(record), created ? 202 : 200);
    } catch (fault) {
      metrics.jobRejected(codeOf(fault));
      throw fault;
    }
  });
  app.get('/jobs/:id', (c) => {
    const record = recordOf(c.req.param('id'));
    const workspace = ledger.workspace(record.id);
    return c.json({
      ...summaryOf(record),
      ...(workspace === null ? {} : { workspace }),
      stdout: ledger.printed(record.id, 'stdout'),
      stderr: ledger.printed(record.id, 'stderr'),
      last_seq: ledger.lastEvent(record.id),
    });
  });
  app.delete('/jobs/:id', (c) => {
    const id = idOf(c.req.param('id'));
    jobs.kill(id);
    return c.json(summaryOf(recordOf(id)), 202);
  });
  app.post('/prewarm', async (c) => {
    const request = parsePrewarm(await c.req.text());
    const { session, kind, sandbox } = request;
    const interpreter = interpreterOf(request);
    const held =
      kind === 'docker'
        ? prewarmer.holdImage(session, sandbox)
        : interpreter !== null && prewarmer.hold(session, interpreter, sandbox);
    return c.json({ held }, 202);
  });
  app.get('/events', (c) => {
    const session = sessionId.safeParse(c.req.query('session'));
    if (!session.success) throw new RunnerError('invalid_request', 'session: expected a session id');
    const after = c.req.query('after') ?? c.req.header('last-event-id');
    if (after !== undefined && !/^\d{1,15}$/.test(after)) {
      throw new RunnerError('invalid_request', 'after: expected the number of an event');
    }
    return eventStream(
      ledger,
      session.data,
      after === undefined ? null : Number(after),
      AbortSignal.any([stopping, c.req.raw.signal]),
    );
  });

  workspaces.addOthers(app);
  addRelicRoutes(app, relics);
  addEgressRoutes(app, parts.egress);

  function idOf(text: string): string {
    const id = jobId.safeParse(text);
    if (!id.success) throw new RunnerError('invalid_request', `job id: ${id.error.issues[0]?.message ?? 'not valid'}`);
    return id.data;
  }
  function recordOf(text: string): JobRecord {
    const id = idOf(text);
    const record = ledger.job(id);
    if (record === null) throw new RunnerError('unknown_job', `No job ${JSON.stringify(id)}`);
    return record;
  }
  return app;
}

function codeOf(fault: unknown): ProblemCode {
  if (fault instanceof RunnerError) return fault.code;
  return fault instanceof LedgerError ? 'storage' : 'internal';
}

function summaryOf(record: JobRecord): Record<string, unknown> {
  return {
    id: record.id,
    session: record.session,
    kind: record.kind,
    state: record.state,
    sandbox: record.sandbox,
    created_at: record.createdAt,
    started_at: record.startedAt,
    ended_at: record.endedAt,
    end: record.end,
    exit_code: record.exitCode,
    truncated: record.truncated,
  };
}
