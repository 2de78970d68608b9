/**
 * Session tokens: credentials of a browser in place of an API key (H5). They are signed, belong to one session, expire,
 * and are restricted by scopes. Nothing is stored for them.
 */
import { sign, verify } from 'hono/jwt';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';

/**
 * What a token allows (T1). `tools`: pass client tools and answer their calls. `branch`: fork and retry. `view`: read
 * without prompts, thoughts and feeds.
 */
export const SCOPES = ['read', 'message', 'approve', 'tools', 'files', 'branch', 'view'] as const;
export type Scope = (typeof SCOPES)[number];

export interface SessionToken {
  readonly sessionId: string;
  /** Owner of the session; null if it was made without keys (T4). */
  readonly owner: string | null;
  readonly scopes: readonly Scope[];
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

const ALGORITHM = 'HS256';
const AUDIENCE = 'cortex-edge:session';

export class SessionTokens {
  readonly #secret: () => string | null;
  readonly #now: () => number;

  /** @param secret called for the first token; must be the same on all machines that share tokens; null if not set */
  constructor(secret: () => string | null, now: () => number) {
    this.#secret = secret;
    this.#now = now;
  }

  /** @throws EngineError `not_configured` if there is no secret to sign with */
  async issue({ sessionId, owner, scopes, expiresAt }: SessionToken): Promise<string> {
    const secret = this.#secret();
    if (secret === null) {
      throw new EngineError(
        'not_configured',
        `Session tokens need SESSION_TOKEN_SECRET, at least ${limits.tokenSecretChars} random characters (npx wrangler secret put SESSION_TOKEN_SECRET)`,
      );
    }
    const claims = {
      aud: AUDIENCE,
      sub: sessionId,
      own: owner,
      scope: scopes.join(' '),
      iat: Math.floor(this.#now() / 1_000),
      exp: Math.floor(expiresAt / 1_000),
    };
    return await sign(claims, secret, ALGORITHM);
  }

  /** @throws EngineError `unauthorized` for anything but a valid, unexpired token */
  async read(token: string): Promise<SessionToken> {
    const refused = new EngineError('unauthorized', 'This session token is invalid or has expired');
    const secret = this.#secret();
    if (secret === null || token.length > limits.sessionTokenChars) throw refused;
    // Expiry is checked here, because the library would use the machine's clock.
    const claims = await verify(token, secret, { alg: ALGORITHM, aud: AUDIENCE, exp: false, iat: false }).catch(
      () => null,
    );
    if (claims === null) throw refused;
    const { sub, own, scope, exp } = claims as Record<string, unknown>;
    if (typeof sub !== 'string' || typeof scope !== 'string' || typeof exp !== 'number') throw refused;
    if (own !== null && typeof own !== 'string') throw refused;
    if (!(exp * 1_000 > this.#now())) throw refused;
    const granted = scope.split(' ');
    return {
      sessionId: sub,
      owner: own,
      scopes: SCOPES.filter((known) => granted.includes(known)),
      expiresAt: exp * 1_000,
    };
  }
}

/**
 * Reads `SESSION_TOKEN_SECRET`; null if it is not set.
 *
 * @throws EngineError `internal` if it is so short that a token holder could find it by brute force
 */
export function parseTokenSecret(text: string | undefined): string | null {
  if (text === undefined || text === '') return null;
  if (text.length >= limits.tokenSecretChars) return text;
  throw new EngineError(
    'internal',
    `SESSION_TOKEN_SECRET must have at least ${limits.tokenSecretChars} characters, it has ${text.length} (such as: openssl rand -hex 32)`,
  );
}

/**
 * The session token of a request: in `Authorization: Bearer`, if it has the form of a token, or in `?token=`, for
 * `EventSource`, which cannot send headers.
 */
export function presentedToken(request: Request): string | null {
  const bearer = /^Bearer\s+([\w-]+\.[\w-]+\.[\w-]*)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  return bearer ?? new URL(request.url).searchParams.get('token');
}

/** Whether a path, relative to its session, shows what was sent to the model: feeds, system prompt and all results. */
export function showsPrompt(path: string): boolean {
  return /^\/runs\/[^/]*\/prompt/.test(path);
}

/** The scopes that allow a request to a session, any of which suffices; none: only the API key may do it. */
export function scopesOf(method: string, path: string): readonly Scope[] {
  const approval = path === '/approvals' || path.startsWith('/approvals/');
  if (method === 'GET' || method === 'HEAD') {
    if (path.startsWith('/transcript') || showsPrompt(path)) return [];
    // Approving requires permission to read.
    return approval ? ['read', 'approve'] : ['read'];
  }
  if (method !== 'POST') return [];
  if (path === '/message' || path === '/cancel') return ['message'];
  return approval ? ['approve'] : [];
}

/**
 * @param path relative to the session, such as `/events`
 * @throws EngineError `unknown_session` for another session's token, `forbidden` without the scope
 */
export function allow(token: SessionToken, sessionId: string, method: string, path: string): void {
  if (token.sessionId !== sessionId) throw new EngineError('unknown_session', 'There is no session with this id');
  const scopes = scopesOf(method, path);
  if (scopes.some((scope) => token.scopes.includes(scope))) return;
  const named = scopes.map((scope) => `"${scope}"`).join(' or ');
  const needed = scopes.length === 0 ? 'the API key' : `a token with the scope ${named}`;
  throw new EngineError('forbidden', `${method} ${path.slice(0, limits.excerptChars)} requires ${needed}`);
}
