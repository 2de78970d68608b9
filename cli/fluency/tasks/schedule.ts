/**
 * The nominal time of a plan: when each call starts and ends if a generation and each tool always take the same time.
 * The same function computes ideal plans and those that a model has made, so both are compared by the same measure.
 */

/** Milliseconds of one generation, whatever its length. */
export const GENERATION_MS = 2_000;

export interface ScheduledCall {
  readonly key: string;
  readonly ms: number;
  /** Keys of calls that must have ended. Calls of earlier generations have. */
  readonly needs: readonly string[];
}

export interface Schedule {
  /** From the start of the first generation to the end of the last call or generation. */
  readonly makespanMs: number;
  /** Milliseconds since the start of the first generation, by key. */
  readonly starts: ReadonlyMap<string, number>;
  /** The longest chain of generations and calls: no number of slots would be faster. */
  readonly criticalPathMs: number;
  /** Number of different starts. */
  readonly waves: number;
}

/**
 * Calls are declared at the end of their generation. Each starts as soon as what it needs has ended and a slot is free;
 * among several, the one with the longest remaining chain first (S5). A generation begins when everything of the
 * generation before has ended.
 *
 * @param generations calls by generation, in the order of their declaration; a generation without calls only answers
 */
export function scheduleOf(generations: readonly (readonly ScheduledCall[])[], slots: number): Schedule {
  const starts = new Map<string, number>();
  let now = 0;
  let criticalPathMs = 0;
  for (const calls of generations) {
    const declared = now + GENERATION_MS;
    const remaining = remainingMs(calls);
    criticalPathMs += GENERATION_MS + Math.max(0, ...remaining.values());
    now = runAll(calls, { declared, slots, remaining, starts });
  }
  return { makespanMs: now, starts, criticalPathMs, waves: new Set(starts.values()).size };
}

/** Milliseconds from the start of each call to the end of the longest chain of calls that need it. */
function remainingMs(calls: readonly ScheduledCall[]): Map<string, number> {
  const remaining = new Map<string, number>();
  // A call needs only earlier ones, except for a name that is declared later: then one pass is not enough.
  for (let changed = true, passes = 0; changed && passes <= calls.length; passes += 1) {
    changed = false;
    for (const { key, ms } of calls.toReversed()) {
      const after = calls.filter(({ needs }) => needs.includes(key)).map((later) => remaining.get(later.key) ?? 0);
      const total = ms + Math.max(0, ...after);
      if (remaining.get(key) !== total) changed = true;
      remaining.set(key, total);
    }
  }
  return remaining;
}

/** @returns when the last call has ended */
function runAll(
  calls: readonly ScheduledCall[],
  given: {
    readonly declared: number;
    readonly slots: number;
    readonly remaining: ReadonlyMap<string, number>;
    readonly starts: Map<string, number>;
  },
): number {
  const { declared, slots, remaining, starts } = given;
  const here = new Set(calls.map(({ key }) => key));
  const ends = new Map<string, number>();
  let waiting = [...calls].sort((a, b) => (remaining.get(b.key) ?? 0) - (remaining.get(a.key) ?? 0));
  for (let now = declared; waiting.length > 0;) {
    const hasEnded = (key: string): boolean => !here.has(key) || (ends.get(key) ?? Infinity) <= now;
    let running = [...ends.values()].filter((end) => end > now).length;
    const started = new Set<ScheduledCall>();
    for (const call of waiting) {
      if (running >= slots || !call.needs.every(hasEnded)) continue;
      starts.set(call.key, now);
      ends.set(call.key, now + call.ms);
      started.add(call);
      running += 1;
    }
    waiting = waiting.filter((call) => !started.has(call));
    const next = Math.min(...[...ends.values()].filter((end) => end > now));
    // Calls that need each other never start: the scheduler rejects them, so they take no time.
    if (!Number.isFinite(next)) break;
    now = next;
  }
  return Math.max(declared, ...ends.values());
}
