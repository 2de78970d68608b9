/** A machine that has Node, Git and a shell, and nothing else. */
import { expect, test } from 'vitest';
import { onBareMachine } from '../support/bare-machine.ts';
import { lacks } from '../support/programs.ts';

test.skipIf(lacks('bwrap'))('`npm test` passes there, and skips nothing', { timeout: 3_600_000 }, async () => {
  const { status, output } = await onBareMachine(['npm', 'test']);
  expect({ status, output: output.slice(-8_000) }).toMatchObject({ status: 0 });
  expect(output).toMatch(/\d{4,} passed, 0 failed, 0 skipped/);
});
