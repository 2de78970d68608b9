/** The store of the facts about one user (C10). */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { FactCall, FactChange } from '../../src/domain/ports/user-facts.ts';
import { FactStore } from '../../src/edge-relics/fact-store.ts';
import { failEach, failingWrites } from '../support/failing-writes.ts';
import { openNodeSql } from '../support/node-sql.ts';

interface Kit {
  readonly store: FactStore;
  readonly clock: { now: number };
  facts(): Record<string, string>;
}

function storeKit(sql = openNodeSql()): Kit {
  const clock = { now: 1_000 };
  const store = new FactStore({ sql, now: () => clock.now });
  return {
    store,
    clock,
    facts: () => Object.fromEntries(store.read().facts.map(({ key, value }) => [key, value])),
  };
}

const ROOM = { facts: 3, chars: 1_000 };
const callOf = (id: string, more: Partial<FactCall> = {}): FactCall => ({
  id,
  since: 1_000,
  until: 9_000,
  isRepeated: false,
  ...more,
});
const remember = (
  key: string,
  value: string,
  call: FactCall | null = null,
  room = ROOM,
): Extract<FactChange, { type: 'remember' }> => ({
  type: 'remember',
  key,
  value,
  room,
  by: call === null ? null : { sessionId: 'ses_1', runId: 'run_1', call },
});
const forget = (key: string, call: FactCall | null = null): FactChange => ({ type: 'forget', key, call });

