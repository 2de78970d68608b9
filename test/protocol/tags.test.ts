import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { plainAttributes, readAttributes, SPANS, TagEnd } from '../../src/protocol/tags.ts';

function attributesOf(text: string): [string, string][] {
  const read: [string, string][] = [];
  readAttributes(text, (name, value) => read.push([name, value]));
  return read;
}

function plainAttributesOf(text: string): [string, string][] {
  return Array.from({ length: plainAttributes(text, 0, text.length) }, (_, at) => {
    const [from, to, valueFrom, valueTo] = SPANS.slice(at * 4);
    return [text.slice(from, to), text.slice(valueFrom, valueTo)];
  });
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
        expect(plainAttributes(text, 0, text.length)).toBeGreaterThanOrEqual(0);
        expect(plainAttributesOf(text)).toEqual(attributesOf(text.replace(/\/$/, '')));
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
    expect(plainAttributes(text, 0, text.length)).toBe(-1);
  });
});
