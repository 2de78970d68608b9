/** The report of an evaluation as text for terminals (O3). Text of models is made harmless. */
import type { Colors } from 'picocolors/types';
import type { Rate } from '../statistics.ts';
import { aligned } from '../terminal/aligned.ts';
import { visible } from '../terminal/visible.ts';
import type { Comparison } from './compare.ts';
import type { CaseResult } from './evaluate.ts';
import type { CaseSummary, EvalReport } from './report.ts';

const NAME_COLUMNS = 40;
const INTERVAL_COLUMN = 2;
/** Reasons for failures and errors that are printed; the report has all of them. */
const MOST_DETAILS = 50;
const REASON_CHARS = 400;

export interface RenderOptions {
  readonly colors: Colors;
}

/** @returns lines without line breaks */
export function renderReport(report: EvalReport, comparison: Comparison | null, { colors }: RenderOptions): string[] {
  const changes = new Map((comparison?.better ?? []).concat(comparison?.worse ?? []).map((one) => [one.name, one]));
  const rows = report.cases.map((one) => {
    const change = changes.get(one.name);
    return cellsOf(one, change === undefined ? '' : points(change.now - change.before));
  });
  const heads = ['case', 'passed', '95 % interval', 'tokens', 'time', ...(comparison === null ? [] : ['change'])];
  const marks = report.cases.map(({ passed, failed, errors }) =>
    passed + failed + errors === 0
      ? ' '
      : errors > 0
        ? colors.yellow('!')
        : failed > 0
          ? colors.red('✗')
          : colors.green('✓'),
  );
  // Without repeats, no case has an interval.
  const shown = heads.map((_, at) => at !== INTERVAL_COLUMN || rows.some((row) => row[at] !== ''));
  const [head = '', ...body] = aligned([heads, ...rows].map((row) => row.filter((_cell, at) => shown[at] === true)));
  const table = [colors.bold(`  ${head}`), ...body.map((line, at) => `${marks[at] ?? ' '} ${line}`)];
  const details = detailsOf(report.results, colors);
  return [
    ...table,
    ...(details.length === 0 ? [] : ['', ...details]),
    '',
    ...totalsOf(report),
    ...(comparison === null ? [] : ['', ...comparisonLines(comparison)]),
  ];
}

function cellsOf({ name, passed, failed, errors, pass_rate: rate, tokens, ms }: CaseSummary, change: string): string[] {
  const shown = visible(name);
  return [
    shown.length > NAME_COLUMNS ? `${shown.slice(0, NAME_COLUMNS - 1)}…` : shown,
    `${passed}/${passed + failed}${errors > 0 ? ` +${errors} !` : ''}`,
    // One run says nothing that the number of passed runs does not say.
    rate === null || passed + failed === 1 ? '' : range(rate),
    tokens === null ? '' : numeral(tokens),
    ms === null ? '' : seconds(ms),
    change,
  ];
}

/** The reasons, once for repeats that failed for the same ones. */
function detailsOf(results: readonly CaseResult[], colors: Colors): string[] {
  const groups = new Map<string, CaseResult[]>();
  for (const result of results) {
    const { name, outcome, reasons } = result;
    if (outcome === 'passed') continue;
    const key = JSON.stringify([name, outcome, reasons]);
    groups.set(key, [...(groups.get(key) ?? []), result]);
  }
  const repeated = results.some(({ repetition }) => repetition > 1);
  const shown = [...groups.values()].slice(0, MOST_DETAILS).flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { name, outcome, reasons, session_id: session } = first;
    const mark = outcome === 'error' ? colors.yellow('!') : colors.red('✗');
    const which = repeated ? ` ${group.map(({ repetition }) => `#${repetition}`).join(' ')}` : '';
    const head = `${mark} ${visible(name)}${which}${session === null ? '' : colors.dim(`  ${session}`)}`;
    return [head, ...reasons.map((reason) => `    ${cut(visible(reason))}`)];
  });
  const more = groups.size - MOST_DETAILS;
  return more > 0 ? [...shown, `  … and ${more} more; --out <file> writes all of them`] : shown;
}

