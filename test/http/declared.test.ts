/** Nothing is read or sent that the OpenAPI document and docs/http.md do not declare (H4). */
import { globSync, readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { apiDocument, httpReference, withHttpReference } from '../../scripts/http-reference.ts';
import * as declarations from '../../src/http/headers.ts';
import { accepts, onlyDeclared, operation, readHeader } from '../../src/http/openapi/describe.ts';
import { problemResponse } from '../../src/http/problem.ts';
import { runResult } from '../../src/http/responses/runs.ts';
import { checkedFetch, checkedKit } from '../support/response-check.ts';
import { runText, sessionKit } from '../support/session-kit.ts';
import { edgeApp } from './edge-app.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const sources = ['src/http/**/*.ts', 'src/durable/**/*.ts']
  .flatMap((pattern) => globSync(pattern, { cwd: root }))
  // Without comments.
  .map((file) => ({ file, text: read(file).replaceAll(/^\s*(?:\/?\*|\/\/).*$/gm, '') }));
/** All matches of the first group, as `file: match`. */
const found = (pattern: RegExp): string[] =>
  sources.flatMap(({ file, text }) => [...text.matchAll(pattern)].map(([, match = '']) => `${file}: ${match}`));

const document = await apiDocument();
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, ...operation })),
);

describe('[H4] reading a request', () => {
  /** Headers of HTTP itself, which the description of a route does not repeat; docs/http.md explains them. */
  const COMMON = [
    "'authorization'",
    "'content-type'",
    "'content-length'",
    "'origin'",
    "'host'",
    "'cf-connecting-ip'",
    "'access-control-request-method'",
    "'access-control-request-headers'",
    // Set by the Worker for the session's object.
    'PRINCIPAL_HEADER',
    'EXPIRY_HEADER',
    'SCOPES_HEADER',
    'USER_HEADER',
    'AGENTS_HEADER',
    'INCARNATION_HEADER',
    // of every request that starts work; an invalid one is ignored, as its specification says
    'TRACEPARENT',
    // of every request with an API key; an invalid one is ignored (docs/manifests.md)
    'REVISION_HEADER',
  ];

  test('headers are read with readHeader and accepts only, which know the declarations', () => {
    const reads = found(/(?:\.header|\bheaders\.get)\(([^)]*)\)/g);
    expect(reads.length).toBeGreaterThan(10);
    const others = reads.filter((one) => !COMMON.some((name) => one.endsWith(`: ${name}`)));
    expect(others).toEqual([
      // What a proxy says about its client, before the route is known.
      'src/http/auth.ts: header',
      'src/http/openapi/describe.ts: header.name',
      "src/http/openapi/describe.ts: 'accept'",
    ]);
  });

  test('a route that reads a header or chooses a type without a declaration fails', async () => {
    const app = new Hono();
    app.onError((fault) => new Response(fault.message, { status: 500 }));
    operation(app, 'GET /agents', {}, (c) => c.text(readHeader(c, declarations.range) ?? 'none'));
    operation(app, 'GET /executors', {}, (c) => c.text(String(accepts(c, 'text/plain'))));
    operation(app, 'GET /workflows', { headers: [declarations.range], text: 'text/plain' }, (c) =>
      c.text(`${readHeader(c, declarations.range)} ${accepts(c, 'text/plain')}`),
    );
    const ask = async (path: string): Promise<string> =>
      await (await app.request(path, { headers: { range: 'bytes=0-1', accept: 'text/plain' } })).text();
    expect(await ask('/agents')).toBe('GET /agents does not declare Range');
    expect(await ask('/executors')).toBe('/executors does not declare text/plain');
    expect(await ask('/workflows')).toBe('bytes=0-1 true');
  });

  test.each([
    [declarations.idempotencyKey, ['', 'x'.repeat(257)], 'k'],
    [declarations.lastEventId, ['x', '1e3', '-1', '1'.repeat(16)], '12'],
  ] as const)('an invalid $name is refused with what is allowed', async (header, wrong, right) => {
    const app = new Hono();
    app.onError((fault) => problemResponse(fault));
    app.use(onlyDeclared);
    operation(app, 'GET /agents', { headers: [header] }, (c) => c.text(readHeader(c, header) ?? 'none'));
    for (const value of wrong) {
      const response = await app.request('/agents', { headers: { [header.name]: value } });
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { code: 'invalid_request', detail: `"${header.name}" must be ${header.expected}` },
      ]);
    }
    expect(await (await app.request('/agents', { headers: { [header.name]: right } })).text()).toBe(right);
    expect(await (await app.request('/agents')).text()).toBe('none');
  });
});

