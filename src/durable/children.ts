/** Sub-agents and workflows: sessions that a session starts, each in an object of its own (M7). */
import { createParser } from 'eventsource-parser';
import { EngineError } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { ChildEnd, ChildObserver, ChildRequest, ChildSessions, Clock } from '../domain/ports.ts';
import type { Spent } from '../domain/spent.ts';
import type { SessionRecord } from '../domain/session.ts';
import { NOTHING_SPENT, addSpent } from '../domain/spent.ts';
import type { RunResult } from '../engine/run/run-result.ts';
import { OUTPUTS } from '../engine/workflow/workflow.ts';
import { PRINCIPAL_HEADER } from '../http/session-app.ts';
import { Share } from '../domain/turns.ts';
import { Pacer } from '../domain/work.ts';
import { platformTurns } from './platform.ts';
import { sessionIdOf } from './session-ids.ts';
import type { Env } from './env.ts';

const ENDS: ReadonlySet<string> = new Set(['agent_completed', 'agent_failed', 'agent_cancelled']);

/** Begins the names under which a session keeps the ids of those that it started. */
const KEPT = 'child:';

/**
 * @param storage keeps their ids, so that they can end with the session
 * @param parent the session that starts them
 */
export function childSessions(
  env: Env,
  clock: Clock,
  storage: DurableObjectStorage,
  parent: () => SessionRecord,
): ChildSessions {
  return {
    async run(request, observer) {
      // A tree of children takes as much of the thread as an expensive evaluation does. An abort does not end the wait:
      // a child that runs already must be told.
      const steps = limits.childStartSteps;
      await new Pacer(new Share(platformTurns, () => parent().owner)).once(steps, (meter) => meter.charge(steps));
      const record = await childRecord(env, parent(), request, clock.now());
      const stub = env.SESSIONS.getByName(record.session_id);
      // Until its end says how many it was, it counts with all that it may start.
      const most: Spent = { ...NOTHING_SPENT, children: 1 + (request.budget?.children ?? 0) };
      storage.kv.put(`${KEPT}${record.session_id}`, most);
      const runId = await stub.startChild(record, request);
      const end = await new Child(stub, record, runId, clock).follow(observer);
      storage.kv.put(`${KEPT}${record.session_id}`, end.spent);
      return end;
    },
  };
}

/** What the sessions have spent that this one started, with those that they started. */
export function spentBelow(storage: DurableObjectStorage): Spent {
  let sum = NOTHING_SPENT;
  for (const [, kept] of storage.kv.list<Spent | true>({ prefix: KEPT })) {
    // Older code kept no more than that there is one.
    const spent = kept === true ? { ...NOTHING_SPENT, children: 1 } : kept;
    sum = addSpent(sum, spent);
  }
  return sum;
}

/** Deletes every session that this one started, and with them those below. One that is gone already is no matter. */
export async function endChildren(env: Env, storage: DurableObjectStorage, parent: SessionRecord): Promise<void> {
  const ids = [...storage.kv.list({ prefix: KEPT })].map(([key]) => key.slice(KEPT.length));
  const init: RequestInit = {
    method: 'DELETE',
    ...(parent.owner === null ? {} : { headers: { [PRINCIPAL_HEADER]: parent.owner } }),
  };
  await Promise.allSettled(ids.map((id) => env.SESSIONS.getByName(id).fetch(new Request('http://session/', init))));
}

/**
 * The record of the child with this key. Its id comes of the key, which only its parent knows: so a
 * parent that has lost everything else finds it again.
 *
 * @throws EngineError `too_deep` when too many sessions stand above it
 */
async function childRecord(
  env: Env,
  parent: SessionRecord,
  request: ChildRequest,
  now: number,
): Promise<SessionRecord> {
  const depth = (parent.parent?.depth ?? 0) + 1;
  if (depth > limits.childDepth) {
    throw new EngineError(
      'too_deep',
      `"${request.name}" was not started: ${limits.childDepth} sessions stand above it, each started by the one before`,
      { beforeDispatch: true },
    );
  }
  return {
    session_id: await sessionIdOf(env, `child of ${request.key}`),
    agent: request.name,
    ...(request.kind === 'workflow' ? { workflow: request.name } : {}),
    user_id: parent.user_id,
    owner: parent.owner,
    kind: 'child',
    metadata: {},
    created_at: now,
    parent: { session_id: parent.session_id, key: request.key, depth },
  };
}

