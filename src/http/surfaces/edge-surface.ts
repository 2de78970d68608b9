/**
 * Requests of other protocols in the Worker (E1 to E3): finds or makes the session that a translated request is for, and
 * sends the command to the session's object. The routes are in routes.ts.
 *
 * Invariants:
 *  1. A conversation that a client names has an id derived from namespace, user, protocol, agent and name. The id
 *     authorises nothing: the object checks owner and user as always (T5).
 *  2. Every error has the protocol's own form. A stream that breaks off gets a last frame that says so.
 */
import { EngineError, ERROR_TABLE } from '../../domain/errors.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import { NO_HISTORY } from '../../domain/seeded.ts';
import type { SeededHistory } from '../../domain/seeded.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { admitHistory, requireSeededCount } from '../../policies/seeded-history.ts';
import type { Surface, SurfaceCommand, SurfaceRequest, Thread } from '../../surfaces/surface.ts';
import type { Caller } from '../access.ts';
import type { Gateway } from '../gateway.ts';
import { historyBody, untilInvalid } from '../history-body.ts';
import { findOperation, OPERATIONS } from '../operations.ts';
import type { Operation } from '../operations.ts';
import { problemResponse, retryAfter, toProblem } from '../problem.ts';
import { requireAgentOf, sha256Hex } from '../routes/sessions.ts';
import { validate } from '../schemas.ts';
import { INCARNATION_PATH } from '../session-env.ts';
import { requestSession } from './request-sessions.ts';
import { SURFACE_PATH } from './session-surface.ts';
import type { SurfaceCall } from './session-surface.ts';
import { SURFACES } from './surfaces.ts';

export interface SurfaceOptions {
  readonly gateway: Gateway;
  readonly now: () => number;
  /** The session id for a text; the same text always gives the same id. */
  readonly sessionIdOf: (start: string) => Promise<string>;
}

/** A request, apart from what its adapter reads. */
export interface SurfaceSource {
  readonly request: Request;
  readonly caller: Caller;
  /** Whether the client sends the request again: its first answer may have been lost. */
  readonly isRepeated: boolean;
}

/** A request whose agent is known: its patterns bind a session that is made for it (C9). */
type AdmittedSource = SurfaceSource & Pick<SessionRecord, 'redact'>;

/** The session of a request, with the record to create it if there is none. */
interface Opened {
  readonly id: string;
  readonly open: SessionRecord | null;
  readonly repeats: SurfaceCall['repeats'];
}

/** @throws EngineError `forbidden` for a token of other agents */
export function requireSurfaceAgent({ token }: Caller, agent: string): void {
  if (token?.type === 'user') requireAgentOf(token, agent);
}

/** Answers a translated request. @throws EngineError also those of the session's object */
export async function answer(
  options: SurfaceOptions,
  surface: Surface,
  source: SurfaceSource,
  asked: SurfaceRequest,
): Promise<Response> {
  const { caller } = source;
  let redact: SessionRecord['redact'];
  if (asked.agent !== null) {
    requireSurfaceAgent(caller, asked.agent);
    ({ redact = [] } = (await options.gateway.requireAgent(asked.agent, caller.owner)).agent);
  }
  const opening = { ...source, ...(redact === undefined ? {} : { redact }) };
  requireOwnSession(caller, asked.thread);
  try {
    return await answerOf(options, surface, opening, asked);
  } catch (fault) {
    const { otherwise } = asked;
    const isUnknown = fault instanceof EngineError && CONTINUES_NOTHING.has(fault.code);
    if (otherwise === undefined || !isUnknown) throw fault;
    requireOwnSession(caller, otherwise.thread);
    return await answerOf(options, surface, otherwise.agent === asked.agent ? opening : source, otherwise);
  }
}

/** @throws EngineError `forbidden` for a session's token, unless the request names that session by its id */
function requireOwnSession({ token }: Caller, thread: Thread): void {
  if (token?.type !== 'session') return;
  const { sessionId } = token;
  const isOwn =
    (thread.type === 'named' && thread.name === sessionId) ||
    (thread.type === 'session' && thread.sessionId === sessionId);
  if (isOwn) return;
  throw new EngineError('forbidden', 'A session token is valid for its session only: name the session by its id');
}

