/**
 * Keeps some interpreters warm, because loading one takes longer than most jobs.
 *
 * Owns the warm and the loading interpreters. Does not own those that were taken.
 * Invariants:
 * 1. Each interpreter runs at most one program; one that was taken but not used may be returned.
 * 2. At most one interpreter is loading per pool, so that refilling does not slow down running jobs.
 * 3. One that dies while waiting is replaced. After three deaths in a row the pool is no longer refilled, and `take`
 *    loads an interpreter itself and reports the error.
 */

import { limits } from '../limits.ts';

export interface WarmState {
  readonly ready: number;
  readonly filling: boolean;
}

export interface Warmable {
  /** Calls back when it dies, or immediately if it is dead. */
  onDeath(listener: () => void): void;
  /** Resolves when it is cleaned up. */
  dispose(): void | Promise<void>;
}

const MAX_DEATHS = 3;

/** Detects the death of an instance that is kept outside of the pool. */
export function deathOf(warm: Warmable): () => boolean {
  let died = false;
  warm.onDeath(() => {
    died = true;
  });
  return () => died;
}

/** The combined state of several pools, for `/health`. */
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

  /** @param createNow creates an instance for a waiting caller, if that differs from a warm one */
  constructor(size: number, create: () => Promise<T>, createNow: () => Promise<T> = create) {
    this.#size = size;
    this.#create = create;
    this.#createNow = createNow;
  }

  get ready(): number {
    return this.#ready.length;
  }

  /** Whether an instance is loading. */
  get filling(): boolean {
    return this.#loading !== null || this.#soon !== undefined;
  }

  /** Returns a warm instance, or a new one. @throws Error if none could be created */
  async take(): Promise<T> {
    return await this.#take(this.#createNow);
  }

  /** The same for a caller without urgency: creates an instance like the warm ones. */
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

  /** Takes an unused instance back. */
  giveBack(warm: T): void {
    if (this.#closed || this.#ready.length >= this.#size) void warm.dispose();
    else this.#add(warm);
  }

  /** Starts filling the pool; returns immediately. */
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

  /** Delays refilling, because loading would slow down the program that was just started. */
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
    // calls back immediately if it is already dead
    warm.onDeath(() => {
      const index = this.#ready.indexOf(warm);
      if (index < 0) return;
      this.#ready.splice(index, 1);
      this.#deaths += 1;
      this.fill();
    });
  }
}
