/** Queries other than the pages of readers: parts of runs, earlier results, costs, limits. */
import { describe, expect, test } from 'vitest';
import type { EventType, JournalEntry, SessionEvent } from '../../src/domain/event.ts';
import { encodeEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { Journal } from '../../src/journal/journal.ts';
import { runIdOf, runNumberOf } from '../../src/journal/run-id.ts';
import { anyData, membersOf } from '../support/events.ts';
import { openNodeSql } from '../support/node-sql.ts';
import type { NodeSql } from '../support/node-sql.ts';
import { newJournal, SESSION_ID, withStatements } from './journal-kit.ts';

interface Fixture {
  readonly sql: NodeSql;
  readonly journal: Journal;
  /** Appends an event of run `run`, and returns it. */
  readonly add: (
    type: EventType,
    data: JsonObject,
    more?: Partial<JournalEntry> & { readonly run?: number },
  ) => SessionEvent;
}

function fixture(): Fixture {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  return {
    sql,
    journal,
    add: (type, data, { run = 1, ...more } = {}) =>
      journal.append({
        type,
        runId: runIdOf({ session_id: SESSION_ID }, run),
        iteration: 1,
        at: 5,
        data: anyData(data),
        ...more,
      } as JournalEntry),
  };
}

const seqs = (events: readonly { readonly seq?: number | null }[]): unknown[] => events.map(({ seq }) => seq);

describe('ids of runs', () => {
  test('[J4] a run’s id contains its session’s id and its number', () => {
    expect(runIdOf({ session_id: 'ses_ab' }, 3)).toBe('run_ab_3');
    expect(runIdOf({ session_id: 'ab_ses_c' }, 3)).toBe('run_ab_ses_c_3');
    expect(
      ['run_ab_3', 'run_ab_123456789', 'run_1_2', 'run_ab', 'run_ab_', 'run_ab_3x', 'run_ab_1234567890'].map(
        runNumberOf,
      ),
    ).toEqual([3, 123_456_789, 2, 0, 0, 0, 0]);
  });
});

describe('the cost of events', () => {
  test('[J6] the cost counts each event and each character of its data and its state', () => {
    const { journal, add } = fixture();
    expect(journal.work).toBe(0);
    add('warning', { a: 1 });
    expect(journal.work).toBe(limits.eventSteps + 7 * limits.eventCharSteps);
    add('warning', {}, { state: { b: 22 } });
    expect(journal.work).toBe(2 * limits.eventSteps + (7 + 2 + 8) * limits.eventCharSteps);
  });

  test('[J6] a session is full when its database has reached the limit', () => {
    const { sql, journal } = fixture();
    sql.sizeBytes = () => limits.sessionBytes - 1;
    expect(journal.full).toBe(false);
    sql.sizeBytes = () => limits.sessionBytes;
    expect(journal.full).toBe(true);
  });

  test('[J6] far below the limit, the size is read again after a number of statements', () => {
    const { sql, journal, add } = fixture();
    expect(journal.full).toBe(false);
    sql.sizeBytes = () => limits.sessionBytes;
    expect(journal.full).toBe(false);
    for (let n = 0; n < limits.sizeCheckStatements; n += 1) {
      add('warning', {});
      journal.page(0);
      journal.event(journal.lastSeq);
    }
    expect(journal.full).toBe(true);
  });

  test('[J6] a journal without a session refuses events', () => {
    const journal = new Journal(openNodeSql());
    expect(() => journal.append({ type: 'warning', runId: 'run_a_1', iteration: 1, at: 5, data: anyData({}) })).toThrow(
      'the journal contains no session',
    );
  });
});

describe('durability', () => {
  test('[J1] a sync without changes resolves at once; after a failed sync, the changes are synced again', async () => {
    const { sql, journal, add } = fixture();
    await journal.sync();
    await journal.sync();
    expect(sql.syncs).toBe(1);
    add('warning', {});
    sql.onSync = async () => {
      throw new Error('no disk');
    };
    await expect(journal.sync()).rejects.toThrow('no disk');
    expect(journal.syncedSeq).toBe(0);
    sql.onSync = async () => undefined;
    await journal.sync();
    expect([sql.syncs, journal.syncedSeq, journal.lastSeq]).toEqual([3, 1, 1]);
  });

  const changes: readonly (readonly [title: string, change: (journal: Journal) => void])[] = [
    ['a variable', (journal) => journal.variables.set('x', 1)],
    ['a variable that is deleted', (journal) => journal.variables.delete('x')],
    ['a feed value', (journal) => journal.setFeed('f', 1)],
    ['a new run', (journal) => void journal.runs.create({}, 1, 'queued')],
    ['the start of a run', (journal) => journal.runs.start(1, 2)],
    ['the end of a run', (journal) => journal.runs.end(1, 'completed', 3, false)],
    ['the closing of a run', (journal) => journal.runs.close(1)],
    ['the inputs of a run', (journal) => journal.runs.addInputs(1, [])],
    [
      'a cached outcome',
      (journal) => journal.outcomes.remember({ key: 'k', content: 'c', seq: 1, at: 1, expiresAt: null }),
    ],
  ];
  test.each(changes)('[J1] %s without an event is synced too', async (_title, change) => {
    const { sql, journal } = fixture();
    await journal.sync();
    const before = sql.syncs;
    change(journal);
    await journal.sync();
    expect(sql.syncs).toBe(before + 1);
  });

  test('[J1] two concurrent syncs wait for the same write, and the earlier one covers only changes before it', async () => {
    const { sql, journal, add } = fixture();
    let release = (): void => undefined;
    sql.onSync = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    add('warning', {});
    const first = journal.sync();
    const second = journal.sync();
    add('warning', {});
    release();
    await Promise.all([first, second]);
    expect([sql.syncs, journal.syncedSeq, journal.lastSeq]).toEqual([1, 1, 2]);
  });
});

describe('parts of a session', () => {
  test('[J4] a range begins after a number and has a limit', () => {
    const { journal, add } = fixture();
    for (const run of [1, 2, 1, 2, 1]) add('warning', { run }, { run });
    const found = (query: Parameters<Journal['range']>[0]): unknown[] =>
      seqs(journal.range(query).map(({ event }) => event));
    expect(found({ after: 1, limit: 2 })).toEqual([2, 3]);
    expect(found({ after: 5, limit: 9 })).toEqual([]);
  });

  test('[J1] a page ends at the requested number, and before events that are not durable', async () => {
    const { journal, add } = fixture();
    for (let n = 0; n < 4; n += 1) add('warning', { n });
    await journal.sync();
    add('warning', { n: 4 });
    expect(
      [journal.page(0, 2), journal.page(2), journal.page(2, 9), journal.page(4), journal.page(3, 3)].map(seqs),
    ).toEqual([[1, 2], [3, 4], [3, 4], [], []]);
  });

  test('[J6] a slice of a run skips other runs and other types, and returns the start of the next slice', () => {
    const { journal, add } = fixture();
    add('warning', { a: 1 });
    add('action_queued', {}, { run: 2 });
    add('action_completed', { output: 'long' }, { actionId: 'a' });
    add('warning', { b: 22 });
    const all = journal.slice({ run: 1, after: 0, until: 4 });
    expect(seqs(all.found)).toEqual([1, 3, 4]);
    expect(all.next).toBe(4);
    // Data of 7, 2 and 8 characters, without the output.
    expect(all.chars).toBe(7 + 2 + 8 + 3 * limits.eventChars + 4 * limits.passedEventChars);
    expect(all.found.map((event) => event.data)).toEqual([{ a: 1 }, {}, { b: 22 }]);
    expect(seqs(journal.slice({ run: 1, after: 1, until: 3 }).found)).toEqual([3]);
    const only = journal.slice({ run: 1, after: 0, until: 4, only: ['warning', 'action_queued'] });
    expect([seqs(only.found), only.next]).toEqual([[1, 4], 4]);
    expect(journal.slice({ run: 9, after: 1, until: 4 })).toEqual({
      found: [],
      next: 4,
      chars: 3 * limits.passedEventChars,
    });
  });

  test('[J6] a slice ends after many events of other runs, at a full page, and at the text limit', () => {
    const { journal, add } = fixture();
    for (let n = 0; n <= limits.passedEvents; n += 1) add('warning', {}, { run: 2 });
    expect(journal.slice({ run: 1, after: 0, until: journal.lastSeq }).next).toBe(limits.passedEvents);
    const paged = fixture();
    for (let n = 0; n < limits.pageRows; n += 1) paged.add('action_completed', { output: null });
    expect(paged.journal.slice({ run: 1, after: 0, until: 1_000 }).next).toBe(limits.pageRows);
    expect(paged.journal.slice({ run: 1, after: 1, until: 1_000 }).next).toBe(1_000);
    const long = fixture();
    for (let n = 0; n < 3; n += 1) long.add('warning', { text: 'x'.repeat(limits.sliceChars / 2) });
    const slice = long.journal.slice({ run: 1, after: 0, until: 3 });
    expect([seqs(slice.found), slice.next]).toEqual([[1, 2], 2]);
  });

  test('[J4] an event is read with its size, its output and its state', () => {
    const { journal, add } = fixture();
    const long = 'é'.repeat(limits.rowBytes);
    const sent = [
      add('warning', { a: 1 }, { state: { key: '1/0' } }),
      add('action_completed', { output: [1] }, { actionId: 'a', actionName: 'echo' }),
      add('warning', { long }),
    ];
    for (const event of sent) expect(encodeEvent(journal.event(event.seq ?? 0) ?? event)).toBe(encodeEvent(event));
    expect(journal.event(4)).toBeNull();
    expect([1, 2, 3, 4].map((seq) => journal.dataBytes(seq))).toEqual([7, 14, 11 + 2 * limits.rowBytes, 0]);
    expect([1, 2, 4].map((seq) => journal.outputAt(seq))).toEqual([null, [1], null]);
    expect([1, 2, 4].map((seq) => journal.stateAt(seq))).toEqual([{ key: '1/0' }, null, null]);
  });

  test('[J4] all events of a run are read, for any number', () => {
    const { journal, add } = fixture();
    add('warning', {});
    const run = journal.runs.create({}, 1, 'running');
    for (let n = 0; n < limits.pageRows * 2; n += 1) add('warning', { n });
    const found = [...journal.eventsOf(run)];
    expect(found).toHaveLength(limits.pageRows * 2);
    expect(found[0]?.event.seq).toBe(2);
    expect([...journal.eventsOf({ ...run, run: 7 })]).toEqual([]);
  });

  test('[F3] the latest value of each feed is kept by id', () => {
    const { sql, journal } = fixture();
    journal.setFeed('b', { n: 1 });
    journal.setFeed('a', [1]);
    journal.setFeed('b', { n: 2 });
    expect([...new Journal(sql).feeds()]).toEqual([
      ['a', [1]],
      ['b', { n: 2 }],
    ]);
  });
});

describe('runs', () => {
  test('[J6] the newest run is read once for each change, and never as it was before one', () => {
    const { sql } = fixture();
    let reads = 0;
    const counted = new Journal(withStatements(sql, (text) => void (reads += text.includes('FROM runs') ? 1 : 0)));
    const newest = (): unknown => [counted.runs.newest?.run, counted.runs.list(1)[0]?.status];
    expect(newest()).toEqual([undefined, undefined]);
    counted.runs.create({}, 10, 'queued');
    expect(newest()).toEqual([1, 'queued']);
    counted.runs.start(1, 20);
    reads = 0;
    for (let n = 0; n < 3; n += 1) expect(newest()).toEqual([1, 'running']);
    expect([counted.runs.get(1)?.status, counted.runs.count]).toEqual(['running', 1]);
    expect(reads).toBe(1);
    counted.runs.end(1, 'failed', 30, false);
    expect(newest()).toEqual([1, 'failed']);
    expect(() =>
      counted.atomically(() => {
        counted.runs.create({}, 40, 'queued');
        expect(newest()).toEqual([2, 'queued']);
        throw new Error('not written');
      }),
    ).toThrow('not written');
    expect(newest()).toEqual([1, 'failed']);
  });

  test('[J3] a run keeps its input and its state until it starts and ends', () => {
    const { journal, add } = fixture();
    add('warning', {});
    const queued = journal.runs.create({ content: 'hello' }, 10, 'queued');
    expect({ ...queued, input: queued.input }).toEqual({
      run: 1,
      runId: runIdOf({ session_id: SESSION_ID }, 1),
      status: 'queued',
      firstSeq: 2,
      lastSeq: null,
      startedAt: 10,
      endedAt: null,
      input: { content: 'hello' },
      idempotencyKey: null,
      parent: 0,
      retryOf: null,
    });
    add('warning', {});
    journal.runs.start(1, 20);
    expect(journal.runs.require(1)).toMatchObject({ status: 'running', firstSeq: 3, startedAt: 20, endedAt: null });
    add('warning', {});
    journal.runs.end(1, 'failed', 30, false);
    expect(journal.runs.require(1)).toMatchObject({ status: 'failed', firstSeq: 3, lastSeq: 3, endedAt: 30 });
    expect(journal.runs.get(2)).toBeNull();
    expect(() => journal.runs.require(2)).toThrow('run 2 is not in the journal');
  });

  test('[H1] runs are listed in order: the newest ones, or those before a number', () => {
    const { journal } = fixture();
    for (let n = 0; n < 5; n += 1) journal.runs.create({ n }, n, 'queued', n === 3 ? 'key' : null);
    const numbers = (runs: readonly { readonly run: number }[]): number[] => runs.map(({ run }) => run);
    expect(
      [journal.runs.list(), journal.runs.list(2), journal.runs.list(2, 4), journal.runs.list(9, 1)].map(numbers),
    ).toEqual([[1, 2, 3, 4, 5], [4, 5], [2, 3], []]);
    expect(journal.runs.count).toBe(5);
    expect(journal.runs.list(1)[0]?.idempotencyKey).toBeNull();
    expect(journal.runs.byIdempotencyKey('key')).toMatchObject({ run: 4, idempotencyKey: 'key' });
  });

  test.each([10, limits.inlineBytes + 1, limits.rowBytes + 1])(
    '[J6] an input of %i characters is restored completely',
    (size) => {
      const { sql, journal } = fixture();
      const input = { content: 'x'.repeat(size) };
      expect(journal.runs.create(input, 1, 'queued').input).toEqual(input);
      journal.runs.create({ content: 'other' }, 1, 'queued');
      const [first, second] = new Journal(sql).runs.list();
      expect(first?.input).toEqual(input);
      expect(first?.input).toBe(first?.input);
      expect(second?.input).toEqual({ content: 'other' });
    },
  );
});

describe('earlier results', () => {
  test('[L5] a conversation is read to the size that fits in a prompt, with long results cut', () => {
    const { journal, add } = fixture();
    const run = journal.runs.create({ content: 'hello' }, 1, 'running');
    const long = 'é"\n'.repeat(limits.historyResultChars);
    const object = { list: Array.from({ length: limits.historyResultChars }, () => 'x') };
    add('agent_started', {});
    add('response_completed', { text: 'hi' });
    add('action_completed', { output: long, ms: 1 }, { actionId: 'a', actionName: 'echo', state: { key: '1/0' } });
    add('action_completed', { output: object }, { actionId: 'b' });
    add('response_completed', { text: 'of another run' }, { run: 2 });
    add('action_completed', { output: 'short' }, { actionId: 'c' });
    const found = [...journal.history.conversationOf(run)];
    expect(found.map(({ event }) => event.seq)).toEqual([2, 3, 4, 6]);
    expect(found[1]?.state).toEqual({ key: '1/0' });
    expect(found[1]?.event).toMatchObject({ action_id: 'a', action_name: 'echo', iteration: 1, timestamp: 5 });
    const outputs = found.map(({ event }) => (event.data as { output?: unknown }).output);
    const [, first, second, third] = outputs as [unknown, string, string, string];
    expect(long.startsWith(first)).toBe(true);
    expect(first.length).toBeGreaterThan(limits.historyResultChars / 2);
    expect(JSON.stringify(object).startsWith(second)).toBe(true);
    expect(second).toHaveLength(limits.historyResultChars - '{"output":'.length);
    expect(third).toBe('short');
    const bytes = journal.history.conversationBytes(run);
    const sizes = [
      '{"content":"hello"}',
      '{"text":"hi"}',
      'x'.repeat(limits.historyResultChars),
      '{"key":"1/0"}',
      'x'.repeat(limits.historyResultChars),
      '{"output":"short"}',
    ].map((text) => text.length);
    expect(bytes).toBe(sizes.reduce((sum, size) => sum + size, 0));
  });

  test.each(['\\', '"', '\n', '\u0001', 'é', '🎈'])('[L5] a text of %j can be cut at any position', (unit) => {
    for (let shift = 0; shift < 7; shift += 1) {
      const { journal, add } = fixture();
      const run = journal.runs.create({}, 1, 'running');
      const output = `${'x'.repeat(shift)}${unit.repeat(limits.historyResultChars)}`;
      add('action_completed', { output }, { actionId: 'a' });
      const [found] = [...journal.history.conversationOf(run)];
      const shown = String(membersOf(found?.event)['output']);
      expect(output.startsWith(shown.slice(0, -1))).toBe(true);
      expect(shown.length).toBeGreaterThan(limits.historyResultChars / 7);
    }
  });

  test('[L5] a finished run is read to its last event; a run with very many events is not measured', () => {
    const { journal, add } = fixture();
    const first = journal.runs.create({ content: 'a' }, 1, 'running');
    add('response_completed', { text: 'hi' });
    journal.runs.end(1, 'completed', 2, false);
    add('response_completed', { text: 'late' });
    const ended = journal.runs.require(1);
    expect([...journal.history.conversationOf(ended)]).toHaveLength(1);
    expect([...journal.history.conversationOf(first)]).toHaveLength(2);
    expect(journal.history.conversationBytes(ended)).toBe('{"content":"a"}{"text":"hi"}'.length);
    const many = { ...ended, lastSeq: ended.firstSeq + limits.historyEvents };
    expect(journal.history.conversationBytes(many)).toBe(Infinity);
    expect(journal.history.conversationBytes({ ...many, lastSeq: many.lastSeq - 1 })).toBeLessThan(Infinity);
  });

  test('[L5] a conversation with more events than a page is read to its end', () => {
    const { journal, add } = fixture();
    const run = journal.runs.create({}, 1, 'running');
    for (let n = 0; n < limits.pageRows * 2 + 1; n += 1) add('response_completed', { text: `${n}` });
    const texts = [...journal.history.conversationOf(run)].map(({ event }) => (event.data as { text: string }).text);
    expect(texts).toEqual(Array.from({ length: limits.pageRows * 2 + 1 }, (_, n) => `${n}`));
  });

  test('[P12] names are found back to the last clear_context, with the cost of reading their values', () => {
    const { journal, add } = fixture();
    const long = 'x'.repeat(limits.rowBytes);
    add('action_completed', { output: 1 }, { actionId: 'old', state: { output_key: 'report' } });
    add('action_completed', { output: null }, { actionId: 'i', actionName: 'clear_context' });
    add('action_completed', { output: 2 }, { actionId: 'a', state: { output_key: 'report' } });
    add('action_failed', {}, { actionId: 'f' });
    add('action_completed', { output: long }, { actionId: 'b' });
    add('action_completed', { output: 3 }, { actionId: 'c', run: 2 });
    expect(journal.history.outcomeCache(1)).toEqual([
      { seq: 5, id: 'b', outputKey: null, bytes: limits.rowBytes + 13 },
      { seq: 3, id: 'a', outputKey: 'report', bytes: 12 },
    ]);
    expect(journal.history.outcomeCache(2)[0]).toEqual({ seq: 6, id: 'c', outputKey: null, bytes: 12 });
  });

  test('[F5] the latest finished actions are listed, newest first', () => {
    const { journal, add } = fixture();
    const ends = [
      'action_completed',
      'action_failed',
      'action_skipped',
      'action_cancelled',
      'action_rejected',
    ] as const;
    for (const type of ends) {
      add('action_started', {});
      add(type, type === 'action_completed' ? { output: 1 } : {});
    }
    expect(journal.history.recentActions(9, 1).map(({ type }) => type)).toEqual([...ends].reverse());
    expect(seqs(journal.history.recentActions(2, 1))).toEqual([10, 8]);
  });

  test('[J8] an approval is found by its id, with the event that ended it', () => {
    const { journal, add } = fixture();
    const ask = (id: string, actionId: string, iteration = 1): SessionEvent =>
      add('approval_requested', { approval_id: id }, { actionId, iteration, state: { of: id } });
    ask('q1', 'a');
    ask('q2', 'b');
    ask('q3', 'c');
    add('approval_resolved', {}, { actionId: 'a', iteration: 2 });
    add('approval_resolved', {}, { actionId: 'a', run: 2 });
    add('action_started', {}, { actionId: 'a' });
    add('approval_resolved', {}, { actionId: 'a' });
    add('action_failed', {}, { actionId: 'a' });
    add('action_cancelled', {}, { actionId: 'b' });
    const found = (id: string): unknown => {
      const approval = journal.history.approval(id);
      return approval === null ? null : [approval.event.seq, approval.state, approval.end?.seq ?? null];
    };
    expect(['q1', 'q2', 'q3', 'q4'].map(found)).toEqual([
      [1, { of: 'q1' }, 7],
      [2, { of: 'q2' }, 9],
      [3, { of: 'q3' }, null],
      null,
    ]);
  });

  test('[J6] large outcomes and outcomes that look like files are listed as possible artifacts', () => {
    const { journal, add } = fixture();
    const action = { actionId: 'a', actionName: 'echo' };
    const done = (output: unknown): void => void add('action_completed', { output } as JsonObject, action);
    done('small');
    done({ files: [] });
    done({ content: [{ mimeType: 'image/png' }] });
    done('x'.repeat(limits.artifactBytes));
    done('x'.repeat(limits.rowBytes));
    add('warning', { files: [] });
    done('x'.repeat(limits.artifactBytes - '{"output":""}'.length));
    const all = journal.history.outcomesWithArtifacts(0, 7);
    expect([all.found, all.next]).toEqual([[2, 3, 4, 5], 7]);
    const bytes = [
      '{"output":"small"}',
      '{"output":{"files":[]}}',
      '{"output":{"content":[{"mimeType":"image/png"}]}}',
    ];
    expect(all.chars).toBe(
      7 * limits.passedEventChars + (bytes.join('').length + 2 * limits.artifactBytes) / limits.searchedCharsPerChar,
    );
    expect(journal.history.outcomesWithArtifacts(2, 3)).toMatchObject({ found: [3], next: 3 });
    for (let n = 0; n < limits.searchedEvents; n += 1) add('warning', {});
    expect(journal.history.outcomesWithArtifacts(0, journal.lastSeq).next).toBe(limits.searchedEvents);
  });

  test('[P6] an outcome without an event in the journal is ignored', () => {
    const { journal } = fixture();
    journal.outcomes.remember({ key: 'k', content: 'c', seq: 99, at: 1, expiresAt: null });
    expect(journal.outcomes.get('k')).toBeNull();
  });

  test('[P6] idempotency keys have their own limit: beyond it the oldest tenth is removed', () => {
    const { sql, journal } = fixture();
    const remember = (n: number): void =>
      journal.outcomes.remember({ key: `k${n}`, content: 'c', seq: n, at: 1_000, expiresAt: null });
    const count = (): unknown => sql.exec(`SELECT COUNT(*) AS n, MIN(seq) AS first FROM outcomes`)[0];
    for (let n = 0; n < limits.idempotencyKeys; n += 1) remember(n);
    expect(count()).toEqual({ n: limits.idempotencyKeys, first: 0 });
    remember(limits.idempotencyKeys);
    expect(count()).toEqual({ n: limits.idempotencyKeys * 0.9, first: limits.idempotencyKeys * 0.1 + 1 });
  });

  test('[P6] expired outcomes are removed with the first write of a journal; later ones stay', () => {
    const { sql, journal } = fixture();
    const remember = (kept: Journal, key: string, at: number, expiresAt: number | null): void =>
      kept.outcomes.remember({ key, content: 'c', seq: 1, at, expiresAt });
    remember(journal, 'a', 0, 10);
    remember(journal, 'b', 0, 11);
    remember(new Journal(sql), 'c', 10, null);
    expect(sql.exec(`SELECT key FROM outcomes ORDER BY key`).map(({ key }) => key)).toEqual(['b', 'c']);
  });
});

describe('the schema', () => {
  test('[J9] data of newer code is refused with the supported schema version, without a write', () => {
    const { sql, journal } = fixture();
    journal.variables.set('x', 1);
    const stored = (): number => Number(sql.exec(`SELECT version FROM schema`)[0]?.['version']);
    const version = stored();
    sql.exec(`UPDATE schema SET version = ?`, version + 1);
    expect(() => new Journal(sql)).toThrow(
      expect.objectContaining({
        code: 'schema_too_new',
        message: `The session is stored with schema ${version + 1}; this version reads up to ${version}`,
      }),
    );
    expect(stored()).toBe(version + 1);
  });
});
