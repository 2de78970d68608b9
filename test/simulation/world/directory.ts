/**
 * The lists of all sessions and their runs, which outlives the hosts: the real table, behind a network that takes time and fails as the
 * history plans.
 *
 * Invariants:
 *  1. What a host has sent arrives, also after the end of the host.
 *  2. It is sent when everything that the host has written before is durable, as the platform guarantees.
 */
import type { DirectoryEntry, DirectoryIndex } from '../../../src/domain/directory.ts';
import type { SqlDatabase } from '../../../src/domain/ports/storage.ts';
import { DirectoryShard } from '../../../src/policies/directory-shard.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { Fault } from '../history.ts';
import type { Listed, ListedRun } from '../observation.ts';
import { DiskFailure } from './disk-failure.ts';
import type { Life } from './life.ts';
import type { Stage } from './stage.ts';

/** The history wants that the index does not answer. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** There, and back. */
const ONE_WAY_MS = 2;
/** What arrives late arrives at most this long after the index answers again. */
const MOST_LATE_MS = 5_000;

export class WorldDirectory {
  readonly #stage: Stage;
  readonly #sql: SqlDatabase;
  readonly #shard: DirectoryShard;
  /** Calls so far. */
  #calls = 0;
  /** What was sent and has not arrived. */
  underway = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#sql = stage.statements.over(openNodeSql(), 'index', () => this.#calls > 0);
    this.#shard = new DirectoryShard(
      this.#sql,
      () => stage.hostNow,
      () => Number.MAX_SAFE_INTEGER,
    );
  }

  /** As a host sees it. */
  of(life: Life): DirectoryIndex {
    return {
      write: (record) =>
        this.#call(life, () => {
          if (this.#stage.broken.losesEntries !== true) this.#shard.write(record);
        }),
      forget: (id, incarnation) => this.#call(life, () => this.#shard.forget(id, incarnation)),
    };
  }

  get listed(): Listed[] {
    return this.#sql
      .exec(`SELECT incarnation, entry FROM sessions WHERE deleted_at IS NULL`)
      .map(({ incarnation, entry }) => ({
        incarnation: String(incarnation),
        entry: JSON.parse(String(entry)) as DirectoryEntry,
      }));
  }

  /** The status of each run that the index has. */
  get runs(): ListedRun[] {
    return this.#sql
      .exec(`SELECT execution_id, status FROM executions ORDER BY execution_id`)
      .map(({ execution_id: id, status }) => ({ id: String(id), status: String(status) }));
  }

  async #call(life: Life, act: () => void): Promise<void> {
    await life.gate();
    const { time } = this.#stage;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#calls += 1;
    const call = this.#calls;
    time.after(ONE_WAY_MS, () => {
      const fault = this.#fault();
      // Some of it arrives before the answer is lost, and some much later.
      if (fault?.works === true) this.#arrive(call % 2 === 0 ? 0 : fault.at + fault.forMs - time.now + late(call), act);
      const isDone = fault === null && isDoneBy(act);
      time.after(ONE_WAY_MS, () => (isDone ? resolve() : reject(new NoAnswer())));
    });
    await life.answered(promise);
  }

  #arrive(afterMs: number, act: () => void): void {
    this.underway += 1;
    this.#stage.time.after(afterMs, () => {
      this.underway -= 1;
      isDoneBy(act);
    });
  }

  #fault(): Extract<Fault, { type: 'index' }> | null {
    const { history, time } = this.#stage;
    const now = history.faults.flatMap((fault) =>
      fault.type === 'index' && fault.at <= time.now && time.now < fault.at + fault.forMs ? [fault] : [],
    );
    return now.find(({ works }) => !works) ?? now[0] ?? null;
  }
}

/** Whether no statement of it failed. */
function isDoneBy(act: () => void): boolean {
  try {
    act();
    return true;
  } catch (fault) {
    if (fault instanceof DiskFailure) return false;
    throw fault;
  }
}

/** Different for each call. */
function late(call: number): number {
  return (call * 1_613) % MOST_LATE_MS;
}
