/** The routes of the Worker without sessions and workflows. A test replaces the parts that it covers. */
import { createHash } from 'node:crypto';
import { ThreadShare, FairQueue } from '../../src/domain/fair-queue.ts';
import { WorkMeter } from '../../src/domain/work.ts';
import { createApp } from '../../src/http/app.ts';
import type { AppOptions } from '../../src/http/app.ts';
import type { ManifestHost } from '../../src/http/manifest-host.ts';
import { Tokens } from '../../src/http/tokens.ts';
import type { WorkflowHost } from '../../src/http/routes/workflows.ts';
import { instantClock } from '../../testing/instant-clock.ts';

const nothing = async (): Promise<never> => await Promise.reject(new Error('not called'));

export const noWorkflows: WorkflowHost = {
  now: () => 0,
  newSessionId: async () => `ses_${'0'.repeat(32)}`,
  sessionIdOf: async (start) => `ses_${createHash('md5').update(start).digest('hex')}`,
  find: () => Promise.resolve(null),
  list: () => Promise.resolve([]),
  secret: () => null,
  paced: async (_owner, steps, work) => work(new WorkMeter(steps)),
  start: nothing,
  create: nothing,
  schedules: () => Promise.resolve([]),
};

/** An empty catalog. */
export const noManifests: ManifestHost = {
  list: async () => [],
  get: nothing,
  put: nothing,
  remove: nothing,
  upload: nothing,
  replace: nothing,
  validate: nothing,
  exposed: nothing,
  graph: nothing,
};

export function edgeApp(options: Partial<AppOptions> = {}): ReturnType<typeof createApp> {
  const { now = (): number => 0 } = options;
  return createApp({
    shareOf: (owner) => new ThreadShare(new FairQueue(instantClock()), () => owner),
    withServers: async (agent) => agent,
    version: '0',
    auth: { keys: [], allowedOrigins: [] },
    tokens: new Tokens(() => '', now),
    now,
    newSessionId: async () => `ses_${'1'.repeat(32)}`,
    mayBeSession: async () => true,
    agent: async () => null,
    manifests: noManifests,
    createSession: nothing,
    openSession: nothing,
    forkSession: nothing,
    forward: nothing,
    workflows: noWorkflows,
    executions: nothing,
    approvals: nothing,
    directory: nothing,
    facts: { read: nothing, change: nothing, lookup: nothing },
    status: nothing,
    log: () => undefined,
    ...options,
  });
}
