/**
 * Writes the generated parts of the documentation: the tables of events in docs/journal.md, of error codes in
 * docs/runs.md, of metrics in docs/observability.md, of settings in docs/configure.md, the routes in docs/http.md, the parts of the prompt in
 * docs/prompt.md, and the calculation in docs/scale.md: npm run docs
 */
import { readFileSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import { ERROR_TABLE } from '../src/domain/errors.ts';
import { withHttpReference } from './http-reference.ts';
import { withPromptTables } from './prompt-tables.ts';
import { withScaleTables } from './scale/tables.ts';
import { JOURNALED, LIVE } from '../src/domain/event-table.ts';
import { settingRow, WORKER_SETTINGS } from '../src/settings/setting-table.ts';
import { METRICS } from '../src/telemetry/metrics.ts';

type Table = Readonly<Record<string, { readonly description: string; readonly data: { readonly shape: object } }>>;

function memberText([name, member]: [string, z.ZodType]): string {
  const description = member.description === undefined ? '' : `: ${member.description}`;
  return `\`${name}${member instanceof z.ZodExactOptional ? '?' : ''}\`${description}`;
}

function eventTable(table: Table): string {
  const rows = Object.entries(table).map(([type, { description, data }]) => {
    const members = Object.entries(data.shape) as [string, z.ZodType][];
    return `| \`${type}\` | ${description} | ${members.map(memberText).join('<br>')} |`;
  });
  return ['| type | meaning | `data` |', '|---|---|---|', ...rows].join('\n').replaceAll('|  |', '| |');
}

/** The page with its tables as they should be. */
export function withEventTables(page: string): string {
  const tables: Readonly<Record<string, Table>> = { journaled: JOURNALED, live: LIVE };
  return page.replaceAll(
    /(<!-- events: (journaled|live) -->\n)[^]*?(\n<!-- end -->)/g,
    (_whole, before: string, name: string, after: string) => `${before}\n${eventTable(tables[name] ?? {})}\n${after}`,
  );
}

/** The page with its table of error codes as it should be. */
export function withErrorTable(page: string): string {
  const rows = Object.entries(ERROR_TABLE)
    .toSorted(([, a], [, b]) => a.status - b.status)
    .map(([code, { status, retry, title }]) => `| ${status} | \`${code}\` | ${title} | ${retry} |`);
  const table = ['| status | code | meaning | retry |', '|---|---|---|---|', ...rows].join('\n');
  return page.replace(/(<!-- errors -->\n)[^]*?(<!-- end -->)/, (_whole, before: string, after: string) =>
    [before, table, `\n${after}`].join('\n'),
  );
}

/** The page with its table of metrics as it should be. */
export function withMetricTable(page: string): string {
  const rows = Object.entries(METRICS).map(([name, { unit, description, bounds, attributes }]) => {
    const kind = bounds === null ? 'counter' : 'histogram';
    const named = attributes.map((attribute) => `\`${attribute}\``).join(', ');
    return `| \`${name}\` | ${kind} | \`${unit}\` | ${description} | ${named} |`;
  });
  const head = ['| metric | kind | unit | meaning | attributes |', '|---|---|---|---|---|'];
  const table = [...head, ...rows].join('\n');
  return page.replace(/(<!-- metrics -->\n)[^]*?(<!-- end -->)/, (_whole, before: string, after: string) =>
    [before, table, `\n${after}`].join('\n'),
  );
}

/** The page with its table of the Worker's settings as it should be. */
export function withSettingTable(page: string): string {
  const rows = WORKER_SETTINGS.map((name) => ({ name, ...settingRow(name) })).map(
    ({ name, default: usual, meaning }) => `| \`${name}\` | ${usual} | ${meaning} |`,
  );
  const table = ['| name | default | meaning |', '|---|---|---|', ...rows].join('\n');
  return page.replace(/(<!-- settings -->\n)[^]*?(<!-- end -->)/, (_whole, before: string, after: string) =>
    [before, table, `\n${after}`].join('\n'),
  );
}

if (import.meta.main) {
  for (const [name, updated] of [
    ['journal', withEventTables],
    ['runs', withErrorTable],
    ['observability', withMetricTable],
    ['configure', withSettingTable],
    ['http', withHttpReference],
    ['prompt', withPromptTables],
    [
      'scale',
      (page: string) => withScaleTables(page, readFileSync(new URL('../docs/benchmarks.md', import.meta.url), 'utf8')),
    ],
  ] as const) {
    const page = new URL(`../docs/${name}.md`, import.meta.url);
    writeFileSync(page, await updated(readFileSync(page, 'utf8')));
  }
}
