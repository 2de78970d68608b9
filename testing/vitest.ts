/** Adds the matchers to `expect` of vitest, with their types: `import 'cortex-edge/testing/vitest'`. */
import { expect } from 'vitest';
import { matchers } from './matchers.ts';
import type { RunMatchers } from './matchers.ts';

declare module 'vitest' {
  // oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-unused-vars -- merged with the interface of vitest
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends RunMatchers<R> {}
}

expect.extend(matchers);
