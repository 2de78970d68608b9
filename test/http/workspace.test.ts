/** The files of a session for people: list, download, write, delete (C7). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { bodyBytes } from '../support/body-bytes.ts';
import { limits } from '../../src/domain/limits.ts';
import { settle } from '../support/session-kit.ts';
import { filesKit, refusalOf } from './workspace-kit.ts';

const hashOf = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');
const tagOf = (content: string): string => `"${hashOf(content)}"`;
const bytesOf = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, at) => (at * 31) % 251);

interface Listed {
  readonly files: readonly { readonly path: string; readonly size: number; readonly sha256: string }[];
  readonly bytes: number;
  readonly max_bytes: number;
}

describe('[C7] writing and reading', () => {
  test('a new file is 201 with its document, a replaced one 200; the list has them in order', async () => {
    const { call, put, kit } = await filesKit();
    const first = await put('/data/table.csv', 'a,b\n1,2\n');
    expect([first.status, first.headers.get('etag'), await first.json()]).toEqual([
      201,
      tagOf('a,b\n1,2\n'),
      { path: 'data/table.csv', size: 8, modified_at: kit.clock.now(), sha256: hashOf('a,b\n1,2\n') },
    ]);
    kit.clock.advance(5_000);
    await put('/Übersicht 1.txt', 'hello');
    const second = await put('/data/table.csv', 'c');
    expect([second.status, second.headers.get('etag')]).toEqual([200, tagOf('c')]);
    const list = await call('');
    expect(await list.json()).toEqual({
      files: [
        { path: 'data/table.csv', size: 1, modified_at: kit.clock.now(), sha256: hashOf('c') },
        { path: 'Übersicht 1.txt', size: 5, modified_at: kit.clock.now(), sha256: hashOf('hello') },
      ],
      bytes: 6,
      max_bytes: limits.workspaceBytes,
    });
    const inFolder = (await (await call('?prefix=data/')).json()) as Listed;
    expect([inFolder.files.map(({ path }) => path), inFolder.bytes]).toEqual([['data/table.csv'], 6]);
    expect(((await (await call('?prefix=dat')).json()) as Listed).files).toEqual([]);
  });

  test('a body is stored as it is, whatever its type says; an empty one too', async () => {
    const { call, put } = await filesKit();
    const bytes = bytesOf(100_000);
    expect((await put('/a.bin', bytes, { 'content-type': 'application/json' })).status).toBe(201);
    expect((await put('/form', 'x=1', { 'content-type': 'application/x-www-form-urlencoded' })).status).toBe(201);
    expect((await put('/empty', '')).status).toBe(201);
    expect(await bodyBytes(await call('/a.bin'))).toEqual(bytes);
    expect(await (await call('/form')).text()).toBe('x=1');
    expect(await (await call('/empty')).text()).toBe('');
  });

  test('a file can be executable, and stays so when its content is replaced', async () => {
    const { call, put } = await filesKit();
    const isExecutable = async (response: Promise<Response>): Promise<unknown> =>
      ((await (await response).json()) as { executable?: unknown }).executable;
    expect(await isExecutable(put('/run.sh', '#!/bin/sh\n'))).toBeUndefined();
    expect(await isExecutable(put('/run.sh?executable=true', '#!/bin/sh\n'))).toBe(true);
    expect(await isExecutable(put('/run.sh', '#!/bin/sh\ntrue\n'))).toBe(true);
    expect(await isExecutable(put('/run.sh?executable=false', '#!/bin/sh\n'))).toBeUndefined();
    expect(((await (await call('')).json()) as Listed).files).toHaveLength(1);
  });

  test('a download is an attachment with its type, its ETag and no long caching', async () => {
    const { call, put } = await filesKit();
    await put('/data/table.csv', 'a,b\n');
    const response = await call('/data/table.csv');
    expect(Object.fromEntries(response.headers)).toEqual({
      'accept-ranges': 'bytes',
      'cache-control': 'private, no-cache',
      'content-disposition': 'attachment; filename="table.csv"',
      'content-security-policy': "default-src 'none'; sandbox",
      'content-type': 'text/csv; charset=utf-8',
      'cross-origin-resource-policy': 'same-site',
      etag: tagOf('a,b\n'),
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
    });
    const head = await call('/data/table.csv', { method: 'HEAD' });
    expect([head.status, head.headers.get('etag'), await head.text()]).toEqual([200, tagOf('a,b\n'), '']);
  });

  test('a range is a part, unless If-Range names another version', async () => {
    const { call, put } = await filesKit();
    await put('/a', '0123456789');
    const part = async (headers: Record<string, string>): Promise<[number, string]> => {
      const response = await call('/a', { headers });
      return [response.status, await response.text()];
    };
    expect(await part({ range: 'bytes=2-4' })).toEqual([206, '234']);
    expect(await part({ range: 'bytes=-3', 'if-range': tagOf('0123456789') })).toEqual([206, '789']);
    expect(await part({ range: 'bytes=2-4', 'if-range': tagOf('old') })).toEqual([200, '0123456789']);
    const outside = await call('/a', { headers: { range: 'bytes=20-' } });
    expect(outside.headers.get('content-range')).toBe('bytes */10');
    expect(await refusalOf(outside)).toEqual([416, 'range_not_satisfiable']);
  });

  test('[C7] If-None-Match with the version of the client is 304 without a body', async () => {
    const { call, put } = await filesKit();
    await put('/a', 'one');
    for (const tag of [tagOf('one'), `W/${tagOf('one')}`, `"x", ${tagOf('one')}`, '*']) {
      const response = await call('/a', { headers: { 'if-none-match': tag } });
      expect([response.status, response.headers.get('etag'), await response.text()]).toEqual([304, tagOf('one'), '']);
    }
    await put('/a', 'two');
    const changed = await call('/a', { headers: { 'if-none-match': tagOf('one') } });
    expect([changed.status, await changed.text()]).toEqual([200, 'two']);
  });
});

