/**
 * Checks the references in a workflow's texts before it runs (M1, M6): the referenced steps and inputs must exist,
 * their order must be possible, and the ids of the actions must be valid.
 *
 * Scopes match those of the engine: a list sees its own steps, their inner steps except those of a `for_each`, and
 * everything that the enclosing lists see.
 */
import type { JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { BuildContext } from '../build/build-base.ts';
import { namesInCondition, whyNotCel } from './condition-names.ts';
import { nearestNames } from '../../domain/nearest.ts';
import type { FieldPath } from './problem.ts';
import { checkIds } from './step-ids.ts';
import { isGroup, LISTS, listsOf, namesOf } from './step-lists.ts';
import { membersOf, WORKFLOW_PATH } from '../../domain/workflow-path.ts';
import type { StepInput, WorkflowInput } from '../schema/schema-workflow.ts';

/** One list of steps. */
interface Level {
  /** The step that contains this list; null for the workflow's own list. */
  readonly parent: { readonly level: Level; readonly place: number } | null;
  /** Visible names: the position in this list of the step itself, or of the step that contains it. */
  readonly places: ReadonlyMap<string, number>;
  /** For each step, the positions in this list of the steps that must settle before it. */
  readonly needs: readonly Set<number>[];
  /** Whether steps without dependencies run in order. */
  readonly inOrder: boolean;
  readonly inLoop: boolean;
  readonly inReduce: boolean;
  /** In `catch` and `finally`: names of the steps that have settled before, in the same `try`. */
  readonly earlier: ReadonlySet<string>;
  /** Compensation: runs only after the containing step has failed, so it has no dependencies. */
  readonly isCompensation: boolean;
}

interface CheckState {
  /** Remaining characters for conditions. */
  readonly conditions: { left: number };
  readonly context: Pick<BuildContext, 'addIssue'>;
  /** Names of inputs; null = any inputs. */
  readonly inputs: ReadonlySet<string> | null;
}

/** The values of `$(run.…)`. */
const RUN_VALUES = ['TIMESTAMP', 'TIMESTAMP_UNIX', 'DATETIME', 'DATE', 'TIME', 'WORKFLOW_ID', 'SESSION_ID', 'USER_ID'];

/** White space is part of the path and trimmed later: two ways to match it would take quadratic time. */
const REFERENCE = /\$\(([^()]*)\)/g;
const PATH = new RegExp(`^${WORKFLOW_PATH}$`);
const ROOTS = ['steps', 'trigger', 'item', 'index'] as const;
export function checkWorkflow(
  { steps, outputs }: WorkflowInput,
  inputs: JsonObject,
  context: Pick<BuildContext, 'addIssue'>,
): void {
  const { properties, additionalProperties } = inputs;
  const closed = additionalProperties === false && isJsonObject(properties ?? {});
  const state: CheckState = {
    context,
    conditions: { left: limits.workflowConditionChars },
    inputs: closed ? new Set(Object.keys((properties ?? {}) as JsonObject)) : null,
  };
  const level = checkList(
    steps,
    ['steps'],
    { parent: null, inOrder: true, inLoop: false, inReduce: false, isCompensation: false, earlier: new Set() },
    state,
  );
  for (const [name, output] of Object.entries(outputs ?? {})) {
    const source = typeof output === 'string' ? output : output.source;
    const path = /^\s*\$[({](.*)[)}]\s*$/.exec(source)?.[1]?.trim() ?? source.trim();
    const field = typeof output === 'string' ? ['outputs', name] : ['outputs', name, 'source'];
    checkPath(path, field, level, state);
  }
  checkIds(steps, ['steps'], '', new Map(), context);
}

function checkList(
  steps: readonly StepInput[],
  field: FieldPath,
  around: Pick<Level, 'parent' | 'inLoop' | 'inReduce' | 'isCompensation' | 'inOrder' | 'earlier'>,
  state: CheckState,
): Level {
  const places = new Map(steps.flatMap((step, place) => namesOf(step).map((name) => [name, place] as const)));
  const needs = steps.map(({ depends_on: written }, place) => {
    const before =
      written === undefined
        ? [around.inOrder ? place - 1 : -1]
        : [written].flat().map((name) => steps.findIndex((one) => one.name === name));
    return new Set(before.filter((one) => one >= 0));
  });
  const level: Level = { ...around, places, needs };
  for (const [place, step] of steps.entries()) {
    const at = [...field, place];
    if (around.isCompensation && isGroup(step)) {
      state.context.addIssue([...at, 'type'], `compensation steps must be single actions, and ${step.type} is a group`);
    }
    readTexts(step.parameters, [...at, 'parameters'], level, place, state);
    readTexts(step.items, [...at, 'items'], level, place, state);
    readTexts(step.value, [...at, 'value'], level, place, state);
    if (step.until !== undefined) readUntil(step, [...at, 'until'], level, place, state);
    if (step.condition !== undefined) readCondition(step.condition, [...at, 'condition'], level, place, state);
    for (const { name, list, isCompensation } of listsOf(step)) {
      const inLoop = level.inLoop || (LISTS.has(step.type) && !isCompensation);
      const inReduce = level.inReduce || (step.type === 'reduce' && !isCompensation);
      const inOrder = (step.type !== 'parallel' && step.type !== 'race') || isCompensation;
      const earlier = new Set(earlierLists(step, name[0]).flatMap((one) => one.flatMap((inner) => namesOf(inner))));
      const inside = { parent: { level, place }, inOrder, inLoop, inReduce, isCompensation, earlier };
      checkList(list, [...at, ...name], inside, state);
    }
  }
  checkOrder(steps, level, field, state);
  return level;
}

function earlierLists({ steps = [], catch: rescue = [] }: StepInput, name: string | number | undefined): StepInput[][] {
  return name === 'catch' ? [steps] : name === 'finally' ? [steps, rescue] : [];
}

function readTexts(value: unknown, field: FieldPath, level: Level, place: number, state: CheckState): void {
  if (typeof value === 'string') {
    for (const [, written = ''] of value.matchAll(REFERENCE)) {
      const path = written.trim();
      if (PATH.test(path)) addDependency(checkPath(path, field, level, state), level, place);
    }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) readTexts(item, [...field, index], level, place, state);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) readTexts(item, [...field, key], level, place, state);
  }
}

