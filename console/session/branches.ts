/** Branches of a conversation: each run follows another one (C4). Pure. */
import type { HistoryMessage, RunPage } from '../../src/client/index.ts';

type Runs = RunPage['runs'];

/**
 * Whether a message of the user started its run, so that it can be sent again. Where an action runs again, the run is not
 * another version of the one that it repeats: it follows that one.
 */
export function canSendAgain({
  role,
  parent_run: parent,
  steered,
  retry_of: of,
  branches = [],
}: HistoryMessage): boolean {
  return role === 'user' && parent !== undefined && steered !== true && (of === undefined || branches.includes(of));
}

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
