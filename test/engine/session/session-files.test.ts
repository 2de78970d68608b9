/** Large files of messages in the object storage: the order of writes, failures, crashes, and files that no message has. */
import { createHash } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import type { FilePart } from '../../../src/domain/content.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { RunRecord } from '../../../src/domain/session.ts';
import { VIEW } from '../../../src/http/view.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { FakeObjects } from '../../support/fake-objects.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { say, sessionKit, settle, textOf } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';
import { SESSION_ID } from '../../journal/journal-kit.ts';
import { createOptionalTables } from '../../support/optional-tables.ts';

const LARGE: number = limits.objectFileLeastBytes;
const KEY = (sha256: string): string => `sessions/${SESSION_ID}/0/${sha256}`;

interface File {
  readonly part: FilePart;
  readonly bytes: Uint8Array;
}

function file(name: string, size = LARGE): File {
  const bytes = Uint8Array.from({ length: size }, (_, at) => (at * 7 + name.charCodeAt(0)) % 251);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { bytes, part: { type: 'image', name, media_type: 'image/png', size, sha256 } };
}

const A = file('a.png');
const B = file('b.png', 3 * LARGE + 1);
const SMALL = file('c.png', LARGE - 1);

interface Kit extends SessionKit {
  readonly objects: FakeObjects;
  send(files: readonly File[], more?: { readonly key?: string }): Promise<RunRecord>;
  /** What is stored: runs, rows with bytes, and the state of each file. */
  stored(): unknown;
}

async function kitWith(options: KitOptions & { readonly objects?: FakeObjects } = {}): Promise<Kit> {
  const objects = options.objects ?? new FakeObjects();
  const kit = await sessionKit({ ...options, objects });
  createOptionalTables(kit.sql);
  const count = (table: string): unknown => kit.sql.exec(`SELECT COUNT(*) AS n FROM ${table}`)[0]?.['n'];
  return {
    ...kit,
    objects,
    send: async (files, { key } = {}) =>
      await send(
        kit,
        files.map(({ part }) => part),
        { files: new Map(files.map(({ part, bytes }) => [part.sha256, bytes])), idempotencyKey: key ?? null },
      ),
    stored: () => ({
      runs: count('runs'),
      rows: count('blobs'),
      files: kit.sql.exec(`SELECT name, place, state FROM message_files ORDER BY id`).map((row) => ({ ...row })),
    }),
  };
}

const inObject = (name: string, state = 'stored'): unknown => ({ name, place: 'object', state });

