import { expect, test } from 'vitest';
import { manifestRoutes } from '../../src/http/routes/manifests.ts';
import type { CatalogRequest } from '../../src/http/routes/manifests.ts';
import { problemResponse } from '../../src/http/problem.ts';
import { Hono } from 'hono';
import type { Principal } from '../../src/http/auth.ts';

const asked: { owner: string | null; request: CatalogRequest }[] = [];
const REPORT = { manifests: [{ kind: 'tool', name: 't', revision: 1 }], problems: [], warnings: [] };

function appFor(principal: Principal): Hono<{ Variables: { principal: Principal } }> {
  asked.length = 0;
  const app = new Hono<{ Variables: { principal: Principal } }>();
  app.onError((fault) => problemResponse(fault));
  app.use(async (c, next) => {
    c.set('principal', principal);
    await next();
  });
  const ask = async (owner: string | null, request: CatalogRequest): Promise<unknown> => {
    asked.push({ owner, request });
    return request.type === 'list' ? [] : REPORT;
  };
  app.route('/', manifestRoutes({ ask }));
  return app;
}

const ann = { name: 'ann', role: 'admin' } as const;
const bob = { name: 'bob', role: 'run' } as const;

test.each([
  ['PUT', '/manifests/tool/t'],
  ['DELETE', '/manifests/tool/t'],
  ['POST', '/manifests'],
  ['PUT', '/manifests'],
])('[H5] %s %s needs the role admin', async (method, path) => {
  const body = method === 'DELETE' ? null : 'kind: Tool\nname: t\n';
  const refused = await appFor(bob).request(path, { method, body });
  expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'forbidden' }]);
  expect(asked).toEqual([]);
  const taken = await appFor(ann).request(path, { method, body });
  expect(taken.status).toBeLessThan(300);
  expect(asked).toMatchObject([{ owner: 'ann' }]);
});

test('[M4] everyone reads and validates, in the namespace of their own key', async () => {
  await appFor(bob).request('/manifests');
  expect(asked).toEqual([{ owner: 'bob', request: { type: 'list', kind: null } }]);
  await appFor(bob).request('/manifests/validate', { method: 'POST', body: 'kind: Tool\nname: t\n' });
  expect(asked).toMatchObject([{ owner: 'bob', request: { type: 'validate', files: [{ path: 'tools/t.yaml' }] } }]);
});

test.each([
  ['a path that leads out', { files: { '../../etc/x.yaml': 'x' } }, 'invalid_request'],
  ['a path of dots inside', { files: { 'a/../b.yaml': 'x' } }, 'invalid_request'],
  ['a control character', { files: { 'a\u0000.yaml': 'x' } }, 'invalid_request'],
  ['no files', {}, 'invalid_request'],
])('[M4] %s is refused', async (_what, body, code) => {
  const response = await appFor(ann).request('/manifests', {
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
  // as `curl -d` calls it
  ['application/x-www-form-urlencoded'],
  [null],
])('[M4] [H8] a folder as JSON is a folder, also as %s', async (type) => {
  const headers: Record<string, string> = type === null ? {} : { 'content-type': type };
  const body = new TextEncoder().encode(JSON.stringify(FOLDER, null, 1));
  const taken = await appFor(ann).request('/manifests', { method: 'PUT', headers, body });
  expect(taken.status).toBe(200);
  const files = Object.entries(FOLDER.files).map(([path, text]) => ({ path, text }));
  expect(asked).toEqual([{ owner: 'ann', request: { type: 'replace', files } }]);
});

test('[M4] what is no text in a folder is left out, and said', async () => {
  const form = new FormData();
  form.append('tools/t.yaml', new File(['kind: Tool'], 't.yaml'));
  form.append('logo.png', new File([new Uint8Array([0x89, 0x50, 0xff])], 'logo.png'));
  const request = new Request('http://x/', { method: 'POST', body: form });
  const body = await request.arrayBuffer();
  const headers = { 'content-type': request.headers.get('content-type') ?? '', 'content-length': `${body.byteLength}` };
  const taken = await appFor(ann).request('/manifests', { method: 'POST', headers, body });
  expect(await taken.json()).toMatchObject({
    warnings: [{ file: 'logo.png', message: 'is not text in UTF-8, so it is left out' }],
  });
  expect(asked).toMatchObject([{ request: { files: [{ path: 'tools/t.yaml', text: 'kind: Tool' }] } }]);
});

test('[M4] one manifest has its own limit, whatever a folder may have', async () => {
  const body = `kind: Tool\nname: t\ndescription: ${'x'.repeat(1_048_576)}\n`;
  const refused = await appFor(ann).request('/manifests', { method: 'POST', body });
  expect([refused.status, await refused.json()]).toMatchObject([413, { code: 'body_too_large' }]);
  expect(asked).toEqual([]);
});

test('[M4] a form without its length, a form that is none, and a body past the limit are refused', async () => {
  const form = { 'content-type': 'multipart/form-data; boundary=x' };
  const open = await appFor(ann).request('/manifests', { method: 'POST', headers: form, body: 'x' });
  expect(await open.json()).toMatchObject({ code: 'body_too_large' });
  const headers = { ...form, 'content-length': '1' };
  const none = await appFor(ann).request('/manifests', { method: 'POST', headers, body: 'x' });
  expect(await none.json()).toMatchObject({ code: 'invalid_request' });
  const large = await appFor(ann).request('/manifests/tool/t', { method: 'PUT', body: 'x'.repeat(1_048_577) });
  expect([large.status, await large.json()]).toMatchObject([413, { code: 'body_too_large' }]);
});
