import { describe, expect, test } from 'vitest';
import { problemsOf, relic, tool } from '../../support/manifests.ts';

const problemsIn = (text: string): string[] => problemsOf({ 't.yaml': text });
const http = (url: string, parameters = '{id: string, page: int?}', headers = '{}'): string =>
  tool(
    't',
    `implementation:\n  type: http\n  url: ${JSON.stringify(url)}\n  headers: ${headers}\nparameters: ${parameters}`,
  );

describe('[M3] placeholders of an http tool at upload', () => {
  test.each([
    ['https://a.example/t/{id}?page={page}'],
    ['https://a.example/t/{{idd}'],
    ['https://a.example/t?q={"a":1}'],
    ['${BASE}/t/{id}'],
    ['${BASE:-https://a.example}/t/{id}'],
    ['${SCHEME}://a.example/t/{id}'],
    ['https://a.example/${USER_ID}/{id}'],
  ])('%s loads', (url) => {
    expect(problemsIn(http(url))).toEqual([]);
  });

  test.each<readonly [string, string]>([
    ['https://a.example/t/{idd}', 'the placeholder {idd} names no parameter (parameters: id, page). Did you mean id?'],
    [
      'https://a.example/t/{customer}',
      'the placeholder {customer} names no parameter (parameters: id, page); a literal "{" is written "{{"',
    ],
    [
      'https://a.example/t/{page}',
      'the parameter "page" in the path is optional and has no default; make it required, or',
    ],
    ['https://a.example/t#{id}', 'the placeholder {id} is after "#", which is never sent'],
    ...[
      'https://{id}/t',
      'https://{id}.a.example/t',
      'https://a.example:{id}/t',
      'https://{id}@a.example/t',
      'https:///{id}/t',
      'https://a.example{id}/t',
      '${SCHEME}://{id}/t',
      '${BASE}{id}/t',
    ].map(
      (url) =>
        [url, 'the placeholder {id} is in the scheme, user name, host or port (allowed: in the path and'] as const,
    ),
  ])('%s is refused', (url, message) => {
    expect(problemsIn(http(url))).toEqual([expect.stringContaining(`implementation.url: ${message}`)]);
  });

  test('headers are checked by name', () => {
    expect(problemsIn(http('https://a.example/', '{user: string?}', '{x-user: "{user}"}'))).toEqual([]);
    expect(problemsIn(http('https://a.example/', '{user: string}', '{x-user: "{usr}"}'))).toEqual([
      expect.stringContaining('implementation.headers.x-user: the placeholder {usr} names no parameter'),
    ]);
    expect(problemsIn(http('https://a.example/{id}', '{}'))).toEqual([expect.stringContaining('(parameters: none)')]);
  });

  test.each([
    ['{type: object, properties: {id: {type: integer, default: 1}}}', []],
    ['{type: object, properties: {id: {type: integer}}, required: [id]}', []],
    ['{type: object, allOf: [{properties: {id: {type: integer}}, required: [id]}]}', []],
    ['{type: object, anyOf: [{properties: {id: {type: integer}}, required: [id]}, {properties: {x: {}}}]}', []],
    ['{type: object, $defs: {p: {properties: {id: {}}}}, allOf: [{$ref: "#/$defs/p"}]}', []],
    ['{type: object, properties: {id: {type: integer}}}', ['is optional and has no default']],
    ['{type: object, properties: {x: {type: integer}}}', ['names no parameter (parameters: x)']],
  ])('with the schema %s', (schema, messages) => {
    expect(problemsIn(http('https://a.example/{id}', schema))).toEqual(
      messages.map((message) => expect.stringContaining(message)),
    );
  });
});

test('[R5] placeholders of a relic endpoint are checked in the same way', () => {
  const at = (path: string): string =>
    relic(
      'r',
      `implementation: {type: container, image: x}\nendpoints: {get: {method: GET, path: "${path}", parameters: {key: string, at: string?}}}`,
    );
  expect(problemsIn(at('/e/{key}?at={at}'))).toEqual([]);
  expect(problemsIn(at('/e/{kye}'))).toEqual([
    expect.stringContaining(
      'endpoints.get.path: the placeholder {kye} names no parameter (parameters: key, at). Did you mean key?',
    ),
  ]);
  expect(problemsIn(at('/e/{at}'))).toEqual([expect.stringContaining('the parameter "at" in the path is optional')]);
});

test('[M3] a tool of an MCP server is refused', () => {
  expect(problemsIn(tool('t', 'implementation: {type: mcp, url: "https://mcp.example.com/"}'))).toEqual([
    't.yaml:5:24: implementation.type: "mcp" is not allowed (allowed: builtin, script, http, container, code, client)',
  ]);
});
