/** The rows of one turn's events are written with few statements (J1). */
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { inParts } from '../../src/journal/event-rows.ts';
import type { EventRow } from '../../src/journal/event-rows.ts';

const row = (seq: number, data: string | null, state: string | null = null): EventRow => [
  seq,
  1,
  1,
  'warning',
  5,
  null,
  null,
  data,
  state,
];
const long = 'x'.repeat(limits.inlineBytes + 1);

/** The parts: a number is a row that is written alone, a list is rows that are written together. */
function parts(rows: readonly EventRow[]): unknown[] {
  return [...inParts(rows)].map((part) =>
    typeof part === 'string' ? (JSON.parse(part) as EventRow[]).map(([seq]) => seq) : part[0],
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
