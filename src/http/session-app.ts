/**
 * A session's own surface, mounted inside its object: the Worker has authenticated the caller and
 * passes the request on as it is, so that bodies and answers stream through untouched (H1, H2).
 */
import { Hono } from 'hono';
import { LinearRouter } from 'hono/router/linear-router';
import { EngineError } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { Clock, Logger } from '../domain/ports.ts';
import type { Session } from '../engine/session/session.ts';
import type { RunRecord } from '../domain/session.ts';
import { artifactResponse } from './artifact.ts';
import { readChunks, readJson } from './body.ts';
import { jsonAnswer, LINES_HEADERS, textStream } from './lines.ts';
import { logFault, problemResponse } from './problem.ts';
import { QUERIES } from './openapi.ts';
import {
  artifactsQuery,
  deleteQuery,
  eventsQuery,
  executeQuery,
  messageQuery,
  onlyDeclared,
  readQuery,
  runsQuery,
  transcriptQuery,
} from './query.ts';
import { approvalBody, cancelBody, executeBody, messageBody, validate, workflowBody } from './schemas.ts';
import { PatchCoalescer } from './patch-coalescer.ts';
import { Heartbeat } from './heartbeat.ts';
import { eventStream, SSE_HEADERS } from './sse.ts';
import type { EventSource, StreamExpiry } from './sse.ts';

/** Headers by which the Worker tells the object what it has established; never taken from a client. */
export const PRINCIPAL_HEADER = 'x-cortex-principal';
/** When the session token expires that the request came with, epoch milliseconds; absent for an API key. */
export const EXPIRY_HEADER = 'x-cortex-expires';

export interface SessionAppOptions {
  readonly session: Session;
  readonly clock: Clock;
  /** Deletes everything that the object holds. */
  readonly destroy: () => Promise<void>;
  /** Why there is no room for another request of this caller to this agent, or null. */
  readonly admit?: () => Promise<EngineError | null>;
  readonly log: Logger;
}

