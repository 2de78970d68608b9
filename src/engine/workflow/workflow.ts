/**
 * A workflow as a program that writes protocol text (M6): steps become actions of one generation, run by the same
 * parser, scheduler and journal as a model's text. There is no second engine.
 *
 * Owns what is written and when: text that depends on results (the items of a `for_each`, the branch of a
 * `conditional`, the handling of a failure) is written when they are known. Does not own how steps run.
 *
 * Invariants:
 *  1. A step is one action with the step's name as its id; a group (`parallel`, `for_each`, `conditional`, …) ends with an
 *     action of its name that holds the results of its steps.
 *  2. Every action is written at most once: after a crash the program runs again from its start and skips what the
 *     journal already contains.
 *  3. A run that would need more actions, or a longer text, than allowed fails explicitly before the first action that
 *     would exceed the limit (P16).
 *  4. Every step that another one refers to is an action, even in a branch that is not taken: then it is skipped. So
 *     nothing waits for an action that never comes.
 *  5. Values in the text are data: a `$` written by the author, or contained in an item, is never a reference.
 *  6. In a `try`, steps are written one by one, and a failed one is null for others: so the steps that handle the failure
 *     can refer to it.
 */
import { isHiddenFromViews } from '../../domain/internal-actions.ts';
import type { ActionType } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { WorkflowDefinition, WorkflowStep } from '../../domain/manifests/workflow.ts';
import { COLLECT, OUTPUTS, VALUE } from '../../domain/workflow-actions.ts';
import { StepFailed } from './step-failed.ts';
import { gateOf, idOf, isGroup, ListEnd, mayReturn, namesIn, referencedNames, scopeOf } from './step-names.ts';
import type { Scope } from './step-names.ts';
import { escaped, stepsIn, StepValues } from './step-values.ts';
import { actionText, StepWriter } from './step-writer.ts';
import { writeGroup } from './workflow-groups.ts';
import type { GroupHost } from './workflow-groups.ts';
import { completeInputs } from './workflow-inputs.ts';
import type { StepOutcome, WorkflowView } from './workflow-view.ts';

/**
 * The workflow's text in pieces, each a whole block. Ends when all steps are written and all awaited steps have
 * settled.
 *
 * @param run values of `$(run.…)`, the same after a crash
 * @throws StepFailed if a step with `on_failure: abort` failed, after its compensation has run
 */
export async function* workflowText(
  definition: WorkflowDefinition,
  inputs: JsonObject,
  view: WorkflowView,
  run: JsonObject = {},
): AsyncGenerator<string> {
  const program = new Program(definition, new StepValues(completeInputs(definition, inputs), run), view);
  const { writer } = program;
  let over = false;
  const writing = program.write().finally(() => {
    over = true;
    writer.wake();
  });
  // It is awaited below; this avoids an unhandled rejection before that.
  writing.catch(() => undefined);
  for (;;) {
    const piece = writer.take();
    if (piece !== undefined) yield piece;
    else if (over) break;
    else await writer.more();
  }
  await writing;
}

