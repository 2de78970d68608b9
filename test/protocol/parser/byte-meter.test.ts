import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteMeter, utf8Bytes } from '../../../src/protocol/parser/byte-meter.ts';
import { characters, cutAtRandom } from './parser-kit.ts';

function fitted(pieces: readonly string[], limit: number): string {
  const meter = new ByteMeter(limit);
  let kept = '';
  for (const piece of pieces) {
    const fits = meter.fit(piece);
    kept += fits;
    if (fits.length < piece.length) break;
  }
  return kept;
}

const text = fc
  .array(fc.constantFrom('a', 'bc ', 'é', '漢', '\u{1F600}', '\n', '\u{10FFFF}'), { maxLength: 400 })
  .map((parts) => parts.join(''));

describe('[P16] bytes of a text that arrives in pieces', () => {
  test('the longest prefix within the limit is the same for every cut', () => {
    fc.assert(
      fc.property(text, fc.nat(1200), fc.nat(1000), (whole, limit, seed) => {
        let expected = '';
        for (const character of whole) {
          if (utf8Bytes(expected + character) > limit) break;
          expected += character;
        }
        for (const pieces of [[whole], characters(whole), cutAtRandom(whole, seed)]) {
          expect(fitted(pieces, limit)).toBe(expected);
        }
      }),
    );
  });
  test('pieces that fit without a check are counted too', () => {
    fc.assert(
      fc.property(text, fc.nat(1200), fc.nat(1000), (whole, limit, seed) => {
        const meter = new ByteMeter(limit);
        let kept = '';
        for (const piece of cutAtRandom(whole, seed)) {
          if (piece.length <= meter.room) {
            meter.take(piece);
            kept += piece;
            continue;
          }
          const fits = meter.fit(piece);
          kept += fits;
          if (fits.length < piece.length) break;
        }
        expect(kept).toBe(fitted([whole], limit));
      }),
    );
  });
  test('the count matches TextEncoder, for texts longer than its buffer too', () => {
    const long = '漢\u{1F600}é'.repeat(10_000);
    expect(utf8Bytes(long)).toBe(new TextEncoder().encode(long).length);
    expect(utf8Bytes('\uD83D')).toBe(3);
  });
  test('pieces shorter than `room` fit', () => {
    const meter = new ByteMeter(10_000);
    meter.fit('x');
    expect(meter.room).toBeGreaterThan(0);
    expect(meter.room * 3).toBeLessThanOrEqual(10_000);
  });
});
