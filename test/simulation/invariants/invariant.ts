/** The form of an invariant, and what several of them read. */
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Fact, Observation } from '../observation.ts';

/** Something that holds in every history. */
export interface Invariant {
  readonly name: string;
  /** What holds, as one sentence. */
  readonly holds: string;
  /** Yields a sentence for each violation. */
  readonly check: (seen: Observation) => Iterable<string>;
}

export interface Violation {
  readonly invariant: string;
  readonly what: string;
}

export type FactOf<T extends Fact['type']> = Extract<Fact, { type: T }>;

export function factsOf<T extends Fact['type']>({ facts }: Observation, type: T): FactOf<T>[] {
  return facts.filter((fact): fact is FactOf<T> => fact.type === type);
}

/** The run's number in its session, 1-based. */
export function runOf({ run_id: id }: Pick<SessionEvent, 'run_id'>): number {
  return Number(id.slice(id.lastIndexOf('_') + 1));
}

const ACTION_ENDS: ReadonlySet<SessionEvent['type']> = new Set<SessionEvent['type']>([
  'action_completed',
  'action_failed',
  'action_skipped',
  'action_cancelled',
  'action_rejected',
]);

export function endsAction(event: SessionEvent): boolean {
  return ACTION_ENDS.has(event.type);
}

/** An action of a run. Its id is unique in the history, unless it is rejected. */
export function actionOf(event: SessionEvent): string {
  return `run ${runOf(event)}, iteration ${event.iteration}, ${event.action_id ?? ''}`;
}

/** The run of a target's key; null for a feed. */
export function runOfKey(key: string): number | null {
  const [run] = key.split('/').slice(-3);
  return run === 'feed' ? null : Number(run);
}

/** Runs that repeat an action of another run: without its condition, its retries and its idempotency key (C4). */
export function rerunsOf(events: readonly SessionEvent[]): Set<number> {
  return new Set(
    events.flatMap((event) =>
      event.type === 'run_branched' && event.data.action_id !== undefined ? [runOf(event)] : [],
    ),
  );
}

/** The events of each run, in order. */
export function byRun(events: readonly SessionEvent[]): Map<number, SessionEvent[]> {
  return Map.groupBy(events, runOf);
}
