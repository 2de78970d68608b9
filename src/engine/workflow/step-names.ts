/** Resolves the names of a workflow's steps, and the references between steps (M6). */
import type { Json } from '../../domain/json.ts';
import type { WorkflowDefinition, WorkflowStep } from '../../domain/manifest.ts';
import { membersOf } from '../../domain/workflow-path.ts';
import { StepFailed } from './step-failed.ts';

/** The scope of a step: the names that it can use, and its surroundings. */
export interface Scope {
  /** Ids of steps by name, inner ones first. */
  readonly ids: ReadonlyMap<string, Step>;
  /** In a `for_each`: the current item. */
  readonly item: { readonly value: Json; readonly index: number } | null;
  readonly prefix: string;
}

interface Step {
  readonly id: string;
  readonly step: WorkflowStep;
}

export type Group = WorkflowStep & { readonly type: 'conditional' | 'parallel' | 'for_each' };

/** Names visible outside a list: its steps and those inside them, except the steps of a `for_each`. */
export function namesIn(steps: readonly WorkflowStep[]): Set<string> {
  return new Set(
    steps.flatMap((step) => [
      step.name,
      ...(step.type === 'for_each' ? [] : namesIn([...step.steps, ...step.otherwise])),
    ]),
  );
}

/** The steps of a group in topological order: with limited concurrency, another order could deadlock. */
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

/** The id of a group's gate action. */
export function gateOf(step: Group, id: string): string {
  return `${id}_${step.type === 'for_each' ? 'items' : 'gate'}`;
}

/** Every name after `steps.` anywhere in the definition, and in every `depends_on`. */
export function referencedNames({ steps, outputs }: WorkflowDefinition): ReadonlySet<string> {
  return new Set([...namedBy(steps), ...Object.values(outputs).flatMap((path) => namesOf(path))]);
}

/** Names of steps that these steps, and those inside them, refer to or depend on. */
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
    // Steps in a branch can be named from outside; those of a for_each exist once per item.
    if (step.type !== 'for_each') for (const inner of [...step.steps, ...step.otherwise]) add(inner);
  };
  for (const step of steps) add(step);
  return { ...outer, ids };
}

/** @throws StepFailed for an unknown name; the catalogue rejects such a workflow before it runs */
export function idOf(name: string, { ids }: Scope): string {
  const found = ids.get(name);
  if (found === undefined) throw new StepFailed(`There is no step "${name}" (known: ${[...ids.keys()].join(', ')})`);
  return found.id;
}

/** The path in a step's result, after its `output_mapping`. */
export function mappedPath(name: string, path: readonly string[], { ids }: Scope): readonly string[] {
  const [first, ...rest] = path;
  const mapping = ids.get(name)?.step.outputMapping ?? {};
  const target = first !== undefined && Object.hasOwn(mapping, first) ? mapping[first] : undefined;
  return target === undefined ? path : [...membersOf(target).filter((part) => part !== ''), ...rest];
}
