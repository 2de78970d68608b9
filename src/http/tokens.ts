/**
 * Session tokens: what a browser gets in place of an API key (H5). Signed, for one session, expiring,
 * and good for what their scopes name; nothing is stored for them.
 */
import { sign, verify } from 'hono/jwt';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';

export const SCOPES = ['read', 'message', 'approve'] as const;
export type Scope = (typeof SCOPES)[number];

export interface SessionToken {
  readonly sessionId: string;
  /** Name of the API key that the session belongs to; null when the system runs without keys. */
  readonly owner: string | null;
  readonly scopes: readonly Scope[];
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

const ALGORITHM = 'HS256';
const AUDIENCE = 'cortex-edge:session';

export class SessionTokens {
  readonly #secret: () => string;
  readonly #now: () => number;

  /** @param secret asked for with the first token; the same on all machines that shall take each other's */
  constructor(secret: () => string, now: () => number) {
    this.#secret = secret;
    this.#now = now;
  }

  async issue({ sessionId, owner, scopes, expiresAt }: SessionToken): Promise<string> {
    const claims = {
      aud: AUDIENCE,
      sub: sessionId,
      own: owner,
      scope: scopes.join(' '),
      iat: Math.floor(this.#now() / 1_000),
      exp: Math.floor(expiresAt / 1_000),
    };
    return await sign(claims, this.#secret(), ALGORITHM);
  }

  /** @throws EngineError `unauthorized` for everything but a token of ours that has not expired */
  async read(token: string): Promise<SessionToken> {
    const refused = new EngineError('unauthorized', 'This session token is not valid, or has expired');
    if (token.length > limits.sessionTokenChars) throw refused;
    // Time is ours to judge: the library would ask the machine's clock.
    const claims = await verify(token, this.#secret(), { alg: ALGORITHM, aud: AUDIENCE, exp: false, iat: false }).catch(
      () => null,
    );
    if (claims === null) throw refused;
    const { sub, own, scope, exp } = claims as Record<string, unknown>;
    if (typeof sub !== 'string' || typeof scope !== 'string' || typeof exp !== 'number') throw refused;
    if (own !== null && typeof own !== 'string') throw refused;
    if (!(exp * 1_000 > this.#now())) throw refused;
    const said = scope.split(' ');
    return {
      sessionId: sub,
      owner: own,
      scopes: SCOPES.filter((known) => said.includes(known)),
      expiresAt: exp * 1_000,
    };
  }
}

/**
 * The session token that a request carries: as `Authorization: Bearer`, where it has a token's form, or
 * as `?token=`, for `EventSource`, which cannot send headers.
 */
export function presentedToken(request: Request): string | null {
  const bearer = /^Bearer\s+([\w-]+\.[\w-]+\.[\w-]*)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  return bearer ?? new URL(request.url).searchParams.get('token');
}

/** What a request to a session asks for; null is what only the API key may do. */
function scopeOf(method: string, path: string): Scope | null {
  if (method === 'GET' || method === 'HEAD') return path.startsWith('/transcript') ? null : 'read';
  if (method !== 'POST') return null;
  if (path === '/message' || path === '/cancel') return 'message';
  return path.startsWith('/approvals/') ? 'approve' : null;
}

/**
 * @param path below the session, `/events`
 * @throws EngineError `unknown_session` for another session's token, `forbidden` without the scope
 */
export function allow(token: SessionToken, sessionId: string, method: string, path: string): void {
  if (token.sessionId !== sessionId) throw new EngineError('unknown_session', 'There is no session with this id');
  const scope = scopeOf(method, path);
  if (scope !== null && token.scopes.includes(scope)) return;
  const needed = scope === null ? 'the API key' : `a token with the scope "${scope}"`;
  throw new EngineError('forbidden', `${method} ${path.slice(0, limits.excerptChars)} needs ${needed}`);
}
