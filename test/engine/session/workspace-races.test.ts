/** The workspace of a session when things happen at the same time: commits, crashes, forks, deletion, and runners that lie (C7). */
import { describe, expect, test, vi } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { JobResult } from '../../../src/domain/ports/runner.ts';
import { pathIssue } from '../../../src/domain/workspace.ts';
import type { WorkspaceFile } from '../../../src/domain/workspace.ts';
import { ForkTarget } from '../../../src/engine/session/session-fork.ts';
import { freePath, uploadPath } from '../../../src/engine/session/upload-path.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { FakeObjects } from '../../support/fake-objects.ts';
import { FORK_RECORD } from '../../support/forked.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { runText, sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { hashOf } from '../../support/workspace-runner.ts';
import { action, kitWith, paths } from './workspace-kit.ts';
import type { WorkspaceKit } from './workspace-kit.ts';

const DONE = '<response final="true">ok</response>';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const rows = (kit: SessionKit): unknown[] => kit.sql.exec(`SELECT sha256 FROM message_files`);

/** The files of every job are reported as this makes them. */
function reports(kit: WorkspaceKit, make: (result: JobResult) => JobResult): void {
  const { run } = kit.runner;
  kit.runner.run = async (job, observe) => make(await run(job, observe));
}

const committing = (key: string): Parameters<SessionKit['session']['workspace']['ofAttempt']>[0] => ({
  key,
  run: 1,
  signal: new AbortController().signal,
  atomically: (body) => body(),
  append: () => undefined,
  warn: () => undefined,
});

const left = (path: string, text: string, base: string | null = null): NonNullable<JobResult['workspace']> => ({
  changes: [{ path, base, sha256: hashOf(text), size: bytesOf(text).length, executable: false }],
  skipped: [],
  skippedCount: 0,
  error: null,
  read: async function* (hashes) {
    for (const sha256 of hashes) yield [sha256, bytesOf(text)];
  },
});

describe('[C7] a long action', () => {
  test('an object that it holds does not wake the host again and again, and is deleted after it', async () => {
    const objects = new FakeObjects();
    const kit = await kitWith({ objects });
    const { workspace } = kit.session;
    const large = (seed: number): Uint8Array => new Uint8Array(limits.objectFileLeastBytes).fill(seed);
    await workspace.write([{ path: 'a.bin', bytes: large(1) }]);
    const gate = Promise.withResolvers<void>();
    const using = workspace.ofAttempt(committing('1/1/1')).use(() => gate.promise);
    await workspace.write([{ path: 'a.bin', bytes: large(2) }]);
    kit.clock.advance(limits.releasedFileMs);
    await kit.session.wake();
    expect(objects.objects.size).toBe(2);
    expect(kit.session.nextWake()).toBeGreaterThan(kit.clock.now());
    gate.resolve();
    await using;
    kit.clock.advance(limits.objectRetryMs);
    await kit.session.wake();
    expect([...objects.objects.values()]).toEqual([large(2)]);
  });
});

