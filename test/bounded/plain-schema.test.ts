/** The shortcut for plain schemas decides as the full check does. */
import { expect, test } from 'vitest';
import { checkValue } from '../../src/bounded/schema-check.ts';
import { PreparedSchema } from '../../src/bounded/schema.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';

const TYPES = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'];
const VALUES: readonly Json[] = ['', 'a', 0, 1.5, -2, 1e300, true, null, [], [1], {}, { a: 1 }];

test('[M1] a value passes the shortcut exactly if it passes the full check', () => {
  let passed = 0;
  for (const type of [...TYPES, null]) {
    for (const additionalProperties of [true, false]) {
      const a: JsonObject = type === null ? {} : { type };
      const schema: JsonObject = { type: 'object', properties: { a }, required: ['a'], additionalProperties };
      const plain = new PreparedSchema(schema);
      // A keyword without an effect, which the shortcut does not know.
      const full = new PreparedSchema({ ...schema, minProperties: 0 });
      expect([plain.plain === null, full.plain === null]).toEqual([false, true]);
      const values = VALUES.flatMap((value): Json[] => [value, { a: value }, { a: value, b: 1 }, { b: value }]);
      for (const value of values) {
        const errors = checkValue(plain, value);
        expect(errors).toEqual(checkValue(full, value));
        if (errors.length === 0) passed += 1;
      }
    }
  }
  expect(passed).toBeGreaterThan(20);
});
