/**
 * Fetches the feeds that a generation's text refers to, before the text that refers to them is acted on (F2, P12).
 *
 * Prompts fetch all feeds of an agent. Posted text has no prompt, and a model may refer to a feed that its prompt
 * lacked. The stream of the text therefore waits here, so that the value is in the journal before an action or a response
 * uses it (J1).
 *
 * Owns the names that the text has declared so far. Does not own the values, or their state after a failure.
 *
 * Invariants:
 *  1. Text without references costs nothing, and text without a reference to a feed never waits.
 *  2. Each feed is fetched at most once in a run, unless its value expires.
 */
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import type { RunContext } from '../run/run-context.ts';
import type { FetchFeed, FeedView } from './feeds.ts';

type Warning = Extract<ProtocolEvent, { type: 'warning' }>;

interface Given {
  readonly context: Pick<RunContext, 'feeds' | 'resolved' | 'clock'>;
  readonly fetch: FetchFeed;
  /** When the run was created, epoch milliseconds. */
  readonly since: number;
  /** Whether a name means something other than a feed: a result or a variable. */
  readonly isTaken: (name: string) => boolean;
}

export class ReferredFeeds {
  readonly #given: Given;
  /** Ids and output keys that the text has declared; the run may not have read them yet. */
  readonly #declared = new Set<string>();
  /** Feeds that were fetched for a reference in this run and gave no new value. */
  readonly #failed = new Set<string>();

  constructor(given: Given) {
    this.#given = given;
  }

  /** Whether the text mentions a feed, so that it is worth reading it in small pieces. */
  mayRefer(text: string): boolean {
    const { feeds, resolved } = this.#given.context;
    if (feeds.isEmpty(resolved) || !text.includes('$')) return false;
    return this.#list().some(({ feed: { id } }) => text.includes(`$${id}`) || text.includes(`\${${id}`));
  }

  /**
   * Fetches the feeds that these events refer to.
   *
   * @returns null if there is nothing to wait for; else the warnings about feeds that have no current value
   */
  read(events: readonly ProtocolEvent[], signal: AbortSignal): Promise<readonly Warning[]> | null {
    const names = this.#namesIn(events);
    const { feeds, resolved } = this.#given.context;
    if (names === null || signal.aborted || feeds.isEmpty(resolved)) return null;
    const missing = this.#list().filter(
      (view) => names.has(view.feed.id) && !this.#given.isTaken(view.feed.id) && this.#mustFetch(view),
    );
    return missing.length === 0 ? null : this.#fetch(missing, signal);
  }

  #list(): FeedView[] {
    const { feeds, resolved } = this.#given.context;
    return feeds.list(resolved);
  }

  /** Names in the events that the text has not declared; null if there are none. */
  #namesIn(events: readonly ProtocolEvent[]): ReadonlySet<string> | null {
    let names: Set<string> | null = null;
    const refer = (name: string): void => {
      if (!this.#declared.has(name)) (names ??= new Set()).add(name);
    };
    for (const event of events) {
      if (event.type === 'response_reference') refer(event.reference.name);
      if (event.type !== 'action_declared') continue;
      const { id, outputKey, references } = event.action;
      for (const name of references) refer(name);
      this.#declared.add(id);
      if (outputKey !== null) this.#declared.add(outputKey);
    }
    return names;
  }

  #mustFetch(view: FeedView): boolean {
    const { context, since } = this.#given;
    const { id, enabled } = view.feed;
    return enabled && !this.#failed.has(id) && !context.feeds.isCurrent(view, since);
  }

  async #fetch(views: readonly FeedView[], signal: AbortSignal): Promise<readonly Warning[]> {
    const { feeds, resolved } = this.#given.context;
    const begun = this.#given.context.clock.now();
    const waitMs = views.some((view) => !hasValue(view)) ? limits.feedReferenceMs : limits.feedDeadlineMs;
    await feeds.fetchNow(
      views.map(({ feed }) => feed),
      this.#given.fetch,
      waitMs,
      signal,
    );
    return views.flatMap(({ feed: { id } }) => {
      const view = feeds.find(resolved, id);
      if (view === undefined || (view.error === null && (view.at ?? -1) >= begun)) return [];
      this.#failed.add(id);
      return signal.aborted ? [] : [this.#warning(view, waitMs)];
    });
  }

  #warning({ feed, at, error }: FeedView, waitMs: number): Warning {
    const why = error ?? `it did not answer within ${waitMs / 1_000} s`;
    const ageMs = at === null ? null : this.#given.context.clock.now() - at;
    const used =
      ageMs !== null
        ? `its value of ${Math.round(ageMs / 1_000)} s ago is used`
        : feed.defaultValue !== null
          ? 'its default is used'
          : 'it has no value';
    const message = `The feed "${feed.id}" could not be read: ${why}; ${used}`;
    return { type: 'warning', code: 'feed_unavailable', message, offset: 0 };
  }
}

function hasValue({ feed, at }: { readonly feed: FeedDefinition; readonly at: number | null }): boolean {
  return at !== null || feed.defaultValue !== null;
}
