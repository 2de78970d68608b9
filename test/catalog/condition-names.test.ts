/** What a step's condition names of its workflow (M6). */
import { describe, expect, test } from 'vitest';
import { namesInCondition } from '../../src/catalog/condition-names.ts';

describe('[M6] names in a condition', () => {
  test.each([
    ['steps.a.kind == "item"', ['steps.a.kind']],
    ['steps.a.rows[0].item == 1', ['steps.a.rows']],
    ['steps.a.rows.exists(item, item.price > 3) && item.x > 2', ['steps.a.rows', 'item.x']],
    ['steps.a.x.filter(i, i.item > index).size() > 1', ['steps.a.x', 'index']],
    ['trigger.list.size() > 0', ['trigger.list']],
    ['index % 2 == 0 && items > 3 && index(3)', ['index']],
    ["'$(steps.a.s)' == 'ok' && \"a $(item)\" != ''", ['steps.a.s']],
    ['has(trigger.x) && has(steps.a.b.c)', ['trigger.x', 'steps.a.b.c']],
    ['{"item": 1}.item == 1', []],
  ])('%s', (text, paths) => {
    expect(namesInCondition(text).map(({ path }) => path.join('.'))).toEqual(paths);
  });

  test('stand where they are written', () => {
    const text = '"steps.x" != $(steps.a.b) && has( trigger.c )';
    const written = namesInCondition(text).map(({ start, end, asked }) => [text.slice(start, end), asked]);
    expect(written).toEqual([
      ['$(steps.a.b)', false],
      ['has( trigger.c )', true],
    ]);
  });
});
