/**
 * Holds a few interpreters ready, because loading one takes longer than most jobs.
 *
 * Owns: the ones that are ready or loading. Does not own: one that was taken.
 * Invariants:
 * 1. Each runs one program at most; one that was taken and not used may come back.
 * 2. At most one is loading for the pool at a time, so that refilling does not slow down what runs.
 * 3. One that dies while it waits is dropped and replaced; three deaths in a row stop the refilling,
 *    and `take` loads one itself and reports why it cannot.
 */

import { limits } from '../limits.ts';

export interface WarmState {
  readonly ready: number;
  readonly filling: boolean;
}

export interface Warmable {
  /** Calls back when it is dead, also when it has died before. */
  onDeath(listener: () => void): void;
  /** Resolves when nothing of it is left. */
  dispose(): void | Promise<void>;
}

const MAX_DEATHS = 3;

/** Whether one that is kept outside of a pool has died: what it was kept for gets another one then. */
export function deathOf(warm: Warmable): () => boolean {
  let died = false;
  warm.onDeath(() => {
    died = true;
  });
  return () => died;
}

/** The state of several pools together, for people. */
export function stateOf(pools: Readonly<Record<string, WarmPool<Warmable>>>): WarmState {
  const all = Object.values(pools);
  return { ready: all.reduce((sum, { ready }) => sum + ready, 0), filling: all.some(({ filling }) => filling) };
}

export class WarmPool<T extends Warmable> {
  readonly #create: () => Promise<T>;
  readonly #createNow: () => Promise<T>;
  readonly #size: number;
  readonly #ready: T[] = [];
  #loading: Promise<void> | null = null;
  #soon: NodeJS.Timeout | undefined;
  #deaths = 0;
  #closed = false;

  /** @param createNow what to make when none is ready and somebody waits, where that is another thing */
  constructor(size: number, create: () => Promise<T>, createNow: () => Promise<T> = create) {
    this.#size = size;
    this.#create = create;
    this.#createNow = createNow;
  }

  get ready(): number {
    return this.#ready.length;
  }

  /** More will be ready in a moment. */
  get filling(): boolean {
    return this.#loading !== null || this.#soon !== undefined;
  }

  /** One that is ready, else a new one. @throws Error when none could be made */
  async take(): Promise<T> {
    return await this.#take(this.#createNow);
  }

  /** The same for somebody who has time: a new one is as good as those that are ready. */
  async reserve(): Promise<T> {
    return await this.#take(this.#create);
  }

  async #take(create: () => Promise<T>): Promise<T> {
    const warm = this.#ready.shift();
    if (warm !== undefined) {
      this.#fillSoon();
      return warm;
    }
    const fresh = await create();
    this.#deaths = 0;
    this.#fillSoon();
    return fresh;
  }

  /** Takes back one that nobody has used. */
  giveBack(warm: T): void {
    if (this.#closed || this.#ready.length >= this.#size) void warm.dispose();
    else this.#add(warm);
  }

  /** Begins to fill the pool; returns at once. */
  fill(): void {
    if (this.#closed || this.#loading !== null || this.#ready.length >= this.#size || this.#deaths >= MAX_DEATHS)
      return;
    this.#loading = this.#load().finally(() => {
      this.#loading = null;
      this.fill();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#soon);
    await this.#loading;
    await Promise.all(this.#ready.splice(0).map((warm) => warm.dispose()));
  }

  /** The one that was just taken goes first: making the next one costs its program time that it is waiting for. */
  #fillSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      this.fill();
    }, limits.refillMs);
  }

  async #load(): Promise<void> {
    try {
      const warm = await this.#create();
      if (this.#closed) {
        await warm.dispose();
        return;
      }
      this.#add(warm);
    } catch {
      this.#deaths += 1;
    }
  }

  #add(warm: T): void {
    this.#ready.push(warm);
    // one that has died already says so at once
    warm.onDeath(() => {
      const index = this.#ready.indexOf(warm);
      if (index < 0) return;
      this.#ready.splice(index, 1);
      this.#deaths += 1;
      this.fill();
    });
  }
}
