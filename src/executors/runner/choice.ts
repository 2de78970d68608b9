/**
 * Chooses the runner of a job (R7). Pure.
 *
 * The runner with the earliest expected start gets the job: round trip, wait for a place, and the transfer of the files
 * that it does not have. Starts that differ by less than `runnerTieMs` are equal; then the least loaded runner gets it,
 * and among equally loaded ones the first by rendezvous hashing of the session. A session stays on its runner unless
 * another one is earlier by `runnerSwitchMs` and by a quarter, so that it does not move back and forth.
 */
import { limits } from '../../domain/limits.ts';
import type { WorkspaceFile } from '../../domain/workspace.ts';

export interface Candidate {
  /** Milliseconds until the job would start, without its files. */
  readonly startMs: number;
  /** Milliseconds for the transfer of files. */
  readonly moveMs: number;
  /** Jobs per place. */
  readonly load: number;
  /** Rendezvous rank for the session. */
  readonly rank: number;
  /** The session's last job ran on it. */
  readonly isLast: boolean;
}

/** @returns the chosen candidate, and the milliseconds until its job starts; null without candidates */
export function chooseRunner<Some extends Candidate>(
  candidates: readonly Some[],
): { readonly chosen: Some; readonly costMs: number } | null {
  const costOf = ({ startMs, moveMs }: Candidate): number => startMs + moveMs;
  const leastMs = Math.min(...candidates.map((candidate) => costOf(candidate)));
  const last = candidates.find(({ isLast }) => isLast);
  if (last !== undefined) {
    const costMs = costOf(last);
    const isMuchLater =
      costMs - leastMs > limits.runnerSwitchMs && costMs - leastMs > costMs * limits.runnerSwitchShare;
    if (!isMuchLater) return { chosen: last, costMs };
  }
  const [chosen] = candidates
    .filter((candidate) => costOf(candidate) <= leastMs + limits.runnerTieMs)
    .toSorted((a, b) => a.load - b.load || b.rank - a.rank);
  return chosen === undefined ? null : { chosen, costMs: costOf(chosen) };
}

/**
 * Milliseconds for the transfer of the files that a runner does not have.
 *
 * @param usedAt when the session last used the runner, which then had all files; null: it has none of them
 * @param left hashes of files that jobs left on it, which the session gets later than it used the runner
 */
export function moveMsOf(
  files: readonly WorkspaceFile[],
  usedAt: number | null,
  left: ReadonlySet<string> = new Set(),
): number {
  const missing = files.filter(
    ({ modifiedAt, sha256 }) => !left.has(sha256) && (usedAt === null || modifiedAt > usedAt),
  );
  return missing.reduce((sum, { size }) => sum + size, 0) / limits.runnerBytesPerMs;
}

/** Rendezvous hashing (FNV-1a): every Worker finds the same runner, and a new runner takes over only its own share. */
export function rankOf(url: string, key: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${url}\n${key}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  // Final mixing as in MurmurHash3: FNV gives similar hashes for similar texts.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
