/** The log of a run with its own journal, for tests of code that writes to it. */
import type { SessionEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { RunRecord } from '../../src/domain/session.ts';
import { Replay } from '../../src/engine/replay/replay.ts';
import { RunLog } from '../../src/engine/run/run-log.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { newJournal, SESSION_ID } from '../journal/journal-kit.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { openNodeSql } from './node-sql.ts';

export interface LogKit {
  readonly log: RunLog;
  readonly journal: Journal;
  readonly clock: VirtualClock;
  readonly run: RunRecord;
  readonly replay: Replay | null;
  /** Commits, and returns everything that readers have received so far. */
  sent(): Promise<readonly SessionEvent[]>;
  /** The event as recovery reads it. */
  stateOf(seq: number): JsonObject | null;
}

/** @param recorded replays the record of an empty run first; `replay.finish()` ends it */
export function logKit(options: { readonly recorded?: boolean } = {}): LogKit {
  const journal = newJournal(openNodeSql());
  const clock = new VirtualClock();
  const run = journal.runs.create({ content: 'x' }, clock.now(), 'running');
  const replay = options.recorded === true ? new Replay(journal, run) : null;
  const published: SessionEvent[] = [];
  const log = new RunLog({
    journal,
    clock,
    runId: run.runId,
    runNumber: run.run,
    sessionId: SESSION_ID,
    publish: (events) => void published.push(...events),
    replay,
  });
  return {
    log,
    journal,
    clock,
    run,
    replay,
    sent: async () => {
      await log.commit();
      return published;
    },
    stateOf: (seq) => journal.stateAt(seq),
  };
}
