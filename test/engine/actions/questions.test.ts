/** The target of a running action asks a person, and goes on with the answer (J8, J2, J9). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome, Question } from '../../../src/domain/action.ts';
import type { EventOf, SessionEvent } from '../../../src/domain/event.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import { eventsOf } from '../../support/events.ts';
import { hostScene, HostScene } from '../../support/host-scene.ts';
import { resultOf, settle } from '../../support/session-kit.ts';
import type { KitOptions } from '../../support/session-kit.ts';
import { ACTION, builtin, FLAKY, OK, SET } from '../calls.ts';

const TOOLS = [
  builtin({ name: 'book' }),
  builtin({ name: 'pay', effects: 'unsafe' }),
  builtin({ name: 'careful', approval: 'always' }),
  builtin({ name: 'cached', effects: 'pure', cacheTtlMs: 60_000 }),
];

const ERROR = { code: 'question_unanswered', message: 'the question has no answer', retryable: false };
const SEATS: JsonObject = {
  type: 'object',
  properties: { seats: { type: 'integer', minimum: 1 }, window: { type: 'boolean', default: true } },
  required: ['seats'],
};

const ofValues = (properties: JsonObject): JsonObject => ({ type: 'object', properties });
const MANY = Object.fromEntries(
  Array.from({ length: limits.questionValues + 1 }, (_, at) => [`v${at}`, { type: 'string' }]),
);

function asks(fields: Partial<Question> = {}): ActionOutcome {
  const question: Question = { from: 'the airline', message: 'Go on?', schema: null, state: {}, ...fields };
  return { ok: false, error: ERROR, question };
}

const askedOf = (events: readonly SessionEvent[]): readonly EventOf<'approval_requested'>[] =>
  eventsOf(events, 'approval_requested');

const scene = async (options: KitOptions = {}): Promise<HostScene> => await hostScene({ tools: TOOLS, ...options });

describe('[J8] a question of a target', () => {
  test('waits like a request for approval, and shows who asks, what, and the call', async () => {
    const stage = await scene();
    stage.ends.push(
      asks({ message: 'How many?', schema: SEATS, url: 'https://air.example/seats', state: { secret: 7 } }),
    );
    await stage.run(ACTION('a', 'book', { to: 'Rome' }));
    const [asked] = askedOf(stage.events);
    const question = { from: 'the airline', message: 'How many?', schema: SEATS, url: 'https://air.example/seats' };
    expect(asked?.data).toMatchObject({ type: 'tool', complete: true, parameters: { to: 'Rome' }, question });
    expect(JSON.stringify(stage.events)).not.toContain('secret');
    expect(stage.events.at(-1)).toMatchObject({ type: 'agent_waiting', data: { reason: 'approvals' } });
    const [listed] = stage.kit.session.openApprovals({ limit: 10, after: null });
    expect(listed).toMatchObject({ action_id: 'a', parameters: { to: 'Rome' }, question });
    expect(stage.kit.session.approval(stage.open[0] ?? '')).toMatchObject({
      status: 'open',
      parameters: { to: 'Rome' },
      question,
      content: null,
    });
    expect(stage.clock.next).toBeNull();
  });

  test('is answered: the next attempt executes the same call, with the state and the values', async () => {
    const stage = await scene();
    stage.ends.push(asks({ schema: SEATS, state: { page: 2 } }), OK);
    await stage.run(SET('s1', 'Ann'), '<response final="false">$s1.value</response>');
    await stage.run(ACTION('a', 'book', { to: '$to' }), SET('s2', 'Mallory'));
    await stage.decide(true, { seats: 3 });
    expect(stage.calls.map(({ attempt, parameters, answer }) => [attempt, parameters, answer])).toEqual([
      [1, { to: 'Ann' }, undefined],
      [2, { to: 'Ann' }, { state: { page: 2 }, content: { seats: 3 } }],
    ]);
    expect(eventsOf(stage.events, 'approval_resolved')[0]?.data).toMatchObject({
      approved: true,
      content: { seats: 3 },
    });
    expect(stage.events.at(-1)?.type).toBe('agent_completed');
    const id = askedOf(stage.events)[0]?.data.approval_id ?? '';
    expect(stage.kit.session.approval(id)).toMatchObject({ status: 'approved', content: { seats: 3 } });
    expect(stage.withdrawn).toEqual([]);
  });

  test.each([
    ['a missing value', { window: false }, 'content.seats: is missing (expected: integer)'],
    ['an unknown value', { seats: 1, meal: 'x' }, 'content.meal: unknown parameter (allowed: seats, window)'],
    ['no values, of which some have no default', null, 'content.seats: is missing (expected: integer)'],
    ['too much', { seats: 1, window: 'x'.repeat(limits.questionContentChars) }, 'content: is too large'],
  ])('refuses %s, and stays open', async (_what, content, message) => {
    const stage = await scene();
    stage.ends.push(asks({ schema: SEATS }), OK);
    await stage.run(ACTION('a', 'book'));
    await expect(stage.decide(true, content)).rejects.toMatchObject({
      code: 'invalid_answer',
      status: 400,
      message: expect.stringContaining(message),
    });
    expect(stage.open).toHaveLength(1);
    await stage.decide(true, { seats: 1 });
    expect(stage.calls.at(-1)?.answer).toEqual({ state: {}, content: { seats: 1 } });
  });

  test('without values is answered with the defaults of its schema; without a schema, with none', async () => {
    const stage = await scene();
    const schema = {
      type: 'object',
      properties: { window: { type: 'boolean', default: true }, note: { type: 'string' } },
    };
    stage.ends.push(asks({ schema }), asks(), OK);
    await stage.run(ACTION('a', 'book'));
    await stage.decide();
    await expect(stage.decide(true, { window: true })).rejects.toMatchObject({ code: 'invalid_answer' });
    await stage.decide();
    expect(stage.calls.map(({ answer }) => answer?.content)).toEqual([undefined, { window: true }, {}]);
  });

  test('and only a question has values', async () => {
    const stage = await scene();
    stage.ends.push(asks({ schema: SEATS }));
    await stage.run(ACTION('a', 'careful'));
    await expect(stage.decide(true, {})).rejects.toMatchObject({
      code: 'invalid_answer',
      message: 'content: the request asks for approval only, not for values',
    });
    await stage.decide();
    await expect(stage.decide(false, { seats: 1 })).rejects.toMatchObject({
      code: 'invalid_answer',
      message: 'content: a denied question has no values',
    });
    expect(stage.open).toHaveLength(1);
  });

  test('that is denied fails the action, and is withdrawn', async () => {
    const stage = await scene();
    stage.ends.push(asks({ state: { page: 2 } }));
    await stage.run(ACTION('a', 'book', { to: 'Rome' }));
    await stage.decide(false);
    expect(stage.failures).toEqual(['approval_denied']);
    expect(stage.calls).toHaveLength(1);
    expect(stage.withdrawn).toMatchObject([
      { action: { id: 'a' }, tool: { name: 'book' }, runtimeKey: stage.calls[0]?.runtimeKey, state: { page: 2 } },
    ]);
  });

  test('expires as denied, and is withdrawn', async () => {
    const stage = await scene();
    stage.ends.push(asks());
    await stage.run(ACTION('a', 'book'));
    stage.clock.advance(limits.approvalExpiryMs);
    await stage.kit.session.wake();
    await stage.pass();
    expect(stage.failures).toEqual(['approval_denied']);
    expect(stage.withdrawn).toHaveLength(1);
  });

  test('of a cancelled run is withdrawn; what the executor throws changes nothing', async () => {
    const stage = await scene({
      withdraw: () => {
        throw new Error('gone');
      },
    });
    stage.ends.push(asks());
    await stage.run(ACTION('a', 'book'));
    await stage.kit.session.cancel('user');
    await settle();
    expect(stage.events.at(-1)?.type).toBe('agent_cancelled');
    expect(stage.kit.faults).toEqual([]);
  });

  test('may be followed by others, up to a limit', async () => {
    const stage = await scene();
    stage.ends.push(...Array.from({ length: limits.questionsPerAction + 1 }, () => asks()));
    await stage.run(ACTION('a', 'pay'));
    for (let round = 0; round < limits.questionsPerAction; round += 1) await stage.decide();
    expect(stage.failures).toEqual(['too_many_questions']);
    expect(stage.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('[S7] its answer is kept for the retries of the attempt that gets it, and no longer', async () => {
    const stage = await scene();
    stage.ends.push(asks({ state: { n: 1 } }), FLAKY, asks({ state: { n: 2 } }), OK);
    await stage.run(ACTION('a', 'book'));
    await stage.decide();
    await stage.pass();
    await stage.decide();
    expect(stage.calls.map(({ attempt, answer }) => [attempt, answer?.state])).toEqual([
      [1, undefined],
      [2, { n: 1 }],
      [3, { n: 1 }],
      [4, { n: 2 }],
    ]);
    expect(stage.events.at(-1)?.type).toBe('agent_completed');
  });

  test('[P6] holds no claim of a cached call: an equal action goes on, and its outcome settles both', async () => {
    const stage = await scene();
    stage.ends.push(asks(), OK);
    await stage.run(ACTION('a', 'cached', { x: 1 }), ACTION('b', 'cached', { x: 1 }));
    await stage.kit.session.ended(1);
    expect(stage.calls.map(({ action }) => action.id)).toEqual(['a', 'b']);
    await stage.decide();
    await stage.kit.session.ended(1);
    expect(stage.calls).toHaveLength(2);
    expect(eventsOf(stage.events, 'action_completed').map(({ action_id: id, data }) => [id, data.cached])).toEqual([
      ['b', undefined],
      ['a', true],
    ]);
    expect(stage.withdrawn).toHaveLength(1);
  });

  test('is not part of the duration of its action', async () => {
    const stage = await scene();
    stage.ends.push(asks(), OK);
    await stage.run(ACTION('a', 'book'));
    stage.clock.advance(3 * 24 * 3_600_000);
    await stage.decide();
    expect(eventsOf(stage.events, 'action_completed')[0]?.data).toMatchObject({ attempt: 2, ms: 0 });
  });

  test.each([
    ['a page that is no web page', { url: 'javascript:alert(1)' }, 'its "url" must be an HTTP(S) URL'],
    ['a page with a long address', { url: `https://air.example/${'a'.repeat(2_048)}` }, 'of at most 2048 characters'],
    ['a page with a user name', { url: 'https://ours@evil.example/' }, 'its "url" must be an HTTP(S) URL'],
    ['a schema of no object', { schema: { type: 'string' } }, 'must describe an object'],
    [
      'nested values',
      { schema: ofValues({ a: { type: 'object' } }) },
      'the value "a" of its "schema" must be a string',
    ],
    [
      'an unusable schema',
      { schema: ofValues({ a: { type: 'string', pattern: '(' } }) },
      'its "schema" cannot be used',
    ],
    ['a large schema', { schema: { type: 'object', title: 'x'.repeat(limits.questionSchemaChars) } }, 'is too large'],
    ['a large state', { state: { x: 'x'.repeat(limits.questionStateChars) } }, 'its "state" is too large'],
    ['many values', { schema: ofValues(MANY) }, 'its "schema" has 65 values (allowed: 64)'],
  ])('with %s fails the action', async (_what, fields, message) => {
    const stage = await scene();
    stage.ends.push(asks(fields));
    await stage.run(ACTION('a', 'book'));
    expect(eventsOf(stage.events, 'action_failed')[0]?.data.error).toMatchObject({
      code: 'invalid_question',
      message: expect.stringContaining(message),
    });
    expect(askedOf(stage.events)).toEqual([]);
    // Also in a replay.
    expect((await stage.start()).faults).toEqual([]);
  });

  test('is data: its text is cut, on one line where it says who asks, and without secrets', async () => {
    const stage = await scene({ secrets: ['hunter2-hunter2'] });
    stage.ends.push(
      asks({
        from: `the\n\nsystem ${'x'.repeat(limits.questionFromChars)}`,
        message: `hunter2-hunter2 ${'y'.repeat(limits.questionChars)}`,
        state: { token: 'hunter2-hunter2' },
      }),
      OK,
    );
    await stage.run(ACTION('a', 'book'));
    const question = askedOf(stage.events)[0]?.data.question;
    expect(question?.from).toMatch(/^the system x+…$/);
    expect(question?.from).toHaveLength(limits.questionFromChars);
    expect(question?.message).toMatch(/^\[secret\] y+…$/);
    expect(question?.message).toHaveLength(limits.questionChars);
    await stage.decide();
    expect(stage.calls[1]?.answer?.state).toEqual({ token: '[secret]' });
  });
});

describe('[J2] [J9] a question across hosts', () => {
  test('stays open, with the same expiry, and its answer reaches the next attempt', async () => {
    const stage = await scene();
    stage.ends.push(asks({ schema: SEATS, state: { page: 2 } }), OK);
    await stage.run(ACTION('a', 'careful', { to: 'Rome' }));
    await stage.start();
    await stage.decide();
    const before = stage.kit.session.openApprovals({ limit: 1, after: null });
    await stage.start();
    expect(stage.kit.session.openApprovals({ limit: 1, after: null })).toEqual(before);
    await stage.start();
    await stage.decide(true, { seats: 2 });
    expect(stage.calls.map(({ attempt, parameters, answer }) => [attempt, parameters, answer])).toEqual([
      [1, { to: 'Rome' }, undefined],
      [2, { to: 'Rome' }, { state: { page: 2 }, content: { seats: 2 } }],
    ]);
    await stage.start();
    expect(stage.kit.faults).toEqual([]);
  });

  test('is not withdrawn by a replay', async () => {
    const stage = await scene();
    stage.ends.push(asks(), null);
    await stage.run(ACTION('a', 'book'), ACTION('b', 'book', { wait: true }));
    await stage.decide(false);
    expect(stage.withdrawn).toHaveLength(1);
    await stage.start();
    expect(stage.withdrawn).toHaveLength(1);
    expect(stage.kit.faults).toEqual([]);
  });

  test('an attempt with an answer that a crash interrupted has it again; an unsafe one does not run again', async () => {
    const stage = await scene();
    stage.ends.push(asks({ state: { n: 1 } }), asks({ state: { n: 2 } }));
    await stage.run(ACTION('a', 'book'), ACTION('b', 'pay'));
    await stage.decide();
    await stage.decide();
    stage.ends.push(OK);
    await stage.start();
    await stage.pass();
    const byAction = (id: string): unknown[] =>
      stage.calls.filter(({ action }) => action.id === id).map(({ attempt, answer }) => [attempt, answer?.state]);
    expect(byAction('a')).toEqual([
      [1, undefined],
      [2, { n: 1 }],
      [2, { n: 1 }],
    ]);
    expect(byAction('b')).toEqual([
      [1, undefined],
      [2, { n: 2 }],
    ]);
    expect(stage.failures).toEqual(['outcome_unknown']);
  });

  /** Asks twice, then completes with both answers; the state says how far it is. */
  const insistent =
    (calls: ActionCall[]) =>
    async (call: ActionCall): Promise<ActionOutcome> => {
      calls.push(call);
      const { state = {}, content = {} } = call.answer ?? {};
      const got = [...((state['got'] as number[] | undefined) ?? []), ...Object.values(content)] as number[];
      if (got.length === 2) return { ok: true, output: got };
      const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
      return asks({ message: `After ${got.length}`, schema, state: { got } });
    };

  test.each(['torn', 'unsynced'] as const)(
    '[C9] [P12] judgement, approval, questions and parameters are the same if the host is lost at any append (%s)',
    async (leaves) => {
      let isCrashed = true;
      let crashes = 0;
      for (let atAppend = 1; isCrashed; atAppend += 1) {
        const calls: ActionCall[] = [];
        const stage = new HostScene({
          tools: TOOLS,
          variables: { to: 'Rome' },
          policies: [
            { when: 'action.type == "tool" && parameters.to == "Mallory"', do: 'deny', message: null },
            { when: 'action.name == "book"', do: 'ask', message: null },
          ],
          executors: { tool: insistent(calls) },
        });
        // The session is created by a host that survives it.
        await stage.start();
        await stage.start({ atAppend, leaves });
        const text = `${ACTION('a', 'book', { to: '$to' })}${SET('s', 'Mallory')}${ACTION('c', 'book', { to: '$to' }, { depends_on: ['s'] })}`;
        stage.run(text).catch(() => undefined);
        await settle();
        isCrashed = stage.crashed;
        if (stage.crashed) await stage.start();
        if (stage.kit.session.runCount === 0) await stage.run(text);
        await stage.pass();
        for (let turn = 0; turn < 10 && stage.open.length > 0; turn += 1) {
          const [id = ''] = stage.open;
          const { question } = stage.kit.session.approval(id);
          const content = question === null ? null : { n: question.message === 'After 0' ? 10 : 20 };
          stage.kit.session.resolveApproval(id, true, null, content).catch(() => undefined);
          await settle();
          isCrashed ||= stage.crashed;
          if (stage.crashed) await stage.start();
          await stage.pass();
        }
        crashes += isCrashed ? 1 : 0;
        const { session, faults } = stage.kit;
        const run = session.runs().at(-1);
        if (run === undefined) throw new Error('the run is missing');
        const { status, actions } = await resultOf(session, run);
        const ends = Object.fromEntries(actions.map(({ id, output, error }) => [id, output ?? error?.code]));
        expect({ atAppend, faults, status, ends }).toMatchObject({
          atAppend,
          faults: [],
          status: 'completed',
          ends: { a: [10, 20], c: 'policy_denied' },
        });
        // The answer of an attempt depends on its number only.
        const answers = [
          undefined,
          { state: { got: [] }, content: { n: 10 } },
          { state: { got: [10] }, content: { n: 20 } },
        ];
        for (const { attempt, answer, parameters } of calls) {
          expect([attempt, answer, parameters]).toEqual([attempt, answers[attempt - 1], { to: 'Rome' }]);
        }
      }
      expect(crashes).toBeGreaterThan(9);
    },
  );
});
