/** Resolves the names of a workflow's steps, and the references between steps (M6). */
import type { Json } from '../../domain/json.ts';
import { GROUP_TYPES } from '../../domain/manifests/workflow.ts';
import type { GroupType, WorkflowDefinition, WorkflowStep } from '../../domain/manifests/workflow.ts';
import { membersOf } from '../../domain/workflow-path.ts';
import { StepFailed } from './step-failed.ts';

/** The scope of a step: the names that it can use, and its surroundings. */
export interface Scope {
  /** Ids of steps by name, inner ones first. */
  readonly ids: ReadonlyMap<string, Step>;
  /** In a `for_each` or `reduce`: the current item, and the action that has all items. */
  readonly item: { readonly value: Json; readonly index: number; readonly gate: string } | null;
  /** In a `reduce`: the first value, with the action that has it, or the step that computed the current one. */
  readonly acc:
    | { readonly value: Json; readonly gate: string; readonly id?: never }
    | { readonly value?: never; readonly id: string }
    | null;
  readonly prefix: string;
  readonly end: ListEnd;
}

/** Whether the lists of a scope have ended early: at a `return`, or in a `try` at a failure. */
export class ListEnd {
  /** Whether a failure ends only these lists. */
  readonly catches: boolean;
  #isStopped = false;
  #failure: StepFailed | null = null;

  constructor({ catches = false }: { readonly catches?: boolean } = {}) {
    this.catches = catches;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get failure(): StepFailed | null {
    return this.#failure;
  }

  stop(failure: StepFailed | null = null): void {
    this.#isStopped = true;
    this.#failure ??= failure;
  }
}

interface Step {
  readonly id: string;
  readonly step: WorkflowStep;
}

export type Group = WorkflowStep & { readonly type: GroupType };

/** Steps that exist once for each item or round, so that other steps cannot refer to them. */
const REPEATED: ReadonlySet<string> = new Set(['for_each', 'reduce', 'loop']);

/** All steps inside a step. */
export function stepsInside({ steps, otherwise, cases = [], rescue = [], always = [] }: WorkflowStep): WorkflowStep[] {
  return [...steps, ...otherwise, ...cases.flatMap((one) => one.steps), ...rescue, ...always];
}

/** Names visible outside a list: its steps and those inside them, except steps that are repeated. */
export function namesIn(steps: readonly WorkflowStep[]): Set<string> {
  return new Set(steps.flatMap((step) => [step.name, ...(REPEATED.has(step.type) ? [] : namesIn(stepsInside(step)))]));
}

/** Whether the step may end the workflow. */
export function mayReturn(step: WorkflowStep): boolean {
  return step.type === 'return' || stepsInside(step).some((inner) => mayReturn(inner));
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

const GATES: Readonly<Partial<Record<GroupType, string>>> = { for_each: 'items', reduce: 'items', ask: 'ask' };

/** The id of a group's gate action. */
export function gateOf(step: Group, id: string): string {
  return `${id}_${GATES[step.type] ?? 'gate'}`;
}

/** Every name after `steps.` anywhere in the definition, and in every `depends_on`. */
export function referencedNames({ steps, outputs }: WorkflowDefinition): ReadonlySet<string> {
  return new Set([...namedBy(steps), ...Object.values(outputs).flatMap((path) => namesOf(path))]);
}

/** Names of steps that these steps, and those inside them, refer to or depend on. */
function namedBy(steps: readonly WorkflowStep[]): string[] {
  return steps.flatMap((step) => [
    ...namesOf(JSON.stringify([step.parameters, step.items, step.condition, step.value, step.until])),
    ...(step.dependsOn ?? []),
    ...namedBy([...stepsInside(step), ...step.compensate]),
  ]);
}

function namesOf(text: string): string[] {
  return [...text.matchAll(/\bsteps\.([A-Za-z_][\w-]*)/g)].map(([, name = '']) => name);
}

const GROUP_NAMES: ReadonlySet<string> = new Set(GROUP_TYPES);

export function isGroup(step: WorkflowStep): step is Group {
  return GROUP_NAMES.has(step.type);
}

export function scopeOf(steps: readonly WorkflowStep[], outer: Scope): Scope {
  const ids = new Map(outer.ids);
  const add = (step: WorkflowStep): void => {
    ids.set(step.name, { id: `${outer.prefix}${step.name}`, step });
    // Steps in a branch can be named from outside.
    if (!REPEATED.has(step.type)) for (const inner of stepsInside(step)) add(inner);
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
