/** A worker thread of the pool: runs one history at a time, and answers with what was violated. */
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { checkHistory } from './check.ts';
import { historyOf } from './arbitrary.ts';
import { SWITCHES } from './broken/switches.ts';
import type { History } from './history.ts';
import type { Violation } from './invariants/invariant.ts';
import type { Observation } from './observation.ts';
import { HostGone } from './world/life.ts';

export interface Task {
  /** A history, or the seed of one. */
  readonly history: number | History;
  /** The answer contains the observation. */
  readonly isDetailed: boolean;
  /** The name of a switch (broken/switches.ts); null: all ports keep their promises. */
  readonly brokenBy: string | null;
}

export interface Answer {
  readonly violations: readonly Violation[];
  /** Digest of the facts and the journal; null if the history did not end. */
  readonly digest: string | null;
  readonly seen: Observation | null;
}

/** Errors during the current history that neither the session nor the world has handled. */
const unhandled: Violation[] = [];

function note(invariant: string, fault: unknown): void {
  // Work of a host that has ended fails with this error, wherever it is.
  if (fault instanceof HostGone) return;
  unhandled.push({ invariant, what: fault instanceof Error ? (fault.stack ?? fault.message) : String(fault) });
}

process.on('unhandledRejection', (fault) => note('unhandled rejection', fault));
process.on('uncaughtException', (fault) => note('uncaught exception', fault));

async function answer({ history, isDetailed, brokenBy }: Task): Promise<Answer> {
  const broken = SWITCHES.find(({ name }) => name === brokenBy);
  const { seen, violations } = await checkHistory(
    typeof history === 'number' ? (broken?.historyOf ?? historyOf)(history) : history,
    broken?.ports(),
  );
  // Node reports a rejection after the microtasks.
  await turn();
  const digest = createHash('sha256')
    .update(JSON.stringify([seen?.facts, seen?.events, seen?.earlier.map(({ facts }) => facts)]))
    .digest('hex');
  return { violations: [...violations, ...unhandled.splice(0)], digest, seen: isDetailed ? seen : null };
}

parentPort?.on('message', (task: Task) => {
  void answer(task).then((given) => parentPort?.postMessage(given, []));
});
