/** Settings -> the runners' client. */
import { limits } from '../domain/limits.ts';
import type { RunnerClient } from '../domain/ports.ts';
import { createRunnerClient } from '../executors/runner-client.ts';
import { createRunnerPool } from '../executors/runner-pool.ts';
import { newId, platformClock } from './platform.ts';
import type { Settings } from './settings.ts';

/** Null when no runner is configured: python, shell and script tools then fail with a message that says so. */
export function runnerOf({ runners, runnerKey, runnerHeaders, containers }: Settings): RunnerClient | null {
  if (runners.length === 0 || runnerKey === null) return null;
  const reach = (input: string, init: RequestInit): Promise<Response> =>
    containers === null
      ? fetch(input, { ...init, headers: { ...runnerHeaders, ...(init.headers as Record<string, string>) } })
      : containers.getByName(new URL(input).hostname).fetch(input, init);
  return createRunnerPool({
    runners,
    clock: platformClock,
    connect: (baseUrl) =>
      createRunnerClient({
        baseUrl,
        key: runnerKey,
        fetch: reach,
        clock: platformClock,
        newNonce: () => newId('run'),
        ...(runners.length > 1 ? { moveAfterMs: limits.runnerMoveMs } : {}),
      }),
  });
}
