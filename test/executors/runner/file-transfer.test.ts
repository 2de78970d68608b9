/** Files on their way to a runner and back: batches, frames, and answers that are not valid (C7). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { JobWorkspace } from '../../../src/domain/ports/runner.ts';
import type { WorkspaceFile } from '../../../src/domain/workspace.ts';
import { readFiles, sendFiles, wireWorkspace, workspaceResultOf } from '../../../src/executors/runner/file-transfer.ts';
import type { Send } from '../../../src/executors/runner/file-transfer.ts';
import { hashOf } from '../../support/workspace-runner.ts';

const file = (path: string, bytes: Uint8Array): WorkspaceFile => ({
  path,
  sha256: hashOf(bytes),
  size: bytes.length,
  executable: false,
  modifiedAt: 5,
});

function workspaceOf(contents: readonly Uint8Array[]): JobWorkspace {
  const byHash = new Map(contents.map((bytes) => [hashOf(bytes), bytes]));
  return {
    files: contents.map((bytes, at) => file(`f${at}`, bytes)),
    maxBytes: 1_000,
    read: async (sha256) => byHash.get(sha256) ?? Promise.reject(new Error('no such bytes')),
  };
}

/** A runner that stores what it gets, and answers with at most `perAnswer` frames. */
function store(perAnswer = Infinity): {
  readonly send: Send;
  readonly kept: Map<string, Uint8Array>;
  requests: number;
} {
  const kept = new Map<string, Uint8Array>();
  const made = {
    kept,
    requests: 0,
    send: async (method: string, target: string, body: string | Uint8Array): Promise<Uint8Array> => {
      made.requests += 1;
      expect(target).toBe(method === 'PUT' ? '/workspaces/ses_1/files' : '/workspaces/ses_1/files/read');
      if (typeof body !== 'string') {
        for (let at = 0; at < body.length;) {
          const hash = Buffer.from(body.subarray(at, at + 32)).toString('hex');
          const length = Buffer.from(body.subarray(at + 32, at + 36)).readUInt32BE();
          kept.set(hash, body.slice(at + 36, at + 36 + length));
          at += 36 + length;
        }
        return new TextEncoder().encode(JSON.stringify({ stored: kept.size }));
      }
      const { hashes } = JSON.parse(body) as { hashes: string[] };
      return Buffer.concat(hashes.slice(0, perAnswer).map((hash) => frame(hash, kept.get(hash) ?? null)));
    },
  };
  return made;
}

function frame(hash: string, bytes: Uint8Array | null): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes === null ? 0xffff_ffff : bytes.length);
  return Buffer.concat([Buffer.from(hash, 'hex'), length, bytes ?? Buffer.alloc(0)]);
}

async function readAll(hashes: readonly string[], send: Send): Promise<Map<string, Uint8Array>> {
  const read = new Map<string, Uint8Array>();
  for await (const [sha256, bytes] of readFiles('ses_1', hashes, send)) read.set(sha256, bytes);
  return read;
}

describe('[C7] files to a runner', () => {
  test('each missing file is sent once, several in one request', async () => {
    const contents = [new Uint8Array([1]), new Uint8Array(), new Uint8Array([1]), new Uint8Array([2, 3])];
    const runner = store();
    const missing = new Set(contents.map(hashOf));
    missing.delete(hashOf(new Uint8Array([2, 3])));
    await sendFiles('ses_1', workspaceOf(contents), missing, runner.send);
    expect([...runner.kept.values()].map((bytes) => [...bytes])).toEqual([[1], []]);
    expect(runner.requests).toBe(1);
  });

  test('a request holds at most its bytes, or one larger file', async () => {
    const part = (seed: number, size: number): Uint8Array => new Uint8Array(size).fill(seed);
    const half = limits.workspaceTransferBytes / 2;
    const contents = [part(1, half), part(2, half), part(3, half), part(4, limits.workspaceTransferBytes + 1)];
    const runner = store();
    await sendFiles('ses_1', workspaceOf(contents), new Set(contents.map(hashOf)), runner.send);
    expect(runner.kept.size).toBe(4);
    expect(runner.requests).toBeGreaterThanOrEqual(3);
  });
});

describe('[C7] files from the object storage on their way to a runner', () => {
  test('are read several at once, and in order', async () => {
    const contents = Array.from({ length: 10 }, (_, at) => new Uint8Array([at]));
    const runner = store();
    const { read, ...workspace } = workspaceOf(contents);
    let underWay = 0;
    let most = 0;
    const slow = async (sha256: string): Promise<Uint8Array> => {
      underWay += 1;
      most = Math.max(most, underWay);
      const bytes = await read(sha256);
      underWay -= 1;
      return bytes;
    };
    await sendFiles('ses_1', { ...workspace, read: slow }, new Set(contents.map(hashOf)), runner.send);
    expect([...runner.kept].map(([sha256, bytes]) => hashOf(bytes) === sha256)).toEqual(contents.map(() => true));
    expect([most, runner.requests]).toEqual([limits.objectsAtOnce, 1]);
  });
});

