/** Compares a report with an earlier one: by form, over the tasks that both have in the same definition. */
import { z } from 'zod';
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json } from '../../../src/domain/json.ts';
import { meansOf, pairedDifference } from '../../statistics.ts';
import type { MeanDifference } from '../../statistics.ts';
import type { FormScore } from '../score/score.ts';
import { FORM_NAMES } from '../tasks/forms.ts';
import type { FormName } from '../tasks/forms.ts';

/** Of the document. Members may be added to a version; removed or changed ones make another version. */
export const REPORT_VERSION = 1;

const earlierReport = z.looseObject({
  version: z.literal(REPORT_VERSION),
  model: z.string(),
  task_digests: z.record(z.string(), z.string()),
  runs: z.array(z.looseObject({ task: z.string(), form: z.enum(FORM_NAMES), score: z.number().min(0).max(100) })),
});

/** Of the definition of each task, by its name. */
type Digests = ReadonlyMap<string, string>;

/** What an earlier report is compared with. */
interface Compared {
  readonly digests: Digests;
  readonly forms: readonly { readonly form: FormName; readonly score: FormScore | null }[];
}

export type EarlierReport = z.infer<typeof earlierReport>;

/**
 * @param digests of the tasks that it is compared with
 * @throws Error if it is not a report of this version, or has none of these tasks
 */
export function readReport(text: string, digests: Digests): EarlierReport {
  const value = JSON.parse(text) as Json;
  const read = earlierReport.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    const place = issue === undefined ? '' : `${issue.path.join('.')}: ${issue.message}`;
    throw new Error(
      `is not a report of "cortex fluency --json" in version ${REPORT_VERSION} (${origin(value) ?? place})`,
    );
  }
  const { data } = read;
  if (data.runs.some(({ task }) => isCommon(task, data, digests))) return data;
  const isChanged = data.runs.some(({ task }) => digests.has(task));
  throw new Error(
    `has no task in common with this measurement${isChanged ? ', because the tasks have changed since then' : ''}`,
  );
}

/** Which other command has written it, if that can be seen. */
function origin(value: Json): string | null {
  if (!isJsonObject(value)) return null;
  if ('dataset' in value && 'cases' in value) return 'it is a report of "cortex eval"';
  if ('session_id' in value || 'run_id' in value) return 'it is a run of "cortex run"';
  return null;
}

function isCommon(task: string, { task_digests: before }: EarlierReport, digests: Digests): boolean {
  const digest = digests.get(task);
  return digest !== undefined && Object.hasOwn(before, task) && before[task] === digest;
}

/** The change of a form since the earlier report: of scores from 0 to 1, over the tasks that both have. */
export function changeSince(
  { digests }: Pick<Compared, 'digests'>,
  { form, score }: Compared['forms'][number],
  earlier: EarlierReport,
): MeanDifference {
  const before = earlier.runs.filter((run) => run.form === form && isCommon(run.task, earlier, digests));
  return pairedDifference(score?.byTask ?? new Map(), meansOf(before.map((run) => [run.task, run.score / 100])));
}

/** As JSON: differences in points of 100. */
export function comparisonDocument(report: Compared, earlier: EarlierReport): Record<string, unknown> {
  const tasks = [...new Set(earlier.runs.map(({ task }) => task))];
  return {
    model: earlier.model,
    tasks: tasks.filter((task) => isCommon(task, earlier, report.digests)).length,
    forms: report.forms.map((form) => {
      const { mean: value, margin, pairs } = changeSince(report, form, earlier);
      return {
        form: form.form,
        tasks: pairs,
        difference: pairs === 0 ? null : rounded(100 * value),
        margin: Number.isFinite(margin) ? rounded(100 * margin) : null,
      };
    }),
  };
}

/** To one decimal. */
export function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