/** The session or the call that a request continues is not known. */
const CONTINUES_NOTHING: ReadonlySet<ErrorCode> = new Set(['unknown_session', 'unknown_call']);

async function answerOf(
  options: SurfaceOptions,
  surface: Surface,
  source: AdmittedSource,
  asked: SurfaceRequest,
): Promise<Response> {
  const { agent, thread } = asked;
  const command = keyed(asked);
  const { id, open, repeats } = await openedBy(options, surface, source, asked);
  try {
    return await send(options, surface, source, id, { surface: surface.name, agent, open, repeats, command });
  } catch (fault) {
    if (!(fault instanceof EngineError)) throw fault;
    // A conversation of which nothing is known yet has nothing to follow or to stop.
    if (thread.type === 'named' && fault.status === 404 && open !== null && command.type !== 'run') {
      return command.type === 'conversation' ? Response.json([]) : new Response(null, { status: 204 });
    }
    // Its answer is too old, or its conversation went on: this request is another one.
    if (repeats === 'session' && fault.code === 'unknown_session') {
      return await answerOf(options, surface, { ...source, isRepeated: false }, asked);
    }
    throw fault;
  }
}

/** Sends a command to a session. @throws EngineError the session's */
export async function send(
  { gateway }: Pick<SurfaceOptions, 'gateway'>,
  surface: Surface,
  { request, caller }: Pick<SurfaceSource, 'request' | 'caller'>,
  id: string,
  call: SurfaceCall,
): Promise<Response> {
  const headers = new Headers(request.headers);
  headers.delete('content-length');
  const forwarded = new Request(request.url, { method: 'POST', headers, body: JSON.stringify(call) });
  const response = await gateway.forward(id, SURFACE_PATH, forwarded, caller);
  if (!isProblem(response)) return response.body === null ? response : guarded(response, surface);
  throw await problemOf(response);
}

export function isProblem(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').startsWith('application/problem+json');
}

/** The error that a session has answered. */
export async function problemOf(response: Response): Promise<EngineError> {
  const { code, detail, ...details } = (await response.json()) as { code: ErrorCode; detail: string };
  return new EngineError(Object.hasOwn(ERROR_TABLE, code) ? code : 'internal', detail, details);
}

/** Key of the only message of a session that was made for it. */
const ONLY = 'only';

/** A session that was made for a message has it once, also if the request is repeated. */
function keyed({ thread, command }: SurfaceRequest): SurfaceCommand {
  if (thread.type !== 'new' || command.type !== 'run' || command.message === null) return command;
  return { ...command, message: { ...command.message, key: command.message.key ?? ONLY } };
}

