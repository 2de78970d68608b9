/** One shard of the directory of sessions, and the merging of shards (C6). */
import { beforeEach, describe, expect, test } from 'vitest';
import { mergeShards, shardOf, shardsOf } from '../../src/domain/directory.ts';
import type { DirectoryEntry, DirectoryPage } from '../../src/domain/directory.ts';
import type { DirectoryPosition } from '../../src/domain/list-page.ts';
import { limits } from '../../src/domain/limits.ts';
import { DirectoryTable } from '../../src/policies/directory-table.ts';
import { openNodeSql } from '../support/node-sql.ts';
import type { NodeSql } from '../support/node-sql.ts';

const positionOf = ({ updated_at: at, session_id: id }: DirectoryEntry): DirectoryPosition => ({ at, id });

const ALL: DirectoryPage = { limit: 100, before: null, userId: null, agents: null, status: null };
const idOf = (number: number): string => `ses_${number.toString(16).padStart(32, '0')}`;

function entryOf(number: number, change: Partial<DirectoryEntry> = {}): DirectoryEntry {
  return {
    session_id: idOf(number),
    agent: 'assistant',
    user_id: null,
    title: `session ${number}`,
    status: 'idle',
    created_at: 1,
    updated_at: number,
    cost: null,
    ...change,
  };
}

let sql: NodeSql;
let now = 0;
let table: DirectoryTable;

beforeEach(() => {
  now = 1_000;
  sql = openNodeSql();
  table = new DirectoryTable(sql, () => now);
});

function record(entry: DirectoryEntry, number = 1, incarnation = 'i1'): void {
  table.record({ incarnation, number, entry });
}

/** Ids on all pages, in order, and the sizes of the pages. */
function pages(page: DirectoryPage): { readonly ids: string[]; readonly sizes: number[] } {
  const [ids, sizes]: [string[], number[]] = [[], []];
  for (let before = page.before; ;) {
    const { entries, next } = mergeShards([table.list({ ...page, before, limit: page.limit + 1 })], page.limit);
    ids.push(...entries.map(({ session_id: id }) => id));
    sizes.push(entries.length);
    if (next === null) return { ids, sizes };
    before = next;
  }
}

const listed = (page: Partial<DirectoryPage> = {}): DirectoryEntry[] => [...table.list({ ...ALL, ...page }).entries];

describe('C6: what a session writes', () => {
  test('the latest write counts, also if an earlier one arrives after it', () => {
    record(entryOf(1, { title: null }), 1);
    record(entryOf(1, { title: 'now', updated_at: 5 }), 3);
    record(entryOf(1, { title: 'late', status: 'running', updated_at: 9 }), 2);
    record(entryOf(1, { title: 'again', updated_at: 9 }), 3);
    expect(listed()).toEqual([entryOf(1, { title: 'now', updated_at: 5 })]);
  });

  test('a forgotten session is not listed again by a write that arrives late', () => {
    record(entryOf(1));
    table.forget(idOf(1), 'i1');
    record(entryOf(1), 7);
    table.forget(idOf(2), 'i1');
    record(entryOf(2), 1);
    expect([listed(), listed({ userId: 'ann' }), listed({ status: 'running' })]).toEqual([[], [], []]);
  });

  test('a session that is made again under the same id is another one', () => {
    record(entryOf(1), 9);
    table.forget(idOf(1), 'i1');
    record(entryOf(1, { title: 'second' }), 1, 'i2');
    record(entryOf(1), 10);
    table.forget(idOf(1), 'i1');
    expect(listed()).toEqual([entryOf(1, { title: 'second' })]);
  });

  test('what was forgotten has no content, and is removed later, some at a time', () => {
    for (let number = 1; number <= limits.directoryPurgedRows + 5; number += 1) {
      record(entryOf(number, { user_id: 'ann' }));
      table.forget(idOf(number), 'i1');
    }
    const rows = (): number => Number(sql.exec(`SELECT COUNT(*) AS count FROM sessions`)[0]?.['count']);
    expect(sql.exec(`SELECT DISTINCT agent, user_id, entry FROM sessions`)).toEqual([
      { agent: '', user_id: null, entry: '' },
    ]);
    now += limits.directoryForgottenMs;
    record(entryOf(1_000));
    table.removeForgotten();
    expect(rows()).toBe(limits.directoryPurgedRows + 6);
    now += 1;
    table.removeForgotten();
    expect(rows()).toBe(6);
    table.forget(idOf(1_000), 'i1');
    expect(rows()).toBe(1);
  });
});