describe('[C7] preconditions', () => {
  test('If-Match and If-None-Match refuse a change of another version with 412', async () => {
    const { call, put } = await filesKit();
    const refused = [412, 'precondition_failed'];
    expect(await refusalOf(await put('/a', 'x', { 'if-match': tagOf('one') }))).toEqual(refused);
    expect(await refusalOf(await put('/a', 'x', { 'if-match': '*' }))).toEqual(refused);
    expect((await put('/a', 'one', { 'if-none-match': '*' })).status).toBe(201);
    expect(await refusalOf(await put('/a', 'x', { 'if-none-match': '*' }))).toEqual(refused);
    expect(await refusalOf(await put('/a', 'x', { 'if-match': tagOf('two') }))).toEqual(refused);
    expect((await put('/a', 'two', { 'if-match': tagOf('one') })).status).toBe(200);
    const remove = (tag: string): Promise<Response> => call('/a', { method: 'DELETE', headers: { 'if-match': tag } });
    expect(await refusalOf(await remove(tagOf('one')))).toEqual(refused);
    expect((await remove(tagOf('two'))).status).toBe(200);
  });

  test('a refusal says what the file is, and a folder matches no ETag', async () => {
    const { call, put } = await filesKit();
    await put('/d/a', 'one');
    const detail = async (response: Promise<Response>): Promise<unknown> =>
      ((await (await response).json()) as { detail: string }).detail;
    expect(await detail(put('/b', 'x', { 'if-match': '*' }))).toBe('"b" does not exist');
    expect(await detail(put('/d/a', 'x', { 'if-none-match': '*' }))).toBe(
      `"d/a" exists already, with the ETag ${tagOf('one')}`,
    );
    const init = { method: 'DELETE', headers: { 'if-match': tagOf('one') } };
    expect(await detail(call('/d?recursive=true', init))).toBe('"d" is a folder, and a folder has no ETag');
    expect((await call('/d/a')).status).toBe(200);
  });

  test('of two clients that create or change a file at the same time, one gets 412', async () => {
    const { put } = await filesKit();
    const both = async (headers: Record<string, string>): Promise<number[]> => {
      const responses = await Promise.all([put('/a', 'one', headers), put('/a', 'two', headers)]);
      return responses.map(({ status }) => status).toSorted();
    };
    expect(await both({ 'if-none-match': '*' })).toEqual([201, 412]);
    const [tag] = [(await put('/a', 'base')).headers.get('etag') ?? ''];
    expect(await both({ 'if-match': tag })).toEqual([200, 412]);
  });

  test('a file that changes while its new content arrives is not overwritten', async () => {
    const { put } = await filesKit();
    await put('/a', 'one');
    let end = (): void => undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new Uint8Array([1]));
        end = () => controller.close();
      },
    });
    const slow = put('/a', body, { 'if-match': tagOf('one') });
    await settle();
    await put('/a', 'two');
    end();
    expect(await refusalOf(await slow)).toEqual([412, 'precondition_failed']);
  });
});

