/** The rows of one turn's events are written with few statements (J1). */
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { eventsIn, inParts, inRows } from '../../src/journal/event-rows.ts';
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

/** The parts: a number is a row that is written alone, a list is rows that are written together. */
function parts(rows: readonly StoredRow[]): unknown[] {
  return [...inParts(rows)].map((part) =>
    typeof part === 'string' ? (JSON.parse(part) as StoredRow[]).map(([seq]) => seq) : part[0],
  );
}

test('[J1] a single row is written as it is, several rows as one list', () => {
  expect(parts([])).toEqual([]);
  expect(parts([row(1, '{}')])).toEqual([1]);
  expect(parts([row(1, '{}'), row(2, null), row(3, '{}', '{}')])).toEqual([[1, 2, 3]]);
  const rows = [row(1, '{}'), row(2, '{"a":1}', '{"b":2}')];
  expect(JSON.parse(String([...inParts(rows)][0]))).toEqual(rows);
});

test('[J1] long rows are written alone, in order', () => {
  expect(parts([row(1, long), row(2, '{}')])).toEqual([1, 2]);
  expect(parts([row(1, '{}'), row(2, '{}'), row(3, '{}', long), row(4, '{}'), row(5, '{}')])).toEqual([
    [1, 2],
    3,
    [4, 5],
  ]);
  const half = 'x'.repeat(limits.inlineBytes / 2);
  expect(parts([row(1, half, half), row(2, '{}')])).toEqual([[1, 2]]);
  expect(parts([row(1, half, `${half}x`), row(2, '{}')])).toEqual([1, 2]);
});

test('[J1] the size of a list is limited', () => {
  const each = 'x'.repeat(limits.inlineBytes);
  const count = Math.ceil(limits.batchChars / limits.inlineBytes);
  const rows = Array.from({ length: count * 2 + 1 }, (_, at) => row(at, each));
  expect(parts(rows).map((part) => (Array.isArray(part) ? part.length : 'alone'))).toEqual([count, count, 'alone']);
});

/** An event of this type; `run` 1 by default. */
function event(type: string, more: { run?: number; data?: string; isApart?: boolean } = {}): PendingEvent {
  const { run = 1, data = '{}', isApart = false } = more;
  return { row: [0, run, 1, type, 5, null, null, data, null], isApart };
}

/** The types in each row; a run has one row of events at least. */
function rowsOf(events: readonly PendingEvent[]): string[] {
  const numbered = events.map(({ row: [, ...rest], isApart }, at): PendingEvent => ({
    row: [at + 1, ...rest],
    isApart,
  }));
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
