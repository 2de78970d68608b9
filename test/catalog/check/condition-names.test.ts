/** Names of the workflow that the condition of a step uses (M6). */
import { describe, expect, test } from 'vitest';
import { namesInCondition, whyNotCel } from '../../../src/catalog/check/condition-names.ts';

describe('[M6] names in a condition', () => {
  test.each([
    ['steps.a.kind == "item"', ['steps.a.kind']],
    ['steps.a.rows[0].item == 1', ['steps.a.rows']],
    ['steps.a.rows.exists(item, item.price > 3) && item.x > 2', ['steps.a.rows', 'item.x']],
    ['steps.a.x.filter(i, i.item > index).size() > 1', ['steps.a.x', 'index']],
    ['$(steps.a.rows[0].id) == "$(item[1])"', ['steps.a.rows.0.id', 'item.1']],
    ["'$(item[1].x)' == 'a'", ['item.1.x']],
    ['trigger.list.size() > 0', ['trigger.list']],
    ['index % 2 == 0 && items > 3 && index(3)', ['index']],
    ["'$(steps.a.s)' == 'ok' && \"a $(item)\" != ''", ['steps.a.s']],
    ['has(trigger.x) && has(steps.a.b.c)', ['trigger.x', 'steps.a.b.c']],
    ['{"item": 1}.item == 1', []],
  ])('%s', (text, paths) => {
    expect(namesInCondition(text).map(({ path }) => path.join('.'))).toEqual(paths);
  });

  test('are reported with their positions', () => {
    const text = '"steps.x" != $(steps.a.b) && has( trigger.c )';
    const written = namesInCondition(text).map(({ start, end, isTest }) => [text.slice(start, end), isTest]);
    expect(written).toEqual([
      ['$(steps.a.b)', false],
      ['has( trigger.c )', true],
    ]);
  });
});

describe('[M6] syntax of a condition', () => {
  test.each([
    'steps.a.ok',
    '$(steps.a.ok) && $(trigger.n) > 3',
    "'$(steps.a.s)' == 'ok'",
    'has(item.price) && !has(trigger.x)',
    'steps.a.rows.exists(row, row.price > 3 && row.kind in ["a", 1, null])',
    '$index % 2 == 0 ? $steps.a.b : ${steps.a.c}',
    '{"item": 1, 2: [steps.a]}.item == 1',
    'type(steps.a) == int || double(steps.b) < 1.5e3 || steps["odd name"] == 1u',
    "steps.a.text.contains('\\'$(')",
    'items.size() > 0',
  ])('%s is valid', (text) => {
    expect(whyNotCel(text)).toBeNull();
  });

  test.each([
    ['steps.a.size( >', 'Unexpected token: GT'],
    ['steps.a ==', 'Unexpected token: EOF'],
    ['steps.a = 1', 'Unexpected character'],
    ['steps.a and steps.b', 'Unexpected'],
    ["steps.a == 'open", 'Unterminated string'],
  ])('%s is invalid', (text, why) => {
    expect(whyNotCel(text)).toContain(why);
  });
});
