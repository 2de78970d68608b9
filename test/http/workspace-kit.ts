/** A session with files, behind the Worker's routes: two namespaces, and tokens of any scope. */
import { limits } from '../../src/domain/limits.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { SCOPES } from '../../src/http/operations.ts';
import type { Scope } from '../../src/http/operations.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { SESSION_RECORD } from '../journal/journal-kit.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { checkedSession } from '../support/response-check.ts';
import { sessionKit } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';
import { edgeApp } from './edge-app.ts';

export const ID = SESSION_RECORD.session_id;
const OWNER = 'ann';
/** Of the session. */
const USER = 'Zoë';
const INCARNATION = '0123456789ab';

type Content = string | Uint8Array | ReadableStream<Uint8Array>;

export interface FilesKit {
  readonly kit: SessionKit;
  /** The clock of the routes: tokens expire by it. */
  readonly clock: VirtualClock;
  /** Requests below `…/files`, with the key of the session's namespace unless a header says otherwise. */
  call(path: string, init?: RequestInit & { readonly session?: string }): Promise<Response>;
  put(path: string, content: Content, headers?: Record<string, string>): Promise<Response>;
  token(scopes?: readonly Scope[], change?: { readonly expiresInMs?: number }): Promise<string>;
}

export async function filesKit(options: KitOptions = {}): Promise<FilesKit> {
  const kit = await sessionKit({ ...options, variables: null });
  await kit.session.create({ ...SESSION_RECORD, owner: OWNER, user_id: USER, incarnation: INCARNATION }, {});
  const clock = new VirtualClock();
  const app = checkedSession({
    session: kit.session,
    clock,
    destroy: async () => await kit.session.close('the session was deleted'),
    log: () => undefined,
  });
  const now = (): number => clock.now();
  const tokens = new Tokens(() => 'a secret for signing, long enough for a test', now);
  const edge = edgeApp({
    auth: { keys: parseApiKeys(`${OWNER}:admin:k-own,bob:admin:k-bob`), allowedOrigins: ['https://app.example'] },
    tokens,
    now,
    mayBeSession: async (id) => id === ID,
    forward: async (_id, path, request) => await app(new Request(`http://session${path}`, request)),
  });
  const call: FilesKit['call'] = async (path, { session = ID, headers = {}, ...init } = {}) =>
    await edge.fetch(
      new Request(`http://127.0.0.1/agent/session/${session}/files${path}`, {
        ...init,
        headers: { authorization: 'Bearer k-own', ...headers },
        ...(init.body instanceof ReadableStream ? { duplex: 'half' } : {}),
      } as RequestInit),
    );
  return {
    kit,
    clock,
    call,
    put: async (path, content, headers = {}) =>
      await call(path, { method: 'PUT', body: content as NonNullable<RequestInit['body']>, headers: { ...headers } }),
    token: async (scopes = SCOPES, { expiresInMs = limits.sessionTokenSeconds * 1_000 } = {}) =>
      await tokens.issue({
        type: 'session',
        sessionId: ID,
        incarnation: INCARNATION,
        owner: OWNER,
        scopes,
        expiresAt: now() + expiresInMs,
      }),
  };
}

/** Status and code of a refusal. */
export async function refusalOf(response: Response): Promise<[number, string]> {
  const { code } = (await response.json()) as { code: string };
  return [response.status, code];
}