function totalsOf({
  passed,
  failed,
  errors,
  omitted,
  pass_rate: rate,
  tokens,
  cost,
  ms,
  judge,
  models,
}: EvalReport): string[] {
  const share = rate === null ? '' : `: ${percent(rate.value)} (${range(rate)})`;
  const counts = [
    `${failed} failed`,
    ...(errors === 0 ? [] : [`${errors} without a result`]),
    ...(omitted === 0 ? [] : [`${omitted} not made`]),
  ].join(', ');
  const spent = [
    ...(tokens === null
      ? []
      : [`${numeral(tokens.total)} tokens (median ${numeral(tokens.median)}, p90 ${numeral(tokens.p90)})`]),
    ...(cost === null ? [] : [dollars(cost.total)]),
    ...(ms === null ? [] : [`time: median ${seconds(ms.median)}, p90 ${seconds(ms.p90)}`]),
  ];
  return [
    `${passed} of ${passed + failed} runs passed, ${counts}${share}`,
    ...(spent.length === 0 ? [] : [spent.join(', ')]),
    ...(models.length === 0 ? [] : [`model: ${visible(models.join(', '))}`]),
    ...(judge === null
      ? []
      : [
          `judge: ${judge.judgements} judgements${judge.errors === 0 ? '' : ` (${judge.errors} without a verdict)`}, ` +
            `${numeral(judge.tokens)} tokens${judge.cost === null ? '' : `, ${dollars(judge.cost)}`}` +
            `${judge.models.length === 0 ? '' : `, ${visible(judge.models.join(', '))}`}`,
        ]),
  ];
}

function comparisonLines(comparison: Comparison): string[] {
  const { file, created_at: at, agent, models, compared, better, worse, pass_rate: rate, sign_test_p: p } = comparison;
  const difference = rate === null ? '' : `${points(rate.value)} (${points(rate.low)} to ${points(rate.high)})`;
  const left: [readonly string[], string][] = [
    [comparison.added, 'new'],
    [comparison.removed, 'removed'],
    [comparison.edited, 'edited'],
    [comparison.unmeasured, 'without a result'],
  ];
  const uncompared = left.filter(([names]) => names.length > 0).map(([names, how]) => `${names.length} ${how}`);
  const medians = [
    medianLine('tokens', comparison.tokens, numeral),
    medianLine('cost', comparison.cost, dollars),
    medianLine('time', comparison.ms, seconds),
  ].filter((line) => line !== null);
  return [
    `compared with ${visible(file)} (${at.slice(0, 10)}, ${visible([agent, ...models].join(', '))})`,
    rate === null
      ? 'no case has results in both'
      : `${compared} cases: ${better.length} better, ${worse.length} worse; pass rate: ${difference}, sign test p = ${p.toFixed(3)}`,
    ...(uncompared.length === 0 ? [] : [`not compared: ${uncompared.join(', ')}`]),
    ...(medians.length === 0 ? [] : [`medians: ${medians.join(', ')}`]),
  ];
}

function medianLine(
  name: string,
  { before, now }: Comparison['tokens'],
  write: (value: number) => string,
): string | null {
  return before === null || now === null ? null : `${name} ${write(before)} → ${write(now)}`;
}

function cut(text: string): string {
  return text.length > REASON_CHARS ? `${text.slice(0, REASON_CHARS)}…` : text;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function range({ low, high }: Pick<Rate, 'low' | 'high'>): string {
  return `${Math.round(low * 100)}–${Math.round(high * 100)} %`;
}

/** Percentage points, with their sign. */
function points(share: number): string {
  const rounded = Math.round(share * 100);
  return rounded === 0 ? '0' : `${rounded > 0 ? '+' : '−'}${Math.abs(rounded)}`;
}

function numeral(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function dollars(value: number): string {
  return `$${value.toFixed(4)}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
