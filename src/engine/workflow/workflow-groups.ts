/**
 * Groups of a workflow: steps that contain others, or that wait for a person (M6). A group is a gate action, which can be
 * ready, skipped or doomed like any other, then the steps, and at the end an action of its name with the result.
 */
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkflowStep } from '../../domain/manifests/workflow.ts';
import { ASK, REFUSE, VALUE } from '../../domain/workflow-actions.ts';
import { StepFailed } from './step-failed.ts';
import { gateOf, idOf, inOrder, isGroup, ListEnd, namesIn, scopeOf, stepsInside } from './step-names.ts';
import type { Group, Scope } from './step-names.ts';
import { escapeText, stepsIn } from './step-values.ts';
import type { StepValues } from './step-values.ts';
import type { StepWriter } from './step-writer.ts';
import type { WorkflowView } from './workflow-view.ts';

/** What a group needs of the workflow. */
export interface GroupHost {
  readonly values: StepValues;
  readonly view: WorkflowView;
  readonly writer: StepWriter;
  /** Names of referenced steps. */
  readonly referred: ReadonlySet<string>;
  readonly maxParallelSteps: number;
  /** Whether a `return` step has ended the workflow. */
  readonly isReturned: boolean;
  isOver(scope: Scope): boolean;
  /** Writes a list of steps; resolves when all of them have settled. */
  all(steps: readonly WorkflowStep[], scope: Scope): Promise<void>;
}

/** One group that is being written. */
interface Writing {
  readonly step: Group;
  readonly id: string;
  readonly gate: string;
  readonly scope: Scope;
  readonly host: GroupHost;
}

/** Resolves when the group's result is written. */
export async function writeGroup(
  step: Group,
  id: string,
  scope: Scope,
  after: readonly string[],
  host: GroupHost,
): Promise<void> {
  const { values, view, writer } = host;
  const gate = gateOf(step, id);
  const given = values.translate(givenTo(step), scope) as JsonObject;
  const more = { ...values.condition(step, scope), ...onError(step, scope) };
  const needs = [...after, ...stepsIn(givenTo(step), scope)];
  if (step.type === 'ask') writer.action(gate, 'tool', ASK, given, needs, { ...more, on_error: 'skip' });
  else writer.collect(gate, given, needs, more);
  const { status, output } = await view.settled(gate);
  const writing = { step, id, gate, scope, host };
  if (step.type === 'ask') return answer(writing, status);
  const taken = status === 'completed' ? given : null;
  const result = taken === null || !isJsonObject(output) ? {} : output;
  if (taken !== null) return await GROUPS[step.type](writing, result);
  if (step.type === 'conditional' && status === 'skipped' && step.otherwise.length > 0) {
    return await branch(writing, step.otherwise);
  }
  skipOthers(writing, []);
  writer.collect(id, {}, [gate]);
}

/** The values that a group is decided by; the gate holds them. */
function givenTo({ type, items, value = null, parameters }: Group): JsonObject {
  switch (type) {
    case 'for_each':
      return { items };
    case 'reduce':
      return { items, initial: value };
    case 'switch':
      return { value };
    case 'ask':
      return parameters;
    case 'conditional':
    case 'parallel':
    case 'race':
    case 'loop':
    case 'try':
      return {};
  }
}

/** In a `try`, a failure counts as null for the steps that handle it. */
function onError(step: Group, scope: Scope): { readonly on_error?: string } {
  return step.onFailure === 'continue' || (scope.end.catches && step.onFailure !== 'skip') ? { on_error: 'skip' } : {};
}

type WriteGroup = (writing: Writing, given: JsonObject) => Promise<void>;

const GROUPS: Readonly<Record<Exclude<Group['type'], 'ask'>, WriteGroup>> = {
  conditional: async (writing) => await branch(writing, writing.step.steps),
  parallel: async (writing) => await branch(writing, writing.step.steps),
  switch: async (writing, { value = null }) => {
    const found = writing.step.cases?.find((one) => one.value === textOf(value));
    await branch(writing, found?.steps ?? writing.step.otherwise);
  },
  for_each: async (writing, { items }) => await forEach(writing, items),
  reduce: async (writing, { items, initial = null }) => await reduce(writing, items, initial),
  loop: async (writing) => await loop(writing),
  race: async (writing) => await race(writing),
  try: async (writing) => await attempt(writing),
};

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Writes the referenced steps of the branches that are not taken, as skipped actions. */
function skipOthers({ step, gate, scope: { prefix }, host }: Writing, taken: readonly WorkflowStep[]): void {
  if (step.type === 'for_each' || step.type === 'reduce' || step.type === 'loop') return;
  // a name in several branches refers to the one that runs
  const running = namesIn(taken);
  const lists = stepsInside(step).filter((inner) => !taken.includes(inner));
  for (const name of namesIn(lists)) {
    if (!running.has(name) && host.referred.has(name)) host.writer.skipped(`${prefix}${name}`, [gate]);
  }
}

