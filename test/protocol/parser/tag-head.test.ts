import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TagHead } from '../../../src/protocol/parser/tag-head.ts';
import { characters, cutAtRandom } from './parser-kit.ts';

interface Read {
  /** The text after the end of the tag. */
  readonly rest: string;
  readonly selfClosing: boolean;
  readonly attributes: readonly (readonly [name: string, value: string])[];
}

/** Reads the head of an action's tag that arrives in these pieces; a `<` in it starts no other tag. */
function read(pieces: readonly string[]): Read | null {
  const head = new TagHead();
  head.reset(true);
  const [first = '', ...later] = pieces;
  let at = 0;
  for (let piece = first; ;) {
    at = head.read(piece, at, piece.length);
    if (at === piece.length) {
      const next = later.shift();
      if (next === undefined) return null;
      piece = next;
      at = 0;
      continue;
    }
    if (piece[at] === '<') {
      head.takeLess();
      at += 1;
      continue;
    }
    const behind = piece[at] === '{' ? head.cutAtTentativeEnd() : null;
    const selfClosing = behind === null && head.end();
    const attributes: [string, string][] = [];
    head.attributes((name, value) => attributes.push([name, value]));
    const rest = (behind ?? '') + piece.slice(behind === null ? at + 1 : at) + later.join('');
    return { rest, selfClosing, attributes };
  }
}

const attribute = fc.tuple(
  fc.constantFrom(' ', '\n', '  \t'),
  fc.constantFrom('id', 'name', 'type', 'timeout', 'depends_on', 'dependsOn', 'x1', 'A_b'),
  fc.string({ maxLength: 12 }).filter((value) => !/["<&[\\>]/.test(value)),
);

describe('[P5] the attributes of a tag', () => {
  test('are restored exactly, and end at the first > outside quotes', () => {
    fc.assert(
      fc.property(fc.array(attribute, { maxLength: 5 }), fc.constantFrom('', ' ', '/', ' /'), (attributes, end) => {
        const text = attributes.map(([space, name, value]) => `${space}${name}="${value}"`).join('') + end;
        expect(read([`${text}> rest`])).toEqual({
          rest: ' rest',
          selfClosing: end.endsWith('/'),
          attributes: attributes.map(([, name, value]) => [name, value]),
        });
      }),
    );
  });

  test.each<[text: string, attributes: Record<string, string>]>([
    [' a=b', { a: 'b' }],
    [' a', { a: 'true' }],
    [' a b = c', { a: 'true', b: 'c' }],
    [" a='b'", { a: 'b' }],
    [' a="b"c="d"', { a: 'b', c: 'd' }],
    [' a="b &gt; &amp;lt; \\"c\\""', { a: 'b > &lt; "c"' }],
    [' a="1 > 2" b=3', { a: '1 > 2', b: '3' }],
    [' a=["b", \'c\'] d', { a: '["b", \'c\']', d: 'true' }],
    [' a="["b","c"]" d', { a: '["b","c"]', d: 'true' }],
    [' a="[1, 2].size() > 1" d', { a: '[1, 2].size() > 1', d: 'true' }],
    // Neither a list in quotes nor a text: the value ends at the next quote.
    [' a="["b"].c" d', { a: '["b"].c', d: 'true' }],
    [' a<b', { 'a<b': 'true' }],
    [' =b', {}],
  ])('in %s', (text, attributes) => {
    expect(read([`${text}>`])).toEqual({ rest: '', selfClosing: false, attributes: Object.entries(attributes) });
  });

  test('with an unclosed quote end at the > before the body', () => {
    expect(read([' a="b" c="d> \n{"e": 1}'])).toEqual({
      rest: ' \n{"e": 1}',
      selfClosing: false,
      attributes: [
        ['a', 'b'],
        ['c', 'd'],
      ],
    });
  });

  test('[P3] are the same for every cut of the tag', () => {
    const piece = fc.constantFrom(...' |a|=|"|\'|[|]|,|>|<|{|\\|/|\n| b="c"|&lt;'.split('|'));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.nat(1000), (pieces, seed) => {
        const text = `${pieces.join('')}">`;
        const whole = read([text]);
        expect(read(characters(text))).toEqual(whole);
        expect(read(cutAtRandom(text, seed, 5))).toEqual(whole);
      }),
      { numRuns: 500 },
    );
  });
});
