import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Base64Decoder } from '../../src/domain/base64-decoder.ts';
import type { Decoded } from '../../src/domain/base64-decoder.ts';
import { decodeBase64 } from '../../src/domain/base64.ts';

function decode(
  text: string,
  { cuts = [], most = 1_000_000 }: { cuts?: readonly number[]; most?: number } = {},
): Decoded {
  const bytes = new TextEncoder().encode(text);
  const decoder = new Base64Decoder(most);
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  let from = 0;
  for (const end of ends) {
    decoder.feed(bytes.subarray(from, end));
    from = end;
  }
  return decoder.end();
}

describe('[C2] base64 that arrives in pieces', () => {
  test('gives the same bytes as the whole text, at any cut, with and without padding', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3_000 }), fc.array(fc.nat()), fc.boolean(), (bytes, cuts, isPadded) => {
        const text = Buffer.from(bytes)
          .toString('base64')
          .replace(isPadded ? /$^/ : /=+$/, '');
        const decoded = decode(text, { cuts });
        expect(decoded).toEqual({ isBase64: true, size: bytes.length, bytes });
      }),
    );
  });

  test('accepts and refuses what atob accepts and refuses', () => {
    const characters = fc.constantFrom(...'AZaz09+/== \n\t\r\f\v-_é\u0000');
    fc.assert(
      fc.property(fc.string({ unit: characters, maxLength: 12 }), fc.array(fc.nat()), (text, cuts) => {
        expect(decode(text, { cuts }).bytes).toEqual(decodeBase64(text));
      }),
      { numRuns: 2_000 },
    );
  });

  test('white space costs no memory', () => {
    const decoder = new Base64Decoder(1_000_000);
    const space = new Uint8Array(65_536).fill(0x20);
    for (let at = 0; at < 160; at += 1) decoder.feed(space);
    expect(decoder.heldBytes).toBe(0);
    expect(decoder.end()).toEqual({ isBase64: true, size: 0, bytes: new Uint8Array(0) });
  });

  test.each([0, 768, 100_000])('more than %i bytes are counted, and not held', (most) => {
    const bytes = new Uint8Array(300_000).fill(7);
    const decoder = new Base64Decoder(most);
    const text = new TextEncoder().encode(Buffer.from(bytes).toString('base64'));
    let held = 0;
    for (let at = 0; at < text.length; at += 1_000) {
      decoder.feed(text.subarray(at, at + 1_000));
      held = Math.max(held, decoder.heldBytes);
    }
    expect(decoder.end()).toEqual({ isBase64: true, size: bytes.length, bytes: null });
    expect(held).toBeLessThanOrEqual(most + 200_000);
  });

  test('exactly the limit is kept', () => {
    const bytes = new Uint8Array(1_000).fill(7);
    const text = Buffer.from(bytes).toString('base64');
    expect(decode(text, { most: 1_000 }).bytes).toEqual(bytes);
    expect(decode(text, { most: 999 }).bytes).toBeNull();
  });

  test('after a character that is not base64, nothing is held', () => {
    const decoder = new Base64Decoder(1_000_000);
    decoder.feed(new TextEncoder().encode(`${'AAAA'.repeat(1_000)}#${'AAAA'.repeat(1_000)}`));
    expect(decoder.heldBytes).toBe(0);
    expect(decoder.end()).toMatchObject({ isBase64: false, bytes: null });
  });
});
