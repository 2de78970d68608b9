/** What is shown when wrangler fails (K4). */
import { expect, test } from 'vitest';
import { withoutStack } from '../../cli/system/wrangler.ts';

test('[K4] the message of a failed build stays, without stack and members of the error', () => {
  const output = `[custom build] manifests: 1 error, nothing written
✘ [ERROR] Process exited with non-zero status (1)

      at I2._waitForOutput (/x/cli.js:1:2)
      at async Object.handler (/x/cli.js:3:4) {
    result: I {
      _process: ChildProcess {
        killed: false,
      },
    },
  }

✘ [ERROR] Running custom build failed.
`;
  expect(withoutStack(output)).toBe(`[custom build] manifests: 1 error, nothing written
✘ [ERROR] Process exited with non-zero status (1)


✘ [ERROR] Running custom build failed.
`);
});

test.each(['✘ [ERROR] Processing wrangler.toml:\n\n    - "name" is missing\n  }\n', 'at first\n  at\n'])(
  '[K4] %j stays as it is',
  (output) => {
    expect(withoutStack(output)).toBe(output);
  },
);
