/** Archives that a hostile guest may write (C7), without a sandbox. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { type TarEntry, tarEnd, tarHeader, tarPadding } from '../../guest/tar-writer.ts';
import { limits } from '../../limits.ts';
import { newMarker, splitAt } from '../../sandbox/docker-streams.ts';
import { archiveOf } from '../../sandbox/given-files.ts';
import { collect, COMPLETE } from '../../sandbox/left-archive.ts';
import { MemoryReceiver } from '../support/workspace-programs.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lacks } from '../../../test/support/programs.ts';

const LONG = `${'folder/'.repeat(40)}${'x'.repeat(200)}`;

function archive(entries: readonly (Partial<TarEntry> & { readonly text?: string })[], end: string = COMPLETE): Buffer {
  const parts = entries.flatMap(({ text = '', ...entry }) => {
    const size = entry.size ?? Buffer.byteLength(text);
    const whole = { path: 'file', kind: 'file' as const, mode: 0o644, modifiedAt: 0, ...entry, size };
    return [tarHeader(whole), Buffer.from(text), tarPadding(Buffer.byteLength(text))];
  });
  const body = Buffer.concat(parts);
  return Buffer.concat([body, tarEnd(body.length), Buffer.from(end)]);
}

async function take(chunks: Iterable<Uint8Array>, receiver = new MemoryReceiver()) {
  const kill = vi.fn();
  await collect(Readable.from(chunks), receiver, kill).finish();
  return { receiver, kill };
}

function* cut(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('archives of what a program left', () => {
  test.each([1, 7, 8, 511, 512, 513, 100_000])('[C7] cut every %i bytes, an archive is the same', async (size) => {
    const bytes = archive([
      { path: 'a', text: 'one' },
      { path: `./${LONG}`, text: 'x'.repeat(600), mode: 0o4755 },
      { path: 'folder/', kind: 'folder' },
      { path: 'link', kind: 'symlink' },
      { path: 'pipe', kind: 'fifo' },
      { path: 'other', kind: 'unknown' },
      { path: './', kind: 'folder' },
    ]);
    const { receiver, kill } = await take(cut(bytes, size));
    expect([...receiver.entries].map(([name, { kind, executable }]) => [name, kind, executable])).toEqual([
      ['a', 'file', false],
      [LONG, 'file', true],
      ['folder', 'folder', false],
      ['link', 'symlink', false],
      ['pipe', 'fifo', false],
      ['other', 'unknown', false],
    ]);
    expect(receiver.files).toMatchObject({ a: 'one', [LONG]: 'x'.repeat(600) });
    expect({ completed: receiver.completed, killed: kill.mock.calls.length }).toEqual({ completed: 1, killed: 0 });
  });

  const whole = archive([
    { path: 'a', text: 'one' },
    { path: 'b', text: 'two' },
  ]);
  test.each([
    ['nothing', Buffer.alloc(0)],
    ['the word alone is an empty workspace’s end only after an archive', Buffer.from('complet')],
    ['an archive without the word', archive([{ text: 'x' }], '')],
    ['an archive with another word', archive([{ text: 'x' }], 'COMPLETE')],
    ['text instead of an archive', Buffer.from(`${'garbage '.repeat(1_000)}${COMPLETE}`)],
    ['text after an archive', Buffer.concat([whole, Buffer.from('garbage '.repeat(1_000)), Buffer.from(COMPLETE)])],
    ['a file that is shorter than announced', archive([{ text: 'x', size: 5_000_000 }])],
    ['a size that is not a number', Buffer.from(archive([{ text: 'x' }])).fill('z', 124, 135)],
    ['a header for a name of a gigabyte', longName(2 ** 30)],
  ])('[C7] %s is not complete', async (_, bytes) => {
    const { receiver } = await take(cut(bytes, 4_096));
    expect(receiver.completed).toBe(0);
  });

  test('[C7] an archive that is cut anywhere is not complete', async () => {
    for (let length = 0; length < whole.length; length += 97) {
      expect((await take([whole.subarray(0, length)])).receiver.completed).toBe(0);
    }
    expect((await take([whole])).receiver.completed).toBe(1);
  });

  test('[C7] entries after the limit are not read, and nothing is complete', async () => {
    const count = limits.workspaceEntries + 1;
    const links = Array.from({ length: count }, (_, n) => ({ path: `l${n}`, kind: 'symlink' as const }));
    const generous = new MemoryReceiver({ entries: 2 * count });
    const { receiver } = await take(cut(archive(links), 65_536), generous);
    expect({ entries: receiver.entries.size, completed: receiver.completed }).toEqual({
      entries: count - 1,
      completed: 0,
    });
  });

  test('[C7] a receiver that reads nothing of a file gets the next entry', async () => {
    const seen: string[] = [];
    let completed = 0;
    const receiver = {
      entry: ({ path: name }: { readonly path: string }, bytes: Readable | null): Promise<boolean> => {
        seen.push(name);
        if (name === 'a') bytes?.destroy();
        return Promise.resolve(true);
      },
      complete: () => void (completed += 1),
    };
    const bytes = archive(['a', 'b', 'c'].map((name) => ({ path: name, text: 'x'.repeat(300_000) })));
    await collect(Readable.from(cut(bytes, 10_000)), receiver, () => undefined).finish();
    expect({ seen, completed }).toEqual({ seen: ['a', 'b', 'c'], completed: 1 });
  });

  test('[C7] a receiver that fails makes the archive incomplete', async () => {
    let completed = 0;
    const receiver = { entry: () => Promise.reject(new Error('disk')), complete: () => void (completed += 1) };
    await collect(Readable.from([whole]), receiver, () => undefined).finish();
    expect(completed).toBe(0);
  });

  test('[C7] after the program was stopped, nothing is taken', async () => {
    const receiver = new MemoryReceiver();
    const pipe = new PassThrough();
    const collection = collect(pipe, receiver, () => undefined);
    pipe.write(whole.subarray(0, 600));
    collection.abandon();
    expect(pipe.destroyed).toBe(true);
    await collection.finish();
    expect(receiver.completed).toBe(0);
  });

  describe('in time', () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
    afterEach(() => void vi.useRealTimers());

    test('[C7] an archive without an end is given up, and its sandbox is killed', async () => {
      const kill = vi.fn();
      const endless = new PassThrough();
      const receiver = new MemoryReceiver();
      const collection = collect(endless, receiver, kill);
      endless.write(whole.subarray(0, 100));
      await eventually(() => expect(vi.getTimerCount()).toBe(1));
      await vi.advanceTimersByTimeAsync(limits.workspaceCollectMs);
      expect(kill).toHaveBeenCalledTimes(1);
      await collection.finish();
      expect(receiver.completed).toBe(0);
    });

    test('[C7] a sandbox that does not end after the receiver has said stop is killed', async () => {
      const kill = vi.fn();
      const pipe = new PassThrough();
      const receiver = new MemoryReceiver({ entries: 1 });
      collect(pipe, receiver, kill);
      pipe.write(whole);
      await eventually(() => expect(pipe.destroyed).toBe(true));
      expect(kill).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(limits.killGraceMs);
      expect(kill).toHaveBeenCalledTimes(1);
    });
  });
});

function longName(size: number): Buffer {
  const header = Buffer.from(tarHeader({ path: 'x', kind: 'unknown', mode: 0, size, modifiedAt: 0 }));
  header.write('L', 156);
  header.write('        ', 148);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return Buffer.concat([header, Buffer.alloc(6_000_000), Buffer.from(COMPLETE)]);
}

describe('archives of what a program gets', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(path.join(os.tmpdir(), 'given-'))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const UNPACKERS = [['tar'], ['busybox', 'tar']];
  test.skipIf(lacks('tar', 'busybox')).each(UNPACKERS)('[C7] %s %s unpacks it', async (...command) => {
    const contents = { 'a.txt': '', [LONG]: 'x'.repeat(70_000), ключ: 'é', run: '#!/bin/sh' };
    const files = Object.entries(contents).map(([name, text], at) => {
      const source = path.join(folder, `source${at}`);
      writeFileSync(source, text);
      return {
        path: name,
        size: Buffer.byteLength(text),
        executable: name === 'run',
        modifiedAt: 1_600_000_000_400,
        source,
      };
    });
    const parts: Uint8Array[] = [];
    for await (const part of archiveOf({ 'cortex/start': 'text' }, files)) parts.push(part);
    const target = path.join(folder, 'target');
    mkdirSync(target);
    const [program = '', ...args] = command;
    execFileSync(program, [...args, 'xf', '-', '-C', target], { input: Buffer.concat(parts) });
    expect(readFileSync(path.join(target, 'cortex/start'), 'utf8')).toBe('text');
    for (const [name, text] of Object.entries(contents)) {
      const place = path.join(target, 'workspace', name);
      expect(readFileSync(place, 'utf8')).toBe(text);
      expect(statSync(place)).toMatchObject({ mtimeMs: 1_600_000_000_000, mode: name === 'run' ? 0o100755 : 0o100644 });
    }
  });
});

describe('the marker in the output of a container', () => {
  const marker = newMarker();
  const output = `text\0${marker.slice(0, -1)}!${marker.slice(0, 9)}`;
  const bytes = Buffer.from(`${output}${marker}archive`, 'latin1');

  test.each([1, 2, 3, 5, 16, 33, 1_000])(
    '[C7] cut every %i bytes, output and archive are split at it',
    async (size) => {
      const source = new PassThrough();
      const { before, after } = splitAt(source, marker, source);
      const texts = Promise.all([textOf(before), textOf(after)]);
      for (const piece of cut(bytes, size)) source.write(piece);
      source.end();
      expect(await texts).toEqual([output, 'archive']);
    },
  );

  test('[C7] without a marker, all output is the program’s', async () => {
    const source = new PassThrough();
    const { before, after } = splitAt(source, marker, source);
    const texts = Promise.all([textOf(before), textOf(after)]);
    source.end(output, 'latin1');
    expect(await texts).toEqual([output, '']);
  });

  test('[C7] output is passed on when it arrives', async () => {
    const source = new PassThrough();
    const { before } = splitAt(source, marker, source);
    const first = new Promise((resolve) => before.once('data', (chunk: Buffer) => resolve(chunk.toString())));
    source.write('a line\n');
    expect(await first).toBe('a line\n');
  });

  test('[C7] what follows the marker waits for its reader', async () => {
    const source = new PassThrough();
    const { after } = splitAt(source, marker, source);
    source.write(marker, 'latin1');
    source.write(Buffer.alloc(1_000_000));
    await eventually(() => expect(source.isPaused()).toBe(true));
    after.resume();
    await eventually(() => expect(source.isPaused()).toBe(false));
  });
});

async function textOf(stream: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += (chunk as Buffer).toString('latin1');
  return text;
}
