import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isJsonObject, parseJson } from '../../src/domain/json.ts';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { ContentData } from '../../src/http/content-data.ts';
import type { ReducedBody } from '../../src/http/content-data.ts';

function reduced(text: string | Uint8Array, pieceBytes = Infinity): ReducedBody {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  const content = new ContentData();
  const step = Math.min(pieceBytes, Math.max(1, bytes.length));
  for (let at = 0; at < bytes.length; at += step) content.feed(bytes.subarray(at, at + step));
  return content.end();
}

/** The JSON with the bytes, in base64, in place of the marks. */
function restored({ text, data }: ReducedBody): Json | undefined {
  const json = parseJson(text);
  if (!isJsonObject(json) || !Array.isArray(json['content'])) return json;
  const content = json['content'].map((part): Json => {
    if (!isJsonObject(part) || typeof part['data'] !== 'string') return part;
    const decoded = data.get(part['data']);
    if (decoded === undefined) return part;
    return { ...part, data: decoded.bytes === null ? decoded.isBase64 : Buffer.from(decoded.bytes).toString('base64') };
  });
  return { ...json, content };
}

const base64 = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const anything = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
const part = fc.oneof(
  fc.record({ type: fc.constant('file'), name: fc.string(), data: base64 }),
  fc.record({ type: fc.constant('text'), text: fc.string({ unit: 'binary' }) }),
  fc.record({ data: fc.array(fc.record({ data: fc.string() })) }),
  anything,
);
const body = fc.record(
  {
    content: fc.oneof(fc.array(part), anything),
    metadata: fc.dictionary(fc.constantFrom('data', 'content', 'a'), part),
    data: anything,
  },
  { requiredKeys: [] },
);

describe('[C2] the JSON of a message without the base64 of its files', () => {
  test('is the same message, at any cut and with any escapes and white space', () => {
    fc.assert(
      fc.property(
        body,
        fc.integer({ min: 1, max: 9 }),
        fc.constantFrom(0, 2),
        fc.boolean(),
        (json, piece, space, isEscaped) => {
          const plain = JSON.stringify(json, null, space);
          const text = isEscaped ? plain.replaceAll('/', '\\/').replaceAll(/(?<!e)\+/g, '\\u002B') : plain;
          const { text: left, data } = reduced(text, piece);
          expect(restored({ text: left, data })).toEqual(JSON.parse(text));
        },
      ),
    );
  });

  test('is valid JSON exactly if the body is', () => {
    const inserted = fc.constantFrom('"', '\\', '\n', '{', '}', '[', ']', ',', ':', '\\u12', '\\x', '\u0000', 'a', 'é');
    fc.assert(
      fc.property(body, inserted, fc.nat(), fc.integer({ min: 1, max: 9 }), (json, more, place, piece) => {
        const text = JSON.stringify(json);
        const at = place % (text.length + 1);
        const broken = text.slice(0, at) + more + text.slice(at);
        expect(parseJson(reduced(broken, piece).text) === undefined).toBe(parseJson(broken) === undefined);
      }),
      { numRuns: 1_000 },
    );
  });

  test('contains no base64 of files, and that of other members', () => {
    const data = 'QUJD'.repeat(100);
    const file = { type: 'file', name: 'a', data };
    const { text } = reduced(
      JSON.stringify({ data, metadata: { content: [file] }, content: [file, [file], { in: file }] }),
    );
    expect(text.split(data)).toHaveLength(5);
    expect(JSON.parse(text)).toMatchObject({ content: [{ data: 'data:0' }, [file], { in: file }] });
  });

  test('a key with escapes leaves the base64 in the text', () => {
    const { text, data } = reduced('{"content": [{"d\\u0061ta": "QUJD"}], "c\\u006fntent": [{"data": "QUJD"}]}');
    expect(text).toContain('"QUJD"}], "c\\u006f');
    expect(data.size).toBe(0);
  });

  test('a mark that a client writes is not base64', () => {
    const { data } = reduced('{"content": [{"data": "data:0"}]}');
    expect([...data.values()]).toMatchObject([{ isBase64: false, bytes: null }]);
  });

  test('there are at most as many files as parts, and they hold no more than a message may', () => {
    const files = Array.from({ length: 10_000 }, () => '{"data":"QUJD"}');
    expect(reduced(`{"content":[${files.join(',')}]}`).data.size).toBe(limits.messageParts);
    const large = 'AAAA'.repeat(limits.messagePartBytes / 4);
    const { data } = reduced(
      `{"content":[{${Array.from({ length: 5 }, () => `"data":"${large}"`).join(',')}}]}`,
      65_536,
    );
    const held = [...data.values()].reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0);
    expect(held).toBeLessThanOrEqual(limits.messageFileBytes);
    expect([...data.values()].map(({ bytes }) => bytes === null)).toEqual([false, false, true, true, true]);
  });

  test('text beyond the limit is not kept', () => {
    const content = new ContentData();
    const piece = new TextEncoder().encode('x'.repeat(65_536));
    content.feed(new TextEncoder().encode('{"content": "'));
    for (let at = 0; at < 300; at += 1) content.feed(piece);
    expect(content.textBytes).toBeGreaterThan(limits.bodyBytes);
    expect(content.end().text.length).toBeLessThanOrEqual(limits.bodyBytes);
  });
});
