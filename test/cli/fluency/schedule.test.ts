/** Nominal times of plans: computed, for ideal plans and for those that a model has made. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { idealPlan } from '../../../cli/fluency/tasks/ideal-plan.ts';
import { GENERATION_MS, scheduleOf } from '../../../cli/fluency/tasks/schedule.ts';
import type { ScheduledCall } from '../../../cli/fluency/tasks/schedule.ts';
import { nominalMs } from '../../../cli/fluency/tasks/tools.ts';
import { dataset, taskNamed } from './kit.ts';

const call = (key: string, ms: number, ...needs: string[]): ScheduledCall => ({ key, ms, needs });

test.each<[string, ScheduledCall[][], number, number]>([
  ['nothing but an answer', [[]], 8, 0],
  ['one call', [[call('a', 300)]], 8, 300],
  ['two at once', [[call('a', 300), call('b', 500)]], 8, 500],
  ['a chain', [[call('a', 300), call('b', 500, 'a')]], 8, 800],
  ['a diamond', [[call('a', 100), call('b', 200, 'a'), call('c', 400, 'a'), call('d', 100, 'b', 'c')]], 8, 600],
  ['two with one slot', [[call('a', 300), call('b', 500)]], 1, 800],
  // In the order of declaration it would be 900: c would wait for a.
  ['the longest chain first', [[call('a', 400), call('b', 400), call('c', 100), call('d', 400, 'c')]], 2, 800],
  ['a call that is declared later', [[call('a', 300, 'b'), call('b', 500)]], 8, 800],
  ['a cycle, whose calls never run', [[call('a', 300, 'b'), call('b', 500, 'a'), call('c', 50)]], 8, 50],
])('[O4] %s', (_, generations, slots, ms) => {
  expect(scheduleOf(generations, slots).makespanMs).toBe(GENERATION_MS * generations.length + ms);
});

test('[O4] a generation begins when the calls of the one before have ended', () => {
  const { makespanMs, starts } = scheduleOf([[call('a', 700)], [call('b', 300, 'a')], []], 8);
  expect([...starts]).toEqual([
    ['a', GENERATION_MS],
    ['b', 2 * GENERATION_MS + 700],
  ]);
  expect(makespanMs).toBe(3 * GENERATION_MS + 1_000);
});

const graph = fc
  .array(fc.record({ ms: fc.integer({ min: 1, max: 900 }), needs: fc.array(fc.nat(20), { maxLength: 3 }) }), {
    maxLength: 14,
  })
  .map((nodes) =>
    nodes.map(({ ms, needs }, at) => ({
      key: String(at),
      ms,
      needs: needs.filter((other) => other < at).map(String),
    })),
  );

test('[O4] no call starts before what it needs, and never more than the slots run', () => {
  fc.assert(
    fc.property(graph, fc.integer({ min: 1, max: 4 }), (calls, slots) => {
      const { makespanMs, starts, criticalPathMs } = scheduleOf([calls], slots);
      const startOf = (key: string): number => starts.get(key) ?? -1;
      const msOf = new Map(calls.map(({ key, ms }) => [key, ms]));
      for (const { key, needs } of calls) {
        for (const other of needs) expect(startOf(key)).toBeGreaterThanOrEqual(startOf(other) + (msOf.get(other) ?? 0));
        const at = startOf(key);
        const running = calls.filter((one) => startOf(one.key) <= at && startOf(one.key) + one.ms > at);
        expect(running.length).toBeLessThanOrEqual(slots);
      }
      const work = calls.reduce((sum, { ms }) => sum + ms, 0);
      expect(makespanMs).toBeGreaterThanOrEqual(criticalPathMs);
      expect(makespanMs).toBeGreaterThanOrEqual(GENERATION_MS + work / slots);
      expect(makespanMs).toBeLessThanOrEqual(GENERATION_MS + work);
      if (slots >= calls.length) expect(makespanMs).toBe(criticalPathMs);
    }),
  );
});

describe('[O4] the ideal plan', () => {
  const msOf = nominalMs(dataset.tools);
  const shapeOf = (name: string, form: 'full' | 'tool_calls'): string[][] =>
    idealPlan(taskNamed(name), form, msOf).generations.map((calls) => calls.map(({ id }) => id));

  test.each<[string, string[][], string[][]]>([
    ['two-stations', [['a', 'b']], [['a', 'b'], []]],
    ['diamond', [['e', 'l', 't', 'x']], [['e'], ['l', 't'], ['x'], []]],
    // What has failed must be seen before it can be called again.
    [
      'sum-of-meters',
      [
        ['a', 'b'],
        ['c', 'sum'],
      ],
      [['a', 'b'], ['c'], ['sum'], []],
    ],
  ])(
    '%s: one generation for all that needs no reading; native calls cannot refer to later results',
    (name, text, native) => {
      expect(shapeOf(name, 'full')).toEqual(text);
      expect(shapeOf(name, 'tool_calls')).toEqual(native);
    },
  );

  test('takes the slots into account', () => {
    // six calls of 600 ms
    expect(idealPlan(taskNamed('two-slots'), 'full', msOf).schedule.makespanMs).toBe(GENERATION_MS + 3 * 600);
  });

  test('counts the values that can be handed over', () => {
    // $l.level, $t.budget, $e.id, $e.team and the answer
    expect(idealPlan(taskNamed('diamond'), 'full', msOf).handOvers).toBe(5);
    expect(idealPlan(taskNamed('diamond'), 'tool_calls', msOf).handOvers).toBe(0);
  });
});
