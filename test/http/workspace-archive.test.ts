/** All files of a session as a ZIP file, as other programs read it (C7). */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { bodyBytes } from '../support/body-bytes.ts';
import { limits } from '../../src/domain/limits.ts';
import { Slices } from '../../src/domain/work.ts';
import { FairQueue, ThreadShare } from '../../src/domain/fair-queue.ts';
import { bytesStream, workspaceZip } from '../../src/http/workspace-archive.ts';
import type { WorkspaceFile } from '../../src/domain/workspace.ts';
import { instantClock } from '../../testing/instant-clock.ts';
import { filesKit } from './workspace-kit.ts';
import { lacks } from '../support/programs.ts';

const scratch = mkdtempSync(join(tmpdir(), 'cortex-zip-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let made = 0;
/** A folder inside of another one, so that a file that leaves it is seen. */
function newFolder(): string {
  made += 1;
  const folder = join(scratch, String(made), 'inner');
  mkdirSync(folder, { recursive: true });
  return folder;
}

const PYTHON = `
import datetime, json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    archive.extractall(sys.argv[2])
    print(json.dumps([[i.filename, i.file_size, i.external_attr >> 16, i.flag_bits >> 11 & 1, list(i.date_time)]
                      for i in archive.infolist()]))
`;

type Entry = readonly [name: string, size: number, mode: number, isUtf8: number, date: readonly number[]];

/** Extracts with Python's zipfile, which also compares the checksums. */
function extracted(zip: Uint8Array, folder = newFolder()): Entry[] {
  const file = join(folder, '..', 'all.zip');
  writeFileSync(file, zip);
  const { status, stdout, stderr } = spawnSync('python3', ['-c', PYTHON, file, folder], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Entry[];
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted();

const HAS_UNZIP = spawnSync('unzip', ['-v']).status === 0;

describe.skipIf(lacks('python3'))('[C7] the archive', () => {
  test('has all files with their bytes, dates and modes, for Python and for unzip', async () => {
    const { call, put, kit } = await filesKit();
    kit.clock.advance(Date.UTC(2026, 4, 6, 7, 8, 10) - kit.clock.now());
    const text = 'id,name\n'.repeat(50_000);
    await put('/data/table.csv', text);
    await put('/data/Łódź 🎈.txt', 'hello');
    await put('/run.sh?executable=true', '#!/bin/sh\necho ran\n');
    await put('/empty', '');
    await put('/a.png', Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]));
    const response = await call('?archive=zip');
    expect(Object.fromEntries(response.headers)).toEqual({
      'cache-control': 'no-store',
      'content-disposition': 'attachment; filename="workspace.zip"',
      'content-security-policy': "default-src 'none'; sandbox",
      'content-type': 'application/zip',
      'cross-origin-resource-policy': 'same-site',
      'x-content-type-options': 'nosniff',
    });
    const zip = await bodyBytes(response);
    expect(zip.length).toBeLessThan(text.length / 10);
    const folder = newFolder();
    const entries = extracted(zip, folder);
    expect(entries.map(([name, size, mode]) => [name, size, mode.toString(8)])).toEqual([
      ['a.png', 11, '100644'],
      ['data/table.csv', text.length, '100644'],
      ['data/Łódź 🎈.txt', 5, '100644'],
      ['empty', 0, '100644'],
      ['run.sh', 19, '100755'],
    ]);
    expect(entries.map(([, , , , date]) => date[0])).toEqual([2026, 2026, 2026, 2026, 2026]);
    expect(readFileSync(join(folder, 'data/table.csv'), 'utf8')).toBe(text);
    if (!HAS_UNZIP) return;
    const other = newFolder();
    const env = { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', TZ: 'Asia/Tokyo' };
    const unzip = spawnSync('unzip', ['-q', join(folder, '..', 'all.zip'), '-d', other], { encoding: 'utf8', env });
    expect([unzip.status, unzip.stderr]).toEqual([0, '']);
    expect(filesIn(other)).toEqual(filesIn(folder));
    expect(spawnSync(join(other, 'run.sh'), { encoding: 'utf8' }).stdout).toBe('ran\n');
    // In any time zone.
    expect(statSync(join(other, 'data/table.csv')).mtimeMs).toBe(Date.UTC(2026, 4, 6, 7, 8, 10));
  });

  test('of a folder has only its files, and is named after it; an empty workspace gives an empty archive', async () => {
    const { call, put } = await filesKit();
    expect(extracted(await bodyBytes(await call('?archive=zip')))).toEqual([]);
    for (const path of ['/a/b/1', '/a/2', '/c']) await put(path, 'x');
    const response = await call('?archive=zip&prefix=a/b');
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="b.zip"');
    expect(extracted(await bodyBytes(response)).map(([name]) => name)).toEqual(['a/b/1']);
  });

  test('has 2,000 files', async () => {
    const { call, kit } = await filesKit();
    const bytes = new Uint8Array([1]);
    await kit.session.workspace.write(
      Array.from({ length: limits.workspaceFiles }, (_, at) => ({ path: `f/${at}`, bytes })),
    );
    expect(extracted(await bodyBytes(await call('?archive=zip')))).toHaveLength(limits.workspaceFiles);
  });

  test('of hostile names extracts inside the folder', async () => {
    const { call, kit } = await filesKit();
    const names = [
      '..%2f..%2fetc',
      '...',
      '~root',
      '-rf',
      'C:evil',
      'a:b',
      '<script>',
      '"q"',
      '\u202Etxt.exe',
      '%00',
      'CON',
    ];
    await kit.session.workspace.write(names.map((path) => ({ path, bytes: new Uint8Array([1]) })));
    const folder = newFolder();
    extracted(await bodyBytes(await call('?archive=zip')), folder);
    expect(filesIn(folder)).toEqual(names.toSorted());
    expect(filesIn(join(folder, '..')).filter((file) => !file.startsWith('inner/'))).toEqual(['all.zip']);
  });

  test('dates that the format cannot say become the nearest', async () => {
    const { call, put, kit } = await filesKit();
    await put('/old', 'x');
    kit.clock.advance(Date.UTC(2150, 0, 1));
    await put('/late', 'x');
    const entries = extracted(await bodyBytes(await call('?archive=zip')));
    expect(entries.map(([name, , , , date]) => [name, date[0]])).toEqual([
      ['late', 2099],
      ['old', 1980],
    ]);
  });
});

describe('[C7] an archive that cannot be completed ends with an error', () => {
  const bytes = (seed: number): Uint8Array => Uint8Array.from({ length: 300_000 }, (_, at) => (at * seed * 7919) % 251);

  test('when a file disappears or changes while it is sent', async () => {
    for (const change of ['remove', 'write'] as const) {
      const { call, put, kit } = await filesKit();
      for (const [at, path] of ['/1', '/2', '/3'].entries()) await put(path, bytes(at + 1));
      const reader = (await call('?archive=zip')).body?.getReader();
      await reader?.read();
      if (change === 'remove') await kit.session.workspace.remove('3');
      else await kit.session.workspace.write([{ path: '3', bytes: bytes(9) }]);
      await expect(readAll(reader)).rejects.toThrow('"3" was changed or deleted meanwhile');
    }
  });

  test('when the session is deleted, or the token expires', async () => {
    for (const end of ['deleted', 'expired'] as const) {
      const { call, put, kit, token, clock } = await filesKit();
      for (const [at, path] of ['/1', '/2'].entries()) await put(path, bytes(at + 1));
      const headers = { authorization: `Bearer ${await token(['read'], { expiresInMs: 60_000 })}` };
      const reader = (await call('?archive=zip', { headers })).body?.getReader();
      await reader?.read();
      if (end === 'deleted') await kit.session.close('the session was deleted');
      else clock.advance(60_000);
      await expect(readAll(reader)).rejects.toMatchObject({
        code: end === 'deleted' ? 'unknown_session' : 'unauthorized',
      });
    }
  });

  test('a reader who leaves ends the work, and one file is read at a time, when its turn comes', async () => {
    const read: string[] = [];
    const files = ['a', 'b', 'c'].map((path): WorkspaceFile => ({
      path,
      sha256: path,
      size: 1,
      executable: false,
      modifiedAt: 0,
    }));
    const body = bytesStream(
      workspaceZip(files, {
        read: async (sha256) => {
          read.push(sha256);
          return await Promise.resolve(new Uint8Array([1]));
        },
        slices: new Slices(new ThreadShare(new FairQueue(instantClock()), () => null)),
        requireOpen: () => undefined,
      }),
    );
    expect(read).toEqual([]);
    const reader = body.getReader();
    await reader.read();
    expect(read).toEqual(['a']);
    await reader.cancel();
    expect(read).toEqual(['a']);
  });
});

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  while ((await reader?.read())?.done === false);
}
