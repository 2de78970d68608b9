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
import type { DeclaredSteps } from './declared-steps.ts';
import { known, resultsOf } from './step-values.ts';
import type { Given, StepValues } from './step-values.ts';
import type { WorkflowView } from './workflow-view.ts';

/** What a group needs of the workflow. */
export interface GroupHost {
  readonly values: StepValues;
  readonly view: WorkflowView;
  readonly actions: DeclaredSteps;
  /** Names of referenced steps. */
  readonly referred: ReadonlySet<string>;
  readonly maxParallelSteps: number;
  /** Whether a `return` step has ended the workflow. */
  readonly isReturned: boolean;
  isOver(scope: Scope): boolean;
  /** Declares a list of steps; resolves when all of them have settled. */
  all(steps: readonly WorkflowStep[], scope: Scope): Promise<void>;
}

/** One group whose steps are being declared. */
interface OpenGroup {
  readonly step: Group;
  readonly id: string;
  readonly gate: string;
  readonly scope: Scope;
  readonly host: GroupHost;
}

/** Resolves when the result of the group is declared. */
export async function declareGroup(
  step: Group,
  id: string,
  scope: Scope,
  after: readonly string[],
  host: GroupHost,
): Promise<void> {
  const { values, view, actions } = host;
  const gate = gateOf(step, id);
  const given = values.bind(givenTo(step), scope);
  const condition = values.condition(step.condition, scope);
  if (step.type === 'ask') actions.action(gate, 'tool', ASK, given, after, { condition, onError: 'skip' });
  else actions.collect(gate, given, after, { condition, ...onError(step, scope) });
  const { status, output } = await view.settled(gate);
  const group = { step, id, gate, scope, host };
  if (step.type === 'ask') return answer(group, status);
  if (status === 'completed') return await GROUPS[step.type](group, isJsonObject(output) ? output : {});
  if (step.type === 'conditional' && status === 'skipped' && step.otherwise.length > 0) {
    return await branch(group, step.otherwise);
  }
  skipOthers(group, []);
  actions.collect(id, known({}), [gate]);
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
function onError(step: Group, scope: Scope): { readonly onError?: 'skip' } {
  return step.onFailure === 'continue' || (scope.end.catches && step.onFailure !== 'skip') ? { onError: 'skip' } : {};
}

type DeclareGroup = (group: OpenGroup, given: JsonObject) => Promise<void>;

const GROUPS: Readonly<Record<Exclude<Group['type'], 'ask'>, DeclareGroup>> = {
  conditional: async (group) => await branch(group, group.step.steps),
  parallel: async (group) => await branch(group, group.step.steps),
  switch: async (group, { value = null }) => {
    const found = group.step.cases?.find((one) => one.value === textOf(value));
    await branch(group, found?.steps ?? group.step.otherwise);
  },
  for_each: async (group, { items }) => await forEach(group, items),
  reduce: async (group, { items, initial = null }) => await reduce(group, items, initial),
  loop: async (group) => await loop(group),
  race: async (group) => await race(group),
  try: async (group) => await attempt(group),
};

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Declares the referenced steps of the branches that are not taken, as skipped actions. */
function skipOthers({ step, gate, scope: { prefix }, host }: OpenGroup, taken: readonly WorkflowStep[]): void {
  if (step.type === 'for_each' || step.type === 'reduce' || step.type === 'loop') return;
  // a name in several branches refers to the one that runs
  const running = namesIn(taken);
  const lists = stepsInside(step).filter((inner) => !taken.includes(inner));
  for (const name of namesIn(lists)) {
    if (!running.has(name) && host.referred.has(name)) host.actions.skipped(`${prefix}${name}`, [gate]);
  }
}

/** Declares the steps of a branch, and the action that collects their results by name. */
async function branch(group: OpenGroup, steps: readonly WorkflowStep[]): Promise<void> {
  const { step, id, scope, host } = group;
  skipOthers(group, steps);
  const inner = scopeOf(steps, scope);
  if (step.type === 'parallel') {
    const ordered = inOrder(steps);
    await parallel(group, steps.length, step.concurrency, async (index) => {
      const one = ordered[index];
      if (one !== undefined) await host.all([{ ...one, dependsOn: one.dependsOn ?? [] }], inner);
    });
  } else await host.all(steps, inner);
  if (scope.end.isStopped) return host.actions.skipped(id);
  host.actions.collect(id, resultsIn(steps, inner), []);
}

function resultsIn(steps: readonly WorkflowStep[], scope: Scope): Given {
  return resultsOf(Object.fromEntries(steps.map(({ name }) => [name, idOf(name, scope)])));
}

async function forEach(group: OpenGroup, items: Json | undefined): Promise<void> {
  const { step, id, gate, scope, host } = group;
  const list = listOf(group, items);
  if (list === null) return;
  const scopes = list.map((value, index) =>
    scopeOf(step.steps, { ...scope, item: { value, index, gate }, prefix: `${id}_${index}_` }),
  );
  const last = step.steps.at(-1);
  const ends = last === undefined ? [] : scopes.map((inner) => idOf(last.name, inner));
  await parallel(group, list.length, step.concurrency ?? host.maxParallelSteps, async (index) => {
    const inner = scopes[index];
    if (inner !== undefined) await host.all(step.steps, inner);
  });
  if (scope.end.isStopped) return host.actions.skipped(id);
  host.actions.collect(id, resultsOf({ items: ends }), []);
}

/** Runs the steps for one item after the other; the result of the last step is `$(acc)` for the next item. */
async function reduce(group: OpenGroup, items: Json | undefined, initial: Json): Promise<void> {
  const { step, id, gate, scope, host } = group;
  const list = listOf(group, items);
  if (list === null) return;
  let acc: NonNullable<Scope['acc']> = { value: initial, gate };
  for (const [index, value] of list.entries()) {
    const inner = scopeOf(step.steps, { ...scope, acc, item: { value, index, gate }, prefix: `${id}_${index}_` });
    await host.all(step.steps, inner);
    if (host.isOver(scope)) return host.actions.skipped(id);
    const last = step.steps.at(-1);
    if (last !== undefined) acc = { id: idOf(last.name, inner) };
  }
  const result = host.values.bind({ value: '$(acc)' }, { ...scope, acc });
  host.actions.action(id, 'tool', VALUE, result, acc.id === undefined ? [gate] : []);
}

/** Repeats the steps until the condition is true after a round; before the first round, if no step in it is named. */
async function loop(group: OpenGroup): Promise<void> {
  const { step, id, gate, scope, host } = group;
  const most = step.maxRounds ?? limits.workflowRounds;
  const names = [...namesIn(step.steps)];
  const until = step.until ?? null;
  const isOuter = until !== null && !names.some((name) => until.includes(`steps.${name}`));
  let inner = scope;
  for (let round = 0; round < most; round += 1) {
    if (until !== null && (round > 0 || isOuter)) {
      const check = `${gate}_${round}`;
      const condition = host.values.condition(until, inner);
      host.actions.collect(check, known({}), [gate], { condition, ...onError(step, scope) });
      const { status, note } = await host.view.settled(check);
      if (status === 'completed') break;
      if (status !== 'skipped')
        return refuse(group, `its condition cannot be evaluated${note === null ? '' : `: ${note}`}`);
    }
    inner = scopeOf(step.steps, { ...scope, prefix: `${id}_${round}_` });
    await host.all(step.steps, inner);
    if (host.isOver(scope)) return host.actions.skipped(id);
  }
  const last = inner === scope ? [] : step.steps;
  host.actions.collect(id, resultsIn(last, inner), [gate]);
}

/** The first step that succeeds is the result; the others run to their end. */
async function race(group: OpenGroup): Promise<void> {
  const { step, id, scope, host } = group;
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
    const { parameters, texts } = resultsOf({ result: winner.own });
    host.actions.collect(id, { parameters: { winner: winner.name, ...parameters }, texts }, []);
  } catch (fault) {
    const [first] = fault instanceof AggregateError ? (fault.errors as unknown[]) : [fault];
    refuse(group, `all steps failed: ${first instanceof Error ? first.message : String(first)}`);
  }
}

