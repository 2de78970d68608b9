import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { withEventTables } from '../../scripts/event-tables.ts';
import { openNodeSql } from '../support/node-sql.ts';
import { createOptionalTables } from '../support/optional-tables.ts';
import { newJournal } from './journal-kit.ts';

const page = readFileSync(new URL('../../docs/journal.md', import.meta.url), 'utf8');

test('[H3] docs/journal.md lists the events of the schemas (npm run docs updates them)', () => {
  expect(page).toBe(withEventTables(page));
});

test('[J6] docs/journal.md names every table, and no other', () => {
  const sql = openNodeSql();
  newJournal(sql).variables.set('x', 1);
  createOptionalTables(sql);
  const tables = sql.exec(`SELECT name FROM sqlite_master WHERE type = 'table'`).map(({ name }) => String(name));
  const section = page.slice(page.indexOf('## Tables'), page.indexOf('### What a row costs'));
  const documented = [...section.matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]);
  expect(documented.toSorted()).toEqual(tables.toSorted());
});

test('docs/journal.md states the current limits', () => {
  expect(limits.artifactBytes).toBe(32 * 1_024);
  expect(limits.patchCoalesceMs).toBe(8);
  expect(limits.readerQueueBytes).toBe(1_048_576);
  expect(limits.readersPerSession).toBe(1_000);
  expect(limits.unsavedTextChars).toBe(2_048);
  expect([limits.unsavedTextMs, limits.unsavedTextLaterMs]).toEqual([1_000, 5_000]);
  expect(limits.sessionExpiryMs).toBe(30 * 86_400_000);
  expect(limits.secretChars).toBe(6);
});
