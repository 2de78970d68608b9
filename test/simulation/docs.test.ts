/** docs/testing.md lists every invariant. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { INVARIANTS } from './invariants/all.ts';

test('the page lists all invariants in their words', () => {
  const page = readFileSync(new URL('../../docs/testing.md', import.meta.url), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| '));
  for (const { name, holds } of INVARIANTS) expect(rows).toContain(`| ${name} | ${holds} |`);
});
