/** The tools of every peer: a delay under three names, and one that fetches a URL. */
import { setTimeout as delay } from 'node:timers/promises';

export interface Task {
  readonly baseUrl: string;
  readonly prompt: string;
  readonly slots: number;
}

export interface DelayInput {
  readonly delay_ms?: number | undefined;
  readonly q?: string | undefined;
  readonly of?: string | undefined;
}

/** A peer runs one task to the end of its answer. */
export type RunTask = (task: Task, tools: Tools) => Promise<string>;

export const DELAY_TOOLS = ['search', 'math', 'work'] as const;
export const DELAY_DESCRIPTION = 'Waits delay_ms and returns its parameters.';
export const FETCH_DESCRIPTION = 'Fetches an address and returns its text.';
/** A limit of steps, turns or graph steps that no task reaches. */
export const STEP_LIMIT = 200;

/** At most `slots` calls run at the same time; the others wait. */
export class Tools {
  calls = 0;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  async wait(input: DelayInput): Promise<DelayInput> {
    return await this.#inSlot(async () => {
      if ((input.delay_ms ?? 0) > 0) await delay(input.delay_ms);
      return input;
    });
  }

  async fetch(url: string): Promise<string> {
    return await this.#inSlot(async () => await (await fetch(url)).text());
  }

  async #inSlot<T>(work: () => Promise<T>): Promise<T> {
    this.calls += 1;
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
