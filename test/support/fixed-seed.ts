/**
 * Random cases are the same in every run, so that a test fails because of a change. With CORTEX_FUZZ_RUNS the search is
 * longer, and new each time.
 */
import * as fc from 'fast-check';

if (process.env['CORTEX_FUZZ_RUNS'] === undefined) fc.configureGlobal({ seed: 20_261_122 });
