/** The rows of a fork: what a session sends, and what the other one has (C4). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { ForkTarget } from '../../../src/engine/session/session-fork.ts';
import type { Session } from '../../../src/engine/session/session.ts';
import type { ObjectStore } from '../../../src/domain/ports/storage.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { FORK_RECORD, forked, pagesOf } from '../../support/forked.ts';
import { fillSession } from '../../support/long-session.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { say, sessionKit, settle, textOf, variablesOf } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';

const answer = (text: string): string => `<response final="true">${text}</response>`;
const action = (type: string, id: string, body: object): string =>
  `<action type="${type}" mode="async" id="${id}">${JSON.stringify(body)}</action>`;
const echo = (id: string, value: unknown): string => action('tool', id, { name: 'echo', parameters: { value } });
const setVariable = (key: string, value: unknown): string =>
  action('internal', `set_${key}`, { name: 'set_variable', parameters: { key, value } });

const opened = async (sql: NodeSql, options: KitOptions = {}): Promise<SessionKit> =>
  await sessionKit({ ...options, sql });
const exported = async (session: Session): Promise<Record<string, unknown>[]> =>
  (await textOf(session.export()))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('[C4] a fork', () => {
  test('[C6] was last active at its creation, although its runs are older', async () => {
    const kit = await sessionKit();
    await say(kit, 'a');
    const sql = openNodeSql();
    const created_at = kit.clock.now() + 60_000;
    const target = new ForkTarget(new Journal(sql), { ...FORK_RECORD, created_at }, null);
    for (const page of await pagesOf(kit.session, 1)) await target.take(page);
    await target.finish();
    const { session } = await opened(sql);
    expect([session.updatedAt, session.directoryEntry?.updated_at]).toEqual([created_at, created_at]);
  });

  test('has the runs and events of the branch, numbered without gaps, and nothing of other branches', async () => {
    const kit = await sessionKit({
      script: ['<thought>t</thought>' + answer('a1'), answer('b1'), answer('b2'), answer('c')],
    });
    await say(kit, 'a');
    await say(kit, 'other');
    const first = kit.session.runs()[0];
    if (first === undefined) throw new Error('no run');
    const { branches } = kit.session;
    await send(kit, 'b', { idempotencyKey: 'k', place: branches.after(first) });
    await kit.session.ended(3);
    await say(kit, 'c');
    const other = await opened(await forked(kit.session, 4));
    const { session } = other;
    expect(session.runs().map(({ run, parent, status, input }) => [run, parent, status, input['content']])).toEqual([
      [1, 0, 'completed', 'a'],
      [2, 1, 'completed', 'b'],
      [3, 2, 'completed', 'c'],
    ]);
    const events = session.events(0);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
    expect(new Set(events.map(({ session_id: id }) => id))).toEqual(new Set([FORK_RECORD.session_id]));
    const segments = events.flatMap((event) => ('segment' in event.data ? [event.data.segment] : []));
    const opening = new Set(
      events.flatMap(({ type, seq }) => (/^(thought|response|text)_started$/.test(type) ? [seq] : [])),
    );
    expect(segments.length).toBeGreaterThan(3);
    expect(segments.every((segment) => opening.has(segment))).toBe(true);
    expect(events.some(({ type }) => type === 'run_branched')).toBe(false);
    expect(session.runOf('k')).toBeNull();
    expect(session.status).toBe('idle');
  });

  test('continues with the results, the variables and the conversation of the branch', async () => {
    const script = [
      echo('x', 'first') + setVariable('n', 1),
      answer('one'),
      echo('x', 'unwanted') + setVariable('n', 2),
      answer('two'),
    ];
    const kit = await sessionKit({ script, variables: { n: 0, k: 'kept' } });
    await say(kit, 'a');
    await say(kit, 'b');
    const other = await opened(await forked(kit.session, 1), { script: [answer('it is $x and $n')] });
    expect(await variablesOf(other.session)).toEqual({ k: 'kept', n: 1 });
    const { response } = await say(other, 'c');
    expect(response).toMatch(/first.*and 1/);
    const shown = JSON.stringify(other.requests[0]?.messages);
    expect([shown.includes('"a'), shown.includes('unwanted')]).toEqual([true, false]);
    const back = await sessionKit({ sql: kit.sql });
    expect(await variablesOf(back.session)).toEqual({ k: 'kept', n: 2 });
  });

  test('has the history before the session, messages that came during a run, and its events as they were', async () => {
    const gate = Promise.withResolvers<void>();
    const kit = await sessionKit({
      history: [
        { role: 'user', content: 'before' },
        { role: 'assistant', content: 'then' },
      ],
      executors: {
        tool: async () => await gate.promise.then(() => ({ ok: true, output: 'x'.repeat(limits.rowBytes) })),
      },
      script: [echo('x', 1), answer('both')],
    });
    const first = say(kit, 'a');
    await settle();
    const second = send(kit, 'b', { ifBusy: 'steer' });
    await settle();
    gate.resolve();
    await Promise.all([first, second]);
    const other = await opened(await forked(kit.session, 1), { script: [answer('c')] });
    const strip = (lines: Record<string, unknown>[]): unknown[] =>
      lines
        .map(
          (line) =>
            JSON.parse(
              JSON.stringify(line)
                .replace(',"manifests":null', '')
                .replaceAll(/(run|ses|msg)_[0-9a-f_]+/g, ''),
            ) as unknown,
        )
        .slice(1);
    expect(strip(await exported(other.session))).toEqual(strip(await exported(kit.session)));
    await say(other, 'c');
    const shown = JSON.stringify(other.requests[0]?.messages);
    expect(['before', 'then', 'The user has sent another message', 'xxxx'].every((text) => shown.includes(text))).toBe(
      true,
    );
  });

  test('of a session without runs has its history', async () => {
    const kit = await sessionKit({ history: [{ role: 'user', content: 'before' }] });
    const other = await opened(await forked(kit.session, null));
    expect([other.session.runCount, other.session.seededCount]).toEqual([0, 1]);
  });

  test('has the files of its messages, in rows or objects', async () => {
    const sha256 = 'c'.repeat(64);
    const part = {
      type: 'file',
      name: 'a.txt',
      media_type: 'text/plain',
      size: limits.objectFileLeastBytes,
      sha256,
    } as const;
    const bytes = new Uint8Array(limits.objectFileLeastBytes).fill(7);
    const kit = await sessionKit();
    await send(kit, [{ type: 'text', text: 'see' }, part], { files: new Map([[sha256, bytes]]) });
    await kit.session.ended(1);
    const rows = await opened(await forked(kit.session, 1));
    expect((await rows.session.read().content(sha256)).bytes).toEqual(bytes);
    const stored = new Map<string, Uint8Array>();
    const objects: ObjectStore = {
      put: async (key, given) => void stored.set(key, given),
      get: async (key) => stored.get(key) ?? null,
      delete: async () => undefined,
      deleteSome: async () => true,
    };
    const other = await opened(await forked(kit.session, 1, objects), { objects });
    expect([...stored.keys()]).toEqual([`sessions/${FORK_RECORD.session_id}/${FORK_RECORD.incarnation}/${sha256}`]);
    expect((await other.session.read().content(sha256)).bytes).toEqual(bytes);
  });

  test('needs runs that are complete', async () => {
    const kit = await sessionKit({
      executors: { tool: () => new Promise(() => undefined) },
      script: [answer('a'), echo('x', 1)],
    });
    await say(kit, 'a');
    void say(kit, 'b');
    await settle();
    const [one = null, two = null] = kit.session.runs();
    expect(() => kit.session.branches.requireForkable(one)).not.toThrow();
    expect(() => kit.session.branches.requireForkable(two)).toThrow('is not complete');
  });

  test('of a session that is deleted meanwhile ends with an error, and reads nothing more', async () => {
    const kit = await sessionKit();
    await say(kit, 'a');
    const pages = kit.session.forkPages(kit.session.runs()[0] ?? null)[Symbol.asyncIterator]();
    await kit.session.close('deleted');
    kit.sql.exec(`DROP TABLE events`);
    await expect(pages.next()).rejects.toMatchObject({ code: 'unknown_session' });
  });

  test('that fails has no session', async () => {
    const kit = await sessionKit();
    await say(kit, 'a');
    const sql = openNodeSql();
    const target = new ForkTarget(new Journal(sql), FORK_RECORD, null);
    for (const page of await pagesOf(kit.session, 1)) await target.take(page);
    expect(new Journal(sql).record).toBeNull();
  });

  test('of many runs is sent in pages of bounded size, on a straight branch and on one with versions', async () => {
    for (const isStraight of [true, false]) {
      const sql = openNodeSql();
      newJournal(sql);
      new Journal(sql).variables.setFirst('x', 1);
      fillSession(sql, { runs: 3_000, actions: 4, output: JSON.stringify('x'.repeat(1_000)) });
      if (!isStraight) sql.exec(`UPDATE runs SET parent = run - 2 WHERE run % 2 = 1 AND run > 2`);
      const { session } = await sessionKit({ sql });
      const target = new ForkTarget(new Journal(openNodeSql()), FORK_RECORD, null);
      const last = session.runs(1)[0] ?? null;
      let most = 0;
      let pages = 0;
      for await (const page of session.forkPages(last)) {
        pages += 1;
        most = Math.max(most, Buffer.byteLength(JSON.stringify(page)));
        await target.take(page);
      }
      await target.finish();
      expect(pages).toBeGreaterThan(10);
      expect(most).toBeLessThan(limits.forkPageBytes * 2);
    }
  }, 60_000);
});
