/** Keys for checking signed requests (R7): one secret, or several with ids for key rotation. */
import { limits } from './limits.ts';

export interface Key {
  /** The `kid` of a token; null for a secret without an id. */
  readonly id: string | null;
  readonly secret: Uint8Array;
}

const NAMED = /^([A-Za-z0-9][\w.-]{0,31})=(.{32,})$/;

/**
 * Reads a secret, or a list of `id=secret` separated by commas; a plain secret may end with the `=` of base64.
 *
 * @throws Error that names a key that is too short, or a duplicate id
 */
export function parseKeys(text: string): Key[] {
  const pieces = text.split(/[\s,]+/).filter(Boolean);
  const named = NAMED.test(pieces[0] ?? '');
  const keys = (named ? pieces : [text]).map((piece) => {
    const [, id = null, secret = piece] = (named ? NAMED.exec(piece) : null) ?? [];
    if (secret.length < limits.secretChars) {
      throw new Error(`${id ?? 'a secret'} must have at least ${limits.secretChars} characters`);
    }
    return { id, secret: new TextEncoder().encode(secret) };
  });
  const twice = keys.find(({ id }, at) => keys.findIndex((other) => other.id === id) !== at);
  if (twice !== undefined) throw new Error(`${twice.id ?? 'a secret without an id'} is a duplicate`);
  return keys;
}
