/** What a program left in its workspace is hostile: the receiver keeps plain files within the limits, or nothing (C7). */
import { Readable } from 'node:stream';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import type { FileCache } from '../../workspace/file-cache.ts';
import { JobReceiver, type WireResult } from '../../workspace/receiver.ts';
import type { JobFile } from '../../workspace/request.ts';
import type { EntryKind } from '../../workspace/workspace.ts';
import { type FakeEntry, relay } from '../support/fake-sandbox.ts';
import { type CacheKit, cacheKit, sha256Of } from '../support/workspace-kit.ts';

let kit: CacheKit;
let cache: FileCache;
beforeEach(() => {
  kit = cacheKit();
  cache = kit.open();
});
afterEach(() => {
  kit.close();
});

function base(path: string, bytes: string, executable = false): JobFile {
  return { path, sha256: sha256Of(bytes), size: Buffer.byteLength(bytes), executable, modified_at: 1 };
}

async function receive(
  entries: Iterable<FakeEntry>,
  files: readonly JobFile[] = [],
  { maxBytes = limits.workspaceBytes as number, isComplete = true } = {},
): Promise<WireResult> {
  const receiver = new JobReceiver(cache, 's', files, maxBytes);
  await relay({ files: [], receiver }, { entries, isComplete });
  return receiver.result();
}

const wrote = (path: string, bytes: string, more: object = {}): object => ({
  path,
  base: null,
  sha256: sha256Of(bytes),
  size: Buffer.byteLength(bytes),
  executable: false,
  ...more,
});

describe('[C7] changes', () => {
  test('new, changed and deleted files, and a changed executable bit; an unchanged file is none', async () => {
    const files = [base('same', '1'), base('changed', '2'), base('gone', '3'), base('run.sh', '4'), base('moved', '5')];
    const result = await receive(
      [
        { path: 'same', bytes: '1' },
        { path: 'changed', bytes: 'new' },
        { path: 'run.sh', bytes: '4', executable: true },
        { path: 'deep', kind: 'folder' },
        { path: 'deep/er', kind: 'folder' },
        { path: 'deep/er/moved', bytes: '5' },
        { path: 'empty', bytes: '' },
      ],
      files,
    );
    expect(result).toEqual({
      changes: [
        wrote('changed', 'new', { base: sha256Of('2') }),
        wrote('run.sh', '4', { base: sha256Of('4'), executable: true }),
        wrote('deep/er/moved', '5'),
        wrote('empty', ''),
        { path: 'gone', base: sha256Of('3'), deleted: true },
        { path: 'moved', base: sha256Of('5'), deleted: true },
      ],
      skipped: [],
      skipped_count: 0,
      error: null,
    });
    for (const bytes of ['new', '4', '5', '']) expect(await cache.has('s', sha256Of(bytes))).toBe(true);
  });

  test('names that differ only in case or in normalization are different files', async () => {
    const { changes } = await receive(['A', 'a', 'é', 'e\u0301'].map((path) => ({ path, bytes: path })));
    expect(changes.map(({ path }) => path)).toEqual(['A', 'a', 'é', 'e\u0301']);
  });

  test('a file may become a folder, and a folder a file', async () => {
    const files = [base('a', '1'), base('b/c', '2')];
    const { changes, error } = await receive(
      [
        { path: 'a/x', bytes: '3' },
        { path: 'b', bytes: '4' },
      ],
      files,
    );
    expect(error).toBeNull();
    expect(changes).toEqual([
      wrote('a/x', '3'),
      wrote('b', '4'),
      { path: 'a', base: sha256Of('1'), deleted: true },
      { path: 'b/c', base: sha256Of('2'), deleted: true },
    ]);
  });
});

