/** The arguments of `cortex chat`. */
import { expect, test } from 'vitest';
import { optionsOf } from '../../cli/chat/options.ts';
import type { ChatOptions } from '../../cli/chat/options.ts';
import { dispatch } from '../../cli/dispatch.ts';

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
  const printed: string[] = [];
  const write = (text: string): void => void printed.push(text);
  expect(await dispatch(['chat', ...given], {}, { out: write, err: write })).toBe(code);
  expect(printed.join('')).toContain(said);
});
