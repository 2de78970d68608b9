/** docs/fluency.md says what the code does. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../../cli/project/folders.ts';
import { KINDS, readDataset } from '../../../cli/fluency/tasks/dataset.ts';
import { FORM_NAMES } from '../../../cli/fluency/tasks/forms.ts';
import { reportDocument } from '../../../cli/fluency/report/report.ts';
import type { FluencyReport } from '../../../cli/fluency/report/report.ts';
import { formScore, WEIGHTS } from '../../../cli/fluency/score/score.ts';
import { BUILTIN_TOOLS } from '../../../cli/fluency/tasks/tools.ts';
import { dataset, trial } from './kit.ts';
import { perfect } from './models.ts';
import { runWith } from './run-measures.ts';

const page = readFileSync(join(PACKAGE_ROOT, 'docs/fluency.md'), 'utf8');
const tools = {
  name: 'tools.yaml',
  yaml: readFileSync(join(PACKAGE_ROOT, 'cli/fluency/data/tools.yaml'), 'utf8'),
};

test('[O4] the weights of the scores', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \|/gm)].map(([, name = '', weight]) => [name, Number(weight)]);
  expect(Object.fromEntries(rows)).toEqual(WEIGHTS);
});

test('[O4] forms, kinds and the number of tasks', () => {
  for (const name of [...FORM_NAMES, ...KINDS]) expect(page).toContain(`\n| \`${name}\` | `);
  expect(page).toContain(`The dataset has ${dataset.tasks.length} tasks.`);
});

test('[O4] the task of the page is one that a perfect model solves', async () => {
  const [, yaml = ''] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
  const own = readDataset(tools, [{ name: 'page.yaml', yaml }], BUILTIN_TOOLS);
  const runs = await trial(perfect, {}, own);
  expect(runs.map(({ reason, mistakes }) => ({ reason, mistakes }))).toEqual(
    FORM_NAMES.map(() => ({ reason: null, mistakes: [] })),
  );
});

test('[O4] the members of the report', () => {
  const runs = [runWith()];
  const form = {
    form: 'full',
    unavailable: null,
    note: null,
    score: formScore(runs),
    runs,
    endpointErrors: [],
  } as const;
  const report = {
    model: 'm',
    endpoint: 'http://127.0.0.1:1',
    tasks: 1,
    repeat: 1,
    forms: [form],
    recommendation: { form: null, protocol: null, tasks: 0, reasons: [] },
    snippet: [],
    omitted: 0,
    end: 'complete',
    endpointFailure: null,
    digests: new Map([['two-stations', '0a1b2c3d']]),
  } satisfies FluencyReport;
  const document = reportDocument(report, { version: 1, model: 'm', task_digests: {}, runs: [] });
  const section = page.slice(page.indexOf('\n## The report as JSON'), page.indexOf('\n## Add a task'));
  const named = new Set([...section.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  const membersOf = (value: unknown): string[] => Object.keys((Array.isArray(value) ? value[0] : value) as object);
  const { forms, runs: listed, usage, recommendation, comparison } = document;
  for (const members of [document, forms, listed, usage, recommendation, comparison].map(membersOf)) {
    expect(members.filter((name) => !named.has(name))).toEqual([]);
  }
});