describe('[C7] commits', () => {
  test('[J2] a commit whose files were there already is not repeated after a crash', async () => {
    const kit = await kitWith();
    const { workspace } = kit.session;
    // A run that is open.
    const running = runText(kit, action('a', 'wait gate'), DONE);
    await settle();
    await workspace.write([{ path: 'x.txt', bytes: bytesOf('same') }]);
    const attempt = workspace.ofAttempt(committing('1/1/1'));
    expect(await attempt.commit(left('x.txt', 'same'))).toBeNull();
    await workspace.write([{ path: 'x.txt', bytes: bytesOf('newer') }]);
    expect(await attempt.commit(left('x.txt', 'same'))).toBeNull();
    expect(workspace.file('x.txt')?.sha256).toBe(hashOf('newer'));
    kit.runner.open('gate');
    await running;
  });

  test('files of others in the way of a new file are named in a warning', async () => {
    const kit = await kitWith();
    const running = runText(kit, action('a', 'wait gate\nwrite out all'), DONE);
    await settle();
    await kit.session.workspace.write([{ path: 'out/theirs.txt', bytes: bytesOf('x') }]);
    kit.runner.open('gate');
    await running;
    expect(paths(kit)).toEqual(['out']);
    expect(kit.events.filter(({ type }) => type === 'warning').map(({ data }) => data)).toEqual([
      { code: 'workspace_conflict', message: expect.stringContaining('"out/theirs.txt"') as string },
    ]);
  });

  test('a program that replaces a folder of its own with a file has no conflict', async () => {
    const kit = await kitWith();
    await runText(kit, action('a', 'write out/x.txt 1'), DONE);
    await runText(kit, action('b', 'delete out/x.txt\nwrite out all'), DONE);
    expect([paths(kit), kit.events.filter(({ type }) => type === 'warning')]).toEqual([['out'], []]);
  });

  test('a wrong size fails the action, also of bytes that are stored already', async () => {
    for (const known of [false, true]) {
      const kit = await kitWith();
      if (known) await kit.session.workspace.write([{ path: 'x.txt', bytes: bytesOf('12345') }]);
      const before = paths(kit);
      reports(kit, (result) => ({
        ...result,
        workspace: { ...left('new.txt', '12345'), changes: [{ ...changeOf('new.txt', '12345'), size: 1 }] },
      }));
      const { actions } = await runText(kit, action('a', 'exit 0'), DONE);
      expect(actions[0]?.error).toMatchObject({
        code: 'workspace_lost',
        message: expect.stringContaining('wrong size of "new.txt"') as string,
      });
      expect([paths(kit), rows(kit)]).toEqual([before, known ? [{ sha256: hashOf('12345') }] : []]);
    }
  });

  test('several objects are put at once, and a failure of one fails the action', async () => {
    for (const fails of [false, true]) {
      const objects = new FakeObjects();
      const kit = await kitWith({ objects });
      const texts = Array.from({ length: 9 }, (_, at) => String(at).repeat(limits.objectFileLeastBytes));
      let most = 0;
      let underWay = 0;
      objects.before = async () => {
        underWay += 1;
        most = Math.max(most, underWay);
        await settle();
        underWay -= 1;
        if (fails) throw new Error('down');
      };
      const code = texts.map((text, at) => `write ${at}.bin ${text}`).join('\n');
      const running = runText(kit, action('a', code), DONE);
      for (let turn = 0; turn < 20; turn += 1) {
        await settle();
        kit.clock.advance(1);
      }
      kit.clock.advance(limits.objectTimeoutMs);
      const { actions } = await running;
      expect(actions[0]?.error?.code).toBe(fails ? 'workspace_lost' : undefined);
      expect(paths(kit)).toHaveLength(fails ? 0 : texts.length);
      expect(most).toBe(limits.objectsAtOnce);
    }
  });

  test('files of a program that was stopped do not count, whatever the runner reports', async () => {
    const kit = await kitWith();
    reports(kit, (result) => ({ ...result, end: 'timeout', workspace: left('x.txt', '1') }));
    const { actions } = await runText(kit, action('a', 'exit 0'), DONE);
    expect([actions[0]?.error?.code, paths(kit)]).toEqual(['timeout', []]);
  });
});

function changeOf(
  path: string,
  text: string,
): { path: string; base: null; sha256: string; size: number; executable: false } {
  return { path, base: null, sha256: hashOf(text), size: bytesOf(text).length, executable: false };
}

describe('[C7] writes', () => {
  test('[T5] after the session was closed store nothing, neither a row nor an object', async () => {
    const objects = new FakeObjects();
    const kit = await kitWith({ objects });
    await kit.session.workspace.write([{ path: 'kept.txt', bytes: bytesOf('kept') }]);
    const large = new Uint8Array(limits.objectFileLeastBytes);
    const writes = [
      kit.session.workspace.write([{ path: 'a.bin', bytes: large }]),
      kit.session.workspace.write([{ path: 'a.txt', bytes: bytesOf('a') }]),
    ];
    const ended = Promise.allSettled(writes);
    await kit.session.close('deleted');
    for (const end of await ended) expect(end).toMatchObject({ reason: { code: 'unknown_session' } });
    expect([objects.objects.size, rows(kit)]).toEqual([0, [{ sha256: hashOf('kept') }]]);
  });

  test('of an action that was stopped change nothing', async () => {
    const kit = await kitWith();
    const stop = new AbortController();
    const attempt = kit.session.workspace.ofAttempt({ ...committing('1/1/1'), signal: stop.signal });
    const writing = attempt.write([{ path: 'skills/x/y.txt', bytes: bytesOf('y') }]);
    stop.abort(new Error('cancelled'));
    await expect(writing).rejects.toThrow('cancelled');
    expect([paths(kit), rows(kit)]).toEqual([[], []]);
  });

  test('answer with what they wrote, also if it is gone before it is durable', async () => {
    const kit = await kitWith();
    const { workspace } = kit.session;
    await workspace.write([{ path: 'x.txt', bytes: bytesOf('one') }]);
    vi.spyOn(kit.sql, 'sync').mockImplementationOnce(async () => void (await workspace.remove('x.txt')));
    const [file] = await workspace.write([{ path: 'x.txt', bytes: bytesOf('two') }]);
    expect([file?.sha256, paths(kit)]).toEqual([hashOf('two'), []]);
  });
});

