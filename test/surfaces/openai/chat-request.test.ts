/** Requests of chat completions as commands (E2). */
import { describe, expect, test } from 'vitest';
import { callIdOf } from '../../../src/domain/call-id.ts';
import type { Json } from '../../../src/domain/json.ts';
import { readChatCompletion } from '../../../src/surfaces/openai/index.ts';
import type { SurfaceCommand } from '../../../src/surfaces/surface.ts';

const CALL =
  callIdOf(
    { session_id: `ses_${'a'.repeat(32)}`, incarnation: '0a1b2c3d4e5f' },
    { run: 1, iteration: 1, ordinal: 0 },
  ) ?? '';

type Run = Extract<SurfaceCommand, { type: 'run' }>;

function read(messages: readonly object[], session: string | null): Run {
  const body = { model: 'assistant', messages } as unknown as Json;
  const { command } = readChatCompletion({ body, params: {}, query: {}, key: null, session, isKey: true });
  if (command.type !== 'run') throw new Error('a completion is a run');
  return command;
}

describe('[E2] results of calls before the message of a kept session', () => {
  const asked = { role: 'assistant', content: null, tool_calls: [] };
  const result = { role: 'tool', tool_call_id: CALL, content: 'teal' };
  const other = { role: 'tool', tool_call_id: 'call_of_another_system', content: 'red' };
  const said = { role: 'user', content: 'Thanks' };

  test('are given to the run that waits for them, and may be late', () => {
    const { answers, message, ignoresLate } = read([asked, other, result, said], 'kept');
    expect(answers).toEqual([{ callId: CALL, output: 'teal' }]);
    expect([message?.content, ignoresLate]).toEqual(['Thanks', true]);
  });

  test('are history in a request without a session, or further back', () => {
    expect(read([asked, result, said], null).answers).toEqual([]);
    expect(read([asked, result, { role: 'assistant', content: 'Teal.' }, said], 'kept').answers).toEqual([]);
  });
});

test('[E2] a message that the conversation has before cannot be told from a repeated one', () => {
  const hello = { role: 'user', content: 'Hello' };
  expect(read([hello, { role: 'assistant', content: 'Hi' }, hello], 'kept').message?.isSaidBefore).toBe(true);
  expect(read([hello], 'kept').message?.isSaidBefore).toBeUndefined();
});

test('[E2] the error about a part of a message says which one', () => {
  const audio = { role: 'user', content: [{ type: 'input_audio', input_audio: {} }] };
  expect(() => read([audio], null)).toThrow('"content.0');
  expect(() => readChatCompletion({ body: [1], params: {}, query: {}, key: null, session: null, isKey: true })).toThrow(
    'The body: ',
  );
});

test.each([
  ['ann', 'ann'],
  ['', null],
  [undefined, null],
  [null, null],
])('[E2][C6] the user %j of a completion is %j; one that no list could name is refused', (user, expected) => {
  const read = (given: unknown): string | null => {
    const body = { model: 'assistant', messages: [{ role: 'user', content: 'x' }], user: given } as unknown as Json;
    return readChatCompletion({ body, params: {}, query: {}, key: null, session: null, isKey: true }).userId;
  };
  expect(read(user)).toBe(expected);
  expect(() => read('a\nb')).toThrow('"user"');
});
