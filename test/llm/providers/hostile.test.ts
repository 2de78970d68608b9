import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { readChunk } from '../../../src/llm/providers/chunk.ts';
import { errorBody } from '../../../src/llm/providers/error-body.ts';
import { readBindingChunk } from '../../../src/llm/providers/workers-ai.ts';

/** Random JSON in which the names of the format are frequent. */
const NAMES = (
  'choices delta message content reasoning tool_calls function arguments index id name usage prompt_tokens ' +
  'finish_reason extra_content google thought response error errors'
).split(' ');
const names = fc.nat(NAMES.length - 1).map((place) => NAMES[place] ?? '');
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1, 1.5, '', 'x', 'stop', Number.MAX_VALUE),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(names, tie('value'), { maxKeys: 4 }),
  ),
})).value;

describe('[L1] any input from an endpoint', () => {
  test.each([
    ['a chunk', readChunk],
    ['a chunk of the binding', readBindingChunk],
  ])('%s is read without an exception, and gives text deltas only', (_, read) => {
    fc.assert(
      fc.property(json, (chunk) => {
        for (const delta of read(chunk).deltas) {
          if (delta.type === 'tool_call') {
            expect(typeof delta.argumentsDelta).toBe('string');
            expect(Number.isInteger(delta.index)).toBe(true);
          } else expect(delta.text).not.toBe('');
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('an error answer becomes a valid error for the client', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          json.map((value) => JSON.stringify(value)),
        ),
        (text) => {
          const { error } = JSON.parse(errorBody(text)) as { error: unknown };
          expect(error).toBeTypeOf('object');
          expect(error).not.toBeNull();
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

test.each([
  ['{"error":{"message":"a","code":"x"}}', { message: 'a', code: 'x' }],
  ['[{"error":{"message":"a","code":400}}]', { message: 'a', code: 400 }],
  ['{"error":"model not found"}', { message: 'model not found' }],
  ['{"object":"error","message":"a","code":"3051"}', { object: 'error', message: 'a', code: '3051' }],
  [
    '{"detail":[{"loc":["body"],"msg":"m"}]}',
    { detail: [{ loc: ['body'], msg: 'm' }], message: '[{"loc":["body"],"msg":"m"}]' },
  ],
  [
    '{"success":false,"errors":[{"code":10000,"message":"Authentication error"}]}',
    { code: 10000, message: 'Authentication error' },
  ],
  ['<html><style>p{}</style><h1>502 Bad Gateway</h1>\n<hr>nginx</html>', { message: '502 Bad Gateway nginx' }],
  ['', { message: '' }],
  ['a < b, and no tag', { message: 'a < b, and no tag' }],
  ['<script>never closed', { message: '<script>never closed' }],
])('[L2] the error answer %s is classified', (text, error) => {
  expect(JSON.parse(errorBody(text))).toEqual({ error });
});

/** An algorithm that rescans the rest for each piece would not finish. */
test.each(['<', '<script ', '<style>', '<a', '</'])('[P3] an error page of only "%s" is read in one pass', (piece) => {
  const page = piece.repeat(limits.modelErrorBytes * 8);
  expect(JSON.parse(errorBody(page))).toHaveProperty('error.message');
});
