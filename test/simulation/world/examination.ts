/** Examines the record at the end of a history: other hosts must show the same state. */
import { limits } from '../../../src/domain/limits.ts';
import { runIdOf } from '../../../src/journal/run-id.ts';
import type { Replacement } from '../observation.ts';
import type { Host } from './host.ts';
import type { Rows } from './rows.ts';
import type { Stage } from './stage.ts';
import { turn } from './turn.ts';

/** More steps mean that a recovery never ends. */
const MOST_STEPS = 30_000;

export class Examination {
  readonly #stage: Stage;
  readonly #rows: Rows;
  readonly #live: () => Host | null;

  /** @param live the current host, started if necessary */
  constructor(stage: Stage, rows: Rows, live: () => Host | null) {
    this.#stage = stage;
    this.#rows = rows;
    this.#live = live;
  }

  /** Replaces the host while nothing happens: the next one must show the same state. */
  async replace(when: string): Promise<Replacement> {
    const before = this.#shown();
    this.#live()?.life.end('replaced', 1);
    await this.#recovered();
    return { when, before, after: this.#shown() };
  }

  /** Replays the record of every ended run: it must lead to the recorded end, and write nothing. */
  async replayEnded(): Promise<Replacement> {
    const { disk, incarnation } = this.#stage;
    const ended = this.#rows.endedRuns(limits.recoveries);
    const before = this.#shown();
    this.#live()?.life.end('replaced', 1);
    for (const run of ended) {
      if (this.#stage.abandoned.has(runIdOf(this.#stage.identity(incarnation), run))) continue;
      disk.exec(`UPDATE runs SET open = 1 WHERE run = ?`, [run], true);
    }
    // Notes about the hosts that were lost would keep a run from being replayed.
    if (this.#rows.query('taken_up', `SELECT 1 FROM taken_up LIMIT 1`).length > 0) {
      disk.exec(`DELETE FROM taken_up`, [], true);
    }
    disk.commit();
    await this.#recovered();
    return { when: 'replayed', before, after: this.#shown() };
  }

  /** Recovery may have to wait for its slot. */
  async #recovered(): Promise<void> {
    let isOver = false;
    const recovery = this.#live()?.session.recover();
    if (recovery === undefined) return;
    recovery.catch(() => undefined).finally(() => (isOver = true));
    for (let steps = 0; steps < MOST_STEPS; steps += 1) {
      await turn();
      if ((isOver && this.#live()?.session.busy !== true) || !this.#stage.time.step()) break;
    }
  }

  #shown(): unknown {
    const session = this.#live()?.session;
    if (session === undefined || !session.exists) return null;
    return {
      lastSeq: session.lastSeq,
      status: session.status,
      runs: session.runs(1_000).map(({ run, status, firstSeq, lastSeq }) => ({ run, status, firstSeq, lastSeq })),
      approvals: session.openApprovalIds,
      rows: this.#rows.openRuns,
    };
  }
}
