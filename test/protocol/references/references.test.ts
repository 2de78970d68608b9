import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import {
  commandReferences,
  parameterReferences,
  referenceNames,
  scanText,
} from '../../../src/protocol/references/references.ts';
import { follow, newSubstitutionQuota, renderText, substitute } from '../../../src/protocol/references/substitution.ts';
import type { NameLookup } from '../../../src/protocol/references/substitution.ts';

const VALUES: Record<string, Json> = {
  n: 5,
  s: 'text',
  yes: true,
  none: null,
  list: [1, { deep: ['x', 'y'] }],
  object: { a: { b: 'c' }, 'odd-key': 1, list: [10, 20], '0': 'zero' },
  'my-id': 'dash',
  dollars: 'costs $n and ${s}',
};
const lookup: NameLookup = (name) => {
  if (name === 'broken') return { known: true, failed: 'failed' };
  if (name === 'waiting') return { known: true, failed: 'pending' };
  return Object.hasOwn(VALUES, name) ? { known: true, value: VALUES[name] ?? null } : { known: false };
};
const put = (value: Json): { value: Json; warnings: string[] } => {
  const result = substitute({ p: value }, lookup);
  return { value: result.value['p'] as Json, warnings: result.warnings.map(({ code }) => code) };
};

describe('[P12] cost of references', () => {
  test('a name is looked up once, for any number of paths in its value', () => {
    const asked: string[] = [];
    const counting: NameLookup = (name) => {
      asked.push(name);
      return lookup(name);
    };
    const paths = Array.from({ length: 1_000 }, (_, at) => `$list[${at}] and $object.k${at}`);
    substitute({ paths, text: paths.join(' ') }, counting);
    expect(asked).toEqual(['list', 'object']);
  });

  test('past the limit nothing is rendered', () => {
    let rendered = 0;
    const large = (): Json =>
      ({
        toJSON: () => {
          rendered += 1;
          return 'x'.repeat(limits.substitutedChars);
        },
      }) as unknown as Json;
    const names = Array.from({ length: 50 }, (_, at) => `v${at}`);
    const { value, warnings } = substitute({ all: names.map((name) => `$${name}`) }, () => ({
      known: true,
      value: large(),
    }));
    expect(rendered).toBe(1);
    expect(value['all']).toEqual(names.map(() => null));
    expect(warnings.map(({ code }) => code)).toEqual(['truncated']);
  });
});