/** Runs the steps; after a failure those of `catch`, and in any case those of `finally`. */
async function attempt(group: OpenGroup): Promise<void> {
  const { step, id, gate, scope, host } = group;
  const { rescue = [], always = [] } = step;
  const run = async (steps: readonly WorkflowStep[]): Promise<StepFailed | null> => {
    const end = new ListEnd({ catches: true });
    await host.all(steps, scopeOf(steps, { ...scope, end }));
    return end.failure;
  };
  const failed = await run(step.steps);
  const caught = failed !== null && rescue.length > 0;
  if (!caught) skipOthers(group, [...step.steps, ...always]);
  const left = caught ? await run(rescue) : failed;
  const failure = (await run(always)) ?? left;
  if (failure !== null) return refuse(group, failure.message, 'step_failed');
  host.actions.action(id, 'tool', VALUE, known({ value: { caught, error: failed?.message ?? null } }), [gate]);
  if (host.isReturned) scope.end.stop();
}

/** An approval is the default, or yes if the default is no; everything else is no. */
function answer({ step, id, gate, host }: OpenGroup, status: string): void {
  if (status === 'skipped' || status === 'cancelled') return host.actions.collect(id, known({}), [gate]);
  const preset = step.parameters['default'];
  const yes = typeof preset === 'string' && preset !== '' && !/^(?:n|no|false)$/i.test(preset) ? preset : 'y';
  host.actions.action(id, 'tool', VALUE, known({ value: status === 'completed' ? yes : 'n' }), [gate]);
}

/** The group fails by name. */
function refuse({ step, id, scope, host }: OpenGroup, message: string, code: string | null = null): void {
  const why = known({ message, ...(code === null ? {} : { code }) });
  host.actions.action(id, 'tool', REFUSE, why, [], onError(step, scope));
}

/** Null if the items are no list; then the group fails. @throws StepFailed if their actions exceed the run's limit */
function listOf(group: OpenGroup, items: Json | undefined): readonly Json[] | null {
  const { step, host } = group;
  if (!Array.isArray(items)) {
    refuse(group, `"items" must be a list, found ${JSON.stringify(items ?? null).slice(0, limits.excerptChars)}`);
    return null;
  }
  const needed = items.length * minActions(step.steps) + 1;
  const most = limits.actionsPerRun - 1;
  if (host.actions.actions + needed > most) {
    const many = `${items.length} items with ${step.steps.length} steps each are at least ${needed} actions`;
    throw new StepFailed(
      `Step "${step.name}": ${many}; a run may have ${limits.actionsPerRun}, and already has ${host.actions.actions}`,
      'too_many_actions',
    );
  }
  return items;
}

/** Runs `work` for 0 … count - 1 with limited concurrency. */
async function parallel(
  { scope, host }: OpenGroup,
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
