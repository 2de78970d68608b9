/**
 * Recovers the work of an earlier host (J2, J3).
 *
 * Owns whether that has happened on this host, and which feeds were admitted. Does not own the notes about work that
 * froze its host (replay/recovery-queue.ts), or the runs.
 *
 * Invariants:
 *  1. Runs continue in their original order, each after the end of its record.
 *  2. A run whose record cannot be replayed, or that was recovered too often, is ended.
 */
import { messageOf } from '../../domain/errors.ts';
import type { RunError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Feeds } from '../feeds/feeds.ts';
import { Replay } from '../replay/replay.ts';
import type { RunSource } from '../run/run-context.ts';
import { recordOf, sourceOf } from './run-setup.ts';
import type { SessionScope } from './session-ports.ts';
import { workOf } from './session-runs.ts';
import type { SessionRuns } from './session-runs.ts';

/** Prefix of a feed's name in recovery notes. */
const FEED_WORK = 'feed ';

export class SessionRecovery {
  readonly #scope: SessionScope;
  readonly #runs: SessionRuns;
  readonly #feeds: Feeds;
  #recovering: Promise<void> | null = null;
  #isOver = false;
  /** Runs of this host have lost their owner since. */
  #isRepeated = false;
  /** Resolves when some of the work has to wait for its slot. */
  readonly #delayed = Promise.withResolvers<void>();
  /** Feeds whose first refresh on this host has a note. */
  readonly #notedFeeds = new Set<string>();

  constructor(scope: SessionScope, runs: SessionRuns, feeds: Feeds) {
    this.#scope = scope;
    this.#runs = runs;
    this.#feeds = feeds;
  }

  /** @param purpose readers do not wait for work that has to wait for its own slot */
  async recover(purpose: 'act' | 'read'): Promise<void> {
    // A recovery that is under way ends first: no run is recovered twice.
    if (this.#isOver && this.#isRepeated) {
      this.#isOver = this.#isRepeated = false;
      this.#recovering = null;
    }
    this.#recovering ??= this.#recoverRuns().catch((fault: unknown) => {
      // The next call tries again.
      this.#recovering = null;
      throw fault;
    });
    await (purpose === 'act' ? this.#recovering : Promise.race([this.#recovering, this.#delayed.promise]));
  }

  /** A run of this host has lost its owner: the next recovery takes it up, like a run of an earlier host. */
  repeat(): void {
    this.#isRepeated = true;
  }

  /** Whether runs of an earlier host have no owner yet: the session must be woken for them. */
  get isPending(): boolean {
    return (!this.#isOver || this.#isRepeated) && this.#scope.journal.runs.open().length > 0;
  }

  /** @returns why the run is not recovered, if it froze its hosts; null if it is recovered */
  async admitRun(run: number): Promise<string | null> {
    return await this.#take(workOf(run));
  }

  /** Whether a periodic feed may be refreshed: not if it froze its hosts, until the next message. */
  async admitFeed(feed: FeedDefinition): Promise<boolean> {
    if (this.#notedFeeds.has(feed.id)) return true;
    const aside = await this.#take(`${FEED_WORK}${feed.id}`);
    if (aside !== null) {
      const isNews = this.#feeds.refuse(feed, `recovery_exhausted: quarantined until the next message: ${aside}`);
      const { session_id: session } = recordOf(this.#scope);
      const message = `feed "${feed.id}" of session ${session} is quarantined: ${aside}`;
      if (isNews) this.#scope.log('work_quarantined', { message });
      return false;
    }
    this.#notedFeeds.add(feed.id);
    return true;
  }

  /** The feed's refresh has ended; removes its note. */
  endFeed(feed: FeedDefinition): void {
    this.#scope.recoveryQueue.end(`${FEED_WORK}${feed.id}`);
  }

  /** A message has arrived: quarantined feeds are tried again. */
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
      if (record.status === 'queued') this.#runs.add({ run: record.run, source, isRecovered: true }, false);
      else await this.#recoverRun(record, source);
    }
    // What waits may have lost the message that took its place: the cancel was not written (J8).
    this.#runs.supersede();
    this.#isOver = true;
    if (!this.#isRepeated) this.#runs.recovered();
    this.#runs.next();
  }

  async #recoverRun(record: RunRecord, source: () => RunSource): Promise<void> {
    this.#runs.trackEnd(record.run);
    const aside = await this.admitRun(record.run);
    if (aside !== null) return await this.#runs.endFrozen(record, aside);
    try {
      const replay = new Replay(this.#scope.journal, record);
      if (replay.recoveries >= limits.recoveries) {
        const message = `The run failed because the host was restarted ${replay.recoveries} times during it`;
        await this.#fail(record, { code: 'recovery_exhausted', message });
      } else if (replay.empty) {
        // Its first event was not written, and others may have been since.
        this.#scope.journal.runs.start(record.run, this.#scope.clock.now());
        this.#runs.start(record.run, source());
      } else this.#runs.start(record.run, source(), replay);
    } catch (fault) {
      this.#scope.log('internal_error', { fault });
      await this.#fail(record, {
        code: 'interrupted',
        message: `The session was restarted during this run, and the run cannot continue: ${messageOf(fault)}`,
      });
    }
  }

  /** Ends a run as failed instead of recovering it, and removes its note. */
  async #fail(record: RunRecord, error: RunError): Promise<void> {
    await this.#runs.fail(record, error);
    this.#scope.recoveryQueue.end(workOf(record.run));
  }
}
