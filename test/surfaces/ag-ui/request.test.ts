/** What a request of an AG-UI client asks for (E3). */
import { describe, expect, test } from 'vitest';
import { callIdOf } from '../../../src/domain/call-id.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { readRun } from '../../../src/surfaces/ag-ui/index.ts';
import type { SurfaceCommand, SurfaceRequest } from '../../../src/surfaces/surface.ts';

type Run = Extract<SurfaceCommand, { type: 'run' }>;

const CALL = callIdOf({ session_id: `ses_${'7'.repeat(32)}` }, { run: 1, iteration: 1, ordinal: 0 }) ?? '';
const user = (content: Json, id = 'u'): JsonObject => ({ id, role: 'user', content });
const tool = (toolCallId: string, more: JsonObject = {}): JsonObject => ({
  id: `of ${toolCallId}`,
  role: 'tool',
  toolCallId,
  content: 'teal',
  ...more,
});
const said: JsonObject = { id: 'a', role: 'assistant', content: 'Hm.' };

function requestOf(messages: Json[], more: JsonObject = {}, isKey = true): SurfaceRequest {
  const body = { threadId: 't', runId: 'r', messages, ...more };
  return readRun({ body, params: { name: 'assistant' }, query: {}, key: null, session: null, isKey });
}

function runOf(...given: Parameters<typeof requestOf>): Run {
  const { command } = requestOf(...given);
  if (command.type !== 'run') throw new Error('expected a run');
  return command;
}

describe('[E3] the message', () => {
  test('is the last one of the user, in the session of the thread, with the runId as its key', () => {
    expect(requestOf([user('One', 'u1'), said, user('Two', 'u2')])).toMatchObject({
      agent: 'assistant',
      thread: { type: 'named', name: 't' },
      command: {
        answers: [],
        decisions: [],
        message: { content: 'Two', key: 'agui:r', instructions: null, tools: [] },
      },
    });
  });

  test('is run again by a request without anything new', () => {
    expect(runOf([user('One'), said]).message?.content).toBe('One');
  });

  test('may have images and files; other parts are left out', () => {
    const content = [
      { type: 'text', text: 'See' },
      { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } },
      { type: 'image', source: { type: 'url', value: 'https://x/y' } },
      { type: 'document', source: { type: 'data', value: 'BBBB', mimeType: 'application/pdf' } },
      { type: 'document', source: { type: 'data', value: 'CCCC', mimeType: 'a/b' }, metadata: { filename: 'c.csv' } },
      { type: 'audio', source: { type: 'url', value: 'https://x/z', mimeType: 'audio/*' } },
      { type: 'video', source: { type: 'file', value: 'file-1' } },
      { type: 'smell' },
      7,
    ];
    expect(runOf([user(content)]).message?.content).toEqual([
      { type: 'text', text: 'See' },
      { type: 'image', media_type: 'image/png', data: 'AAAA' },
      { type: 'image', url: 'https://x/y' },
      { type: 'file', name: 'document', media_type: 'application/pdf', data: 'BBBB' },
      { type: 'file', name: 'c.csv', media_type: 'a/b', data: 'CCCC' },
      { type: 'file', url: 'https://x/z' },
    ]);
  });

  test('brings tools, and from API keys only instructions', () => {
    const messages = [
      { id: 's', role: 'system', content: 'Be brief.' },
      { id: 'd', role: 'developer', content: ' ' },
      user('Hello'),
    ];
    const more = {
      tools: [{ name: 'pick', description: 'Picks.', metadata: {} }],
      context: [{ description: 'The page', value: 'Home' }],
      state: { a: 1 },
      forwardedProps: { b: 2 },
    };
    expect(runOf(messages, more).message).toMatchObject({
      instructions: 'Be brief.\n\nThe page: Home',
      tools: [{ name: 'pick', description: 'Picks.', parameters: { type: 'object', properties: {} } }],
    });
    expect(runOf(messages, more, false).message).toMatchObject({ instructions: null, tools: [{ name: 'pick' }] });
  });
});