describe('[C2] files of messages in the object storage', () => {
  test('large files are objects, small ones are rows; both are read again', async () => {
    const kit = await kitWith();
    const run = await kit.send([A, B, SMALL]);
    await kit.session.ended(run.run);
    expect([...kit.objects.objects.keys()]).toEqual([KEY(A.part.sha256), KEY(B.part.sha256)]);
    expect(kit.stored()).toEqual({
      runs: 1,
      rows: 1,
      files: [inObject('a.png'), inObject('b.png'), { name: 'c.png', place: 'rows', state: 'stored' }],
    });
    for (const { part, bytes } of [A, B, SMALL]) {
      const { bytes: read, ...rest } = await kit.session.read().content(part.sha256);
      expect(Buffer.from(read).equals(Buffer.from(bytes))).toBe(true);
      expect(rest).toEqual({ id: part.sha256, name: part.name, content_type: 'image/png' });
    }
    const attached = kit.requests[0]?.messages.flatMap(({ attachments = [] }) => attachments) ?? [];
    expect((await Promise.all(attached.map(({ read }) => read()))).map(({ length }) => length)).toEqual([
      A.bytes.length,
      B.bytes.length,
      SMALL.bytes.length,
    ]);
  });

  test('the same bytes are put once, also in later messages', async () => {
    const kit = await kitWith();
    await kit.send([A]);
    await kit.send([A, B]);
    expect(kit.objects.calls.filter(([method]) => method === 'put')).toHaveLength(2);
    expect(kit.stored()).toMatchObject({ runs: 2, files: [inObject('a.png'), inObject('b.png')] });
  });

  test('the row of an object is durable before it is put, and the run follows the object', async () => {
    const sql = openNodeSql();
    const kit = await kitWith({ sql });
    const seen: unknown[] = [];
    const sync = vi.spyOn(sql, 'sync').mockImplementation(async () => void seen.push(kit.stored()));
    kit.objects.before = (method) => void seen.push(method);
    await kit.send([A]);
    sync.mockRestore();
    // Turns of the run itself may follow.
    expect(seen.slice(0, 3)).toEqual([
      { runs: 0, rows: 0, files: [inObject('a.png', 'pending')] },
      'put',
      { runs: 1, rows: 0, files: [inObject('a.png')] },
    ]);
  });

  test('the host is held while files are put, with an alarm for the case that it ends', async () => {
    const wakes: unknown[] = [];
    const kit: Kit = await kitWith({ hold: () => void wakes.push(kit.session.nextWake()) });
    kit.objects.before = () => void wakes.push('put');
    const sent = kit.send([A]);
    await sent;
    expect(wakes.slice(0, 2)).toEqual([kit.clock.now() + limits.unreferredFileMs, 'put']);
  });

  test('one failed put is repeated; two are 503, and nothing of the message is stored', async () => {
    const kit = await kitWith();
    let failures = 1;
    kit.objects.before = (method) => {
      if (method === 'put' && (failures -= 1) >= 0) throw new Error('R2 is away');
    };
    await kit.send([A]);
    failures = 2;
    await expect(kit.send([B, SMALL])).rejects.toMatchObject({ code: 'storage_unavailable', status: 503 });
    expect(kit.stored()).toEqual({ runs: 1, rows: 0, files: [inObject('a.png'), inObject('b.png', 'pending')] });
    // The same message again is accepted.
    await kit.send([B, SMALL]);
    expect(kit.stored()).toMatchObject({ runs: 2, rows: 1 });
  });

  test('the object of a message that failed is deleted like that of a host that ended', async () => {
    const kit = await kitWith();
    kit.objects.before = (method, key) => {
      if (method !== 'put') return;
      kit.objects.objects.set(key, B.bytes);
      throw new Error('the answer was lost');
    };
    await expect(kit.send([B])).rejects.toMatchObject({ code: 'storage_unavailable' });
    kit.clock.advance(limits.unreferredFileMs);
    await kit.session.wake();
    expect([kit.objects.objects.size, kit.stored()]).toMatchObject([0, { files: [] }]);
  });

  test('a put without an answer ends after its time', async () => {
    const kit = await kitWith();
    kit.objects.before = () => new Promise(() => undefined);
    const sent = kit.send([A]);
    const refused = expect(sent).rejects.toMatchObject({ code: 'storage_unavailable' });
    await settle();
    kit.clock.advance(limits.objectTimeoutMs);
    await refused;
  });

  test('the checks are repeated after the put: a repeated message has one run', async () => {
    const kit = await kitWith();
    const [one, other] = await Promise.all([kit.send([A], { key: 'k' }), kit.send([A], { key: 'k' })]);
    expect(one.run).toBe(other.run);
    expect(kit.stored()).toMatchObject({ runs: 1, files: [inObject('a.png')] });
    expect(kit.objects.objects.size).toBe(1);
  });

  test('what is refused before its files are put puts none', async () => {
    const kit = await kitWith();
    await kit.send([SMALL], { key: 'k' });
    await expect(kit.send([A], { key: 'k' })).rejects.toMatchObject({ code: 'idempotency_mismatch' });
    expect(kit.objects.calls).toEqual([]);
  });

  test('a session that is closed while files are put accepts nothing and writes nothing', async () => {
    const kit = await kitWith();
    const put = Promise.withResolvers<void>();
    kit.objects.before = () => put.promise;
    const sent = kit.send([A]);
    const refused = expect(sent).rejects.toMatchObject({ code: 'unknown_session' });
    await settle();
    await kit.session.close('the session was deleted');
    expect(kit.session.objects).toEqual({ prefix: KEY(''), isPending: true });
    put.resolve();
    await refused;
    expect(kit.stored()).toEqual({ runs: 0, rows: 0, files: [inObject('a.png', 'pending')] });
  });

  test('objects of a session have a limit, and so have messages whose files are being put', async () => {
    const kit = await kitWith();
    await kit.send([A]);
    const most = limits.sessionObjectBytes;
    kit.sql.exec(`UPDATE message_files SET size = ?`, most - B.bytes.length + 1);
    await expect(kit.send([B])).rejects.toMatchObject({ code: 'session_full' });
    kit.sql.exec(`UPDATE message_files SET size = ?`, 0);
    kit.objects.before = () => new Promise(() => undefined);
    for (let n = 0; n < limits.stagedMessages; n += 1) void kit.send([B]).catch(() => undefined);
    await settle();
    await expect(kit.send([B])).rejects.toMatchObject({ code: 'queue_full' });
  });
});

