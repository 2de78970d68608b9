/**
 * What a workflow's texts name, before it ever runs (M1, M6): steps and inputs that exist, in an order in
 * which they can be done, and ids that its actions can have.
 *
 * Scopes are those of the engine: a list sees its own steps, those within them but for what a `for_each`
 * does for every item, and what the lists around it see.
 */
import type { JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { BuildContext } from '../build/build-base.ts';
import { namesInCondition, whyNotCel } from './condition-names.ts';
import { nearestNames } from '../../domain/nearest.ts';
import type { FieldPath } from './problem.ts';
import type { StepInput, WorkflowInput } from '../schema/schema-workflow.ts';

/** One list of steps. */
interface Level {
  /** The step whose list it is; null for the workflow's own. */
  readonly holder: { readonly level: Level; readonly place: number } | null;
  /** What can be named here: the place in this list of the step that it is, or stands in. */
  readonly places: ReadonlyMap<string, number>;
  /** For each step, the places of those in this list that must have settled before it. */
  readonly needs: readonly Set<number>[];
  /** Each step after the one before it, where it says nothing else. */
  readonly inOrder: boolean;
  readonly inLoop: boolean;
  /** Runs only after its holder has failed, and so waits for nobody. */
  readonly undoes: boolean;
}

interface Reading {
  /** Characters that the conditions may still have. */
  readonly conditions: { left: number };
  readonly context: Pick<BuildContext, 'complain'>;
  /** Names of inputs; null = anything may come in. */
  readonly inputs: ReadonlySet<string> | null;
}

/** White space belongs to the path here and is trimmed: two ways to match it would take quadratic time. */
const REFERENCE = /\$\(([^()]*)\)/g;
const ROOTS = ['steps', 'trigger', 'item', 'index'] as const;
/** What stands between the id of a `for_each` and the names of its steps, as long as it can be. */
const INDEX = `_${limits.actionsPerRun - 1}_`;

export function checkWorkflow(
  { steps, outputs }: WorkflowInput,
  inputs: JsonObject,
  context: Pick<BuildContext, 'complain'>,
): void {
  const { properties, additionalProperties } = inputs;
  const closed = additionalProperties === false && isJsonObject(properties ?? {});
  const reading: Reading = {
    context,
    conditions: { left: limits.workflowConditionChars },
    inputs: closed ? new Set(Object.keys((properties ?? {}) as JsonObject)) : null,
  };
  const level = checkList(steps, ['steps'], { holder: null, inOrder: true, inLoop: false, undoes: false }, reading);
  for (const [name, output] of Object.entries(outputs ?? {})) {
    const source = typeof output === 'string' ? output : output.source;
    const path = /^\s*\$[({](.*)[)}]\s*$/.exec(source)?.[1]?.trim() ?? source.trim();
    const field = typeof output === 'string' ? ['outputs', name] : ['outputs', name, 'source'];
    checkPath(path, field, level, reading);
  }
  checkIds(steps, ['steps'], '', new Map(), context);
}

function checkList(
  steps: readonly StepInput[],
  field: FieldPath,
  around: Pick<Level, 'holder' | 'inLoop' | 'undoes' | 'inOrder'>,
  reading: Reading,
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
    if (around.undoes && isGroup(step)) {
      reading.context.complain([...at, 'type'], `what undoes a step is a single action, and ${step.type} is a group`);
    }
    readTexts(step.parameters, [...at, 'parameters'], level, place, reading);
    readTexts(step.items, [...at, 'items'], level, place, reading);
    if (step.condition !== undefined) readCondition(step.condition, [...at, 'condition'], level, place, reading);
    for (const { name, list, undoes } of listsOf(step)) {
      const inLoop = level.inLoop || (step.type === 'for_each' && !undoes);
      const inOrder = step.type !== 'parallel' || undoes;
      checkList(list, [...at, ...name], { holder: { level, place }, inOrder, inLoop, undoes }, reading);
    }
  }
  checkOrder(steps, level, field, reading);
  return level;
}

