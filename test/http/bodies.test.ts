import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { limits } from '../../src/domain/limits.ts';
import { parseBody } from '../../src/http/body.ts';
import { readForm } from '../../src/http/multipart.ts';
import { headBody, tokenBody, userTokenBody, validate } from '../../src/http/schemas.ts';

const faultOf = (work: () => unknown): string => {
  try {
    work();
  } catch (fault) {
    return (fault as Error).message;
  }
  return 'none';
};

describe('[H8] the size of a JSON body is checked before it is parsed', () => {
  test.each([
    ['deep', '['.repeat(100_000), `nested deeper than ${limits.requestDepth} levels`],
    ['long', `[${'1,'.repeat(limits.requestValues)}1]`, `more than ${limits.requestValues} values`],
    ['wide', `{${'"a":1,'.repeat(limits.requestMembers)}"a":1}`, `more than ${limits.requestMembers} members`],
    [
      'wide nested',
      `{"files":{${Array.from({ length: 6_000 }, (_, at) => `"${at}":""`).join(',')}}}`,
      `more than ${limits.requestMembers} members`,
    ],
  ])('%s', (_what, text, message) => {
    expect(faultOf(() => parseBody(text))).toContain(message);
  });

  test('commas and brackets in strings are not counted', () => {
    const text = `${'{[,'.repeat(300_000)}\\"`;
    expect(parseBody(`{"a": "${text}"}`)).toEqual({ a: `${'{[,'.repeat(300_000)}"` });
  });
});

describe('[H4] a body that does not fit is refused with the member, what is wrong, and what is allowed', () => {
  const SCOPES = '"read", "message", "approve", "tools", "files", "branch", "view"';
  test.each([
    ['a missing member', headBody, {}, '"run_id" is missing'],
    ['a mistyped member, before the one that is missing', headBody, { runid: 'x' }, 'did you mean "run_id"?'],
    ['another type', headBody, { run_id: 7 }, '"run_id": Invalid input: expected string, received number'],
    ['an unknown value', tokenBody, { scopes: ['x'] }, `"scopes.0" must be one of ${SCOPES} (not "x")`],
    ['a mistyped value', tokenBody, { scopes: ['raed'] }, `(not "raed"; did you mean "read"?)`],
    ['a value of another type', tokenBody, { scopes: [null] }, `"scopes.0" must be one of ${SCOPES} (not null)`],
    ['a long value', tokenBody, { scopes: ['x'.repeat(1_000)] }, `(not "${'x'.repeat(limits.excerptChars - 1)}…)`],
    ['a missing member with a rule', userTokenBody, {}, '"user_id" is missing'],
    ['no object', headBody, undefined, 'The body: Invalid input: expected object, received undefined'],
  ])('%s', (_what, schema, body, message) => {
    expect(faultOf(() => validate(schema, body))).toContain(message);
  });

  test.each<[string, z.ZodType, unknown]>([
    ['unknown members', z.strictObject({}), Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`x${at}`, at]))],
    ['values of another type', z.array(z.string()), Array.from({ length: 30 }, (_, at) => at)],
  ])('of many %s, 20 are described', (_what, schema, body) => {
    const issues = Array.from({ length: 20 }, () => expect.anything());
    expect(() => validate(schema, body)).toThrow(expect.objectContaining({ details: { issues } }));
  });

  test('each issue has its path and its message', () => {
    const issues = [{ path: 'run_id', message: 'is missing' }];
    expect(() => validate(headBody, {})).toThrow(expect.objectContaining({ details: { issues } }));
  });
});

describe('[M4] the number of form parts is checked before the form is parsed', () => {
  const form = async (count: number): Promise<Request> => {
    const data = new FormData();
    for (let at = 0; at < count; at += 1) data.append(`f${at}.yaml`, 'x');
    const made = new Response(data);
    const body = await made.arrayBuffer();
    const headers = {
      'content-type': made.headers.get('content-type') ?? '',
      'content-length': String(body.byteLength),
    };
    return new Request('http://x/manifests', { method: 'POST', headers, body });
  };

  test('as many parts as the maximum number of files are accepted', async () => {
    const read = await readForm(await form(limits.catalogFiles));
    expect([...(read as unknown as Iterable<[string, string]>)]).toHaveLength(limits.catalogFiles);
  });

  test('one more part is refused', async () => {
    await expect(readForm(await form(limits.catalogFiles + 1))).rejects.toMatchObject({ code: 'invalid_request' });
  });

  test('a body that is not a form is refused', async () => {
    const headers = { 'content-type': 'multipart/form-data; boundary=x', 'content-length': '3' };
    const request = new Request('http://x/manifests', { method: 'POST', headers, body: 'abc' });
    await expect(readForm(request)).rejects.toMatchObject({ code: 'invalid_request' });
  });
});
