/**
 * Random cases are the same in every run, so that only a change can make a test fail. CORTEX_FUZZ_RUNS sets a larger
 * number of cases with a new seed; a mutation test sets a smaller one.
 */
import * as fc from 'fast-check';

const SEED = 20_261_122;
const { CORTEX_FUZZ_RUNS, MUTATION_ROOM } = process.env;
if (MUTATION_ROOM !== undefined) fc.configureGlobal({ seed: SEED, numRuns: 20 });
else if (CORTEX_FUZZ_RUNS === undefined) fc.configureGlobal({ seed: SEED });