function isGroup({ type }: StepInput): boolean {
  return type === 'conditional' || type === 'parallel' || type === 'for_each';
}

/** The step and what can be named within it from around. */
function namesOf(step: StepInput): string[] {
  if (step.type === 'for_each') return [step.name];
  const inner = [...(step.steps ?? []), ...(step.else ?? []), ...(step.otherwise ?? [])];
  return [step.name, ...inner.flatMap((one) => namesOf(one))];
}

interface StepList {
  readonly name: FieldPath;
  readonly list: readonly StepInput[];
  readonly undoes: boolean;
}

function listsOf({ steps, else: no, otherwise, on_failure: handler, compensate }: StepInput): StepList[] {
  const given = (name: FieldPath, list: readonly StepInput[] | undefined, undoes: boolean): StepList[] =>
    list === undefined ? [] : [{ name, list, undoes }];
  return [
    ...given(['steps'], steps, false),
    ...given(['else'], no, false),
    ...given(['otherwise'], otherwise, false),
    ...given(['on_failure', 'steps'], typeof handler === 'object' ? handler.steps : undefined, true),
    ...given(['compensate'], compensate, true),
  ];
}

function readTexts(value: unknown, field: FieldPath, level: Level, place: number, reading: Reading): void {
  if (typeof value === 'string') {
    for (const [, written = ''] of value.matchAll(REFERENCE)) {
      const path = written.trim();
      if (/^[A-Za-z_][\w.-]*$/.test(path)) note(checkPath(path, field, level, reading), level, place);
    }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) readTexts(item, [...field, index], level, place, reading);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) readTexts(item, [...field, key], level, place, reading);
  }
}

function readCondition(text: string, field: FieldPath, level: Level, place: number, reading: Reading): void {
  const before = reading.conditions.left;
  reading.conditions.left -= text.length;
  if (reading.conditions.left < 0) {
    const message = `the conditions of the workflow have more than ${limits.workflowConditionChars} characters together`;
    if (before >= 0) reading.context.complain(field, message);
    return;
  }
  const why = whyNotCel(text);
  if (why !== null) {
    reading.context.complain(field, `is not a condition in CEL, such as "steps.a.size() > 0": ${why}`);
    return;
  }
  for (const { path } of namesInCondition(text)) {
    if (path.length > 1 || path[0] !== 'steps') note(checkPath(path.join('.'), field, level, reading), level, place);
  }
}

/** Where a path leads: how many lists up, and to which place in that one; null for what is no step. */
interface Lead {
  readonly up: number;
  readonly place: number;
}

function checkPath(path: string, field: FieldPath, level: Level, { context, inputs }: Reading): Lead | null {
  const [root = '', name = ''] = path.split('.');
  if (root === 'steps') {
    let up = 0;
    const known: string[] = [];
    for (let at: Level | undefined = level; at !== undefined; at = at.holder?.level) {
      const place = at.places.get(name);
      if (place !== undefined) return { up, place };
      known.push(...at.places.keys());
      up += 1;
    }
    context.complain(
      field,
      `$(${path}): no step that can be seen from here is called "${name}" (${hint(name, known)})`,
    );
  } else if (root === 'trigger') {
    if (name === '' || inputs === null || inputs.has(name)) return null;
    context.complain(field, `$(${path}): the workflow has no input "${name}" (${hint(name, [...inputs])})`);
  } else if (root === 'item' || root === 'index') {
    if (!level.inLoop) context.complain(field, `$(${path}): there is an ${root} only in the steps of a for_each`);
  } else if (path.includes('.') || nearestNames(root, ROOTS).length > 0) {
    // Any other `$(word)` means itself.
    context.complain(field, `$(${path}): "${root}" means nothing here (known: ${ROOTS.join(', ')})`);
  }
  return null;
}