describe('[H4] sending a response', () => {
  test('runs, streams, artifacts and problems have the declared headers and no other', async () => {
    const kit = await sessionKit();
    const fetch = checkedKit(kit);
    const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
      const response = await fetch(new Request(`http://session${path}`, init));
      await response.body?.cancel();
      return response;
    };
    const message = (stream: boolean): RequestInit => ({
      method: 'POST',
      body: JSON.stringify({ content: 'x', stream }),
    });
    expect((await ask('/message', message(false))).headers.has('x-run-id')).toBe(true);
    expect((await ask('/message', message(true))).headers.has('x-accel-buffering')).toBe(true);
    const text = 'a'.repeat(40_000);
    await runText(
      kit,
      `<action type="tool" mode="async" id="a">${JSON.stringify({ name: 'echo', parameters: { text } })}</action>`,
    );
    const listed = await fetch(new Request('http://session/artifacts'));
    const { artifacts } = (await listed.json()) as { artifacts: { id: string }[] };
    const artifact = `/artifacts/${artifacts[0]?.id ?? ''}`;
    expect([(await ask(artifact)).status, (await ask(artifact, { headers: { range: 'bytes=0-1' } })).status]).toEqual([
      200, 206,
    ]);
    for (const path of ['/events', '/export', '/transcript', '/runs/x']) await ask(path);
    const keyed = edgeApp({
      auth: { keys: [{ name: 'a', role: 'run', key: 'k', namespace: 'a', owner: 'a' }], allowedOrigins: [] },
    });
    const refused = await checkedFetch(keyed)(new Request('http://localhost/executions'));
    expect([refused.status, refused.headers.has('www-authenticate')]).toEqual([401, true]);
  });
});

describe('[H4] the document', () => {
  interface Schema {
    readonly $ref?: string;
    readonly description?: string;
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly items?: Schema;
    readonly additionalProperties?: Schema | boolean;
    readonly anyOf?: readonly Schema[];
    readonly oneOf?: readonly Schema[];
  }
  const undescribed = (schema: Schema, path: string): string[] => [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, member]) => [
      ...(member.description === undefined && member.$ref === undefined ? [`${path}.${name}`] : []),
      ...undescribed(member, `${path}.${name}`),
    ]),
    ...(schema.items === undefined ? [] : undescribed(schema.items, `${path}[]`)),
    ...(typeof schema.additionalProperties === 'object' ? undescribed(schema.additionalProperties, `${path}.*`) : []),
    ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => undescribed(one, path)),
  ];

  test('describes every member of request bodies, responses and documents', () => {
    const components = Object.entries(document.components.schemas as Readonly<Record<string, Schema>>);
    // docs/journal.md lists the events.
    const documents = components.filter(([name]) => !name.endsWith('Event'));
    expect(documents.map(([name]) => name)).toEqual(expect.arrayContaining(['RunResult', 'Session', 'OpenApproval']));
    expect(documents.flatMap(([name, schema]) => undescribed(schema, name))).toEqual([]);
    const bodies = operations.flatMap(({ name, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)].flatMap((part) =>
        Object.values(part?.content ?? {}).map(({ schema }) => [name, schema as Schema] as const),
      ),
    );
    expect(bodies.length).toBeGreaterThan(50);
    expect(bodies.flatMap(([name, schema]) => undescribed(schema, name))).toEqual([]);
    // The check works.
    expect(undescribed({ properties: { a: { properties: { b: {} }, description: 'x' } } }, '')).toEqual(['.a.b']);
  });

  test('describes every parameter and header', () => {
    const all = operations.flatMap(({ parameters }) => parameters.filter((one) => one.in !== 'path'));
    expect(all.length).toBeGreaterThan(50);
    expect(all.filter(({ description }) => !/\S/.test(description ?? '')).map(({ name }) => name)).toEqual([]);
  });
});

describe('[H4] docs/http.md', () => {
  const page = read('docs/http.md');

  test('has every route of the document (npm run docs updates it)', async () => {
    expect(page).toBe(await withHttpReference(page));
  });

  test('names each parameter, header and body member in the section of its route', () => {
    for (const { name, parameters, requestBody, responses } of operations) {
      const start = page.indexOf(`### \`${name}\`\n`);
      expect(start, name).toBeGreaterThan(0);
      const section = page.slice(start, page.indexOf('\n##', start + 3));
      const body = requestBody?.content['application/json']?.schema.properties ?? {};
      const sent = Object.entries(responses).flatMap(([code, { headers }]) =>
        code === 'default' ? [] : Object.keys(headers ?? {}),
      );
      const names = [
        ...parameters.filter((one) => one.in !== 'path').map((one) => one.name),
        ...Object.keys(body),
        ...sent,
      ];
      for (const one of names) expect(section, `${name}: ${one}`).toContain(`\`${one}\``);
    }
    for (const { name } of declarations.problemHeaders) expect(page).toContain(`\`${name}\``);
    expect(page).toMatch(/`if_busy`[^]*`Idempotency-Key`[^]*`llm_tokens`/);
  });

  test('changes with the document', () => {
    expect(httpReference({ ...document, paths: {} })).not.toContain('### `GET /health`');
  });
});

test('[H7] docs/runs.md names every member of the document of a run', () => {
  const page = read('docs/runs.md');
  const { shape } = runResult as unknown as {
    shape: Record<string, { element?: { shape?: object } }>;
  };
  const names = [...Object.keys(shape), ...Object.keys(shape['actions']?.element?.shape ?? {})];
  expect(names).toContain('queued_at');
  for (const name of names) expect(page).toContain(`\`${name}\``);
});

test('[H4] docs/http.md begins with a table that names every group of routes', () => {
  const page = read('docs/http.md');
  const section = page.slice(page.indexOf('\n## In short'), page.indexOf('\n## Requests'));
  // `…` stands for the path before it in the same row.
  const words = section.match(/[a-z_]+\d*(?:\.json)?/g) ?? [];
  for (const path of Object.keys(document.paths)) {
    for (const part of path.split('/').filter((one) => one !== '' && !one.startsWith('{')))
      expect(words).toContain(part);
  }
});
