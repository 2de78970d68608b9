import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** Slow files run last: most mutants are killed before them. */
class LongLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toReversed();
  }
}

/** The tests of one top-level folder, for `npm run test:mutation`: they must kill the mutants of the same folder in src/. */
export default defineConfig({
  test: {
    include: [`test/${process.env['MUTATION_ROOM'] ?? '*'}/**/*.test.ts`],
    environment: 'node',
    setupFiles: ['./test/support/fixed-seed.ts'],
    sequence: { sequencer: LongLast },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
