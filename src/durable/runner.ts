/** Settings -> the runner's client. */
import type { RunnerClient } from '../domain/ports.ts';
import { createRunnerClient } from '../executors/runner-client.ts';
import { newId, platformClock } from './platform.ts';
import type { Settings } from './settings.ts';

/** Null when no runner is configured: python, shell and script tools then fail with a message that says so. */
export function runnerOf(settings: Settings): RunnerClient | null {
  const [baseUrl] = settings.runners;
  if (baseUrl === undefined || settings.runnerSecret === null) return null;
  return createRunnerClient({
    baseUrl,
    secret: settings.runnerSecret,
    fetch: (input, init) => fetch(input, init),
    clock: platformClock,
    newNonce: () => newId('run'),
  });
}
