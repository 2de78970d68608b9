/** Names of the runner's settings (K10). */
import { expect, test } from 'vitest';

import { readConfig } from '../config.ts';

const SECRET = 'x'.repeat(32);

test.each([
  ['RUNNER_SANDBX', 'RUNNER_SANDBOX'],
  ['RUNNER_ALOW_PROCESS', 'RUNNER_ALLOW_PROCESS'],
])('[K10] the unknown setting %s is an error with the nearest name', (name, nearest) => {
  const read = (): unknown => readConfig({ RUNNER_SECRET: SECRET, [name]: '1' });
  expect(read).toThrow(`${name}: unknown setting (did you mean ${nearest}?)`);
});

test('[K10] variables of other programs are not settings', () => {
  const others = { RUNNER_OS: 'Linux', RUNNER_TEMP: '/t', RUNNER_TOOL_CACHE: '/c', EDITOR: 'vi' };
  expect(readConfig({ RUNNER_SECRET: SECRET, ...others }).port).toBe(8790);
});

test.each([
  ['RUNNER_SECRET', ''],
  ['RUNNER_SECRET', 'short'],
  ['RUNNER_PORT', 'http'],
  ['RUNNER_PORT', '70000'],
  ['RUNNER_SANDBOX', 'none'],
  ['RUNNER_MAX_JOBS', '0'],
  ['RUNNER_MAX_MEMORY_MB', '128'],
  ['RUNNER_MAX_SECONDS', 'ten'],
  ['RUNNER_ALLOW_PROCESS', 'perhaps'],
])('[H8] %s=%j is refused with its name', (name, value) => {
  expect(() => readConfig({ RUNNER_SECRET: SECRET, [name]: value })).toThrow(name);
});
