/** Start times of work that is suspected of freezing its host (J2). */
import { expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import { QuarantineSlots } from '../../../src/engine/replay/quarantine-slots.ts';

const ALONE = limits.provenMs + limits.quarantineMarginMs;

/** The start times, from 0, for work with these numbers of notes at these request times. */
function given(...asked: readonly (readonly [at: number, notes: number])[]): number[] {
  const slots = new QuarantineSlots();
  return asked.map(([at, notes]) => at + slots.delayOf(notes, at));
}

test.each<[what: string, timesAndNotes: string, starts: number[]]>([
  ['without notes: at once', '0:0 0:0 5:0', [0, 0, 5]],
  ['one note each: one after the other', '0:1 0:1 0:1 60000:1', [0, 1_000, 2_000, 60_000]],
  ['no notes, while others have slots', '0:1 0:1 0:0', [0, 1_000, 0]],
  ['two notes: each alone', '0:2 0:2 1:3', [0, ALONE, 2 * ALONE]],
  ['two notes, after earlier work without notes', '0:0 10:2', [0, ALONE]],
  ['two notes, after work with one note that may still freeze', '0:1 5000:2', [0, ALONE]],
  ['no notes, while other work runs alone', '0:2 10:0 20:1', [0, ALONE, ALONE]],
  ['two notes, after work that waits for its turn', '0:2 10:0 20:2', [0, ALONE, 2 * ALONE]],
  ['no notes: long enough before work that runs alone, and too late', '0:0 0:2 0:0 1:0', [0, ALONE, 0, 2 * ALONE]],
  ['one note each, after work that ran alone', `0:2 10:1 20:1 ${ALONE}:1`, [0, ALONE, ALONE + 1_000, ALONE + 2_000]],
  ['several exclusive intervals: the first gap counts', '0:2 0:2 5:0 5:2', [0, ALONE, 2 * ALONE, 3 * ALONE]],
])('[J2] %s', (_what, asked, starts) => {
  const times = asked.split(' ').map((one) => one.split(':').map(Number) as [number, number]);
  expect(given(...times)).toEqual(starts);
});

test('[J2] work with two notes runs alone until it is proven, for any order of requests', () => {
  let seed = 1;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 200; round += 1) {
    const asked = Array.from({ length: 30 }, () => [random(120_000), random(4)] as const).toSorted(([a], [b]) => a - b);
    const times = given(...asked).map((at, index) => ({ at, notes: asked[index]?.[1] ?? 0 }));
    for (const alone of times.filter(({ notes }) => notes >= 2)) {
      const near = times.filter((other) => other !== alone && Math.abs(other.at - alone.at) < limits.provenMs);
      expect(near).toEqual([]);
    }
  }
});
