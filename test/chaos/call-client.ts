/**
 * The client of one session that executes its calls (C3): it sees a call, and posts over HTTP what the history says.
 *
 * Owns the calls that it has seen and the results that were accepted. Does not own the event stream.
 *
 * Invariants:
 *  1. A call is executed once. It is seen in the event stream; half of the calls are then looked up in the document of the
 *     run, as a client does that has no stream.
 *  2. A result that finds another message in progress is posted again later.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventOf } from '../../src/domain/event.ts';
import type { CallResult } from '../../src/engine/session/session-calls.ts';
import { mistaken, postsOf } from '../simulation/call-posts.ts';
import type { CallTimes } from '../simulation/call-posts.ts';
import type { ActionScript, AttemptEnd, History } from '../simulation/history.ts';
import { actionsOf, placeOf } from '../simulation/script.ts';
import { LOST, request } from './client.ts';
import type { FactWithoutTime } from '../simulation/world/stage.ts';

/** The tool that the client executes. */
export const CLIENT_TOOL = 'client';
/** Its timeout in the manifest. */
export const CLIENT_TOOL_MS = 6_000;
/** It is passed with these members. */
export const PASSED_TOOL = {
  name: CLIENT_TOOL,
  description: 'Does what its history says.',
  parameters: { type: 'object' },
};

const TIMES: CallTimes = { expiryMs: CLIENT_TOOL_MS, againMs: [0, 0, 20, 2_000] };
const BUSY_MS = 300;
/** Longer than any run. */
const MOST_BUSY_MS = 90_000;
/** The client posts no result in time. A tool that is passed waits for a day. */
const EXPIRES: ReadonlySet<AttemptEnd | undefined> = new Set<AttemptEnd>(['silent', 'unreached']);

/** How the agent of a history has the tool: not at all, with each message, or by a manifest. */
export function clientToolOf({ messages }: History): 'none' | 'passed' | 'declared' {
  const actions = messages.flatMap(({ generations }) => generations.flatMap(actionsOf));
  const calls = actions.filter(({ target }: ActionScript) => target === 'client');
  if (calls.length === 0) return 'none';
  const expires = calls.some(({ attempts }) => EXPIRES.has(attempts[0]?.end));
  return expires || messages.some(({ type }) => type === 'text') ? 'declared' : 'passed';
}

interface Surroundings {
  readonly history: History;
  /** URL of the session. */
  readonly url: () => string;
  readonly isDeleted: () => boolean;
  readonly note: (fact: FactWithoutTime) => void;
}

export class CallClient {
  readonly #around: Surroundings;
  readonly #seen = new Set<string>();
  readonly #open = new Set<string>();
  readonly #accepted = new Map<string, CallResult>();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** A call that was not settled, as far as the client knows; null if there is none. */
  get open(): string | null {
    const [call = null] = this.#open;
    return call;
  }

  /** Executes a call; resolves when all of its results are posted. */
  async execute({ action_id: token, run_id: run, data }: EventOf<'client_tool_called'>): Promise<void> {
    const { call_id: call } = data;
    if (this.#seen.has(call)) return;
    this.#seen.add(call);
    this.#open.add(call);
    const isPending = (placeOf(token)?.action ?? 0) % 2 === 0 || (await this.#isPending(run, call));
    const posts = postsOf(this.#around.history.messages, token, TIMES);
    await Promise.all(
      posts.map(async ({ afterMs, result, isMistaken }) => {
        await delay(afterMs);
        if (isMistaken) return await this.#settleWrong(mistaken(call), result);
        const isAccepted = await this.#settle(call, result);
        if (isAccepted && !isPending) {
          this.#around.note({ type: 'work_failed', message: `the document of ${run} has no ${call}, which is open` });
        }
      }),
    );
  }

  settled({ data }: EventOf<'client_tool_settled'>): void {
    this.#open.delete(data.call_id);
  }

  /** Posts the accepted results again. @param others also posts another result for each */
  async postAgain(others: boolean): Promise<void> {
    await Promise.all(
      Array.from(this.#accepted, async ([call, result]) => {
        await this.#settle(call, result);
        if (others) await this.#settle(call, { output: 'another one' });
      }),
    );
  }

  /** Whether the document of the run has the call; true if there is no document any more. */
  async #isPending(run: string, call: string): Promise<boolean> {
    const answer = await request(`${this.#around.url()}/runs/${run}`);
    if (answer === LOST || answer.status !== 200) return true;
    const { pending = [] } = answer.body as { readonly pending?: readonly { readonly call_id: string }[] };
    return pending.some(({ call_id: id }) => id === call);
  }

  /** @returns whether it was accepted */
  async #settle(call: string, result: CallResult): Promise<boolean> {
    for (const deadline = Date.now() + MOST_BUSY_MS; !this.#around.isDeleted();) {
      const code = await this.#post(call, result);
      if (code === null) return false;
      this.#around.note({ type: 'call_answered', call, result: JSON.stringify(result), code });
      if (code === 'accepted') this.#accepted.set(call, result);
      if (code !== 'run_in_progress' || Date.now() > deadline) return code === 'accepted';
      await delay(BUSY_MS);
    }
    return false;
  }

  async #settleWrong(call: string, result: CallResult): Promise<void> {
    if (this.#seen.has(call)) return;
    const code = await this.#post(call, result);
    if (code !== null) this.#around.note({ type: 'wrong_call', call, code });
  }

  /** @returns the code of the answer; null without one */
  async #post(call: string, result: CallResult): Promise<string | null> {
    const answer = await request(`${this.#around.url()}/calls/${call}`, {
      method: 'POST',
      body: JSON.stringify(result),
    });
    return answer === LOST ? null : answer.code;
  }
}
