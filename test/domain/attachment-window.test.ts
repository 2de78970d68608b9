import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { newestWithin } from '../../src/domain/attachment-window.ts';

interface Item {
  readonly id: number;
  readonly size: number;
}

const groups = fc.array(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 6 }), { maxLength: 20 }).map((sizes) => {
  let id = 0;
  return sizes.map((group) => group.map((size): Item => ({ id: (id += 1), size })));
});
const budget = { most: 8, bytes: 100 };
const kept = (given: readonly (readonly Item[])[]): Item[] => [...newestWithin(given, budget, ({ size }) => size)];

test('[C2] what is kept is within the budget, in order, and contains what fits of the newest message', () => {
  fc.assert(
    fc.property(groups, (given) => {
      const shown = kept(given);
      expect(shown.length).toBeLessThanOrEqual(budget.most);
      expect(shown.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(budget.bytes);
      expect(shown.map(({ id }) => id)).toEqual(shown.map(({ id }) => id).toSorted((a, b) => a - b));
      const newest = given.at(-1) ?? [];
      for (const item of kept([newest])) expect(shown).toContain(item);
    }),
  );
});

test('[C2] a further message either extends what was kept or leaves at most half of the budget of it', () => {
  let dropped = 0;
  fc.assert(
    fc.property(groups, (given) => {
      for (let count = 1; count < given.length; count += 1) {
        const before = kept(given.slice(0, count));
        const after = new Set(kept(given.slice(0, count + 1)));
        const left = before.filter((item) => after.has(item));
        if (left.length === before.length) continue;
        dropped += 1;
        expect(left.length).toBeLessThanOrEqual(budget.most / 2);
      }
    }),
  );
  expect(dropped).toBeGreaterThan(20);
});