async function openedBy(
  options: SurfaceOptions,
  surface: Surface,
  { request, caller, isRepeated, redact }: AdmittedSource,
  { agent, thread, userId, command }: SurfaceRequest,
): Promise<Opened> {
  const { gateway, now, sessionIdOf } = options;
  const { owner, token } = caller;
  const ofMessage = isRepeated ? 'message' : null;
  if (thread.type === 'session') {
    return { id: await gateway.requireId(thread.sessionId), open: null, repeats: ofMessage };
  }
  if (agent === null) throw new EngineError('internal', 'A session without an agent');
  const user = token?.type === 'user' ? token.userId : userId;
  const bound = redact === undefined ? {} : { redact };
  const record = { agent, owner, user_id: user, kind: 'chat', metadata: {}, created_at: now(), ...bound } as const;
  switch (thread.type) {
    case 'named': {
      const { name } = thread;
      if (/^ses_[0-9a-f]{32}$/.test(name)) {
        return { id: await gateway.requireId(name), open: null, repeats: ofMessage };
      }
      const id = await sessionIdOf(JSON.stringify(['conversation', owner, user, surface.name, agent, name]));
      return { id, open: { session_id: id, ...record }, repeats: ofMessage };
    }
    case 'new': {
      if (thread.history.length > 0 && token !== null) {
        throw new EngineError('forbidden', 'A conversation before the message requires an API key');
      }
      const history = await admitted(thread.history);
      const { key, isEphemeral } = thread;
      const content = JSON.stringify([thread.history, command.type === 'run' ? command.message : null]);
      const open = async (id: string): Promise<boolean> => {
        const { created_at: createdAt } = await gateway.openSession(
          {
            session_id: id,
            ...record,
            ...(isEphemeral ? { ephemeral: true } : {}),
            ...(key === null ? {} : { request_sha256: await sha256Hex(content) }),
          },
          {},
          history,
        );
        return createdAt === record.created_at;
      };
      // One surface may have several APIs.
      const api = command.options['api'] ?? null;
      const of = [owner, user, surface.name, agent, api];
      if (key !== null) {
        const id = await sessionIdOf(JSON.stringify(['request', ...of, key]));
        await open(id);
        return { id, open: null, repeats: null };
      }
      const exists = async (one: string): Promise<boolean> =>
        (await gateway.forward(one, INCARNATION_PATH, new Request(request.url), caller)).ok;
      const sessions = { now, idOf: sessionIdOf, newId: () => gateway.newSessionId(), open, exists };
      const { id, isJoined } = await requestSession(sessions, [...of, content], isRepeated);
      return { id, open: null, repeats: isJoined ? 'session' : null };
    }
  }
}

async function admitted(history: Extract<Thread, { type: 'new' }>['history']): Promise<SeededHistory> {
  if (history.length === 0) return NO_HISTORY;
  requireSeededCount(history.length);
  return await admitHistory(validate(historyBody, untilInvalid(history)));
}

const encoder = new TextEncoder();

/** A stream whose object is lost ends with the protocol's error: some clients take a bare end for a success. */
function guarded(response: Response, surface: Surface): Response {
  const reader = response.body?.getReader();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (reader === undefined) return response;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value as Uint8Array);
      } catch (fault) {
        if (!isStream) throw fault;
        controller.enqueue(encoder.encode(surface.lost));
        controller.close();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

/** The response for an error of a route of another protocol; null for a route of our own. */
export function surfaceProblem(request: { method: string; path: string }, fault: unknown): Response | null {
  const name = findOperation(request.method, request.path);
  const { surface }: Operation = name === null ? { summary: '' } : OPERATIONS[name];
  if (surface === undefined) return null;
  const known =
    fault instanceof EngineError ? fault : new EngineError('internal', 'An unexpected error; it has been logged');
  const { body, contentType, headers = {} } = SURFACES[surface].error(known);
  return new Response(body, {
    status: known.status,
    headers: {
      'content-type': contentType,
      'cache-control': 'no-store',
      ...retryAfter(known.status, known.details['retry_after_ms']),
      ...headers,
    },
  });
}

/**
 * The response for a route that does not exist. Clients of a protocol also ask for those of its routes that we do not have,
 * so it is a problem document that has the members of the protocol's errors, too.
 */
export function unknownSurfaceRoute(path: string, fault: EngineError): Response {
  const surface = surfaceBelow(path);
  const response = problemResponse(fault);
  if (surface === undefined) return response;
  const { body, contentType } = SURFACES[surface].error(fault);
  if (!contentType.startsWith('application/json')) {
    const headers = { 'content-type': contentType, 'cache-control': 'no-store' };
    return new Response(body, { status: fault.status, headers });
  }
  return new Response(JSON.stringify({ ...toProblem(fault), ...(JSON.parse(body) as object) }), response);
}

/** The protocol of the routes with this beginning. */
function surfaceBelow(path: string): Operation['surface'] {
  const [, start] = path.split('/');
  const operations: [string, Operation][] = Object.entries(OPERATIONS);
  return operations.find(([name]) => name.split('/')[1] === start)?.[1].surface;
}
