/** A Docker engine for the tests: the running one, or one that is started here (if installed) and stopped at the end. */
import { mkdirSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startService, stopService } from '../cli/system/services.ts';

const DEFAULT_SOCKET = '/var/run/docker.sock';
const START_MS = 60_000;
const STOP_MS = 20_000;

export interface TestEngine {
  /** Null for the default socket. */
  readonly socket: string | null;
  stop(): Promise<void>;
}

/**
 * @param directory data directory of an engine that is started here; reused by the next run
 * @returns the engine, or the reason why there is none
 */
export async function openEngine(directory: string): Promise<TestEngine | string> {
  const named = process.env['DOCKER_HOST'] ?? '';
  if (named !== '') return { socket: null, stop: () => Promise.resolve() };
  if (await answers(DEFAULT_SOCKET)) return { socket: null, stop: () => Promise.resolve() };
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'no Docker engine is running, and only root can start one';
  mkdirSync(directory, { recursive: true });
  // the path of a socket is limited to about a hundred characters
  const run = `/run/cortex-edge-${process.pid}`;
  mkdirSync(run, { recursive: true });
  const socket = join(run, 'docker.sock');
  const service = startService(
    'dockerd',
    'dockerd',
    [
      `--host=unix://${socket}`,
      `--data-root=${join(directory, 'data')}`,
      `--exec-root=${join(run, 'exec')}`,
      `--pidfile=${join(run, 'docker.pid')}`,
    ],
    { cwd: '/', env: process.env, echo: () => false },
  );
  const stop = async (): Promise<void> => {
    await stopService(service, STOP_MS);
    rmSync(run, { recursive: true, force: true });
  };
  const ended = new AbortController();
  void service.exited.then(() => ended.abort());
  for (const deadline = Date.now() + START_MS; Date.now() < deadline && !ended.signal.aborted; await delay(100)) {
    if (await answers(socket)) return { socket, stop };
  }
  await stop();
  return !ended.signal.aborted
    ? `the Docker engine did not answer within ${START_MS / 1_000} s`
    : `the Docker engine is not installed or does not start here: ${service.tail.at(-1) ?? 'no message'}`;
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asking = request({ socketPath, path: '/_ping', timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asking.once('error', () => resolve(false));
    asking.once('timeout', () => asking.destroy());
    asking.end();
  });
}
