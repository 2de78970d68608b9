import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { WorkMeter } from '../../../src/domain/work.ts';
import { conditionNames, evaluateCondition } from '../../../src/bounded/conditions/condition.ts';

const VALUES: Record<string, Json> = {
  n: 6,
  price: 1.5,
  s: 'hello',
  yes: true,
  list: [1, 2, 3],
  object: { a: { b: 'c' } },
  nothing: null,
};

describe('[S9] names in a condition', () => {
  test.each([
    ['n > 1', ['n']],
    ['$n > 1 && ${object.a}.b == "$not"', ['n', 'object']],
    ['list.exists(x, x > n) && size(list) > 0', ['n', 'list']],
    ['has(object.a) ? yes : nothing == null', ['object', 'yes', 'nothing']],
    ['[n, price].size() > 1 || {"k": s}["k"] == "x"', ['n', 'price', 's']],
    ['list.size() > 0 && map.x', ['list', 'map']],
    ['rows.all(x, x > n)', ['rows', 'n']],
    ['rows.map(x, x + n)', ['rows', 'n']],
    ['object.get(x, n)', ['object', 'x', 'n']],
    ["s == '$n' && s != '\\'$n'", ['s']],
    ['$s == "$n', []],
    ['$5 > 1', []],
    ['', []],
  ])('%s', (expression, names) => {
    expect(conditionNames(expression)).toEqual(names);
  });
});

describe('[S9] evaluation', () => {
  test.each([
    ['n == 6 && n > 5.5 && n >= 6', true],
    ['$n > 10', false],
    ['object.a.b == "c"', true],
    ['has(object.x)', false],
    ['object.constructor == null && object.toString == null', true],
    ['nothing == null', true],
    ['"b" in object.a', true],
    ['2 in list', true],
    ['list[0] == 1 && size(list) == 3', true],
    ['n + price == 7.5 && price + n == 7.5', true],
    ['n * price == 9.0 && price * n == 9.0', true],
    ['n / price == 4.0 && price / n == 0.25', true],
    ['type(n) == int && type(price) == double', true],
    ['{"a": {"b": n}} == {"c": n}', false],
  ])('%s is %s', (expression, value) => {
    expect(evaluateCondition(expression, VALUES)).toEqual({ ok: true, value });
  });
  test('names that are also types are ordinary names where no type is asked for', () => {
    const values = { list: [4, 5], map: { int: 7 }, string: 'a', int: 1 };
    expect(evaluateCondition('int == 1 && list[0] == 4 && string == "a" && map.int == 7', values)).toEqual({
      ok: true,
      value: true,
    });
    expect(evaluateCondition('type(list) == list', values)).toEqual({ ok: true, value: false });
    expect(evaluateCondition('_int == 1 && int == 2', { _int: 1, int: 2 })).toEqual({ ok: true, value: true });
  });
  test.each(['int', 'uint', 'double', 'bool', 'string', 'bytes', 'list', 'map', 'type', 'null_type'])(
    'the type %s may be a name',
    (name) => {
      expect(conditionNames(`${name} == 7`)).toEqual([name]);
      expect(evaluateCondition(`${name} == 7`, { [name]: 7 })).toEqual({ ok: true, value: true });
    },
  );
  test.each([
    ['n', 'The condition returns a number, not true or false: n'],
    ['s', 'The condition returns a string, not true or false: s'],
    ['object', 'The condition returns an object, not true or false: object'],
    ['$unknown > 1', 'The condition cannot be evaluated ("unknown" has no value here): $unknown > 1'],
    ['int > 1', 'The condition cannot be evaluated ("int" has no value here): int > 1'],
    ['toString == 1', 'no value'],
    ['constructor == 1', 'no value'],
    ['n.foo()', 'cannot be evaluated'],
    ['n / 0 == 1', 'The condition cannot be evaluated (division by zero): n / 0 == 1'],
    ['n >', 'The condition cannot be evaluated (Unexpected token: EOF): n >'],
    ['s.matches("a")', 'matches() is not allowed in a condition; use contains, startsWith or endsWith: s.matches("a")'],
    [
      'matches(s, "a")',
      'matches() is not allowed in a condition; use contains, startsWith or endsWith: matches(s, "a")',
    ],
    ['["a"].join(",") == ""', 'join() is not allowed in a condition: ["a"].join(",") == ""'],
    ['cel.bind(x, 1, x == 1)', 'bind() is not allowed in a condition: cel.bind(x, 1, x == 1)'],
    ['yes ? s.matches("a") : no', 'matches() is not allowed'],
    ['{"k": s.matches("a")} == {}', 'matches() is not allowed'],
    ['list.all(x, x.join("") == "")', 'join() is not allowed'],
    ['rows.all()', "found no matching overload for 'dyn.all()'"],
    ['rows.all("x", true)', 'all(var, predicate) invalid predicate iteration variable'],
  ])('%s is an error: %s', (expression, message) => {
    expect(evaluateCondition(expression, VALUES)).toEqual({ ok: false, message: expect.stringContaining(message) });
  });
  test.each(['all', 'exists', 'exists_one', 'map', 'filter'])('%s() is not allowed inside a comprehension', (name) => {
    const expression = `list.all(x, list.${name}(y, x == y) == true)`;
    expect(evaluateCondition(expression, VALUES)).toEqual({
      ok: false,
      message: `${name}() inside another comprehension is not allowed: ${expression}`,
    });
  });
  test('a message quotes the beginning of a long expression', () => {
    const fits = `n + ${'1'.repeat(limits.excerptChars - 4)}`.replace(/1(?=1)/g, '0').replace('n + 0', 'n + 1');
    expect(fits).toHaveLength(limits.excerptChars);
    const quoted = (expression: string): string => {
      const result = evaluateCondition(expression, { n: 'x' });
      return result.ok ? '' : result.message.slice(result.message.lastIndexOf('): ') + 3);
    };
    expect(quoted(fits)).toBe(fits);
    expect(quoted(`${fits}1`)).toBe(`${fits}…`);
  });
  test('may have as many characters as the limit', () => {
    const longest = `yes${' '.repeat(limits.conditionChars - 3)}`;
    expect(evaluateCondition(longest, VALUES)).toEqual({ ok: true, value: true });
    expect(evaluateCondition(`${longest} `, VALUES)).toEqual({
      ok: false,
      message: `The condition has ${limits.conditionChars + 1} characters; ${limits.conditionChars} are allowed`,
    });
  });
  test('too much work is reported with the limit and the expression, also if the library catches the error', () => {
    const message = 'The condition needs too much work on these values (allowed: 10 steps): ';
    for (const expression of ['list == list', 'list.exists(x, x == 9) || true']) {
      expect(evaluateCondition(expression, VALUES, new WorkMeter(10))).toEqual({
        ok: false,
        message: message + expression,
      });
    }
  });
  test('a condition has a maximum number of nodes', () => {
    expect(evaluateCondition(Array.from({ length: 200 }, () => 'yes').join('&&'), VALUES).ok).toBe(false);
    expect(evaluateCondition(`${'('.repeat(500)}yes${')'.repeat(500)}`, VALUES).ok).toBe(false);
  });
});

