/**
 * The text of a workflow's actions, in pieces, each a whole block.
 *
 * Owns the pieces that are not read yet, and the limits of a run's actions and text. Does not own what is written.
 */
import type { ActionType } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { COLLECT } from '../../domain/workflow-actions.ts';
import { StepFailed } from './step-failed.ts';

export class StepWriter {
  readonly #declared: (id: string) => boolean;
  readonly #written: string[] = [];
  #wake: (() => void) | null = null;
  /** Number of actions and bytes of the text so far, including those of an earlier host. */
  #actions = 0;
  #bytes = 0;

  /** @param declared whether an action with this id is already in the journal; it is not written again */
  constructor(declared: (id: string) => boolean) {
    this.#declared = declared;
  }

  get actions(): number {
    return this.#actions;
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

  action(
    id: string,
    type: ActionType,
    name: string | null,
    parameters: JsonObject,
    after: readonly string[],
    more: JsonObject = {},
  ): void {
    this.put(id, actionText(id, type, name, parameters, after, more));
  }

  /** An action that collects values by name. */
  collect(id: string, parameters: JsonObject, after: readonly string[], more: JsonObject = {}): void {
    this.action(id, 'tool', COLLECT, parameters, after, more);
  }

  /** An action that is skipped: a step that does not run, but that others may refer to. */
  skipped(id: string, after: readonly string[] = []): void {
    this.collect(id, {}, after, { when: 'false' });
  }

  /** @throws StepFailed past a limit of the run */
  put(id: string, text: string): void {
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
    if (this.#declared(id)) return;
    this.#written.push(text);
    this.wake();
  }
}

export function actionText(
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
