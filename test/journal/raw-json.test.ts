import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeData, encodeEvent, storedEvent } from '../../src/domain/event.ts';
import type { EventOf } from '../../src/domain/event.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { outputJson } from '../../src/journal/artifacts.ts';
import { endOf, itemsAt, membersAt, stringAt } from '../../src/journal/raw-json.ts';

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
/** Texts that look like the end of an event's data. */
const tricky = fc.oneof(
  json,
  fc.constantFrom<Json>(
    { a: 1, ms: 3, attempt: 1 },
    [{ ms: 3 }],
    ',"ms":3}',
    '\\',
    '"',
    { 'a"\\': '\\"', ms: 1 },
    null,
    {},
    [],
  ),
);

const head = { seq: 7, type: 'action_completed', session_id: 's', run_id: 'r', iteration: 1, timestamp: 0 } as const;
const stored = (data: JsonObject): EventOf<'action_completed'> =>
  storedEvent(head, JSON.stringify(data)) as EventOf<'action_completed'>;

describe('[J4] an event that is read', () => {
  test('is encoded exactly as it was sent, parsed or not', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), fc.boolean(), (data, isNamed) => {
        const named = isNamed ? { ...head, action_id: 'a', action_name: 'n' } : head;
        const text = JSON.stringify(data);
        const sent = JSON.stringify({ ...named, data: JSON.parse(text) as JsonObject });
        const event = storedEvent(named, text);
        expect(encodeEvent(event)).toBe(sent);
        expect(encodeData(event)).toBe(text);
        expect(JSON.stringify(event.data)).toBe(JSON.stringify(JSON.parse(text)));
        expect(encodeEvent(event)).toBe(sent);
      }),
    );
  });
});

describe('[J6] JSON that is not parsed', () => {
  test('an output is extracted from its event', () => {
    const rest = fc.constantFrom<JsonObject>({}, { ms: 3, attempt: 1 }, { ms: 0, attempt: 2, cached: true });
    fc.assert(
      fc.property(tricky, rest, (output, more) => {
        expect(outputJson(stored({ output, ...more }))).toBe(JSON.stringify(output));
      }),
    );
    expect(outputJson(stored({ ms: 1 }))).toBe('null');
    expect(outputJson(stored({ ms: 1, output: { a: 1 }, other: 'x' }))).toBe('{"a":1}');
    expect(outputJson(stored({ output: { a: 1 }, other: 'x' }))).toBe('{"a":1}');
  });

  test('the positions of members and items are correct', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), tricky), fc.array(tricky), (object, list) => {
        const text = JSON.stringify(object);
        const members = [...membersAt(text, 0)].map(([key, { from, to }]) => [key, text.slice(from, to)]);
        expect(members).toEqual(Object.entries(object).map(([key, value]) => [key, JSON.stringify(value)]));
        const items = JSON.stringify(list);
        expect(itemsAt(items, 0, 99).map(({ from, to }) => items.slice(from, to))).toEqual(
          list.map((value) => JSON.stringify(value)),
        );
        for (const [key, value] of Object.entries(object)) {
          expect(stringAt(text, membersAt(text, 0).get(key))).toBe(typeof value === 'string' ? value : undefined);
        }
      }),
    );
    expect([...membersAt('[1]', 0), ...itemsAt('{}', 0, 9)]).toEqual([]);
    expect(itemsAt('[1,2,3]', 0, 2)).toHaveLength(2);
  });

  const ends: readonly (readonly [text: string, from: number, end: number])[] = [
    ['1', 0, 1],
    ['12,3', 0, 2],
    ['[1,[2],{"a":[3]}],4', 0, 17],
    ['{"a]":"}"},4', 0, 10],
    ['"a,b",4', 0, 5],
    ['"a\\\\",4', 0, 5],
    ['"a\\"",4', 0, 5],
    ['[1]', 1, 2],
    ['{"a":1}', 5, 6],
    ['[[1],2]', 1, 4],
    ['"open', 0, 5],
    ['[1', 0, 2],
  ];
  test.each(ends)('the value in %s from %i ends at %i', (text, from, end) => {
    expect(endOf(text, from)).toBe(end);
  });

  test('a value is a string only if it begins with a quote', () => {
    expect(stringAt('["a",1]', { from: 1, to: 4 })).toBe('a');
    expect(stringAt('["a",1]', { from: 5, to: 6 })).toBeUndefined();
    expect(stringAt('"a"', undefined)).toBeUndefined();
    expect(itemsAt('[]', 0, 9)).toEqual([]);
    expect(itemsAt('x[1]', 1, 9)).toEqual([{ from: 2, to: 3 }]);
    expect(itemsAt('[1,2]', 0, 0)).toEqual([]);
    expect([...membersAt('{}', 0)]).toEqual([]);
    expect([...membersAt('x{"a":1}', 1)]).toEqual([['a', { from: 6, to: 7 }]]);
  });
});
