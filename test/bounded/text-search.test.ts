import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { indexOfText, lastIndexOfText, splitText } from '../../src/bounded/text-search.ts';

/** A small alphabet, so that matches are frequent; texts are long enough for the module's own search. */
const word = fc.array(fc.constantFrom('a', 'b'), { maxLength: 50 }).map((letters) => letters.join(''));
const text = fc.array(fc.constantFrom('a', 'b'), { maxLength: 300 }).map((letters) => letters.join(''));

test('searches give the same results as the built-in ones', () => {
  fc.assert(
    fc.property(text, word, text, fc.nat(20), (before, sought, behind, from) => {
      const whole = before + sought + behind + sought;
      expect(indexOfText(whole, sought, from)).toBe(whole.indexOf(sought, from));
      expect(lastIndexOfText(whole, sought)).toBe(whole.lastIndexOf(sought));
      expect(splitText(whole, sought)).toEqual(whole.split(sought));
      const missing = `${sought}${'b'.repeat(40)}`;
      expect(indexOfText(whole, missing)).toBe(whole.indexOf(missing));
    }),
  );
});
