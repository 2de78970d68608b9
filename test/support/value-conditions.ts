/**
 * Conditions over values as they are (D4), for every place that has conditions: null, absent members, quotes, whole and
 * fractional numbers, lists of any length, long texts. `@` stands for the name of the values.
 */
import type { JsonObject } from '../../src/domain/json.ts';

const numbers = Array.from({ length: 10_000 }, (_, index) => index);
const text = 'x'.repeat(1_048_575);

export const CONDITION_VALUES: JsonObject = {
  nothing: null,
  empty: [],
  none: {},
  flag: true,
  one: 1,
  half: 2.5,
  seven: 7,
  quotes: `it's "quoted" \\ and ends with $`,
  dollars: '$(steps.s.one) ${one} $one',
  mixed: [1, 'a', null, 2.5],
  numbers,
  rows: numbers.map((id) => ({ id, name: `row ${id}`, done: id % 2 === 0 })),
  text: `${text}y`,
  same: `${text}y`,
};

const CONDITIONS: readonly (readonly [condition: string, isTrue: boolean])[] = [
  ['@.nothing == null', true],
  ['@.nothing != null', false],
  ['@.nothing > 3', false],
  ['@.absent == null', true],
  ['@.absent == 3', false],
  ['@.absent < 3 || @.absent >= 3', false],
  ['@.absent.deeper == null', true],
  ['@.absent', false],
  ['!@.absent', true],
  ['@.absent && @.flag', false],
  ['@.absent ? false : true', true],
  ['@.absent + 1 == null', true],
  ['@.absent.size() == 0', true],
  ['@.absent.exists(x, x == 1)', false],
  ['1 in @.absent', false],
  ['@.absent.contains("x") || @.absent.startsWith("x")', false],
  ['has(@.absent) || has(@.absent.deeper)', false],
  ['has(@.one) && has(@.nothing)', true],
  [String.raw`@.quotes == "it's \"quoted\" \\ and ends with $"`, true],
  ['@.dollars == "$(steps.s.one) ${one} $one"', true],
  ['@.one == 1.0', true],
  ['@.one < @.half', true],
  ['1 == 1.0 && 2 < 2.5 && 3 > 2.5', true],
  ['@.seven / 2 == 3', true],
  ['double(@.seven) / 2 == 3.5', true],
  ['double(@.half) / 2 == 1.25', true],
  ['@.seven % 4 == 3 && @.half % 2 == 0.5', true],
  ['@.empty == [] && @.empty.size() == 0 && !(1 in @.empty)', true],
  ['@.empty.all(x, x > 1) && !@.empty.exists(x, x > 1)', true],
  ['@.none == {} && @.none.x == null', true],
  ['"a" in @.mixed && null in @.mixed && 2.5 in @.mixed', true],
  ['@.mixed[0] == 1 && @.mixed[9] == null', true],
  ['@.numbers.size() == 10000 && 9999 in @.numbers', true],
  ['@.numbers.all(x, x >= 0) && @.numbers.exists(x, x > 9998)', true],
  ['@.rows.filter(row, row.done && row.name != "row 8").size() == 4999', true],
  ['@.rows.exists(row, row.missing == 1)', false],
  ['@.text.size() == 1048576 && @.text.endsWith("y")', true],
  ['@.text == @.same && @.text.contains("xy")', true],
];

/** Those that a policy cannot judge: they compare the size of null, calculate with it, or call a function of it. */
const UNKNOWN_TO_POLICIES: ReadonlySet<string> = new Set([
  '@.nothing > 3',
  '@.absent < 3 || @.absent >= 3',
  '@.absent + 1 == null',
  '@.absent.size() == 0',
  '@.absent.contains("x") || @.absent.startsWith("x")',
]);

/** The same for a policy; null: it cannot be judged, and denies. */
export function policyConditions(name: string): (readonly [condition: string, isTrue: boolean | null])[] {
  return CONDITIONS.map(([condition, isTrue]) => [
    condition.replaceAll('@', name),
    UNKNOWN_TO_POLICIES.has(condition) ? null : isTrue,
  ]);
}

/** The conditions with this name of the values. */
export function valueConditions(name: string): (readonly [condition: string, isTrue: boolean])[] {
  return CONDITIONS.map(([condition, isTrue]) => [condition.replaceAll('@', name), isTrue]);
}