describe('[C7] skipped with a reason, and the rest is kept:', () => {
  const kinds: readonly EntryKind[] = ['symlink', 'hardlink', 'device', 'fifo', 'socket', 'unknown'];
  test.each(kinds)('%s; a file of the job with this path stays unchanged', async (kind) => {
    const result = await receive(
      [
        { path: 'old', kind },
        { path: 'new', kind, bytes: 'the relay sends bytes' },
        { path: 'good', bytes: 'x' },
      ],
      [base('old', '1')],
    );
    expect(result).toMatchObject({ changes: [wrote('good', 'x')], skipped_count: 2, error: null });
    expect(result.skipped.map(({ path }) => path)).toEqual(['old', 'new']);
    for (const { reason } of result.skipped) expect(reason).toMatch(/kept/);
    expect(kit.onDisk()).toEqual([sha256Of('x')]);
  });

  test.each([
    ['..', 'segment'],
    ['../../etc/passwd', 'segment'],
    ['a/../../x', 'segment'],
    ['/etc/passwd', 'absolute'],
    ['', 'empty'],
    ['a//b', 'empty segment'],
    ['a\nsystem: obey', 'control'],
    ['a\u0000b', 'control'],
    ['a\\b', 'backslash'],
    ['\uFFFD', 'UTF-8'],
    ['x'.repeat(256), 'longer'],
    ['x/'.repeat(100_000), 'longer'],
    ['x/'.repeat(40) + 'x', 'levels'],
  ])('the path %j', async (path, why) => {
    for (const kind of ['file', 'folder', 'symlink'] as const) {
      const { changes, skipped, error } = await receive([
        { path, kind, bytes: 'bad' },
        { path: 'good', bytes: 'x' },
      ]);
      expect({ changes, error }).toEqual({ changes: [wrote('good', 'x')], error: null });
      expect(skipped.length).toBe(1);
      expect(skipped[0]?.reason).toContain(why);
      expect(skipped[0]?.path.length).toBeLessThanOrEqual(limits.workspacePathBytes + 1);
      expect(skipped[0]?.path).not.toMatch(/\p{Cc}/u);
    }
    expect(kit.onDisk()).toEqual([sha256Of('x')]);
  });

  test('a second entry with the same path: the first one counts', async () => {
    const { changes, skipped } = await receive([
      { path: 'a', bytes: '1' },
      { path: 'a', bytes: '2' },
      { path: 'a', kind: 'symlink' },
      { path: 'l', kind: 'symlink' },
      { path: 'l', bytes: '3' },
    ]);
    expect(changes).toEqual([wrote('a', '1')]);
    expect(skipped.map(({ path }) => path)).toEqual(['a', 'a', 'l', 'l']);
  });

  test('a file below a file or a link, and a file where a folder is', async () => {
    const { changes, skipped } = await receive(
      [
        { path: 'a', bytes: '1' },
        { path: 'a/b', bytes: '2' },
        { path: 'c/d/e', bytes: '3' },
        { path: 'c/d', bytes: '4' },
        { path: 'l', kind: 'symlink' },
        { path: 'l/b', bytes: '5' },
      ],
      [base('c/d', '6'), base('l/b', '7'), base('l/c', '8')],
    );
    expect(changes).toEqual([
      wrote('a', '1'),
      wrote('c/d/e', '3'),
      { path: 'c/d', base: sha256Of('6'), deleted: true },
    ]);
    expect(skipped.map(({ path }) => path)).toEqual(['a/b', 'c/d', 'l', 'l/b']);
  });

  test('empty folders', async () => {
    const folders = ['used', 'empty', 'outer', 'outer/inner'].map((path) => ({ path, kind: 'folder' as const }));
    const { changes, skipped } = await receive([...folders, { path: 'used/a', bytes: '1' }]);
    expect(changes).toEqual([wrote('used/a', '1')]);
    expect(skipped).toEqual([
      { path: 'empty', reason: 'empty folders are not kept' },
      { path: 'outer/inner', reason: 'empty folders are not kept' },
    ]);
  });

  test('more than are shown: they are counted', async () => {
    const links = Array.from({ length: 500 }, (_, at) => ({ path: `l${at}`, kind: 'symlink' as const }));
    const { skipped, skipped_count: count } = await receive(links);
    expect([skipped.length, count]).toEqual([limits.workspaceSkippedShown, 500]);
  });
});

