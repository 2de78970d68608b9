/** What the names of a workflow's steps mean, and which step refers to which (M6). */
import type { Json } from '../../domain/json.ts';
import type { WorkflowDefinition, WorkflowStep } from '../../domain/manifest.ts';
import { StepFailed } from './step-failed.ts';

/** Where a step stands: what its names mean, and what surrounds it. */
export interface Scope {
  /** Ids of steps by their names, inner ones first. */
  readonly ids: ReadonlyMap<string, Step>;
  /** Of a `for_each`: the current item. */
  readonly item: { readonly value: Json; readonly index: number } | null;
  readonly prefix: string;
}

interface Step {
  readonly id: string;
  readonly step: WorkflowStep;
}

export type Group = WorkflowStep & { readonly type: 'conditional' | 'parallel' | 'for_each' };

/** What can be named from around a list: its steps and those within them, but for what a `for_each` does for every item. */
export function namesIn(steps: readonly WorkflowStep[]): Set<string> {
  return new Set(
    steps.flatMap((step) => [
      step.name,
      ...(step.type === 'for_each' ? [] : namesIn([...step.steps, ...step.otherwise])),
    ]),
  );
}

/** The steps of a group, none before one that it waits for: where few go at a time, they would wait for ever. */
export function inOrder(steps: readonly WorkflowStep[]): WorkflowStep[] {
  const holders = new Map(steps.flatMap((step) => [...namesIn([step])].map((name) => [name, step] as const)));
  const ordered = new Set<WorkflowStep>();
  const seen = new Set<WorkflowStep>();
  const put = (step: WorkflowStep): void => {
    if (seen.has(step)) return;
    seen.add(step);
    for (const name of namedBy([step])) {
      const other = holders.get(name);
      if (other !== undefined) put(other);
    }
    ordered.add(step);
  };
  for (const step of steps) put(step);
  return [...ordered];
}

/** The id of the action that a group hangs on. */
export function gateOf(step: Group, id: string): string {
  return `${id}_${step.type === 'for_each' ? 'items' : 'gate'}`;
}

/** Every name that stands behind `steps.` anywhere in the definition, or in a `depends_on`. */
export function referredIn({ steps, outputs }: WorkflowDefinition): ReadonlySet<string> {
  return new Set([...namedBy(steps), ...Object.values(outputs).flatMap((path) => namesOf(path))]);
}

/** Names of steps that these, and those within them, refer to or depend on. */
function namedBy(steps: readonly WorkflowStep[]): string[] {
  return steps.flatMap((step) => [
    ...namesOf(JSON.stringify([step.parameters, step.items, step.condition])),
    ...(step.dependsOn ?? []),
    ...namedBy([...step.steps, ...step.otherwise, ...step.compensate]),
  ]);
}

function namesOf(text: string): string[] {
  return [...text.matchAll(/\bsteps\.([A-Za-z_][\w-]*)/g)].map(([, name = '']) => name);
}

export function isGroup(step: WorkflowStep): step is Group {
  return step.type === 'conditional' || step.type === 'parallel' || step.type === 'for_each';
}

export function scopeOf(steps: readonly WorkflowStep[], outer: Scope): Scope {
  const ids = new Map(outer.ids);
  const add = (step: WorkflowStep): void => {
    ids.set(step.name, { id: `${outer.prefix}${step.name}`, step });
    // Steps within a branch can be named from outside; those of a for_each are there once for every item.
    if (step.type !== 'for_each') for (const inner of [...step.steps, ...step.otherwise]) add(inner);
  };
  for (const step of steps) add(step);
  return { ...outer, ids };
}

/** @throws StepFailed for a name that no step has; the catalogue refuses such a workflow before it runs */
export function idOf(name: string, { ids }: Scope): string {
  const found = ids.get(name);
  if (found === undefined) throw new StepFailed(`There is no step "${name}" (known: ${[...ids.keys()].join(', ')})`);
  return found.id;
}

/** The path within a step's result, after its `output_mapping`. */
export function mapped(name: string, path: readonly string[], { ids }: Scope): readonly string[] {
  const [first, ...rest] = path;
  const mapping = ids.get(name)?.step.outputMapping ?? {};
  const target = first !== undefined && Object.hasOwn(mapping, first) ? mapping[first] : undefined;
  return target === undefined ? path : [...target.split('.').filter((part) => part !== ''), ...rest];
}
