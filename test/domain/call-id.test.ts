/** Ids of calls of client tools (C3). */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { callIdOf, placeOfCall } from '../../src/domain/call-id.ts';
import { limits } from '../../src/domain/limits.ts';

const SESSION = { session_id: `ses_${'0123456789abcdef'.repeat(2)}`, incarnation: 'a1b2c3d4e5f6' };
const place = fc.record({
  run: fc.integer({ min: 1, max: 2_097_151 }),
  iteration: fc.integer({ min: 1, max: 16_383 }),
  ordinal: fc.integer({ min: 0, max: 16_383 }),
});

test('[C3] an id leads to its call, and has at most 40 characters of an URL', () => {
  fc.assert(
    fc.property(place, (one) => {
      const id = callIdOf(SESSION, one) ?? '';
      expect(id).toMatch(/^call_[\w-]+$/);
      expect(id.length).toBeLessThanOrEqual(limits.callIdChars);
      expect(placeOfCall(SESSION, id)).toEqual(one);
    }),
  );
});

test('[C3] an id of another session, or of an earlier one with the same id, leads nowhere', () => {
  const id = callIdOf(SESSION, { run: 1, iteration: 1, ordinal: 0 }) ?? '';
  expect(placeOfCall({ ...SESSION, session_id: `ses_${'f'.repeat(32)}` }, id)).toBeNull();
  expect(placeOfCall({ ...SESSION, incarnation: 'ffffffffffff' }, id)).toBeNull();
  expect(placeOfCall({ session_id: SESSION.session_id }, id)).toBeNull();
});

test('[C3] any other text leads nowhere: there is one form of each id', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.base64String().map((text) => `call_${text}`),
      ),
      (text) => {
        expect(placeOfCall(SESSION, text)).toBeNull();
      },
    ),
  );
  const id = callIdOf(SESSION, { run: 1, iteration: 1, ordinal: 0 }) ?? '';
  for (const other of [`${id}A`, `${id}AA`, id.slice(0, -1), `${id}=`, id.toUpperCase(), ` ${id}`, `${id}\n`]) {
    expect(placeOfCall(SESSION, other)).toBeNull();
  }
});

test('[C3] a place that does not fit has no id', () => {
  expect(callIdOf(SESSION, { run: 2_097_152, iteration: 16_383, ordinal: 16_383 })).toBeNull();
});
