/** Branches of a conversation: each run follows another one (C4). Pure. */
import type { RunPage } from '../../src/client/index.ts';

type Runs = RunPage['runs'];

/**
 * The newest run of the branch that goes on from a version of a message, so that its answers are shown as well.
 *
 * @param runs in order; the newest ones are enough
 */
export function leafOf(runs: Runs, version: string): string {
  const branch = new Set([version]);
  let leaf = version;
  for (const { run_id: id, parent_run: parent } of runs) {
    if (parent === null || !branch.has(parent)) continue;
    branch.add(id);
    leaf = id;
  }
  return leaf;
}
