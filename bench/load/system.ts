/** One local system under load: its Worker in workerd, the process of the model and the tool, and what they use. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { startHost } from '../sessions/host.ts';
import type { Host } from '../sessions/host.ts';
import { collectedMemory } from '../sessions/memory.ts';
import type { HostMemory } from '../sessions/memory.ts';
import type { ServersMessage } from './servers.ts';

export interface Dispatch {
  /** From the closing tag to the call, in ms, by call. */
  readonly ms: readonly number[];
  /** Calls that did not arrive. */
  readonly missing: number;
}

export interface LoadSystem extends AsyncDisposable {
  readonly base: string;
  usage: Host['usage'];
  /** Collects garbage; then the resident memory of workerd and the JavaScript heap of the isolate, in KiB. */
  memory(): Promise<HostMemory>;
  /** The calls since the last time. */
  dispatch(): Promise<Dispatch>;
}

async function message<T extends ServersMessage['type']>(
  child: ChildProcess,
  type: T,
): Promise<Extract<ServersMessage, { type: T }>> {
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the process of the model has ended')));
  const [said] = (await Promise.race([once(child, 'message'), ended])) as [ServersMessage];
  if (said.type !== type) throw new Error(`expected the message "${type}", not "${said.type}"`);
  return said as Extract<ServersMessage, { type: T }>;
}

export async function startLoadSystem(): Promise<LoadSystem> {
  const servers = fork(fileURLToPath(new URL('servers.ts', import.meta.url)), { stdio: 'inherit' });
  const stopServers = (): void => servers.disconnect();
  try {
    const { modelUrl, toolHost } = await message(servers, 'ready');
    const host = await startHost(modelUrl, {
      folder: join(PACKAGE_ROOT, 'bench/load'),
      vars: { ALLOW_HOSTS: toolHost },
    });
    return {
      base: host.base,
      usage: host.usage,
      memory: () => collectedMemory(host),
      async dispatch() {
        servers.send('take');
        return await message(servers, 'dispatch');
      },
      async [Symbol.asyncDispose]() {
        await host.stop();
        stopServers();
      },
    };
  } catch (fault) {
    stopServers();
    throw fault;
  }
}