describe('[E3] results of calls', () => {
  test('after the last message of the user continue the run', () => {
    const other = tool('call_abc', { id: 'foreign' });
    const ours = tool('run_1-call-1-a', { id: 'run_1-call-1-a-result' });
    const { answers, message, options } = runOf([user('One'), said, ours, other, tool(CALL), said]);
    expect([answers, message]).toEqual([[{ callId: CALL, output: 'teal' }], null]);
    expect(options).toMatchObject({ answered: ['call_abc', CALL] });
  });

  test.each<readonly [string, JsonObject, JsonObject]>([
    ['JSON', { content: '{"a":1}' }, { output: { a: 1 } }],
    ['parts of text', { content: [{ type: 'text', text: '[1]' }] }, { output: [1] }],
    [
      'other parts',
      { content: [{ type: 'image', source: { type: 'url', value: 'u' } }] },
      { output: [{ type: 'image', source: { type: 'url', value: 'u' } }] },
    ],
    ['an error', { error: 'No colors' }, { error: { message: 'No colors' } }],
  ])('may be %s', (_, given, expected) => {
    expect(runOf([user('One'), tool(CALL, given)]).answers).toEqual([{ callId: CALL, ...expected }]);
  });

  test('directly before a new message come first, and do not stop it if nothing knows their call', () => {
    const request = requestOf([user('One', 'u1'), said, tool(CALL), user('Two', 'u2')]);
    expect(request.command).toMatchObject({ answers: [{ callId: CALL }], message: { content: 'Two' } });
    expect(request.otherwise?.command).toMatchObject({ answers: [], message: { content: 'Two' } });
    const old = [user('One', 'u1'), tool(CALL), said, user('Two', 'u2')];
    expect(runOf(old).answers).toEqual([]);
  });
});

describe('[E3] [C4] `parentRunId`', () => {
  const ours = (id: string): JsonObject => ({ id, role: 'assistant', content: 'Hm.' });

  test.each<readonly [string, Json[], string | null]>([
    ['the last answer before the message', [user('One'), ours('run_1-1'), ours('run_a2_2-1'), user('Two')], 'a2_2'],
    ['no later one', [user('One'), ours('run_1-1'), user('Two'), ours('run_2-1')], '1'],
    ['no answer of others', [user('One'), said, user('Two')], null],
  ])('comes with %s', (_, messages, shown) => {
    expect(runOf(messages, { parentRunId: 'p' }).follows).toEqual({ key: 'agui:p', runId: 'p', shown });
    expect(runOf(messages).follows).toBeNull();
  });
});

describe('[E3] entries of resume', () => {
  const decisionOf = (entry: JsonObject): unknown =>
    runOf([user('One'), said], { resume: [{ interruptId: 'apr_1', status: 'resolved', ...entry }] }).decisions[0];

  test.each<readonly [string, JsonObject, boolean, string | null]>([
    ['approved', { payload: { approved: true, note: 'Fine' } }, true, 'Fine'],
    ['denied', { payload: { approved: false, note: 7 } }, false, null],
    ['a text', { payload: { approved: 'true' } }, false, null],
    ['a bare true', { payload: true }, false, null],
    ['a list', { payload: [{ approved: true }] }, false, null],
    ['nothing', {}, false, null],
    ['cancelled', { status: 'cancelled', payload: { approved: true } }, false, null],
    ['another status', { status: 'approved', payload: { approved: true } }, false, null],
    ['a long note', { payload: { note: 'x'.repeat(9_999) } }, false, 'x'.repeat(limits.approvalNoteChars)],
  ])('%s', (_, entry, approved, note) => {
    expect(decisionOf(entry)).toEqual({ approvalId: 'apr_1', approved, note });
  });

  test('are no message, unless one follows', () => {
    const resume = [{ interruptId: 'apr_1', status: 'cancelled' }];
    expect(runOf([user('One'), said], { resume }).message).toBeNull();
    expect(runOf([user('One'), said, user('Two')], { resume })).toMatchObject({
      decisions: [{ approvalId: 'apr_1', approved: false }],
      message: { content: 'Two' },
    });
  });
});

test.each<readonly [string, Json, string]>([
  ['is a number', 7, 'The body: '],
  ['has no message of the user', { messages: [said] }, '"messages" has no message of the user'],
  ['has a message that is none', { messages: [7] }, '"messages.0"'],
  ['has a user who says nothing', { messages: [{ id: 'u', role: 'user' }] }, '"messages.user.content"'],
  ['has a long thread', { messages: [], threadId: 'x'.repeat(limits.threadNameChars + 1) }, '"threadId"'],
  ['has no run', { messages: [], runId: '' }, '"runId"'],
])('[E3] a body that %s', (_, change, message) => {
  const body = typeof change === 'object' ? { threadId: 't', runId: 'r', ...change } : change;
  const input = { params: { name: 'assistant' }, query: {}, key: null, session: null, isKey: true };
  expect(() => readRun({ body, ...input })).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  expect(() => readRun({ body, ...input })).toThrow(message);
});
