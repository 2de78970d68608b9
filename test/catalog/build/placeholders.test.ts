import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';

const head = (kind: string, name: string): string =>
  `kind: ${kind}\nversion: "1.0"\nname: ${name}\nsummary: Something\n`;
const problemsOf = (text: string): string[] => loadManifests([{ path: 't.yaml', text }]).problems.map(formatProblem);

const tool = (url: string, parameters = '{id: string, page: int?}', headers = '{}'): string =>
  `${head('Tool', 't')}implementation:\n  type: http\n  url: ${JSON.stringify(url)}\n  headers: ${headers}\nparameters: ${parameters}\n`;

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
    expect(problemsOf(tool(url))).toEqual([]);
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
    expect(problemsOf(tool(url))).toEqual([expect.stringContaining(`implementation.url: ${message}`)]);
  });

  test('headers are checked by name', () => {
    expect(problemsOf(tool('https://a.example/', '{user: string?}', '{x-user: "{user}"}'))).toEqual([]);
    expect(problemsOf(tool('https://a.example/', '{user: string}', '{x-user: "{usr}"}'))).toEqual([
      expect.stringContaining('implementation.headers.x-user: the placeholder {usr} names no parameter'),
    ]);
    expect(problemsOf(tool('https://a.example/{id}', '{}'))).toEqual([expect.stringContaining('(parameters: none)')]);
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
    expect(problemsOf(tool('https://a.example/{id}', schema))).toEqual(
      messages.map((message) => expect.stringContaining(message)),
    );
  });
});

test('[R5] placeholders of a relic endpoint are checked in the same way', () => {
  const relic = (path: string): string =>
    `${head('Relic', 'r')}implementation: {type: container, image: x}\nendpoints: {get: {method: GET, path: "${path}", parameters: {key: string, at: string?}}}\n`;
  expect(problemsOf(relic('/e/{key}?at={at}'))).toEqual([]);
  expect(problemsOf(relic('/e/{kye}'))).toEqual([
    expect.stringContaining(
      'endpoints.get.path: the placeholder {kye} names no parameter (parameters: key, at). Did you mean key?',
    ),
  ]);
  expect(problemsOf(relic('/e/{at}'))).toEqual([expect.stringContaining('the parameter "at" in the path is optional')]);
});

test('[M3] a tool of an MCP server is refused', () => {
  const text = `${head('Tool', 't')}implementation: {type: mcp, url: "https://mcp.example.com/"}\n`;
  expect(problemsOf(text)).toEqual([
    't.yaml:5:24: implementation.type: "mcp" is not allowed (allowed: builtin, script, http, container, code, client)',
  ]);
});
