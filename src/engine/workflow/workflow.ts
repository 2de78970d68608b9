/**
 * A workflow as a program that declares actions (M6): steps become actions of one generation, run by the same scheduler
 * and journal as a model's. There is no second engine.
 *
 * Owns what is declared and when: what depends on results (the items of a `for_each`, the branch of a `conditional`, the
 * handling of a failure) is declared when they are known. Does not own how steps run.
 *
 * Invariants:
 *  1. A step is one action with the step's name as its id; a group (`parallel`, `for_each`, `conditional`, …) ends with an
 *     action of its name that holds the results of its steps.
 *  2. Every action is declared at most once: after a crash the program runs again from its start and skips what the
 *     journal already contains.
 *  3. A run that would need more actions, or more bytes, than allowed fails explicitly before the first action that
 *     would exceed the limit (P16).
 *  4. Every step that another one refers to is an action, even in a branch that is not taken: then it is skipped. So
 *     nothing waits for an action that never comes.
 *  5. Values are data: a `$` written by the author, or contained in an item, is never a reference. Conditions see values
 *     (D4).
 *  6. In a `try`, steps are declared one by one, and a failed one is null for others: so the steps that handle the failure
 *     can refer to it.
 */
import { isHiddenFromViews } from '../../domain/internal-actions.ts';
import type { ActionType } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkflowDefinition, WorkflowStep } from '../../domain/manifests/workflow.ts';
import { OUTPUTS, VALUE } from '../../domain/workflow-actions.ts';
import type { DeclaredPiece } from '../run/run-input.ts';
import { DeclaredSteps } from './declared-steps.ts';
import { StepFailed } from './step-failed.ts';
import { gateOf, idOf, isGroup, ListEnd, mayReturn, namesIn, referencedNames, scopeOf } from './step-names.ts';
import type { Scope } from './step-names.ts';
import { idsIn, known, StepValues } from './step-values.ts';
import type { Given } from './step-values.ts';
import { declareGroup } from './workflow-groups.ts';
import type { GroupHost } from './workflow-groups.ts';
import { completeInputs } from './workflow-inputs.ts';
import type { StepOutcome, WorkflowView } from './workflow-view.ts';

/**
 * The workflow's actions, in the order in which they are declared. Ends when all awaited steps have settled.
 *
 * @param run values of `$(run.…)`, the same after a crash
 * @throws StepFailed if a step with `on_failure: abort` failed, after its compensation has run
 */
export async function* workflowActions(
  definition: WorkflowDefinition,
  inputs: JsonObject,
  view: WorkflowView,
  run: JsonObject = {},
): AsyncGenerator<DeclaredPiece> {
  const program = new Program(definition, new StepValues(completeInputs(definition, inputs), run), view);
  const { actions } = program;
  let over = false;
  const running = program.run().finally(() => {
    over = true;
    actions.wake();
  });
  // It is awaited below; this avoids an unhandled rejection before that.
  running.catch(() => undefined);
  for (;;) {
    const step = actions.take();
    if (step !== undefined) yield step;
    else if (over) break;
    else await actions.more();
  }
  await running;
}

class Program implements GroupHost {
  readonly values: StepValues;
  readonly view: WorkflowView;
  readonly actions: DeclaredSteps;
  /** Names of referenced steps. */
  readonly referred: ReadonlySet<string>;
  readonly maxParallelSteps: number;
  readonly #definition: WorkflowDefinition;
  readonly #failure = Promise.withResolvers<never>();
  #failed = false;
  /** The first failure of a workflow that completes the other steps before it fails (`fail_fast: false`). */
  #firstFailure: StepFailed | null = null;
  /** Number of failed steps whose compensation is running. */
  #compensating = 0;
  /** The id of the step that ended the workflow. */
  #returned: string | null = null;

  constructor(definition: WorkflowDefinition, values: StepValues, view: WorkflowView) {
    this.#definition = definition;
    this.maxParallelSteps = definition.maxParallelSteps;
    this.referred = referencedNames(definition);
    this.values = values;
    this.view = view;
    this.actions = new DeclaredSteps((id) => view.declared(id));
    this.#failure.promise.catch(() => undefined);
  }