describe('[P12] parameters', () => {
  test.each<[Json, Json]>([
    ['$n', 5],
    ['${n}', 5],
    ['$yes', true],
    ['$none', null],
    ['$object.a', { b: 'c' }],
    ['$object.a.b', 'c'],
    ['$list[1].deep[0]', 'x'],
    ['${list[1].deep[1]}', 'y'],
    ['${my-id}', 'dash'],
    ['${object.odd-key}', 1],
    ['$object.list[1]', 20],
    ['$object[0]', 'zero'],
    ['$list.0', 1],
  ])('%j is a single reference and keeps its type: %j', (text, value) => {
    expect(put(text)).toEqual({ value, warnings: [] });
  });
  test.each<[string, string]>([
    ['n=$n', 'n=5'],
    ['$n$s', '5text'],
    ['($yes, $none)', '(true, null)'],
    ['$s.', 'text.'],
    ['$s. $n', 'text. 5'],
    ['$list[', '[1,{"deep":["x","y"]}]['],
    ['got $object.a!', 'got {"b":"c"}!'],
    ['$$n', '$n'],
    ['$$$n', '$5'],
    ['$5 $ $(x) $', '$5 $ $(x) $'],
    [' $n', ' 5'],
    ['a${s}b', 'atextb'],
  ])('%j has embedded references and becomes %j', (text, value) => {
    expect(put(text)).toEqual({ value, warnings: [] });
  });
  test('references are resolved in arrays and objects, but not in keys', () => {
    expect(put([{ $n: '$n', in: ['$s', 1, null] }])).toEqual({
      value: [{ $n: 5, in: ['text', 1, null] }],
      warnings: [],
    });
  });
  test('a resolved value is not resolved again', () => {
    expect(put('$dollars')).toEqual({ value: 'costs $n and ${s}', warnings: [] });
    expect(put('it $dollars')).toEqual({ value: 'it costs $n and ${s}', warnings: [] });
  });
  test.each<[Json, Json]>([
    ['$object.nothing', null],
    ['<$object.nothing>', '<>'],
    ['$list[9]', null],
    ['$n.x', null],
    ['$object.constructor', null],
    ['$object.__proto__', null],
    ['$list.length', null],
    ['$s.length', null],
  ])('%j has no target: %j and a warning', (text, value) => {
    expect(put(text)).toEqual({ value, warnings: ['missing_path'] });
  });
  test('unknown names stay unchanged, with one warning for all', () => {
    expect(put(['$what', 'a ${who.x} b', '$n'])).toEqual({
      value: ['$what', 'a ${who.x} b', 5],
      warnings: ['unknown_reference'],
    });
  });
  test.each<[string, Json]>([
    ['$broken', null],
    ['$broken.a', null],
    ['x $broken', 'x [broken: failed]'],
    ['x ${waiting}', 'x [waiting: pending]'],
  ])('%j has no value: %j', (text, value) => {
    expect(put(text)).toEqual({ value, warnings: [] });
  });
  test('a parameter called __proto__ stays a parameter', () => {
    const parameters = JSON.parse('{"__proto__":{"x":"$n"}}') as JsonObject;
    const { value } = substitute(parameters, lookup);
    expect(Object.hasOwn(value, '__proto__')).toBe(true);
    expect(JSON.stringify(value)).toBe('{"__proto__":{"x":5}}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
  test('the size of resolved references is limited', () => {
    const big: NameLookup = () => ({ known: true, value: 'x'.repeat(1_000_000) });
    const { value, warnings } = substitute(
      { whole: Array.from({ length: 20 }, () => '$a'), text: '$a'.repeat(20) },
      big,
    );
    expect(JSON.stringify(value).length).toBeLessThan(limits.substitutedChars + 1000);
    expect(warnings.map(({ code }) => code)).toEqual(['truncated']);
  });
});

describe('[P12] detection of references', () => {
  test('root names are listed in order, each once', () => {
    expect(referenceNames({ a: '$x.y $z', b: ['${x}', { c: '$w[0]' }], $key: 1 })).toEqual(['x', 'z', 'w']);
  });
  test.each<[string, (string | [string, ...(string | number)[]])[]]>([
    ['$a', [['a']]],
    ['$a.b.', [['a', 'b'], '.']],
    ['$a[1][2].c', [['a', 1, 2, 'c']]],
    ['$a[1', [['a'], '[1']],
    ['$a[]', [['a'], '[]']],
    ['$a..b', [['a'], '..b']],
    ['${a', ['${a']],
    ['${a}b', [['a'], 'b']],
    ['${a.b[0]}', [['a', 'b', 0]]],
    ['${a.}', ['${a.}']],
    ['${a[x]}', ['${a[x]}']],
    ['${$a}', ['${', ['a'], '}']],
    ['$é', ['$é']],
    ['$aé', [['a'], 'é']],
    ['${été}', [['été']]],
    ['$a[12]', [['a', 12]]],
    ['$a[1x]', [['a'], '[1x]']],
    ['$a[x', [['a'], '[x']],
    ['$a.b[', [['a', 'b'], '[']],
    ['$a.b[1].', [['a', 'b', 1], '.']],
    ['$a[999999999]', [['a', 999_999_999]]],
    ['$a[1234567890]', [['a'], '[1234567890]']],
    ['${a[12].b}', [['a', 12, 'b']]],
    ['${a\u007fb}', ['${a\u007fb}']],
    ['${a b}', ['${a b}']],
    ['${a!b}', [['a!b']]],
    ['$aZz_09', [['aZz_09']]],
    ['${}', ['${}']],
    [`$${'n'.repeat(64)}`, [['n'.repeat(64)]]],
    [`$${'n'.repeat(65)}`, [`$${'n'.repeat(65)}`]],
    [`\${${'n'.repeat(64)}}`, [['n'.repeat(64)]]],
    [`\${${'n'.repeat(65)}}`, [`\${${'n'.repeat(65)}}`]],
    ['$a@', [['a'], '@']],
    ['$a`', [['a'], '`']],
    ['$a{', [['a'], '{']],
    ['$a/', [['a'], '/']],
    ['$a:', [['a'], ':']],
    ['$$', ['$']],
    ['', []],
  ])('%j', (text, parts) => {
    expect(scanText(text).map((part) => (typeof part === 'string' ? part : [part.name, ...part.path]))).toEqual(parts);
  });
  test('a reference longer than its limit is text', () => {
    const long = `$a${'.b'.repeat(limits.referenceChars)}`;
    expect(scanText(long)).toEqual([long]);
    const longest = `$a.${'b'.repeat(limits.referenceChars - 3)}`;
    expect(scanText(longest)).toEqual([{ name: 'a', path: ['b'.repeat(limits.referenceChars - 3)], raw: longest }]);
    expect(scanText(`${longest}b`)).toEqual([`${longest}b`]);
  });
  test('values of every kind are searched, at every place of a text', () => {
    expect(referenceNames(['$a', 'x$b', 'xx$c', null, 1, true, { k: null, l: '$d' }, []])).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
    expect(referenceNames('none')).toEqual([]);
    expect(referenceNames(null)).toEqual([]);
  });
  test('a long text of dollars, names and brackets takes linear time', () => {
    for (const piece of ['$', '$a', '$a.', '$a[', '${', '${a', '${a[', '$a[1'])
      expect(scanText(piece.repeat(200_000 / piece.length)), piece).not.toEqual([]);
  });
});

describe('[P14] references and code', () => {
  test('for python, only inputs contain references', () => {
    expect(parameterReferences('python', { code: '$a', script: '$b', inputs: { x: '$c.d', y: ['$e'] } })).toEqual([
      'c',
      'e',
    ]);
  });
  test.each(['shell', 'docker'] as const)('for %s, inputs and the command contain references', (type) => {
    const parameters = { command: 'echo "$a" ${b} ${c:-x} $HOME', args: ['$d', 1], inputs: { e: '$e' } };
    expect(parameterReferences(type, parameters)).toEqual(['e', 'a', 'b', 'c', 'HOME', 'd']);
    expect(commandReferences(type, parameters)).toEqual(['a', 'b', 'c', 'HOME', 'd']);
  });
  test.each<[command: string, names: string[]]>([
    ['$a1 $A ${Z_9} $_x $z0', ['a1', 'A', 'Z_9', '_x', 'z0']],
    ['$a $a ${a}', ['a']],
    [`$${'n'.repeat(64)}`, ['n'.repeat(64)]],
    [`$${'n'.repeat(65)}`, []],
    ['$1a $-a $@a', []],
    ['$a-$b.$c', ['a', 'b', 'c']],
  ])('in the command %j', (command, names) => {
    expect(commandReferences('shell', { command })).toEqual(names);
  });
  test('escaped and special dollars of the shell are not references', () => {
    expect(commandReferences('shell', { command: 'echo \\$a $$ $1 $? $(b) $@ $-' })).toEqual([]);
  });
  test('for other types, all parameters contain references', () => {
    expect(parameterReferences('tool', { command: '$a', deep: { code: '$b' } })).toEqual(['a', 'b']);
    expect(commandReferences('tool', { command: '$a' })).toEqual([]);
  });
});

describe('[P12] what a substitution reports', () => {
  test('references in text whose path does not exist; a whole parameter is null instead', () => {
    const lookup: NameLookup = (name) =>
      name === 'n' ? { known: true, value: { a: null } } : { known: true, failed: 'failed' };
    const { blanks, value } = substitute({ a: 'of $n.x', b: '$n.y', c: 'of $n.a', d: 'of $broken.x' }, lookup);
    expect(blanks.map(({ raw }) => raw)).toEqual(['$n.x']);
    expect(value).toEqual({ a: 'of ', b: null, c: 'of null', d: 'of [broken: failed]' });
  });

  const messages = (parameters: JsonObject, quota?: { charsLeft: number }): string[] =>
    substitute(parameters, lookup, quota).warnings.map(({ code, message }) => `${code}: ${message}`);

  test('each path that does not exist, once', () => {
    expect(messages({ a: '$n.x', b: ['$n.x and ${object.y}'] })).toEqual([
      'missing_path: $n.x: this path does not exist; the value is null',
      'missing_path: ${object.y}: this path does not exist; the value is null',
    ]);
  });

  test('unknown names as they are written, the first ten of them', () => {
    expect(messages({ a: '$u1 ${u2.x} $u1' })).toEqual([
      'unknown_reference: $u1, ${u2.x}: no earlier action or variable has this name; left unchanged',
    ]);
    const names = Array.from({ length: 11 }, (_, at) => `$u${at}`);
    expect(messages({ a: names.join(' ') })).toEqual([
      `unknown_reference: ${names.slice(0, 10).join(', ')}: no earlier action or variable has this name; left unchanged`,
    ]);
  });

  test('the rendered characters, each reference rendered once and charged each time', () => {
    let rendered = 0;
    const value = { toJSON: () => (rendered += 1) } as unknown as Json;
    const quota = newSubstitutionQuota();
    const result = substitute({ a: '$v', b: 'is $v', c: '$v' }, () => ({ known: true, value }), quota);
    expect(result).toEqual({
      value: { a: value, b: 'is 1', c: value },
      warnings: [],
      blanks: [],
      spent: false,
      renderedChars: 3,
    });
    expect(rendered).toBe(1);
    expect(quota.charsLeft).toBe(limits.runSubstitutedChars - 3);
  });

  test('a value of the greatest size fits, one more character does not', () => {
    const most = limits.substitutedChars;
    const of = (chars: number): NameLookup => {
      const value = 'x'.repeat(chars);
      return (name) => ({ known: true, value: name === 'v' ? value : 'y' });
    };
    expect(substitute({ a: '$v' }, of(most))).toMatchObject({ warnings: [], spent: false, renderedChars: most });
    expect(substitute({ a: '$v', b: '$w', c: '<$w>' }, of(most + 1))).toEqual({
      value: { a: null, b: null, c: '<>' },
      warnings: [
        {
          code: 'truncated',
          message: `The references of one action may add ${most} characters; $v and later references were left out`,
        },
      ],
      blanks: [],
      spent: false,
      renderedChars: most + 1,
    });
    expect(substitute({ a: '$w', b: '$v' }, of(most)).value).toEqual({ a: 'y', b: null });
  });

  test("a run's quota may be used up, and then nothing is rendered", () => {
    const quota = { charsLeft: 4 };
    expect(substitute({ a: '$s' }, lookup, quota)).toMatchObject({ value: { a: 'text' }, spent: false });
    expect(quota.charsLeft).toBe(0);
    expect(substitute({ a: '$n', b: '$none.x', c: '$u' }, lookup, quota)).toMatchObject({
      value: { a: null, b: null, c: '$u' },
      warnings: [{ code: 'missing_path' }, { code: 'unknown_reference' }],
      spent: true,
      renderedChars: 0,
    });
    expect(substitute({ a: '<$n>', b: '$s' }, lookup, quota)).toMatchObject({
      value: { a: '<>', b: null },
      warnings: [{ code: 'truncated' }],
      spent: true,
      renderedChars: 0,
    });
    const short = { charsLeft: 7 };
    expect(substitute({ a: '$s', b: '$s', c: '$n', d: '<$broken>' }, lookup, short)).toEqual({
      value: { a: 'text', b: null, c: null, d: '<>' },
      warnings: [{ code: 'truncated', message: expect.stringContaining('; $s and later references were left out') }],
      blanks: [],
      spent: true,
      renderedChars: 8,
    });
  });
});

describe('[P12] rendering and resolving paths', () => {
  test.each<[Json, string]>([
    ['a"b', 'a"b'],
    [1.5, '1.5'],
    [false, 'false'],
    [null, 'null'],
    [[1, 'a'], '[1,"a"]'],
    [{ a: 1 }, '{"a":1}'],
  ])('%j as text', (value, text) => {
    expect(renderText(value)).toBe(text);
  });
  test('a path reads only own properties', () => {
    expect(follow({ a: [1] }, ['a', 0])).toEqual({ found: true, value: 1 });
    expect(follow({ a: [1] }, ['toString'])).toEqual({ found: false, value: null });
    // the output of a text is the text; a text has no other member
    expect(follow('text', ['output'])).toEqual({ found: true, value: 'text' });
    expect(follow({ a: 'text' }, ['a', 'output'])).toEqual({ found: true, value: 'text' });
    expect(follow('text', ['output', 'x'])).toEqual({ found: false, value: null });
    expect(follow('text', ['length'])).toEqual({ found: false, value: null });
    expect(follow({ a: null }, ['a'])).toEqual({ found: true, value: null });
    expect(follow({ a: null }, ['a', 'b'])).toEqual({ found: false, value: null });
    expect(follow({ a: 1 }, ['a', 'b'])).toEqual({ found: false, value: null });
  });
  test('items by their index', () => {
    const items = Array.from({ length: 11 }, (_, at) => `item ${at}`);
    expect(follow(items, [10])).toEqual({ found: true, value: 'item 10' });
    expect(follow(items, ['10'])).toEqual({ found: true, value: 'item 10' });
    for (const step of ['x1', '1x', '', '-1', '1.0', 'length', 11]) {
      expect(follow(items, [step]), String(step)).toEqual({ found: false, value: null });
    }
  });
});
