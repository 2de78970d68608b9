/** Many histories of the simulation, from another seed than that of `npm test`. */
import { test } from 'vitest';
import { requireHistories } from '../simulation/require-histories.ts';

const FIRST_SEED = 1_000_000;
const HISTORIES = 20_000;

test(`${HISTORIES} histories violate no invariant`, async () => {
  await requireHistories(FIRST_SEED, HISTORIES);
}, 3_600_000);
