/** Routes that read a session: its record, events, runs, artifacts, feeds and variables (H1, H2). */
import { Hono } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { shownRecord } from '../../domain/session.ts';
import type { Session } from '../../engine/session/session.ts';
import { downloadResponse } from '../download.ts';
import { lastEventId, range } from '../headers.ts';
import { sessionOperation, readHeader } from '../openapi/describe.ts';
import { jsonAnswer, LINES_HEADERS, textStream } from '../lines.ts';
import { artifactsQuery, eventsQuery, readQuery, runsQuery, transcriptQuery } from '../query.ts';
import * as runsAnswers from '../responses/runs.ts';
import * as sessionsAnswers from '../responses/sessions.ts';
import { artifactsFor, closedBy, expiryOf, isCompact, readingFor, runDocument, viewFor } from '../run-response.ts';
import { positionOf } from '../page-position.ts';
import { INCARNATION_PATH } from '../session-env.ts';
import type { SessionEnv } from '../session-env.ts';
import { eventStream, SSE_HEADERS } from '../sse.ts';

export const sessionReading = new Hono<SessionEnv>();

sessionOperation(sessionReading, 'GET /agent/session/:id', { response: sessionsAnswers.session }, (c) =>
  c.json(sessionDocument(c.env.session)),
);

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/events',
  { query: eventsQuery, headers: [lastEventId], media: 'events' },
  (c) => {
    const { session, heartbeat, events } = c.env;
    void session.record;
    // A reconnecting browser keeps its URL and sends its position in the header. A position after the last event is
    // invalid.
    const { after: asked = 0, run: runId = null } = readQuery(eventsQuery, c.req.url);
    const seen = readHeader(c, lastEventId) ?? '';
    const after = Math.min(seen === '' ? asked : Number(seen), session.lastSeq);
    // The run has no events before its first one.
    const from = runId === null ? after : Math.max(after, session.run(runId).firstSeq - 1);
    if (heartbeat.readers >= limits.readersPerSession) {
      throw new EngineError('too_many_readers', `${limits.readersPerSession} streams are already open on this session`);
    }
    const expiry = expiryOf(c);
    const { slices, view } = readingFor(c);
    const options = { after: from, runId, expiry, view, slices, compact: isCompact(c) };
    return new Response(eventStream(events, heartbeat, options), { headers: SSE_HEADERS });
  },
);

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/transcript',
  { query: transcriptQuery, media: 'lines' },
  (c) => {
    readQuery(transcriptQuery, c.req.url);
    return new Response(textStream(c.env.session.transcript()), { headers: LINES_HEADERS });
  },
);

sessionOperation(sessionReading, 'GET /agent/session/:id/export', { media: 'lines' }, (c) => {
  const { session } = c.env;
  void session.record;
  return new Response(textStream(session.export({ view: viewFor(c) }), { closed: closedBy(c) }), {
    headers: LINES_HEADERS,
  });
});

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/artifacts',
  { query: artifactsQuery, response: sessionsAnswers.artifacts },
  async (c) => {
    const { session } = c.env;
    const { session_id: id } = session.record;
    const { artifacts, next } = await artifactsFor(c).artifacts(readQuery(artifactsQuery, c.req.url).after ?? 0);
    return c.json({ session_id: id, artifacts, next });
  },
);
sessionOperation(
  sessionReading,
  'GET /agent/session/:id/artifacts/:artifact',
  { headers: [range], media: 'file', further: [206] },
  async (c) => downloadResponse(await artifactsFor(c).artifact(c.req.param('artifact')), readHeader(c, range)),
);

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/content/:sha256',
  { headers: [range], media: 'file', further: [206] },
  async (c) => {
    const { session } = c.env;
    void session.record;
    return downloadResponse(await readingFor(c).content(c.req.param('sha256')), readHeader(c, range));
  },
);

sessionOperation(sessionReading, 'GET /agent/session/:id/feeds', { response: sessionsAnswers.feeds }, (c) => {
  const { session } = c.env;
  return c.json({ session_id: session.record.session_id, feeds: session.feeds() });
});
sessionOperation(
  sessionReading,
  'GET /agent/session/:id/state',
  { response: sessionsAnswers.state },
  async (c) => await jsonAnswer(c.env.session.state(), { closed: closedBy(c) }),
);

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/runs',
  { query: runsQuery, response: runsAnswers.runs },
  (c) => {
    const { session } = c.env;
    void session.record;
    const page = session.runs(...pageOf(session, c.req.url));
    const runs = page.map(({ runId, status, startedAt, endedAt, ...place }) => ({
      run_id: runId,
      ...session.branches.placeOf(place),
      status,
      started_at: startedAt,
      ended_at: endedAt,
    }));
    const oldest = page[0];
    const head = session.branches.head?.runId ?? null;
    return c.json({ runs, head, next: oldest === undefined || oldest.run === 1 ? null : oldest.runId });
  },
);
sessionOperation(
  sessionReading,
  'GET /agent/session/:id/runs/:run',
  { response: runsAnswers.runResult },
  async (c) => await runDocument(c, c.env.session.run(c.req.param('run'))),
);

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/runs/:run/prompt',
  { response: runsAnswers.prompt },
  async (c) => {
    const { session } = c.env;
    const run = session.run(c.req.param('run'));
    return await jsonAnswer(readingFor(c).prompt(run), { closed: closedBy(c) });
  },
);

/** Which incarnation a token is made for (T5). For the Worker only. */
sessionReading.get(INCARNATION_PATH, (c) => c.json({ incarnation: c.env.session.record.incarnation ?? null }));

/** The only run of an execution, or the latest run of a chat. For the Worker only. */
sessionReading.get('/-/latest-run', async (c) => {
  const { session } = c.env;
  void session.record;
  const run = session.runs(1).at(-1);
  if (run === undefined) throw new EngineError('unknown_run', 'This session has no run yet');
  return await runDocument(c, run);
});

/** Page size, and the number of the run that the page precedes: `?limit=20&before=run_…_7`. */
function pageOf(session: Session, url: string): [limit: number, before: number | undefined] {
  const { limit = limits.pageRows, before } = readQuery(runsQuery, url);
  return [limit, positionOf(session, before)];
}

function sessionDocument(session: Session): Record<string, unknown> {
  const { record } = session;
  // A program and a workflow have no message of the user.
  const perRun = record.kind === 'execution' || record.workflow !== undefined ? 1 : 2;
  return {
    ...shownRecord(record),
    agent_name: record.agent,
    updated_at: session.updatedAt,
    message_count: session.seededCount + session.runCount * perRun,
    status: session.status,
    last_seq: session.lastSeq,
    runs: session.runCount,
    head: session.branches.head?.runId ?? null,
  };
}