describe('C6: pages', () => {
  const USERS = ['ann', 'bob', null] as const;
  const AGENTS = ['assistant', 'writer', 'rare'] as const;
  const STATUSES = ['idle', 'running', 'waiting'] as const;
  const entries = Array.from({ length: 400 }, (_, number) =>
    entryOf(number, {
      user_id: USERS[number % 3] ?? null,
      agent: AGENTS[number % 97 === 0 ? 2 : number % 2] ?? '',
      status: STATUSES[number % 7 === 0 ? 1 : number % 11 === 0 ? 2 : 0] ?? 'idle',
      // Many at the same time.
      updated_at: Math.floor(number / 25),
    }),
  );
  beforeEach(() => {
    for (const entry of entries) record(entry);
  });

  const filters = [null, 'ann', 'nobody'].flatMap((userId) =>
    [null, ['assistant'], ['rare'], ['writer', 'rare']].flatMap((agents) =>
      [null, ...STATUSES].map((status) => ({ userId, agents, status })),
    ),
  );

  test.each(filters)('have each session once, newest first: $userId, $agents, $status', (filter) => {
    const fits = ({ user_id, agent, status }: DirectoryEntry): boolean =>
      (filter.userId === null || user_id === filter.userId) &&
      (filter.agents === null || filter.agents.includes(agent)) &&
      (filter.status === null || status === filter.status);
    const expected = entries
      .filter(fits)
      .toSorted((a, b) => b.updated_at - a.updated_at || (a.session_id < b.session_id ? 1 : -1))
      .map(({ session_id: id }) => id);
    for (const limit of [1, 7, 100]) expect(pages({ ...ALL, ...filter, limit }).ids).toEqual(expected);
  });

  test('stay the same while other sessions change', () => {
    const first = table.list({ ...ALL, limit: 10 }).entries;
    for (const number of [1, 2, 399]) record(entryOf(number, { updated_at: 1_000 + number }), 2);
    const last = first.at(-1);
    if (last === undefined) throw new Error('no page');
    const next = table.list({ ...ALL, limit: 10, before: positionOf(last) }).entries;
    expect(next.map(({ session_id: id }) => id)).toEqual(Array.from({ length: 10 }, (_, at) => idOf(389 - at)));
  });

  test('every page is read with an index', () => {
    const texts: string[] = [];
    const seen = { ...sql, exec: (text: string, ...values: never[]) => (texts.push(text), sql.exec(text, ...values)) };
    const watched = new DirectoryTable(seen, () => now);
    for (const filter of filters) {
      texts.length = 0;
      watched.list({ ...ALL, ...filter });
      const [text = ''] = texts;
      const values = Array.from({ length: text.split('?').length - 1 }, () => 1);
      const plan = sql.exec(`EXPLAIN QUERY PLAN ${text}`, ...values).map(({ detail }) => String(detail));
      expect(plan.join('\n')).toMatch(/SEARCH sessions USING INDEX/);
      expect(plan.join('\n')).not.toMatch(/TEMP B-TREE/);
    }
  });
});

test('C6: a page reads a bounded number of rows, however rare its filters are', () => {
  const entries = Array.from({ length: limits.directoryScannedRows * 2 + 10 }, (_, number) =>
    entryOf(number, { user_id: 'ann', agent: number < 3 ? 'rare' : 'assistant' }),
  );
  sql.transaction(() => {
    for (const entry of entries) record(entry);
  });
  const { ids, sizes } = pages({ ...ALL, userId: 'ann', agents: ['rare'] });
  expect(ids).toEqual([idOf(2), idOf(1), idOf(0)]);
  expect(sizes).toEqual([0, 0, 3]);
});

describe('C6: shards', () => {
  type Entry = DirectoryEntry;
  type Six = [Entry, Entry, Entry, Entry, Entry, Entry];

  test('a session is always in the same one, and they are used evenly', () => {
    const counts = new Map<string, number>();
    for (let number = 0; number < 16_000; number += 1) {
      const shard = shardOf('ann', idOf(number));
      counts.set(shard, (counts.get(shard) ?? 0) + 1);
    }
    expect([...counts.keys()].toSorted()).toEqual(shardsOf('ann').toSorted());
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(250);
    // These names are stored: a change would list sessions twice.
    expect([shardOf('ann', idOf(1)), shardOf(null, idOf(1))]).toEqual(['9/key:ann', '8/local']);
  });

  test('no two owners share one', () => {
    const owners = [null, '', 'local', '1', '1/local', 'key:ann', 'ann', 'ann/1'];
    expect(new Set(owners.flatMap(shardsOf)).size).toBe(owners.length * limits.directoryShards);
  });

  test('pages of several are merged; what lies behind an unread part of one comes with the next page', () => {
    const [a, b, c, d, e, f] = [9, 8, 7, 6, 5, 4].map((number) => entryOf(number)) as Six;
    const whole = (...given: DirectoryEntry[]): { entries: DirectoryEntry[]; scannedTo: null } => ({
      entries: given,
      scannedTo: null,
    });
    expect(mergeShards([whole(b, c), whole(), whole(a, d)], 4)).toEqual({ entries: [a, b, c, d], next: null });
    expect(mergeShards([whole(b, c), whole(a, d)], 3)).toEqual({ entries: [a, b, c], next: positionOf(c) });
    const cut = { entries: [a], scannedTo: positionOf(d) };
    expect(mergeShards([cut, whole(b, e, f)], 3)).toEqual({ entries: [a, b], next: positionOf(d) });
    expect(mergeShards([cut, whole(b, c, e)], 2)).toEqual({ entries: [a, b], next: positionOf(b) });
    const other = { entries: [], scannedTo: positionOf(b) };
    expect(mergeShards([cut, other, whole(c)], 3)).toEqual({ entries: [a], next: positionOf(b) });
  });
});