/** A step waits for what it refers to; where that stands in a list further up, the step of that list does which holds it. */
function note(lead: Lead | null, level: Level, place: number): void {
  if (lead === null) return;
  let at = level;
  let waits = place;
  for (let { up } = lead; up > 0; up -= 1) {
    if (at.holder === null || at.undoes) return;
    waits = at.holder.place;
    at = at.holder.level;
  }
  at.needs[waits]?.add(lead.place);
}

function checkOrder(steps: readonly StepInput[], { needs }: Level, field: FieldPath, { context }: Reading): void {
  const stuck = new Set(steps.keys());
  const drop = (idle: (place: number) => boolean): void => {
    for (let found = [...stuck].filter(idle); found.length > 0; found = [...stuck].filter(idle)) {
      for (const place of found) stuck.delete(place);
    }
  };
  drop((place) => [...(needs[place] ?? [])].every((needed) => !stuck.has(needed)));
  // What only waits for a circle is in none.
  drop((place) => ![...stuck].some((other) => needs[other]?.has(place) === true));
  const [first] = stuck;
  if (first === undefined) return;
  const circle = [...stuck].map((place) => steps[place]?.name ?? '');
  const message =
    circle.length === 1
      ? `the step ${circle.join('')} waits for itself`
      : `the steps ${circle.slice(0, 10).join(', ')} wait for each other`;
  context.complain([...field, first, steps[first]?.depends_on === undefined ? 'name' : 'depends_on'], message);
}

/** Ids of actions: unique where they stand side by side, and short enough with what the lists around put before them. */
function checkIds(
  steps: readonly StepInput[],
  field: FieldPath,
  prefix: string,
  taken: Map<string, string>,
  context: Pick<BuildContext, 'complain'>,
): void {
  const claim = (id: string, name: string, at: FieldPath): void => {
    const other = taken.get(id);
    if (other !== undefined) context.complain(at, `there is already a step "${other}" whose id would be the same`);
    taken.set(id, name);
  };
  const names = new Set<string>();
  for (const [place, step] of steps.entries()) {
    if (names.has(step.name)) continue;
    names.add(step.name);
    const at = [...field, place, 'name'];
    const id = `${prefix}${step.name}`;
    const group = isGroup(step);
    const gate = `${id}_${step.type === 'for_each' ? 'items' : 'gate'}`;
    const longest = group ? gate : id;
    if (longest.length > limits.idChars) {
      const message = `the ids of its actions would have up to ${longest.length} characters with the names around it (allowed: ${limits.idChars})`;
      context.complain(at, message);
      continue;
    }
    claim(id, step.name, at);
    if (group) claim(gate, step.name, at);
    for (const { name, list, undoes } of listsOf(step)) {
      const inner = [...field, place, ...name];
      if (undoes) checkIds(list, inner, `${id}_undo_`, new Map(), context);
      else if (step.type === 'for_each') checkIds(list, inner, `${id}${INDEX}`, new Map(), context);
      // One branch runs: the other may have the same names.
      else if (name[0] === 'steps') checkIds(list, inner, prefix, taken, context);
      else checkIds(list, inner, prefix, without(taken, step.steps ?? [], prefix), context);
    }
  }
}

function without(taken: ReadonlyMap<string, string>, steps: readonly StepInput[], prefix: string): Map<string, string> {
  const rest = new Map(taken);
  for (const name of steps.flatMap((step) => namesOf(step))) {
    for (const id of [name, `${name}_gate`, `${name}_items`]) rest.delete(`${prefix}${id}`);
  }
  return rest;
}

function hint(name: string, known: readonly string[]): string {
  const near = nearestNames(name, known);
  return near.length > 0
    ? `did you mean ${near.join(' or ')}?`
    : `known: ${known.length === 0 ? 'none' : known.slice(0, 20).join(', ')}`;
}
