/** One session of a history on the real system: its requests, its readers, and the facts about it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SessionEvent } from '../../src/domain/event.ts';
import { seededOf } from '../simulation/seeded.ts';
import type { DecisionScript, History, Request } from '../simulation/history.ts';
import type { Fact } from '../simulation/observation.ts';
import type { Forms } from '../simulation/script.ts';
import type { FactWithoutTime } from '../simulation/world/stage.ts';
import { CallClient } from './call-client.ts';
import { LOST, request } from './client.ts';
import type { Answer } from './client.ts';
import { PATIENT, SseReader } from './reader.ts';

export interface Surroundings {
  /** URL of the Worker. */
  readonly url: string;
  /** Milliseconds since the beginning of its batch. */
  readonly now: () => number;
  /** Called for each journaled event. */
  readonly onEvent: () => void;
  readonly forms: Forms;
}

const APPROVE: DecisionScript = { afterMs: 50, approved: true, times: 1 };
const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);
/** What was sent before a deletion may arrive after its answer. */
const DELETION_MS = 500;

export interface ListedRun {
  readonly run_id: string;
  readonly status: string;
}

export class PlayedSession {
  /** The message that is its protocol text; null for the chat. */
  readonly text: number | null;
  readonly facts: Fact[] = [];
  readonly readers: SseReader[] = [];
  /** Hashes of the files of messages that were accepted. */
  readonly sentFiles = new Set<string>();
  isDeleted = false;
  #url: string | null = null;
  readonly #opened = Promise.withResolvers<void>();
  readonly #history: History;
  readonly #around: Surroundings;
  readonly #calls: CallClient;
  readonly #work = new Set<Promise<void>>();
  #approvals = 0;

  constructor(text: number | null, history: History, around: Surroundings) {
    this.text = text;
    this.#history = history;
    this.#around = around;
    this.#calls = new CallClient({
      history,
      url: () => this.url,
      isDeleted: () => this.isDeleted,
      note: (fact) => this.note(fact),
    });
  }

  /** Whether it exists, as far as its client knows. */
  get isOpen(): boolean {
    return this.#url !== null;
  }

  /** @throws Error before it was opened */
  get url(): string {
    if (this.#url === null) throw new Error('the session is not open');
    return this.#url;
  }

  note(fact: FactWithoutTime): void {
    this.facts.push({ at: this.#around.now(), ...fact } as Fact);
  }

  async create(url: string): Promise<void> {
    const body = JSON.stringify({ history: seededOf(this.#history.seeded) });
    const answer = await request(url, { method: 'POST', body });
    if (answer === LOST || answer.status !== 201) throw new Error(`no session: ${JSON.stringify(answer)}`);
    const { session_id: id } = answer.body as { readonly session_id: string };
    this.open(`${this.#around.url}/agent/session/${id}`);
  }

  open(url: string): void {
    this.#url = url;
    // Its frames are the journal of a session that is deleted.
    this.#follow(new SseReader('the first reader', url, PATIENT, (event) => this.#seen(event)));
    this.#opened.resolve();
  }

  /** @param files hashes of the files that were sent */
  answered(message: number, { code, headers }: Answer, files: readonly string[] = []): void {
    if (code === 'accepted') for (const hash of files) this.sentFiles.add(hash);
    const run = /_(\d+)$/.exec(headers.get('x-run-id') ?? '')?.[1];
    this.note({ type: 'message_answered', message, run: run === undefined ? null : Number(run), code });
  }

  /** Waits until it is open: a text may never be. */
  async carryOut(name: string, script: Request): Promise<void> {
    if (this.text === null) await this.#opened.promise;
    if (!this.isOpen) return;
    switch (script.type) {
      case 'cancel':
        return await this.#cancel();
      case 'delete':
        return await this.#delete();
      case 'reader':
        return this.#follow(new SseReader(name, this.url, script));
    }
  }

  /** What has not ended: runs, or actions of ended runs; null if everything has. */
  async openWork(): Promise<string | null> {
    const open = await this.openRuns();
    if (open.length > 0) return open.map(({ run_id: id, status }) => `${id} is ${status}`).join(', ');
    const answer = await request(this.url);
    if (answer === LOST) return 'the session does not answer';
    const { status, last_seq: last = 0 } = (answer.body ?? {}) as {
      readonly status?: string;
      readonly last_seq?: number;
    };
    if (status === 'running') return 'an action of an ended run is running';
    // It sees the calls, also those of ended runs.
    if ((this.readers[0]?.cursor ?? last) < last) return 'the first reader has not read all events';
    return this.#calls.open === null ? null : `${this.#calls.open} is open`;
  }

  /** Runs that have not ended. */
  async openRuns(): Promise<ListedRun[]> {
    const answer = await request(`${this.url}/runs?limit=100`);
    if (answer === LOST || answer.status !== 200) return [];
    return (answer.body as { readonly runs: ListedRun[] }).runs.filter(({ status }) => !ENDS.has(status));
  }

  /** After a kill, the client does not know whether its results are kept. @param others also posts other results */
  async postAgain(others: boolean): Promise<void> {
    if (!this.isDeleted) await this.#calls.postAgain(others);
  }

  /** The same, while the history continues. */
  postAgainSoon(): void {
    this.#track(this.postAgain(false));
  }

  /** Ends the readers and waits for what is under way. */
  async leave(): Promise<void> {
    for (const reader of this.readers) reader.leave();
    await Promise.allSettled(this.#work);
  }

  #follow(reader: SseReader): void {
    this.readers.push(reader);
    this.#track(reader.follow());
  }

  #track(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work)).catch(() => undefined);
  }

  #seen(event: SessionEvent): void {
    if (event.seq === null) return;
    this.note({ type: 'published', event, isDurable: true });
    this.#around.onEvent();
    if (event.type === 'client_tool_called') this.#track(this.#calls.execute(event));
    if (event.type === 'client_tool_settled') this.#calls.settled(event);
    if (event.type === 'approval_requested') this.#track(this.#approve(event.data.approval_id));
  }

  async #approve(approval: string): Promise<void> {
    const { afterMs, approved, times } = this.#history.decisions[this.#approvals++] ?? APPROVE;
    this.note({ type: 'approval_seen', approval });
    await delay(afterMs);
    const decide = async (): Promise<void> => {
      const answer = await request(`${this.url}/approvals/${approval}`, {
        method: 'POST',
        body: JSON.stringify({ decision: approved ? 'approve' : 'deny' }),
      });
      if (answer !== LOST) this.note({ type: 'decision_answered', approval, approved, code: answer.code });
    };
    await Promise.all(Array.from({ length: times }, decide));
  }

  async #cancel(): Promise<void> {
    const open = await this.openRuns();
    const answer = await request(`${this.url}/cancel`, {
      method: 'POST',
      body: JSON.stringify({ reason: 'a client cancelled' }),
    });
    if (answer === LOST || answer.status !== 200) return;
    this.note({ type: 'cancel_answered', runs: open.map(({ run_id: id }) => Number(/\d+$/.exec(id)?.[0])) });
  }

  async #delete(): Promise<void> {
    const answer = await request(this.url, { method: 'DELETE' });
    if (answer === LOST || (answer.status !== 204 && answer.status !== 404) || this.isDeleted) return;
    this.isDeleted = true;
    await delay(DELETION_MS);
    this.note({ type: 'deleted', isAsked: true });
  }
}
