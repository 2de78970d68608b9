/**
 * Recommends settings of the manifest. A difference counts only if it is larger than its uncertainty, task by task, and rests
 * on enough tasks.
 *
 * Rules, in this order:
 *  1. A form that solves less than half of the tasks is not recommended.
 *  2. Among the forms without a grammar, those stay that are not worse than the best in the share of solved tasks; of these, in
 *     nominal time; then in valid protocol; then in tokens. If several are left, the first one counts: the default.
 *  3. A grammar needs a setting for each agent: it is recommended only if its score is higher than that of the form of rule 2.
 */
import { FORM_NAMES, FORM_PROTOCOLS, FORM_TITLES } from '../tasks/forms.ts';
import type { FormName } from '../tasks/forms.ts';
import type { RunMeasures } from './measure.ts';
import { mean, meansOf, pairedDifference } from '../../statistics.ts';
import type { MeanDifference } from '../../statistics.ts';
import type { FormScore } from './score.ts';

/** A form with runs. */
export interface MeasuredForm {
  readonly form: FormName;
  readonly score: FormScore;
  /** Without those that the endpoint has failed. */
  readonly runs: readonly RunMeasures[];
}

export interface Recommendation {
  /** Null: no form is good enough. */
  readonly form: FormName | null;
  /** Members of the manifest's `protocol`; a grammar is a parameter of the engine. */
  readonly protocol: {
    readonly form: string;
    readonly dialect: string;
    readonly bare_text?: 'reject';
  } | null;
  /** How many tasks it rests on: those of the form with the fewest. */
  readonly tasks: number;
  /** Sentences with figures. */
  readonly reasons: readonly string[];
}

/** Of 1: smaller differences of scores are not worth a setting, however certain they are. */
const LEAST_DIFFERENCE = 0.02;
/** Shares of time and tokens: the same. */
const LEAST_SHARE = 0.03;
/** A difference over fewer tasks does not count: their spread says little about that of others. */
const LEAST_PAIRS = 10;
/** Below this share of solved tasks, no setting helps. */
const LEAST_CORRECTNESS = 50;
/** Share of runs that end with an announcement in place of work. */
const MANY_ANNOUNCEMENTS = 0.1;

/** @param forms with at least one run each, in any order */
export function recommend(forms: readonly MeasuredForm[]): Recommendation {
  const sorted = FORM_NAMES.flatMap((name) => forms.filter(({ form }) => form === name));
  const usable = sorted.filter(({ score }) => (score.parts.correctness ?? 0) >= LEAST_CORRECTNESS);
  const [first] = usable;
  const tasks = Math.min(...sorted.map(({ score }) => score.byTask.size));
  const few =
    tasks < LEAST_PAIRS ? [`Differences between forms do not count with fewer than ${LEAST_PAIRS} tasks.`] : [];
  if (first === undefined) {
    const shares = sorted.map(({ form, score }) => `${form} ${shown(score.parts.correctness ?? 0)} %`);
    return {
      form: null,
      protocol: null,
      tasks,
      reasons: [
        `In no form does the model solve ${LEAST_CORRECTNESS} % of the tasks (${shares.join(', ')}): use another model.`,
      ],
    };
  }
  const { chosen, reasons } = choose(usable, first);
  const dropped = sorted.filter((one) => !usable.includes(one));
  const bareText = announcements(chosen);
  return {
    form: chosen.form,
    tasks,
    protocol: { ...FORM_PROTOCOLS[chosen.form], ...(bareText === null ? {} : { bare_text: 'reject' as const }) },
    reasons: [
      ...dropped.map(({ form, score }) => `${form} solves only ${shown(score.parts.correctness ?? 0)} % of the tasks.`),
      ...reasons,
      ...(sorted.length > 1 ? few : []),
      ...(bareText === null ? [] : [bareText]),
    ],
  };
}

function choose(
  usable: readonly MeasuredForm[],
  first: MeasuredForm,
): { readonly chosen: MeasuredForm; readonly reasons: readonly string[] } {
  const grammar = usable.find(({ form }) => form === 'grammar');
  let left = usable.filter(({ form }) => form !== 'grammar');
  if (left.length === 0) return { chosen: first, reasons: ['Only with the grammar does the model solve enough.'] };
  const reasons: string[] = [];
  for (const round of ROUNDS) left = keep(left, round, reasons);
  const [chosen = first, ...equal] = left;
  if (equal.length > 0) {
    const names = left.map(({ form }) => form).join(' and ');
    reasons.push(`${names} do not differ by more than the uncertainty; ${chosen.form} comes first.`);
  }
  if (grammar === undefined) return { chosen, reasons };
  const gain = pairedDifference(grammar.score.byTask, chosen.score.byTask);
  reasons.push(`The score with the grammar compared with ${chosen.form}: ${points(gain)}.`);
  return isMore(gain, LEAST_DIFFERENCE) ? { chosen: grammar, reasons } : { chosen, reasons };
}

