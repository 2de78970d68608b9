/** Readers get every durable event in order, whatever happened to the turn that wrote it (J1, J4). */
import { expect, test } from 'vitest';
import type { SessionEvent, TextPatch } from '../../../src/domain/event.ts';
import { Broadcaster } from '../../../src/engine/session/broadcaster.ts';
import type { EventBatch } from '../../../src/engine/session/broadcaster.ts';

const head = { session_id: 's', run_id: 'r', iteration: 1, timestamp: 1 };
const warning = (seq: number): SessionEvent => ({
  seq,
  type: 'warning',
  ...head,
  data: { code: 'x', message: `${seq}` },
});
const block = (seq: number, content: string): SessionEvent => ({
  seq,
  type: 'text_completed',
  ...head,
  data: { segment: 1, content },
});
const patch = (delta: string): TextPatch => ({
  seq: null,
  type: 'text',
  ...head,
  data: { segment: 1, offset: 0, delta },
});

/** What one listener got of these batches, over a journal with these events. */
function published(stored: readonly SessionEvent[], ...batches: readonly EventBatch[]): EventBatch {
  const broadcaster = new Broadcaster(0, (after, before) =>
    stored.filter(({ seq }) => (seq ?? 0) > after && (seq ?? 0) < before),
  );
  const got: SessionEvent[] = [];
  broadcaster.listen((batch) => got.push(...(batch ?? [])));
  for (const batch of batches) broadcaster.publish(batch);
  return got;
}

test('[J1] events that their own turn could not publish precede the next batch', () => {
  const stored = [warning(1), warning(2), warning(3), warning(4)];
  expect(published(stored, [warning(1)], [warning(4)]).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
});

test('[J4] before the end of a block whose patches were lost, readers get its whole text', () => {
  const stored = [warning(1), block(2, 'the whole text'), warning(3)];
  expect(published(stored, [warning(1), patch('the who')], [warning(3)])).toEqual([
    warning(1),
    patch('the who'),
    patch('the whole text'),
    block(2, 'the whole text'),
    warning(3),
  ]);
});

test('[J1] events of two runs are in order, even if the later batch is published first', () => {
  const stored = [1, 2, 3, 4].map(warning);
  const batches = [[warning(1), patch('a'), warning(3)], [warning(2)], [warning(4)]];
  expect(published(stored, ...batches)).toEqual([warning(1), patch('a'), warning(2), warning(3), warning(4)]);
});

test('[J1] no event is published twice, and live events always are', () => {
  const batches = [[warning(1), warning(2)], [patch('a'), warning(2), warning(3)], [patch('b')]];
  expect(published([], ...batches)).toEqual([warning(1), warning(2), patch('a'), warning(3), patch('b')]);
});