describe('[C2] objects that no message has', () => {
  /** A host that ended between the put and the run: the next one has the same database and objects. */
  async function afterCrash(): Promise<{ readonly kit: Kit; readonly announcedAt: number }> {
    const [sql, clock, objects] = [openNodeSql(), new VirtualClock(), new FakeObjects()];
    const first = await kitWith({ sql, clock, objects });
    objects.before = async (method, key) => {
      if (method !== 'put') return;
      objects.objects.set(key, A.bytes);
      await new Promise(() => undefined);
    };
    void first.send([A]).catch(() => undefined);
    await settle();
    objects.before = () => undefined;
    return { kit: await kitWith({ sql, clock, objects, variables: null }), announcedAt: clock.now() };
  }

  test('are deleted by the alarm after their time', async () => {
    const { kit, announcedAt } = await afterCrash();
    expect(kit.session.nextWake()).toBe(announcedAt + limits.unreferredFileMs);
    kit.clock.advance(limits.unreferredFileMs - 1);
    await kit.session.wake();
    expect(kit.objects.objects.size).toBe(1);
    kit.clock.advance(1);
    const seen: unknown[] = [];
    const sync = vi.spyOn(kit.sql, 'sync').mockImplementation(async () => void seen.push(kit.stored()));
    kit.objects.before = (method) => void seen.push(method);
    await kit.session.wake();
    sync.mockRestore();
    // Durable before the deletion begins: the next host must not use the object.
    expect(seen.slice(0, 2)).toMatchObject([{ files: [inObject('a.png', 'collecting')] }, 'delete']);
    expect(kit.objects.objects.size).toBe(0);
    expect(kit.stored()).toMatchObject({ files: [] });
    expect(kit.session.nextWake()).toBe(kit.session.expiresAt);
  });

  test('are deleted later if the object storage fails, without a loop', async () => {
    const { kit } = await afterCrash();
    kit.clock.advance(limits.unreferredFileMs);
    kit.objects.before = () => Promise.reject(new Error('R2 is away'));
    await kit.session.wake();
    expect(kit.stored()).toMatchObject({ files: [inObject('a.png', 'collecting')] });
    expect(kit.faults).toHaveLength(1);
    expect(kit.session.nextWake()).toBe(kit.clock.now() + limits.objectRetryMs);
    kit.objects.before = () => undefined;
    kit.clock.advance(limits.objectRetryMs);
    await kit.session.wake();
    expect(kit.stored()).toMatchObject({ files: [] });
    expect(kit.objects.objects.size).toBe(0);
  });

  test('a message with the same bytes before that gets the object', async () => {
    const { kit } = await afterCrash();
    kit.clock.advance(limits.unreferredFileMs - 1);
    await kit.send([A]);
    kit.clock.advance(limits.unreferredFileMs);
    await kit.session.wake();
    expect(kit.stored()).toMatchObject({ runs: 1, files: [inObject('a.png')] });
    expect((await kit.session.read().content(A.part.sha256)).bytes).toHaveLength(LARGE);
  });

  test('a message that is being accepted keeps its object, however long that takes', async () => {
    const pinned = Promise.withResolvers<void>();
    let pins = 0;
    // The manifests are read again after the put.
    const kit = await kitWith({ pin: () => ((pins += 1) === 2 ? pinned.promise : Promise.resolve()) });
    const sent = kit.send([A]);
    await settle();
    kit.clock.advance(limits.unreferredFileMs);
    await kit.session.wake();
    expect(kit.objects.calls.map(([method]) => method)).toEqual(['put']);
    pinned.resolve();
    await sent;
    expect(kit.stored()).toMatchObject({ runs: 1, files: [inObject('a.png')] });
  });

  test('a session that is closed while an object is deleted writes nothing', async () => {
    const { kit } = await afterCrash();
    const deletion = Promise.withResolvers<void>();
    kit.objects.before = () => deletion.promise;
    kit.clock.advance(limits.unreferredFileMs);
    const woken = kit.session.wake();
    await settle();
    await kit.session.close('the session was deleted');
    deletion.resolve();
    await woken;
    expect(kit.stored()).toMatchObject({ files: [inObject('a.png', 'collecting')] });
  });

  test.each(['this host', 'an earlier host'])(
    'a message with the same bytes while %s deletes the object has them in the database',
    async (host) => {
      const { kit: first } = await afterCrash();
      const deletion = Promise.withResolvers<void>();
      first.objects.before = (method) => (method === 'delete' ? deletion.promise : undefined);
      first.clock.advance(limits.unreferredFileMs);
      const woken = first.session.wake();
      await settle();
      const { sql, clock, objects } = first;
      const kit = host === 'this host' ? first : await kitWith({ sql, clock, objects, variables: null });
      await kit.send([A]);
      const stored = { name: 'a.png', place: 'rows', state: 'stored' };
      expect(kit.stored()).toMatchObject({ files: [inObject('a.png', 'collecting'), stored] });
      deletion.resolve();
      await woken;
      expect(kit.objects.objects.size).toBe(0);
      expect(kit.stored()).toMatchObject({ runs: 1, files: [stored] });
      const { bytes } = await kit.session.read().content(A.part.sha256);
      expect(Buffer.from(bytes).equals(Buffer.from(A.bytes))).toBe(true);
    },
  );
});

