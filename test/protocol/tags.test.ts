import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isPlainTag, readAttributes, TagEnd } from '../../src/protocol/tags.ts';

function attributesOf(text: string, plain: boolean): [string, string][] {
  const read: [string, string][] = [];
  readAttributes(text, plain, (name, value) => read.push([name, value]));
  return read;
}

const plainTag = fc
  .tuple(
    fc.array(
      fc.tuple(
        fc.constantFrom(' ', '\n', '  \t'),
        fc.constantFrom('id', 'name', 'depends_on', 'x1', 'A_b'),
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
        expect(isPlainTag(text)).toBe(true);
        const attributes = text.replace(/\/$/, '');
        expect(attributesOf(attributes, true)).toEqual(attributesOf(attributes, false));
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
  test.each([' a=b', ' a', " a='b'", ' a="[b]"', ' a="b"c="d"', ' a = "b"', ' a="b&amp;"', ' a="b\\""', 'a="b"'])(
    '%s goes the long way',
    (text) => {
      expect(isPlainTag(text)).toBe(false);
    },
  );
});