describe('[C10] the store of a user', () => {
  test('keeps who wrote a fact, and when', () => {
    const { store, clock } = storeKit();
    store.change(remember('colour', 'green', callOf('a')));
    clock.now = 2_000;
    store.change(remember('city', 'Rome'));
    expect(store.read().facts).toEqual([
      { key: 'city', value: 'Rome', updatedAt: 2_000, sessionId: null, runId: null },
      { key: 'colour', value: 'green', updatedAt: 1_000, sessionId: 'ses_1', runId: 'run_1' },
    ]);
  });

  test('stores nothing before the first change', () => {
    const sql = openNodeSql();
    const { store } = storeKit(sql);
    expect([store.read(), store.lookup('a')]).toEqual([{ version: 0, facts: [] }, null]);
    expect(sql.exec('SELECT name FROM sqlite_master')).toEqual([]);
    expect(store.change(forget('k', callOf('a')))).toMatchObject({ ok: true, changed: 0 });
  });

  test('survives its host', () => {
    const sql = openNodeSql();
    storeKit(sql).store.change(remember('colour', 'green'));
    const next = storeKit(sql);
    expect(next.facts()).toEqual({ colour: 'green' });
    expect(next.store.read().version).toBe(1);
  });

  test('a repeated call changes nothing, also after the fact was forgotten', () => {
    const { store, clock, facts } = storeKit();
    expect(store.change(remember('colour', 'green', callOf('a')))).toMatchObject({ ok: true, changed: 1 });
    clock.now += 10;
    store.change(forget('colour'));
    clock.now += 10;
    expect(store.change(remember('colour', 'green', callOf('a', { isRepeated: true })))).toMatchObject({ changed: 1 });
    expect(facts()).toEqual({});
    expect(store.lookup('a')).toEqual({ changed: 1 });
    expect(store.lookup('b')).toBeNull();
  });

  test.each(['forget', 'forget_all'] as const)('a repeated attempt does not bring back what %s removed', (type) => {
    const { store, clock, facts } = storeKit();
    store.change(remember('colour', 'green'));
    clock.now = 2_000;
    store.change(type === 'forget' ? forget('colour') : { type });
    clock.now = 3_000;
    const late = store.change(remember('colour', 'red', callOf('a', { isRepeated: true })));
    expect(late).toMatchObject({ ok: false, code: 'superseded' });
    expect(facts()).toEqual({});
    // An action that began afterwards writes it.
    expect(store.change(remember('colour', 'red', callOf('b', { since: 2_500, isRepeated: true })))).toMatchObject({
      ok: true,
    });
  });

  test('an attempt that was given up does not write when it arrives late', () => {
    const { store, clock, facts } = storeKit();
    clock.now = 9_001;
    expect(store.change(remember('colour', 'green', callOf('a')))).toMatchObject({ code: 'superseded' });
    expect(store.change(forget('colour', callOf('b')))).toMatchObject({ code: 'superseded' });
    expect(facts()).toEqual({});
  });

  test('a first attempt writes what was forgotten in the same moment: the model corrects a fact', () => {
    const { store, clock, facts } = storeKit();
    clock.now = 1_005;
    store.change(forget('colour', callOf('a')));
    store.change(remember('colour', 'red', callOf('b')));
    expect(facts()).toEqual({ colour: 'red' });
  });

  test('a full store names its facts; replacing and forgetting stay possible', () => {
    const { store, facts } = storeKit();
    for (const key of ['a', 'b', 'c']) store.change(remember(key, key));
    expect(store.change(remember('d', 'd', callOf('1')))).toEqual({
      ok: false,
      code: 'memory_full',
      message: '3 facts are the limit; forget one first: a, b, c',
    });
    expect(store.lookup('1')).toBeNull();
    expect(store.change(remember('c', 'new'))).toMatchObject({ ok: true });
    store.change(forget('a'));
    expect(store.change(remember('d', 'd', callOf('1')))).toMatchObject({ ok: true });
    expect(facts()).toEqual({ b: 'b', c: 'new', d: 'd' });
  });

  test('the size of all facts is limited', () => {
    const { store } = storeKit();
    const room = { facts: 10, chars: 40 };
    expect(store.change(remember('a', 'x'.repeat(20), null, room))).toMatchObject({ ok: true });
    expect(store.change(remember('b', 'x'.repeat(20), null, room))).toMatchObject({
      code: 'memory_full',
      message: 'with it, the facts have 56 characters, and 40 are the limit; forget one first: a',
    });
    expect(store.change(remember('a', 'x'.repeat(60), null, room))).toMatchObject({ code: 'memory_full' });
  });

  test('the records of calls have no values, and their number is limited', () => {
    const sql = openNodeSql();
    const { store } = storeKit(sql);
    for (let call = 0; call < limits.factCalls + 5; call += 1)
      store.change(remember('k', 'sesame', callOf(`c${call}`)));
    store.change({ type: 'forget_all' });
    expect(sql.exec('SELECT count(*) AS rows FROM fact_calls')).toEqual([{ rows: limits.factCalls }]);
    for (const table of ['facts', 'fact_calls', 'forgotten_facts']) {
      expect(JSON.stringify(sql.exec(`SELECT * FROM ${table}`))).not.toContain('sesame');
    }
  });

  test('of very many forgotten keys, the oldest are remembered together', () => {
    const sql = openNodeSql();
    const { store, clock } = storeKit(sql);
    for (let key = 0; key < limits.factDeletions + 50; key += 1) {
      clock.now += 1;
      store.change(forget(`k${key}`));
    }
    const [{ rows = 0 } = {}] = sql.exec('SELECT count(*) AS rows FROM forgotten_facts');
    expect(rows).toBe(limits.factDeletions + 1);
    const repeated = callOf('late', { since: 1_000, isRepeated: true });
    for (const key of ['k0', 'k100', `k${limits.factDeletions + 49}`]) {
      expect(store.change(remember(key, 'x', repeated))).toMatchObject({ code: 'superseded' });
    }
  });

  test('any order of changes leaves each key with its last one, and no other key is lost', () => {
    const key = fc.constantFrom('a', 'b', 'c');
    const change = fc.oneof(
      fc.record({ type: fc.constant('remember' as const), key, value: fc.constantFrom('1', '2', '3') }),
      fc.record({ type: fc.constant('forget' as const), key }),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 20 }), fc.array(fc.nat(19)), (changes, repeats) => {
        const { store, facts } = storeKit();
        const expected = new Map<string, string>();
        const apply = (at: number): void => {
          const one = changes[at];
          if (one === undefined) return;
          const call = callOf(`call ${at}`);
          store.change(one.type === 'forget' ? forget(one.key, call) : remember(one.key, one.value, call));
        };
        for (const [at, one] of changes.entries()) {
          apply(at);
          if (one.type === 'forget') expected.delete(one.key);
          else expected.set(one.key, one.value);
          // Late attempts of earlier calls.
          for (const earlier of repeats) if (earlier <= at) apply(earlier);
          expect(facts()).toEqual(Object.fromEntries(expected));
        }
      }),
      { numRuns: 60 },
    );
  });
});

test('[C10] a change, its version and the record of its call are written together, whichever statement fails', () => {
  const prepare = () => {
    const failing = failingWrites(openNodeSql());
    const store = new FactStore({ sql: failing.sql, now: () => 1_000 });
    for (const key of ['a', 'b']) store.change(remember(key, 'before', callOf(key)));
    return { ...failing, store };
  };
  const changes: FactChange[] = [remember('a', 'after', callOf('c')), forget('a', callOf('c')), { type: 'forget_all' }];
  for (const change of changes) {
    const failed = failEach(
      prepare,
      ({ store }) => store.change(change),
      ({ store }) => [store.read(), store.lookup('c')],
    );
    expect(failed).toBeGreaterThan(2);
  }
});
