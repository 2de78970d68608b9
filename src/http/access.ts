/** Whether a caller may call an operation, by the table of operations alone (T1, T2, T3). */
import { EngineError, unknownSession } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { Principal } from './auth.ts';
import { findOperation, OPERATIONS, SESSION_PATH } from './operations.ts';
import type { Operation, OperationName } from './operations.ts';
import type { Surface, Token } from './tokens.ts';

/** An authenticated caller. */
export interface Caller extends Principal {
  /** The token that it presented; null for an API key. */
  readonly token: Token | null;
}

interface Asked {
  readonly method: string;
  /** Decoded, as the routers read it. */
  readonly path: string;
}

/**
 * Checks the role of a key, or the kind, the session and the scopes of a token. What only the session knows (its user, its
 * incarnation), its object checks (session-app.ts).
 *
 * @param debugPrompts whether every key may read prompts
 * @throws EngineError `unknown_session` for another session's token, else `forbidden`
 */
export function allow({ role, token }: Caller, { method, path }: Asked, debugPrompts: boolean): void {
  const name = findOperation(method, path);
  const operation: Operation | null = name === null ? null : OPERATIONS[name];
  const what = `${method} ${name === null ? excerpt(path) : patternOf(name)}`;
  if (token === null) {
    if (role === 'admin' || operation?.role === undefined) return;
    if (operation.role === 'prompts' && debugPrompts) return;
    const unless = operation.role === 'prompts' ? ', or DEBUG_PROMPTS=1 (docs/runs.md)' : '';
    throw new EngineError('forbidden', `${what} requires an API key with the role admin${unless}`);
  }
  const isSurface = operation?.surface !== undefined;
  if (token.type === 'session' && !isSurface) {
    const id = path.split('/', 4)[3];
    if (!path.startsWith('/agent/session/')) {
      throw new EngineError('forbidden', 'A session token is valid for its session only');
    }
    if (id !== token.sessionId) throw unknownSession();
    if (operation?.makesSession === true) {
      throw new EngineError(
        'forbidden',
        `${what} makes another session, and a session token is valid for its session only`,
      );
    }
  } else if (token.type === 'user') requireSurface(token, operation?.surface ?? 'http');
  // Other protocols name the session anywhere in the request: their routes compare it (surfaces/edge-surface.ts).
  const isForToken = token.type === 'user' || isSurface || name?.includes(` ${SESSION_PATH}`) === true;
  const scopes = isForToken ? (operation?.scopes ?? []) : [];
  if (scopes.some((scope) => token.scopes.includes(scope))) return;
  const named = scopes.map((scope) => `"${scope}"`).join(' or ');
  throw new EngineError(
    'forbidden',
    `${what} requires ${scopes.length === 0 ? 'the API key' : `a token with the scope ${named}`}`,
  );
}

/** The path of an operation as the reference has it: `/agent/session/{id}/message`. */
function patternOf(name: OperationName): string {
  return name.slice(name.indexOf(' ') + 1).replace(/:(\w+)/g, '{$1}');
}

function excerpt(path: string): string {
  return path.length > limits.excerptChars ? `${path.slice(0, limits.excerptChars)}…` : path;
}

function requireSurface({ surfaces }: { readonly surfaces: readonly Surface[] }, surface: Surface): void {
  if (surfaces.includes(surface)) return;
  throw new EngineError(
    'forbidden',
    `This token is not for the surface "${surface}" (it is for: ${surfaces.join(', ')})`,
  );
}
