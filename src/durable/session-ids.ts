/**
 * Ids of sessions: `ses_`, 96 bits that are random or come of what started the session, and a check of 32 bits that only
 * this deployment can make. An id that somebody has made up is known by itself: no object is made to look for it, which
 * would leave a file in the state folder for each.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { identityOf } from './objects/identity-object.ts';
import { newId } from './platform.ts';
import type { Env } from './settings.ts';

const BODY_CHARS = 24;
const CHECK_CHARS = 8;
const SESSION_ID = /^ses_[0-9a-f]{32}$/;

const encoder = new TextEncoder();

/** A new id. */
export async function newSessionId(env: Env): Promise<string> {
  return await withCheck(env, newId('ses'));
}

/** The id of the session that this starts: the same for the same start. */
export async function sessionIdOf(env: Env, start: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(start));
  return await withCheck(env, `ses_${bytesToHex(new Uint8Array(digest)).slice(0, BODY_CHARS + CHECK_CHARS)}`);
}

/** False = there never was a session with this id. */
export async function mayBeSession(env: Env, id: string): Promise<boolean> {
  if (!SESSION_ID.test(id)) return false;
  const expected = await withCheck(env, id);
  let difference = 0;
  for (let at = 0; at < id.length; at += 1) difference |= id.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

/** The same id with its check; as it is where ids carry none. */
async function withCheck(env: Env, id: string): Promise<string> {
  const { secret, checked } = await identityOf(env);
  if (!checked) return id;
  const body = id.slice(0, -CHECK_CHARS);
  const key = await keyOf(secret);
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(body)));
  return body + bytesToHex(signature).slice(0, CHECK_CHARS);
}

let imported: { readonly secret: string; readonly key: CryptoKey } | null = null;

async function keyOf(secret: string): Promise<CryptoKey> {
  if (imported?.secret !== secret) {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
    imported = { secret, key };
  }
  return imported.key;
}
