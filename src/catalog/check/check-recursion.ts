/** Finds workflows that always start themselves, directly or through others: such a run cannot complete (M6, M7). */
import { limits } from '../../domain/limits.ts';
import type { WorkflowDefinition, WorkflowStep } from '../../domain/manifests/workflow.ts';

/** Maximum length of a detected cycle; longer ones are stopped by the depth limit at run time. */
const LONGEST = 4 * limits.childDepth;

/** @returns the names along the cycle, from the workflow to itself; null if a condition or a list may end it */
export function recursionOf(
  workflow: WorkflowDefinition,
  all: ReadonlyMap<string, WorkflowDefinition>,
): readonly string[] | null {
  const seen = new Set<string>();
  const waiting: (readonly string[])[] = [[workflow.name]];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (path.length > LONGEST) return null;
    const definition = path.length === 1 ? workflow : all.get(path.at(-1) ?? '');
    for (const target of alwaysStarted(definition?.steps ?? [])) {
      if (target === workflow.name) return [...path, target];
      if (seen.has(target)) continue;
      seen.add(target);
      waiting.push([...path, target]);
    }
  }
  return null;
}

/** Workflows that the steps start unconditionally. */
function alwaysStarted(steps: readonly WorkflowStep[]): string[] {
  return steps.flatMap(({ type, target, condition, steps: inner }) => {
    if (condition !== null) return [];
    if (type === 'parallel') return alwaysStarted(inner);
    return type === 'workflow' && target !== null ? [target] : [];
  });
}
