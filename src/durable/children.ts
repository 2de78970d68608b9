/** Sub-agents and workflows: child sessions, each in a separate object (M7). */
import { backoffMs } from '../domain/backoff.ts';
import { EngineError, ERROR_TABLE } from '../domain/errors.ts';
import { RUN_END_EVENTS } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { pause, unlessAborted } from '../domain/sleep.ts';
import type { ChildEnd, ChildObserver, ChildSessions } from '../domain/ports/children.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Spent } from '../domain/spent.ts';
import type { SessionRecord } from '../domain/session.ts';
import { NOTHING_SPENT, addSpent } from '../domain/spent.ts';
import { mergeApprovals } from '../engine/actions/approval-list.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import type { EventBatch } from '../engine/session/broadcaster.ts';
import { childIdSource, childRecord } from '../engine/session/child-record.ts';
import { ThreadShare } from '../domain/fair-queue.ts';
import { Pacer } from '../domain/work.ts';
import { catalogRevisions } from './catalogs.ts';
import { platformQueue } from './platform.ts';
import { sessionIdOf } from './session-ids.ts';
import type { Env, Remote, SessionRpc } from './env.ts';
import { valueOf } from './reply.ts';

/** Prefix of the storage keys with the ids of child sessions. */
const KEPT = 'child:';

/**
 * @param storage stores the ids of the children, so that they can be deleted with the session
 * @param parent the parent session
 * @param running receives the ids of the children whose end is awaited
 */
export function childSessions(
  env: Env,
  clock: Clock,
  storage: DurableObjectStorage,
  parent: () => SessionRecord,
  running: Set<string> = new Set(),
): ChildSessions {
  return {
    async run(request, observer) {
      // A tree of children uses as much of the thread as an expensive evaluation. An abort does not end the wait,
      // because a running child must be cancelled.
      const steps = limits.childStartSteps;
      await new Pacer(new ThreadShare(platformQueue, () => parent().owner)).once(steps, (meter) => meter.charge(steps));
      const id = await sessionIdOf(env, childIdSource(request));
      const record = childRecord(id, parent(), request, clock.now());
      const session = sessionOf(env, record.session_id);
      // Until its end reports the actual number, it counts with all sessions that it may start.
      const most: Spent = { ...NOTHING_SPENT, children: 1 + (request.budget?.children ?? 0) };
      storage.kv.put(`${KEPT}${record.session_id}`, most);
      const runId = await session.startChild(record, request, catalogRevisions.of(record.owner));
      running.add(record.session_id);
      try {
        const end = await new Child(session, runId, clock).follow(observer);
        storage.kv.put(`${KEPT}${record.session_id}`, end.spent);
        return end;
      } finally {
        running.delete(record.session_id);
      }
    },
  };
}

/** Open approvals of running children and of their children (J8). A child that does not answer is left out. */
export async function approvalsOfChildren(
  env: Env,
  running: ReadonlySet<string>,
  page: ApprovalsPage,
): Promise<OpenApproval[]> {
  const replies = await Promise.allSettled([...running].map((id) => sessionOf(env, id).openApprovals(page)));
  const lists = replies.map((reply) =>
    reply.status === 'fulfilled' && reply.value.type === 'ok' ? (reply.value.value ?? []) : [],
  );
  return mergeApprovals(lists, page.limit);
}

/** The spending of all child sessions, including nested ones. */
export function spentByChildren(storage: DurableObjectStorage): Spent {
  let sum = NOTHING_SPENT;
  for (const [, kept] of storage.kv.list<Spent | true>({ prefix: KEPT })) {
    // Earlier versions stored only that there is a child.
    const spent = kept === true ? { ...NOTHING_SPENT, children: 1 } : kept;
    sum = addSpent(sum, spent);
  }
  return sum;
}

/** Deletes every session that this one started, and their children. Ignores sessions that are already deleted. */
export async function deleteChildren(env: Env, storage: DurableObjectStorage): Promise<void> {
  const ids = [...storage.kv.list({ prefix: KEPT })].map(([key]) => key.slice(KEPT.length));
  await Promise.allSettled(ids.map((id) => sessionOf(env, id).remove()));
}

function sessionOf(env: Env, id: string): Remote<SessionRpc> {
  return env.SESSIONS.getByName(id);
}

/** One child session, from the parent's point of view. */
class Child {
  readonly #session: Remote<SessionRpc>;
  readonly #runId: string;
  readonly #clock: Clock;
  #lastSeq = 0;

  constructor(session: Remote<SessionRpc>, runId: string, clock: Clock) {
    this.#session = session;
    this.#runId = runId;
    this.#clock = clock;
  }

  /** Reads events until the run has ended, across any number of disconnects: each new request wakes the child. */
  async follow({ signal, event }: ChildObserver): Promise<ChildEnd> {
    for (let failures = 0; ;) {
      if (signal.aborted) return await this.#cancel(signal);
      const before = this.#lastSeq;
      try {
        if (await this.#read(signal, event)) return await this.#end();
      } catch (fault) {
        if (isGone(fault)) throw fault;
      }
      failures = this.#lastSeq > before ? 1 : failures + 1;
      const retry = { delayMs: limits.childRetryMs, maxDelayMs: limits.childRetryMaxMs };
      await pause(backoffMs(retry, failures), this.#clock, signal);
    }
  }

  /** @returns whether the run has ended */
  async #read(signal: AbortSignal, onEvent: (event: JsonObject) => void): Promise<boolean> {
    let hasEnded = false;
    const take = (batch: EventBatch): boolean => {
      if (signal.aborted) return false;
      for (const event of batch) {
        this.#lastSeq = event.seq ?? this.#lastSeq;
        // An event is plain JSON; its interfaces only lack the index signature.
        onEvent(event as unknown as JsonObject);
        if (event.run_id === this.#runId && RUN_END_EVENTS.has(event.type)) hasEnded = true;
      }
      return !hasEnded;
    };
    const following = this.#session.follow(this.#runId, this.#lastSeq, take);
    valueOf(await unlessAborted(following, signal));
    return hasEnded;
  }

  async #end(): Promise<ChildEnd> {
    return valueOf(await this.#session.childEnd(this.#runId));
  }

  /**
   * Cancels the child and everything that it has started. Retries while its host is unavailable, for as long as a
   * cancel may take (J5).
   */
  async #cancel(signal: AbortSignal): Promise<ChildEnd> {
    const reason: unknown = signal.reason instanceof Error ? signal.reason.message : signal.reason;
    const until = this.#clock.now() + limits.cancelGraceMs;
    for (;;) {
      try {
        valueOf(await this.#session.cancelChild(`the parent session: ${String(reason)}`.slice(0, 200)));
        return await this.#end();
      } catch (fault) {
        if (isGone(fault) || this.#clock.now() >= until) throw fault;
        await pause(limits.childRetryMs, this.#clock);
      }
    }
  }
}

/**
 * A deleted session stays deleted. Other errors pass: the child's host, or this one, is going away, or a roll-out has not
 * reached the child's host yet.
 */
function isGone(fault: unknown): boolean {
  return fault instanceof EngineError && ERROR_TABLE[fault.code].status === 404;
}
