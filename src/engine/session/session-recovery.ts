/**
 * Recovers the work that an earlier host left (J2, J3).
 *
 * Owns whether that has happened on this host, and which feeds were allowed to. Does not own the notes about work that
 * froze its host (replay/recovery-queue.ts), nor the runs.
 *
 * Invariants:
 *  1. Runs go on in the order in which they came, each where its record ends.
 *  2. A run whose record cannot be replayed, or that was recovered too often, is ended.
 */
import { messageOf } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition } from '../../domain/manifest.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Feeds } from '../feeds/feeds.ts';
import { Replay } from '../replay/replay.ts';
import type { RunSource } from '../run/run-context.ts';
import { recordOf, sourceOf } from './run-setup.ts';
import type { SessionScope } from './session-ports.ts';
import { workOf } from './session-runs.ts';
import type { SessionRuns } from './session-runs.ts';

/** Prefix of a feed's name in notes about recovered work. */
const FEED_WORK = 'feed ';

export class SessionRecovery {
  readonly #scope: SessionScope;
  readonly #runs: SessionRuns;
  readonly #feeds: Feeds;
  #recovering: Promise<void> | null = null;
  #isOver = false;
  /** Resolves when some of the work has to wait for its turn. */
  readonly #delayed = Promise.withResolvers<void>();
  /** Feeds whose first refresh on this host has been noted. */
  readonly #notedFeeds = new Set<string>();

  constructor(scope: SessionScope, runs: SessionRuns, feeds: Feeds) {
    this.#scope = scope;
    this.#runs = runs;
    this.#feeds = feeds;
  }

  /** @param purpose a reader does not wait for work that has to wait for its own turn */
  async recover(purpose: 'to act' | 'to read'): Promise<void> {
    this.#recovering ??= this.#recoverRuns().catch((fault: unknown) => {
      // The next call tries again.
      this.#recovering = null;
      throw fault;
    });
    await (purpose === 'to act' ? this.#recovering : Promise.race([this.#recovering, this.#delayed.promise]));
  }

  /** Whether runs of an earlier host have no owner yet: the session must be woken for them. */
  get isPending(): boolean {
    return !this.#isOver && this.#scope.journal.runs.open().length > 0;
  }

  /** @returns why the run is not recovered, where it froze its hosts; null when it is */
  async admitRun(run: number): Promise<string | null> {
    return await this.#take(workOf(run));
  }

  /** Whether a feed's clock may refresh it: not one that froze its hosts, until the next message. */
  async admitFeed(feed: FeedDefinition): Promise<boolean> {
    if (this.#notedFeeds.has(feed.id)) return true;
    const aside = await this.#take(`${FEED_WORK}${feed.id}`);
    if (aside !== null) {
      const isNews = this.#feeds.refuse(feed, `recovery_exhausted: set aside until the next message: ${aside}`);
      const { session_id: session } = recordOf(this.#scope);
      if (isNews) this.#scope.log(`feed "${feed.id}" of session ${session} is set aside: ${aside}`);
      return false;
    }
    this.#notedFeeds.add(feed.id);
    return true;
  }

  /** A message has come: feeds that were set aside are tried again. */
  forgiveFeeds(): void {
    this.#scope.recoveryQueue.forgive(FEED_WORK);
  }

  async #take(work: string): Promise<string | null> {
    return await this.#scope.recoveryQueue.take(work, () => this.#delayed.resolve());
  }

  async #recoverRuns(): Promise<void> {
    for (const record of this.#scope.journal.runs.open()) {
      if (this.#runs.has(record.run)) continue;
      const source = (): RunSource => sourceOf(this.#scope, record, null);
      if (record.status === 'queued') this.#runs.add({ run: record.run, source, isLeft: true }, false);
      else await this.#recoverRun(record, source);
    }
    this.#isOver = true;
    this.#runs.next();
  }

  async #recoverRun(record: RunRecord, source: () => RunSource): Promise<void> {
    this.#runs.expect(record.run);
    const aside = await this.admitRun(record.run);
    if (aside !== null) return await this.#runs.setAside(record, aside);
    try {
      const replay = new Replay(this.#scope.journal, record);
      if (replay.recoveries >= limits.recoveries) {
        const message = `The host was restarted ${replay.recoveries} times during this run: it is given up`;
        await this.#runs.giveUp(record, { code: 'recovery_exhausted', message });
      } else this.#runs.start(record.run, source(), replay.empty ? null : replay);
      // Waiting for a person is no work that could freeze its host.
      if (this.#runs.get(record.run)?.end === 'waiting') this.#scope.recoveryQueue.end(workOf(record.run));
    } catch (fault) {
      this.#scope.log(fault);
      await this.#runs.giveUp(record, {
        code: 'interrupted',
        message: `The session was restarted while this run was going on, and it cannot go on: ${messageOf(fault)}`,
      });
    }
  }
}
