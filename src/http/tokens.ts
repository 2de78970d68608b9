/**
 * Signed credentials of a browser in place of an API key (H5): for one session (T2), or for the sessions of one user (T3).
 * They expire, and are restricted by scopes. Nothing is stored for them.
 */
import { sign, verify } from 'hono/jwt';
import { EngineError } from '../domain/errors.ts';
import * as z from 'zod';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { SURFACE_NAMES } from '../surfaces/surface.ts';
import { SCOPES } from './operations.ts';
import type { Scope } from './operations.ts';

/** The surfaces that a user token may be for. */
export const SURFACES = ['http', ...SURFACE_NAMES] as const;
export type Surface = (typeof SURFACES)[number];

interface Granted {
  /** Owner of the sessions; null if they were made without keys (T4). */
  readonly owner: string | null;
  readonly scopes: readonly Scope[];
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** For one session (T2). */
export interface SessionToken extends Granted {
  readonly type: 'session';
  readonly sessionId: string;
  /** The session's incarnation (T5); null for a session without one. */
  readonly incarnation: string | null;
}

/** For the sessions of one user (T3). */
export interface UserToken extends Granted {
  readonly type: 'user';
  readonly userId: string;
  /** Names of the agents that it may use; null: all of the namespace. */
  readonly agents: readonly string[] | null;
  readonly surfaces: readonly Surface[];
}

export type Token = SessionToken | UserToken;

const ALGORITHM = 'HS256';
/** Of a sealed value, which is no token. */
const SEALED = 'cortex-edge:sealed';
/** A token of one kind is never accepted as the other. */
const AUDIENCES = { session: 'cortex-edge:session', user: 'cortex-edge:user' } as const;

export class Tokens {
  readonly #secret: () => string | null;
  readonly #now: () => number;

  /** @param secret called for the first token; must be the same on all machines that share tokens; null if not set */
  constructor(secret: () => string | null, now: () => number) {
    this.#secret = secret;
    this.#now = now;
  }

  /**
   * @throws EngineError `not_configured` if there is no secret to sign with; `invalid_request` if the token would be too
   *   long for a URL
   */
  async issue(token: Token): Promise<string> {
    const secret = this.#secret();
    if (secret === null) {
      throw new EngineError(
        'not_configured',
        `Tokens need SESSION_TOKEN_SECRET, at least ${limits.tokenSecretChars} random characters (npx wrangler secret put SESSION_TOKEN_SECRET)`,
      );
    }
    const claims = {
      aud: AUDIENCES[token.type],
      ...(token.type === 'session'
        ? { sub: token.sessionId, ...(token.incarnation === null ? {} : { inc: token.incarnation }) }
        : { sub: token.userId, srf: token.surfaces, ...(token.agents === null ? {} : { agt: token.agents }) }),
      own: token.owner,
      scope: token.scopes.join(' '),
      iat: Math.floor(this.#now() / 1_000),
      exp: Math.floor(token.expiresAt / 1_000),
    };
    const signed = await sign(claims, secret, ALGORITHM);
    if (signed.length <= limits.sessionTokenChars) return signed;
    throw new EngineError(
      'invalid_request',
      `The token would be longer than ${limits.sessionTokenChars} characters; give a shorter "user_id" or fewer "agents"`,
    );
  }

  /**
   * Signs what a client has to bring back unchanged; it can read it. Null if there is no secret to sign with.
   *
   * @param expiresAt epoch milliseconds
   */
  async seal(value: JsonObject, expiresAt: number): Promise<string | null> {
    const secret = this.#secret();
    if (secret === null) return null;
    return await sign({ aud: SEALED, val: value, exp: Math.floor(expiresAt / 1_000) }, secret, ALGORITHM);
  }

  /** What was sealed; null if it was changed, has expired, or was never sealed here. */
  async unseal(text: string): Promise<JsonObject | null> {
    const secret = this.#secret();
    if (secret === null || text.length > limits.sealedChars) return null;
    const verified = await verify(text, secret, { alg: ALGORITHM, exp: false, iat: false }).catch(() => null);
    const claims = sealedClaims.safeParse(verified);
    return claims.success && claims.data.exp * 1_000 > this.#now() ? (claims.data.val as JsonObject) : null;
  }

  /** @throws EngineError `unauthorized` for anything but a valid, unexpired token */
  async read(token: string): Promise<Token> {
    const refused = new EngineError('unauthorized', 'This token is invalid or has expired');
    const secret = this.#secret();
    if (secret === null || token.length > limits.sessionTokenChars) throw refused;
    // Expiry is checked here, because the library would use the machine's clock.
    const verified = await verify(token, secret, { alg: ALGORITHM, exp: false, iat: false }).catch(() => null);
    const claims = anyClaims.safeParse(verified);
    if (!claims.success) throw refused;
    const { own: owner, exp, scope } = claims.data;
    if (!(exp * 1_000 > this.#now())) throw refused;
    const held = scope.split(' ');
    const granted = { owner, scopes: SCOPES.filter((known) => held.includes(known)), expiresAt: exp * 1_000 };
    if (claims.data.aud === AUDIENCES.session) {
      const { sub: sessionId, inc: incarnation = null } = claims.data;
      return { type: 'session', sessionId, incarnation, ...granted };
    }
    const { sub: userId, agt: agents = null, srf } = claims.data;
    return { type: 'user', userId, agents, surfaces: SURFACES.filter((known) => srf.includes(known)), ...granted };
  }
}

const sealedClaims = z.object({
  aud: z.literal(SEALED),
  val: z.record(z.string(), z.unknown()),
  exp: z.number(),
});
const common = { sub: z.string(), own: z.string().nullable(), scope: z.string(), exp: z.number() };
const anyClaims = z.discriminatedUnion('aud', [
  z.object({ ...common, aud: z.literal(AUDIENCES.session), inc: z.string().exactOptional() }),
  z.object({
    ...common,
    aud: z.literal(AUDIENCES.user),
    agt: z.array(z.string()).exactOptional(),
    srf: z.array(z.string()),
  }),
]);

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

/** What `Authorization: Bearer` has is a token if it has this form (JWT), else an API key. */
export const TOKEN_FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/**
 * The token of a request: in `Authorization: Bearer`, if it has the form of a token, or in `?token=`, for
 * `EventSource`, which cannot send headers.
 */
export function presentedToken(request: Request): string | null {
  const bearer = /^Bearer\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
  return TOKEN_FORM.test(bearer) ? bearer : new URL(request.url).searchParams.get('token');
}
