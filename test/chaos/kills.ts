/** When the system is killed, derived from the faults of the histories that run at the same time. */
import type { Fault, History } from '../simulation/history.ts';
import type { Victim } from './system.ts';

export interface Kill {
  readonly victim: Victim;
  /** Journaled events of all histories since the last start. */
  readonly afterEvents: number;
}

/** Kills of a single history, and kills per history of a batch. */
const MOST = { single: 4, perHistory: 0.25 };
/** The events between two kills, for each history of a batch. */
const SPREAD = 2;

/** A crash kills the Worker, and the runner as well if it keeps nothing; an eviction becomes a kill of the runner. */
export function killsOf(histories: readonly History[]): Kill[] {
  const range = SPREAD * histories.length + 8;
  const most = Math.max(MOST.single, Math.ceil(histories.length * MOST.perHistory));
  return histories
    .flatMap(({ faults }) => faults)
    .flatMap((fault) => killOf(fault, range) ?? [])
    .slice(0, most);
}

function killOf(fault: Fault, range: number): Kill | null {
  switch (fault.type) {
    case 'crash':
      return { victim: fault.keeps === 0 ? 'both' : 'worker', afterEvents: fault.call % range };
    case 'eviction':
      return { victim: 'runner', afterEvents: fault.at % range };
    default:
      return null;
  }
}
