/**
 * A workflow as a program that writes protocol text (M6): steps become actions of one generation, run by the same
 * parser, scheduler and journal as a model's text. There is no second engine.
 *
 * Owns what is written and when: text that depends on results (the items of a `for_each`, the branch of a
 * `conditional`, the handling of a failure) is written when they are known. Does not own how steps run.
 *
 * Invariants:
 *  1. A step is one action with the step's name as its id; a group (`parallel`, `for_each`, `conditional`) ends with an
 *     action of its name that collects the results of its steps.
 *  2. Every action is written at most once: after a crash the program runs again from its start and skips what the
 *     journal already contains.
 *  3. A run that would need more actions, or a longer text, than allowed fails explicitly before the first action that
 *     would exceed the limit (P16).
 *  4. Every step that another one refers to is an action, even in a branch that is not taken: then it is skipped. So
 *     nothing waits for an action that never comes.
 *  5. Values in the text are data: a `$` written by the author, or contained in an item, is never a reference.
 */
import type { ActionType, TerminalStatus } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { WorkflowDefinition, WorkflowStep } from '../../domain/manifest.ts';
import { limits } from '../../domain/limits.ts';
import { COLLECT, OUTPUTS, REFUSE } from '../../domain/workflow-actions.ts';
import { StepFailed } from './step-failed.ts';
import { gateOf, idOf, inOrder, isGroup, namesIn, referencedNames, scopeOf } from './step-names.ts';
import type { Group, Scope } from './step-names.ts';
import { escapeText, stepsIn, StepValues } from './step-values.ts';

/** A workflow's view of its run. */
export interface WorkflowView {
  /** Whether an action with this id is already in the journal. */
  declared(id: string): boolean;
  /** Resolves when the action has settled, even if it is declared later. */
  settled(
    id: string,
  ): Promise<{ readonly status: TerminalStatus; readonly output: Json; readonly note: string | null }>;
}

/**
 * The workflow's text in pieces, each a whole block. Ends when all steps are written and all awaited steps have
 * settled.
 *
 * @throws StepFailed if a step with `on_failure: abort` failed, after its compensation has run
 */
export async function* workflowText(
  definition: WorkflowDefinition,
  inputs: JsonObject,
  view: WorkflowView,
): AsyncGenerator<string> {
  const program = new Program(definition, inputs, view);
  let over = false;
  const writing = program.write().finally(() => {
    over = true;
    program.wake();
  });
  // It is awaited below; this avoids an unhandled rejection before that.
  writing.catch(() => undefined);
  for (;;) {
    const piece = program.take();
    if (piece !== undefined) yield piece;
    else if (over) break;
    else await program.more();
  }
  await writing;
}

class Program {
  readonly #definition: WorkflowDefinition;
  readonly #values: StepValues;
  readonly #view: WorkflowView;
  readonly #written: string[] = [];
  #wake: (() => void) | null = null;
  readonly #failure = Promise.withResolvers<never>();
  #failed = false;
  /** The first failure of a workflow that completes the other steps before it fails (`fail_fast: false`). */
  #firstFailure: StepFailed | null = null;
  /** Number of failed steps whose compensation is running. */
  #compensating = 0;
  /** Number of actions and bytes of the text so far, including those of an earlier host. */
  #actions = 0;
  #bytes = 0;
  /** Names of referenced steps. */
  readonly #referred: ReadonlySet<string>;

  constructor(definition: WorkflowDefinition, inputs: JsonObject, view: WorkflowView) {
    this.#definition = definition;
    this.#referred = referencedNames(definition);
    this.#values = new StepValues(inputs);
    this.#view = view;
    this.#failure.promise.catch(() => undefined);
  }

  take(): string | undefined {
    return this.#written.shift();
  }