class Program implements GroupHost {
  readonly values: StepValues;
  readonly view: WorkflowView;
  readonly writer: StepWriter;
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
    this.writer = new StepWriter((id) => view.declared(id));
    this.#failure.promise.catch(() => undefined);
  }

  async write(): Promise<void> {
    const definition = this.#definition;
    const outer = { ids: new Map(), item: null, acc: null, prefix: '', end: new ListEnd() };
    const scope = scopeOf(definition.steps, outer);
    await Promise.race([this.all(definition.steps, scope), this.#failure.promise]);
    if (this.#firstFailure !== null) throw this.#firstFailure;
    const { outputs, after } =
      this.#returned === null ? await this.#outputs(scope) : await this.#result(this.#returned);
    // One piece: after a crash both exist, or neither.
    const collect = actionText(OUTPUTS, 'tool', COLLECT, outputs, after, {});
    this.writer.put(OUTPUTS, `${collect}<response final="true">\${${OUTPUTS}}</response>`);
    await Promise.race([this.view.settled(OUTPUTS), this.#failure.promise]);
    if (this.#failed) await this.#failure.promise;
  }

  async #outputs(scope: Scope): Promise<{ readonly outputs: JsonObject; readonly after: string[] }> {
    const outputs: JsonObject = {};
    const after: string[] = [];
    for (const [name, path] of Object.entries(this.#definition.outputs)) {
      const [step] = stepsIn(`$(${path})`, scope);
      const given = step === undefined || (await this.view.settled(step)).status === 'completed';
      // A skipped step is null in the outputs, as it is for other steps.
      outputs[name] = given ? this.values.translate(`$(${path})`, scope) : null;
      if (step !== undefined && given) after.push(step);
    }
    return { outputs, after };
  }

  /** The outputs of a workflow that a `return` step ended. */
  async #result(id: string): Promise<{ readonly outputs: JsonObject; readonly after: string[] }> {
    const { output } = await this.view.settled(id);
    return { outputs: escaped(isJsonObject(output) ? output : { value: output }) as JsonObject, after: [id] };
  }

  get isReturned(): boolean {
    return this.#returned !== null;
  }

  /** Whether no further step of the list is written. */
  isOver({ end }: Scope): boolean {
    return this.#failed || end.isStopped;
  }

  /** Writes steps in order: each depends on the previous one, unless it has `depends_on`. */
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

  /** Writes steps that do not run as skipped actions, because others may refer to them. */
  #leaveOut(steps: readonly WorkflowStep[], scope: Scope): void {
    if (this.#failed) return;
    const own = new Set(steps.map(({ name }) => name));
    for (const name of namesIn(steps)) {
      if (own.has(name) || this.referred.has(name)) this.writer.skipped(idOf(name, scope));
    }
  }

  async #step(step: WorkflowStep, id: string, scope: Scope, after: readonly string[]): Promise<void> {
    if (this.isOver(scope)) return this.#leaveOut([step], scope);
    if (isGroup(step)) await writeGroup(step, id, scope, after, this);
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

  /** Runs the compensation first; then writes nothing more, unless the other steps must be completed. */
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
    const { type, name, parameters } = this.#call(step, scope);
    const isNull = step.onFailure === 'continue' || (scope.end.catches && step.onFailure !== 'skip');
    this.writer.action(
      id,
      type,
      name,
      parameters,
      [...after, ...stepsIn([step.parameters, step.value ?? null], scope)],
      {
        ...this.values.condition(step, scope),
        ...(step.timeoutMs === null ? {} : { timeout: step.timeoutMs / 1_000 }),
        ...(step.retry === null
          ? {}
          : {
              retry: {
                max_attempts: step.retry.maxAttempts,
                backoff: step.retry.backoff,
                delay: step.retry.delayMs / 1_000,
                max_delay: step.retry.maxDelayMs / 1_000,
              },
            }),
        ...(isNull ? { on_error: 'skip' } : step.onFailure === 'retry' ? { on_error: 'retry' } : {}),
        ...(isNull && step.onFailure === 'retry' && step.retry === null ? { retry: RETRIES } : {}),
      },
    );
  }

  /** The action of a step: its type, its name and its parameters. */
  #call(
    step: WorkflowStep,
    scope: Scope,
  ): { readonly type: ActionType; readonly name: string | null; readonly parameters: JsonObject } {
    const { type, target, action } = step;
    if (type === 'value' || type === 'return') {
      const value = this.values.translate(step.value ?? null, scope);
      return { type: 'tool', name: VALUE, parameters: { value } };
    }
    const parameters = this.values.translate(step.parameters, scope) as JsonObject;
    // code is passed as it is written (P14)
    if (type === 'shell')
      return { type, name: null, parameters: { ...parameters, command: step.parameters['command'] ?? '' } };
    if (type === 'llm')
      return { type, name: null, parameters: target === null ? parameters : { model: target, ...parameters } };
    const name = type === 'relic' && action !== null ? `${target ?? ''}.${action}` : target;
    return { type: type as ActionType, name, parameters };
  }
}

/** The attempts of `on_failure: retry` (S6). */
const RETRIES = 3;

/** The code of a note about a failure. The error of the run goes to views and parents, which may not have the text (T1). */
function codeIn(note: string): string {
  return note.replace(/:[^]*$/, '');
}
