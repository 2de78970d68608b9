/** Checks the ids of a workflow's actions before it runs (M6, P12). */
import { limits } from '../../domain/limits.ts';
import type { BuildContext } from '../build/build-base.ts';
import type { StepInput } from '../schema/schema-workflow.ts';
import type { FieldPath } from './problem.ts';
import { isGroup, isRepeated, LISTS, listsOf, namesOf } from './step-lists.ts';

/** The longest infix between the id of a `for_each` and the names of its steps. */
const INDEX = `_${limits.actionsPerRun - 1}_`;

/** Checks the ids of actions: unique among siblings, and short enough with the prefixes of the enclosing lists. */
export function checkIds(
  steps: readonly StepInput[],
  field: FieldPath,
  prefix: string,
  taken: Map<string, string>,
  context: Pick<BuildContext, 'addIssue'>,
  /** Also records the ids here. */
  all: Map<string, string> | null = null,
): void {
  const claim = (id: string, name: string, at: FieldPath): void => {
    const other = taken.get(id);
    if (other !== undefined) context.addIssue(at, `the step "${other}" would have the same id`);
    taken.set(id, name);
    all?.set(id, name);
  };
  const names = new Set<string>();
  for (const [place, step] of steps.entries()) {
    if (names.has(step.name)) continue;
    names.add(step.name);
    const at = [...field, place, 'name'];
    const id = `${prefix}${step.name}`;
    const group = isGroup(step);
    const gate = `${id}_${LISTS.has(step.type) ? 'items' : step.type === 'ask' ? 'ask' : 'gate'}`;
    const checks = step.type === 'loop' && step.until !== undefined ? roundsOf(step, gate) : [];
    const longest = checks.at(-1) ?? (group ? gate : id);
    if (longest.length > limits.idChars) {
      const message = `the ids of its actions would have up to ${longest.length} characters with the names of the enclosing steps (allowed: ${limits.idChars})`;
      context.addIssue(at, message);
      continue;
    }
    claim(id, step.name, at);
    if (group) claim(gate, step.name, at);
    for (const check of checks) claim(check, step.name, at);
    for (const { name, list, isCompensation } of listsOf(step)) {
      const inner = [...field, place, ...name];
      if (isCompensation) checkIds(list, inner, `${id}_undo_`, new Map(), context);
      else if (isRepeated(step)) checkIds(list, inner, `${id}${INDEX}`, new Map(), context);
      // only one branch runs, so the other may use the same names
      else if (step.type !== 'conditional' && step.type !== 'switch') checkIds(list, inner, prefix, taken, context);
      else {
        const others = listsOf(step).filter((one) => one.list !== list && !one.isCompensation);
        checkIds(
          list,
          inner,
          prefix,
          without(
            taken,
            others.flatMap((one) => one.list),
            prefix,
          ),
          context,
          taken,
        );
      }
    }
  }
}

/** The ids of a loop's checks of its condition, one for each round. */
function roundsOf({ max_rounds: most = limits.workflowRounds }: StepInput, gate: string): string[] {
  return Array.from({ length: most }, (_, round) => `${gate}_${round}`);
}

function without(taken: ReadonlyMap<string, string>, steps: readonly StepInput[], prefix: string): Map<string, string> {
  const rest = new Map(taken);
  const names = steps.flatMap((step) => namesOf(step));
  const gates = new Set(names.map((name) => `${prefix}${name}_gate`));
  // the checks of a loop
  for (const id of rest.keys()) if (gates.has(id.replace(/_\d+$/, ''))) rest.delete(id);
  for (const name of names) {
    for (const id of [name, `${name}_gate`, `${name}_items`, `${name}_ask`]) rest.delete(`${prefix}${id}`);
  }
  return rest;
}