interface Round {
  readonly of: (run: RunMeasures) => number;
  readonly isBetter: 'more' | 'less';
  /** As a share of the larger value, over tasks that both solve. Otherwise as a difference, over all tasks. */
  readonly isShare: boolean;
  /** Why the second form is dropped. */
  readonly reason: (best: FormName, other: FormName, difference: MeanDifference) => string;
}

const ROUNDS: readonly Round[] = [
  {
    of: ({ solved }) => (solved ? 1 : 0),
    isBetter: 'more',
    isShare: false,
    reason: (best, other, by) => `${best} solves more tasks than ${other}: ${points(by)}.`,
  },
  {
    of: ({ makespanMs }) => makespanMs,
    isBetter: 'less',
    isShare: true,
    reason: (best, other, by) => `${best} needs less nominal time than ${other}: ${percent(by)}.`,
  },
  {
    of: ({ validity }) => (validity.length === 0 ? 0 : mean(validity)),
    isBetter: 'more',
    isShare: false,
    reason: (best, other, by) => `${best} is written with fewer mistakes than ${other}: ${points(by)}.`,
  },
  {
    of: ({ effort }) => effort,
    isBetter: 'less',
    isShare: true,
    reason: (best, other, by) => `${best} needs fewer weighted tokens than ${other}: ${percent(by)}.`,
  },
];

/** The forms that are not worse than the best one. */
function keep(forms: readonly MeasuredForm[], round: Round, reasons: string[]): MeasuredForm[] {
  const sign = round.isBetter === 'more' ? 1 : -1;
  const lead = (a: MeasuredForm, b: MeasuredForm): MeanDifference => {
    const { mean: value, ...others } = compare(a, b, round);
    return { mean: sign * value, ...others };
  };
  const best = forms.reduce((a, b) => (lead(b, a).mean > 0 ? b : a));
  return forms.filter((other) => {
    if (other === best) return true;
    const by = lead(best, other);
    const isWorse = isMore(by, round.isShare ? LEAST_SHARE : LEAST_DIFFERENCE);
    if (isWorse) reasons.push(round.reason(best.form, other.form, by));
    return !isWorse;
  });
}

function compare(a: MeasuredForm, b: MeasuredForm, { of, isShare }: Round): MeanDifference {
  const [ofA, ofB] = [byTask(a.runs, of, isShare), byTask(b.runs, of, isShare)];
  if (!isShare) return pairedDifference(ofA, ofB);
  const relative = (values: ReadonlyMap<string, number>): Map<string, number> =>
    new Map([...values].map(([name, value]) => [name, value / Math.max(1, ofA.get(name) ?? 0, ofB.get(name) ?? 0)]));
  return pairedDifference(relative(ofA), relative(ofB));
}

/** The mean of the repetitions of each task. */
function byTask(runs: readonly RunMeasures[], of: Round['of'], onlySolved: boolean): Map<string, number> {
  return meansOf(runs.filter(({ solved }) => solved || !onlySolved).map((run) => [run.task, of(run)]));
}

/** Why bare text should be rejected, or null. */
function announcements({ form, runs }: MeasuredForm): string | null {
  if (form === 'tool_calls') return null;
  const announced = runs.filter(
    ({ solved, mistakes, calls }) => !solved && calls.made === 0 && mistakes.some(({ code }) => code === 'no_protocol'),
  );
  if (announced.length < MANY_ANNOUNCEMENTS * runs.length) return null;
  return (
    `${announced.length} of ${runs.length} runs end with text without any action: ` +
    'with bare_text: reject, the runtime asks for an action instead.'
  );
}

function isMore({ mean: value, margin, pairs }: MeanDifference, least: number): boolean {
  return pairs >= LEAST_PAIRS && value > Math.max(margin, least);
}

/** A difference of scores, in points of 100. */
export function points({ mean: value, margin }: MeanDifference): string {
  const sign = value < 0 ? '−' : '+';
  const uncertainty = Number.isFinite(margin) ? `± ${shown(100 * margin)}` : 'with unknown uncertainty';
  return `${sign}${shown(100 * Math.abs(value))} ${uncertainty} points`;
}

function percent({ mean: value, margin }: MeanDifference): string {
  return `${shown(100 * value)} % (± ${shown(100 * margin)})`;
}

function shown(value: number): string {
  return value.toFixed(1).replace(/\.0$/, '');
}

/** The recommended settings as a part of a manifest. */
export function manifestSnippet({ form, protocol }: Recommendation, grammarParameter: string | null): string[] {
  if (form === null || protocol === null) return [];
  const lines = [`# ${FORM_TITLES[form]}`, 'protocol:'];
  for (const [name, value] of Object.entries(protocol)) lines.push(`  ${name}: ${value}`);
  if (form !== 'grammar' || grammarParameter === null) return lines;
  const levels = ['parameters', ...grammarParameter.split('.')];
  lines.push('cognitive_engine:');
  for (const [depth, name] of levels.entries()) {
    const isLast = depth === levels.length - 1;
    lines.push(`${'  '.repeat(depth + 1)}${name}:${isLast ? ' |' : ''}`);
  }
  lines.push(`${'  '.repeat(levels.length + 1)}# the output of: cortex grammar <agent>`);
  return lines;
}
