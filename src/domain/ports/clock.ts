/** Time, ids and randomness. */

/** Time. `now` is epoch milliseconds. `schedule` calls back once, not before `delayMs`; it returns a cancel function. */
export interface Clock {
  now(): number;
  schedule(delayMs: number, callback: () => void): () => void;
}

/** 128-bit random ids with a readable prefix, `ses_…`, `run_…`. */
export type NewId = (prefix: 'ses' | 'run' | 'apr') => string;

/** Uniform in [0, 1). */
export type Random = () => number;
