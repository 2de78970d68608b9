/** Branches of a conversation, and where each differs from the others (C4). Pure. */

export interface RunEntry {
  readonly run_id: string;
  readonly parent_run: string | null;
  readonly retry_of?: string;
}

export interface Branch {
  /** Its last run. */
  readonly end: string;
  /** The first run that no other branch has. */
  readonly start: RunEntry;
  /** The run whose message the first one repeats or changes; null if it does not. */
  readonly versionOf: string | null;
  /** Runs after the first one. */
  readonly later: number;
}

/**
 * The branches in the order of their last runs. The head is the end of one, also if other runs follow it.
 *
 * @param runs oldest first
 */
export function branchesOf(runs: readonly RunEntry[], head: string | null): readonly Branch[] {
  const known = new Map(runs.map((run) => [run.run_id, run]));
  const parents = new Set(runs.map(({ parent_run: parent }) => parent));
  const ends = runs.filter(({ run_id: id }) => !parents.has(id) || id === head);
  const chains = ends.map((end) => {
    const chain: RunEntry[] = [];
    for (let run: RunEntry | undefined = end; run !== undefined; run = known.get(run.parent_run ?? ''))
      chain.unshift(run);
    return { end, chain };
  });
  const uses = new Map<RunEntry, number>();
  for (const { chain } of chains) for (const run of chain) uses.set(run, (uses.get(run) ?? 0) + 1);
  return chains.map(({ end, chain }) => {
    const start = chain.find((run) => uses.get(run) === 1) ?? end;
    const repeated = known.get(start.retry_of ?? '');
    return {
      end: end.run_id,
      start,
      versionOf: repeated?.parent_run === start.parent_run ? repeated.run_id : null,
      later: chain.length - 1 - chain.indexOf(start),
    };
  });
}