describe('[C7] a workspace over its limit', () => {
  test('because its object storage was taken away, may shrink in steps, and not grow', async () => {
    const sql = openNodeSql();
    const large = (seed: number): Uint8Array => new Uint8Array(limits.workspaceFileBytes).fill(seed);
    const before = await kitWith({ sql, objects: new FakeObjects() });
    for (const at of [1, 2, 3, 4]) await before.session.workspace.write([{ path: `${at}.bin`, bytes: large(at) }]);
    const { workspace } = (await kitWith({ sql })).session;
    expect(workspace.maxBytes).toBe(2 * limits.workspaceFileBytes);
    await workspace.remove('1.bin');
    await expect(workspace.write([{ path: 'new', bytes: bytesOf('x') }])).rejects.toMatchObject({
      code: 'workspace_full',
    });
    await workspace.write([{ path: '2.bin', bytes: bytesOf('x') }]);
    expect(workspace.list().map(({ size }) => size)).toEqual([1, limits.workspaceFileBytes, limits.workspaceFileBytes]);
  });
});

describe('[C7] [C4] a fork', () => {
  test('has the files of its beginning, also those that are gone before they are sent', async () => {
    const kit = await kitWith();
    await runText(kit, action('a', 'write x.txt old'), DONE);
    const sql = openNodeSql();
    const target = new ForkTarget(new Journal(sql), FORK_RECORD, null);
    const reader = kit.session.forkPages(kit.session.runs(1)[0] ?? null)[Symbol.asyncIterator]();
    const first = reader.next();
    await kit.session.workspace.remove('x.txt');
    for (let page = await first; page.done !== true; page = await reader.next()) await target.take(page.value);
    await target.finish();
    const other = await sessionKit({ sql });
    expect(paths(other)).toEqual(['x.txt']);
    expect(await other.session.workspace.read(hashOf('old'))).toEqual(bytesOf('old'));
    expect(rows(kit)).toEqual([]);
  });
});

describe('[C7] [C2] the path of an upload', () => {
  const of = (path: string, sha256: string): WorkspaceFile => ({
    path,
    sha256,
    size: 1,
    executable: false,
    modifiedAt: 1,
  });

  test('is free, or that of the same file', () => {
    expect(freePath('x.csv', 'a', [])).toBe('uploads/x.csv');
    expect(freePath('x.csv', 'a', [of('uploads/x.csv', 'a')])).toBe('uploads/x.csv');
    expect(freePath('x.csv', 'b', [of('uploads/x.csv', 'a'), of('x.csv', 'b')])).toBe('uploads/x-2.csv');
    expect(freePath('x', 'a', [of('uploads/x/y', 'a'), of('uploads/x-2', 'b')])).toBe('uploads/x-3');
  });

  test.each([
    ['data.csv', 'uploads/data.csv', 'uploads/data-2.csv'],
    ['/etc/passwd', 'uploads/passwd', 'uploads/passwd-2'],
    ['..', 'uploads/file', 'uploads/file-2'],
    ['a\nb<c>.txt', 'uploads/a_b_c_.txt', 'uploads/a_b_c_-2.txt'],
    ['.env', 'uploads/.env', 'uploads/.env-2'],
  ])('%j', (name, first, second) => {
    expect([uploadPath(name, 1), uploadPath(name, 2)]).toEqual([first, second]);
  });

  test.each([`${'\u6f22'.repeat(81)}.csv`, `a.${'\u6f22'.repeat(84)}`, `\u{1f600}${'x'.repeat(300)}`, '\ud800.csv'])(
    'is allowed and differs for each number, however long the name %j is',
    (name) => {
      const made = Array.from({ length: limits.workspaceFiles }, (_, at) => uploadPath(name, at + 1));
      expect(made.map(pathIssue).filter((issue) => issue !== null)).toEqual([]);
      expect(new Set(made).size).toBe(made.length);
    },
  );
});
