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
  journal.prompts.hold({ run, iteration: 1, at: run, request: { model: 'm', tokens: 1 }, messages });
  journal.prompts.write();
}

/** Keeps a prompt in memory. */
function hold(journal: Journal, run: number, content: string): void {
  journal.prompts.hold({ run, iteration: 1, at: run, request: { model: 'm' }, messages: [message(content)] });
}

const text = (part: string): JsonObject[] => [{ is: 'text', at: 1, text: part }];
const savedText = (journal: Journal, run: number): string[] =>
  journal.runs.looseInputs(run).map(({ afterSeq, inputs }) => `${afterSeq} ${JSON.stringify(inputs)}`);

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
  const given = Array.from({ length: 14 }, (_, n) => [shared, `${n} ${'x'.repeat(size)}`]);
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

test('[J6] a prompt shares its row with the first inputs of its run, which come before the later ones', () => {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  journal.variables.set('x', 1);
  hold(journal, 1, 'one');
  expect(rows(sql)).toEqual([]);
  journal.addInputs(2, text('of another run'));
  for (const part of ['a', 'b', 'c']) journal.addInputs(1, text(part));
  const counted = sql.exec(`SELECT (SELECT COUNT(*) FROM prompts) AS prompts, (SELECT COUNT(*) FROM inputs) AS inputs`);
  expect(counted).toEqual([{ prompts: 1, inputs: 3 }]);
  const next = new Journal(sql);
  expect(savedText(next, 1)).toEqual(['a', 'b', 'c'].map((part) => `0 ${JSON.stringify(text(part))}`));
  expect(contents(next)).toEqual([['one']]);
});

test('[J6] a held prompt is written before the next one, and before prompts are read', () => {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  hold(journal, 1, 'one');
  hold(journal, 2, 'two');
  expect(rows(sql)).toHaveLength(1);
  expect(contents(journal)).toEqual([['one'], ['two']]);
  expect(journal.prompts.write()).toBe(false);
});

test('[J6] in a full session, inputs have a row of their own and the prompt is left out', () => {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  journal.variables.set('x', 1);
  sql.sizeBytes = () => limits.sessionBytes;
  hold(journal, 1, 'one');
  journal.addInputs(1, text('a'));
  expect([rows(sql), savedText(journal, 1)]).toEqual([[], [`0 ${JSON.stringify(text('a'))}`]]);
});

test('[J9] inputs of an open run stay, in order, when the row of their prompt is dropped', () => {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  for (const run of [1, 2]) journal.runs.create({}, run, 'running');
  journal.runs.end(1, 'completed', 3, false);
  const large = 'x'.repeat(limits.promptsChars / 3);
  for (const [run, part] of [
    [1, 'of an ended run'],
    [2, 'a'],
    [2, 'b'],
    [2, 'c'],
    [2, 'd'],
  ] as const) {
    hold(journal, run, `${part}${large}`);
    journal.addInputs(run, text(part));
    journal.addInputs(run, text(`more of ${part}`));
    journal.append({ type: 'warning', runId: `run_x_${run}`, iteration: 1, at: 1, data: { code: 'c', message: 'm' } });
  }
  expect(contents(journal).length).toBeLessThan(3);
  const parts = ['a', 'b', 'c', 'd'].flatMap((part) => [part, `more of ${part}`]);
  expect(savedText(new Journal(sql), 2).map((saved) => saved.slice(2))).toEqual(
    parts.map((part) => JSON.stringify(text(part))),
  );
  expect(savedText(new Journal(sql), 1)).toEqual([`0 ${JSON.stringify(text('more of of an ended run'))}`]);
});

test('[J9] when old rows cannot be dropped, the inputs of an open run are stored once, and the prompts are complete', () => {
  const sql = openNodeSql();
  let isFailing = false;
  const failing = withStatements(sql, (statement) => {
    if (isFailing && statement.startsWith('UPDATE prompts')) throw new Error('disk failure');
  });
  newJournal(sql);
  const journal = new Journal(failing);
  journal.runs.create({}, 1, 'running');
  const large = 'x'.repeat(limits.promptsChars * 0.6);
  hold(journal, 1, `a${large}`);
  journal.addInputs(1, text('a'));
  const before = savedText(journal, 1);
  isFailing = true;
  expect(() => add(journal, 1, [`b${large}`])).toThrow('disk failure');
  expect(savedText(new Journal(sql), 1)).toEqual(before);
  isFailing = false;
  add(journal, 1, ['c']);
  expect(savedText(new Journal(sql), 1)).toEqual(before);
  expect(contents(new Journal(sql)).at(-1)).toEqual(['c']);
});
