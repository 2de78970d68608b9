/** Whether commands ask the running system, which knows uploaded manifests, or read the bundled ones. */
import type { CommandCall } from '../command.ts';
import { readCodeTools, rightsOf } from '../project/code-tools.ts';
import { enterProject, PROJECT_ROOT } from '../project/folders.ts';
import { checkManifests, projectFolders } from '../project/manifest-files.ts';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';
import { connectionOf, namedConnectionOf, request } from './connection.ts';
import type { Connection, ConnectionSource } from './connection.ts';

/** A system on this machine answers at once. */
const HEALTH_MS = 2_000;

/** Asks the running system. @throws Unreachable or Refusal */
export type Ask = (path: string, init?: RequestInit) => Promise<Response>;

/**
 * Says on stderr which of the two is used.
 *
 * @returns null if no system is running on this machine
 * @throws UsageError for an address or an API key that cannot be used
 */
export async function runningSystem(call: ConnectionSource): Promise<Ask | null> {
  const named = namedConnectionOf(call);
  const connection = named ?? connectionOf(call);
  // A system that was named is meant: the project's manifests would be another answer.
  if (named !== null || (await isRunning(connection))) {
    call.tell(`from the running system at ${connection.url}`);
    return async (path, init) => await request(connection, path, init);
  }
  call.tell(`from the folder manifests/, because no system is running at ${connection.url}`);
  return null;
}

async function isRunning({ url }: Connection): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(HEALTH_MS) });
    const health: unknown = await response.json();
    return typeof health === 'object' && health !== null && 'service' in health && health.service === 'cortex-edge';
  } catch {
    return false;
  }
}

/** @throws Error with the nearest names for a name that no bundled agent has */
export function bundledAgent(name: string, call: Pick<CommandCall, 'values'>): ResolvedAgent {
  enterProject();
  const { catalog: bundled } = checkManifests(projectFolders(), null, readCodeTools(PROJECT_ROOT, rightsOf(call)));
  const found = bundled.agent(name);
  if (found !== null) return found;
  const near = bundled.nearest('agent', name).map((one) => `"${one}"`);
  const known = bundled.list('agent').map((agent) => agent.name);
  const hint = near.length === 0 ? '' : `did you mean ${near.join(' or ')}? `;
  throw new Error(`unknown agent "${name}" (${hint}known: ${known.join(', ')})`);
}
