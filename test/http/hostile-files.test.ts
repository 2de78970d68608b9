/** Hostile use of the routes for files: paths, names, contents, bodies and credentials (C7). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { settle } from '../support/session-kit.ts';
import { filesKit, refusalOf } from './workspace-kit.ts';

const METHODS = ['GET', 'PUT', 'DELETE'] as const;
const bodyOf = (method: string): RequestInit => (method === 'PUT' ? { method, body: 'x' } : { method });

describe('[C7] paths that cannot name a file are refused with the reason, and lead to no other route', () => {
  const encodedName = encodeURIComponent('é'.repeat(limits.workspaceNameBytes / 2 + 1));
  test.each([
    ['/a%2F..%2F..%2Fb', 'must not be encoded'],
    ['//etc/passwd', 'it is absolute'],
    ['/a//b', 'empty segment'],
    ['/a%5Cb', 'a backslash'],
    ['/a%0Ab', 'a control character'],
    ['/%FF', 'not valid UTF-8'],
    ['/%', 'not valid UTF-8'],
    [`/${'x'.repeat(limits.workspaceNameBytes + 1)}`, 'a name longer than 255 bytes'],
    [`/${encodedName}`, 'a name longer than 255 bytes'],
    [`/${'abcdefg/'.repeat(64)}x`, 'longer than 512 bytes'],
    [`/${'a/'.repeat(limits.workspacePathDepth)}a`, 'more than 32 levels'],
  ])('%s', async (path, reason) => {
    const { call, kit } = await filesKit();
    for (const method of METHODS) {
      const response = await call(path, bodyOf(method));
      const problem = (await response.json()) as { code: string; detail: string };
      expect([method, response.status, problem.code]).toEqual([method, 400, 'invalid_request']);
      expect(problem.detail).toContain(reason);
    }
    expect(kit.session.workspace.list()).toEqual([]);
  });

  test('a path is decoded once: percent signs in a name stay', async () => {
    const { call, put, kit } = await filesKit();
    for (const name of ['%2e%2e', '%2F', 'a%00b', '100%25']) {
      expect((await put(`/${encodeURIComponent(name)}`, name)).status).toBe(201);
      expect(await (await call(`/${encodeURIComponent(name)}`)).text()).toBe(name);
    }
    expect(kit.session.workspace.list().map(({ path }) => path)).toContain('%2e%2e');
  });

  test.each(['/%2e%2e/transcript', '/../transcript', '/x/%2E./../transcript', '/..\\transcript'])(
    'dot segments are resolved before the access is decided: a token for files does not reach %s',
    async (path) => {
      const { call, token } = await filesKit();
      const headers = { authorization: `Bearer ${await token(['files'])}` };
      expect(await refusalOf(await call(path, { headers }))).toEqual([403, 'forbidden']);
    },
  );

  test.each(['../a', 'a/../b', '/a', 'a//', '.', 'a/./b', '\uFFFD'])('the folder "%s" of a list', async (prefix) => {
    const { call } = await filesKit();
    for (const more of ['', '&archive=zip']) {
      const response = await call(`?prefix=${encodeURIComponent(prefix)}${more}`);
      expect(await refusalOf(response)).toEqual([400, 'invalid_request']);
    }
  });
});

describe('[C7] names that a header or a page could misread', () => {
  test.each([
    ['<script>alert(1)<', '_script_alert(1)_'],
    ['a"; filename="b.exe', 'a__ filename=_b.exe'],
    ["it's.txt", 'it_s.txt'],
    ['gpj.\u202Eexe', 'gpj._exe'],
    ['🎈 Łódź.csv', '__ __d_.csv'],
    ['%41.txt', '_41.txt'],
    ['a;b', 'a_b'],
  ])('%s is served under its own name, which no header misreads', async (name, plain) => {
    const { call, put } = await filesKit();
    const path = `/in/${encodeURIComponent(name).replaceAll('%2F', '/')}`;
    expect((await put(path, 'x')).status).toBe(201);
    const disposition = (await call(path)).headers.get('content-disposition') ?? '';
    const [, ascii, utf8 = ''] =
      /^attachment; filename="([^"]*)"; filename\*=UTF-8''([\w%.~!-]+)$/.exec(disposition) ?? [];
    expect([ascii, decodeURIComponent(utf8)]).toEqual([plain, name]);
    const { files } = (await (await call('')).json()) as { files: { path: string }[] };
    expect(files.map((file) => file.path)).toEqual([`in/${name}`]);
  });
});

describe('[C7] contents that a browser could run are served as text or bytes', () => {
  const SCRIPT = '<script>alert(1)</script>';
  test.each([
    ['page.html', SCRIPT],
    ['a.svg', `<svg xmlns="http://www.w3.org/2000/svg">${SCRIPT}</svg>`],
    ['a.png', SCRIPT],
    ['noname', SCRIPT],
    ['constructor', SCRIPT],
    ['a.__proto__', SCRIPT],
  ])('%s', async (name, content) => {
    const { call, put } = await filesKit();
    await put(`/${name}`, content, { 'content-type': 'text/html' });
    const { headers } = await call(`/${name}`);
    expect([
      headers.get('content-type'),
      headers.get('x-content-type-options'),
      headers.get('content-security-policy'),
      headers.get('content-disposition')?.startsWith('attachment; '),
    ]).toEqual(['text/plain; charset=utf-8', 'nosniff', "default-src 'none'; sandbox", true]);
  });

  test.each([
    ['a.png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 'image/png'],
    ['a.html', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 'image/png'],
    ['a.svg', [0, 1, 2], 'application/octet-stream'],
    ['a.xlsx', [0x50, 0x4b, 3, 4], 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
    ['a.json', [0x7b, 0x7d], 'application/json'],
  ])('%s of %j is %s', async (name, bytes, type) => {
    const { call, put } = await filesKit();
    await put(`/${name}`, Uint8Array.from(bytes));
    expect((await call(`/${name}`)).headers.get('content-type')).toBe(type);
  });
});

describe('[C7] bodies', () => {
  test('a file of 16 MiB is accepted; with one byte more, or 17 MiB of unknown length, it is 413', async () => {
    const { call, put, kit } = await filesKit();
    const most = new Uint8Array(limits.workspaceFileBytes);
    expect((await put('/most', most)).status).toBe(201);
    const more = new Uint8Array(limits.workspaceFileBytes + 1);
    expect(await refusalOf(await put('/more', more))).toEqual([413, 'body_too_large']);
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 1;
        if (sent > 17) controller.close();
        else controller.enqueue(new Uint8Array(1_048_576));
      },
    });
    expect(await refusalOf(await put('/more', endless))).toEqual([413, 'body_too_large']);
    expect(await refusalOf(await call('', { method: 'PUT', body: 'x' }))).toEqual([405, 'method_not_allowed']);
    expect(kit.session.workspace.list().map(({ path }) => path)).toEqual(['most']);
  });

  test('a body that ends early, or stalls until the client has gone, writes nothing and frees its place', async () => {
    const { put, kit } = await filesKit();
    await put('/a', 'before');
    let fail = (): void => undefined;
    const cut = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new Uint8Array(2 * limits.largeBodyBytes));
        fail = () => controller.error(new Error('the client has gone'));
      },
    });
    const stalled = put('/a', cut);
    await settle();
    expect(kit.session.workspace.file('a')?.size).toBe(6);
    fail();
    expect(await refusalOf(await stalled)).toEqual([400, 'invalid_request']);
    expect(kit.session.workspace.file('a')?.size).toBe(6);
    expect((await put('/a', new Uint8Array(2 * limits.largeBodyBytes))).status).toBe(200);
  });
});
