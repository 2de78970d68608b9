/** Which run a page of runs or messages precedes. */
import type { Session } from '../engine/session/session.ts';

/**
 * The number of a run that a page precedes. An id must be of this session and its incarnation: a client that continues
 * the list of a deleted session would otherwise get a page of the next one (T5).
 *
 * @throws EngineError `unknown_run`
 */
export function positionOf(session: Session, before: string | undefined): number | undefined {
  return before?.startsWith('run_') === true ? session.run(before).run : numberIn(before);
}

/** The number at the end of an id. */
export function numberIn(id: string | undefined): number | undefined {
  return id === undefined ? undefined : Number(/\d+$/.exec(id)?.[0]);
}