function readCondition(text: string, field: FieldPath, level: Level, place: number, state: CheckState): void {
  const before = state.conditions.left;
  state.conditions.left -= text.length;
  if (state.conditions.left < 0) {
    const message = `the conditions of the workflow have more than ${limits.workflowConditionChars} characters in total`;
    if (before >= 0) state.context.addIssue(field, message);
    return;
  }
  const why = whyNotCel(text);
  if (why !== null) {
    state.context.addIssue(field, `is not a CEL condition, such as "steps.a.size() > 0": ${why}`);
    return;
  }
  for (const { path } of namesInCondition(text)) {
    if (path.length > 1 || path[0] !== 'steps')
      addDependency(checkPath(path.join('.'), field, level, state), level, place);
  }
}

/** A loop's condition may also name the steps that it repeats. */
function readUntil(step: StepInput, field: FieldPath, level: Level, place: number, state: CheckState): void {
  const inside = new Set((step.steps ?? []).flatMap((one) => namesOf(one)));
  const around = { ...level, places: new Map([...level.places, ...[...inside].map((name) => [name, place] as const)]) };
  const needs = level.needs.map((needed) => new Set(needed));
  readCondition(step.until ?? '', field, { ...around, needs }, place, state);
  for (const [index, needed] of needs.entries()) {
    for (const one of needed) if (one !== place) level.needs[index]?.add(one);
  }
}

/** Target of a path: the number of lists upwards and the position there; null if it is not a step. */
interface StepPosition {
  readonly up: number;
  readonly place: number;
}

function checkPath(path: string, field: FieldPath, level: Level, { context, inputs }: CheckState): StepPosition | null {
  const [root = '', name = ''] = membersOf(path);
  if (root === 'steps') {
    let up = 0;
    const known: string[] = [];
    for (let at: Level | undefined = level; at !== undefined; at = at.parent?.level) {
      const place = at.places.get(name);
      if (at.earlier.has(name)) return null;
      if (place !== undefined) return { up, place };
      known.push(...at.places.keys());
      up += 1;
    }
    context.addIssue(field, `$(${path}): no visible step is called "${name}" (${hint(name, known)})`);
  } else if (root === 'trigger') {
    if (name === '' || inputs === null || inputs.has(name)) return null;
    context.addIssue(field, `$(${path}): the workflow has no input "${name}" (${hint(name, [...inputs])})`);
  } else if (root === 'item' || root === 'index') {
    if (!level.inLoop) context.addIssue(field, `$(${path}): ${root} exists only in the steps of a for_each`);
  } else if (root === 'acc' && level.inReduce) {
    return null;
  } else if (root === 'run' && name !== '') {
    if (!RUN_VALUES.includes(name)) {
      context.addIssue(field, `$(${path}): a run has no value "${name}" (${hint(name, RUN_VALUES)})`);
    }
  } else if (path.includes('.') || nearestNames(root, ROOTS).length > 0) {
    // any other `$(word)` is literal text
    context.addIssue(field, `$(${path}): "${root}" is unknown (known: ${ROOTS.join(', ')})`);
  }
  return null;
}

/**
 * Records a dependency. If the referenced step is in an outer list, the step there that contains this one depends on
 * it.
 */
function addDependency(target: StepPosition | null, level: Level, place: number): void {
  if (target === null) return;
  let at = level;
  let waits = place;
  for (let { up } = target; up > 0; up -= 1) {
    if (at.parent === null || at.isCompensation) return;
    waits = at.parent.place;
    at = at.parent.level;
  }
  at.needs[waits]?.add(target.place);
}

function checkOrder(steps: readonly StepInput[], { needs }: Level, field: FieldPath, { context }: CheckState): void {
  const stuck = new Set(steps.keys());
  const drop = (idle: (place: number) => boolean): void => {
    for (let found = [...stuck].filter(idle); found.length > 0; found = [...stuck].filter(idle)) {
      for (const place of found) stuck.delete(place);
    }
  };
  drop((place) => [...(needs[place] ?? [])].every((needed) => !stuck.has(needed)));
  // steps that only wait for a cycle are not part of it
  drop((place) => ![...stuck].some((other) => needs[other]?.has(place) === true));
  const [first] = stuck;
  if (first === undefined) return;
  const cycle = [...stuck].map((place) => steps[place]?.name ?? '');
  const message =
    cycle.length === 1
      ? `the step ${cycle.join('')} depends on itself`
      : `the steps ${cycle.slice(0, 10).join(', ')} depend on each other`;
  context.addIssue([...field, first, steps[first]?.depends_on === undefined ? 'name' : 'depends_on'], message);
}

function hint(name: string, known: readonly string[]): string {
  const near = nearestNames(name, known);
  return near.length > 0
    ? `did you mean ${near.join(' or ')}?`
    : `known: ${known.length === 0 ? 'none' : known.slice(0, 20).join(', ')}`;
}
