/**
 * One feed that sessions of a namespace share (F6). Calls the source, and stores the latest value until it is no longer
 * used. The definitions, which contain secrets, come with each request and are not stored.
 */
import { DurableObject } from 'cloudflare:workers';
import { ThreadShare } from '../../domain/fair-queue.ts';
import type { Json } from '../../domain/json.ts';
import type { RunnerClient } from '../../domain/ports/runner.ts';
import type { SharedFeedRequest, SharedFeedValue } from '../../domain/ports/shared-values.ts';
import { Pacer } from '../../domain/work.ts';
import { callSource } from '../../engine/feeds/feed-sources.ts';
import { SharedFeed } from '../../engine/feeds/shared-feed.ts';
import type { StoredFeed } from '../../engine/feeds/shared-feed.ts';
import { redactingExecutors, redactor } from '../../engine/session/redact.ts';
import { createExecutors } from '../../executors/registry.ts';
import type { ActionContext } from '../../executors/executor.ts';
import { secretsOf } from '../../settings/secrets.ts';
import { readSettings } from '../../settings/settings.ts';
import type { Env, SharedFeedRpc } from '../env.ts';
import { readHtml } from '../html-reader.ts';
import { invocationNetwork } from '../network.ts';
import { platformClock, platformQueue } from '../platform.ts';
import { edgeRelics } from '../relics.ts';
import { egressOf, outboundOf, runnerOf } from '../runner.ts';

const KEY = 'feed';

export class SharedFeedObject extends DurableObject<Env> implements SharedFeedRpc {
  /** The same for all callers. */
  #owner: string | null = null;
  #runner: RunnerClient | null | undefined;
  /** A feed has one source, so its own connections are sufficient. */
  readonly #network = invocationNetwork(readSettings(this.env));
  /** Identifies the feed to runners, in place of a session. */
  readonly #id = `feed_${this.ctx.id.toString()}`;
  readonly #pacer = new Pacer(new ThreadShare(platformQueue, () => this.#owner));
  readonly #feed = new SharedFeed(platformClock, {
    read: () => this.ctx.storage.kv.get<StoredFeed>(KEY) ?? null,
    write: (stored, deleteAt) => {
      this.ctx.storage.kv.put(KEY, stored);
      this.ctx.waitUntil(this.ctx.storage.setAlarm(deleteAt));
    },
  });

  async read(request: SharedFeedRequest): Promise<SharedFeedValue> {
    this.#network.topUp();
    this.#owner = request.owner;
    return await this.#feed.read(request, (signal) => {
      const fetching = this.#fetch(request, signal);
      // A caller that does not wait for it leaves it running.
      this.ctx.waitUntil(fetching.catch(() => undefined));
      return fetching;
    });
  }

  async #fetch({ owner, source, tool, relic }: SharedFeedRequest, signal: AbortSignal): Promise<Json> {
    const { env } = this;
    const settings = readSettings(env);
    const network = this.#network;
    this.#runner ??= runnerOf(env, settings, network, () => this.#owner);
    const context: ActionContext = {
      signal,
      clock: platformClock,
      pacer: this.#pacer,
      session: this.#id,
      owner,
      progress: () => undefined,
      variables: { get: () => undefined, set: () => undefined, delete: () => false, entries: () => [] },
      internalActions: { enabled: false, allowed: [], blocked: [] },
      runner: this.#runner,
      edgeRelics: edgeRelics(env, this.ctx.storage, () => this.#id),
      children: { run: () => Promise.reject(new Error('a shared feed starts no sessions')) },
      fetch: outboundOf(
        settings,
        network,
        egressOf(env, settings, network, () => ({ session_id: this.#id, owner })),
      ),
      readHtml,
      feeds: null,
      callModel: () => Promise.reject(new Error('a shared feed calls no model')),
    };
    const executors = redactingExecutors(createExecutors(), redactor(secretsOf(env, { owner })));
    const call = { id: 'shared', source, tool, relic, key: `${this.#id}/feed/${platformClock.now()}` };
    return await callSource(call, executors, context);
  }

  /** No session has asked for the value for a long time. */
  override async alarm(): Promise<void> {
    await this.ctx.storage.deleteAll();
  }
}
