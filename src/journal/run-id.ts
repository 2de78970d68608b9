/**
 * Ids of runs and artifacts. A run's id contains its session's id and incarnation and its number, so no index is needed to
 * find any of them, and no id of an earlier session with the same id fits (T5).
 */
import { sessionKey } from '../domain/session.ts';
import type { SessionIdentity } from '../domain/session.ts';

/** `run_<hex>_<incarnation>_3`; for a session without an incarnation `run_<hex>_3`. */
export function runIdOf(session: SessionIdentity, run: number): string {
  return `run_${sessionKey(session).replace(/^ses_/, '')}_${run}`;
}

/** The number at the end of a run's id; 0 if the id has another form. */
export function runNumberOf(runId: string): number {
  const match = /_(\d{1,9})$/.exec(runId);
  return match === null ? 0 : Number(match[1]);
}

/** `art_<incarnation>_12_1`: the first file of the event with this seq; without a file: its whole output. */
export function artifactIdOf(incarnation: string | null, seq: number, file: number | null = null): string {
  return ['art', incarnation, seq, file].filter((part) => part !== null).join('_');
}

/** The event of an artifact; null if the id is not valid. The id must still be compared: it may be of another session. */
export function eventOfArtifact(id: string): number | null {
  const digits = /^art_(?:[0-9a-f]{12}_)?(\d{1,15})(?:_\d{1,4})?$/.exec(id)?.[1];
  return digits === undefined ? null : Number(digits);
}
