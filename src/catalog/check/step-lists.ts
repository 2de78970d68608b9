/** The lists of steps inside a step, and the names that they make visible (M6). */
import { GROUP_TYPES } from '../../domain/manifests/workflow.ts';
import type { FieldPath } from './problem.ts';
import type { StepInput } from '../schema/schema-workflow.ts';

const GROUPS: ReadonlySet<string> = new Set(GROUP_TYPES);
/** Their steps exist once for each item or round. */
const REPEATED: ReadonlySet<string> = new Set(['for_each', 'reduce', 'loop']);
/** Types whose steps have an item. */
export const LISTS: ReadonlySet<string> = new Set(['for_each', 'reduce']);
export function isRepeated({ type }: StepInput): boolean {
  return REPEATED.has(type);
}

export function isGroup({ type }: StepInput): boolean {
  return GROUPS.has(type);
}

/** The names of the step and of its inner steps that are visible outside. */
export function namesOf(step: StepInput): string[] {
  if (REPEATED.has(step.type)) return [step.name];
  const inner = listsOf(step).flatMap(({ list, isCompensation }) => (isCompensation ? [] : list));
  return [step.name, ...inner.flatMap((one) => namesOf(one))];
}

interface StepList {
  readonly name: FieldPath;
  readonly list: readonly StepInput[];
  readonly isCompensation: boolean;
}

export function listsOf(step: StepInput): StepList[] {
  const {
    steps,
    else: no,
    otherwise,
    cases = [],
    catch: rescue,
    finally: always,
    on_failure: handler,
    compensate,
  } = step;
  const given = (name: FieldPath, list: readonly StepInput[] | undefined, isCompensation: boolean): StepList[] =>
    list === undefined ? [] : [{ name, list, isCompensation }];
  return [
    ...given(['steps'], steps, false),
    ...given(['else'], no, false),
    ...given(['otherwise'], otherwise, false),
    ...cases.flatMap((one, index) => given(['cases', index, 'steps'], one.steps, false)),
    ...given(['catch'], rescue, false),
    ...given(['finally'], always, false),
    ...given(['on_failure', 'steps'], typeof handler === 'object' ? handler.steps : undefined, true),
    ...given(['compensate'], compensate, true),
  ];
}
