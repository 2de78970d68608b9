import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import {
  commandReferences,
  parameterReferences,
  referenceNames,
  scanText,
} from '../../../src/protocol/references/references.ts';
import { follow, renderText, substitute } from '../../../src/protocol/references/substitution.ts';
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
  return { value: result.value['p'] ?? null, warnings: result.warnings.map(({ code }) => code) };
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
    ['$$', ['$']],
    ['', []],
  ])('%j', (text, parts) => {
    expect(scanText(text).map((part) => (typeof part === 'string' ? part : [part.name, ...part.path]))).toEqual(parts);
  });
  test('a reference longer than its limit is text', () => {
    const long = `$a${'.b'.repeat(limits.referenceChars)}`;
    expect(scanText(long)).toEqual([long]);
  });
  test('a long text of dollars, names and brackets takes linear time', () => {
    for (const piece of ['$', '$a', '$a.', '$a[', '${', '${a', '${a[', '$a[1'])
      scanText(piece.repeat(200_000 / piece.length));
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
  test('escaped and special dollars of the shell are not references', () => {
    expect(commandReferences('shell', { command: 'echo \\$a $$ $1 $? $(b) $@ $-' })).toEqual([]);
  });
  test('for other types, all parameters contain references', () => {
    expect(parameterReferences('tool', { command: '$a', deep: { code: '$b' } })).toEqual(['a', 'b']);
    expect(commandReferences('tool', { command: '$a' })).toEqual([]);
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
    expect(follow({ a: null }, ['a'])).toEqual({ found: true, value: null });
  });
});
