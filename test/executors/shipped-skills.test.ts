/** The programs of the shipped skills, run with plain Python (C8). */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import { readManifestFiles } from '../../cli/project/manifest-files.ts';
import { lacks } from '../support/programs.ts';

const missing = lacks('python3');
const folder = mkdtempSync(join(tmpdir(), 'skills-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fileOf = (name: string, text: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const ORDERS = `order;region;amount;day;note
1;north;10;2024-01-05;ok
2;south;20.5;2024-01-31;
3;north;;2024-02-01;ok
4;South;9000;2024-02-02;n/a
4;South;9000;2024-02-02;n/a
5;north;11;2024-02-03;"a; b"
6;north;12;2024-02-04
`;

/** `-I -B`: no environment, no packages of the user, no compiled files; only the standard library is imported. */
const python = (script: string, ...args: string[]): { stdout: string; stderr: string; status: number | null } =>
  spawnSync('python3', ['-I', '-B', '-S', join('manifests/skills', script), ...args], { encoding: 'utf8' });
const json = (script: string, ...args: string[]): unknown => {
  const { stdout, stderr, status } = python(script, ...args);
  expect([status, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
};

test('[C8] the shipped skills load without a warning, and each is imported by an agent', () => {
  const files = readManifestFiles('manifests').filter(({ path }) => path.startsWith('manifests/skills/'));
  const { catalog, problems, warnings } = loadManifests(files);
  expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
  const names = catalog.list('skill').map(({ name }) => name);
  expect(names).toEqual(['data-analysis', 'report-writing', 'web-research']);
  const imported = new Set(bundled.data.agents.flatMap(({ imports }) => imports.skills ?? []));
  expect([...imported].sort()).toEqual(names);
});

test('[C8] the Python in the text of a shipped skill runs where its files are in the workspace', () => {
  const blocks = bundled.data.skills.flatMap(({ text }) => [...text.matchAll(/```python\n([\s\S]*?)```/g)]);
  expect(blocks).toHaveLength(3);
  for (const { name, files } of bundled.data.skills) {
    for (const file of files) {
      mkdirSync(dirname(join(folder, 'skills', name, file.path)), { recursive: true });
      fileOf(join('skills', name, file.path), file.text);
    }
  }
  mkdirSync(join(folder, 'uploads'));
  fileOf('uploads/orders.csv', ORDERS);
  fileOf('report.md', '# Sales rose\n\n## Summary\n\nSales rose [1].\n');
  if (missing) return;
  const printed: unknown[] = [];
  for (const [, code = ''] of blocks) {
    const { stdout, stderr } = spawnSync('python3', ['-B', '-c', code], { cwd: folder, encoding: 'utf8' });
    expect(stderr).toBe('');
    printed.push(stdout.startsWith('{') ? JSON.parse(stdout) : stdout);
  }
  expect(printed).toMatchObject([{ rows: 7 }, { rows: 7 }, '5: [1] is cited, but it is not among the sources\n']);
});

test('[C8] files that a shipped skill names are beside it', () => {
  for (const { name, text, files } of bundled.data.skills) {
    const named = [...text.matchAll(/skills\/([\w-]+)\/([\w/.-]+\.\w+)/g)];
    for (const [, skill, path] of named) {
      expect(skill).toBe(name);
      expect(files.map((file) => file.path)).toContain(path);
    }
  }
});

describe.skipIf(missing)('[C8] data-analysis (skipped only without python3)', () => {
  test('profiles a file: types, missing values, and what can falsify a result', () => {
    expect(json('data-analysis/scripts/profile_csv.py', fileOf('orders.csv', ORDERS))).toMatchObject({
      encoding: 'utf-8',
      delimiter: ';',
      rows: 7,
      duplicates: 1,
      columns: [
        { name: 'order', type: 'integer', distinct: 6 },
        {
          name: 'region',
          type: 'text',
          missing: 0,
          top: [{ value: 'north', count: 4 }, { value: 'South', count: 2 }, {}],
        },
        { name: 'amount', type: 'number', missing: 1, min: 10, max: 9000, sum: 18_053.5, far_outside: 0 },
        { name: 'day', type: 'date', first: '2024-01-05T00:00:00', date_order: 'certain' },
        { name: 'note', missing: 4 },
      ],
      warnings: [
        'rows without 5 fields: 1, the first is row 8',
        'rows that repeat an earlier one: 1',
        "region: the same value in several spellings: ['south']",
      ],
    });
  });

  test('names mixed types, numbers as text, ambiguous dates and outliers', () => {
    const rows = Array.from(
      { length: 20 },
      (_, index) => `${index % 12},"1,${index}00",0${(index % 9) + 1}/02/2024,${index}`,
    );
    const text = `a,b,c,d\nx,"1,900",01/02/2024,100000\n${rows.join('\n')}\n`;
    const { warnings } = json('data-analysis/scripts/profile_csv.py', fileOf('mixed.csv', text)) as {
      warnings: string[];
    };
    expect(warnings).toEqual([
      "a: mostly numbers, but also text: ['x']",
      "b: numbers written as text, such as '1,900'; convert them before computing",
      'c: day and month cannot be told apart',
      'd: values far outside the quartiles: 1',
    ]);
  });

  test('reads the encodings and marks of spreadsheets', () => {
    const marked = fileOf('bom.csv', `\uFEFFname\tcity\nAnn\tUlm\n`);
    expect(json('data-analysis/scripts/profile_csv.py', marked)).toMatchObject({
      delimiter: '\t',
      columns: [{ name: 'name' }, { name: 'city' }],
    });
    const old = fileOf('old.csv', Uint8Array.from(Buffer.from('stadt;n\nK\xf6ln;1\n', 'latin1')));
    expect(json('data-analysis/scripts/profile_csv.py', old)).toMatchObject({
      encoding: 'cp1252',
      columns: [{ top: [{ value: 'Köln' }] }, {}],
    });
    const wide = fileOf('wide.csv', Buffer.from('\uFEFFname\tn\r\nAnn\t1\r\n', 'utf16le'));
    expect(json('data-analysis/scripts/profile_csv.py', wide)).toMatchObject({
      encoding: 'utf-16',
      columns: [{ name: 'name' }, { name: 'n', type: 'integer' }],
    });
  });

  test('knows times with fractions and zones; a number too large to compute with is text', () => {
    const text =
      'at,day,n\n2024-01-01T00:00:00.5Z,2024-01-01 10:00,1e999\n2024-01-02T00:00:00.5+02:00,2024-01-02 09:30,3\n';
    expect(json('data-analysis/scripts/profile_csv.py', fileOf('times.csv', text))).toMatchObject({
      columns: [{ type: 'date', last: '2024-01-02T00:00:00.500000+02:00' }, { type: 'date' }, { type: 'text' }],
    });
  });

  test('adds up without rounding errors, so that the parts equal the whole', () => {
    const tenths = fileOf('tenths.csv', `kind,v\n${'a,0.1\n'.repeat(10)}`);
    expect(json('data-analysis/scripts/profile_csv.py', tenths)).toMatchObject({ columns: [{}, { sum: 1 }] });
    const grouped = json('data-analysis/scripts/group_csv.py', tenths, '--by', 'kind', '--value', 'v', '--how', 'sum');
    expect(grouped).toMatchObject({ result: [{ sum: 1 }] });
  });

  test('groups rows, by parts of dates too; missing values are counted and not used', () => {
    const orders = fileOf('orders.csv', ORDERS);
    const script = 'data-analysis/scripts/group_csv.py';
    expect(json(script, orders, '--by', 'region', '--value', 'amount', '--how', 'count,sum,mean')).toMatchObject({
      rows: 7,
      groups: 3,
      result: [
        { region: 'South', count: 2, sum: 18_000, mean: 9_000, left_out: 0 },
        { region: 'north', count: 3, sum: 33, mean: 11, rows: 4, left_out: 1 },
        { region: 'south', sum: 20.5 },
      ],
    });
    const months = json(script, orders, '--by', 'day:month', '--where', 'region=north', '--top', '1');
    expect(months).toEqual({
      rows: 4,
      groups: 2,
      result: [{ 'day:month': '2024-02', count: 3, rows: 3, left_out: 0 }],
    });
  });

  test.each([
    [['--by', 'regio'], "there is no column 'regio' (columns: order, region, amount, day, note)"],
    [['--by', 'region:month'], 'region is not a column of dates in one form'],
    [['--by', 'region', '--how', 'sum'], 'without a value, only count can be computed'],
    [['--by', 'region', '--value', 'amount', '--how', 'mode'], "'mode' is not a figure"],
  ])('%j ends with an error that says what is possible', (args, message) => {
    const { stderr, status } = python('data-analysis/scripts/group_csv.py', fileOf('orders.csv', ORDERS), ...args);
    expect(status).toBe(1);
    expect(stderr).toContain(`error: ${message}`);
  });

  test('an empty file is an error, and a file with only a header has no rows', () => {
    const script = 'data-analysis/scripts/profile_csv.py';
    expect(python(script, fileOf('empty.csv', '')).stderr).toBe('error: the file has no rows\n');
    expect(json(script, fileOf('header.csv', 'a,b\n'))).toMatchObject({ rows: 0, columns: [{ type: 'empty' }, {}] });
  });
});

describe.skipIf(missing)('[C8] report-writing (skipped only without python3)', () => {
  const GOOD =
    '# Times rose\n\n## Summary\n\nBy 20 % [1].\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## Sources\n\n1. Office, 2024\n';

  test('accepts a report', () => {
    expect(python('report-writing/scripts/check_report.py', fileOf('good.md', GOOD))).toMatchObject({
      stdout: 'no issues\n',
      status: 0,
    });
  });

  test.each([
    [GOOD.replace('[1]', '[2]'), ['5: [2] is cited, but it is not among the sources', '11: source 1 is never cited']],
    [GOOD.replace('Times rose', '{the answer}'), ['1: text of the template was left in: {the answer}']],
    [GOOD.replace('## Summary', '### Summary'), ['3: heading of level 3 below level 1']],
    [GOOD.replace('| 1 | 2 |', '| 1 |'), ['9: row of a table with another number of cells']],
    [GOOD.replace('Summary', 'Intro'), ['1: no section Summary']],
    [GOOD.replace('By 20 %', `By ${'very '.repeat(41)}much`), ['5: sentence of 44 words: By very']],
    [GOOD.replace('\n## Sources', '```\nTODO [9]\n```\n\n## Sources'), []],
  ])('%# finds what is wrong', (text, messages) => {
    const path = fileOf('report.md', text);
    const { stdout, status } = python('report-writing/scripts/check_report.py', path);
    const lines = stdout.trim().split('\n');
    expect(lines).toHaveLength(Math.max(messages.length, 1));
    for (const [index, message] of messages.entries()) expect(lines[index]).toContain(`report.md:${message}`);
    expect(status).toBe(messages.length === 0 ? 0 : 1);
  });
});
