/** The stateless Worker: creates the options of the HTTP surface from the environment. */
import { ThreadShare } from '../domain/fair-queue.ts';
import { withMcpTools } from '../catalog/store/pinned-mcp.ts';
import { VERSION } from '../domain/version.ts';
import { executorList } from '../executors/registry.ts';
import { describeAbsence } from '../executors/runner/wait.ts';
import { createApp } from '../http/app.ts';
import { runnerState } from '../http/health.ts';
import type { MissingPart } from '../http/health.ts';
import { PRINCIPAL_HEADER, REVISION_HEADER } from '../http/session-env.ts';
import { Tokens } from '../http/tokens.ts';
import { allOpenApprovals } from './approvals.ts';
import { agentOf, catalogRevisions, copyOf, manifestHost } from './catalogs.ts';
import { listExecutions, listSessions } from './directory.ts';
import { mcpAccess } from './mcp.ts';
import { describeModel } from './model.ts';
import { invocationNetwork } from './network.ts';
import { platformBodies, platformClock, platformQueue } from './platform.ts';
import { egressOf, runnerOf } from './runner.ts';
import { mayBeSession, newSessionId } from './session-ids.ts';
import { settingIssues } from '../settings/setting-issues.ts';
import { readSettings } from '../settings/settings.ts';
import { objectName } from '../domain/owner.ts';
import type { Env } from './env.ts';
import { loggerOf } from './log.ts';
import { valueOf } from './reply.ts';
import { statusOf } from './status.ts';
import { userFacts } from './user-facts.ts';
import { keepSchedules, workflowHost } from './workflows.ts';

type App = ReturnType<typeof createApp>;
const apps = new WeakMap<Env, App>();

function appFor(env: Env): App {
  const known = apps.get(env);
  if (known !== undefined) return known;
  const settings = readSettings(env);
  const log = loggerOf(env);
  for (const message of settingIssues(env, env.AI ?? null)) log('setting_invalid', { message });
  const startedAt = platformClock.now();
  let runnerWorked = false;
  const app = createApp({
    version: VERSION,
    auth: settings,
    tokens: new Tokens(settings.tokenSecret, platformClock.now),
    now: platformClock.now,
    bodies: platformBodies,
    debugPrompts: settings.debugPrompts,
    newSessionId: () => newSessionId(env),
    mayBeSession: (id) => mayBeSession(env, id),
    agent: (name, owner) => agentOf(env, owner, name),
    withServers: async (agent, owner) => {
      // Like a session of its own: it shares no connections with others.
      const network = invocationNetwork(settings);
      const egress = egressOf(env, settings, network, () => ({ session_id: 'agents', owner }));
      const found = await mcpAccess(env, settings, network, egress).toolsOf(agent, owner);
      return found === null ? agent : withMcpTools(agent, found);
    },
    manifests: manifestHost(env),
    createSession: (record, state, history) =>
      env.SESSIONS.getByName(record.session_id).create(record, state, history, copyOf(record)),
    openSession: async (record, state, history) =>
      valueOf(await env.SESSIONS.getByName(record.session_id).open(record, state, history, copyOf(record))),
    forkSession: async (record, from) => valueOf(await env.SESSIONS.getByName(record.session_id).fork(record, from)),
    forward: (sessionId, path, request) => {
      const forwarded = new Request(`http://session${path}`, request);
      const revision = catalogRevisions.of(request.headers.get(PRINCIPAL_HEADER));
      if (revision > 0) forwarded.headers.set(REVISION_HEADER, String(revision));
      return env.SESSIONS.getByName(sessionId).fetch(forwarded);
    },
    catalogRevisions,
    workflows: workflowHost(env),
    shareOf: (owner) => new ThreadShare(platformQueue, () => owner),
    approvals: (owner, page) => allOpenApprovals(env, owner, page),
    directory: (owner, page) => listSessions(env, owner, page),
    facts: userFacts(env),
    executions: (owner, page) => listExecutions(env, owner, page),
    status: async (owner) => {
      // One for each request: a request must not wait for the answer of another one.
      const runners = runnerOf(env, settings, invocationNetwork(settings));
      const runner = (await runners?.health()) ?? null;
      // A container that sleeps starts with the first job.
      const works = runner?.['status'] === 'healthy' || runner?.['status'] === 'asleep';
      const missing: MissingPart[] =
        runners === null || works
          ? []
          : [
              {
                part: 'runner',
                state: runnerState(runner),
                reason: describeAbsence(runner),
                workedBefore: runnerWorked,
                upMs: platformClock.now() - startedAt,
              },
            ];
      runnerWorked ||= works;
      const endpoints = await statusOf(env, 'endpoints', objectName(owner))
        .failingEndpoints()
        .catch(() => []);
      const { setAside } = settings;
      const model = describeModel(env, settings);
      return { executors: executorList(runner), model, endpoints, runner, missing, setAside };
    },
    log,
  });
  apps.set(env, app);
  return app;
}

export const edge: ExportedHandler<Env> = {
  fetch: (request, env, ctx) => {
    ctx.waitUntil(keepSchedules(env));
    return appFor(env).fetch(request);
  },
};
