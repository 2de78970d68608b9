/** The command line of `npm run chat`. */
import { expect, test } from 'vitest';
import { HELP, optionsOf, USAGE } from '../../cli/chat/options.ts';

test('without arguments, the chat is with the assistant', () => {
  expect(optionsOf([], {})).toMatchObject({ agent: 'assistant', connection: { key: null } });
});

test('an agent or a session can be named', () => {
  expect(optionsOf(['helper'], {})).toMatchObject({ agent: 'helper' });
});

test.each([['--help'], ['-h']])('%s asks for help, which begins with the usage', (flag) => {
  expect(optionsOf(['helper', flag], {})).toBeNull();
  expect(HELP.startsWith(`usage: ${USAGE}\n`)).toBe(true);
});

test('two agents are refused', () => {
  expect(() => optionsOf(['a', 'b'], {})).toThrow("expected an agent's name or a session's id, got 2 arguments");
});
