/**
 * Authenticates requests (R7). A request carries a short-lived JWT (HS256) over the method, the path with its query, and
 * the hash of the body. Each token is valid once.
 */
import { createHash } from 'node:crypto';

import { errors, jwtVerify } from 'jose';

import type { Key } from './keys.ts';
import type { Ledger } from './ledger/ledger.ts';
import { limits } from './limits.ts';
import { RunnerError } from './problem.ts';

const AUDIENCE = 'cortex-runner';

export interface SignedRequest {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  readonly authorization: string | null;
}

export interface Authority {
  /** @throws RunnerError `unauthorized`; the message names the problem and reveals nothing about the secret */
  check(request: SignedRequest, body: Uint8Array): Promise<void>;
  /**
   * The same for a body that is read in pieces: checks everything else first, so that only a signed request costs space.
   *
   * @returns checks the SHA-256 of the body and uses up the token; the request may have an effect only after it
   * @throws RunnerError `unauthorized`, as does the returned function
   */
  open(request: SignedRequest): Promise<(bodyHash: Uint8Array) => void>;
}

/**
 * @param keys keys shared with the Worker; a token without `kid` uses the key without an id
 * @param ledger stores used tokens, so that they stay used after a restart
 * @param now epoch milliseconds
 * @param publicHost if set, accepts only requests that were signed for this host and port. Otherwise, a request for
 *   another runner with the same keys could be replayed here
 */
export function createAuthority(
  keys: readonly Key[],
  ledger: Ledger,
  now: () => number,
  publicHost: string | null = null,
): Authority {
  async function open({ method, target, authorization }: SignedRequest): Promise<(bodyHash: Uint8Array) => void> {
    const [scheme, token] = authorization?.split(' ') ?? [];
    if (scheme?.toLowerCase() !== 'bearer' || token === undefined)
      refuse('expected the header "Authorization: Bearer <token>"');
    const claims = await verify(token, keys, now());
    if (claims['htm'] !== method) refuse('it was signed for another method');
    if (claims['htu'] !== target) refuse('it was signed for another path');
    if (publicHost !== null && claims['hst'] !== publicHost) refuse('it was signed for another runner');
    const { iat, exp, jti } = claims;
    if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > limits.tokenSeconds) {
      refuse(`its token is valid for longer than ${limits.tokenSeconds} s`);
    }
    if (typeof jti !== 'string' || jti.length < 16 || jti.length > 128)
      refuse('its token must have a "jti" of 16 to 128 characters');
    return (bodyHash) => {
      if (claims['bod'] !== Buffer.from(bodyHash).toString('base64url')) refuse('its body differs from the signed one');
      if (!ledger.spend(jti, (exp + limits.clockSkewSeconds) * 1_000)) refuse('its token was used before');
    };
  }
  return {
    open,
    async check(request, body) {
      const finish = await open(request);
      finish(createHash('sha256').update(body).digest());
    },
  };
}

async function verify(token: string, keys: readonly Key[], at: number): Promise<Record<string, unknown>> {
  try {
    const { payload } = await jwtVerify(token, ({ kid }) => keyOf(keys, kid), {
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
    if (fault instanceof errors.JOSEError) {
      refuse(
        `${fault.message} (expected a JWT with HS256 and the audience ${AUDIENCE}, signed with a key of this runner)`,
      );
    }
    throw fault;
  }
}

function keyOf(keys: readonly Key[], kid: string | undefined): Uint8Array {
  const key = keys.find(({ id }) => id === (kid ?? null));
  if (key === undefined) refuse('its "kid" does not match a key of this runner');
  return key.secret;
}

function refuse(why: string): never {
  throw new RunnerError('unauthorized', `The request is not authorized: ${why}`, { 'www-authenticate': 'Bearer' });
}