describe('[C7] deleting, folders and unknown files', () => {
  test('a file is deleted, a folder only with recursive', async () => {
    const { call, put } = await filesKit();
    for (const path of ['/a/1', '/a/b/2', '/ab', '/c']) await put(path, path);
    const remove = async (path: string): Promise<unknown> => await (await call(path, { method: 'DELETE' })).json();
    expect(await remove('/c')).toEqual({ deleted: ['c'] });
    expect(await remove('/a')).toMatchObject({
      status: 404,
      code: 'unknown_file',
      detail: '"a" is a folder: delete it with everything in it with ?recursive=true',
    });
    expect(await remove('/a?recursive=true')).toEqual({ deleted: ['a/1', 'a/b/2'] });
    expect(await remove('/a?recursive=true')).toMatchObject({ code: 'unknown_file' });
    expect(await remove('/ab?recursive=true')).toEqual({ deleted: ['ab'] });
  });

  test('an unknown file is 404 with the nearest path', async () => {
    const { call, put } = await filesKit();
    await put('/data/table.csv', 'a');
    for (const [path, detail] of [
      ['/data/tabel.csv', 'The workspace has no file "data/tabel.csv"; did you mean "data/table.csv"?'],
      ['/nothing', 'The workspace has no file "nothing"'],
      ['/data', '"data" is a folder: list its files with GET …/files?prefix=data/'],
    ]) {
      expect(await (await call(path ?? '')).json()).toMatchObject({ status: 404, code: 'unknown_file', detail });
    }
  });

  test('a file cannot take the place of a folder, nor a folder that of a file', async () => {
    const { call, put } = await filesKit();
    await put('/data/table.csv', 'a');
    expect(await (await put('/data', 'x')).json()).toMatchObject({
      code: 'invalid_request',
      detail: expect.stringContaining('"data" is a folder') as string,
    });
    expect(await (await put('/data/table.csv/x', 'x')).json()).toMatchObject({
      code: 'invalid_request',
      detail: expect.stringContaining('"data/table.csv" is a file') as string,
    });
    expect(((await (await call('')).json()) as Listed).files.map(({ path }) => path)).toEqual(['data/table.csv']);
  });
});

test('[C7] 2,000 files are listed, and one more is refused with workspace_full', async () => {
  const { call, put, kit } = await filesKit();
  const files = Array.from({ length: limits.workspaceFiles }, (_, at) => ({
    path: `f/${at}`,
    bytes: new Uint8Array([at % 256]),
  }));
  await kit.session.workspace.write(files);
  const { files: listed } = (await (await call('')).json()) as Listed;
  expect(listed).toHaveLength(limits.workspaceFiles);
  expect(listed.map(({ path }) => path)).toEqual(files.map(({ path }) => path).toSorted());
  expect(await refusalOf(await put('/one-more', 'x'))).toEqual([413, 'workspace_full']);
  expect((await put('/f/0', 'replaced')).status).toBe(200);
});

test('[C7] files can be written and read during a run', async () => {
  let finish = (): void => undefined;
  const paused = new Promise<void>((resolve) => (finish = resolve));
  const { call, put, kit } = await filesKit({
    stream: async function* () {
      await paused;
      yield { type: 'text', text: '<response final="true">done</response>' };
    },
  });
  const run = await kit.session.message({ content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null });
  expect((await put('/a', 'during')).status).toBe(201);
  expect(await (await call('/a')).text()).toBe('during');
  finish();
  await kit.session.ended(run.run);
  expect(kit.session.run(run.runId).status).toBe('completed');
});
