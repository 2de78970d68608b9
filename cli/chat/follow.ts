/** Shows runs and asks the questions that they wait for. */
import { setTimeout as delay } from 'node:timers/promises';
import pc from 'picocolors';
import { RUN_END_EVENTS } from '../../src/domain/event.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { OpenApproval } from '../../src/engine/actions/approval-list.ts';
import { readEvents } from '../terminal/event-client.ts';
import { approvalOf, approvalPath, openApproval } from './approvals.ts';
import { callPath, clientCall } from './client-tools.ts';
import type { ClientCall } from './client-tools.ts';
import { exchangeOf, shownExchange } from './exchange.ts';
import type { Api, Ask, Question } from './question.ts';
import { innermost, Screen } from './screen.ts';
import { Writing } from './writing.ts';

export class Follower {
  readonly #api: Api;
  readonly #ask: Ask;
  /** Paths of the questions that were already asked. */
  readonly #known = new Set<string>();

  constructor(api: Api, ask: Ask) {
    this.#api = api;
    this.#ask = ask;
  }

  /** Shows a run to its end and asks its questions. Stops where the run waits for an answer and the input has ended. */
  async follow(answer: Response): Promise<void> {
    const view = new RunView(this.#api, this.#ask, this.#known);
    const last = await view.show(answer);
    // The stream of a message ends when its run waits; that of its events continues to the end of the run.
    if (last?.type !== 'agent_waiting' || view.isUnanswered) return;
    await view.show(
      await this.#api.stream(`/agent/session/${last.session_id}/events?after=${last.seq}&run=${last.run_id}`),
    );
  }

  /** Prints where an existing session is, asks everything that it waits for, then shows the rest of its current run. */
  async join(session: string): Promise<void> {
    const path = `/agent/session/${session}`;
    const api = this.#api;
    const { last_seq: seq, agent, status } = await api.read<{ last_seq: number; agent: string; status: string }>(path);
    console.log(pc.dim(`session ${session} with ${agent} (${status}); end with an empty line or Ctrl-D; /help`));
    console.log(pc.dim(shownExchange(await exchangeOf(api, path))));
    for await (const question of this.#openApprovals(path)) {
      if (!(await this.#answer(question))) return;
    }
    if (status === 'idle') return;
    const { runs } = await api.read<{ runs: { run_id: string }[] }>(`${path}/runs?limit=1`);
    const [run] = runs;
    if (run === undefined) return;
    const { pending = [] } = await api.read<{ pending?: ClientCall[] }>(`${path}/runs/${run.run_id}`);
    for (const call of pending) if (!(await this.#answer(clientCall(session, call)))) return;
    await this.follow(await api.stream(`${path}/events?after=${seq}&run=${run.run_id}`));
  }

  async *#openApprovals(path: string): AsyncGenerator<Question> {
    for (let next: string | null = ''; next !== null;) {
      const page: { approvals: OpenApproval[]; next: string | null } = await this.#api.read(
        `${path}/approvals${next === '' ? '' : `?after=${next}`}`,
      );
      for (const open of page.approvals) yield openApproval(open);
      next = page.next;
    }
  }

  async #answer(question: Question): Promise<boolean> {
    this.#known.add(question.path);
    return await question.put(this.#ask, this.#api);
  }
}

/** One run on the screen, and its questions. A question waits until the model has completed its text. */
class RunView {
  /** The input has ended before a question was answered. */
  isUnanswered = false;
  readonly #api: Api;
  readonly #ask: Ask;
  readonly #known: Set<string>;
  readonly #screen = new Screen();
  readonly #writing = new Writing();
  #waiting: Question[] = [];

  constructor(api: Api, ask: Ask, known: Set<string>) {
    this.#api = api;
    this.#ask = ask;
    this.#known = known;
  }

  /** @returns the last journaled event before the stream ended or was left */
  async show(stream: Response): Promise<SessionEvent | null> {
    let last: SessionEvent | null = null;
    const events = readEvents(stream)[Symbol.asyncIterator]();
    let next: ReturnType<typeof events.next> | null = null;
    for (;;) {
      next ??= events.next();
      const waitMs = this.#waiting.length === 0 ? null : this.#writing.waitMs;
      const got = waitMs === null ? await next : await Promise.race([next, delay(waitMs, null)]);
      if (got === null) {
        await this.#askAll();
        continue;
      }
      next = null;
      if (got.done === true) break;
      const event = got.value;
      if (event.seq !== null) last = event;
      this.#take(innermost(event));
      const isEnd = RUN_END_EVENTS.has(event.type);
      if (isEnd) this.#waiting = [];
      this.#writing.take(event);
      if (event.type === 'agent_waiting') await this.#askAll();
      if (isEnd || (event.type === 'agent_waiting' && this.isUnanswered)) break;
    }
    await events.return(undefined);
    // The stream may have ended without an event that says so.
    await this.#askAll();
    return last;
  }

  #take(event: SessionEvent): void {
    switch (event.type) {
      case 'approval_requested':
        return this.#add(approvalOf(event));
      case 'approval_resolved':
        this.#drop(approvalPath(event.session_id, event.data.approval_id));
        break;
      case 'client_tool_called':
        return this.#add(clientCall(event.session_id, event.data));
      case 'client_tool_settled':
        this.#drop(callPath(event.session_id, event.data.call_id));
    }
    this.#screen.show(event);
  }

  #add(question: Question): void {
    if (!this.#known.has(question.path)) this.#waiting.push(question);
    this.#known.add(question.path);
  }

  /** The question is settled. */
  #drop(path: string): void {
    this.#waiting = this.#waiting.filter((question) => question.path !== path);
  }

  async #askAll(): Promise<void> {
    this.#screen.end();
    for (const question of this.#waiting) if (!(await question.put(this.#ask, this.#api))) this.isUnanswered = true;
    this.#waiting = [];
  }
}
