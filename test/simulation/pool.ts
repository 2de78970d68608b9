/**
 * Runs histories on worker threads, which are processes of the simulation of their own: small limits and deterministic
 * digests do not leak into the caller.
 *
 * Invariants of a thread:
 *  1. It runs one history at a time, and answers each exactly once.
 *  2. A history without an answer in time, or one that ends the thread, is a violation; a new thread replaces it.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { History } from './history.ts';
import type { Violation } from './invariants/invariant.ts';
import type { Answer, Task } from './worker.ts';

/** A history takes some milliseconds. */
const MOST_SILENCE_MS = 60_000;
/** In addition for the first history of a thread: the engine is loaded. */
const MOST_START_MS = 30_000;
const MOST_HEAP_MB = 1_024;
/** The default of a thread is 192 MB, with which a history takes an eighth more CPU. */
const YOUNG_HEAP_MB = 48;

/** The invariant of histories that block their thread. */
export const NEVER_BLOCKS = 'never blocks';
/** The invariant of histories that end their thread, for example because they use up its memory. */
const THREAD_SURVIVES = 'the thread survives';

export class Thread implements AsyncDisposable {
  #worker: Worker | null = null;
  #answer: (answer: Answer) => void = () => undefined;
  readonly #silenceMs: number;
  readonly #script: URL;

  /** @param script a module that answers a `Task` with an `Answer`, like worker.ts */
  constructor(silenceMs = MOST_SILENCE_MS, script = new URL('worker.ts', import.meta.url)) {
    this.#silenceMs = silenceMs;
    this.#script = script;
  }

  /** @param history a history, or the seed of one */
  async run(history: number | History, task: Omit<Partial<Task>, 'history'> = {}): Promise<Answer> {
    const mostMs = this.#silenceMs + (this.#worker === null ? MOST_START_MS : 0);
    this.#worker ??= this.#start();
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#answer = resolve;
    const timer = setTimeout(() => this.#fail(NEVER_BLOCKS, `no end after ${mostMs} ms`), mostMs);
    this.#worker.postMessage({ isDetailed: false, brokenBy: null, ...task, history } satisfies Task, []);
    const answer = await promise;
    clearTimeout(timer);
    if (answer.digest === null) await this[Symbol.asyncDispose]();
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#answer = () => undefined;
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(this.#script, {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MB, maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
    });
    worker.on('message', (answer: Answer) => this.#answer(answer));
    worker.on('error', (fault) => this.#fail(THREAD_SURVIVES, String(fault)));
    worker.on('exit', (code) => this.#fail(THREAD_SURVIVES, `the thread ended with code ${code}`));
    return worker;
  }

  #fail(invariant: string, what: string): void {
    this.#answer({ violations: [{ invariant, what }], digest: null, seen: null });
  }
}

export interface Failure extends Violation {
  /** The lowest failing seed. */
  readonly seed: number;
  /** Failing seeds. */
  readonly count: number;
}

export interface Report {
  readonly done: number;
  /** Histories with at least one violation. */
  readonly failed: number;
  /** By invariant, in the order of their seeds. */
  readonly failures: readonly Failure[];
}

export interface SeedsOptions {
  readonly first: number;
  readonly count: number;
  /** Stops when this many different invariants have failed. Default: never. */
  readonly mostInvariants?: number;
  /** Default: the number of cores. */
  readonly threads?: number;
  readonly openThread?: () => Thread;
  readonly onDone?: (done: number, failed: number) => void;
  /** Called with the first violation that is seen of each invariant. */
  readonly onFailure?: (failure: Failure) => void;
  /** Aborting it ends the search after the histories that are running. */
  readonly signal?: AbortSignal;
  readonly onDigest?: (seed: number, digest: string | null) => void;
}

/** Runs the histories of consecutive seeds on all cores. */
export async function checkSeeds(options: SeedsOptions): Promise<Report> {
  const { first, count, mostInvariants = Infinity, threads = availableParallelism() } = options;
  const openThread = options.openThread ?? (() => new Thread());
  const failures = new Map<string, Failure>();
  let next = first;
  let done = 0;
  let failed = 0;
  const follow = async (): Promise<void> => {
    await using thread = openThread();
    while (next < first + count && failures.size < mostInvariants && options.signal?.aborted !== true) {
      const seed = next++;
      const { violations, digest } = await thread.run(seed);
      done += 1;
      if (violations.length > 0) failed += 1;
      for (const [invariant, [violation]] of Map.groupBy(violations, ({ invariant }) => invariant)) {
        if (violation === undefined) continue;
        const before = failures.get(invariant);
        const lowest = before === undefined || seed < before.seed ? { ...violation, seed } : before;
        const failure = { ...lowest, count: (before?.count ?? 0) + 1 };
        failures.set(invariant, failure);
        if (before === undefined) options.onFailure?.(failure);
      }
      options.onDigest?.(seed, digest);
      options.onDone?.(done, failed);
    }
  };
  await Promise.all(Array.from({ length: Math.min(threads, count) }, follow));
  return { done, failed, failures: [...failures.values()].sort((a, b) => a.seed - b.seed) };
}
