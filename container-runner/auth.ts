/**
 * Who may give orders (R7): requests carry a short-lived JWT (HS256) over the method, the path with its
 * query, and the hash of the body. Each token is good once.
 */
import { createHash } from 'node:crypto';

import { errors, jwtVerify } from 'jose';

import type { Ledger } from './ledger.ts';
import { limits } from './limits.ts';
import { Refusal } from './problem.ts';

const AUDIENCE = 'cortex-runner';

export interface SignedRequest {
  readonly method: string;
  /** Path and query as they were sent. */
  readonly target: string;
  readonly authorization: string | null;
  readonly body: string;
}

export interface Authority {
  /** @throws Refusal `unauthorized`, which says what is wrong and nothing about the secret */
  check(request: SignedRequest): Promise<void>;
}

/**
 * @param secret shared with the Worker
 * @param ledger remembers spent tokens, also over a restart
 * @param now epoch milliseconds
 */
export function createAuthority(secret: string, ledger: Ledger, now: () => number): Authority {
  const key = new TextEncoder().encode(secret);
  return {
    async check({ method, target, authorization, body }) {
      const [scheme, token] = authorization?.split(' ') ?? [];
      if (scheme?.toLowerCase() !== 'bearer' || token === undefined) refuse('it carries no token');
      const claims = await verify(token, key, now());
      if (claims['htm'] !== method) refuse('it was signed for another method');
      if (claims['htu'] !== target) refuse('it was signed for another path');
      if (claims['bod'] !== createHash('sha256').update(body, 'utf8').digest('base64url')) {
        refuse('its body is not the one that was signed');
      }
      const { iat, exp, jti } = claims;
      if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > limits.tokenSeconds) {
        refuse(`it is signed for longer than ${limits.tokenSeconds} s`);
      }
      if (typeof jti !== 'string' || jti.length < 16 || jti.length > 128) refuse('its token has no id');
      if (!ledger.spend(jti, (exp + limits.clockSkewSeconds) * 1_000)) refuse('its token was used before');
    },
  };
}

async function verify(token: string, key: Uint8Array, at: number): Promise<Record<string, unknown>> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['HS256'],
      audience: AUDIENCE,
      requiredClaims: ['iat', 'exp', 'jti', 'htm', 'htu', 'bod'],
      clockTolerance: limits.clockSkewSeconds,
      maxTokenAge: limits.tokenSeconds,
      currentDate: new Date(at),
    });
    return payload;
  } catch (fault) {
    if (fault instanceof errors.JWTExpired) refuse('its token has expired');
    if (fault instanceof errors.JOSEError) refuse('its token is not valid');
    throw fault;
  }
}

function refuse(why: string): never {
  throw new Refusal('unauthorized', `The request is refused: ${why}`, { 'www-authenticate': 'Bearer' });
}
