import { defineConfig } from 'vitest/config';

/** The tests of one room, for `npm run test:mutation`: a mutant must be killed by the tests beside its source. */
export default defineConfig({
  test: {
    include: [`test/${process.env['MUTATION_ROOM'] ?? '*'}/**/*.test.ts`],
    environment: 'node',
    setupFiles: ['./test/support/fixed-seed.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
