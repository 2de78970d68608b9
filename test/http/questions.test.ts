/** Answers to questions of targets, through the session API (J8, H4). */
import { describe, expect, test } from 'vitest';
import type { ActionCall } from '../../src/executors/executor.ts';
import { toolOf } from '../support/definitions.ts';
import { runText, settle } from '../support/session-kit.ts';
import { sessionApi } from './session-api.ts';

const ID = `apr_${'1'.repeat(32)}`;
const PATH = `/approvals/${ID}`;
const SCHEMA = {
  type: 'object',
  properties: { seats: { type: 'integer', minimum: 1 }, window: { type: 'boolean', default: true } },
  required: ['seats'],
};
const QUESTION = { from: 'the airline', message: 'How many?', schema: SCHEMA };

/** A session whose action waits for an answer. */
async function asked() {
  const calls: ActionCall[] = [];
  const error = { code: 'unanswered', message: 'the question has no answer', retryable: false };
  const made = await sessionApi({
    tools: [toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'book', effects: 'unsafe' })],
    executors: {
      tool: async (call) => {
        calls.push(call);
        if (call.answer !== undefined) return { ok: true, output: 'booked' };
        return { ok: false, error, question: { ...QUESTION, state: {} } };
      },
    },
  });
  await runText(
    made.kit,
    `<action type="tool" mode="async" id="a">{"name": "book", "parameters": {"to": "Rome"}}</action>`,
  );
  return { ...made, calls };
}

describe('[J8] a decision with values', () => {
  test('is shown with the question, and reaches the target', async () => {
    const { calls, get, post } = await asked();
    expect(await get(PATH)).toMatchObject({ status: 'open', question: QUESTION, content: null });
    expect(await get('/approvals')).toMatchObject({ approvals: [{ approval_id: ID, question: QUESTION }] });
    const decided = await post(PATH, { decision: 'approve', content: { seats: 2, window: false } });
    expect(decided).toEqual({ status: 200, body: { approval_id: ID, decision: 'approve' } });
    await settle();
    expect(calls.map(({ answer }) => answer?.content)).toEqual([undefined, { seats: 2, window: false }]);
    expect(await get(PATH)).toMatchObject({ status: 'approved', content: { seats: 2, window: false } });
  });

  test('that does not fit is refused, and the request stays open', async () => {
    const { calls, get, post } = await asked();
    const detail = 'content.seats: is missing (expected: integer)';
    expect(await post(PATH, { approve: true })).toMatchObject({
      status: 400,
      body: { code: 'invalid_answer', detail, approval_id: ID },
    });
    expect(await post(PATH, { approve: true, content: [1] })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
    expect(await get(PATH)).toMatchObject({ status: 'open' });
    expect(calls).toHaveLength(1);
  });
});
