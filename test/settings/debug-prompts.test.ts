import { expect, test } from 'vitest';
import { readSettings } from '../../src/settings/settings.ts';

test.each([
  [undefined, false],
  ['', false],
  ['0', false],
  ['no', false],
  ['1', true],
  ['true', true],
  ['on', true],
  ['maybe', false],
])('[H8] DEBUG_PROMPTS=%s: every key may read prompts: %s', (given, debugPrompts) => {
  expect(readSettings(given === undefined ? {} : { DEBUG_PROMPTS: given })).toMatchObject({ debugPrompts });
});
