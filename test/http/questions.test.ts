/** Answers to questions of targets, through the session API (J8, H4). */
import { describe, expect, test } from 'vitest';
import type { Question } from '../../src/domain/action.ts';
import type { ActionCall } from '../../src/executors/executor.ts';
import { toolOf } from '../support/definitions.ts';
import { checkedKit } from '../support/response-check.ts';
import { runText, sessionKit, settle } from '../support/session-kit.ts';

const ID = `apr_${'1'.repeat(32)}`;
const PATH = `/approvals/${ID}`;
const SCHEMA = {
  type: 'object',
  properties: { seats: { type: 'integer', minimum: 1 }, window: { type: 'boolean', default: true } },
  required: ['seats'],
};

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Asked {
  readonly calls: readonly ActionCall[];
  ask(path: string, body?: object): Promise<Answer>;
}

/** A session whose action waits for an answer; null: for an approval. */
async function asked(question: Partial<Question> | null): Promise<Asked> {
  const calls: ActionCall[] = [];
  const kit = await sessionKit({
    tools: [
      toolOf(
        { type: 'builtin', entrypoint: 'echo' },
        { name: 'book', effects: 'unsafe', approval: question === null ? 'always' : 'never' },
      ),
    ],
    executors: {
      tool: async (call) => {
        calls.push(call);
        if (question === null || call.answer !== undefined) return { ok: true, output: 'booked' };
        const error = { code: 'unanswered', message: 'nobody answers', retryable: false };
        return {
          ok: false,
          error,
          question: { from: 'the airline', message: 'How many?', schema: SCHEMA, state: {}, ...question },
        };
      },
    },
  });
  const fetch = checkedKit(kit);
  await runText(kit, `<action type="tool" mode="async" id="a">{"name": "book", "parameters": {"to": "Rome"}}</action>`);
  return {
    calls,
    ask: async (path, body) => {
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
      const response = await fetch(new Request(`http://session${path}`, init));
      await settle();
      return { status: response.status, body: (await response.json()) as Answer['body'] };
    },
  };
}

describe('[J8] a decision with values', () => {
  test('is shown with the question, and reaches the target', async () => {
    const { calls, ask } = await asked({});
    const question = { from: 'the airline', message: 'How many?', schema: SCHEMA };
    expect(await ask(PATH)).toMatchObject({ status: 200, body: { status: 'open', question, content: null } });
    expect((await ask('/approvals')).body).toMatchObject({ approvals: [{ approval_id: ID, question }] });
    const decided = await ask(PATH, { decision: 'approve', content: { seats: 2, window: false } });
    expect(decided).toEqual({ status: 200, body: { approval_id: ID, decision: 'approve' } });
    expect(calls.map(({ answer }) => answer?.content)).toEqual([undefined, { seats: 2, window: false }]);
    expect((await ask(PATH)).body).toMatchObject({ status: 'approved', content: { seats: 2, window: false } });
  });

  test.each([
    [{ approve: true }, 'content.seats: is missing (expected: integer)'],
    [{ approve: true, content: { seats: 'two' } }, 'content.seats: expected integer, got string "two"'],
    [{ approve: true, content: { seats: 2, meal: 'x' } }, 'content.meal: unknown parameter (allowed: seats, window)'],
    [{ deny: true, content: { seats: 2 } }, 'content: a denied question has no values'],
  ])('%j is refused with 400 invalid_answer, and the request stays open', async (body, detail) => {
    const { calls, ask } = await asked({});
    expect(await ask(PATH, body)).toMatchObject({
      status: 400,
      body: { code: 'invalid_answer', detail, approval_id: ID },
    });
    expect((await ask(PATH)).body).toMatchObject({ status: 'open' });
    expect(calls).toHaveLength(1);
  });

  test('must be an object', async () => {
    const { ask } = await asked({});
    expect(await ask(PATH, { approve: true, content: [1] })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
  });
});
