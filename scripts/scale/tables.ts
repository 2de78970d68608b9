/** The tables of docs/scale.md: the counts of docs/benchmarks.md, and the results of the model for each size. */
import { Journal } from '../../src/journal/journal.ts';
import { openNodeSql } from '../../testing/node-sql.ts';
import { ASSUMPTIONS, scaleOf, useOf } from './model.ts';
import type { RunCounts, Scale, ScaleInputs } from './model.ts';

const SIZES = [1e6, 10e6, 100e6];
const CHAT = 'a chat answer of 200 tokens';
const ACTIONS = '5 actions, then an answer of 200 tokens';

const cellsOf = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** @throws Error docs/benchmarks.md has no such table, or the table no such row or column */
function runCounts(benchmarks: string, name: string): RunCounts {
  const lines = benchmarks.split('\n');
  const head = cellsOf(lines.find((line) => line.startsWith('| run |')) ?? '');
  const row = cellsOf(lines.find((line) => line.startsWith(`| ${name} |`)) ?? '');
  const value = (column: string): number => {
    const found = Number(row[head.indexOf(column)] ?? NaN);
    if (head.includes(column) && Number.isFinite(found)) return found;
    throw new Error(`docs/benchmarks.md has no "${column}" of "${name}": run npm run bench:journal`);
  };
  return {
    rowsWritten: value('rows written'),
    alarms: value('alarms'),
    rowsRead: value('rows read'),
    requests: value('requests'),
    secondsAwake: value('seconds awake'),
  };
}

function emptySessionBytes(): number {
  const sql = openNodeSql();
  const journal = new Journal(sql);
  journal.create({
    session_id: `ses_${'0'.repeat(32)}`,
    agent: 'a',
    user_id: null,
    owner: null,
    kind: 'chat',
    metadata: {},
    created_at: 0,
  });
  // The tables are made with the first write.
  journal.variables.set('x', 1);
  return sql.sizeBytes();
}

export function scaleInputs(benchmarks: string): ScaleInputs {
  return {
    chat: runCounts(benchmarks, CHAT),
    actions: runCounts(benchmarks, ACTIONS),
    emptySessionBytes: emptySessionBytes(),
  };
}

function number(value: number): string {
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : 2;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}

const million = (value: number): string => `${number(value / 1e6)} M`;
const dollars = (value: number): string => `$${Math.round(value).toLocaleString('en')}`;

function table(
  first: string,
  scales: readonly Scale[],
  rows: readonly (readonly [string, (scale: Scale) => string])[],
): string {
  const head = `| ${[first, ...scales.map(({ sessions }) => `${million(sessions)} sessions`)].join(' | ')} |`;
  const lines = rows.map(([name, of]) => `| ${[name, ...scales.map(of)].join(' | ')} |`);
  return [head, `|---|${'---:|'.repeat(scales.length)}`, ...lines].join('\n');
}

function inputsTable({ chat, actions, emptySessionBytes: empty }: ScaleInputs): string {
  const counts = (name: string, { rowsWritten, alarms, rowsRead, requests, secondsAwake }: RunCounts): string =>
    `| ${[name, rowsWritten, alarms, rowsRead, requests, secondsAwake].join(' | ')} |`;
  return `| run | rows written | alarms | rows read | requests | seconds awake |
|---|---:|---:|---:|---:|---:|
${counts(CHAT, chat)}
${counts(ACTIONS, actions)}

The database of a session has ${number(empty / 1_000)} KB before its first message.

| assumption | value |
|---|---:|
${Object.entries(ASSUMPTIONS)
  .map(([name, value]) => `| \`${name}\` | ${value.toLocaleString('en')} |`)
  .join('\n')}`;
}

/** The number of sessions that uses the whole capacity. Empty if sessions do not change the load. */
function reachedAt(scales: readonly Scale[], at: number): string {
  const [small, large] = [scales[0], scales.at(-1)];
  const [least, most] = [small?.hotSpots[at], large?.hotSpots[at]];
  if (large === undefined || least === undefined || most === undefined || least.load === most.load) return '';
  return `${million(large.sessions / useOf(most))} sessions`;
}

function hotSpotsTable(scales: readonly Scale[]): string {
  const spots = scales[0]?.hotSpots ?? [];
  const rows = spots.map(({ name, capacity, unit, formula }, at) => {
    const use = (scale: Scale): string => {
      const spot = scale.hotSpots[at];
      if (spot === undefined) return '';
      const text = `${number(spot.load)} (${(useOf(spot) * 100).toFixed(useOf(spot) < 0.1 ? 1 : 0)}%)`;
      return useOf(spot) > 1 ? `**${text}**` : text;
    };
    return `| ${[name, formula, `${number(capacity)} ${unit}`, ...scales.map(use), reachedAt(scales, at)].join(' | ')} |`;
  });
  const head = ['limit', 'load', 'capacity', ...scales.map(({ sessions }) => million(sessions)), 'reached at'];
  const first = ({ first: spot }: Scale): string => `${useOf(spot) > 1 ? '**exceeded**' : 'next'}: ${spot.name}`;
  return `| ${head.join(' | ')} |
|---|---|---:|${'---:|'.repeat(scales.length + 1)}
${rows.join('\n')}
| **first limit** | | | ${scales.map(first).join(' | ')} | |`;
}

/** The page with its tables as they should be. @param benchmarks docs/benchmarks.md */
export function withScaleTables(page: string, benchmarks: string): string {
  const inputs = scaleInputs(benchmarks);
  const scales = SIZES.map((sessions) => scaleOf(sessions, inputs));
  const tables: Readonly<Record<string, string>> = {
    inputs: inputsTable(inputs),
    amounts: table('', scales, [
      ['messages a day', ({ messagesPerDay }) => million(messagesPerDay)],
      ['messages per second at the peak', ({ peak }) => number(peak)],
      ['sessions with a run at the peak', ({ running }) => number(running)],
      ['rows written a month', ({ used }) => million(used.rowsWritten)],
      ['rows read a month', ({ used }) => million(used.rowsRead)],
      ['requests to objects a month, with alarms', ({ used }) => million(used.objectRequests)],
      ['requests to the Worker a month', ({ used }) => million(used.workerRequests)],
      ['duration of objects a month, in GB-s', ({ used }) => million(used.gbSeconds)],
      ['stored data, in GB', ({ used }) => number(used.storedGb)],
    ]),
    costs: table('US dollars a month', scales, [
      ['rows written', ({ dollars: cost }) => dollars(cost.rowsWritten)],
      ['rows read', ({ dollars: cost }) => dollars(cost.rowsRead)],
      ['requests to objects', ({ dollars: cost }) => dollars(cost.objectRequests)],
      ['requests to the Worker', ({ dollars: cost }) => dollars(cost.workerRequests)],
      ['duration', ({ dollars: cost }) => dollars(cost.gbSeconds)],
      ['stored data', ({ dollars: cost }) => dollars(cost.storedGb)],
      ['**total**, with the plan', ({ total }) => `**${dollars(total)}**`],
      ['1,000 messages', ({ total, messagesPerDay }) => `$${((total * 1_000) / (messagesPerDay * 30)).toFixed(3)}`],
    ]),
    limits: hotSpotsTable(scales),
  };
  return page.replaceAll(
    /(<!-- scale: (\w+) -->\n)[^]*?(<!-- end -->)/g,
    (_whole, before: string, name: string, after: string) => `${before}\n${tables[name] ?? ''}\n\n${after}`,
  );
}
