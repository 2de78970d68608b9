/**
 * One value that many sessions use (F6): fetched on demand when it is older than a caller allows, at most once at a time.
 *
 * Owns the latest value, and the pending fetch. Does not own the source, or where the value is stored.
 *
 * Invariants:
 *  1. Within a caller's maximum age, the source is called at most once, whether or not it answers.
 *  2. A caller that can be given an older value waits for a fetch at most as long as it asked for.
 *  3. A failed fetch leaves the value and its time.
 */
import { messageOf } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { SharedFeedRequest, SharedFeedValue } from '../../domain/ports/shared-values.ts';
import { cutValue } from './feeds.ts';

/** The stored state. */
export interface StoredFeed extends SharedFeedValue {
  /** When the latest fetch ended, epoch milliseconds. */
  readonly triedAt: number;
}

export interface SharedFeedStore {
  read(): StoredFeed | null;
  /** @param deleteAt when the value may be deleted if it is not fetched again, epoch milliseconds */
  write(stored: StoredFeed, deleteAt: number): void;
}

type Asked = Pick<SharedFeedRequest, 'maxAgeMs' | 'waitMs' | 'maxChars'>;

export class SharedFeed {
  readonly #clock: Clock;
  readonly #store: SharedFeedStore;
  #fetching: Promise<void> | null = null;

  constructor(clock: Clock, store: SharedFeedStore) {
    this.#clock = clock;
    this.#store = store;
  }

  /** The value; fetched first if it is too old. Never rejects: an error is part of the answer. */
  async read(asked: Asked, fetch: (signal: AbortSignal) => Promise<Json>): Promise<SharedFeedValue> {
    const known = this.#store.read();
    const slackMs = Math.min(limits.sharedFeedSlackMs, asked.maxAgeMs / 2);
    if (known === null || this.#clock.now() - known.triedAt >= asked.maxAgeMs - slackMs) {
      const fetching = (this.#fetching ??= this.#fetch(asked, fetch).finally(() => {
        this.#fetching = null;
      }));
      await (known?.at == null ? fetching : this.#within(fetching, asked.waitMs));
    }
    const { value = null, at = null, error = null } = this.#store.read() ?? {};
    return { value, at, error };
  }

  async #fetch({ maxAgeMs, maxChars }: Asked, fetch: (signal: AbortSignal) => Promise<Json>): Promise<void> {
    const abort = new AbortController();
    const late = Promise.withResolvers<never>();
    const cancel = this.#clock.schedule(limits.feedFetchMs, () => {
      const fault = new Error(`the feed did not answer within ${limits.feedFetchMs / 1_000} s`);
      late.reject(fault);
      abort.abort(fault);
    });
    const keep = (result: (before: StoredFeed | null, now: number) => SharedFeedValue): void => {
      const now = this.#clock.now();
      const deleteAt = now + Math.max(limits.sharedFeedKeptMs, 2 * maxAgeMs);
      this.#store.write({ ...result(this.#store.read(), now), triedAt: now }, deleteAt);
    };
    try {
      const value = cutValue(await Promise.race([fetch(abort.signal), late.promise]), maxChars);
      keep((_before, now) => ({ value, at: now, error: null }));
    } catch (fault) {
      keep((before) => ({ value: before?.value ?? null, at: before?.at ?? null, error: messageOf(fault) }));
    } finally {
      cancel();
    }
  }

  /** Resolves when `work` has ended or the time is over. */
  async #within(work: Promise<void>, ms: number): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.schedule(ms, late.resolve);
    await Promise.race([work, late.promise]).finally(cancel);
  }
}
