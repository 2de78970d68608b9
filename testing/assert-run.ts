/** The matchers as assertions, for test runners without `expect`, such as node:test. */
import { AssertionError } from 'node:assert';
import { matchers } from './matchers.ts';
import type { RunMatchers } from './matchers.ts';
import type { TestRun } from './test-run.ts';

export interface RunAssertions extends RunMatchers {
  readonly not: RunMatchers;
}

type AnyMatcher = (run: TestRun, ...given: unknown[]) => { readonly pass: boolean; readonly message: () => string };

/**
 * Assertions about a run: `assertRun(run).toHaveCompleted()`, `assertRun(run).not.toHaveCalled('send_email')`.
 * Each throws an AssertionError if it does not hold.
 */
export function assertRun(run: TestRun): RunAssertions {
  return { ...assertions(run, true), not: assertions(run, false) };
}

function assertions(run: TestRun, expected: boolean): RunMatchers {
  const entries = Object.entries(matchers).map(([name, matcher]) => [
    name,
    (...given: unknown[]): void => {
      const { pass, message } = (matcher as AnyMatcher)(run, ...given);
      if (pass !== expected) throw new AssertionError({ message: message() });
    },
  ]);
  return Object.fromEntries(entries) as RunMatchers;
}
