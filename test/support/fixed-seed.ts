/**
 * Random cases are the same in every run, so that a test fails because of a change. With CORTEX_FUZZ_RUNS the search is
 * longer, and new each time; a measurement of mutants makes it shorter.
 */
import * as fc from 'fast-check';

const SEED = 20_261_122;
const { CORTEX_FUZZ_RUNS, MUTATION_ROOM } = process.env;
if (MUTATION_ROOM !== undefined) fc.configureGlobal({ seed: SEED, numRuns: 20 });
else if (CORTEX_FUZZ_RUNS === undefined) fc.configureGlobal({ seed: SEED });
