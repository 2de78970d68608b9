/**
 * A session's feeds between its model calls: periodic refreshes, and events about changes (F3).
 *
 * Does not own the feeds, which are in feeds/feeds.ts. No feed is refreshed if the session has not been used for a
 * while.
 */
import type { EventData } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { runIdOf } from '../../journal/run-id.ts';
import { fetchFeed } from '../feeds/feed-sources.ts';
import { viewJson } from '../feeds/feed-store.ts';
import type { FetchFeed } from '../feeds/feeds.ts';
import { boundChildren } from '../policy/policy-lists.ts';
import { outgoingEntry } from '../run/outgoing-events.ts';
import { redactedChildren } from './patterns-of-children.ts';
import { resolveAgentVariables } from './resolve-agent-variables.ts';
import { currentAgent, policiesOfRun, recordOf } from './run-setup.ts';
import type { SessionMemory } from './session-memory.ts';
import type { SessionScope } from './session-ports.ts';
import type { SessionRecovery } from './session-recovery.ts';
import type { OutgoingText } from './outgoing-text.ts';
import type { SessionRedaction } from './session-redaction.ts';
import type { SessionRuns } from './session-runs.ts';

export class SessionFeeds {
  readonly #scope: SessionScope;
  readonly #memory: SessionMemory;
  readonly #runs: SessionRuns;
  readonly #recovery: SessionRecovery;
  readonly #redaction: SessionRedaction;

  constructor(
    scope: SessionScope,
    memory: SessionMemory,
    runs: SessionRuns,
    recovery: SessionRecovery,
    redaction: SessionRedaction,
  ) {
    this.#scope = scope;
    this.#memory = memory;
    this.#runs = runs;
    this.#recovery = recovery;
    this.#redaction = redaction;
  }

  /** The session's current feeds (F1). */
  list(): JsonObject[] {
    const agent = currentAgent(this.#scope);
    if (agent === null) return [];
    const { outgoing } = this.#redaction;
    return this.#memory.feeds.list(agent).map((feed) => outgoingFeed(viewJson(feed), outgoing));
  }

  /** When a periodic feed is due, epoch milliseconds; Infinity if none is. */
  nextRefresh(isIdle: boolean): number {
    const agent = this.#mayRefresh(isIdle) ? currentAgent(this.#scope) : null;
    return (agent === null ? null : this.#memory.feeds.due(agent).next) ?? Infinity;
  }

  /** Refreshes the periodic feeds that are due. */
  async refresh(isIdle: boolean): Promise<void> {
    const agent = this.#mayRefresh(isIdle) ? currentAgent(this.#scope) : null;
    if (agent === null) return;
    await Promise.all(
      this.#memory.feeds.due(agent).now.map(async (feed) => {
        if (!(await this.#recovery.admitFeed(feed))) return;
        try {
          // Nothing is read if the session was deleted meanwhile.
          await this.#memory.feeds.refresh(feed, async (...asked) => await this.#fetch(agent)(...asked));
        } finally {
          this.#recovery.endFeed(feed);
        }
      }),
    );
    await this.#scope.journal.sync();
  }

  /** Publishes a feed's change through the active run, else directly, in journal order. */
  changed(data: EventData['context_feed_updated']): void {
    const atWork = this.#runs.active.find(({ isHeld }) => isHeld);
    if (atWork !== undefined) return atWork.put({ type: 'feed', data });
    const { journal, clock } = this.#scope;
    const runId = runIdOf(recordOf(this.#scope), journal.runs.list(1)[0]?.run ?? 0);
    const entry = outgoingEntry(this.#redaction.redaction, 'context_feed_updated', { data });
    const head = { type: 'context_feed_updated', runId, iteration: 0, at: clock.now() } as const;
    const event = journal.append({ ...head, ...entry });
    this.#runs.publish([], [event]).catch((fault: unknown) => this.#scope.log('internal_error', { fault }));
  }

  /** Not if the session is idle, or has no room for new values. */
  #mayRefresh(isIdle: boolean): boolean {
    return !this.#scope.journal.full && !isIdle;
  }

  #fetch(agent: ResolvedAgent): FetchFeed {
    const record = recordOf(this.#scope);
    const { input = {} } = this.#scope.journal.runs.list(1)[0] ?? {};
    const policies = policiesOfRun(this.#scope, agent.agent, input);
    const ports = {
      ...this.#scope,
      record,
      resolved: resolveAgentVariables(agent, record),
      model: this.#scope.modelFor(agent),
      policies,
      children: redactedChildren(boundChildren(this.#scope.children, policies), this.#redaction.redaction),
      variables: this.#memory.variables,
      used: (): void => undefined,
      moment: null,
    };
    return (feed, signal) => fetchFeed(feed, ports, signal);
  }
}

/** Ids, times and the names of the source are not text (C9). */
function outgoingFeed(view: JsonObject, outgoing: OutgoingText): JsonObject {
  const { value = null, error = null, default: given, source } = view;
  const isMade = isJsonObject(source) && source['params'] !== undefined;
  return {
    ...view,
    value: outgoing.json(value),
    error: outgoing.json(error),
    ...(given === undefined ? {} : { default: outgoing.json(given) }),
    ...(isMade ? { source: { ...source, params: outgoing.json(source['params'] ?? null) } } : {}),
  };
}
