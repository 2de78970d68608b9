/** Which histories a new session accepts (C1). */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SeededCall } from '../../src/domain/seeded.ts';
import { admitHistory } from '../../src/policies/seeded-history.ts';
import type { GivenMessage } from '../../src/policies/seeded-history.ts';

const call = (id: string, text = '{}'): SeededCall => ({
  id,
  type: 'function',
  function: { name: 'weather', arguments: text },
});
const calls = (...ids: string[]): GivenMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => call(id)),
});
const result = (id: string, content = '1'): GivenMessage => ({ role: 'tool', tool_call_id: id, content });
const hi: GivenMessage = { role: 'user', content: 'hi' };

async function refusal(history: readonly GivenMessage[]): Promise<[code: string, message: string]> {
  try {
    await admitHistory(history);
  } catch (fault) {
    if (fault instanceof EngineError) return [fault.code, fault.message];
    throw fault;
  }
  throw new Error('the history was accepted');
}

test.each<[string, readonly GivenMessage[]]>([
  ['nothing', []],
  ['a greeting of the assistant', [{ role: 'assistant', content: 'Hello!' }, hi]],
  ['several messages of one role', [hi, hi, { role: 'assistant', content: 'a' }, { role: 'assistant', content: 'b' }]],
  ['calls whose results come in another order', [hi, calls('a', 'b'), result('b'), result('a'), hi]],
  ['an id that a later message uses again', [hi, calls('a'), result('a'), calls('a'), result('a')]],
  ['an empty result', [hi, calls('a'), result('a', '')]],
])('[C1] a history may contain %s', async (_, history) => {
  expect((await admitHistory(history)).messages).toHaveLength(history.length);
});

test('[C1] only what is shown or returned is kept', async () => {
  const given: GivenMessage[] = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      name: 'ann',
    },
    { role: 'assistant', content: ' ', tool_calls: [call('a', '')], name: null },
    result('a'),
    { role: 'assistant', content: null, refusal: 'I cannot.', tool_calls: null },
  ];
  expect((await admitHistory(given)).messages).toEqual([
    { role: 'user', content: 'a\nb', name: 'ann' },
    { role: 'assistant', content: null, tool_calls: [call('a', '')] },
    { role: 'tool', tool_call_id: 'a', content: '1' },
    { role: 'assistant', content: 'I cannot.' },
  ]);
});

describe('[C1] a history is refused', () => {
  const DEEP = `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
  test.each<[string, readonly GivenMessage[], string]>([
    ['with an empty user message', [{ role: 'user', content: ' \n' }], 'history[0]: a user message must not be empty'],
    ['with an empty answer', [hi, { role: 'assistant', content: '' }], 'history[1]: an assistant message must have'],
    ['with an answer of nothing', [hi, { role: 'assistant', tool_calls: [] }], 'history[1]: an assistant message must'],
    ['with a result without a call', [hi, result('a')], 'no call has the id "a": the assistant message before this'],
    [
      'with a result of another call',
      [hi, calls('a', 'b'), result('c')],
      'history[2]: no call has the id "c": the assistant message before this tool message has only the calls a, b',
    ],
    [
      'with a second result',
      [hi, calls('a'), result('a'), result('a')],
      'history[3]: the call "a" already has a result',
    ],
    ['with a late result', [hi, calls('a'), hi, result('a')], 'history[1]: the call "a" has no result'],
    ['with a call without a result', [hi, calls('a', 'b'), result('a'), hi], 'history[1]: the call "b" has no result'],
    [
      'with a last call without a result',
      [hi, calls('a')],
      '{role: "tool", tool_call_id: "a"} must follow it directly',
    ],
    ['with two calls of one id', [hi, calls('a', 'a')], 'history[1]: two of its tool_calls have the same id'],
    ...['{', '[]', '1', '{"a":1}{'].map((text): [string, readonly GivenMessage[], string] => [
      `with the arguments ${text}`,
      [hi, { role: 'assistant', tool_calls: [call('a', text)] }, result('a')],
      'history[1]: the arguments of the call "a" must be a JSON object as text',
    ]),
    [
      'with arguments that are too deep',
      [hi, { role: 'assistant', tool_calls: [call('a', DEEP)] }, result('a')],
      'JSON object',
    ],
  ])('%s', async (_, history, message) => {
    expect(await refusal(history)).toEqual(['invalid_history', expect.stringContaining(message) as string]);
  });

  test('with too many messages or too many bytes', async () => {
    const many = Array.from({ length: limits.seededMessages }, () => hi);
    expect((await admitHistory(many)).messages).toHaveLength(limits.seededMessages);
    expect((await refusal([...many, hi]))[0]).toBe('history_too_large');
    // Three bytes each.
    const content = '€'.repeat(limits.seededBytes / 6);
    expect((await admitHistory([{ role: 'user', content }])).messages).toHaveLength(1);
    const twice: GivenMessage[] = [
      { role: 'user', content },
      { role: 'user', content },
    ];
    expect((await refusal(twice))[0]).toBe('history_too_large');
  });
});
