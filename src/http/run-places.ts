/** Where runs are: in pages, and in the tree of runs (C4). */
import type { RunRecord, SessionRecord } from '../domain/session.ts';
import type { Session } from '../engine/session/session.ts';
import { runIdOf } from '../journal/run-id.ts';

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

/** Where a run is in the tree of runs. */
export function placeMembers(
  record: SessionRecord,
  { parent, retryOf }: Pick<RunRecord, 'parent' | 'retryOf'>,
): { readonly parent_run: string | null; readonly retry_of?: string } {
  return {
    parent_run: parent === 0 ? null : runIdOf(record, parent),
    ...(retryOf === null ? {} : { retry_of: runIdOf(record, retryOf) }),
  };
}