export function createSessionApp({ session, clock, destroy, admit, log }: SessionAppOptions): Hono {
  // every session has an app of its own: a router that is ready at once, not one that prepares for many requests
  const app = new Hono({ router: new LinearRouter() });
  const heartbeat = new Heartbeat(clock);
  const source = eventSource(session, clock);

  app.onError((fault, c) => {
    logFault(log, fault, { method: c.req.method, path: new URL(c.req.url).pathname });
    return problemResponse(fault);
  });
  app.notFound(() => problemResponse(new EngineError('not_found', 'No such route under this session')));

  /** A session is visible to the key that made it; for others it is not there (H5). */
  app.use(async (c, next) => {
    const principal = c.req.header(PRINCIPAL_HEADER) ?? null;
    if (session.exists && session.record.owner !== principal) {
      throw new EngineError('unknown_session', 'There is no session with this id');
    }
    await session.recover(c.req.method === 'GET' ? 'to read' : 'to act');
    await next();
  });

  /** Below an unknown session nothing is refused but the session. */
  const declared = onlyDeclared(QUERIES, '/agent/session/:id');
  app.use(async (c, next) => (session.exists ? await declared(c, next) : await next()));

  /** What starts work counts, once it is known whose session it is. */
  const admitted = async (): Promise<void> => {
    const refusal = (await admit?.()) ?? null;
    if (refusal !== null) throw refusal;
  };

  app.get('/', (c) => c.json(describe(session)));
  app.delete('/', async (c) => {
    void session.record;
    await session.dispose('the session was deleted');
    if (readQuery(deleteQuery, c.req.url).export !== true) {
      await destroy();
      return c.body(null, 204);
    }
    // Nothing is deleted before the last line of it has been taken; who leaves earlier has deleted nothing.
    return new Response(textStream(session.export(), { after: destroy }), { headers: LINES_HEADERS });
  });

  app.post('/message', async (c) => {
    void session.record;
    const raw = await readJson(c.req.raw, limits.messageBytes * 2);
    if (Array.isArray((raw as { content?: unknown } | null)?.content)) {
      throw new EngineError('unsupported_content', '"content" must be a string; lists of parts are not supported');
    }
    const body = validate(messageBody, raw);
    if (new TextEncoder().encode(body.content).length > limits.messageBytes) {
      throw new EngineError('body_too_large', `"content" is larger than ${limits.messageBytes} bytes`);
    }
    const idempotencyKey = c.req.header('idempotency-key') ?? null;
    if (
      idempotencyKey !== null &&
      !(idempotencyKey.length > 0 && idempotencyKey.length <= limits.idempotencyKeyChars)
    ) {
      throw new EngineError(
        'invalid_request',
        `Idempotency-Key must have 1 to ${limits.idempotencyKeyChars} characters`,
      );
    }
    const { if_busy: ifBusy = 'queue' } = readQuery(messageQuery, c.req.url);
    await admitted();
    const after = session.lastSeq;
    const run = await session.message({ content: body.content, tokens: body.llm_tokens, ifBusy, idempotencyKey });
    return await answer(c.req.raw, run, Math.min(after, run.firstSeq - 1), body.stream);
  });

  // Below `/-/` only the Worker comes: it does not pass clients' requests on to there.

  /** Posted protocol text (H1). */
  app.post('/-/execute', async (c) => {
    await admitted();
    const after = session.lastSeq;
    const body = validate(executeBody, await readJson(c.req.raw, limits.bodyBytes * 2));
    const run = await session.execute(once(body.protocol_text), body.protocol_text);
    return await answer(c.req.raw, run, after, body.stream);
  });

  /** The session's workflow (M6). */
  app.post('/-/workflow', async (c) => {
    await admitted();
    const after = session.lastSeq;
    const { inputs, stream } = validate(workflowBody, await readJson(c.req.raw));
    const run = await session.workflow(inputs as JsonObject);
    return await answer(c.req.raw, run, after, stream);
  });

  /** Protocol text that is still arriving: its actions start as their closing tags come in. */
  app.post('/-/execute-stream', async (c) => {
    await admitted();
    const after = session.lastSeq;
    const run = await session.execute(readChunks(c.req.raw, limits.generationBytes * 2), null);
    return await answer(c.req.raw, run, after, readQuery(executeQuery, c.req.url).stream !== 'false');
  });

  app.get('/events', (c) => {
    void session.record;
    // A browser that connects again keeps its address: what it has seen since stands in the header. Nobody has
    // seen what has not happened yet.
    const { after: asked = 0, run: runId = null } = readQuery(eventsQuery, c.req.url);
    const seen = c.req.header('last-event-id') ?? '';
    const after = Math.min(seen === '' ? asked : placeOf(seen), session.lastSeq);
    // Nothing of the run comes before its first event.
    const from = runId === null ? after : Math.max(after, session.run(runId).firstSeq - 1);
    if (heartbeat.readers >= limits.readersPerSession) {
      throw new EngineError('too_many_readers', `${limits.readersPerSession} streams are open on this session already`);
    }
    const expiry = expiryOf(c.req.raw);
    const { slices } = session.read();
    return new Response(eventStream(source, heartbeat, { after: from, runId, expiry, slices }), {
      headers: SSE_HEADERS,
    });
  });

  app.get('/history', async (c) => {
    const { session_id: id } = session.record;
    const reading = session.read();
    const page = session.runs(...pageOf(c.req.url));
    const messages: Record<string, unknown>[][] = [];
    let sizeChars = 0;
    // Newest first, as far as one answer may grow; told in order.
    for (const run of page.toReversed()) {
      if (sizeChars > limits.historyPageChars) break;
      const { runId: run_id, status, startedAt, endedAt } = run;
      const user = typeof run.input['content'] === 'string' ? run.input['content'] : null;
      const content = await reading.answer(run);
      sizeChars += content.length + (user?.length ?? 0);
      messages.push([
        ...(user === null ? [] : [{ role: 'user', content: user, run_id, timestamp: startedAt }]),
        { role: 'assistant', content, run_id, status, timestamp: endedAt },
      ]);
    }
    const oldest = page.at(-messages.length);
    const next = oldest === undefined || oldest.run === 1 ? null : oldest.runId;
    return await jsonAnswer(reading.list({ session_id: id }, 'messages', messages.toReversed().flat(), { next }));
  });

  /** Training examples in the chat format, one run a line. */
  app.get('/transcript', (c) => {
    readQuery(transcriptQuery, c.req.url);
    return new Response(textStream(session.transcript()), { headers: LINES_HEADERS });
  });

  /** The whole session, one JSON text a line. */
  app.get('/export', (c) => {
    void session.record;
    return new Response(textStream(session.export(), { closed: closedBy(c.req.raw) }), { headers: LINES_HEADERS });
  });

  app.get('/artifacts', async (c) => {
    const { session_id: id } = session.record;
    const { artifacts, next } = await session.read().artifacts(readQuery(artifactsQuery, c.req.url).after ?? 0);
    return c.json({ session_id: id, artifacts, next });
  });
  app.get('/artifacts/:artifact', async (c) =>
    artifactResponse(await session.read().artifact(c.req.param('artifact')), c.req.header('range') ?? null),
  );

  app.get('/feeds', (c) => c.json({ session_id: session.record.session_id, feeds: session.feeds() }));
  app.get('/state', async (c) => await jsonAnswer(session.state(), {}, { closed: closedBy(c.req.raw) }));
  app.get('/runs', (c) => {
    void session.record;
    const page = session.runs(...pageOf(c.req.url));
    const runs = page.map(({ runId, status, startedAt, endedAt }) => ({
      run_id: runId,
      status,
      started_at: startedAt,
      ended_at: endedAt,
    }));
    const oldest = page[0];
    return c.json({ runs, next: oldest === undefined || oldest.run === 1 ? null : oldest.runId });
  });
  app.get('/runs/:run', async (c) => await resultOf(c.req.raw, session.run(c.req.param('run'))));
  /** The only run of an execution, or the latest of a chat. */
  app.get('/-/latest-run', async (c) => {
    void session.record;
    const run = session.runs(1).at(-1);
    if (run === undefined) throw new EngineError('unknown_run', 'This session has no run yet');
    return await resultOf(c.req.raw, run);
  });

  app.post('/cancel', async (c) => {
    void session.record;
    const { reason } = validate(cancelBody, await readJson(c.req.raw));
    const run = await session.cancel(reason);
    return c.json({ session_id: session.record.session_id, run_id: run, cancelled: run !== null });
  });

  app.get('/approvals/:id', (c) => {
    void session.record;
    return c.json(session.approval(c.req.param('id')));
  });
  app.post('/approvals/:id', async (c) => {
    void session.record;
    const { decision, approve, deny, note } = validate(approvalBody, await readJson(c.req.raw));
    const approved = decision === undefined ? (approve ?? deny === false) : decision === 'approve';
    await session.resolveApproval(c.req.param('id'), approved, note ?? null);
    return c.json({ approval_id: c.req.param('id'), decision: approved ? 'approve' : 'deny' });
  });

  const expiryOf = (request: Request): StreamExpiry | null => {
    const at = request.headers.get(EXPIRY_HEADER);
    return at === null ? null : { clock, at: Number(at) };
  };

  const closedBy = (request: Request): (() => Error | null) => {
    const expiry = expiryOf(request);
    return () => (expiry !== null && clock.now() >= expiry.at ? tokenExpired() : null);
  };

  const resultOf = async (request: Request, run: RunRecord, headers?: Record<string, string>): Promise<Response> =>
    await jsonAnswer(session.read().result(run), headers, { closed: closedBy(request) });

  const answer = async (request: Request, run: RunRecord, after: number, stream: boolean): Promise<Response> => {
    const json = !stream || (request.headers.get('accept') ?? '').includes('application/json');
    const headers = { 'x-session-id': session.record.session_id, 'x-run-id': run.runId };
    if (!json) {
      const options = { after, runId: run.runId, expiry: expiryOf(request), slices: session.read().slices };
      const body = eventStream(source, heartbeat, options);
      return new Response(body, { headers: { ...SSE_HEADERS, ...headers } });
    }
    await beforeExpiry(session.ended(run.run), expiryOf(request), run.runId);
    return await resultOf(request, session.run(run.runId), headers);
  };

  return app;
}

