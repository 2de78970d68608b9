/** A run as a response, either events or one document, for as long as the token is valid (H1, H5). */
import type { Context } from 'hono';
import { EngineError, runErrorStatus } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import type { RunRecord } from '../domain/session.ts';
import type { SessionReading } from '../engine/session/session-reading.ts';
import type { SessionView } from '../engine/session/session-view.ts';
import { jsonAnswer } from './lines.ts';
import { retryAfter } from './problem.ts';
import { accepts } from './openapi/describe.ts';
import { formatQuery, readQuery } from './query.ts';
import { EXPIRY_HEADER, hasScope, SCOPES_HEADER } from './session-env.ts';
import type { SessionEnv } from './session-env.ts';
import { eventStream, SSE_HEADERS } from './sse.ts';
import type { StreamExpiry } from './sse.ts';
import { VIEW } from './view.ts';

/** When the caller's token expires; null for an API key. */
export function expiryOf(c: Context<SessionEnv>): StreamExpiry | null {
  const at = c.req.header(EXPIRY_HEADER);
  return at === undefined ? null : { clock: c.env.clock, at: Number(at) };
}

/** The view with which the caller reads the session; null: everything. A token with `view` has less, unless it also has `read` (T1). */
export function viewFor(c: Context<SessionEnv>): SessionView | null {
  return c.req.header(SCOPES_HEADER) !== undefined && hasScope(c, 'view') && !hasScope(c, 'read') ? VIEW : null;
}

/** The same for requests for approval: who may decide about one must see all of it (J8). */
export function approvalViewFor(c: Context<SessionEnv>): SessionView | null {
  return hasScope(c, 'approve') ? null : viewFor(c);
}

/** The session's current state, as the caller may have it. */
export function readingFor(c: Context<SessionEnv>): SessionReading {
  return c.env.session.read(viewFor(c));
}

/** Whether the caller asks for the compact form of events (Z4). */
export function isCompact(c: Context<SessionEnv>): boolean {
  return readQuery(formatQuery, c.req.url, 'ignored').format === 'compact';
}

/** The same for artifacts, which the scope `files` allows: the outputs of hidden actions need `read`. */
export function artifactsFor(c: Context<SessionEnv>): SessionReading {
  return c.env.session.read(hasScope(c, 'read') ? null : VIEW);
}

/** Why nothing more may be sent to the caller, or null. */
export function closedBy(c: Context<SessionEnv>): () => Error | null {
  const expiry = expiryOf(c);
  return () => (expiry !== null && expiry.clock.now() >= expiry.at ? tokenExpired() : null);
}

/** Writes the JSON document of a run, in pieces. */
export type RunWriter = (reading: SessionReading, run: RunRecord) => AsyncIterable<string>;

const plainDocument: RunWriter = (reading, run) => reading.result(run);

/** The run as one JSON document (H7). */
export async function runDocument(
  c: Context<SessionEnv>,
  run: RunRecord,
  headers?: Record<string, string>,
  status = 200,
  write: RunWriter = plainDocument,
): Promise<Response> {
  return await jsonAnswer(write(readingFor(c), run), { headers, status, closed: closedBy(c) });
}

/**
 * The run started by a request: as events, or as one document after it has ended. The document of a failed run has the
 * HTTP status of its error.
 *
 * @param after the last event before the run
 * @param stream whether the body requests events; `Accept: application/json` also requests the document
 * @param write writes the document
 */
export async function runResponse(
  c: Context<SessionEnv>,
  run: RunRecord,
  after: number,
  stream: boolean,
  write?: RunWriter,
): Promise<Response> {
  const { session } = c.env;
  const json = !stream || accepts(c, 'application/json');
  const headers = namesOf(c, run);
  if (!json) return new Response(streamOfRun(c, run, after), { headers: { ...SSE_HEADERS, ...headers } });
  await beforeExpiry(session.ended(run.run), expiryOf(c), run.runId);
  const ended = session.run(run.runId);
  const failure = readingFor(c).failure(ended);
  const status = failure === null ? 200 : runErrorStatus(failure.code);
  return await runDocument(c, ended, { ...headers, ...retryAfter(status) }, status, write);
}

/** The headers that name a run and its session. */
export function namesOf(c: Context<SessionEnv>, { runId }: RunRecord): Record<string, string> {
  return { 'x-session-id': c.env.session.record.session_id, 'x-run-id': runId };
}

/** The events of a run after this one, until it ends or waits. */
export function streamOfRun(c: Context<SessionEnv>, { runId }: RunRecord, after: number): ReadableStream<Uint8Array> {
  const { heartbeat, events } = c.env;
  const { slices, view } = readingFor(c);
  const reader = { expiry: expiryOf(c), view, compact: isCompact(c) };
  const options = { after, runId, endsWaiting: true, slices, ...reader };
  return eventStream(events, heartbeat, options);
}

function tokenExpired(details: JsonObject = {}): EngineError {
  return new EngineError('unauthorized', 'The token has expired; running work continues', details);
}

/**
 * Waits for a run while the token is valid; the run continues after that.
 *
 * @param runId for the error; null: it is not known
 * @throws EngineError `unauthorized`
 */
export async function beforeExpiry(
  ended: Promise<void>,
  expiry: StreamExpiry | null,
  runId: string | null,
): Promise<void> {
  if (expiry === null) return await ended;
  const { clock, at } = expiry;
  let stop = (): void => undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    stop = clock.schedule(Math.max(0, at - clock.now()), () =>
      reject(tokenExpired(runId === null ? {} : { run_id: runId })),
    );
  });
  try {
    await Promise.race([ended, expired]);
  } finally {
    stop();
  }
}