const numbers = (length: number): number[] => Array.from({ length }, (_, index) => index);
const long = 'a'.repeat(1_000_000);
const list = numbers(3_000);

describe('[S9] the work of a condition is limited', () => {
  test.each<[string, Record<string, Json>]>([
    ['l.all(x, l == m)', { l: list, m: [...list] }],
    ['l.all(x, {"a": l} == {"a": m})', { l: list, m: [...list] }],
    ['l.filter(x, x in l).size() > 0', { l: list }],
    ['l.all(x, x in l)', { l: numbers(1_000).map((index) => ({ index, same: { z: 1 } })) }],
    ['l.map(x, l + l).size() > 0', { l: list }],
    ['l.exists(x, x.missing == 1)', { l: numbers(20_000) }],
    ['l.exists(x, l == m) || true', { l: list, m: [...list, 1].slice(1) }],
    ['size(l) > 0', { l: numbers(1_000_001) }],
    ['a.contains(b)', { a: long, b: `${'a'.repeat(50_000)}b${'a'.repeat(50_000)}` }],
    ['l.all(x, a.split("").size() > 0)', { a: long, l: list }],
    ['l.all(x, a + a == a + a)', { a: long, l: list }],
    ['duration(a) == duration("1s")', { a: `${'1'.repeat(10_000)}s` }],
    ['l.all(x, timestamp("2026-01-01T00:00:00Z").getHours("Europe/Paris") >= 0)', { l: list }],
  ])('%s', (expression, values) => {
    const result = evaluateCondition(expression, values);
    expect(result.ok ? '' : result.message).toContain(
      `needs too much work on these values (allowed: ${limits.conditionSteps}`,
    );
  });

  test('an ordinary condition is far below the limit', () => {
    const rows = numbers(2_000).map((id) => ({ id, name: `row ${id}`, tags: ['a', 'b'], done: id % 2 === 0 }));
    for (const expression of [
      'rows.exists(row, row.id == 1999 && "b" in row.tags)',
      'rows.filter(row, row.done).size() == 1000',
      'text.contains("needle") == false && size(text) > 10',
      'duration("1h30m") > duration("10s") && timestamp("2026-01-01T00:00:00Z").getFullYear() == 2026',
    ]) {
      expect(evaluateCondition(expression, { rows, text: 'x'.repeat(100_000) })).toEqual({ ok: true, value: true });
    }
  });

  test('conditions with the same value share the cost of its conversion', () => {
    const rows = numbers(50_000);
    const meter = new WorkMeter(limits.conditionSteps);
    for (let time = 0; time < 100; time += 1) {
      expect(evaluateCondition('size(rows) == 50000', { rows }, meter)).toEqual({ ok: true, value: true });
    }
  });
});
