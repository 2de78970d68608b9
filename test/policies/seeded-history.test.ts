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

function refusal(history: readonly GivenMessage[]): [code: string, message: string] {
  try {
    admitHistory(history);
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
])('[C1] a history may contain %s', (_, history) => {
  expect(admitHistory(history)).toHaveLength(history.length);
});

test('[C1] only what is shown or returned is kept', () => {
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
  expect(admitHistory(given)).toEqual([
    { role: 'user', content: 'a\nb', name: 'ann' },
    { role: 'assistant', content: null, tool_calls: [call('a', '')] },
    { role: 'tool', tool_call_id: 'a', content: '1' },
    { role: 'assistant', content: 'I cannot.' },
  ]);
});

describe('[C1] a history is refused', () => {
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
      [
        hi,
        { role: 'assistant', tool_calls: [call('a', `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`)] },
        result('a'),
      ],
      'must be a JSON object',
    ],
  ])('%s', (_, history, message) => {
    expect(refusal(history)).toEqual(['invalid_history', expect.stringContaining(message) as string]);
  });

  test.each([
    [[{ type: 'image', url: 'https://a.example/x.png' }], 'a part of type "image" is not supported'],
    [[{ type: 'text' }], 'a part without a text'],
  ])('with the part %j', (content, message) => {
    expect(refusal([{ role: 'user', content }])).toEqual([
      'unsupported_content',
      expect.stringContaining(message) as string,
    ]);
  });

  test('with too many messages or too many bytes', () => {
    const many = Array.from({ length: limits.seededMessages }, () => hi);
    expect(admitHistory(many)).toHaveLength(limits.seededMessages);
    expect(refusal([...many, hi])[0]).toBe('history_too_large');
    // Three bytes each.
    const content = '€'.repeat(limits.seededBytes / 6);
    expect(admitHistory([{ role: 'user', content }])).toHaveLength(1);
    expect(
      refusal([
        { role: 'user', content },
        { role: 'user', content },
      ])[0],
    ).toBe('history_too_large');
  });
});
