/** Starts what the original's routes ask for, inside the session's object. For the Worker only. */
import { Hono } from 'hono';
import * as z from 'zod';
import { json } from '../../domain/event-table.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Session } from '../../engine/session/session.ts';
import { readJson } from '../body.ts';
import { admitted, checkMessage } from '../post-message.ts';
import { once } from '../routes/session-actions.ts';
import { runResponse } from '../run-response.ts';
import { validate } from '../schemas.ts';
import { traceOf } from '../session-env.ts';
import type { SessionEnv } from '../session-env.ts';
import type { Traced } from '../../engine/session/session-admission.ts';
import { executionDocument } from './execution-document.ts';

const workBody = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('program'), text: z.string() }),
  z.strictObject({ type: z.literal('message'), content: z.string() }),
  z.strictObject({ type: z.literal('workflow'), inputs: z.record(z.string(), json) }),
]);
export type Work = z.output<typeof workBody>;

export const WORK_PATH = '/-/work';

export const originalSessionRoutes = new Hono<SessionEnv>();

originalSessionRoutes.post(WORK_PATH, async (c) => {
  const { session } = c.env;
  const work = validate(workBody, await readJson(c.req.raw, limits.bodyBytes * 2));
  await admitted(c.env);
  const after = session.lastSeq;
  const run = await start(session, work, traceOf(c));
  return await runResponse(c, run, after, false, executionDocument(session.record.session_id));
});

async function start(session: Session, work: Work, by: Traced): Promise<RunRecord> {
  switch (work.type) {
    case 'program':
      return await session.execute(once(work.text), work.text, by);
    case 'message': {
      checkMessage(work.content);
      const message = { content: work.content, tokens: false, ifBusy: 'queue', idempotencyKey: null } as const;
      return await session.message({ ...message, ...(by.trace === undefined ? {} : { trace: by.trace }) });
    }
    case 'workflow':
      return await session.workflow(work.inputs, by);
  }
}
