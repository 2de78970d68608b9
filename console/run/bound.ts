/**
 * The lower bound of a run's duration, from the times that were measured, and the chain that determines it.
 *
 * An action cannot start before its closing tag has arrived, nor before what it waits for has ended; its own time is what it
 * took. An iteration takes at least as long as its generation, and as its actions that hold it. What the run took beyond
 * that is queueing, scheduling and storage.
 */
import type { Trace } from './trace.ts';
import { beganAt } from './trace-types.ts';
import type { TraceAction } from './trace-types.ts';

export interface Bound {
  readonly boundMs: number;
  /** What the run took, or has taken so far. */
  readonly actualMs: number;
  /** Generations and actions, one after the other. */
  readonly sequentialMs: number;
  /** Keys of the actions on the critical path. */
  readonly path: ReadonlySet<string>;
  /** By iteration: until when its generation is on the critical path. */
  readonly generations: ReadonlyMap<number, number>;
}

/** The earliest end of an action. */
interface End {
  /** Epoch milliseconds. */
  at: number;
  /** What it had to wait for longest; null: its closing tag. */
  after: TraceAction | null;
}

/**
 * Milliseconds in which the action ran, paused between attempts, or waited for people and clients. Not: for a slot.
 *
 * @param now epoch milliseconds, for what has not ended
 */
function ownMs({ attempts, waits, queuedAt, endedAt }: TraceAction, now: number): number {
  const end = endedAt ?? now;
  let total = 0;
  for (const [index, attempt] of attempts.entries()) {
    const to = attempt.endedAt ?? end;
    const next = attempts[index + 1]?.startedAt ?? end;
    total += Math.max(0, to - attempt.startedAt) + Math.max(0, Math.min(attempt.retryDelayMs ?? 0, next - to));
  }
  const first = attempts[0]?.startedAt ?? Infinity;
  // A run that was recovered may have asked before its action was journaled.
  for (const { from, to } of waits) total += Math.max(0, Math.min(to ?? end, first) - Math.max(from, queuedAt));
  return total;
}

/** @param now epoch milliseconds, for what has not ended */
export function boundOf({ actions, iterations, startedAt, endedAt }: Trace, now: number): Bound {
  const ends = new Map<TraceAction, End>();
  const barriers = Map.groupBy(
    actions.filter(({ written, status }) => written.mode === 'sync' && status !== 'rejected'),
    ({ iteration }) => iteration,
  );
  let sequentialMs = 0;
  const earliestEnd = (action: TraceAction): End => {
    const known = ends.get(action);
    if (known !== undefined) return known;
    const end: End = { at: action.queuedAt, after: null };
    // Before the search: a cycle, which the runtime never accepts, ends it.
    ends.set(action, end);
    for (const before of waitedFor(action, barriers.get(action.iteration) ?? [])) {
      const { at } = earliestEnd(before);
      if (at <= end.at) continue;
      end.at = at;
      end.after = before;
    }
    const ms = ownMs(action, now);
    // A run waits for a fire_and_forget action only if another action does.
    if (action.written.mode !== 'fire_and_forget' || action.dependents.length > 0) sequentialMs += ms;
    end.at += ms;
    return end;
  };

  const latest = new Map<number, TraceAction>();
  for (const action of actions) {
    const { at } = earliestEnd(action);
    const { iteration, status, written } = action;
    // No iteration waits for a fire_and_forget action; what depends on it includes its time.
    if (status === 'rejected' || written.mode === 'fire_and_forget') continue;
    const last = latest.get(iteration);
    if (last === undefined || at > earliestEnd(last).at) latest.set(iteration, action);
  }

  let boundMs = 0;
  const path = new Set<string>();
  const generations = new Map<number, number>();
  for (const { iteration, startedAt: from, generationEnd } of iterations) {
    let generated = Math.max(from, generationEnd ?? now);
    let end = generated;
    sequentialMs += generated - from;
    const last = latest.get(iteration);
    const actionsEnd = last === undefined ? 0 : earliestEnd(last).at;
    if (actionsEnd > generated) {
      end = actionsEnd;
      for (let on = last ?? null; on !== null && !path.has(on.key); on = earliestEnd(on).after) {
        path.add(on.key);
        generated = on.queuedAt;
      }
    }
    boundMs += end - from;
    generations.set(iteration, generated);
  }
  const actualMs = startedAt === null ? 0 : Math.max(0, (endedAt ?? now) - startedAt);
  return { boundMs, actualMs, sequentialMs, path, generations };
}

/** Dependencies and barriers, without those that ended after it had begun: it did not have to wait for all of them. */
function waitedFor(action: TraceAction, barriers: readonly TraceAction[]): TraceAction[] {
  const began = beganAt(action) ?? action.endedAt ?? Infinity;
  const { dependencies, iteration, index } = action;
  const wave = action.wave ?? 0;
  const waves = dependencies.map((before) => (before.iteration === iteration ? (before.wave ?? Infinity) : -1));
  // Events do not name barriers (S4). An action in a later wave than its dependencies require is held by sync actions.
  const held = wave > Math.max(-1, ...waves) + 1 ? barriers : [];
  return [...dependencies, ...held.filter((sync) => sync.index < index && (sync.wave ?? Infinity) < wave)].filter(
    ({ endedAt }) => (endedAt ?? Infinity) <= began,
  );
}
