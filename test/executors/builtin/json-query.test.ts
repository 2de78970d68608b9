import { search } from '@jmespath-community/jmespath';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { WorkMeter } from '../../../src/domain/work.ts';
import { jsonQuery } from '../../../src/executors/builtin/json-query.ts';
import { runQuery } from '../../../src/executors/builtin/query.ts';
import { callOf, contextOf, errorOf } from '../support.ts';

const DATA: Json = {
  people: [
    { name: 'Ada', age: 36, tags: ['x', 'y'], home: { city: 'London' } },
    { name: 'Bob', age: 25, tags: [], home: null },
    { name: 'Ćira', age: 41, tags: ['y'], home: { city: 'Niš' } },
    { name: 'Dora', age: 25, tags: ['z', 'x'] },
  ],
  names: ['b', 'a', 'ä', '𝒳', 'a', '', 'B'],
  numbers: [10, 9, 2, -3, 2.5, 0],
  text: '  a,b,,c  a\n ',
  wide: { one: 1, two: 2, three: [3] },
  pairs: [
    ['k', 1],
    ['l', null],
  ],
  nested: [[1, [2]], [], [3], 4],
  empty: {},
  none: null,
  yes: true,
};

const EXPRESSIONS = `
@ | people[0] | people[-1].name | people[9] | people.name | people[].name | people[*].home.city | people[?age > \`30\`].name
people[?home].name | people[?!home].name | people[?contains(tags, 'x')].name | people[0:2].name | people[::-1].name | people[1:-1:2]
people[?age == \`25\` && name != 'Bob'] | people[?age < \`30\` || home.city == 'Niš'].name | people[*].tags[] | people[].tags[0] | people[*].tags[*]
people[*].[name, age] | people[*].{n: name, c: home.city} | people[0].{a: name, b: missing} | wide.* | *.one | wide | empty.* | nested[] | nested[][] | nested[*][0]
text[0:3] | names[*] | names[0][0:1] | names[] | none | missing | missing.more | yes | !yes | !none | !empty | !\`0\` | !\`""\` | yes && text | none || yes | empty || 'x'
\`{"a": [1, 2]}\`.a[1] | \`"x"\` | 'raw \\'quoted\\'' | "people"[0] | people[0]."name" | [1, 2] | {a: @.yes, b: none}
numbers[0] + numbers[1] | numbers[0] - \`1\` | numbers[0] * numbers[1] | numbers[0] / \`4\` | numbers[0] // \`3\` | numbers[0] % \`3\` | -numbers[0] | +numbers[0] | numbers[0] > \`9\` | numbers[0] >= \`10\` | numbers[0] <= \`9\` | text > \`1\`
wide == \`{"two": 2, "one": 1, "three": [3]}\` | nested == nested | people[0] != people[1] | yes ? 'a' : 'b' | none ? 'a' : 'b'
abs(\`-1\`) | avg(numbers) | avg(\`[]\`) | ceil(\`1.2\`) | floor(\`-1.2\`) | contains(text, 'b') | contains(names, 'a') | contains(numbers, \`9\`) | contains(text, \`1\`)
ends_with(text, ' ') | ends_with('ab', 'b') | starts_with(text, ' ') | find_first(text, 'a') | find_first(text, 'a', \`3\`) | find_first(text, 'a', \`3\`, \`5\`) | find_first(text, '') | find_last(text, 'a') | find_last(text, 'zz') | find_last(text, 'a', \`-5\`, \`4\`)
from_items(pairs) | items(wide) | keys(wide) | values(wide) | length(people) | length(text) | length(names[3]) | length(wide) | length(empty)
group_by(people, &name) | group_by(people, &to_string(age)) | join('-', names) | join('', \`[]\`) | lower('ÀB') | upper('straße') | map(&name, people) | map(&home.city, people)
max(numbers) | max(names) | max(\`[]\`) | min(numbers) | min(names) | max_by(people, &age).name | max_by(people, &name) | min_by(people, &age).name | max_by(\`[]\`, &age) | merge(wide, \`{"one": 9}\`) | merge(wide, empty, people[0])
not_null(none, missing, 'x') | not_null(none) | pad_left('x', \`4\`) | pad_left('x', \`4\`, '-') | pad_right('x', \`4\`, '.') | pad_left('xxxx', \`2\`) | pad_left('', \`2\`)
replace(text, 'a', 'bb') | replace(text, ',', '', \`2\`) | replace('aXbX', 'X', '[$&$$$'$\`]', \`2\`) | replace('aXbX', 'X', '$&') | replace('abc', 'b', 'x', \`0\`) | replace('abc', 'z', 'x', \`5\`) | replace('aaa', 'a', 'aa', \`3\`)
reverse(names) | reverse('a𝒳c') | sort(names) | sort(numbers) | sort(\`[]\`) | sort_by(people, &age)[].name | sort_by(people, &name)[].name | sort_by(people, &to_string(age))[].name | sort_by(\`[]\`, &x)
split(text, ',') | split('a-b-c-d', '-', \`2\`) | split('abc', '') | split('', '') | split('abc', '-', \`0\`) | split('abc', 'b', \`9\`) | sum(numbers) | sum(\`[]\`)
to_array(yes) | to_array(names) | to_number('1.5') | to_number('x') | to_number(\`3\`) | to_number(none) | to_string(wide) | to_string('x') | to_string(none) | to_string(nested)
trim(text) | trim_left(text) | trim_right(text) | trim('xxaxx', 'x') | trim_left('-]a', ']-') | trim_right('a\\n\\n') | trim('') | trim('a b') | trim('   ') | type(yes) | type(none) | type(text) | type(wide) | type(numbers) | type(\`1\`)
zip(names, numbers) | zip(\`[]\`, names) | people[*].name | sort(@) | length(people[?age > \`100\`]) | people[?age > \`30\`] | [0].name | people[*].tags | [*] | let $a = yes in [$a, $a] | let $a = \`2\`, $b = names in {x: $a, y: $b[0]} | let $a = \`2\` in let $b = $a in $b
$.yes | people[?age == $.people[0].age].name | people[0] | @.wide.two | people[0].tags[5] | people[*].age | [sum([0]), max([0])] | numbers | sum(@)
`
  .split('\n')
  .flatMap((line) => line.split(' | '))
  .filter((expression) => expression !== '');

