/** The simulation can fail: each invariant notices deliberate mistakes in the engine (broken/patches.ts). */
import { describe, expect, test } from 'vitest';
import { findViolation, MOST_HISTORIES } from './broken/find.ts';
import { PATCHES } from './broken/patches.ts';
import { INVARIANTS } from './invariants/all.ts';

describe.concurrent('a broken engine', () => {
  test.each(PATCHES)('the simulation finds: $name', async (patch) => {
    const found = await findViolation(patch, MOST_HISTORIES);
    expect(found.what).not.toBe('');
  });
});

test('every invariant has a patch that it must notice', () => {
  const noticed = new Set(PATCHES.map(({ invariant }) => invariant));
  expect([...noticed].toSorted()).toEqual(INVARIANTS.map(({ name }) => name).toSorted());
});

test('every patch has its own name', () => {
  expect(new Set(PATCHES.map(({ name }) => name)).size).toBe(PATCHES.length);
});
