/** What the run's actions came to, by key: the values behind `$name` (P12, P13). */
import type { ActionKey, TerminalStatus } from '../domain/action.ts';
import type { Json } from '../domain/json.ts';

export interface ActionResult {
  readonly id: string;
  readonly name: string | null;
  /** Declared fire_and_forget and not awaited: the model is not told (S4). */
  readonly silent: boolean;
  readonly status: TerminalStatus;
  /** The output of a completed action, else null. */
  readonly output: Json;
  /** Why there is no output, in a line; null for a completed action. */
  readonly note: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number;
}

/** What a name in the model's text stands for at this moment. */
export type NameValue =
  | { readonly state: 'value'; readonly value: Json }
  /** The producer is still at work: responses hold here (P13). */
  | { readonly state: 'running' }
  /** There is no value and there will be none, or not soon: shown as `[name: why]`. */
  | { readonly state: 'without'; readonly why: 'failed' | 'skipped' | 'rejected' | 'cancelled' | 'pending' }
  | { readonly state: 'unknown' };

export class Results {
  readonly #settled = new Map<ActionKey, ActionResult>();
  readonly #offered = new Map<ActionKey, Json>();
  readonly #startedAt = new Map<ActionKey, number>();

  started(key: ActionKey, at: number): void {
    if (!this.#startedAt.has(key)) this.#startedAt.set(key, at);
  }

  startedAt(key: ActionKey): number | null {
    return this.#startedAt.get(key) ?? null;
  }

  /** An attempt's output, kept until the scheduler has decided whether it counts (S7). */
  offer(key: ActionKey, output: Json): void {
    this.#offered.set(key, output);
  }

  takeOffer(key: ActionKey): Json {
    const output = this.#offered.get(key) ?? null;
    this.#offered.delete(key);
    return output;
  }

  settle(key: ActionKey, result: Omit<ActionResult, 'startedAt'>): void {
    this.#settled.set(key, { ...result, startedAt: this.startedAt(key) });
    this.#offered.delete(key);
  }

  /** What the iteration's actions came to, in the order in which they settled. */
  ofIteration(iteration: number): ActionResult[] {
    const prefix = `${iteration}/`;
    return [...this.#settled].filter(([key]) => key.startsWith(prefix)).map(([, result]) => result);
  }

  get(key: ActionKey): ActionResult | null {
    return this.#settled.get(key) ?? null;
  }
}