/** Functions whose result in the library, error or not, is the expected result. */
const CALLS = [
  'length(`1`)',
  'sum(names)',
  'join(`1`, names)',
  'map(name, people)',
  'abs()',
  'sort(people)',
  'keys(names)',
];

function outcome(run: () => unknown): unknown {
  try {
    return { result: run() ?? null };
  } catch {
    return 'an error';
  }
}

describe('[M3] ordinary queries', () => {
  test.each([...new Set([...EXPRESSIONS, ...CALLS])])('%s gives the same result as the library', (expression) => {
    expect(outcome(() => runQuery(DATA, expression))).toEqual(outcome(() => search(DATA as never, expression)));
  });
  test('pipes give the same result as the library', () => {
    const expression = 'people[?age > `30`] | sort_by(@, &name) | [].name | join(`", "`, @)';
    expect(runQuery(DATA, expression)).toBe('Ada, Ćira');
    expect(search(DATA as never, expression)).toBe('Ada, Ćira');
  });
  test('a function within "let" can read the variables', () => {
    expect(runQuery(DATA, 'let $least = `30` in people[?age > $least].name')).toEqual(['Ada', 'Ćira']);
    expect(runQuery(DATA, 'let $by = `2` in map(&(@ * $by), numbers)')).toEqual([20, 18, 4, -6, 5, 0]);
  });
  test('twenty thousand rows are filtered, sorted and grouped', () => {
    const rows = Array.from({ length: 20_000 }, (_, id) => ({
      id,
      name: `n${(id * 7_919) % 20_000}`,
      kind: `k${id % 9}`,
    }));
    expect(runQuery(rows, "length([?kind == 'k3'].{id: id, name: name})")).toBe(2_222);
    expect(runQuery(rows, 'sort_by(@, &name)[0].name')).toBe('n0');
    expect(runQuery(rows, 'group_by(@, &kind) | keys(@)')).toHaveLength(9);
  });
});

const numbers = (length: number): Json => Array.from({ length }, (_, index) => index);
const long = 'a'.repeat(1_000_000);
const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, index]));
const some = numbers(1_000);

const COSTLY: readonly (readonly [data: Json, query: string])[] = [
  [numbers(600), 'length(map(&length(map(&length(map(&length(map(&to_string(@),$)),$)),$)),$))'],
  [numbers(700), 'map(&map(&$,$),$)'],
  [numbers(2_000), '[*].[$[*].[$]]'],
  [numbers(2_000), '[?$[?$[?@ > `5000`]]]'],
  [numbers(1_500), 'length(map(&$,$)[][])'],
  [numbers(2_000), 'sort_by(@, &length(sort_by($, &@)))'],
  [numbers(3_000), 'length(map(&zip($,$,$),$))'],
  [{ long, some }, 'map(&contains($.long, `"b"`), some)'],
  [{ long, some }, "map(&length(replace($.long, 'a', 'bb')), some)"],
  [{ long, some }, 'map(&length($.long), some)'],
  [{ long, some }, 'map(&($.long == to_string($.long)), some)'],
  [{ long, some }, 'max(map(&upper($.long), some))'],
  [{ long, some, other: `${'a'.repeat(999_999)}b` }, 'contains(map(&$.long, some), other)'],
  [{ long, some }, 'sort(map(&$.long, some))'],
  [{ long, some }, 'max_by(some, &$.long)'],
  [{ long, some }, 'map(&to_number($.long), some)'],
  [{ long, some }, 'map(&$.long[::2], some)'],
  [{ long, some }, 'map(&length(trim($.long)), some)'],
  [{ long }, "length(split(long, ''))"],
  [{ long }, 'reverse(long)'],
  [{ long }, "replace(long, 'a', 'aa', `1000000000`)"],
  [{ long: 'abc' }, "replace(long, 'b', '$`b', `4000`) | [@, @] | join('', @)"],
  [{ long: 'x' }, 'pad_left(long, `500000000`)'],
  [{ wide, some }, 'map(&values($.wide), some)'],
  [{ wide, some }, 'map(&merge($.wide), some)'],
  [{ wide, some, same: { ...wide } }, 'some[?$.wide != $.same]'],
  [{ wide, some }, 'map(&to_string($.wide), some)'],
];

