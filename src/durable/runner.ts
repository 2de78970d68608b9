/** Creates the runner client from the settings. */
import { limits } from '../domain/limits.ts';
import { sessionKey } from '../domain/session.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { FileFetch, OutboundFetch } from '../domain/ports/outbound.ts';
import type { RunnerClient } from '../domain/ports/runner.ts';
import { createRunnerEgress } from '../executors/outbound/egress.ts';
import { namespaceOf, namespacesOf } from '../http/api-keys.ts';
import type { Egress } from '../executors/outbound/egress.ts';
import { createFileFetch } from '../executors/outbound/file-fetch.ts';
import { createOutboundFetch } from '../executors/outbound/outbound.ts';
import { createRunnerClient } from '../executors/runner/client.ts';
import { createRunnerPool } from '../executors/runner/pool.ts';
import { RunnerRecord } from '../executors/runner/record.ts';
import { RunnerWatch } from '../executors/runner/watch.ts';
import { loggerOf } from './log.ts';
import type { Network } from './network.ts';
import { newId, platformClock } from './platform.ts';
import type { Settings } from '../settings/settings.ts';
import type { Env } from './env.ts';

/** Shared by all objects of this thread. */
const watch = new RunnerWatch(platformClock.now);
/** What this thread knows about each runner, by its URL. Runners come from the settings, so they are few. */
const records = new Map<string, RunnerRecord>();

function recordOf(url: string): RunnerRecord {
  const known = records.get(url);
  if (known !== undefined) return known;
  const record = new RunnerRecord();
  records.set(url, record);
  return record;
}

type Reach = (input: string, init: RequestInit) => Promise<Response>;

/** @param fetch which connections it uses; containers are reached by calls of objects, which need none */
function reachOf(
  { RUNNERS: containers }: Env,
  { hasContainers, runnerHeaders }: Settings,
  fetch: Network['tools'],
): Reach {
  return (input, init) =>
    containers === undefined || !hasContainers
      ? fetch(input, { ...init, headers: { ...runnerHeaders, ...(init.headers as Record<string, string>) } })
      : containers.getByName(new URL(input).hostname).fetch(input, init);
}

/**
 * Null if no runner is configured: python, shell and script tools then fail with a message that explains it.
 *
 * @param owner the owner of the calling session
 */
export function runnerOf(
  env: Env,
  settings: Settings,
  { services }: Network,
  owner: () => string | null = () => null,
): RunnerClient | null {
  const { runners, runnerKey } = settings;
  if (runners.length === 0 || runnerKey === null) return null;
  const log = loggerOf(env);
  return createRunnerPool({
    runners,
    clock: platformClock,
    random: Math.random,
    recordOf,
    connect: (baseUrl, reports) =>
      createRunnerClient({
        baseUrl,
        reports,
        key: runnerKey,
        fetch: reachOf(env, settings, services),
        clock: platformClock,
        tenant: () => tenantOf(settings, owner()),
        newNonce: () => newId('run'),
        contacted: (answered) => watch.contact(baseUrl, answered, log),
        ...(runners.length > 1 ? { moveAfterMs: limits.runnerMoveMs } : {}),
      }),
  });
}

/** The namespace of an owner, if several share the runners. */
function tenantOf({ keys }: Settings, owner: string | null): string | null {
  return namespacesOf(keys).length > 1 ? namespaceOf(keys, owner) : null;
}

/** Requests of tools, under the operator's rules (X2). @param egress undefined if the platform sends them */
export function outboundOf({ allowHosts }: Settings, { tools }: Network, egress: Egress | undefined): OutboundFetch {
  return createOutboundFetch({ fetch: tools, allowHosts, egress, clock: platformClock });
}

/** Requests for files of messages, under the same rules (C2). */
export function fileFetchOf({ allowHosts }: Settings, { tools }: Network, egress: Egress | undefined): FileFetch {
  return createFileFetch({ fetch: tools, allowHosts, egress, clock: platformClock });
}

/** Undefined if the platform sends the requests of tools. */
export function egressOf(
  env: Env,
  settings: Settings,
  { tools }: Network,
  session: () => Pick<SessionRecord, 'session_id' | 'incarnation' | 'owner'>,
): Egress | undefined {
  if (settings.egress === 'platform') return undefined;
  return createRunnerEgress({
    runners: settings.runners,
    key: settings.runnerKey,
    fetch: reachOf(env, settings, tools),
    clock: platformClock,
    newNonce: () => newId('run'),
    session: () => sessionKey(session()),
    tenant: () => tenantOf(settings, session().owner),
  });
}
