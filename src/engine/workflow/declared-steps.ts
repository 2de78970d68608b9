/**
 * The actions that a workflow declares, until the run takes them.
 *
 * Owns the actions that are not taken yet, and the limits of a run's actions and their size. Does not own what is declared.
 */
import type { ActionType, DeclaredAction } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';
import { textBytes } from '../../domain/tokens.ts';
import { COLLECT } from '../../domain/workflow-actions.ts';
import { commandReferences } from '../../protocol/references/references.ts';
import type { DeclaredPiece } from '../run/run-input.ts';
import { StepFailed } from './step-failed.ts';
import { idsIn, known, NO_CONDITION } from './step-values.ts';
import type { Condition, Given } from './step-values.ts';

type Options = Pick<DeclaredAction, 'timeoutMs' | 'retry' | 'onError'> & {
  readonly condition?: Condition;
  readonly answers?: true;
};

export class DeclaredSteps {
  readonly #isDeclared: (id: string) => boolean;
  readonly #declared: DeclaredPiece[] = [];
  #wake: (() => void) | null = null;
  /** Number of actions and their bytes so far, including those of an earlier host. */
  #actions = 0;
  #bytes = 0;

  /** @param isDeclared whether an action with this id is already in the journal; it is not declared again */
  constructor(isDeclared: (id: string) => boolean) {
    this.#isDeclared = isDeclared;
  }

  get actions(): number {
    return this.#actions;
  }

  take(): DeclaredPiece | undefined {
    return this.#declared.shift();
  }

  more(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  /**
   * @param after ids of the actions on which it depends, besides those of its values
   * @throws StepFailed past a limit of the run
   */
  action(
    id: string,
    type: ActionType,
    name: string,
    { parameters, texts }: Given,
    after: readonly string[],
    { condition: { when, names, ids } = NO_CONDITION, answers, ...more }: Options = {},
  ): void {
    const own = idsIn(texts);
    const references = [...new Set([...own, ...commandReferences(type, parameters), ...ids])];
    const declared: DeclaredAction = {
      id,
      type,
      name,
      parameters,
      dependsOn: [...new Set([...after, ...own])],
      ...(references.length === 0 ? {} : { references }),
      ...(when === null ? {} : { when }),
      ...more,
      bound: { texts, names },
    };
    this.#put(answers === undefined ? { declared } : { declared, answers });
  }

  /** An action that collects values by name. */
  collect(id: string, given: Given, after: readonly string[], more: Options = {}): void {
    this.action(id, 'tool', COLLECT, given, after, more);
  }

  /** An action that is skipped: a step that does not run, but that others may refer to. */
  skipped(id: string, after: readonly string[] = []): void {
    this.collect(id, known({}), after, { condition: { ...NO_CONDITION, when: 'false' } });
  }

  #put(step: DeclaredPiece): void {
    const { id } = step.declared;
    this.#actions += 1;
    if (this.#actions > limits.actionsPerRun) {
      throw new StepFailed(
        `A run may have ${limits.actionsPerRun} actions; "${id}" would exceed this`,
        'too_many_actions',
      );
    }
    this.#bytes += textBytes(JSON.stringify(step));
    if (this.#bytes > limits.generationBytes) {
      throw new StepFailed(
        `The steps of a run, with the items that they work on, may have ${limits.generationBytes} bytes in total; "${id}" would exceed this`,
        'too_large',
      );
    }
    if (this.#isDeclared(id)) return;
    this.#declared.push(step);
    this.wake();
  }
}
