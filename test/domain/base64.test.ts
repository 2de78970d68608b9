import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { base64Of, encoded } from '../../src/domain/base64.ts';

test('[C2] bytes of any length become base64', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const expected = Buffer.from(bytes).toString('base64');
      expect([base64Of(bytes), encoded(bytes)]).toEqual([expected, expected]);
    }),
  );
});
