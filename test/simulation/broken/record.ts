/** Writes seeds.json: for each patch, a history in which its invariant is violated. Run it with Node after changes of the histories. */
import { writeFileSync } from 'node:fs';
import { findViolation, MOST_HISTORIES } from './find.ts';
import { PATCHES } from './patches.ts';

const found = await Promise.all(
  PATCHES.map(async (patch): Promise<[string, number]> => {
    const { seed } = await findViolation(patch, MOST_HISTORIES);
    console.log(`${seed}\t${patch.name}`);
    return [patch.name, seed];
  }),
);
writeFileSync(new URL('seeds.json', import.meta.url), `${JSON.stringify(Object.fromEntries(found), null, 2)}\n`);
