/** The rows of one turn's events are written with few statements (J1). */
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { eventsIn, inRows, inserts } from '../../src/journal/event-rows.ts';
import type { PendingEvent, StoredRow } from '../../src/journal/event-rows.ts';

const row = (seq: number, data: string | null, state: string | null = null): StoredRow => [
  seq,
  1,
  1,
  'warning',
  5,
  null,
  null,
  data,
  state,
  null,
];
const long = 'x'.repeat(limits.inlineBytes + 1);

test('[J1] the rows of a turn are written in order, with few statements', () => {
  for (const count of [0, 1, 2, 3, 10, 12, 25]) {
    const rows = Array.from({ length: count }, (_, at) => row(at + 1, at % 2 === 0 ? long : '{}'));
    const statements = [...inserts(rows)];
    expect(statements.flatMap(([, ...values]) => values)).toEqual(rows.flat());
    for (const [sql, ...values] of statements) {
      expect(values.length).toBeLessThanOrEqual(100);
      expect(sql.match(/\?/g)).toHaveLength(values.length);
    }
  }
  expect([...inserts(Array.from({ length: 25 }, (_, at) => row(at + 1, null)))]).toHaveLength(5);
});

/** An event of this type; `run` 1 by default. */
function event(type: string, more: { run?: number; data?: string; isApart?: boolean } = {}): PendingEvent {
  const { run = 1, data = '{}', isApart = false } = more;
  return { row: [0, run, 1, type, 5, null, null, data, null], apart: isApart ? [['data', data]] : [] };
}

/** The types in each row; a run has one row of events at least. */
function rowsOf(events: readonly PendingEvent[]): string[] {
  const numbered = events.map(({ row: [, ...rest], apart }, at): PendingEvent => ({ row: [at + 1, ...rest], apart }));
  const rows = inRows(numbered).map(([seq, run, iteration, type, , , , data, state, earlier]) =>
    eventsIn({ seq, run, iteration, type, at: 5, action_id: null, action_name: null, data, state, earlier }),
  );
  expect(rows.flat().map(({ seq }) => seq)).toEqual(numbered.map(({ row: [seq] }) => seq));
  return rows.map((found) => found.map(({ type }) => type).join(' '));
}

test('[J6] events of one turn share a row, up to one that queries look for by type', () => {
  expect(rowsOf([event('agent_started'), event('iteration_started')])).toEqual(['agent_started iteration_started']);
  const end = ['response_completed', 'usage', 'iteration_completed', 'agent_completed', 'warning'];
  expect(rowsOf(end.map((type) => event(type)))).toEqual([end.slice(0, 4).join(' '), 'warning']);
  expect(rowsOf([event('action_completed'), event('action_started'), event('action_started')])).toEqual([
    'action_completed',
    'action_started action_started',
  ]);
});

test('[J6] events of different runs, long events and those with chunk rows share no row', () => {
  expect(rowsOf([event('usage'), event('agent_started', { run: 2 }), event('usage', { run: 2 })])).toEqual([
    'usage',
    'agent_started usage',
  ]);
  expect(rowsOf([event('usage'), event('warning', { data: long }), event('usage')])).toEqual([
    'usage',
    'warning',
    'usage',
  ]);
  expect(rowsOf([event('usage'), event('warning', { isApart: true }), event('usage')])).toEqual([
    'usage',
    'warning',
    'usage',
  ]);
});

test('[J6] the earlier events of a row are limited in number and size', () => {
  const many = Array.from({ length: limits.rowEvents * 2 + 1 }, () => event('action_queued'));
  expect(rowsOf(many).map((types) => types.split(' ').length)).toEqual([limits.rowEvents, limits.rowEvents, 1]);
  const half = 'x'.repeat(limits.inlineBytes / 2);
  expect(rowsOf(Array.from({ length: 4 }, () => event('usage', { data: half })))).toEqual([
    'usage usage',
    'usage usage',
  ]);
});
