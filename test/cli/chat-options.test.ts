/** The arguments of `cortex chat`. */
import { expect, test } from 'vitest';
import { optionsOf } from '../../cli/chat/options.ts';
import type { ChatOptions } from '../../cli/chat/options.ts';
import { dispatched } from './dispatched.ts';

const options = (positionals: readonly string[]): ChatOptions =>
  optionsOf({ positionals, values: {}, environment: {}, tell: () => undefined });

test('without arguments, the chat is with the assistant', () => {
  expect(options([])).toMatchObject({ agent: 'assistant', connection: { key: null } });
});

test('an agent or a session can be named', () => {
  expect(options(['helper'])).toMatchObject({ agent: 'helper' });
});

test.each([
  [['helper', '--help'], 0, 'usage: cortex chat ['],
  [['-h'], 0, '/attach <path or URL>'],
  [['a', 'b'], 2, 'cortex chat takes at most 1 argument, got 2'],
  [['--json'], 2, 'cortex run --json'],
])('cortex chat %j exits with %i', async (given, code, said) => {
  const { out, err, code: exit } = await dispatched(['chat', ...given]);
  expect(out + err).toContain(said);
  expect(exit).toBe(code);
});
