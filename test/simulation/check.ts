/**
 * Runs histories and checks them against all invariants. Import this file first: it prepares the process, with small
 * limits and deterministic digests.
 */
import './small-limits.ts';
import './deterministic.ts';
import { historyOf } from './arbitrary.ts';
import type { History } from './history.ts';
import { violationsOf } from './invariants/all.ts';
import type { Violation } from './invariants/invariant.ts';
import type { Observation } from './observation.ts';
import type { BrokenPorts } from './world/broken-ports.ts';
import { runHistory } from './world/world.ts';

export interface Checked {
  readonly seen: Observation | null;
  readonly violations: readonly Violation[];
}

export async function checkHistory(history: History, broken: BrokenPorts = {}): Promise<Checked> {
  try {
    const seen = await runHistory(history, broken);
    return { seen, violations: violationsOf(seen) };
  } catch (fault) {
    const what = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
    return { seen: null, violations: [{ invariant: 'the world', what }] };
  }
}

/** The first violation of the history of a seed; null if all invariants hold. */
export async function checkSeed(seed: number): Promise<Violation | null> {
  return (await checkHistory(historyOf(seed))).violations[0] ?? null;
}
