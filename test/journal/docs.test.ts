import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
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
