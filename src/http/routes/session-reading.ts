/** Routes that read a session: its record, events, runs, artifacts, feeds and variables (H1, H2). */
import { Hono } from 'hono';
import { readContent, textOfContent } from '../../domain/content.ts';
import type { ContentPart, MessageContent } from '../../domain/content.ts';
import { EngineError } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { SessionReading } from '../../engine/session/session-reading.ts';
import type { Session } from '../../engine/session/session.ts';
import { downloadResponse } from '../download.ts';
import { lastEventId, range } from '../headers.ts';
import { sessionOperation, readHeader } from '../openapi/describe.ts';
import { jsonAnswer, LINES_HEADERS, textStream } from '../lines.ts';
import { artifactsQuery, eventsQuery, historyQuery, readQuery, runsQuery, transcriptQuery } from '../query.ts';
import * as runsAnswers from '../responses/runs.ts';
import * as sessionsAnswers from '../responses/sessions.ts';
import { closedBy, expiryOf, runDocument, seededViewFor, viewFor } from '../run-response.ts';
import { INCARNATION_PATH } from '../session-env.ts';
import type { SessionEnv } from '../session-env.ts';
import { eventStream, SSE_HEADERS } from '../sse.ts';
import { isHiddenAction } from '../view.ts';

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
    const { slices } = session.read();
    return new Response(eventStream(events, heartbeat, { after: from, runId, expiry, view: viewFor(c), slices }), {
      headers: SSE_HEADERS,
    });
  },
);

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/history',
  { query: historyQuery, response: sessionsAnswers.history },
  async (c) => {
    const { session } = c.env;
    const { session_id: id } = session.record;
    const reading = session.read();
    const { limit = limits.pageRows, before } = readQuery(historyQuery, c.req.url);
    const seededBefore = before?.startsWith('seeded_') === true ? numberIn(before) : undefined;
    const page = seededBefore === undefined ? session.runs(limit, positionOf(session, before)) : [];
    const messages: Record<string, unknown>[][] = [];
    let sizeChars = 0;
    // Selected newest first within the size limit; returned in order.
    for (const run of page.toReversed()) {
      if (sizeChars > limits.historyPageChars) break;
      const { runId: run_id, status, startedAt, endedAt } = run;
      const said = readContent(run.input['content']);
      const user = said === null ? null : textOfContent(said);
      const content = await reading.answer(run);
      sizeChars += content.length + (user?.length ?? 0);
      messages.push([
        ...(user === null
          ? []
          : [{ role: 'user', content: user, ...partsOf(said), ...metadataOf(run), run_id, timestamp: startedAt }]),
        { role: 'assistant', content, run_id, status, timestamp: endedAt, ...failureOf(reading, run) },
      ]);
    }
    const oldest = messages.length === 0 ? undefined : page.at(-messages.length);
    let next = oldest === undefined || oldest.run === 1 ? null : oldest.runId;
    if (next === null) {
      // The seeded history precedes the first run.
      let left = limit - messages.length;
      for await (const { id: number, message } of reading.seeded(seededBefore, seededViewFor(c))) {
        if (left <= 0 || sizeChars > limits.historyPageChars) {
          next = `seeded_${number + 1}`;
          break;
        }
        left -= 1;
        const shown = { ...message, ...contentOf(message.content), seeded: true };
        sizeChars += shown.content?.length ?? 0;
        messages.push([shown]);
      }
    }
    return await jsonAnswer(reading.list({ session_id: id }, 'messages', messages.toReversed().flat(), { next }));
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
  return new Response(
    textStream(session.export({ view: viewFor(c), seededView: seededViewFor(c) }), { closed: closedBy(c) }),
    {
      headers: LINES_HEADERS,
    },
  );
});

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/artifacts',
  { query: artifactsQuery, response: sessionsAnswers.artifacts },
  async (c) => {
    const { session } = c.env;
    const { session_id: id } = session.record;
    const { artifacts, next } = await session.read().artifacts(readQuery(artifactsQuery, c.req.url).after ?? 0);
    const shown = viewFor(c) === null ? artifacts : artifacts.filter((one) => !isHiddenAction(one.action_name));
    return c.json({ session_id: id, artifacts: shown, next });
  },
);
sessionOperation(
  sessionReading,
  'GET /agent/session/:id/artifacts/:artifact',
  { headers: [range], media: 'file', further: [206] },
  async (c) => {
    const artifact = await c.env.session.read().artifact(c.req.param('artifact'));
    if (viewFor(c) === null || !isHiddenAction(artifact.action_name))
      return downloadResponse(artifact, readHeader(c, range));
    throw new EngineError('forbidden', 'Feeds require the scope "read"');
  },
);

sessionOperation(
  sessionReading,
  'GET /agent/session/:id/content/:sha256',
  { headers: [range], media: 'file', further: [206] },
  async (c) => {
    const { session } = c.env;
    void session.record;
    return downloadResponse(await session.read().content(c.req.param('sha256')), readHeader(c, range));
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
    const runs = page.map(({ runId, status, startedAt, endedAt }) => ({
      run_id: runId,
      status,
      started_at: startedAt,
      ended_at: endedAt,
    }));
    const oldest = page[0];
    return c.json({ runs, next: oldest === undefined || oldest.run === 1 ? null : oldest.runId });
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
    return await jsonAnswer(session.read().prompt(run), { closed: closedBy(c) });
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

/**
 * The number of a run that a page precedes. An id must be of this session and its incarnation: a client that continues
 * the list of a deleted session would otherwise get a page of the next one (T5).
 *
 * @throws EngineError `unknown_run`
 */
function positionOf(session: Session, before: string | undefined): number | undefined {
  return before?.startsWith('run_') === true ? session.run(before).run : numberIn(before);
}

/** The number at the end of an id. */
function numberIn(id: string | undefined): number | undefined {
  return id === undefined ? undefined : Number(/\d+$/.exec(id)?.[0]);
}

function sessionDocument(session: Session): Record<string, unknown> {
  const { record } = session;
  const { owner: _owner, incarnation: _incarnation, request_sha256: _request, ...visible } = record;
  // A program and a workflow have no message of the user.
  const perRun = record.kind === 'execution' || record.workflow !== undefined ? 1 : 2;
  return {
    ...visible,
    agent_name: record.agent,
    updated_at: session.updatedAt,
    message_count: session.seededCount + session.runCount * perRun,
    status: session.status,
    last_seq: session.lastSeq,
    runs: session.runCount,
  };
}

/** What the client stored with a message. */
function metadataOf({ input }: RunRecord): { metadata?: Json } {
  return input['metadata'] === undefined ? {} : { metadata: input['metadata'] };
}

/** As text, and its parts if it has files. */
function contentOf(content: MessageContent | null): {
  readonly content: string | null;
  readonly parts?: readonly ContentPart[];
} {
  return { content: content === null ? null : textOfContent(content), ...partsOf(content) };
}

/** The parts of a message that has files. */
function partsOf(content: MessageContent | null): { readonly parts?: readonly ContentPart[] } {
  return content === null || typeof content === 'string' ? {} : { parts: content };
}

/** Why a run has no answer, or not a whole one. */
function failureOf(reading: SessionReading, run: RunRecord): { error?: object } {
  const error = run.status === 'failed' ? reading.failure(run) : null;
  return error === null ? {} : { error };
}
