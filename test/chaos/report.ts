/** Prints a violation: what it is, how to repeat it, and what was observed. */
import type { SessionEvent } from '../../src/domain/event.ts';
import type { Violation } from '../simulation/invariants/invariant.ts';
import type { Fact, Observation } from '../simulation/observation.ts';

/** A violation on the real system. */
export interface Finding extends Violation {
  /** Number of the history in this call, from 1. */
  readonly history: number;
  readonly seed: number;
  /** Runs the same histories with the same kills again. */
  readonly command: string;
  /** What was observed, one line each. */
  readonly observed: readonly string[];
}

const MOST_CHARS = 160;

export function observedLines(seen: Observation): string[] {
  const facts = seen.facts.flatMap((fact) => factLine(fact) ?? []);
  return [
    `settings: ${JSON.stringify(seen.history.agent)}`,
    ...facts,
    ...(seen.stuck === null ? [] : [`stuck: ${seen.stuck}`]),
    ...seen.runs.map(({ run, status }) => `run ${run} is ${status}`),
  ];
}

function factLine(fact: Fact): string | null {
  const { at, type, ...rest } = fact;
  if (type === 'published' && 'event' in rest) return `${time(at)} ${eventText(rest.event)}`;
  return `${time(at)} ${type} ${cut(JSON.stringify(rest))}`;
}

function eventText({ seq, type, run_id: run, iteration, action_id: action, data }: SessionEvent): string {
  const about = action === undefined ? '' : ` ${action}`;
  return `  #${seq ?? ''} run ${run.slice(run.lastIndexOf('_') + 1)}.${iteration} ${type}${about} ${cut(JSON.stringify(data))}`;
}

const time = (at: number): string => `${(at / 1_000).toFixed(3).padStart(8)}`;
const cut = (text: string): string => (text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text);