/** Writes the steps of a branch, and the action that collects their results by name. */
async function branch(writing: Writing, steps: readonly WorkflowStep[]): Promise<void> {
  const { step, id, scope, host } = writing;
  skipOthers(writing, steps);
  const inner = scopeOf(steps, scope);
  if (step.type === 'parallel') {
    const ordered = inOrder(steps);
    await parallel(writing, steps.length, step.concurrency, async (index) => {
      const one = ordered[index];
      if (one !== undefined) await host.all([{ ...one, dependsOn: one.dependsOn ?? [] }], inner);
    });
  } else await host.all(steps, inner);
  if (scope.end.isStopped) return host.writer.skipped(id);
  const given = steps.map(({ name }) => [name, `\${${idOf(name, inner)}}`] as const);
  host.writer.collect(
    id,
    Object.fromEntries(given),
    steps.map(({ name }) => idOf(name, inner)),
  );
}

async function forEach(writing: Writing, items: Json | undefined): Promise<void> {
  const { step, id, scope, host } = writing;
  const list = listOf(writing, items);
  if (list === null) return;
  const scopes = list.map((value, index) =>
    scopeOf(step.steps, { ...scope, item: { value, index }, prefix: `${id}_${index}_` }),
  );
  const last = step.steps.at(-1);
  const ends = last === undefined ? [] : scopes.map((inner) => idOf(last.name, inner));
  await parallel(writing, list.length, step.concurrency ?? host.maxParallelSteps, async (index) => {
    const inner = scopes[index];
    if (inner !== undefined) await host.all(step.steps, inner);
  });
  if (scope.end.isStopped) return host.writer.skipped(id);
  host.writer.collect(id, { items: ends.map((end) => `\${${end}}`) }, ends);
}

/** Runs the steps for one item after the other; the result of the last step is `$(acc)` for the next item. */
async function reduce(writing: Writing, items: Json | undefined, initial: Json): Promise<void> {
  const { step, id, gate, scope, host } = writing;
  const list = listOf(writing, items);
  if (list === null) return;
  let acc: NonNullable<Scope['acc']> = { value: initial };
  for (const [index, value] of list.entries()) {
    const inner = scopeOf(step.steps, { ...scope, acc, item: { value, index }, prefix: `${id}_${index}_` });
    await host.all(step.steps, inner);
    if (host.isOver(scope)) return host.writer.skipped(id);
    const last = step.steps.at(-1);
    if (last !== undefined) acc = { id: idOf(last.name, inner) };
  }
  const inner = { ...scope, acc };
  const result = { value: host.values.translate('$(acc)', inner) };
  host.writer.action(id, 'tool', VALUE, result, 'id' in acc ? [acc.id] : [gate]);
}

/** Repeats the steps until the condition is true after a round; before the first round, if no step in it is named. */
async function loop(writing: Writing): Promise<void> {
  const { step, id, gate, scope, host } = writing;
  const most = step.maxRounds ?? limits.workflowRounds;
  const names = [...namesIn(step.steps)];
  const until = step.until ?? null;
  const isOuter = until !== null && !names.some((name) => until.includes(`steps.${name}`));
  let inner = scope;
  for (let round = 0; round < most; round += 1) {
    if (until !== null && (round > 0 || isOuter)) {
      const check = `${gate}_${round}`;
      const when = host.values.condition({ condition: `!(${until})` }, inner);
      host.writer.collect(check, {}, [gate], { ...when, ...onError(step, scope) });
      const { status, note } = await host.view.settled(check);
      if (status === 'skipped') break;
      if (status !== 'completed')
        return refuse(writing, `its condition cannot be evaluated${note === null ? '' : `: ${note}`}`);
    }
    inner = scopeOf(step.steps, { ...scope, prefix: `${id}_${round}_` });
    await host.all(step.steps, inner);
    if (host.isOver(scope)) return host.writer.skipped(id);
  }
  const last = inner === scope ? [] : step.steps;
  const given = last.map(({ name }) => [name, `\${${idOf(name, inner)}}`] as const);
  host.writer.collect(id, Object.fromEntries(given), [gate, ...last.map(({ name }) => idOf(name, inner))]);
}

