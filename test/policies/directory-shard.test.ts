/** One shard of the lists of sessions and runs (C6, H1). */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { DirectoryEntry } from '../../src/domain/directory.ts';
import type { ExecutionEntry, ExecutionsPage } from '../../src/domain/execution.ts';
import { mergeExecutions } from '../../src/domain/execution.ts';
import { limits } from '../../src/domain/limits.ts';
import { DirectoryShard } from '../../src/policies/directory-shard.ts';
import { failEach, failingWrites } from '../support/failing-writes.ts';
import type { FailingWrites } from '../support/failing-writes.ts';
import { openNodeSql } from '../support/node-sql.ts';

const KEPT_MS = 1_000_000;
let now: number;
let sql: ReturnType<typeof openNodeSql>;
let shard: DirectoryShard;

beforeEach(() => {
  now = 2_000_000;
  sql = openNodeSql();
  shard = new DirectoryShard(
    sql,
    () => now,
    () => KEPT_MS,
  );
});

const INCARNATION = 'abcdefabcdef';
const idOf = (session: number): string => `ses_${String(session).padStart(32, '0')}`;

function runOf(session: number, run: number, more: Partial<ExecutionEntry> = {}): ExecutionEntry {
  const id = `run_${String(session).padStart(32, '0')}_${INCARNATION}_${run}`;
  const names = { execution_id: id, run_id: id, session_id: idOf(session), agent: 'assistant' };
  return {
    ...names,
    kind: 'chat',
    status: 'completed',
    error: null,
    started_at: now + run,
    ended_at: now + run,
    ...more,
  };
}

/** Of a session that the directory does not list. */
function write(session: number, ...runs: readonly ExecutionEntry[]): void {
  shard.write({ session_id: idOf(session), incarnation: INCARNATION, number: 1, entry: null, runs });
}

const page = (more: Partial<ExecutionsPage> = {}): ExecutionsPage => ({
  limit: 100,
  before: null,
  status: null,
  kind: null,
  ...more,
});
const listed = (more: Partial<ExecutionsPage> = {}): string[] =>
  shard.executions(page(more)).entries.map(({ execution_id: id, status }) => `${id.slice(-3)} ${status}`);

describe('[Z2] the index of executions', () => {
  test('has each run once, with its end, in whatever order and however often its writes arrive', () => {
    const [waiting, ended] = [runOf(1, 1, { status: 'waiting' }), runOf(1, 1, { status: 'failed' })];
    write(1, ended);
    for (const late of [waiting, ended, runOf(1, 1, { status: 'completed' })]) write(1, late);
    write(2, runOf(2, 2, { status: 'waiting' }));
    write(2, runOf(2, 2));
    expect(listed()).toEqual(['f_2 completed', 'f_1 failed']);
    expect([listed({ status: 'failed' }), listed({ status: 'waiting' })]).toEqual([['f_1 failed'], []]);
  });

  test('forgets the runs of a deleted session, and ignores their late writes', () => {
    write(1, runOf(1, 1), runOf(1, 2));
    write(2, runOf(2, 3));
    shard.forget(idOf(1), INCARNATION);
    write(1, runOf(1, 1));
    write(1, runOf(1, 2));
    expect(listed()).toEqual(['f_3 completed']);
  });

  test('removes runs that are older than sessions are kept', () => {
    write(1, runOf(1, 1));
    now += KEPT_MS + 2;
    write(2, runOf(2, 2));
    expect(listed()).toEqual(['f_2 completed']);
  });

  test('does not grow beyond what it keeps, and removes by few of its writes', () => {
    const removals = vi.spyOn(sql, 'exec');
    const many = 1_000;
    for (let session = 1; session <= 2 * many; session += 1) {
      if (session === many + 1) now += KEPT_MS + 2;
      write(session, runOf(session, 1));
    }
    expect(Number(sql.exec(`SELECT COUNT(*) AS count FROM executions`)[0]?.['count'])).toBe(many);
    const count = removals.mock.calls.filter(([text]) => text.startsWith('DELETE FROM executions')).length;
    expect(count).toBeLessThan((2 * many) / 20);
    // Also after the clock was set back.
    now -= KEPT_MS;
    write(1, runOf(1, 2, { started_at: 0 }));
    expect(listed().filter((one) => one.includes('_2 '))).toEqual([]);
  });

  test('has pages without gaps or repetitions, also with ties and filters that few runs fit', () => {
    const few = limits.directoryScannedRows + 10;
    for (let run = 1; run <= few; run += 1) {
      const kind = run === 1 ? 'workflow' : 'chat';
      write(1, runOf(1, run, { kind, started_at: now + (run >> 2) }));
    }
    const all = (more: Partial<ExecutionsPage>): [ids: string[], pages: number] => {
      const ids: string[] = [];
      let before: ExecutionsPage['before'] = null;
      for (let pages = 1; ; pages += 1) {
        const { entries, next } = mergeExecutions([shard.executions(page({ ...more, before, limit: 101 }))], 100);
        ids.push(...entries.map(({ execution_id: id }) => id));
        if (next === null) return [ids, pages];
        before = next;
      }
    };
    const [ids] = all({});
    expect([ids.length, new Set(ids).size]).toEqual([few, few]);
    expect(all({ kind: 'workflow' })).toEqual([[runOf(1, 1).execution_id], 2]);
  });
});

test('[C6] [H1] a session and its runs are written and forgotten together, whichever statement fails', () => {
  const entry = {
    session_id: idOf(1),
    agent: 'assistant',
    user_id: null,
    title: null,
    status: 'idle',
    created_at: 1,
    updated_at: 1,
    runs: 1,
    last_run_status: 'completed',
  } as unknown as DirectoryEntry;
  const runs = [runOf(1, 1), runOf(1, 2)];
  const prepare = (): FailingWrites & { readonly lists: DirectoryShard } => {
    const failing = failingWrites(openNodeSql());
    const lists = new DirectoryShard(
      failing.sql,
      () => now,
      () => KEPT_MS,
    );
    lists.write({ session_id: idOf(2), incarnation: INCARNATION, number: 1, entry: null, runs: [runOf(2, 1)] });
    return { ...failing, lists };
  };
  const record = { session_id: idOf(1), incarnation: INCARNATION, number: 1, entry, runs };
  const seen = ({ lists }: ReturnType<typeof prepare>): unknown => [
    lists.executions(page()),
    lists.list({ limit: 10, before: null, userId: null, agents: null, status: null }),
  ];
  expect(failEach(prepare, ({ lists }) => lists.write(record), seen)).toBeGreaterThan(2);
  const filled = (): ReturnType<typeof prepare> => {
    const kit = prepare();
    kit.lists.write(record);
    return kit;
  };
  expect(failEach(filled, ({ lists }) => lists.forget(idOf(1), INCARNATION), seen)).toBeGreaterThan(1);
});