describe('[C2] files whose bytes are lost', () => {
  test('the run goes on with the placeholder, and one warning', async () => {
    const kit = await kitWith({ stream: readingStream });
    const text = { ...file('t.txt'), part: { ...file('t.txt').part, type: 'file', media_type: 'text/plain' } as const };
    await kit.session.ended((await kit.send([A, text])).run);
    kit.objects.objects.clear();
    const { warnings, status } = await say(kit, 'again');
    expect(status).toBe('completed');
    expect(warnings).toEqual([
      {
        code: 'attachments_not_shown',
        message:
          'The model gets only a text placeholder for the file "t.txt": its bytes could not be read from the storage of files',
      },
    ]);
    expect(JSON.stringify(kit.requests[1]?.messages)).toContain('[image \\"a.png\\", image/png, 65536 bytes]');
  });

  test('a lost image is reported when the request is sent', async () => {
    const kit = await kitWith({ stream: readingStream });
    await kit.session.ended((await kit.send([A])).run);
    kit.objects.objects.clear();
    const { warnings } = await say(kit, 'again');
    expect(warnings.map(({ code }) => code)).toEqual(['attachments_not_shown']);
  });

  test('the download is 404, and 503 while the object storage fails', async () => {
    const kit = await kitWith();
    await kit.send([A]);
    const read = async (sha256: string): Promise<unknown> => await kit.session.read().content(sha256);
    kit.objects.before = () => Promise.reject(new Error('R2 is away'));
    await expect(read(A.part.sha256)).rejects.toMatchObject({ code: 'storage_unavailable' });
    kit.objects.before = () => undefined;
    kit.objects.objects.clear();
    await expect(read(A.part.sha256)).rejects.toMatchObject({ code: 'unknown_content' });
    await expect(read('x'.repeat(64))).rejects.toMatchObject({ code: 'unknown_content' });
  });
});

describe('[C2] files in an export', () => {
  const linesOf = async (kit: Kit, ...given: Parameters<SessionKit['session']['export']>): Promise<FileLine[]> => {
    const lines = (await textOf(kit.session.export(...given))).trim().split('\n');
    return lines.map((line) => JSON.parse(line) as FileLine).filter(({ file: one }) => one !== undefined);
  };
  interface FileLine {
    readonly file: Record<string, unknown>;
  }

  test('have their bytes in base64, within a bound; the others have their path', async () => {
    const kit = await kitWith();
    await kit.send([A, B, SMALL]);
    const described = ({ part: { sha256, name, size } }: File): object => ({
      sha256,
      name,
      media_type: 'image/png',
      size,
      path: `/agent/session/${SESSION_ID}/content/${sha256}`,
    });
    const base64 = ({ bytes }: File): string => Buffer.from(bytes).toString('base64');
    const files = [A, B, SMALL];
    expect(await linesOf(kit)).toEqual(files.map((one) => ({ file: { ...described(one), base64: base64(one) } })));
    expect(await linesOf(kit, { bytesOfFiles: 2 * LARGE })).toEqual([
      { file: { ...described(A), base64: base64(A) } },
      { file: described(B) },
      { file: { ...described(SMALL), base64: base64(SMALL) } },
    ]);
    expect((await linesOf(kit, { bytesOfFiles: 2 * LARGE - 2 })).map(({ file: one }) => 'base64' in one)).toEqual([
      true,
      false,
      false,
    ]);
    kit.objects.objects.delete(KEY(A.part.sha256));
    expect((await linesOf(kit))[0]).toEqual({ file: { ...described(A), lost: true } });
    expect(await linesOf(kit, { view: VIEW })).toEqual([]);
  });
});

/** Reads every attachment, as a connection does. */
async function* readingStream({ messages }: Parameters<NonNullable<KitOptions['stream']>>[0]) {
  for (const { read } of messages.flatMap(({ attachments = [] }) => attachments)) await read().catch(() => null);
  yield { type: 'text', text: '<response final="true">ok</response>' } as const;
  yield { type: 'finish', reason: 'stop' } as const;
}
