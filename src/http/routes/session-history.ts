/** `GET …/history`: the messages and answers of a branch, and the conversation before the session (H1, C1, C4). */
import { Hono } from 'hono';
import { readContent, textOfContent } from '../../domain/content.ts';
import type { ContentPart, MessageContent } from '../../domain/content.ts';
import { EngineError } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { OutgoingText } from '../../engine/session/outgoing-text.ts';
import type { SessionReading } from '../../engine/session/session-reading.ts';
import type { Session } from '../../engine/session/session.ts';
import { jsonAnswer } from '../lines.ts';
import { sessionOperation } from '../openapi/describe.ts';
import { historyQuery, readQuery } from '../query.ts';
import * as sessionsAnswers from '../responses/sessions.ts';
import { numberIn, positionOf } from '../page-position.ts';
import { readingFor } from '../run-response.ts';
import type { SessionEnv } from '../session-env.ts';

export const sessionHistory = new Hono<SessionEnv>();

sessionOperation(
  sessionHistory,
  'GET /agent/session/:id/history',
  { query: historyQuery, response: sessionsAnswers.history },
  async (c) => {
    const { session } = c.env;
    const { session_id: id } = session.record;
    const reading = readingFor(c);
    const { limit = limits.pageRows, before, run: last } = readQuery(historyQuery, c.req.url);
    const seededBefore = before?.startsWith('seeded_') === true ? numberIn(before) : undefined;
    const page = seededBefore === undefined ? pageOf(session, { limit, before, last }) : [];
    const messages: Record<string, unknown>[][] = [];
    let sizeChars = 0;
    // Selected newest first within the size limit; returned in order.
    for (const run of page.toReversed()) {
      if (sizeChars > limits.historyPageChars) break;
      const turn = await turnOf(session, reading, run);
      sizeChars += turn.chars;
      messages.push(turn.messages);
    }
    const oldest = messages.length === 0 ? undefined : page.at(-messages.length);
    let next = oldest === undefined || oldest.parent === 0 ? null : oldest.runId;
    if (next === null) {
      // The seeded history precedes the first run.
      let left = limit - messages.length;
      for await (const { id: number, message } of reading.seeded(seededBefore)) {
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
    const end = last === undefined ? session.branches.head : session.run(last);
    // A part of the prompt, like what `…/prompts` shows.
    const summary = end === null || reading.view !== null ? null : session.summary(end);
    const shown = { session_id: id, ...(summary === null ? {} : { summary }) };
    return await jsonAnswer(reading.list(shown, 'messages', messages.toReversed().flat(), { next }));
  },
);

/**
 * The runs of a page: the newest ones of a branch, or those before a run; what precedes a run is on one branch.
 *
 * @throws EngineError `unknown_run`; `invalid_request` if the run is not on the branch that is asked for
 */
function pageOf(
  session: Session,
  {
    limit,
    before,
    last,
  }: { readonly limit: number; readonly before: string | undefined; readonly last: string | undefined },
): readonly RunRecord[] {
  const { branches } = session;
  const position = positionOf(session, before);
  const end = last === undefined ? branches.head : session.run(last);
  if (position !== undefined) {
    const found = session.runs(1, position + 1).at(-1);
    const known = found?.run === position ? found : null;
    if (last !== undefined && end !== null && (known === null || !isOnBranch(session, known, end))) {
      const message = `"before" is the run "${before}", which is not on the branch that ends with the run "${last}"`;
      throw new EngineError('invalid_request', message, { issues: [{ path: 'before', message }] });
    }
    const parent = known === null ? null : branches.parentOf(known);
    return parent === null ? [] : branches.upTo(parent, limit);
  }
  return end === null ? [] : branches.upTo(end, limit);
}

/** Whether a run is on the branch that ends with another one. */
function isOnBranch({ branches }: Session, run: RunRecord, end: RunRecord): boolean {
  const after = branches.lengthOf(end) - branches.lengthOf(run);
  return after >= 0 && branches.upTo(end, after + 1)[0]?.run === run.run;
}

/** The message and the answer of a run. */
async function turnOf(
  session: Session,
  reading: SessionReading,
  run: RunRecord,
): Promise<{ readonly messages: Record<string, unknown>[]; readonly chars: number }> {
  const { runId: run_id, status, startedAt, endedAt } = run;
  const { outgoing } = reading;
  const said = outgoing.content(readContent(run.input['content']));
  const user = said === null ? null : textOfContent(said);
  const content = await reading.answer(run);
  const { parent_run, ...retry } = session.branches.placeOf(run);
  const versions = session.branches.versionsOf(run).map(({ runId }) => runId);
  const asked = {
    role: 'user',
    content: user,
    ...partsOf(said),
    ...metadataOf(run, outgoing),
    run_id,
    parent_run,
    ...retry,
    ...(versions.length > 1 ? { branches: versions } : {}),
    timestamp: startedAt,
  };
  const received = session.branches.receivedBy(run).map(({ message_id, content: text, metadata, at }) => ({
    role: 'user',
    ...contentOf(outgoing.content(text)),
    ...(metadata === undefined ? {} : { metadata: outgoing.json(metadata) }),
    run_id,
    parent_run,
    message_id,
    steered: true,
    timestamp: at,
  }));
  const answered = { role: 'assistant', content, run_id, parent_run, status, timestamp: endedAt };
  return {
    messages: [...(user === null ? [] : [asked]), ...received, { ...answered, ...failureOf(reading, run) }],
    chars: content.length + (user?.length ?? 0) + received.reduce((sum, one) => sum + (one.content?.length ?? 0), 0),
  };
}

/** What the client stored with a message. */
function metadataOf({ input }: RunRecord, outgoing: Pick<OutgoingText, 'json'>): { metadata?: Json } {
  return input['metadata'] === undefined ? {} : { metadata: outgoing.json(input['metadata']) };
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