describe('[C7] files from a runner', () => {
  const contents = [new Uint8Array([1]), new Uint8Array(), new Uint8Array([2, 3])];
  const filled = (perAnswer?: number): ReturnType<typeof store> => {
    const runner = store(perAnswer);
    for (const bytes of contents) runner.kept.set(hashOf(bytes), bytes);
    return runner;
  };

  test.each([1, 2, 3])('in answers of %i files', async (perAnswer) => {
    const read = await readAll(contents.map(hashOf), filled(perAnswer).send);
    expect([...read.values()].map((bytes) => [...bytes])).toEqual(contents.map((bytes) => [...bytes]));
  });

  const cases: readonly (readonly [string, Send])[] = [
    ['it does not have one', async () => frame(hashOf('x'), null)],
    ['its answer ends in a frame', async () => frame(hashOf('x'), new Uint8Array(9)).subarray(0, 40)],
    ['its answer ends in a head', async () => frame(hashOf('x'), new Uint8Array(9)).subarray(0, 20)],
    ['it sends nothing', async () => new Uint8Array()],
    ['it sends other files again and again', async () => frame(hashOf('y'), new Uint8Array(1))],
  ];
  test.each(cases)('fails if %s', async (_, send) => {
    await expect(readAll([hashOf('x')], send)).rejects.toMatchObject({ code: 'runner_unavailable' });
  });
});

describe('[C7] the formats of a job', () => {
  test('its files', () => {
    const [plain, program] = [file('a', new Uint8Array([1])), { ...file('b', new Uint8Array([2])), executable: true }];
    expect(wireWorkspace({ files: [plain, program], maxBytes: 9, read: async () => new Uint8Array() })).toEqual({
      files: [
        { path: 'a', sha256: plain.sha256, size: 1, modified_at: 5 },
        { path: 'b', sha256: program.sha256, size: 1, executable: true, modified_at: 5 },
      ],
      max_bytes: 9,
    });
  });

  test('what it left', () => {
    const [before, after] = [hashOf('1'), hashOf('2')];
    expect(
      workspaceResultOf({
        changes: [
          { path: 'a', base: before, sha256: after, size: 1, executable: true },
          { path: 'b', base: before, deleted: true },
        ],
        skipped: [{ path: 'l', reason: 'a symbolic link' }],
        skipped_count: 7,
        error: null,
      }),
    ).toEqual({
      changes: [
        { path: 'a', base: before, sha256: after, size: 1, executable: true },
        { path: 'b', base: before, deleted: true },
      ],
      skipped: [{ path: 'l', reason: 'a symbolic link' }],
      skippedCount: 7,
      error: null,
    });
  });

  test('long texts of a report are cut', () => {
    const long = 'x'.repeat(100_000);
    const error = { code: 'workspace_full', message: long };
    const skipped = Array.from({ length: 1_000 }, () => ({ path: long, reason: long }));
    const report = workspaceResultOf({ changes: [], skipped, skipped_count: 1_000, error });
    expect(report?.skipped).toHaveLength(limits.workspaceSkippedShown);
    expect(report?.skippedCount).toBe(1_000);
    expect(JSON.stringify(report).length).toBeLessThan(50_000);
  });

  test.each([
    ['nothing', {}],
    ['a path that leaves the folder', { changes: [{ path: '../x', base: null, sha256: hashOf('1'), size: 1 }] }],
    ['no hash', { changes: [{ path: 'x', base: null, sha256: '../../x', size: 1 }] }],
    ['no base', { changes: [{ path: 'x', sha256: hashOf('1'), size: 1 }] }],
    ['a size that is no number', { changes: [{ path: 'x', base: null, sha256: hashOf('1'), size: '1' }] }],
    ['an entry that is no object', { changes: [1] }],
    ['a negative size', { changes: [{ path: 'x', base: null, sha256: hashOf('1'), size: -1 }] }],
    ['a size over the limit', { changes: [{ path: 'x', base: null, sha256: hashOf('1'), size: 1e9 }] }],
    ['a path twice', { changes: Array.from({ length: 2 }, () => ({ path: 'x', base: hashOf('1'), deleted: true })) }],
    [
      'more changes than files',
      {
        changes: Array.from({ length: 2 * limits.workspaceFiles + 1 }, (_, at) => ({
          path: `x${at}`,
          base: hashOf('1'),
          deleted: true,
        })),
      },
    ],
  ])('a report with %s is not used', (_, report) => {
    expect(workspaceResultOf(report)).toBe(null);
  });
});
