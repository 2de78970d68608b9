/** The report for people: forms as columns, scores as rows, then the mistakes and the recommendation. */
import { FORM_TITLES } from '../tasks/forms.ts';
import { points } from '../score/recommend.ts';
import { changeSince } from './comparison.ts';
import type { EarlierReport } from './comparison.ts';
import { END_REASONS, mistakesByCode, usageOf } from './report.ts';
import type { FluencyReport, FormReport } from './report.ts';
import { mean, spreadOf, sum } from '../../statistics.ts';
import { aligned } from '../../terminal/aligned.ts';
import { PART_NAMES, WEIGHTS } from '../score/score.ts';
import { KINDS } from '../tasks/dataset.ts';

/** Kinds of mistakes that are shown for each form. */
const SHOWN_MISTAKES = 4;
const NONE = '–';

export function reportLines(report: FluencyReport, earlier: EarlierReport | null): string[] {
  const { forms, model, endpoint, tasks, repeat, omitted, recommendation, snippet } = report;
  const measured = forms.filter(({ score }) => score !== null);
  const usage = usageOf(forms.flatMap(({ runs }) => runs));
  const price = usage.cost === null ? '' : `, $${usage.cost.toFixed(4)}`;
  const estimated = usage.estimated ? ' (partly estimated)' : '';
  return [
    `${model} at ${endpoint}: ${counted(tasks, 'task')}${repeat === 1 ? '' : `, ${repeat} times`}`,
    '',
    ...(measured.length === 0 ? [] : aligned([header(measured), ...rows(report, measured, earlier)])),
    ...forms.flatMap(remarks),
    ...measured.flatMap(mistakeLines),
    '',
    ...(omitted === 0 ? [] : [`${counted(omitted, 'run')} did not start: ${END_REASONS[report.end]}.`]),
    `${usage.model_calls} model calls, ${usage.prompt_tokens} + ${usage.completion_tokens} tokens${estimated}${price}`,
    '',
    recommendation.form === null
      ? 'No recommendation.'
      : `Recommended, from ${counted(recommendation.tasks, 'task')}: ${FORM_TITLES[recommendation.form]}`,
    ...recommendation.reasons.map((reason) => `  ${reason}`),
    ...(snippet.length === 0 ? [] : ['', ...snippet]),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function header(forms: readonly FormReport[]): string[] {
  return ['', ...forms.map(({ form }) => form)];
}

function rows(report: FluencyReport, forms: readonly FormReport[], earlier: EarlierReport | null): string[][] {
  const row = (title: string, of: (form: FormReport) => string): string[] => [title, ...forms.map(of)];
  const average = (values: readonly number[]): string => (values.length === 0 ? NONE : mean(values).toFixed(1));
  return [
    row('score (0-100)', ({ score }) => (score === null ? NONE : score.score.toFixed(1))),
    row('  95 % interval', ({ score }) =>
      score === null ? NONE : `${score.interval.low.toFixed(0)}-${score.interval.high.toFixed(0)}`,
    ),
    ...PART_NAMES.map((name) =>
      row(`  ${name} (${WEIGHTS[name]} %)`, ({ score }) => score?.parts[name]?.toFixed(0) ?? NONE),
    ),
    ...(earlier === null
      ? []
      : [row('since the earlier report', (form) => points(changeSince(report, form, earlier)))]),
    row('solved', ({ runs }) => `${runs.filter(({ solved }) => solved).length} of ${runs.length}`),
    ...KINDS.map((kind) =>
      row(`  ${kind.replace('_', ' ')}`, ({ runs }) => {
        const own = runs.filter((run) => run.kind === kind);
        return own.length === 0 ? NONE : `${own.filter(({ solved }) => solved).length} of ${own.length}`;
      }),
    ),
    row('generations (ideal)', ({ runs }) => {
      const ideal = average(runs.map(({ idealGenerations }) => idealGenerations));
      return `${average(runs.map(({ validity }) => validity.length))} (${ideal})`;
    }),
    row('nominal seconds (ideal)', ({ runs }) => {
      const ideal = average(runs.map(({ idealMs }) => idealMs / 1_000));
      return `${average(runs.map(({ makespanMs }) => makespanMs / 1_000))} (${ideal})`;
    }),
    row('calls: missing, more, repeated', ({ runs }) => {
      const total = (of: 'missing' | 'superfluous' | 'repeated'): number => sum(runs.map(({ calls }) => calls[of]));
      return `${total('missing')}, ${total('superfluous')}, ${total('repeated')}`;
    }),
    row(
      'actions: rejected, repaired',
      ({ runs }) => `${sum(runs.map(({ rejected }) => rejected))}, ${sum(runs.map(({ repaired }) => repaired))}`,
    ),
    row('tokens per run', ({ runs }) => mean(runs.map(({ usage }) => usage.prompt + usage.completion)).toFixed(0)),
    row('seconds to the first action', ({ runs }) =>
      median(runs.flatMap(({ firstActionMs }) => firstActionMs ?? []).map((ms) => ms / 1_000)),
    ),
    row('seconds per run', ({ runs }) => median(runs.map(({ ms }) => ms / 1_000))),
  ];
}

function median(values: readonly number[]): string {
  return spreadOf(values)?.median.toFixed(2) ?? NONE;
}

function remarks({ form, unavailable, note, endpointErrors }: FormReport): string[] {
  const [error] = endpointErrors;
  return [
    ...(unavailable === null ? [] : ['', `${form} was not measured: ${unavailable}`]),
    ...(note === null ? [] : ['', `${form}: ${note}`]),
    ...(error === undefined
      ? []
      : ['', `${form}: the endpoint failed ${counted(endpointErrors.length, 'run')}, such as: ${error}`]),
  ];
}

function mistakeLines({ form, runs }: FormReport): string[] {
  const found = mistakesByCode(runs);
  if (found.length === 0) return [];
  const more = found.length - SHOWN_MISTAKES;
  return [
    '',
    `Mistakes in ${form}:`,
    ...found
      .slice(0, SHOWN_MISTAKES)
      .flatMap(({ code, count, example: { task, message, wrote } }) => [
        `  ${count} × ${code}, such as in ${task}: ${message}`,
        ...(wrote === '' ? [] : [`      wrote: ${wrote}`]),
      ]),
    ...(more > 0 ? [`  and ${more} other kinds`] : []),
  ];
}
