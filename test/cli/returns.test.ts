/** `cortex returns`: a tool's manifest gets a schema of its recorded results (L4). */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { schemaOfValues } from '../../cli/project/schema-of-values.ts';
import type { Json } from '../../src/domain/json.ts';
import { cortexHere } from '../support/cortex.ts';
import { folderOfFile } from './scene.ts';

const root = folderOfFile();
const MANIFEST = `# Tickets of the shop.
kind: Tool
version: "1"
name: search
summary: Searches. # shown to the model
implementation: {type: http, url: "https://example.com"}
parameters: {text: string}
`;
const OTHER = 'kind: Tool\nversion: "1"\nname: other\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\n';

let calls = 0;
/** A call and its end. */
function ended(name: string, output: Json, type = 'tool'): string {
  const head = { run_id: 'r', iteration: 1, action_id: `a${(calls += 1)}`, action_name: name };
  return [
    { type: 'action_queued', ...head, data: { type } },
    { type: 'action_completed', ...head, data: { output, ms: 1, attempt: 1 } },
  ]
    .map((event) => JSON.stringify(event))
    .join('\n');
}

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
const manifest = (): string => readFileSync(join(root, 'manifests/tools.yaml'), 'utf8');
const returns = async (...args: string[]) => await cortexHere(['returns', ...args], { cwd: root, env: { PORT: '1' } });

beforeAll(() => {
  put('wrangler.toml', 'name = "p"\n');
  put('src/worker.ts', '');
  put(
    'one.jsonl',
    [
      '{"session_id":"ses_1"}',
      ended('search', { tickets: [{ id: 1, title: 'a' }], total: 1 }),
      ended('other', 'secret'),
      ended('search', 'of an agent', 'agent'),
      ended('search', { tickets: [], total: 1.5, next: null }),
    ].join('\n'),
  );
  put('none.jsonl', ended('other', 1));
});
beforeEach(() => put('manifests/tools.yaml', `${MANIFEST}---\n${OTHER}`));

describe('[L4] cortex returns', () => {
  test('writes the schema into the document of the tool; its comments and the other documents stay', async () => {
    expect(await returns('search', 'one.jsonl')).toEqual({
      out: 'manifests/tools.yaml: what "search" returns, from 2 results\n',
      err: '',
      code: 0,
    });
    const [first = '', second = ''] = manifest().split('---\n');
    expect(
      first.startsWith(
        MANIFEST.replace(
          '{type: http, url: "https://example.com"}',
          '{ type: http, url: "https://example.com" }',
        ).replace('{text: string}', '{ text: string }'),
      ),
    ).toBe(true);
    expect(first).toContain('returns:\n  type: object\n  properties:\n    tickets:\n      type: array\n');
    expect(second).toContain('name: other');
    expect(second).not.toContain('returns');
    const checked = await cortexHere(['validate', '--json'], { cwd: root, env: {} });
    expect(JSON.parse(checked.out)).toMatchObject({ valid: true, targets: [{ warnings: [{ field: 'returns' }] }] });
    expect(checked.out).toContain('the tool \\"other\\" does not say what it returns');
  });

  test('replaces what a manifest says only if it is asked to, and prints without writing', async () => {
    await returns('search', 'one.jsonl');
    const before = manifest();
    const refused = await returns('search', 'none.jsonl');
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('--replace replaces it')]);
    expect((await returns('search', 'one.jsonl', '--print')).out).toBe(
      `${JSON.stringify(
        schemaOfValues([
          { tickets: [{ id: 1, title: 'a' }], total: 1 },
          { tickets: [], total: 1.5, next: null },
        ]),
      )}\n`,
    );
    expect(manifest()).toBe(before);
    put('two.jsonl', ended('search', 'text'));
    expect((await returns('search', 'two.jsonl', '--replace')).code).toBe(0);
    expect(manifest()).toContain('returns:\n  type: string\n');
  });

  test('reads exports of the folder in which it is called', async () => {
    mkdirSync(join(root, 'backup'), { recursive: true });
    put('backup/here.jsonl', ended('search', true));
    const ran = await cortexHere(['returns', 'search', 'here.jsonl'], {
      cwd: join(root, 'backup'),
      env: { PORT: '1' },
    });
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(manifest()).toContain('returns:\n  type: boolean\n');
  });

  test('says what is missing: a result, a manifest, a session', async () => {
    expect(await returns('search', 'none.jsonl')).toMatchObject({
      code: 1,
      err: expect.stringContaining('no result of "search"'),
    });
    expect(await returns('nothing', 'one.jsonl')).toMatchObject({
      code: 2,
      err: expect.stringContaining('defines the tool "nothing"'),
    });
    expect(await returns('search', 'nowhere')).toMatchObject({
      code: 2,
      err: expect.stringContaining('neither a file nor the id'),
    });
    expect(manifest()).toBe(`${MANIFEST}---\n${OTHER}`);
  });
});

describe('[L4] a schema of values', () => {
  test.each<[string, Json[], unknown]>([
    ['whole and other numbers are numbers', [1, 1.5], { type: 'number' }],
    ['a member that is missing once is optional', [{ a: 1, b: 'x' }, { a: 2 }], { required: ['a'] }],
    ['several types', ['x', null], { type: ['null', 'string'] }],
    [
      'an object with members that are data is a map',
      [{ 'ann@example.com': { age: 1 } }],
      { additionalProperties: { type: 'object' } },
    ],
    [
      'so is one with many members',
      [Object.fromEntries(Array.from({ length: 31 }, (_, at) => [`u${at}`, at]))],
      { additionalProperties: { type: 'integer' } },
    ],
    [
      'so are several records of one form',
      [{ ann: { age: 1 }, bob: { age: 2 }, eve: { age: 3 } }],
      { additionalProperties: { required: ['age'] } },
    ],
    ['members of which none is always there are all optional', [{ a: 1 }, { b: 1 }], { required: [] }],
    ['an empty list says nothing of its items', [[]], { type: 'array' }],
  ])('%s', (_what, values, expected) => {
    const schema = schemaOfValues(values);
    expect(schema).toMatchObject(expected as object);
    expect(JSON.stringify(schema)).not.toMatch(/example\.com|"u1"|"bob"/);
  });
});
