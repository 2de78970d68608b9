/** What requests of the Responses API ask for (E2). */
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { readCancelResponse, readResponse, readRetrieveResponse } from '../../../src/surfaces/openai/index.ts';
import type { SurfaceInput, SurfaceRequest } from '../../../src/surfaces/surface.ts';

const SESSION = '1'.repeat(32);
const RUN = `run_${SESSION}_0a1b2c3d4e5f_2`;
const KEY = RUN.replace('run_', '');
const RESPONSE = `resp_${KEY}`;
/** A call of the session `ses_00…`. */
const CALL = `call_${'A'.repeat(30)}`;
const OF_CALL = `ses_${'0'.repeat(32)}`;

const INPUT: SurfaceInput = { body: {}, params: {}, query: {}, key: null, session: null, isKey: true };
const read = (body: JsonObject, key: string | null = null): SurfaceRequest =>
  readResponse({ ...INPUT, body: { model: 'assistant', ...body }, key });

/** The parts of a request in which the tests are interested. */
function parts({ thread, command }: SurfaceRequest): object {
  if (command.type !== 'run') return { thread, command };
  const { answers, decisions, message, follows } = command;
  return {
    session: thread.type === 'session' ? thread.sessionId : thread.type === 'new' ? thread.history : thread.name,
    answers: answers.map((one) => ('output' in one ? [one.callId, one.output] : one)),
    decisions: decisions.map(({ approvalId, approved }) => [approvalId, approved]),
    message: message?.content ?? null,
    follows: follows !== null && 'runId' in follows ? follows.runId : null,
  };
}
const NOTHING = { answers: [], decisions: [], message: null, follows: null };

const user = (content: Json): JsonObject => ({ role: 'user', content });
const call = (id: string): JsonObject => ({ type: 'function_call', call_id: id, name: 'pick', arguments: '{}' });
const output = (id: string, text = 'teal'): JsonObject => ({ type: 'function_call_output', call_id: id, output: text });
const reference = (id = `msg_${KEY}_17`): JsonObject => ({ type: 'item_reference', id });
const reasoning = { type: 'reasoning', id: `rs_${KEY}_3`, summary: [] };
const approval = { type: 'mcp_approval_response', approval_request_id: `mcpr_${KEY}_${'b'.repeat(32)}`, approve: true };
const called = (...ids: string[]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'pick', arguments: '{}' } })),
});
const result = (id: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: 'teal' });

describe('[E2] input of a new conversation', () => {
  test.each<[string, Json, Json[], Json]>([
    ['a text', 'Hello', [], 'Hello'],
    ['a message', [user('Hello')], [], 'Hello'],
    ['parts', [user([{ type: 'input_text', text: 'Hello' }])], [], [{ type: 'text', text: 'Hello' }]],
    ['two messages', [user('A'), user('B')], [user('A')], 'B'],
    [
      'an earlier answer, without its thoughts',
      [user('A'), reasoning, { type: 'message', role: 'assistant', content: 'B' }, user('C')],
      [user('A'), { role: 'assistant', content: 'B' }],
      'C',
    ],
    ['an item that was cut off', [user('A'), { role: 'assistant', content: [] }, user('C')], [user('A')], 'C'],
    [
      'calls side by side',
      [user('A'), call('c1'), call('c2'), output('c1'), output('c2'), user('C')],
      [user('A'), called('c1', 'c2'), result('c1'), result('c2')],
      'C',
    ],
    [
      'calls one after the other',
      [user('A'), call('c1'), output('c1'), call('c2'), output('c2'), user('C')],
      [user('A'), called('c1'), result('c1'), called('c2'), result('c2')],
      'C',
    ],
    [
      'an action of an agent',
      [
        user('A'),
        { type: 'mcp_call', id: 'c1', server_label: 'cortex', name: 'pick', arguments: '{}', output: 'teal' },
        user('C'),
      ],
      [user('A'), called('c1'), result('c1')],
      'C',
    ],
    [
      'results of unknown calls',
      [user('A'), call('c1'), output('c1')],
      [user('A'), called('c1'), result('c1')],
      'Continue.',
    ],
  ])('%s', (_, input, history, message) => {
    expect(parts(read({ input }))).toEqual({ ...NOTHING, session: history, message });
  });

  test('instructions are those of the request and of the system', () => {
    const { command } = read({ instructions: 'One.', input: [{ role: 'developer', content: 'Two.' }, user('Hello')] });
    expect(command).toMatchObject({ message: { instructions: 'One.\n\nTwo.' } });
  });

  test('only an answer that is not stored is ephemeral; the key makes it the same session', () => {
    const threadOf = (body: JsonObject): object => read({ input: 'Hello', ...body }, 'k').thread;
    expect(threadOf({})).toMatchObject({ isEphemeral: false, key: 'openai:k' });
    expect(threadOf({ store: false })).toMatchObject({ isEphemeral: true });
  });
});

