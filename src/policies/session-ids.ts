/**
 * Session ids: `ses_`, 96 bits that are random or derived from a start key, and a 32-bit check that only this
 * deployment can compute. An invented id is detected without creating its object, which would leave a file in the state
 * folder.
 */
import { bytesToHex } from '@noble/hashes/utils.js';

export interface Identity {
  /** Hex key for the check of session ids. */
  readonly secret: string;
}

const BODY_CHARS = 24;
const CHECK_CHARS = 8;
const SESSION_ID = /^ses_[0-9a-f]{32}$/;

const encoder = new TextEncoder();

/** The session id for a start key; the same key always gives the same id. */
export async function derivedSessionId(identity: Identity, start: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(start));
  const id = `ses_${bytesToHex(new Uint8Array(digest)).slice(0, BODY_CHARS + CHECK_CHARS)}`;
  return await withCheck(identity, id);
}

/** False means that no session with this id can exist. */
export async function isSessionId(identity: Identity, id: string): Promise<boolean> {
  if (!SESSION_ID.test(id)) return false;
  const expected = await withCheck(identity, id);
  let difference = 0;
  for (let at = 0; at < id.length; at += 1) difference |= id.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

/** Replaces the last characters of an id by its check. */
export async function withCheck({ secret }: Identity, id: string): Promise<string> {
  const body = id.slice(0, -CHECK_CHARS);
  const signature = await crypto.subtle.sign('HMAC', await keyOf(secret), encoder.encode(body));
  return body + bytesToHex(new Uint8Array(signature)).slice(0, CHECK_CHARS);
}

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

let imported: { readonly secret: string; readonly key: Key } | null = null;

async function keyOf(secret: string): Promise<Key> {
  if (imported?.secret !== secret) {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
    imported = { secret, key };
  }
  return imported.key;
}
