/** Connects to the Docker engine of this machine. */
import Docker from 'dockerode';

import { limits } from '../limits.ts';

/** Label prefix of everything that a runner creates in the engine. */
export const LABEL = 'cortex-edge';

/**
 * Connects to the engine and checks its version.
 *
 * @param socket path of the engine's socket; null = `DOCKER_HOST`, or else the default
 * @throws Error with a message for users if no engine answers
 */
export async function connectEngine(socket: string | null): Promise<Docker> {
  const docker = new Docker(socket === null ? {} : { socketPath: socket });
  const { OSType: system } = await within(limits.engineMs, docker.version()).then(
    (version) => ({ OSType: version.Os }),
    (fault: unknown) => {
      throw new Error(`no Docker engine is reachable: ${messageOf(fault)}`);
    },
  );
  if (system !== 'linux') throw new Error(`the Docker engine runs ${system} containers; Linux containers are required`);
  return docker;
}

/** Rejects after a timeout, because an engine may hang. */
export function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${milliseconds} ms`)), milliseconds);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The HTTP status of the engine's error; null if there was no answer. */
export function statusOf(fault: unknown): number | null {
  return fault instanceof Error && 'statusCode' in fault && typeof fault.statusCode === 'number'
    ? fault.statusCode
    : null;
}

/** The engine's error message without the client's prefix. */
export function messageOf(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  const message = 'json' in fault ? (fault.json as { readonly message?: unknown } | null)?.message : undefined;
  return typeof message === 'string' ? message : fault.message;
}
