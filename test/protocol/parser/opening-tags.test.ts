/** Opening tags of actions whose quotes are wrong, and the numbers of actions (P5, P6, P15). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { DEFAULTS, feedChunks, join, lines, parse, waysToCut } from './parser-kit.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';

describe('[P5] in an action tag', () => {
  test.each<[what: string, text: string, expected: string[]]>([
    [
      'a tag that begins a line ends a quote that was not closed',
      '<action name="x\n<action name="y">{}</action>',
      ['open tool x sync', 'rejected auto_1 unclosed', 'open tool y sync', 'action auto_2 tool:y sync {}'],
    ],
    [
      'also in a list',
      '<action name=x depends_on=["a\n<action name="y">{}</action>',
      ['open tool x sync', 'rejected auto_1 unclosed', 'open tool y sync', 'action auto_2 tool:y sync {}'],
    ],
    [
      'a tag inside the line of a quote is part of the value',
      '<action name="x" when="a <action b">{}</action>',
      ['open tool x sync', 'action auto_1 tool:x sync {} when=a <action b'],
    ],
    [
      'a > that begins a line of a quote is part of the value',
      '<action name="x" when="a\n> 1">{}</action>',
      ['open tool x sync', 'action auto_1 tool:x sync {} when=a\n> 1 refs=[a]'],
    ],
    [
      'also in a list',
      '<action name=x depends_on=["a",\n"\n>b"]>{}</action>',
      ['open tool x sync', 'action auto_1 tool:x sync {} depends_on=[a,>b]'],
    ],
    [
      'a < that begins no tag is part of the value',
      '<action name="x" when="a\n< 1">{}</action>',
      ['open tool x sync', 'action auto_1 tool:x sync {} when=a\n< 1 refs=[a]'],
    ],
    [
      'white space around the equals sign',
      '<action name \n=\t"x" id = a>{}</action>',
      ['open tool x sync', 'action a tool:x sync {}'],
    ],
    ['a slash in a bare value', '<action name=a/b />', ['open tool a/b sync', 'action auto_1 tool:a/b sync {}']],
    ['a slash after a bare value', '<action name=a/>', ['open tool a sync', 'action auto_1 tool:a sync {}']],
    [
      'a slash in quotes does not close',
      '<action name="a/">{"x":1}</action>',
      ['open tool a/ sync', 'action auto_1 tool:a/ sync {"x":1}'],
    ],
  ])('%s', (_what, text, expected) => {
    const whole = parse(text);
    expect(lines(whole)).toEqual(expected);
    for (const { name, chunks } of waysToCut(text, 8)) expect(join(feedChunks(chunks)), name).toEqual(whole);
  });
});

describe('[P6] [P16] numbers of actions', () => {
  test('each action up to the limit has an ordinal, and the first one past it', () => {
    const numbering = { ordinal: 0, autoId: 1 };
    const parser = createParser({ ...DEFAULTS, numbering, actionsLeft: 2 });
    expect(parser.sawAction).toBe(false);
    parser.feed('<action name="a"/>'.repeat(5));
    expect(numbering).toEqual({ ordinal: 3, autoId: 4 });
    expect([parser.sawAction, parser.nextAutoId]).toEqual([true, 4]);
  });
  test('the smaller limit counts', () => {
    const { actionsPerGeneration: most } = limits;
    const count = (actions: number, actionsLeft: number): number =>
      lines(parse('<action name="a"/>'.repeat(actions), { actionsLeft })).filter((line) => line.startsWith('action'))
        .length;
    expect(count(5, 1)).toBe(1);
    expect(count(most + 1, most + 1)).toBe(most);
  });
  test('a response is seen when its tag is', () => {
    const parser = createParser(DEFAULTS);
    parser.feed('a <response');
    expect(parser.sawResponse).toBe(false);
    parser.feed('>');
    expect(parser.sawResponse).toBe(true);
  });
});
