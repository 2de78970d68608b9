/** The routes of the catalogue: permissions, and notations of a folder (M4, H5, H8). */
import type { ListedManifest, StoredManifest, ChangeReport } from '../../src/domain/catalog.ts';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { allow } from '../../src/http/access.ts';
import type { Principal } from '../../src/http/auth.ts';
import type { EdgeEnv } from '../../src/http/gateway.ts';
import type { ManifestHost } from '../../src/http/manifest-host.ts';
import { problemResponse } from '../../src/http/problem.ts';
import { manifestRoutes } from '../../src/http/routes/manifests.ts';
import { checkedFetch } from '../support/response-check.ts';

/** The calls that reached the catalogue: `put ann {"kind":"tool","name":"t"} …`. */
const asked: string[] = [];

const TOOL: ListedManifest = {
  kind: 'tool',
  name: 't',
  version: '1.0.0',
  revision: 1,
  summary: 'a tool',
  tags: [],
  common: false,
  updatedAt: 5,
};
const STORED: StoredManifest = {
  ...TOOL,
  definition: { name: 't' },
  source: 'kind: Tool\n',
  file: 'tools/t.yaml',
  versions: [{ revision: 1, version: '1.0.0', createdAt: 5 }],
};
const ISSUE = { file: 'tools/u.yaml', line: 2, column: 3, field: 'name', message: 'is missing' };
const REPORT: ChangeReport = { manifests: [TOOL], problems: [], warnings: [], skipped: [] };

function catalogue(report: ChangeReport): ManifestHost {
  const answers: { [Call in keyof ManifestHost]: Awaited<ReturnType<ManifestHost[Call]>> } = {
    list: [TOOL],
    get: STORED,
    put: report,
    remove: undefined,
    upload: report,
    replace: { ...report, removed: [{ kind: 'tool', name: 'old' }] },
    validate: report,
    exposed: { agents: [], tools: [], workflows: [] },
    graph: {
      graph: { nodes: [{ id: 'tool/t', kind: 'tool', name: 't', version: '1.0.0' }], edges: [] },
      text: 'tool t',
    },
  };
  const call =
    <Call extends keyof ManifestHost>(name: Call) =>
    async (owner: string | null, ...given: readonly unknown[]): Promise<(typeof answers)[Call]> => {
      asked.push([name, owner, ...given.map((one) => JSON.stringify(one))].join(' '));
      return answers[name];
    };
  return {
    list: call('list'),
    get: call('get'),
    put: call('put'),
    remove: call('remove'),
    upload: call('upload'),
    replace: call('replace'),
    validate: call('validate'),
    exposed: call('exposed'),
    graph: call('graph'),
  };
}

/** Sends a request of this caller; the response must match the declaration of the route. */
function caller(principal: Principal, report = REPORT): (path: string, init?: RequestInit) => Promise<Response> {
  asked.length = 0;
  const app = new Hono<EdgeEnv>();
  app.onError((fault) => problemResponse(fault));
  app.use(async (c, next) => {
    c.set('principal', { ...principal, token: null });
    allow(c.get('principal'), c.req, false);
    await next();
  });
  app.route('/', manifestRoutes(catalogue(report)));
  const fetch = checkedFetch(app);
  return async (path, init = {}) => await fetch(new Request(`http://localhost${path}`, init));
}

const ann = { owner: 'ann', role: 'admin' } as const;
const bob = { owner: 'bob', role: 'run' } as const;

test.each([
  ['PUT', '/manifests/tool/t'],
  ['DELETE', '/manifests/tool/t'],
  ['POST', '/manifests'],
  ['PUT', '/manifests'],
])('[H5] %s %s needs the role admin', async (method, path) => {
  const body = method === 'DELETE' ? null : 'kind: Tool\nname: t\n';
  const refused = await caller(bob)(path, { method, body });
  expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'forbidden' }]);
  expect(asked).toEqual([]);
  const taken = await caller(ann)(path, { method, body });
  expect(taken.status).toBeLessThan(300);
  expect(asked).toEqual([expect.stringMatching(/^\w+ ann /)]);
});

