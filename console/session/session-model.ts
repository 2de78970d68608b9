/**
 * One session in this page: its record, its messages, and its runs as they happen, over one stream of events.
 *
 * A page has one stream, because a browser opens only six connections to a server without HTTP/2, for all tabs together.
 *
 * Invariants:
 *  1. The stream begins before the first event of the run that is active, so that a reload in the middle of a run shows the
 *     whole run. Only runs that have ended are loaded by requests of their own.
 *  2. A run that was not seen yet brings the messages up to date: also those that another tab has sent.
 *  3. Another branch than the newest one is read by requests; the stream is the same.
 *  4. A page that is hidden for long gives its connection back, and goes on where it was when it is shown again.
 */
import { batch, signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import type {
  BaseClient,
  ContentPart,
  Decision,
  HistoryMessage,
  OpenApproval,
  Run,
  SendOptions,
  Session,
  SessionDocument,
  SessionEvent,
} from '../../src/client/index.ts';
import { access, isKeyMissing, resumes } from '../app/access.ts';
import * as limits from '../parts/limits.ts';
import { leafOf } from './branches.ts';
import { visible, whenHidden } from './page-visibility.ts';
import { refresher } from './refresher.ts';
import { RunModel } from './run-model.ts';
import { Slices } from './slices.ts';
import { steeredBy } from './steered.ts';

export class SessionModel {
  readonly id: string;
  /** For what this model does not do: files, artifacts, feeds, variables. */
  readonly session: Session;
  readonly #document = signal<SessionDocument | null>(null);
  readonly #messages = signal<readonly HistoryMessage[]>([]);
  readonly #earlier = signal<string | null>(null);
  readonly #approvals = signal<readonly OpenApproval[]>([]);
  readonly #fault = signal<unknown>(null);
  readonly #runs = new Map<string, RunModel>();
  readonly #closed = new AbortController();
  readonly #loads = new Map<string, Promise<void>>();
  #lastSeq = 0;
  /** False after an error ended its stream. */
  #isFollowed = true;
  /** The last run of the branch that is shown; undefined: the newest branch. */
  #branch: string | undefined;
  /** The run that was active when the session was opened, on whatever branch. */
  #opening: string | undefined;
  /** The run that was asked for last. */
  #shown = '';
  readonly #askHistory = refresher(() => this.#refresh(() => this.#readHistory()));
  readonly #askApprovals = refresher(() => this.#refresh(() => this.#readApprovals()));

  constructor(client: BaseClient, id: string, branch?: string) {
    this.id = id;
    this.#branch = branch;
    this.session = client.session(id);
    this.#open().catch((fault: unknown) => {
      this.#isFollowed = false;
      this.#failed(fault);
    });
  }

  /** Null until it is loaded. */
  get document(): ReadonlySignal<SessionDocument | null> {
    return this.#document;
  }

  /** Messages and answers in order. The answer of a run that is active is in its `RunModel`. */
  get messages(): ReadonlySignal<readonly HistoryMessage[]> {
    return this.#messages;
  }

  /** Whether there are messages before these: `loadEarlier`. */
  get hasEarlier(): boolean {
    return this.#earlier.value !== null;
  }

  /** Requests that wait for a decision, also of sub-agents. */
  get approvals(): ReadonlySignal<readonly OpenApproval[]> {
    return this.#approvals;
  }

  /** Why the session is not shown, or no longer followed; null: it is. */
  get fault(): ReadonlySignal<unknown> {
    return this.#fault;
  }

  /** The run, as far as it is loaded. See `loadRun`. */
  run(id: string): RunModel {
    const known = this.#runs.get(id);
    if (known !== undefined) return known;
    const run = new RunModel(id);
    this.#runs.set(id, run);
    return run;
  }

  /**
   * Loads the events of a run that ended before the page was opened.
   *
   * @param isShown whether the run view shows it @throws CortexError
   */
  async loadRun(id: string, isShown = true): Promise<void> {
    if (isShown) this.#shown = id;
    // The stream of the session brings it.
    if (this.isActive(id) || this.run(id).isWhole) return;
    const known = this.#loads.get(id);
    if (known !== undefined) return await known;
    const load = this.#readRun(id).finally(() => this.#loads.delete(id));
    this.#loads.set(id, load);
    await load;
  }

  /** Whether the run is queued, runs or waits, as the history says. */
  isActive(id: string): boolean {
    const status = this.#messages.peek().findLast(({ run_id: run }) => run === id)?.status;
    if (status === undefined && id === this.#opening) return !this.run(id).hasEnded;
    return status === 'queued' || status === 'running' || status === 'waiting';
  }

  async #readRun(id: string): Promise<void> {
    const run = this.run(id);
    const slices = new Slices();
    for await (const event of this.session.run(id).events({ signal: this.#closed.signal })) {
      run.apply(event);
      await slices.rest();
    }
    await this.#readLate(run);
    run.complete();
    this.#forget();
  }

  /** Actions that a run does not wait for may end after it. */
  async #readLate(run: RunModel): Promise<void> {
    const left = new AbortController();
    const leave = (): void => left.abort();
    const hasLate = (): boolean =>
      run.message.actions.some(({ status }) => status === 'queued' || status === 'running');
    const last = this.#lastSeq;
    const after = run.events.at(-1)?.seq ?? last;
    if (after >= last || !hasLate()) return;
    this.#closed.signal.addEventListener('abort', leave);
    let events = 0;
    for await (const event of this.session.events({ after, signal: left.signal })) {
      events += 1;
      if (event.run_id === run.id) run.apply(event);
      if (!hasLate() || (event.seq ?? 0) >= last || events >= limits.lateEvents) leave();
    }
    this.#closed.signal.removeEventListener('abort', leave);
  }

  /** Sends a message. The stream of the session brings its events. @returns the id of its run. @throws CortexError */
  async send(content: string | readonly ContentPart[], options: Omit<SendOptions, 'signal'> = {}): Promise<string> {
    return await this.#started((signal) => this.session.send(content, { ...options, signal }));
  }

  /** Runs a message again, changed if there is content. @returns the id of the new run. @throws CortexError */
  async retry(runId: string, content?: string | readonly ContentPart[]): Promise<string> {
    return await this.#started((signal) =>
      this.session.retry(runId, { signal, ...(content !== undefined && { content }) }),
    );
  }

  /** Runs one action again, in a run of its own. @returns its id. @throws CortexError */
  async rerun(runId: string, actionId: string): Promise<string> {
    return await this.#started((signal) => this.session.rerun(runId, actionId, { signal }));
  }

  async #started(start: (signal: AbortSignal) => Promise<Run>): Promise<string> {
    const leave = new AbortController();
    const { id } = await start(leave.signal);
    leave.abort();
    this.#askHistory();
    return id;
  }

  /** Shows the branch that ends with a run; undefined: the newest one. */
  show(branch: string | undefined): void {
    if (branch === this.#branch) return;
    this.#branch = branch;
    this.#askHistory();
  }

  /** The newest run of the branch with a version of a message; undefined: it is on the newest branch. @throws CortexError */
  async leafOf(version: string): Promise<string | undefined> {
    const { runs, head } = await this.session.runs();
    const leaf = leafOf(runs, version);
    return leaf === head ? undefined : leaf;
  }

  /** Cancels what runs and waits. @throws CortexError */
  async stop(): Promise<void> {
    await this.session.cancel({ reason: 'stopped in the console' });
  }

  /** Decides a request for approval, in the session that asks. @throws CortexError */
  async decide(
    client: BaseClient,
    { session_id: id, approval_id: approval }: OpenApproval,
    decision: Decision,
  ): Promise<void> {
    try {
      await client.session(id).decide(approval, decision);
    } finally {
      // Also if another decision was first.
      this.#askApprovals();
    }
  }

  /** Loads the page of messages before the first one that is shown. @throws CortexError */
  async loadEarlier(): Promise<void> {
    const before = this.#earlier.peek();
    if (before === null) return;
    const page = await this.session.history({ run: this.#branch, before });
    this.#earlier.value = page.next;
    this.#messages.value = [...page.messages, ...this.#messages.peek()];
  }

  /** Ends its stream. */
  close(): void {
    this.#closed.abort();
  }

  async #open(): Promise<void> {
    const { signal: closed } = this.#closed;
    const document = await this.session.document({ signal: closed });
    // After the document: a run that begins between the two is in the stream.
    const newest = await this.session.history({ signal: closed });
    const run = this.#branch;
    const page = run === undefined ? newest : await this.session.history({ run, signal: closed });
    const active = newest.messages.find(({ status }) => status === 'running' || status === 'waiting');
    this.#lastSeq = document.last_seq;
    this.#opening = active?.run_id;
    if (active?.run_id !== undefined) this.#lastSeq = Math.min(this.#lastSeq, await this.#before(active.run_id));
    batch(() => {
      this.#document.value = document;
      this.#earlier.value = page.next;
      this.#messages.value = page.messages;
    });
    if (active !== undefined) this.#askApprovals();
    const before = resumes.peek();
    closed.addEventListener(
      'abort',
      resumes.subscribe((now) => now > before && this.#catchUp()),
    );
    while (!closed.aborted) {
      await this.#follow();
      await visible(closed);
      this.#catchUp();
    }
  }

  /** The number of the event before the first one of a run. */
  async #before(id: string): Promise<number> {
    for await (const { seq } of this.session.run(id).events({ signal: this.#closed.signal })) {
      if (seq !== null) return seq - 1;
    }
    return Infinity;
  }

  /** After a time without a stream: requests of sub-agents, and their decisions, are live events only. */
  #catchUp(): void {
    this.#askHistory();
    this.#askApprovals();
  }

  /** Reads the stream until the page is hidden for long. */
  async #follow(): Promise<void> {
    const left = new AbortController();
    const leave = (): void => left.abort();
    this.#closed.signal.addEventListener('abort', leave);
    const hidden = whenHidden(leave);
    const slices = new Slices();
    try {
      for await (const event of this.session.events({ after: this.#lastSeq, signal: left.signal })) {
        if (event.seq !== null) this.#lastSeq = event.seq;
        this.#take(event);
        await slices.rest();
      }
    } finally {
      hidden();
      this.#closed.signal.removeEventListener('abort', leave);
    }
  }

  #take(event: SessionEvent): void {
    const message = this.#messages.peek().findLast(({ run_id: id }) => id === event.run_id);
    this.#apply(event);
    if (message === undefined && event.type !== 'progress') this.#askHistory();
    switch (event.type) {
      case 'agent_started':
      case 'agent_completed':
      case 'agent_failed':
      case 'agent_cancelled':
      case 'agent_waiting':
        this.#askHistory();
        // A request ends with its run, without an event of its own.
        this.#askApprovals();
        break;
      case 'approval_requested':
      case 'approval_resolved':
        this.#askApprovals();
        break;
      case 'progress':
        // Of a sub-agent, which may ask for an approval.
        if (event.data.event !== undefined) this.#askApprovals();
        break;
      default:
        if (steeredBy(event) !== null) this.#askHistory();
        // The session may be idle after an action that its run did not wait for.
        if (event.type.startsWith('action_') && !this.isActive(event.run_id)) this.#askHistory();
    }
  }

  /** An event of the stream. Those of a run that is not loaded come with the others when it is. */
  #apply(event: SessionEvent): void {
    const { run_id: id, type, seq } = event;
    const run = this.run(id);
    const load = this.#loads.get(id);
    if (load !== undefined) {
      load.then(
        () => seq !== null && run.apply(event),
        () => undefined,
      );
      return;
    }
    // A run that is cancelled in the queue has its end only.
    if (type === 'agent_started' || (run.events.length === 0 && type === 'agent_cancelled')) {
      run.complete();
      this.#forget();
    }
    if (run.isWhole) run.apply(event);
  }

  /** The events of old runs are loaded again when they are needed. */
  #forget(): void {
    const loaded = [...this.#runs.values()].filter((run) => run.events.length > 0);
    loaded.sort((a, b) => (a.events[0]?.seq ?? 0) - (b.events[0]?.seq ?? 0));
    for (const run of loaded.slice(0, -limits.runsKept)) {
      if (run.hasEnded && run.id !== this.#shown) this.#runs.delete(run.id);
    }
  }

  async #refresh(read: () => Promise<void>): Promise<void> {
    if (this.#closed.signal.aborted) return;
    try {
      await read();
      if (this.#isFollowed) this.#fault.value = null;
    } catch (fault) {
      this.#failed(fault);
    }
  }

  /** The newest page replaces the messages from its first one on. */
  async #readHistory(): Promise<void> {
    const { signal: closed } = this.#closed;
    const [page, document] = await Promise.all([
      this.session.history({ run: this.#branch, signal: closed }),
      this.session.document({ signal: closed }),
    ]);
    const shown = this.#messages.peek();
    const first = page.messages[0];
    const at = first === undefined ? -1 : shown.findIndex((message) => isSame(message, first));
    if (at <= 0) this.#earlier.value = page.next;
    this.#messages.value = at <= 0 ? page.messages : [...shown.slice(0, at), ...page.messages];
    this.#document.value = document;
  }

  async #readApprovals(): Promise<void> {
    if (access.peek().mode === 'view') return;
    this.#approvals.value = await this.session.approvals({ signal: this.#closed.signal });
  }

  #failed(fault: unknown): void {
    if (this.#closed.signal.aborted) return;
    if (!isKeyMissing(fault)) this.#fault.value = fault;
  }
}

function isSame(one: HistoryMessage, other: HistoryMessage): boolean {
  return one.run_id === other.run_id && one.role === other.role && one.timestamp === other.timestamp;
}
