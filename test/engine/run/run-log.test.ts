/** Writing a run's events to the journal and to readers: in order, durable first, with the inputs that caused them. */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { limits } from '../../../src/domain/limits.ts';
import { RunLog } from '../../../src/engine/run/run-log.ts';
import type { RecordedInput } from '../../../src/engine/run/run-input.ts';
import { runIdOf } from '../../../src/journal/run-id.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import { newJournal, SESSION_ID } from '../../journal/journal-kit.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { settle } from '../../support/session-kit.ts';

interface Made {
  readonly log: RunLog;
  readonly journal: Journal;
  readonly clock: VirtualClock;
  readonly sql: NodeSql;
  /** The events that readers got, batch by batch. */
  readonly published: (readonly SessionEvent[])[];
}

function made(): Made {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  journal.runs.create({}, 1, 'running');
  const clock = new VirtualClock(5_000);
  const published: (readonly SessionEvent[])[] = [];
  const log = new RunLog({
    journal,
    clock,
    runId: runIdOf({ session_id: SESSION_ID }, 1),
    runNumber: 1,
    sessionId: SESSION_ID,
    publish: (batch) => published.push(batch),
    replay: null,
  });
  return { log, journal, clock, sql, published };
}

const HEAD = { session_id: SESSION_ID, run_id: runIdOf({ session_id: SESSION_ID }, 1), timestamp: 5_000 };
const ACTION = { id: 'a', name: 'echo' };
const text = (chars: number, at = 5_000): RecordedInput => ({ type: 'text', at, text: 'x'.repeat(chars) });
const idle: RecordedInput = { type: 'generation_idle', at: 5_000 };
/** The inputs that were written without an event, row by row. */
const rows = ({ journal }: Made): unknown[] =>
  journal.runs.looseInputs(1).map(({ inputs }) => (Array.isArray(inputs) ? inputs.length : null));

describe('[J1] events that are written together with something else', () => {
  test('are neither written nor published if it fails, and the inputs before them are kept', async () => {
    const { log, journal, published } = made();
    log.record(text(3));
    const failing = (): void =>
      log.atomically(() => {
        log.warn('w1', 'lost');
        throw new Error('no');
      });
    expect(failing).toThrow('no');
    expect(journal.lastSeq).toBe(0);
    log.atomically(() => log.warn('w2', 'kept'));
    await log.commit();
    expect(published.flat()).toMatchObject([{ seq: 1, data: { code: 'w2' } }]);
    expect(journal.range({ after: 0, limit: 1 })[0]?.state).toHaveProperty('in');
  });
});

describe('[H2] the envelope of an event', () => {
  test('contains the run, the iteration and the time, and the action with its name if there are any', async () => {
    const { log, published } = made();
    log.enterIteration(2);
    log.warn('w1', 'about the run');
    log.warn('w2', 'about an action', ACTION);
    log.warn('w3', 'about one without a name', { id: 'b', name: null });
    log.append('warning', { code: 'w4', message: 'of another iteration' }, { iteration: 7 });
    log.live('llm_token', { token: 't' });
    log.live('progress', { text: 'p' }, ACTION);
    log.live('progress', { text: 'q' }, { id: 'b', name: null });
    await log.commit();
    const warning = (seq: number, code: string, message: string): object => ({
      ...HEAD,
      seq,
      type: 'warning',
      iteration: 2,
      data: { code, message },
    });
    expect(published).toHaveLength(1);
    expect(published[0]?.map((event) => ({ ...event }))).toStrictEqual([
      warning(1, 'w1', 'about the run'),
      { ...warning(2, 'w2', 'about an action'), action_id: 'a', action_name: 'echo' },
      { ...warning(3, 'w3', 'about one without a name'), action_id: 'b' },
      { ...warning(4, 'w4', 'of another iteration'), iteration: 7 },
      { ...HEAD, seq: null, type: 'llm_token', iteration: 2, data: { token: 't' } },
      { ...HEAD, seq: null, type: 'progress', iteration: 2, action_id: 'a', action_name: 'echo', data: { text: 'p' } },
      { ...HEAD, seq: null, type: 'progress', iteration: 2, action_id: 'b', data: { text: 'q' } },
    ]);
  });

  test('[J4] adjacent patches are sent as one; others are not', async () => {
    const { log, published } = made();
    const patch = (offset: number, delta: string): void => log.live('text', { segment: 1, offset, delta });
    patch(0, 'ab');
    patch(2, 'cd');
    log.live('llm_token', { token: 't' });
    patch(4, 'ef');
    patch(9, 'gh');
    await log.commit();
    const deltas = published[0]?.map(({ type, data }) => ('delta' in data ? data.delta : type));
    expect(deltas).toEqual(['abcd', 'llm_token', 'ef', 'gh']);
  });
});

