/** Session ids of this deployment: combines their key with the rules of policies/session-ids.ts. */
import { derivedSessionId, isSessionId, withCheck } from '../policies/session-ids.ts';
import type { Identity } from '../policies/session-ids.ts';
import type { Env } from './env.ts';
import { newId } from './platform.ts';
import { statusOf } from './status.ts';

/** A new id. */
export async function newSessionId(env: Env): Promise<string> {
  return await withCheck(await identityOf(env), newId('ses'));
}

/** The session id for a start key; the same key always gives the same id. */
export async function sessionIdOf(env: Env, start: string): Promise<string> {
  return await derivedSessionId(await identityOf(env), start);
}

/** False means that no session with this id can exist. */
export async function mayBeSession(env: Env, id: string): Promise<boolean> {
  return await isSessionId(await identityOf(env), id);
}

let known: Identity | null = null;

/**
 * Fetched once per isolate, because it never changes. The value is cached, not its promise: the promise would never
 * settle if the first request is cancelled.
 */
async function identityOf(env: Env): Promise<Identity> {
  known ??= await statusOf(env, 'identity', 'deployment').identity();
  return known;
}
