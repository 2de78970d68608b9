/** The Docker engine of this machine, or why there is none. */
import Docker from 'dockerode';

import { limits } from '../limits.ts';

/** What marks everything that a runner makes in the engine. */
export const LABEL = 'cortex-edge';

/**
 * Connects and asks for its version.
 *
 * @param socket path of the engine's socket; null = as `DOCKER_HOST` says, else where engines listen
 * @throws Error in words for people, when none answers
 */
export async function connectEngine(socket: string | null): Promise<Docker> {
  const docker = new Docker(socket === null ? {} : { socketPath: socket });
  const { OSType: system } = await within(limits.engineMs, docker.version()).then(
    (version) => ({ OSType: version.Os }),
    (fault: unknown) => {
      throw new Error(`no Docker engine answers: ${messageOf(fault)}`);
    },
  );
  if (system !== 'linux') throw new Error(`the Docker engine runs ${system} containers; linux is needed`);
  return docker;
}

/** Waits no longer than this: an engine that hangs must not make us hang. */
export function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer in ${milliseconds} ms`)), milliseconds);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The HTTP status of the engine's refusal; null when it said nothing. */
export function statusOf(fault: unknown): number | null {
  return fault instanceof Error && 'statusCode' in fault && typeof fault.statusCode === 'number'
    ? fault.statusCode
    : null;
}

/** What the engine said, without the frame that its client puts around it. */
export function messageOf(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  const said = 'json' in fault ? (fault.json as { readonly message?: unknown } | null)?.message : undefined;
  return typeof said === 'string' ? said : fault.message;
}