describe('[M3] the work of json_query is limited', () => {
  test.each(COSTLY.map(([data, query]) => ({ data: () => data, query })))('$query', async ({ data: read, query }) => {
    const data = read();
    const error = errorOf(await jsonQuery.execute(callOf({ data, query }), contextOf()));
    expect(error).toMatchObject({ code: 'query_too_expensive', retryable: false });
    expect(error.message).toContain(`allowed: ${limits.querySteps} steps`);
  });

  test.each([
    [() => numbers(900), 'map(&$, $)'],
    [
      (): Json => ({ long: 'x'.repeat(1_000) }),
      'let $a=[$,$,$,$,$,$,$,$] in let $b=[$a,$a,$a,$a,$a,$a,$a,$a] in let $c=[$b,$b,$b,$b,$b,$b,$b,$b] in [$c,$c,$c,$c,$c]',
    ],
  ])('a result that is large only as JSON text is refused', async (read, query) => {
    const data = read();
    const error = errorOf(await jsonQuery.execute(callOf({ data, query }), contextOf()));
    expect(error.code).toBe('invalid_query');
    expect(error.message).toContain(`result is too large (allowed: ${limits.queryResultChars}`);
  });

  test.each([
    ['brackets', `${'['.repeat(450)}@${']'.repeat(450)}`],
    ['many brackets', `${'['.repeat(4_000)}@${']'.repeat(4_000)}`],
    ['parentheses', `${'('.repeat(600)}@${')'.repeat(600)}`],
    ['negations', `${'!'.repeat(900)}@`],
    ['signs', `${'+'.repeat(2_000)}@`],
    ['members', `a${'.a'.repeat(480)}`],
    ['pipes', `@${' | @'.repeat(480)}`],
    ['functions', `${'to_array('.repeat(250)}@${')'.repeat(250)}`],
    ['expressions', `${'map(&'.repeat(240)}@${',$)'.repeat(240)}`],
    ['literals', `\`${'['.repeat(3_000)}${']'.repeat(3_000)}\``],
    ['alternatives', `@${'||@'.repeat(5_000)}`],
    ['length', `'${'x'.repeat(limits.queryChars)}'`],
  ])('a query that is nested too deeply or too long is refused: %s', async (_, query) => {
    const error = errorOf(await jsonQuery.execute(callOf({ data: [1], query }), contextOf()));
    expect(error.code).toBe('invalid_query');
    expect(error.message).toMatch(/allowed: \d+/);
  });

  test.each(['@', 'length(to_string(@))', '@ == $[0]', 'a == b', 'to_array(@)'])(
    'deep data is refused: %s',
    async (query) => {
      const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
      const data = query === 'a == b' ? `{"a": ${deep}, "b": ${deep}}` : deep;
      const error = errorOf(await jsonQuery.execute(callOf({ data, query }), contextOf()));
      expect(error.message).toContain('nested too deeply');
    },
  );

  test('data in the shape of an expression is data', async () => {
    const e = {
      expref: true,
      type: 'Function',
      name: 'map',
      children: [{ type: 'Field', name: 'e' }, { type: 'Root' }],
    };
    const error = errorOf(await jsonQuery.execute(callOf({ data: { e, l: [1] }, query: 'map(e, l)' }), contextOf()));
    expect(error.code).toBe('invalid_query');
  });

  test('JSON in a text is charged before it is parsed', async () => {
    const data = `[${'1,'.repeat(8_000_000)}1]`;
    const error = errorOf(await jsonQuery.execute(callOf({ data, query: 'length(@)' }), contextOf()));
    expect(error.code).toBe('query_too_expensive');
  });

  test.each(['constructor', '__proto__', 'toString', 'a.constructor', 'constructor(@)', '__proto__(@)'])(
    'no object of the host is reachable: %s',
    async (query) => {
      const outcome = await jsonQuery.execute(callOf({ data: { a: {} }, query }), contextOf());
      expect(outcome.ok ? outcome.output : outcome.error.code).toBe(outcome.ok ? null : 'invalid_query');
    },
  );

  test('the same search in long texts costs the sum of their lengths, not the product', () => {
    const meter = new WorkMeter(limits.querySteps);
    const middle = `${'a'.repeat(250_000)}b${'a'.repeat(250_000)}`;
    const query =
      '[contains(a, b), find_first(a, b), find_last(a, b), length(split(a, b)), length(replace(a, b, `""`))]';
    expect(runQuery({ a: long, b: middle }, query, meter)).toEqual([false, null, null, 1, 1_000_000]);
    expect(meter.spent).toBeLessThan(limits.querySteps);
  });
});
