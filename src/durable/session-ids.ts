/** Ids of this deployment's sessions: the identity object's secret under the rules of policies/session-ids.ts. */
import { derivedSessionId, isSessionId, withCheck } from '../policies/session-ids.ts';
import type { Identity } from '../policies/session-ids.ts';
import type { Env } from './env.ts';
import { newId } from './platform.ts';

/** A new id. */
export async function newSessionId(env: Env): Promise<string> {
  return await withCheck(await identityOf(env), newId('ses'));
}

/** The id of the session that this starts: the same for the same start. */
export async function sessionIdOf(env: Env, start: string): Promise<string> {
  return await derivedSessionId(await identityOf(env), start);
}

/** False = there never was a session with this id. */
export async function mayBeSession(env: Env, id: string): Promise<boolean> {
  return await isSessionId(await identityOf(env), id);
}

let known: Identity | null = null;

/**
 * Asked once in the life of an isolate: it never changes. The answer is kept and not its promise, which would never
 * settle where the request that asked first is cancelled.
 */
export async function identityOf(env: Env): Promise<Identity> {
  known ??= await env.IDENTITY.getByName('deployment').identity();
  return known;
}