describe('[E2] input that continues', () => {
  const previous = { previous_response_id: RESPONSE };
  const session = `ses_${SESSION}`;

  test.each<[string, JsonObject, object]>([
    ['a message after a response', { ...previous, input: 'Hello' }, { session, message: 'Hello', follows: RUN }],
    [
      'a part of a run',
      { previous_response_id: `${RESPONSE}_c12`, input: 'Hello' },
      { session, message: 'Hello', follows: RUN },
    ],
    ['a result', { ...previous, input: [output(CALL)] }, { session, answers: [[CALL, 'teal']] }],
    ['a result as JSON', { ...previous, input: [output(CALL, '{"a":1}')] }, { session, answers: [[CALL, { a: 1 }]] }],
    [
      'a result and a message',
      { ...previous, input: [user('Hello'), output(CALL)] },
      { session, answers: [[CALL, 'teal']], message: 'Hello', follows: RUN },
    ],
    // The AI SDK repeats the message that was answered with calls.
    [
      'a result with what precedes it',
      { ...previous, input: [user('Hello'), call(CALL), output(CALL)] },
      { session, answers: [[CALL, 'teal']] },
    ],
    ['a decision', { ...previous, input: [approval] }, { session, decisions: [[`apr_${'b'.repeat(32)}`, true]] }],
    ['a result by its call', { input: [output(CALL)] }, { session: OF_CALL, answers: [[CALL, 'teal']] }],
    [
      'results of all calls since the message',
      { input: [user('A'), call(CALL), output(CALL), reasoning, call(`${CALL}B`), output(`${CALL}B`, 'red')] },
      {
        session: OF_CALL,
        answers: [
          [CALL, 'teal'],
          [`${CALL}B`, 'red'],
        ],
      },
    ],
    [
      'a decision by its request',
      { input: [user('A'), reference(), approval] },
      { session, decisions: [[`apr_${'b'.repeat(32)}`, true]] },
    ],
    [
      'a message after a reference',
      { input: [user('A'), reference(), user('B')] },
      { session, message: 'B', follows: RUN },
    ],
    [
      'a message after a reference and results',
      { input: [user('A'), reference(), call(CALL), output(CALL), user('B')] },
      { session, message: 'B', follows: RUN },
    ],
  ])('%s', (_, body, expected) => {
    expect(parts(read(body))).toEqual({ ...NOTHING, ...expected });
  });

  test('messages that follow each other may have runs between; with the id of a response, they may not', () => {
    const followed = (body: JsonObject): unknown => {
      const { command } = read(body);
      return command.type === 'run' ? command.follows : null;
    };
    const input = [user('B'), user('C')];
    expect(followed({ input: [user('A'), reference(), ...input] })).toEqual({ runId: RUN, unanswered: 1 });
    expect(followed({ ...previous, input })).toEqual({ runId: RUN, unanswered: 0 });
  });

  test('results whose session is gone are history, if the request has all of it', () => {
    const input = [user('A'), call(CALL), output(CALL)];
    const { otherwise } = read({ input });
    expect(otherwise === undefined ? null : parts(otherwise)).toEqual({
      ...NOTHING,
      session: [user('A'), called(CALL), result(CALL)],
      message: 'Continue.',
    });
    expect(read({ input: [output(CALL)] }).otherwise).toBeUndefined();
    expect(read({ input: [reference(), ...input] }).otherwise).toBeUndefined();
  });

  test.each([
    ['an answer after the previous response', { ...previous, input: [{ role: 'assistant', content: 'I' }, user('A')] }],
    ['an answer after a reference', { input: [reference(), { role: 'assistant', content: 'I' }, user('A')] }],
  ])('%s is not supported', (_, body) => {
    expect(() => read(body)).toThrow(expect.objectContaining({ code: 'not_supported' }) as Error);
  });
});

describe('[E2] a response by its id', () => {
  const params = { response: `${RESPONSE}_c12` };

  test('is read, streamed after a number, and cancelled', () => {
    const base = { agent: null, thread: { type: 'session', sessionId: `ses_${SESSION}` }, userId: null };
    const follow = { type: 'follow', runId: RUN, after: 12 };
    expect(readRetrieveResponse({ ...INPUT, params })).toEqual({
      ...base,
      command: { ...follow, stream: false, options: { api: 'responses', startingAfter: 0 } },
    });
    expect(readRetrieveResponse({ ...INPUT, params, query: { stream: 'true', starting_after: 7 } })).toEqual({
      ...base,
      command: { ...follow, stream: true, options: { api: 'responses', startingAfter: 7 } },
    });
    expect(readCancelResponse({ ...INPUT, params })).toEqual({
      ...base,
      command: { type: 'cancel', runId: RUN, after: 12, options: { api: 'responses' } },
    });
  });

  test.each(['', 'resp_', RESPONSE.slice(1), `${RESPONSE}_c`, `${RESPONSE}_c1x`, `${RESPONSE}\n`, RUN])(
    '%j is unknown',
    (response) => {
      expect(() => readRetrieveResponse({ ...INPUT, params: { response } })).toThrow(
        expect.objectContaining({ code: 'unknown_run' }) as Error,
      );
    },
  );
});