  more(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  async write(): Promise<void> {
    const definition = this.#definition;
    const scope = scopeOf(definition.steps, { ids: new Map(), item: null, prefix: '' });
    await Promise.race([this.#all(definition.steps, scope, []), this.#failure.promise]);
    if (this.#firstFailure !== null) throw this.#firstFailure;
    const outputs: JsonObject = {};
    const after: string[] = [];
    for (const [name, path] of Object.entries(definition.outputs)) {
      const [step] = stepsIn(`$(${path})`, scope);
      const given = step === undefined || (await this.#view.settled(step)).status === 'completed';
      // A skipped step is null in the outputs, as it is for other steps.
      outputs[name] = given ? this.#values.translate(`$(${path})`, scope) : null;
      if (step !== undefined && given) after.push(step);
    }
    // One piece: after a crash both exist, or neither.
    const collect = actionText(OUTPUTS, 'tool', COLLECT, outputs, after, {});
    this.#put(OUTPUTS, `${collect}<response final="true">\${${OUTPUTS}}</response>`);
    await Promise.race([this.#view.settled(OUTPUTS), this.#failure.promise]);
    if (this.#failed) await this.#failure.promise;
  }

  /** Writes steps in order: each depends on the previous one, unless it has `depends_on`. */
  async #all(steps: readonly WorkflowStep[], scope: Scope, first: readonly string[]): Promise<void> {
    const working: Promise<void>[] = [];
    let before = first;
    for (const step of steps) {
      const after = step.dependsOn === null ? before : step.dependsOn.map((name) => idOf(name, scope));
      const id = idOf(step.name, scope);
      working.push(this.#step(step, id, scope, after));
      before = [id];
    }
    await Promise.all(working);
  }

  async #step(step: WorkflowStep, id: string, scope: Scope, after: readonly string[]): Promise<void> {
    if (this.#failed) return;
    if (isGroup(step)) await this.#group(step, id, scope, after);
    else this.#declare(step, id, scope, after);
    const { status, note } = await this.#outcome(step, id);
    const failed = status === 'failed' || status === 'rejected';
    if (failed && step.onFailure !== 'continue' && step.onFailure !== 'skip') await this.#abort(step, id, scope, note);
  }

  /** A group fails if its items or condition fail. */
  async #outcome(
    step: WorkflowStep,
    id: string,
  ): Promise<{ readonly status: TerminalStatus; readonly note: string | null }> {
    const gate = isGroup(step) ? await this.#view.settled(gateOf(step, id)) : null;
    if (gate !== null && (gate.status === 'failed' || gate.status === 'rejected')) return gate;
    return await this.#view.settled(id);
  }

  /** Runs the compensation first; then writes nothing more, unless the other steps must be completed. */
  async #abort(step: WorkflowStep, id: string, scope: Scope, note: string | null): Promise<void> {
    const { failFast } = this.#definition;
    this.#failed = failFast;
    this.#firstFailure ??= new StepFailed(`Step "${step.name}" failed${note === null ? '' : `: ${note}`}`);
    this.#compensating += 1;
    const inner = scopeOf(step.compensate, { ...scope, prefix: `${id}_undo_` });
    for (const undo of step.compensate) {
      const undoId = idOf(undo.name, inner);
      this.#declare({ ...undo, dependsOn: [] }, undoId, inner, []);
      await this.#view.settled(undoId);
    }
    this.#compensating -= 1;
    // Another step may have failed in the meantime; its compensation must also run.
    if (failFast && this.#compensating === 0) this.#failure.reject(this.#firstFailure);
  }

  #declare(step: WorkflowStep, id: string, scope: Scope, after: readonly string[]): void {
    const type = step.type as ActionType;
    const name = type === 'relic' && step.action !== null ? `${step.target ?? ''}.${step.action}` : step.target;
    const parameters = this.#values.translate(step.parameters, scope) as JsonObject;
    const known = type === 'llm' && name !== null ? { model: name, ...parameters } : parameters;
    this.#action(id, type, type === 'llm' ? null : name, known, [...after, ...stepsIn(step.parameters, scope)], {
      ...this.#values.condition(step, scope),
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
      ...(step.onFailure === 'continue' ? { on_error: 'skip' } : {}),
      ...(step.onFailure === 'retry' ? { on_error: 'retry' } : {}),
    });
  }

  async #group(step: Group, id: string, scope: Scope, after: readonly string[]): Promise<void> {
    // A group has a gate action, which can be ready, skipped or doomed like any other.
    const gate = gateOf(step, id);
    const items = step.type === 'for_each' ? { items: this.#values.translate(step.items, scope) } : {};
    this.#action(gate, 'tool', COLLECT, items, [...after, ...stepsIn(step.items, scope)], {
      ...this.#values.condition(step, scope),
      ...(step.onFailure === 'continue' ? { on_error: 'skip' } : {}),
    });
    const { status, output } = await this.#view.settled(gate);
    if (status === 'completed') {
      const list = isJsonObject(output) ? output['items'] : null;
      if (step.type === 'for_each') return await this.#each(step, id, scope, list);
      this.#skipBranch(step.otherwise, gate, scope, step.steps);
      return await this.#branch(step.steps, step, id, scope);
    }
    if (step.type === 'conditional' && status === 'skipped' && step.otherwise.length > 0) {
      this.#skipBranch(step.steps, gate, scope, step.otherwise);
      return await this.#branch(step.otherwise, step, id, scope);
    }
    this.#skipBranch(step.steps, gate, scope, []);
    this.#skipBranch(step.otherwise, gate, scope, step.steps);
    this.#action(id, 'tool', COLLECT, {}, [gate], {});
  }

  /**
   * Writes the referenced steps of a branch that is not taken, as skipped actions.
   *
   * @param other the branch that is taken: a name in both refers to the one that runs
   */
  #skipBranch(steps: readonly WorkflowStep[], gate: string, { prefix }: Scope, other: readonly WorkflowStep[]): void {
    const taken = namesIn(other);
    for (const name of namesIn(steps)) {
      if (taken.has(name) || !this.#referred.has(name)) continue;
      this.#action(`${prefix}${name}`, 'tool', COLLECT, {}, [gate], { when: 'false' });
    }
  }

  /** Writes the steps of a group, and the action that collects their results by name. */
  async #branch(steps: readonly WorkflowStep[], group: Group, id: string, scope: Scope): Promise<void> {
    const inner = scopeOf(steps, scope);
    if (group.type === 'conditional') await this.#all(steps, inner, []);
    else {
      const ordered = inOrder(steps);
      await this.#parallel(steps.length, group.concurrency, async (index) => {
        const step = ordered[index];
        if (step !== undefined) await this.#all([{ ...step, dependsOn: step.dependsOn ?? [] }], inner, []);
      });
    }
    const given = steps.map(({ name }) => [name, `\${${idOf(name, inner)}}`] as const);
    this.#action(
      id,
      'tool',
      COLLECT,
      Object.fromEntries(given),
      steps.map(({ name }) => idOf(name, inner)),
      {},
    );
  }

  async #each(step: Group, id: string, scope: Scope, list: Json | undefined): Promise<void> {
    if (!Array.isArray(list)) {
      const found = JSON.stringify(list ?? null).slice(0, limits.excerptChars);
      const parameters = { message: `"items" must be a list, found ${escapeText(found)}` };
      return this.#action(
        id,
        'tool',
        REFUSE,
        parameters,
        [],
        step.onFailure === 'continue' ? { on_error: 'skip' } : {},
      );
    }
    const needed = list.length * minActions(step.steps) + 1;
    const most = limits.actionsPerRun - 1;
    if (this.#actions + needed > most) {
      const many = `${list.length} items with ${step.steps.length} steps each are at least ${needed} actions`;
      throw new StepFailed(
        `Step "${step.name}": ${many}; a run may have ${limits.actionsPerRun}, and already has ${this.#actions}`,
        'too_many_actions',
      );
    }
    const ends: string[] = [];
    const scopes = list.map((value, index) =>
      scopeOf(step.steps, { ...scope, item: { value, index }, prefix: `${id}_${index}_` }),
    );
    for (const inner of scopes) {
      const last = step.steps.at(-1);
      if (last !== undefined) ends.push(idOf(last.name, inner));
    }
    await this.#parallel(list.length, step.concurrency ?? this.#definition.maxParallelSteps, async (index) => {
      const inner = scopes[index];
      if (inner !== undefined) await this.#all(step.steps, inner, []);
    });
    this.#action(id, 'tool', COLLECT, { items: ends.map((end) => `\${${end}}`) }, ends, {});
  }

  /** Runs `work` for 0 … count - 1 with limited concurrency. */
  async #parallel(count: number, most: number | null, work: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const one = async (): Promise<void> => {
      while (next < count && !this.#failed) {
        const index = next;
        next += 1;
        await work(index);
      }
    };
    await Promise.all(Array.from({ length: Math.min(count, most ?? count) }, one));
  }

  #action(
    id: string,
    type: ActionType,
    name: string | null,
    parameters: JsonObject,
    after: readonly string[],
    more: JsonObject,
  ): void {
    this.#put(id, actionText(id, type, name, parameters, after, more));
  }

  #put(id: string, text: string): void {
    this.#actions += 1;
    if (this.#actions > limits.actionsPerRun) {
      throw new StepFailed(
        `A run may have ${limits.actionsPerRun} actions; "${id}" would exceed this`,
        'too_many_actions',
      );
    }
    this.#bytes += new TextEncoder().encode(text).length;
    if (this.#bytes > limits.generationBytes) {
      throw new StepFailed(
        `The steps of a run, with the items that they work on, may have ${limits.generationBytes} bytes in total; "${id}" would exceed this`,
        'too_large',
      );
    }
    if (this.#view.declared(id)) return;
    this.#written.push(text);
    this.wake();
  }
}

/** Minimum number of actions of a list of steps: a group has at least its gate and its collecting action. */
function minActions(steps: readonly WorkflowStep[]): number {
  return steps.reduce((sum, step) => sum + (isGroup(step) ? 2 : 1), 0);
}

function actionText(
  id: string,
  type: ActionType,
  name: string | null,
  parameters: JsonObject,
  after: readonly string[],
  more: JsonObject,
): string {
  const body = { ...(name === null ? {} : { name }), parameters, depends_on: [...new Set(after)], ...more };
  return `<action type="${type}" mode="async" id="${id}">${JSON.stringify(body)}</action>`;
}
