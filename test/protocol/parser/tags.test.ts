import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readHead, readPlainHead } from '../../../src/protocol/parser/action-fields.ts';
import { TagEnd } from '../../../src/protocol/parser/tags.ts';

const plainTag = fc
  .tuple(
    fc.array(
      fc.tuple(
        fc.constantFrom(' ', '\n', '  \t'),
        fc.constantFrom(
          'id',
          'name',
          'type',
          'mode',
          'timeout',
          'timeouts',
          'depends_on',
          'dependsOn',
          'retry',
          'x1',
          'A_b',
        ),
        fc.string({ maxLength: 12 }).filter((value) => !/["<&[\\>]/.test(value)),
      ),
      { maxLength: 5 },
    ),
    fc.constantFrom('', ' ', '\n', '/', ' /'),
  )
  .map(([attributes, end]) => attributes.map(([space, name, value]) => `${space}${name}="${value}"`).join('') + end);

describe('[P5] the short way through a plain tag', () => {
  test('reads what the long way reads', () => {
    fc.assert(
      fc.property(plainTag, (text) => {
        expect(readPlainHead(text, 0, text.length)).toEqual(readHead(text.replace(/\/$/, '')));
      }),
    );
  });
  test('ends where the long way ends', () => {
    fc.assert(
      fc.property(plainTag, fc.nat(80), (text, cut) => {
        const end = new TagEnd();
        const whole = `${text}> rest`;
        const at = Math.min(cut, text.length);
        expect(end.scan(whole, 0, at)).toBe(at);
        expect(end.scan(whole, at, whole.length)).toBe(text.length);
        expect(end.selfClosing).toBe(text.endsWith('/'));
      }),
    );
  });
  test.each([
    ' a=b',
    ' a',
    " a='b'",
    ' a="[b]"',
    ' a="b"c="d"',
    ' a = "b"',
    ' a="b&amp;"',
    ' a="b\\""',
    'a="b"',
    ' a="b',
    ' a="b"/ ',
    ' a="b"//',
  ])('%s goes the long way', (text) => {
    expect(readPlainHead(text, 0, text.length)).toBeNull();
  });
});