/** A session's events for its readers, patches gathered. */
export function eventSource(session: Session, clock: Clock): EventSource {
  const gather = new PatchCoalescer(clock, (listener) => session.listen(listener));
  return {
    events: (after) => session.events(after),
    openBlocks: () => session.openBlocks(),
    listen: (listener) => gather.listen(listener),
    hasEnded: (runId) => session.hasEnded(runId),
  };
}

function tokenExpired(details: JsonObject = {}): EngineError {
  return new EngineError('unauthorized', 'The session token has expired; what goes on goes on', details);
}

/** Waits for a run as long as the token is good that asks for it; the run goes on. @throws EngineError `unauthorized` */
async function beforeExpiry(ended: Promise<void>, expiry: StreamExpiry | null, runId: string): Promise<void> {
  if (expiry === null) return await ended;
  const { clock, at } = expiry;
  let stop = (): void => undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    stop = clock.schedule(Math.max(0, at - clock.now()), () => reject(tokenExpired({ run_id: runId })));
  });
  try {
    await Promise.race([ended, expired]);
  } finally {
    stop();
  }
}

/** The number of an event, as a browser that connects again says it. */
function placeOf(lastEventId: string): number {
  if (/^\d{1,15}$/.test(lastEventId)) return Number(lastEventId);
  throw new EngineError('invalid_request', '"Last-Event-ID" must be the number of an event');
}

/** Length of a page, and the number of the run before which it lies: `?limit=20&before=run_…_7`. */
function pageOf(url: string): [limit: number, before: number | undefined] {
  const { limit = limits.pageRows, before } = readQuery(runsQuery, url);
  return [limit, before === undefined ? undefined : Number(/\d+$/.exec(before)?.[0])];
}

function describe(session: Session): Record<string, unknown> {
  const { record } = session;
  const { owner: _owner, ...visible } = record;
  return {
    ...visible,
    status: session.busy ? 'running' : 'idle',
    last_seq: session.lastSeq,
    runs: session.runCount,
  };
}

async function* once(text: string): AsyncGenerator<string> {
  yield text;
}
