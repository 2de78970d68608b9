/** The cache of files: complete or missing, per session, within its limits (C7). */
import fs from 'node:fs';
import { Readable } from 'node:stream';

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { limits } from '../../limits.ts';
import type { FileCache } from '../../workspace/file-cache.ts';
import { type CacheKit, cacheKit, sha256Of } from '../support/workspace-kit.ts';

let kit: CacheKit;
let now: number;
let cache: FileCache;
beforeEach(() => {
  kit = cacheKit();
  now = Date.now();
  cache = kit.open(() => now);
});
afterEach(() => {
  kit.close();
});

const LARGE = 'x'.repeat(limits.workspaceBufferBytes * 3);

async function textOf(from: FileCache, session: string, bytes: string): Promise<string | null> {
  const file = await from.open(session, sha256Of(bytes));
  if (file === null) return null;
  const text = await file.handle.readFile('latin1');
  await file.handle.close();
  expect(file.size).toBe(text.length);
  return text;
}

describe('[C7] a stored file', () => {
  test.each([
    ['empty', ''],
    ['small', 'hello'],
    ['large', LARGE],
  ])('that is %s is found by its hash, only for its user, and again after a restart', async (_, bytes) => {
    expect(await kit.put(cache, 's', bytes)).toBe(sha256Of(bytes));
    for (const each of [cache, kit.open(() => now)]) {
      expect(await textOf(each, 's', bytes)).toBe(bytes);
      expect(each.sizeBytes).toBe(Math.max(bytes.length, limits.workspaceCacheFileBytes));
    }
    expect(fs.statSync(cache.path('s', sha256Of(bytes))).mode & 0o777).toBe(0o600);
    expect(kit.onDisk()).toEqual([sha256Of(bytes)]);
  });

  test('is stored once, and another session does not reach it', async () => {
    await kit.put(cache, 'a', 'secret');
    await kit.put(cache, 'a', 'secret');
    expect(cache.sizeBytes).toBe(limits.workspaceCacheFileBytes);
    expect(await cache.has('a', sha256Of('secret'))).toBe(true);
    expect(await cache.has('b', sha256Of('secret'))).toBe(false);
    for (const name of ['../a', sha256Of('a'), `../${sha256Of('a')}/${sha256Of('secret')}`, '', 'A'.repeat(64)]) {
      expect(await cache.has('b', name)).toBe(false);
      if (name.length !== 64 || /[A-Z]/.test(name)) expect(() => cache.path('b', name)).toThrow('SHA-256');
    }
  });

  test('that is longer than allowed is not stored, small or large', async () => {
    for (const bytes of ['hello', LARGE]) {
      const stream = Readable.from([Buffer.from(bytes), Buffer.from('more')]);
      expect(await cache.put('s', stream, bytes.length)).toBeNull();
      expect(stream.destroyed).toBe(true);
    }
    expect(kit.onDisk()).toEqual([]);
    expect(cache.sizeBytes).toBe(0);
  });

  test('whose stream fails is not stored, small or large', async () => {
    for (const bytes of ['hello', LARGE]) {
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield await Promise.resolve(Buffer.from(bytes));
        throw new Error('the stream failed');
      }
      await expect(cache.put('s', failing(), 1e9)).rejects.toThrow('the stream failed');
    }
    expect(kit.onDisk()).toEqual([]);
  });
});

describe('[C7] a file that is damaged on disk counts as missing, is removed, and can be stored again', () => {
  const damages: Readonly<Record<string, (file: string) => void>> = {
    'it has other bytes of the same length': (file) => fs.writeFileSync(file, 'y'.repeat(LARGE.length)),
    'it is truncated': (file) => fs.truncateSync(file, 10),
    'it is empty': (file) => fs.truncateSync(file, 0),
    'it is longer': (file) => fs.appendFileSync(file, 'more'),
    'it is missing': (file) => fs.rmSync(file),
    'it is a folder': (file) => {
      fs.rmSync(file);
      fs.mkdirSync(file);
    },
    'it is a link to the right bytes': (file) => {
      fs.renameSync(file, `${file}.moved`);
      fs.symlinkSync(`${file}.moved`, file);
    },
  };
  test.each(Object.entries(damages))('%s', async (_, damage) => {
    for (const isChecked of [false, true]) {
      for (const isRestarted of [false, true]) {
        await kit.put(cache, 's', LARGE);
        // old enough that the check of its bytes is not repeated until it changes
        fs.utimesSync(kit.fileOf('s', LARGE), 1, 1);
        now = Date.now() + 60_000;
        if (isChecked) expect(await cache.has('s', sha256Of(LARGE))).toBe(true);
        damage(kit.fileOf('s', LARGE));
        if (isRestarted) cache = kit.open(() => now);
        expect(await textOf(cache, 's', LARGE)).toBeNull();
        expect(cache.sizeBytes).toBe(0);
        await kit.put(cache, 's', LARGE);
        expect(await textOf(cache, 's', LARGE)).toBe(LARGE);
        cache.remove('s');
      }
    }
  });

  test('an intact file is read once, and again only after a change of its state', async () => {
    await kit.put(cache, 's', LARGE);
    const file = kit.fileOf('s', LARGE);
    const reads = vi.spyOn(fs.promises, 'open');
    const check = async (): Promise<number> => {
      reads.mockClear();
      expect(await cache.has('s', sha256Of(LARGE))).toBe(true);
      return reads.mock.calls.length;
    };
    try {
      // a change that follows at once might not change its state
      now = Math.floor(fs.statSync(file).ctimeMs) + 50;
      expect([await check(), await check()]).toEqual([1, 1]);
      now += 60_000;
      expect([await check(), await check(), await check()]).toEqual([1, 0, 0]);
      fs.utimesSync(file, 1, 1);
      expect([await check(), await check()]).toEqual([1, 0]);
    } finally {
      reads.mockRestore();
    }
  });

  test('files of a transfer that a crash ended are removed at the next start', () => {
    fs.writeFileSync(cache.scratch(), 'half');
    expect(kit.onDisk().length).toBe(1);
    expect(kit.open(() => now).sizeBytes).toBe(0);
    expect(kit.onDisk()).toEqual([]);
  });
});