test('[M4] every role can read and validate, in the namespace of its own key', async () => {
  await caller(bob)('/manifests');
  expect(asked).toEqual(['list bob null']);
  await caller(bob)('/manifests/validate', { method: 'POST', body: 'kind: Tool\nname: t\n' });
  expect(asked).toEqual(['validate bob [{"path":"tools/t.yaml","text":"kind: Tool\\nname: t\\n","isAlone":true}]']);
});

test.each([
  ['a path outside the folder', { files: { '../../etc/x.yaml': 'x' } }, 'invalid_request'],
  ['a path with dots inside', { files: { 'a/../b.yaml': 'x' } }, 'invalid_request'],
  ['a control character', { files: { 'a\u0000.yaml': 'x' } }, 'invalid_request'],
  ['no files', {}, 'invalid_request'],
])('[M4] %s is refused', async (_what, body, code) => {
  const response = await caller(ann)('/manifests', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect([response.status, await response.json()]).toMatchObject([400, { code }]);
  expect(asked).toEqual([]);
});

const FOLDER = { files: { 'tools/t.yaml': 'kind: Tool', 'tools/t/main.py': 'print(1)' } };

test.each([
  ['application/json'],
  // the default of `curl -d`
  ['application/x-www-form-urlencoded'],
  [null],
])('[M4] [H8] a folder as JSON is accepted, also as %s', async (type) => {
  const headers: Record<string, string> = type === null ? {} : { 'content-type': type };
  const body = new TextEncoder().encode(JSON.stringify(FOLDER, null, 1));
  const taken = await caller(ann)('/manifests', { method: 'PUT', headers, body });
  expect(taken.status).toBe(200);
  const files = Object.entries(FOLDER.files).map(([path, text]) => ({ path, text }));
  expect(asked).toEqual([`replace ann ${JSON.stringify(files)}`]);
});

test.each([
  ['---\nname: forms\ndescription: x\n---\nkind: none\n', 'skills/forms/SKILL.md'],
  ['\uFEFF---\r\nname: "forms"\r\ndescription: x\r\n---\r\nbody', 'skills/forms/SKILL.md'],
  ['---\ndescription: x\n---\nbody', 'skills/unnamed/SKILL.md'],
  ['---\nname: ../../x\n---\nbody', 'skills/unnamed/SKILL.md'],
  ['---\nkind: Agent\nname: a\n---\nbody', 'agents/a.yaml'],
  ['---\nname: open', 'manifests/open.yaml'],
])('[C8] the single file %j has the path %s', async (body, path) => {
  await caller(ann)('/manifests', { method: 'POST', body });
  expect(asked).toEqual([expect.stringContaining(`upload ann [{"path":"${path}"`)]);
});

test('[M4] a binary file in a folder is skipped and reported', async () => {
  const form = new FormData();
  form.append('tools/t.yaml', new File(['kind: Tool'], 't.yaml'));
  form.append('logo.png', new File([new Uint8Array([0x89, 0x50, 0xff])], 'logo.png'));
  const request = new Request('http://x/', { method: 'POST', body: form });
  const body = await request.arrayBuffer();
  const headers = { 'content-type': request.headers.get('content-type') ?? '', 'content-length': `${body.byteLength}` };
  const taken = await caller(ann)('/manifests', { method: 'POST', headers, body });
  expect(await taken.json()).toMatchObject({
    warnings: [{ file: 'logo.png', message: 'is not UTF-8 text and was ignored' }],
  });
  expect(asked).toEqual(['upload ann [{"path":"tools/t.yaml","text":"kind: Tool"}]']);
});

test('[M4] a single manifest has its own limit, below the limit of a folder', async () => {
  const body = `kind: Tool\nname: t\ndescription: ${'x'.repeat(1_048_576)}\n`;
  const refused = await caller(ann)('/manifests', { method: 'POST', body });
  expect([refused.status, await refused.json()]).toMatchObject([413, { code: 'body_too_large' }]);
  expect(asked).toEqual([]);
});

test('[M4] a form without its length, an invalid form, and a body past the limit are refused', async () => {
  const form = { 'content-type': 'multipart/form-data; boundary=x' };
  const open = await caller(ann)('/manifests', { method: 'POST', headers: form, body: 'x' });
  expect(await open.json()).toMatchObject({ code: 'body_too_large' });
  const headers = { ...form, 'content-length': '1' };
  const none = await caller(ann)('/manifests', { method: 'POST', headers, body: 'x' });
  expect(await none.json()).toMatchObject({ code: 'invalid_request' });
  const large = await caller(ann)('/manifests/tool/t', { method: 'PUT', body: 'x'.repeat(1_048_577) });
  expect([large.status, await large.json()]).toMatchObject([413, { code: 'body_too_large' }]);
});

test.each([
  ['GET', '/manifests', 200, { manifests: [{ name: 't', revision: 1, updated_at: 5 }] }],
  ['GET', '/manifests/tools', 200, { manifests: [{ kind: 'tool' }] }],
  [
    'GET',
    '/manifests/tool/t',
    200,
    { name: 't', definition: { name: 't' }, versions: [{ revision: 1, created_at: 5 }] },
  ],
  ['GET', '/manifests/graph', 200, { nodes: [{ id: 'tool/t' }], edges: [] }],
  ['POST', '/manifests', 201, { manifests: [{ name: 't' }], problems: [], warnings: [] }],
  ['PUT', '/manifests', 200, { removed: [{ kind: 'tool', name: 'old' }] }],
  ['POST', '/manifests/validate', 200, { valid: true }],
  ['PUT', '/manifests/tool/t', 201, { name: 't', warnings: [] }],
])('[H4] [M4] %s %s answers as declared', async (method, path, status, body) => {
  const response = await caller(ann)(path, { method, body: method === 'GET' ? null : 'kind: Tool\nname: t\n' });
  expect([response.status, await response.json()]).toMatchObject([status, body]);
});

test('[M4] an upload that loads partly answers 207 with the issues; an upload that does not load at all is refused', async () => {
  const post = { method: 'POST', body: 'kind: Tool\nname: t\n' };
  const part = await caller(ann, { ...REPORT, problems: [ISSUE] })('/manifests', post);
  expect([part.status, await part.json()]).toMatchObject([207, { problems: [ISSUE] }]);
  const none = await caller(ann, { ...REPORT, manifests: [], problems: [ISSUE] })('/manifests', post);
  expect([none.status, await none.json()]).toMatchObject([
    400,
    {
      code: 'invalid_manifest',
      detail: expect.stringContaining('tools/u.yaml:2:3: name: is missing'),
      problems: [ISSUE],
    },
  ]);
  const checked = await caller(bob, { ...REPORT, problems: [ISSUE] })('/manifests/validate', post);
  expect(await checked.json()).toMatchObject({ valid: false, problems: [ISSUE] });
});

test('[M4] a manifest and the graph are available as text', async () => {
  const yaml = await caller(bob)('/manifests/tool/t?revision=1', { headers: { accept: 'application/yaml' } });
  expect([yaml.headers.get('content-type'), await yaml.text()]).toEqual([
    'application/yaml; charset=utf-8',
    'kind: Tool\n',
  ]);
  expect(asked).toEqual(['get bob {"kind":"tool","name":"t"} {"revision":1}']);
  const graph = await caller(bob)('/manifests/graph', { headers: { accept: 'text/plain' } });
  expect(await graph.text()).toBe('tool t');
});

test('[M4] a new version of a manifest answers 200', async () => {
  const report = { ...REPORT, manifests: [{ ...TOOL, revision: 2 }] };
  const put = { method: 'PUT', body: 'kind: Tool\nname: t\n' };
  expect((await caller(ann, report)('/manifests/tool/t', put)).status).toBe(200);
});
