import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { excerptOf, jsonChars } from '../../src/bounded/json-size.ts';
import { WorkMeter } from '../../src/domain/work.ts';

test('an excerpt is the start of the JSON, for every value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 60 }), (value, most) => {
      const text = JSON.stringify(value);
      expect(excerptOf(value, most)).toBe(text.length > most ? `${text.slice(0, most)}…` : text);
    }),
  );
});

test('an excerpt of a value with a million references to the same value is short', () => {
  let value: unknown = 'x';
  for (let level = 0; level < 60; level += 1) value = [value, value];
  expect(excerptOf(value, 80)).toBe(`${'['.repeat(60)}"x","x"],["x","x"]],…`);
});

test('the size of a value counts shared parts each time, up to a limit', () => {
  const shared = ['abc', 1, null, { key: true }];
  const meter = new WorkMeter(1_000);
  const size = jsonChars([shared, shared], 1_000, 10, meter);
  expect(size).toBeGreaterThanOrEqual(JSON.stringify([shared, shared]).length);
  expect(jsonChars([shared, shared], 20, 10, meter)).toBe(Infinity);
  expect(() => jsonChars([[[]]], 100, 1, meter)).toThrow('nested too deeply');
});