  async run(): Promise<void> {
    const definition = this.#definition;
    const outer = { ids: new Map(), item: null, acc: null, prefix: '', end: new ListEnd() };
    const scope = scopeOf(definition.steps, outer);
    await Promise.race([this.all(definition.steps, scope), this.#failure.promise]);
    if (this.#firstFailure !== null) throw this.#firstFailure;
    if (this.#returned === null) this.actions.collect(OUTPUTS, await this.#outputs(scope), [], { answers: true });
    else this.actions.collect(OUTPUTS, await this.#result(this.#returned), [this.#returned], { answers: true });
    await Promise.race([this.view.settled(OUTPUTS), this.#failure.promise]);
    if (this.#failed) await this.#failure.promise;
  }

  async #outputs(scope: Scope): Promise<Given> {
    const outputs: JsonObject = {};
    for (const [name, path] of Object.entries(this.#definition.outputs)) {
      const [step] = idsIn(this.values.bind({ path: `$(${path})` }, scope).texts);
      const given = step === undefined || (await this.view.settled(step)).status === 'completed';
      // A skipped step is null in the outputs, as it is for other steps.
      outputs[name] = given ? `$(${path})` : null;
    }
    return this.values.bind(outputs, scope);
  }

  /** The outputs of a workflow that a `return` step ended. */
  async #result(id: string): Promise<Given> {
    const { output } = await this.view.settled(id);
    return known(isJsonObject(output) ? output : { value: output });
  }

  get isReturned(): boolean {
    return this.#returned !== null;
  }

  /** Whether no further step of the list is declared. */
  isOver({ end }: Scope): boolean {
    return this.#failed || end.isStopped;
  }

  /** Declares steps in order: each depends on the previous one, unless it has `depends_on`. */
  async all(steps: readonly WorkflowStep[], scope: Scope): Promise<void> {
    const working: Promise<void>[] = [];
    let before: readonly string[] = [];
    for (const [index, step] of steps.entries()) {
      const after = step.dependsOn === null ? before : step.dependsOn.map((name) => idOf(name, scope));
      const id = idOf(step.name, scope);
      const work = this.#step(step, id, scope, after);
      working.push(work);
      before = [id];
      if (!scope.end.catches && !mayReturn(step)) continue;
      await work;
      if (!this.isOver(scope)) continue;
      this.#leaveOut(steps.slice(index + 1), scope);
      break;
    }
    await Promise.all(working);
  }

  /** Declares steps that do not run as skipped actions, because others may refer to them. */
  #leaveOut(steps: readonly WorkflowStep[], scope: Scope): void {
    if (this.#failed) return;
    const own = new Set(steps.map(({ name }) => name));
    for (const name of namesIn(steps)) {
      if (own.has(name) || this.referred.has(name)) this.actions.skipped(idOf(name, scope));
    }
  }

  async #step(step: WorkflowStep, id: string, scope: Scope, after: readonly string[]): Promise<void> {
    if (this.isOver(scope)) return this.#leaveOut([step], scope);
    if (isGroup(step)) await declareGroup(step, id, scope, after, this);
    else this.#declare(step, id, scope, after);
    const { status, note } = await this.#outcome(step, id);
    if (step.type === 'return' && status === 'completed') {
      this.#returned ??= id;
      scope.end.stop();
    }
    const failed = status === 'failed' || status === 'rejected';
    if (!failed || step.onFailure === 'continue' || step.onFailure === 'skip') return;
    const why = note !== null && step.type === 'internal' && isHiddenFromViews(step.target) ? codeIn(note) : note;
    const failure = new StepFailed(`Step "${step.name}" failed${why === null ? '' : `: ${why}`}`);
    if (!scope.end.catches) return await this.#abort(step, id, scope, failure);
    await this.#compensate(step, id, scope);
    scope.end.stop(failure);
  }

  /** A group fails if its items or condition fail. */
  async #outcome(step: WorkflowStep, id: string): Promise<Omit<StepOutcome, 'output'>> {
    const gate = isGroup(step) && step.type !== 'ask' ? await this.view.settled(gateOf(step, id)) : null;
    if (gate !== null && (gate.status === 'failed' || gate.status === 'rejected')) return gate;
    return await this.view.settled(id);
  }

  /** Runs the compensation first; then declares nothing more, unless the other steps must be completed. */
  async #abort(step: WorkflowStep, id: string, scope: Scope, failure: StepFailed): Promise<void> {
    const { failFast } = this.#definition;
    this.#failed = failFast;
    this.#firstFailure ??= failure;
    this.#compensating += 1;
    await this.#compensate(step, id, scope);
    this.#compensating -= 1;
    // Another step may have failed in the meantime; its compensation must also run.
    if (failFast && this.#compensating === 0) this.#failure.reject(this.#firstFailure);
  }

  async #compensate(step: WorkflowStep, id: string, scope: Scope): Promise<void> {
    const inner = scopeOf(step.compensate, { ...scope, prefix: `${id}_undo_` });
    for (const undo of step.compensate) {
      const undoId = idOf(undo.name, inner);
      this.#declare({ ...undo, dependsOn: [] }, undoId, inner, []);
      await this.view.settled(undoId);
    }
  }

  #declare(step: WorkflowStep, id: string, scope: Scope, after: readonly string[]): void {
    const { type, name, given } = this.#call(step, scope);
    const { onFailure, timeoutMs } = step;
    const isNull = onFailure === 'continue' || (scope.end.catches && onFailure !== 'skip');
    const retry = step.retry ?? (isNull && onFailure === 'retry' ? RETRIES : null);
    this.actions.action(id, type, name, given, after, {
      condition: this.values.condition(step.condition, scope),
      ...(timeoutMs === null ? {} : { timeoutMs }),
      ...(retry === null ? {} : { retry }),
      ...(isNull ? { onError: 'skip' } : onFailure === 'retry' ? { onError: 'retry' } : {}),
    });
  }

  /** The action of a step: its type, its name and its parameters. */
  #call(step: WorkflowStep, scope: Scope): { readonly type: ActionType; readonly name: string; readonly given: Given } {
    const { type, target, action, parameters } = step;
    if (type === 'value' || type === 'return') {
      return { type: 'tool', name: VALUE, given: this.values.bind({ value: step.value ?? null }, scope) };
    }
    const given = (own: JsonObject): Given => this.values.bind(own, scope);
    // code is passed as it is written (P14)
    if (type === 'shell') {
      const { command = '', ...others } = parameters;
      const { parameters: filled, texts } = given(others);
      return { type, name: type, given: { parameters: { command, ...filled }, texts } };
    }
    if (type === 'llm')
      return { type, name: type, given: given(target === null ? parameters : { model: target, ...parameters }) };
    const name = type === 'relic' && action !== null ? `${target ?? ''}.${action}` : (target ?? '');
    return { type: type as ActionType, name, given: given(parameters) };
  }
}

/** The attempts of `on_failure: retry` (S6). */
const RETRIES = {
  maxAttempts: 3,
  backoff: 'exponential',
  delayMs: limits.retryDelayMs,
  maxDelayMs: limits.retryMaxDelayMs,
} as const;

/** The code of a note about a failure. The error of the run goes to views and parents, which may not have the text (T1). */
function codeIn(note: string): string {
  return note.replace(/:[^]*$/, '');
}
