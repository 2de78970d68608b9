import { expect, test } from 'vitest';
import { resolveVariables } from '../../../src/catalog/build/variables.ts';

const variables = { DATE: '2026-11-20', EMPTY: '', NESTED: '${DATE}', AGENT_NAME: 'assistant' };

test.each([
  ['Today is ${DATE}.', 'Today is 2026-11-20.'],
  ['${AGENT_NAME}/${DATE}', 'assistant/2026-11-20'],
  ['${CITY:-Ulm} ${EMPTY:-none} ${DATE:-never}', 'Ulm none 2026-11-20'],
  ['${CITY:-}|${EMPTY}|', '||'],
  ['${CITY} and ${not closed', '${CITY} and ${not closed'],
  ['$${DATE} $DATE ${1X} ${}', '${DATE} $DATE ${1X} ${}'],
  ['${NESTED}', '${DATE}'],
  ['${CITY:-${DATE}}', '${DATE}'],
  ['${toString} ${__proto__} ${constructor:-x}', '${toString} ${__proto__} x'],
])('[M5] %j becomes %j', (text, expected) => {
  expect(resolveVariables(text, variables)).toBe(expected);
});

test('[M5] the process environment is never read', () => {
  expect(resolveVariables('${PATH} ${HOME}', {})).toBe('${PATH} ${HOME}');
});

test('[M5] 200 KB of opening braces are processed in linear time', () => {
  const text = '${A:-'.repeat(40_000);
  expect(resolveVariables(text, {})).toBe(text);
});
