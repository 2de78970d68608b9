/** Journal events of actions: each has its action's id and name, and its key for recovery. */
import type { ActionDeclaration, ActionKey } from '../../domain/action.ts';
import type { EventData, JournaledEventType, WrittenEvent } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Reference } from '../../domain/protocol-event.ts';
import { action as declarationOf } from '../../scheduler/step.ts';
import type { RunState } from '../../scheduler/step.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import type { RunLog } from '../run/run-log.ts';
import { iterationOf } from '../run/run-names.ts';

export class ActionLog {
  readonly #log: RunLog;
  readonly #state: () => RunState;
  readonly #blanks = new Map<ActionKey, readonly Reference[]>();

  constructor(log: RunLog, state: () => RunState) {
    this.#log = log;
    this.#state = state;
  }

  /** @returns the event's seq */
  append<T extends JournaledEventType>(type: T, key: ActionKey, data: EventData[T], state: JsonObject = {}): number {
    return this.write(type, key, data, state).seq;
  }

  /** @param state stored for recovery; never sent */
  write<T extends JournaledEventType>(
    type: T,
    key: ActionKey,
    data: EventData[T],
    state: JsonObject = {},
  ): WrittenEvent<T> {
    return this.#log.write(type, data, {
      action: this.declaration(key),
      state: { key, ...state },
      iteration: iterationOf(key),
    });
  }

  /** Warns about references of the action that could not be resolved (P12). */
  warn(key: ActionKey, { warnings, blanks = [] }: Pick<ResolvedCall, 'warnings' | 'blanks'>): void {
    for (const { code, message } of warnings) this.#log.warn(code, message, this.declaration(key));
    // A value of an unfinished action is null on purpose (S3).
    if (blanks.length > 0 && this.declaration(key).waitForAll) this.#blanks.set(key, blanks);
  }

  /** References in the text of an iteration's actions whose path does not exist. */
  blanksIn(iteration: number): readonly (readonly [ActionKey, Reference])[] {
    const found = [...this.#blanks].filter(([key]) => iterationOf(key) === iteration);
    return found.flatMap(([key, references]) => references.map((reference) => [key, reference] as const));
  }

  /** @throws if the scheduler has no such action, which is an internal error */
  declaration(key: ActionKey): ActionDeclaration {
    const found = declarationOf(this.#state(), key);
    if (found === null) throw new Error(`the scheduler has no action ${key}`);
    return found;
  }
}

export function errorJson(error: {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
}): EventData['action_failed']['error'] {
  return { code: error.code, message: error.message, retryable: error.retryable };
}
