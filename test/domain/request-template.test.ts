import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { RequestTemplate, escapeBraces } from '../../src/domain/request-template.ts';

const HOST = 'https://api.example.com';
const url = (template: string, parameters: JsonObject = {}) => new RequestTemplate(parameters).url(template);
const filled = (template: string, parameters: JsonObject = {}): string => {
  const result = url(template, parameters);
  if (!result.ok) throw new Error(result.reason);
  return result.text;
};

describe('[M3] a URL with placeholders', () => {
  test.each<[string, JsonObject, string]>([
    ['/tickets/{id}', { id: 'T-1' }, '/tickets/T-1'],
    ['/tickets/{id}/notes/{note}', { id: 7, note: true }, '/tickets/7/notes/true'],
    ['/tickets/{id}', { id: 'a/b?c#d é%2F' }, '/tickets/a%2Fb%3Fc%23d%20%C3%A9%252F'],
    ['/tickets/{id}', { id: 'a\r\nHost: evil' }, '/tickets/a%0D%0AHost%3A%20evil'],
    ['/tickets/{id}', { id: '\uD800' }, '/tickets/%EF%BF%BD'],
    ['/tickets/{id}', { id: '$&$1' }, '/tickets/%24%26%241'],
    ['/f/{name}.json', { name: '..' }, '/f/...json'],
    ['?q={q}&v=1', { q: 'a&b=c d' }, '?q=a%26b%3Dc%20d&v=1'],
    ['/s?q={q}&v=1', {}, '/s?v=1'],
    ['/s?q={q}', { q: null }, '/s'],
    ['/s?q={q}', { q: '' }, '/s?q='],
    ['/s?tag={tags}', { tags: ['x', 'y', 3] }, '/s?tag=x&tag=y&tag=3'],
    ['/s?q=id:{id}-{none}', { id: 5 }, '/s?q=id:5-'],
    ['/s?q={a.b-c$}', { 'a.b-c$': 1 }, '/s?q=1'],
    ['/s?q={{id}', { id: 1 }, '/s?q={id}'],
    ['/s?q={"a":{"b":1}}&i={id}', { id: 1 }, '/s?q={"a":{"b":1}}&i=1'],
    ['/s/${VARIABLE}/{id}', { id: 1, VARIABLE: 2 }, '/s/${VARIABLE}/1'],
  ])('%s with %j', (template, parameters, expected) => {
    expect(filled(`${HOST}${template}`, parameters)).toBe(`${HOST}${expected}`);
  });

  test.each<[string, JsonObject, RegExp]>([
    ['/tickets/{id}', {}, /^the parameter "id" is missing/],
    ['/tickets/{id}/close', { id: '' }, /^\{id\} in the path is empty/],
    ['/tickets/{id}/close', { id: '..' }, /^\{id\} in the path becomes/],
    ['/tickets/%2e{id}', { id: '.' }, /^%2e\{id\} in the path becomes/],
    ['/tickets/{a}{b}', { a: '.', b: '.' }, /^\{a\}\{b\} in the path becomes/],
    ['/tickets#{id}', { id: 1 }, /after "#"/],
    ['/tickets?q=x{id}', { id: 'x'.repeat(limits.filledRequestChars + 1) }, /^the parameter "id" is too long/],
  ])('%s with %j is refused', (template, parameters, reason) => {
    const result = url(`${HOST}${template}`, parameters);
    expect(result.ok ? result.text : result.reason).toMatch(reason);
    expect(result.ok).toBe(false);
  });

  test.each([
    '{id}://a.example/',
    'https://{id}/',
    'https://{id}@a.example/',
    'https:///{id}/x',
    'https:\\\\{id}\\x',
    '{id}',
  ])('a placeholder before the path is refused in %s', (template) => {
    expect(url(template, { id: 'evil' })).toEqual({
      ok: false,
      reason: 'the URL has a placeholder in its scheme, user name, host or port',
    });
  });

  test('values of a thousand placeholders together have a maximum size', () => {
    const result = url(`${HOST}/${'{a}/'.repeat(1_000)}x`, { a: 'x'.repeat(1_000) });
    expect(result).toMatchObject({ ok: false, reason: expect.stringContaining('is too long') });
  });

  test('no value changes scheme, host or number of path segments', () => {
    let filledIn = 0;
    const nasty = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.stringMatching(/^[./\\?#%@:{}\r\n2eEfF]{0,6}$/),
      fc.jsonValue() as fc.Arbitrary<Json>,
    );
    fc.assert(
      fc.property(nasty, nasty, nasty, (a, b, c) => {
        const result = url(`${HOST}/one/{a}/x{b}/.{b}?q={c}&r=1{c}`, { a, b, c });
        if (!result.ok) return;
        filledIn += 1;
        const parsed = new URL(result.text);
        expect(parsed.origin).toBe(HOST);
        expect(parsed.hash).toBe('');
        const segments = parsed.pathname.split('/');
        expect(segments).toHaveLength(5);
        const text = (value: Json): string =>
          typeof value === 'string' ? value.toWellFormed() : JSON.stringify(value);
        expect(decodeURIComponent(segments[2] ?? '')).toBe(text(a));
        expect([...parsed.searchParams.keys()].filter((key) => key !== 'q')).toEqual(['r']);
      }),
    );
    expect(filledIn).toBeGreaterThan(20);
  });
});

test('[M3] a used parameter is not sent again', () => {
  const template = new RequestTemplate({ id: 1, q: 'x', h: 'y', other: [1] });
  template.url(`${HOST}/{id}?q={q}`);
  template.header('x-h', '{h}');
  expect(template.rest).toEqual([['other', [1]]]);
});

describe('[M3] a header with placeholders', () => {
  const header = (written: string, parameters: JsonObject) => new RequestTemplate(parameters).header('x-id', written);

  test.each<[string, JsonObject, string | null]>([
    ['{id}', { id: 'T-1' }, 'T-1'],
    ['Bearer {{x} {id}', { id: 7 }, 'Bearer {x} 7'],
    ['{id}', {}, null],
    ['a{id}', { id: null }, null],
    ['{id}', { id: '' }, ''],
  ])('%s with %j', (written, parameters, text) => {
    expect(header(written, parameters)).toEqual({ ok: true, text });
  });

  test.each(['a\r\nx-evil: 1', 'a\nb', '\u0000', '\u{1F600}', 'a\u2028'])('the value %j is refused', (id) => {
    expect(header('v {id}', { id })).toMatchObject({
      ok: false,
      reason: expect.stringContaining('cannot be sent in the header "x-id"'),
    });
  });
});

test('[M5] a value that is inserted before the call has no placeholders', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('{', '}', '$', 'a', '{a}') }), (value) => {
      expect(new RequestTemplate({ a: 'FILLED' }).header('x', `${escapeBraces(value)}-{a}`)).toEqual({
        ok: true,
        text: `${value}-FILLED`,
      });
    }),
  );
});
