/** The bytes of a workspace: limits, crashes, where they are stored, and uploads (C7). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { FakeObjects } from '../../support/fake-objects.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { runText, settle } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';
import { hashOf, workspaceRunner } from '../../support/workspace-runner.ts';
import { action, dataOf, kitWith, paths, stored, textAt } from './workspace-kit.ts';
import type { WorkspaceKit } from './workspace-kit.ts';
import { splitRows } from '../../support/event-sql.ts';

describe('[C7] limits', () => {
  const bytesOf = (size: number, seed: number): Uint8Array => new Uint8Array(size).fill(seed);

  test('too many files, too large a file and too many bytes are refused as a whole', async () => {
    const kit = await kitWith();
    const { workspace } = kit.session;
    const many = Array.from({ length: limits.workspaceFiles }, (_, at) => ({ path: `f/${at}`, bytes: bytesOf(1, 1) }));
    await workspace.write(many);
    await expect(workspace.write([{ path: 'one-more', bytes: bytesOf(1, 1) }])).rejects.toMatchObject({
      code: 'workspace_full',
      message: expect.stringContaining('2001 files (allowed: 2000)') as string,
    });
    await workspace.write([{ path: 'f/0', bytes: bytesOf(2, 2) }]);
    expect(await workspace.remove('f')).toHaveLength(limits.workspaceFiles);
    const large = bytesOf(limits.workspaceFileBytes + 1, 1);
    await expect(workspace.write([{ path: 'x', bytes: large }])).rejects.toMatchObject({ code: 'workspace_full' });
    const half = limits.workspaceBytes / 2;
    await workspace.write([
      { path: 'a', bytes: bytesOf(half, 1) },
      { path: 'b', bytes: bytesOf(half, 2) },
    ]);
    await expect(workspace.write([{ path: 'c', bytes: bytesOf(1, 3) }])).rejects.toMatchObject({
      code: 'workspace_full',
    });
    // Replacing a file needs no room beside it.
    await workspace.write([{ path: 'a', bytes: bytesOf(half, 3) }]);
    expect(workspace.list().map(({ path }) => path)).toEqual(['a', 'b']);
  });

  test('an action whose files do not fit beside those of others fails', async () => {
    const kit = await kitWith();
    const fill = Array.from({ length: limits.workspaceFiles - 1 }, (_, at) => ({
      path: `f${at}`,
      bytes: bytesOf(1, 1),
    }));
    const running = runText(
      kit,
      action('a', 'wait gate\nwrite a.txt 1\nwrite b.txt 2'),
      '<response final="true">ok</response>',
    );
    await settle();
    await kit.session.workspace.write(fill);
    kit.runner.open('gate');
    const { actions } = await running;
    expect(actions[0]?.error).toMatchObject({ code: 'workspace_full' });
    expect(kit.session.workspace.list()).toHaveLength(limits.workspaceFiles - 1);
    // Its bytes are not kept either.
    expect(stored(kit)).toEqual([createHash('sha256').update(bytesOf(1, 1)).digest('hex')]);
  });

  test('a path outside of the workspace is refused', async () => {
    const kit = await kitWith();
    await expect(kit.session.workspace.write([{ path: '../x', bytes: new Uint8Array() }])).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });
});

describe('[C7] crashes', () => {
  test('[J2] a job whose files were committed before the crash commits them once', async () => {
    const sql = openNodeSql();
    const clock = new VirtualClock();
    const runner = workspaceRunner();
    const first = await kitWith({ sql, clock }, runner);
    const posted = `${action('a', 'write x.txt one')}${action('b', 'wait gate', { depends_on: ['a'] })}<response final="true">$b</response>`;
    await first.session.execute(
      (async function* () {
        yield posted;
      })(),
      posted,
    );
    await settle();
    expect(paths(first)).toEqual(['x.txt']);
    // The outcome of the action was not recorded: the next host asks the runner again.
    splitRows(sql);
    sql.exec(`DELETE FROM events WHERE type IN ('action_completed', 'action_started') AND action_id = 'b'`);
    sql.exec(`DELETE FROM events WHERE type = 'action_completed' AND action_id = 'a'`);
    const second = await kitWith({ sql, clock }, runner);
    await second.session.workspace.write([{ path: 'x.txt', bytes: new TextEncoder().encode('newer') }]);
    await second.session.recover();
    await settle();
    runner.open('gate');
    await settle();
    expect(await textAt(second, 'x.txt')).toBe('newer');
  });

  test('[J2] a job that ended during the crash commits its files when it is found', async () => {
    const sql = openNodeSql();
    const clock = new VirtualClock();
    const runner = workspaceRunner();
    let isGone = false;
    const lost = {
      ...sql,
      exec: (...statement: Parameters<typeof sql.exec>) => (isGone ? [] : sql.exec(...statement)),
    };
    const first = await kitWith({ sql: lost, clock }, runner);
    const posted = `${action('a', 'wait gate\nwrite x.txt one')}<response final="true">ok</response>`;
    await first.session.execute(
      (async function* () {
        yield posted;
      })(),
      posted,
    );
    await settle();
    // The first host is gone: nothing of it is executed any more.
    isGone = true;
    const second = await kitWith({ sql, clock }, runner);
    await second.session.recover();
    await settle();
    runner.open('gate');
    await settle();
    expect(await textAt(second, 'x.txt')).toBe('one');
    expect(dataOf(second, 'file_changed')).toHaveLength(1);
  });

  test('bytes that a crash cut off from their commit are deleted later', async () => {
    const kit = await kitWith();
    await kit.session.workspace.write([{ path: 'x.txt', bytes: new TextEncoder().encode('kept') }]);
    kit.sql.exec(
      `INSERT INTO message_files (sha256, size, place, state, at, in_messages) VALUES ('ab', 1, 'rows', 'pending', ?, 0)`,
      kit.clock.now(),
    );
    kit.sql.exec(`INSERT INTO blobs (sha256, part, bytes) VALUES ('ab', 0, ?)`, new Uint8Array([1]));
    expect(kit.session.nextWake()).toBeLessThanOrEqual(kit.clock.now() + limits.unreferredFileMs);
    kit.clock.advance(limits.unreferredFileMs);
    await kit.session.wake();
    expect(stored(kit)).toEqual([hashOf('kept')]);
  });
});

describe('[C7] the bytes of files', () => {
  const large = (seed: number): Uint8Array => new Uint8Array(limits.objectFileLeastBytes).fill(seed);

  test('large files are objects if there is object storage, and are deleted some time after their last use', async () => {
    const objects = new FakeObjects();
    const kit = await kitWith({ objects });
    const { workspace } = kit.session;
    await workspace.write([{ path: 'a.bin', bytes: large(1) }]);
    expect([...objects.objects.keys()]).toHaveLength(1);
    expect(workspace.maxBytes).toBe(limits.workspaceObjectBytes);
    expect(await workspace.read(workspace.file('a.bin')?.sha256 ?? '')).toEqual(large(1));
    await workspace.write([{ path: 'a.bin', bytes: large(2) }]);
    expect([...objects.objects.keys()]).toHaveLength(2);
    expect(kit.session.nextWake()).toBe(kit.clock.now() + limits.releasedFileMs);
    kit.clock.advance(limits.releasedFileMs);
    await kit.session.wake();
    expect([...objects.objects.values()]).toEqual([large(2)]);
  });

  test('an object storage that fails refuses the write, and nothing changes', async () => {
    const objects = new FakeObjects();
    const kit = await kitWith({ objects });
    objects.before = () => Promise.reject(new Error('down'));
    const refused = expect(kit.session.workspace.write([{ path: 'a.bin', bytes: large(1) }])).rejects.toMatchObject({
      code: 'storage_unavailable',
    });
    await settle();
    kit.clock.advance(limits.objectTimeoutMs);
    await refused;
    expect(paths(kit)).toEqual([]);
  });

  test('a running action reads files that others have replaced meanwhile', async () => {
    const kit = await kitWith();
    await kit.session.workspace.write([{ path: 'x.txt', bytes: new TextEncoder().encode('old') }]);
    const run = kit.runner.run;
    const begun = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    kit.runner.run = async (job, observe) => {
      begun.resolve();
      await go.promise;
      return await run(job, observe);
    };
    const running = runText(kit, action('a', 'cat x.txt'), '<response final="true">$a</response>');
    await begun.promise;
    await kit.session.workspace.write([{ path: 'x.txt', bytes: new TextEncoder().encode('new') }]);
    expect(stored(kit)).toContain(hashOf('old'));
    go.resolve();
    expect((await running).response).toBe('old');
    expect([await textAt(kit, 'x.txt'), stored(kit)]).toEqual(['new', [hashOf('new')]]);
  });

  test('a file of a message stays when the workspace no longer has it', async () => {
    const kit = await kitWith({ script: ['<response final="true">ok</response>'] });
    const bytes = new TextEncoder().encode('a,b');
    const part = { type: 'file', name: 'data.csv', media_type: 'text/csv', size: 3, sha256: hashOf(bytes) } as const;
    const run = await send(kit, [part], { files: new Map([[part.sha256, bytes]]) });
    await kit.session.ended(run.run);
    expect(paths(kit)).toEqual(['uploads/data.csv']);
    await kit.session.workspace.remove('uploads');
    expect(paths(kit)).toEqual([]);
    expect((await kit.session.read().content(part.sha256)).bytes).toEqual(bytes);
  });
});

describe('[C7] [C2] uploads', () => {
  async function upload(kit: WorkspaceKit, name: string, content: string): Promise<void> {
    const bytes = new TextEncoder().encode(content);
    const part = { type: 'file', name, media_type: 'text/csv', size: bytes.length, sha256: hashOf(bytes) } as const;
    const run = await send(kit, [{ type: 'text', text: 'look' }, part], { files: new Map([[part.sha256, bytes]]) });
    await kit.session.ended(run.run);
  }

  test('appear under their names; another file of the same name gets a number', async () => {
    const kit = await kitWith();
    await upload(kit, 'data.csv', '1');
    await upload(kit, 'data.csv', '1');
    await upload(kit, 'data.csv', '2');
    expect(paths(kit)).toEqual(['uploads/data-2.csv', 'uploads/data.csv']);
    expect(await textAt(kit, 'uploads/data-2.csv')).toBe('2');
  });

  test('files of a seeded history appear, too', async () => {
    const bytes = new TextEncoder().encode('seeded');
    const part = { type: 'file', name: 's.txt', media_type: 'text/plain', size: 6, sha256: hashOf(bytes) } as const;
    const kit = await kitWith({
      history: [{ role: 'user', content: [part] }],
      historyFiles: new Map([[part.sha256, bytes]]),
    });
    expect(await textAt(kit, 'uploads/s.txt')).toBe('seeded');
  });

  test('an upload that does not fit is still a file of its message', async () => {
    const kit = await kitWith();
    const fill = Array.from({ length: limits.workspaceFiles }, (_, at) => ({
      path: `f${at}`,
      bytes: new Uint8Array([1]),
    }));
    await kit.session.workspace.write(fill);
    await upload(kit, 'data.csv', '1');
    expect(paths(kit)).not.toContain('uploads/data.csv');
    expect((await kit.session.read().content(hashOf('1'))).name).toBe('data.csv');
  });
});
