/** Workflows on the platform: their definitions, their secrets, their sessions, their schedules (M6). */
import { bundled } from './project.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { StartedBy } from '../domain/ports/children.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { WorkflowHost } from '../http/routes/workflows.ts';
import { catalogRevisions, workflowOf, workflowsOf } from './catalogs.ts';
import { ThreadShare } from '../domain/fair-queue.ts';
import { Pacer } from '../domain/work.ts';
import { platformClock, platformQueue } from './platform.ts';
import { firstOwner } from '../http/api-keys.ts';
import { schedulesOf } from '../policies/schedule-times.ts';
import { apiKeysOf } from '../settings/keys.ts';
import { secretFor } from '../settings/secrets.ts';
import { objectName } from '../domain/owner.ts';
import type { Env } from './env.ts';
import { newSessionId, sessionIdOf } from './session-ids.ts';

const pacerOf = (owner: string | null): Pacer => new Pacer(new ThreadShare(platformQueue, () => owner));

export function workflowHost(env: Env): WorkflowHost {
  return {
    now: platformClock.now,
    newSessionId: () => newSessionId(env),
    sessionIdOf: (start) => sessionIdOf(env, start),
    find: (name, owner) => workflowOf(env, owner, name),
    list: (owner) => workflowsOf(env, owner),
    secret: (name, owner, common) => {
      const read = secretFor(env, owner, common)(name);
      return read.ok ? read.value : null;
    },
    create: (record) => env.SESSIONS.getByName(record.session_id).create(record, {}),
    paced: (owner, steps, work) => pacerOf(owner).once(steps, work),
    start: async (record, inputs, how) => {
      const steps = limits.childStartSteps;
      await pacerOf(record.owner).once(steps, (meter) => meter.charge(steps));
      return await startWorkflow(env, record, inputs, how);
    },
    schedules: async (owner, count) => {
      const common = owner === firstOwner(apiKeysOf(env)) ? ['bundled'] : [];
      const names = [objectName(owner), ...common];
      const found = await Promise.all(names.map((name) => env.SCHEDULES.getByName(name).outlook(count)));
      return found.flat();
    },
  };
}

/** Starts a workflow's session, once per session id. */
export async function startWorkflow(
  env: Env,
  record: SessionRecord,
  inputs: JsonObject,
  how: StartedBy = {},
): Promise<string> {
  const request = {
    key: record.session_id,
    type: 'workflow',
    name: record.agent,
    message: '',
    inputs,
    budget: null,
    ...how,
  } as const;
  const session = env.SESSIONS.getByName(record.session_id);
  return await session.startChild(record, request, catalogRevisions.of(record.owner));
}

const scheduled = new WeakSet<Env>();

/** Sends the bundled schedules to their object, once per isolate; the object stores them (M6). */
export async function keepSchedules(env: Env): Promise<void> {
  if (scheduled.has(env)) return;
  scheduled.add(env);
  await env.SCHEDULES.getByName('bundled').keep(schedulesOf(bundled().data.workflows), firstOwner(apiKeysOf(env)));
}