describe('[J1] the end of a turn', () => {
  test('[J4] text without an event is sent at once, but not before what was written earlier is durable', async () => {
    const { log, journal, sql, published } = made();
    await log.commit();
    const patch = (offset: number): void => log.live('text', { segment: 1, offset, delta: 'x' });
    patch(0);
    expect(log.commit()).toBeNull();
    expect(published).toHaveLength(1);
    const disk = Promise.withResolvers<void>();
    sql.onSync = () => disk.promise;
    journal.setFeed('f', {});
    patch(1);
    const dirty = log.commit();
    await settle();
    // Its sync has begun and not ended.
    patch(2);
    const syncing = log.commit();
    await settle();
    expect(published).toHaveLength(1);
    disk.resolve();
    await Promise.all([dirty, syncing]);
    expect(published.slice(1).map(([event]) => event?.data)).toMatchObject([{ offset: 1 }, { offset: 2 }]);
    patch(3);
    expect(log.commit()).toBeNull();
    log.afterSync(() => undefined);
    expect(log.commit()).not.toBeNull();
  });

  test('idempotent effects run while the events are written, other effects when they are durable, and readers are informed last', async () => {
    const { log, sql, published } = made();
    const disk = Promise.withResolvers<void>();
    sql.onSync = () => disk.promise;
    const order: string[] = [];
    log.append('warning', { code: 'w', message: 'm' });
    log.afterSync(() => order.push(`after the sync, ${published.length} published`));
    log.afterWrite(() => order.push('after the write'));
    const committed = log.commit();
    await settle();
    expect([order, published.length]).toEqual([['after the write'], 0]);
    disk.resolve();
    await committed;
    expect([order, published.length]).toEqual([['after the write', 'after the sync, 0 published'], 1]);
    // Each effect runs once, and each event is sent once.
    await log.commit();
    expect([order.length, published.length]).toEqual([2, 1]);
  });

  test('without events to write, the idempotent effects run before the others', async () => {
    const { log, published, sql } = made();
    await log.commit();
    const order: string[] = [];
    log.afterSync(() => order.push('after the sync'));
    log.afterWrite(() => order.push('after the write'));
    const { syncs } = sql;
    await log.commit();
    expect(sql.syncs).toBe(syncs);
    expect([order, published]).toEqual([['after the write', 'after the sync'], []]);
  });

  test('nothing is sent of a turn whose events another writer has lost, and later turns are not affected', async () => {
    const { log, journal, sql, published } = made();
    log.warn('first', 'written');
    await log.commit();
    log.warn('second', 'lost');
    const { exec } = sql;
    sql.exec = (statement, ...parameters) => {
      if (statement.startsWith('INSERT INTO events')) throw new Error('disk full');
      return exec(statement, ...parameters);
    };
    expect(() => journal.variables.set('x', 1)).toThrow('disk full');
    sql.exec = exec;
    await expect(log.commit()).rejects.toThrow('Events of this run could not be written');
    expect(published.map((batch) => batch.map(({ seq }) => seq))).toEqual([[1]]);
    log.warn('third', 'written');
    await log.commit();
    expect(published.map((batch) => batch.map(({ seq }) => seq))).toEqual([[1], [2]]);
  });

  test('no effect runs if the events cannot be written', async () => {
    const { log, sql, published } = made();
    sql.onSync = () => Promise.reject(new Error('disk full'));
    const order: string[] = [];
    log.append('warning', { code: 'w', message: 'm' });
    log.afterSync(() => order.push('after the sync'));
    await expect(log.commit()).rejects.toThrow('disk full');
    expect([order, published]).toEqual([[], []]);
  });
});

describe('[J6] [J9] inputs of a run', () => {
  test('are written once with the next event, beside its own state', () => {
    const { log, journal } = made();
    log.record(text(3));
    log.record(idle);
    const carrying = log.append('warning', { code: 'w', message: 'm' }, { state: { key: '1/0' } });
    const later = log.append('warning', { code: 'w', message: 'm' });
    expect(journal.stateAt(carrying)).toEqual({
      key: '1/0',
      in: [
        { is: 'text', at: 5_000, text: 'xxx' },
        { is: 'idle', at: 5_000 },
      ],
    });
    expect(journal.stateAt(later)).toBeNull();
    expect(log.saveBy).toBeNull();
  });

  test('text is written some time after its first piece, or at once when there is enough of it', () => {
    const { log } = made();
    expect(log.saveBy).toBeNull();
    log.record(idle);
    expect(log.saveBy).toBeNull();
    log.record(text(1, 6_000));
    log.record(text(limits.unsavedTextChars - 2, 7_000));
    expect(log.saveBy).toBe(6_000 + limits.unsavedTextMs);
    log.record(text(1, 8_000));
    expect(log.saveBy).toBe(0);
    log.save();
    expect(log.saveBy).toBeNull();
  });

  test('of a generation are written early for the first time, then less often', () => {
    const { log } = made();
    log.enterIteration(1);
    log.record(text(1, 6_000));
    expect(log.saveBy).toBe(6_000 + limits.unsavedTextMs);
    log.save();
    log.record(text(1, 7_000));
    expect(log.saveBy).toBe(7_000 + limits.unsavedTextLaterMs);
    log.warn('w', 'an event takes the text along');
    log.record(text(1, 9_000));
    expect(log.saveBy).toBe(9_000 + limits.unsavedTextLaterMs);
    log.record(text(limits.unsavedTextChars, 9_500));
    expect(log.saveBy).toBe(0);
    log.enterIteration(2);
    log.record(text(1, 9_600));
    log.save();
    log.enterIteration(3);
    log.record(text(1, 9_700));
    expect(log.saveBy).toBe(9_700 + limits.unsavedTextMs);
  });

  const wide = limits.unsavedTextChars * 2;
  const cases: readonly (readonly [what: string, inputs: readonly RecordedInput[], written: readonly number[]])[] = [
    ['nothing', [], []],
    ['few inputs, in one row', [text(wide), idle, idle], [3]],
    ['long text, one row each', [text(wide + 1), idle], [1, 1]],
    ['a hundred inputs, in one row', Array.from({ length: 100 }, () => idle), [100]],
    ['more inputs, one row each', Array.from({ length: 101 }, () => idle), Array.from({ length: 101 }, () => 1)],
  ];
  test.each(cases)('that are saved without an event: %s', (_what, inputs, written) => {
    const one = made();
    for (const input of inputs) one.log.record(input);
    one.log.save();
    expect(rows(one)).toEqual(written);
    one.log.save();
    expect(rows(one)).toEqual(written);
  });
});