type SessionStub = ReturnType<Env['SESSIONS']['getByName']>;

/** One child as its parent sees it: over its own surface, like any other client. */
class Child {
  readonly #stub: SessionStub;
  readonly #record: SessionRecord;
  readonly #runId: string;
  readonly #clock: Clock;
  #lastSeq = 0;

  constructor(stub: SessionStub, record: SessionRecord, runId: string, clock: Clock) {
    this.#stub = stub;
    this.#record = record;
    this.#runId = runId;
    this.#clock = clock;
  }

  /** Reads events until the run has ended, through any number of cuts: each new request wakes the child. */
  async follow({ signal, event }: ChildObserver): Promise<ChildEnd> {
    let delayMs: number = limits.childRetryMs;
    for (;;) {
      if (signal.aborted) return await this.#cancel(signal);
      const before = this.#lastSeq;
      try {
        if (await this.#read(signal, event)) return await this.#end();
      } catch (fault) {
        if (fault instanceof EngineError) throw fault;
        // The child's host vanished, or ours is going: it is asked again.
      }
      if (this.#lastSeq > before) delayMs = limits.childRetryMs;
      await this.#pause(delayMs, signal);
      delayMs = Math.min(delayMs * 2, limits.childRetryMaxMs);
    }
  }

  /** @returns whether the run has ended */
  async #read(signal: AbortSignal, tell: (event: JsonObject) => void): Promise<boolean> {
    const response = await this.#ask(`/events?after=${this.#lastSeq}`, { signal });
    if (response.body === null) return false;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let ended = false;
    const parser = createParser({
      onEvent: ({ data }) => {
        const event = JSON.parse(data) as JsonObject;
        const { seq, type, run_id: runId } = event;
        if (typeof seq === 'number') this.#lastSeq = seq;
        tell(event);
        if (runId === this.#runId && typeof type === 'string' && ENDS.has(type)) ended = true;
      },
    });
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return ended;
        parser.feed(value);
        if (ended) return true;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }

  async #end(): Promise<ChildEnd> {
    const response = await this.#ask(`/runs/${this.#runId}`, {});
    const result: RunResult = await response.json();
    const outputs = result.actions.find(({ id }) => this.#record.workflow !== undefined && id === OUTPUTS);
    const { usage } = result;
    const count = (name: string): number => (typeof usage[name] === 'number' ? usage[name] : 0);
    const own: Spent = {
      modelCalls: count('model_calls'),
      tokens: count('prompt_tokens') + count('completion_tokens'),
      cost: count('cost'),
      actions: result.actions.length,
      children: 1,
    };
    const below = await this.#stub.spentBelow();
    return {
      sessionId: this.#record.session_id,
      status: result.status === 'completed' || result.status === 'cancelled' ? result.status : 'failed',
      output: outputs?.output ?? result.response,
      error: result.error as ChildEnd['error'],
      spent: addSpent(own, below),
    };
  }

  /**
   * What was asked of the parent is asked of the child, and of what it has started itself: again, where its
   * host vanished just then, for as long as a cancel may take (J5).
   */
  async #cancel(signal: AbortSignal): Promise<ChildEnd> {
    const reason: unknown = signal.reason instanceof Error ? signal.reason.message : signal.reason;
    const body = JSON.stringify({ reason: `the session that started it: ${String(reason)}`.slice(0, 200) });
    const until = this.#clock.now() + limits.cancelGraceMs;
    for (;;) {
      try {
        await this.#ask('/cancel', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
        return await this.#end();
      } catch (fault) {
        if (fault instanceof EngineError || this.#clock.now() >= until) throw fault;
        await new Promise<void>((resolve) => void this.#clock.schedule(limits.childRetryMs, resolve));
      }
    }
  }

  async #ask(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.#record.owner !== null) headers.set(PRINCIPAL_HEADER, this.#record.owner);
    const response = await this.#stub.fetch(new Request(`http://session${path}`, { ...init, headers }));
    if (response.ok) return response;
    const text = await response.text();
    const message = `The session ${this.#record.session_id} answered ${response.status}: ${text.slice(0, 200)}`;
    // Nobody there, or not for us: asking again does not help.
    if (response.status === 404) throw new EngineError('unknown_session', message);
    throw new Error(message);
  }

  async #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.schedule(delayMs, resolve);
      signal.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
  }
}
