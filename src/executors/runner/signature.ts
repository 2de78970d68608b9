/** Signs requests to a runner (R7): a short-lived JWT over the method, the target and the body. */
import { sign } from 'hono/jwt';

import { limits } from '../../domain/limits.ts';
import type { SigningKey } from './list.ts';

const AUDIENCE = 'cortex-runner';
export interface Signable {
  readonly method: string;
  readonly url: URL;
  /** A text is signed as UTF-8. */
  readonly body: string | Uint8Array;
}

/**
 * @param nonce at least 16 characters, unique
 * @param at epoch milliseconds
 */
export async function tokenOf(
  { method, url, body }: Signable,
  key: SigningKey,
  nonce: string,
  at: number,
): Promise<string> {
  const seconds = Math.floor(at / 1_000);
  return await sign(
    {
      aud: AUDIENCE,
      iat: seconds,
      exp: seconds + limits.runnerTokenSeconds,
      jti: nonce,
      htm: method,
      htu: url.pathname + url.search,
      hst: url.host,
      bod: await hashOf(body),
    },
    jwkOf(key),
    'HS256',
  );
}

/** A plain secret if it has no id; the runner finds a named one by the token's `kid`. */
function jwkOf({ id, secret }: SigningKey): Parameters<typeof sign>[1] {
  if (id === null) return secret;
  return { kty: 'oct', alg: 'HS256', kid: id, k: base64Url(new TextEncoder().encode(secret)) };
}

async function hashOf(body: Signable['body']): Promise<string> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : (body as Uint8Array<ArrayBuffer>);
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return base64Url(new Uint8Array(digest));
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