describe('[C7] pruning', () => {
  test('removes a session after its time without a job, also after a restart', async () => {
    await kit.put(cache, 'old', 'a');
    const unpin = cache.pin('busy', [await kit.put(cache, 'busy', 'b')]);
    now += limits.workspaceCacheMs - 1;
    await kit.put(cache, 'new', 'c');
    cache.prune();
    expect(await cache.has('old', sha256Of('a'))).toBe(true);
    now += 2;
    cache.prune();
    expect(await cache.has('old', sha256Of('a'))).toBe(false);
    expect(await cache.has('busy', sha256Of('b'))).toBe(true);
    expect(await cache.has('new', sha256Of('c'))).toBe(true);
    // its time begins at the end of the job
    unpin();
    now += limits.workspaceCacheMs;
    cache = kit.open(() => now);
    expect(await cache.has('busy', sha256Of('b'))).toBe(true);
    expect(await cache.has('new', sha256Of('c'))).toBe(false);
  });

  const small = { bytes: 2_000_000, sessionBytes: 1_000_000 };
  const file = (name: string): string => name.repeat(100_000).slice(0, 100_000);

  test('removes the least recently used sessions at once when the cache is too large, and never files of jobs', async () => {
    cache = kit.open(() => now, small);
    const pinned = await kit.put(cache, 'job', file('j'));
    const unpinned = await kit.put(cache, 'job', file('k'));
    cache.pin('job', [pinned]);
    for (let at = 0; at < 30; at += 1) {
      await kit.put(cache, `s${at}`, file(`${at}-`));
      cache.touch('s0');
      expect(cache.sizeBytes).toBeLessThanOrEqual(small.bytes);
    }
    expect(await cache.has('job', pinned)).toBe(true);
    expect(await cache.has('job', unpinned)).toBe(true);
    expect(await cache.has('s0', sha256Of(file('0-')))).toBe(true);
    expect(await cache.has('s1', sha256Of(file('1-')))).toBe(false);
    expect(await cache.has('s29', sha256Of(file('29-')))).toBe(true);
    expect(kit.open(() => now).sizeBytes).toBe(cache.sizeBytes);
  });

  test('removes the least recently used files of a session that is too large, and never those of its jobs', async () => {
    cache = kit.open(() => now, small);
    const pinned = await kit.put(cache, 's', file('pinned'));
    const unpin = cache.pin('s', [pinned]);
    const used = await kit.put(cache, 's', file('used'));
    for (let at = 0; at < 30; at += 1) {
      const last = await kit.put(cache, 's', file(`${at}-`));
      expect(cache.sizeBytes).toBeLessThanOrEqual(small.sessionBytes);
      expect(await cache.has('s', used)).toBe(true);
      expect(await cache.has('s', last)).toBe(true);
    }
    expect(await cache.has('s', sha256Of(file('0-')))).toBe(false);
    expect(fs.existsSync(cache.path('s', pinned))).toBe(true);
    unpin();
    for (let at = 30; at < 40; at += 1) await kit.put(cache, 's', file(`${at}-`));
    expect(await cache.has('s', pinned)).toBe(false);
  });

  test('counts many small files by the space that they need', async () => {
    cache = kit.open(() => now, small);
    for (let at = 0; at < 200; at += 1) await kit.put(cache, 's', String(at));
    expect(kit.onDisk().length).toBeLessThanOrEqual(small.sessionBytes / limits.workspaceCacheFileBytes);
  });

  test('a file is pinned as long as one of its jobs needs it', async () => {
    const hash = await kit.put(cache, 's', 'a');
    const unpins = [cache.pin('s', [hash]), cache.pin('s', [hash])];
    unpins[0]?.();
    unpins[0]?.();
    now += limits.workspaceCacheMs + 1;
    cache.prune();
    expect(await cache.has('s', hash)).toBe(true);
    unpins[1]?.();
    now += limits.workspaceCacheMs + 1;
    cache.prune();
    expect(await cache.has('s', hash)).toBe(false);
  });
});

test('[C7] removing a session removes its files only', async () => {
  const [mine, other] = [await kit.put(cache, 'mine', 'a'), await kit.put(cache, 'other', 'a')];
  cache.remove('mine');
  cache.remove('unknown');
  expect(await cache.has('mine', mine)).toBe(false);
  expect(await cache.has('other', other)).toBe(true);
  expect(fs.existsSync(kit.fileOf('mine', 'a'))).toBe(false);
  expect(cache.sizeBytes).toBe(limits.workspaceCacheFileBytes);
});

test('[C7] a file in the place of the folder is set aside', async () => {
  const { stateDir } = kit;
  fs.rmSync(`${stateDir}/runner/workspaces`, { recursive: true });
  fs.writeFileSync(`${stateDir}/runner/workspaces`, 'not a folder');
  cache = kit.open(() => now);
  await kit.put(cache, 's', 'a');
  expect(fs.readdirSync(`${stateDir}/runner`).some((name) => name.startsWith('workspaces.set-aside-'))).toBe(true);
});
