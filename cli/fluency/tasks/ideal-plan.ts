/** The ideal plan of a task in a form, computed from its calls and what they need. */
import { referenceNames } from '../../../src/protocol/references/references.ts';
import type { PlannedCall, Task } from './dataset.ts';
import type { FormName } from './forms.ts';
import { scheduleOf } from './schedule.ts';
import type { Schedule } from './schedule.ts';

export interface IdealPlan {
  /** Calls by generation; the last one may have none: then it only answers. */
  readonly generations: readonly (readonly PlannedCall[])[];
  readonly schedule: Schedule;
  /** Values that the model can hand over by a reference: pairs of a call, or the answer, and what it refers to. */
  readonly handOvers: number;
}

/**
 * The fewest generations, and in each of them everything that can be declared.
 *
 * In protocol text, a call can refer to a result that does not exist yet, and so can the answer: only what the model has to
 * read first needs another generation. A native call cannot, because its id is not known before, and the answer follows in
 * a generation of its own (P17).
 *
 * @param msOf the nominal duration of a tool
 */
export function idealPlan(task: Task, form: FormName, msOf: (tool: string) => number): IdealPlan {
  const isNative = form === 'tool_calls';
  const generationOf = new Map<string, number>();
  const latest = (ids: readonly string[]): number => Math.max(0, ...ids.map((id) => generationOf.get(id) ?? 0));
  const generations: PlannedCall[][] = [];
  for (const call of task.plan) {
    const { id, sees = [] } = call;
    const needs = needsOf(call);
    const at = isNative ? latest([...needs, ...sees]) + 1 : Math.max(1, latest(needs), latest(sees) + 1);
    generationOf.set(id, at);
    (generations[at - 1] ??= []).push(call);
  }
  if (isNative || task.judged === true) generations.push([]);
  const schedule = scheduleOf(
    generations.map((calls) => calls.map((call) => ({ key: call.id, ms: msOf(call.tool), needs: needsOf(call) }))),
    task.slots,
  );
  const answerNames = task.judged === true ? [] : referenceNames(task.answer);
  const handOvers = task.plan.reduce(
    (sum, { parameters }) => sum + referenceNames(parameters).length,
    answerNames.length,
  );
  return { generations, schedule, handOvers: isNative ? 0 : handOvers };
}

function needsOf({ parameters, after = [] }: PlannedCall): string[] {
  return [...new Set([...referenceNames(parameters), ...after])];
}