/** The first step that succeeds is the result; the others run to their end. */
async function race(writing: Writing): Promise<void> {
  const { step, id, scope, host } = writing;
  const inner = scopeOf(step.steps, scope);
  const runners = step.steps.map(async (one) => {
    const end = new ListEnd({ catches: true });
    await host.all([{ ...one, dependsOn: [] }], { ...inner, end });
    const own = idOf(one.name, inner);
    if (end.failure !== null || (await host.view.settled(own)).status !== 'completed') {
      throw end.failure ?? new StepFailed(`Step "${one.name}" did not run`);
    }
    return { name: one.name, own };
  });
  try {
    const winner = await Promise.any(runners);
    if (host.isReturned) scope.end.stop();
    host.writer.collect(id, { winner: winner.name, result: `\${${winner.own}}` }, [winner.own]);
  } catch (fault) {
    const [first] = fault instanceof AggregateError ? (fault.errors as unknown[]) : [fault];
    refuse(writing, `all steps failed: ${first instanceof Error ? first.message : String(first)}`);
  }
}

/** Runs the steps; after a failure those of `catch`, and in any case those of `finally`. */
async function attempt(writing: Writing): Promise<void> {
  const { step, id, gate, scope, host } = writing;
  const { rescue = [], always = [] } = step;
  const run = async (steps: readonly WorkflowStep[]): Promise<StepFailed | null> => {
    const end = new ListEnd({ catches: true });
    await host.all(steps, scopeOf(steps, { ...scope, end }));
    return end.failure;
  };
  const failed = await run(step.steps);
  const caught = failed !== null && rescue.length > 0;
  if (!caught) skipOthers(writing, [...step.steps, ...always]);
  const left = caught ? await run(rescue) : failed;
  const failure = (await run(always)) ?? left;
  if (failure !== null) return refuse(writing, failure.message, 'step_failed');
  host.writer.action(id, 'tool', VALUE, { value: { caught, error: escapeText(failed?.message ?? '') || null } }, [
    gate,
  ]);
  if (host.isReturned) scope.end.stop();
}

/** An approval is the default, or yes if the default is no; everything else is no. */
function answer({ step, id, gate, host }: Writing, status: string): void {
  if (status === 'skipped' || status === 'cancelled') return host.writer.collect(id, {}, [gate]);
  const preset = step.parameters['default'];
  const yes = typeof preset === 'string' && preset !== '' && !/^(?:n|no|false)$/i.test(preset) ? preset : 'y';
  host.writer.action(id, 'tool', VALUE, { value: escapeText(status === 'completed' ? yes : 'n') }, [gate]);
}

/** The group fails by name. */
function refuse({ step, id, scope, host }: Writing, message: string, code: string | null = null): void {
  host.writer.action(
    id,
    'tool',
    REFUSE,
    { message: escapeText(message), ...(code === null ? {} : { code }) },
    [],
    onError(step, scope),
  );
}

/** Null if the items are no list; then the group fails. @throws StepFailed if their actions exceed the run's limit */
function listOf(writing: Writing, items: Json | undefined): readonly Json[] | null {
  const { step, host } = writing;
  if (!Array.isArray(items)) {
    refuse(writing, `"items" must be a list, found ${JSON.stringify(items ?? null).slice(0, limits.excerptChars)}`);
    return null;
  }
  const needed = items.length * minActions(step.steps) + 1;
  const most = limits.actionsPerRun - 1;
  if (host.writer.actions + needed > most) {
    const many = `${items.length} items with ${step.steps.length} steps each are at least ${needed} actions`;
    throw new StepFailed(
      `Step "${step.name}": ${many}; a run may have ${limits.actionsPerRun}, and already has ${host.writer.actions}`,
      'too_many_actions',
    );
  }
  return items;
}

/** Runs `work` for 0 … count - 1 with limited concurrency. */
async function parallel(
  { scope, host }: Writing,
  count: number,
  most: number | null,
  work: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < count && !host.isOver(scope)) {
      const index = next;
      next += 1;
      await work(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, most ?? count) }, one));
}

/** Minimum number of actions of a list of steps: a group has at least its gate and its result. */
function minActions(steps: readonly WorkflowStep[]): number {
  return steps.reduce((sum, step) => sum + (isGroup(step) ? 2 : 1), 0);
}