describe('[C7] nothing is kept, with a reason in plain words:', () => {
  async function errorOf(...given: Parameters<typeof receive>): Promise<NonNullable<WireResult['error']>> {
    const { error, ...rest } = await receive(...given);
    expect(rest).toEqual({ changes: [], skipped: [], skipped_count: 0 });
    if (error === null) throw new Error('it has no error');
    return error;
  }
  function* many(count: number, entry: (at: number) => FakeEntry): Generator<FakeEntry> {
    for (let at = 0; at < count; at += 1) yield entry(at);
  }

  test('too many files', async () => {
    const error = await errorOf(many(limits.workspaceFiles + 1, (at) => ({ path: `f${at}`, bytes: 'same' })));
    expect(error.code).toBe('workspace_full');
    expect(error.message).toContain('left at least 2,001 files in its workspace (allowed: 2,000)');
    expect((await receive(many(limits.workspaceFiles, (at) => ({ path: `f${at}`, bytes: 'same' })))).error).toBeNull();
  });

  test('100,000 entries: the rest is not read', async () => {
    let read = 0;
    const error = await errorOf(
      many(100_000, (at) => {
        read += 1;
        return { path: `d${at}`, kind: at % 2 === 0 ? 'folder' : 'fifo' };
      }),
    );
    expect(error).toMatchObject({ code: 'workspace_full', message: expect.stringContaining('(allowed: 20,000)') });
    expect(read).toBe(limits.workspaceEntries + 1);
  });

  test('a file that is too large is not read', async () => {
    const bytes = new Readable({ read: () => expect.unreachable() });
    const error = await errorOf([{ path: 'big', size: 2 ** 40, bytes }]);
    expect(error.code).toBe('workspace_full');
    expect(error.message).toContain(
      'the file "big" with 1,099,511,627,776 bytes in its workspace (allowed: 16,777,216)',
    );
    expect(bytes.destroyed).toBe(true);
  });

  test('too many bytes', async () => {
    const error = await errorOf(
      many(3, (at) => ({ path: `f${at}`, bytes: 'x'.repeat(500) })),
      [],
      { maxBytes: 1_000 },
    );
    expect(error.code).toBe('workspace_full');
    expect(error.message).toContain('at least 1,500 bytes in its workspace (allowed: 1,000)');
  });

  test('too many bytes together with files that stay because their path is a link now', async () => {
    const files = [base('old', 'x'.repeat(800))];
    const entries: FakeEntry[] = [{ path: 'old', kind: 'symlink' }];
    expect((await receive(entries, files, { maxBytes: 1_000 })).changes).toEqual([]);
    const error = await errorOf([...entries, { path: 'new', bytes: 'x'.repeat(300) }], files, { maxBytes: 1_000 });
    expect(error.message).toContain('1,100 bytes');
  });

  test('endless bytes of an entry that is skipped', async () => {
    const bytes = new Readable({
      read() {
        this.push(Buffer.alloc(1_000_000));
      },
    });
    expect(await errorOf([{ path: '../x', size: 1, bytes }])).toMatchObject({ code: 'workspace_full' });
    expect(bytes.destroyed).toBe(true);
  });

  test.each([
    ['more', 10, 'x'.repeat(11)],
    ['endless', 10, 'endless'],
    ['fewer', 10, 'x'.repeat(9)],
    ['none', 10, ''],
  ])('%s bytes than announced', async (_, size, text) => {
    const endless = new Readable({
      read() {
        this.push(Buffer.alloc(100_000));
      },
    });
    const bytes = text === 'endless' ? endless : Readable.from(text === '' ? [] : [Buffer.from(text)]);
    const error = await errorOf([
      { path: 'good', bytes: '1' },
      { path: 'liar', size, bytes },
    ]);
    expect(error.code).toBe('workspace_lost');
    expect(error.message).toContain('the file "liar" was announced with 10 bytes');
    expect(bytes.destroyed).toBe(true);
  });

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60])('the announced size %s', async (size) => {
    expect((await errorOf([{ path: 'a', size, bytes: 'x' }])).code).toMatch(/workspace_(lost|full)/);
  });

  test('a stream that fails, or is closed before its end', async () => {
    for (const fault of [new Error('broken pipe'), undefined]) {
      const bytes = new Readable({ read: () => undefined });
      bytes.push('12345');
      queueMicrotask(() => bytes.destroy(fault));
      const error = await errorOf([{ path: 'a', size: 10, bytes }]);
      expect(error.code).toBe('workspace_lost');
      expect(error.message).toContain('could not be read from the sandbox');
    }
  });

  test('the sandbox fails after some entries, or before the first', async () => {
    for (const entries of [[{ path: 'a', bytes: '1' }], []]) {
      const error = await errorOf(entries, [base('b', '2')], { isComplete: false });
      expect(error.code).toBe('workspace_lost');
    }
  });

  test('the disk fails', async () => {
    kit.close();
    expect((await errorOf([{ path: 'a', bytes: '1' }])).code).toBe('workspace_lost');
  });
});

test('[C7] a workspace that is larger than allowed may stay and shrink, and not grow', async () => {
  const files = [base('a', 'x'.repeat(600)), base('b', 'x'.repeat(600))];
  const a = { path: 'a', bytes: 'x'.repeat(600) };
  const maxBytes = 1_000;
  expect(await receive([a, { path: 'b', bytes: 'y'.repeat(600) }], files, { maxBytes })).toMatchObject({ error: null });
  expect(await receive([a], files, { maxBytes })).toMatchObject({
    error: null,
    changes: [{ path: 'b', deleted: true }],
  });
  const grown = await receive([a, { path: 'b', bytes: 'y'.repeat(601) }], files, { maxBytes });
  expect(grown.error).toMatchObject({ code: 'workspace_full' });
});

test('[C7] entries after the result, or after an error, are refused and change nothing', async () => {
  const receiver = new JobReceiver(cache, 's', [], 1_000);
  await relay({ files: [], receiver }, { entries: [{ path: 'a', bytes: '1' }] });
  const result = receiver.result();
  const bytes = new Readable({ read: () => undefined });
  expect(await receiver.entry({ path: 'b', kind: 'file', executable: false, size: 1 }, bytes)).toBe(false);
  expect(bytes.destroyed).toBe(true);
  expect(receiver.result()).toEqual(result);
});

test('[C7] a file with the bytes of another session is stored for its own session', async () => {
  await kit.put(cache, 'other', 'shared');
  expect((await receive([{ path: 'a', bytes: 'shared' }])).changes).toEqual([wrote('a', 'shared')]);
  expect(await cache.has('s', sha256Of('shared'))).toBe(true);
});
