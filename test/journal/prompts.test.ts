/** Stored prompts: references to the row before, the size limit, and restarts. */
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { Journal } from '../../src/journal/journal.ts';
import { openNodeSql } from '../support/node-sql.ts';
import type { NodeSql } from '../support/node-sql.ts';
import { newJournal, withStatements } from './journal-kit.ts';

const message = (content: string): JsonObject => ({ role: 'user', content });

function add(journal: Journal, run: number, contents: readonly string[]): void {
  const messages = contents.map(message);
  journal.prompts.add({ run, iteration: 1, at: run, request: { model: 'm', tokens: 1 }, messages });
}

const contents = (journal: Journal): unknown[] =>
  [...journal.prompts.all()].map(({ messages }) => messages.map(({ content }) => content));

const rows = (sql: NodeSql): string[] =>
  sql.exec(`SELECT data FROM prompts ORDER BY id`).map(({ data }) => String(data));

test('[L5] a prompt is read as it was added; messages of the row before are stored once', () => {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  const given = [
    ['system', 'one'],
    ['system', 'one', 'answer', 'two'],
    ['system', 'summary', 'two', 'three'],
    ['other'],
  ];
  for (const [index, texts] of given.entries()) add(journal, index + 1, texts);
  expect(contents(journal)).toEqual(given);
  expect(rows(sql).map((data) => JSON.parse(data).parts as unknown)).toEqual([
    [message('system'), message('one')],
    [[0, 2], message('answer'), message('two')],
    [[0, 1], message('summary'), [3, 1], message('three')],
    [message('other')],
  ]);
});

test('[L5] [J2] a conversation grows linearly, also if its host restarts before each message', () => {
  const sql = openNodeSql();
  newJournal(sql);
  const texts: string[] = [];
  for (let run = 1; run <= 50; run += 1) {
    texts.push(`${run}: ${'x'.repeat(1_000)}`);
    add(new Journal(sql), run, texts);
  }
  expect(contents(new Journal(sql)).at(-1)).toEqual(texts);
  expect(rows(sql).join('').length).toBeLessThan(50 * 1_200);
});

test('[J6] past the limit the oldest rows are dropped, and the others stay complete', () => {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  const size = Math.floor(limits.promptsChars / 10);
  const shared = 's'.repeat(1_000);
  const given = Array.from({ length: 25 }, (_, n) => [shared, `${n} ${'x'.repeat(size)}`]);
  for (const [index, texts] of given.entries()) {
    add(journal, index + 1, texts);
    const [row] = sql.exec(`SELECT SUM(chars) AS chars FROM prompts`);
    expect(Number(row?.['chars'])).toBeLessThanOrEqual(limits.promptsChars);
    const kept = contents(journal);
    expect(kept).toEqual(given.slice(index + 1 - kept.length, index + 1));
  }
  // Parts of dropped rows are gone too.
  const [left] = sql.exec(`SELECT COUNT(DISTINCT seq) AS n FROM chunks WHERE field = 'prompt'`);
  expect(Number(left?.['n'])).toBe(contents(journal).length);
  expect(contents(new Journal(sql))).toEqual(contents(journal));
});

test('[J6] one prompt beyond the limit is kept', () => {
  const journal = newJournal(openNodeSql());
  const huge = 'y'.repeat(limits.promptsChars + 5);
  add(journal, 1, ['small']);
  add(journal, 2, [huge]);
  expect(contents(journal)).toEqual([[huge]]);
});

test('[J6] a long prompt whose row cannot be written leaves nothing behind, and the next one is stored', () => {
  const sql = openNodeSql();
  newJournal(sql);
  let isFull = true;
  const failing = withStatements(sql, (statement) => {
    if (isFull && statement.startsWith('INSERT INTO prompts')) throw new Error('disk full');
  });
  const long = 'x'.repeat(limits.rowBytes);
  expect(() => add(new Journal(failing), 1, [long])).toThrow('disk full');
  isFull = false;
  add(new Journal(failing), 1, [`${long}y`]);
  expect(contents(new Journal(sql))).toEqual([[`${long}y`]]);
});

test('[J6] a long message whose run cannot be written leaves nothing behind, and the next one is stored', () => {
  const sql = openNodeSql();
  newJournal(sql);
  let isFull = true;
  const failing = withStatements(sql, (statement) => {
    if (isFull && statement.startsWith('INSERT INTO runs')) throw new Error('disk full');
  });
  const long = 'x'.repeat(limits.rowBytes);
  expect(() => new Journal(failing).runs.create({ content: long }, 1, 'running')).toThrow('disk full');
  isFull = false;
  const run = new Journal(failing).runs.create({ content: `${long}y` }, 1, 'running');
  expect(run.input).toEqual({ content: `${long}y` });
});
