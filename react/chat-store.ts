/**
 * A conversation with an agent, as a store that a user interface subscribes to.
 *
 * Owns: the session (created with the first message), the list of messages, and the reading of the active run. Does not own:
 * connections and repeated requests, which are the client's.
 *
 * Invariants
 * 1. Snapshots are immutable, and change only when something visible has changed.
 * 2. One run is read at a time. Leaving stops reading and never cancels the run; coming back reads it from its first event.
 * 3. A message is sent once: while one is being sent or answered, another one is refused.
 */
import { CortexError, visibleText } from '../src/client/index.ts';
import type {
  Client,
  ClientTools,
  ContentPart,
  JsonObject,
  Message,
  OnApproval,
  Run,
  Session,
} from '../src/client/index.ts';

/** One message of the conversation, oldest first. */
export interface ChatMessage {
  /** Unique in the conversation. */
  readonly id: string;
  readonly role: 'user' | 'assistant';
  /** What people read: of an answer that is being written, the text so far. */
  readonly text: string;
  /** The run of an answer with its thoughts, actions and approvals; null for messages of the user and for earlier answers. */
  readonly run: Message | null;
}

/**
 * `loading`: reads an earlier conversation. `sending`: the message is not accepted yet. `streaming`: the agent works.
 * `waiting`: for an approval or a client tool. `error`: the latest request or run has failed; `send` tries again.
 */
export type ChatStatus = 'idle' | 'loading' | 'sending' | 'streaming' | 'waiting' | 'error';

export interface ChatSnapshot {
  readonly messages: readonly ChatMessage[];
  readonly status: ChatStatus;
  /** Null until the first message of a new conversation was sent. Keep it to continue after a reload. */
  readonly sessionId: string | null;
  /** Requests for approval of the active run. */
  readonly approvals: Message['approvals'];
  readonly error: Error | null;
}

export interface ChatOptions {
  readonly client: Client;
  readonly agent: string;
  /** An earlier conversation to continue; null or absent: a new one. */
  readonly sessionId?: string | null | undefined;
  readonly clientTools?: ClientTools | undefined;
  readonly onApproval?: OnApproval | undefined;
}

const EMPTY: ChatSnapshot = { messages: [], status: 'idle', sessionId: null, approvals: [], error: null };
const OVER: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);
const BUSY: ReadonlySet<ChatStatus> = new Set(['loading', 'sending', 'streaming', 'waiting']);

export class ChatStore {
  readonly #options: ChatOptions;
  readonly #listeners = new Set<() => void>();
  #snapshot: ChatSnapshot;
  #session: Promise<Session> | null;
  /** The run that is read, or that will be read again. */
  #active: string | null = null;
  #reading: AbortController | null = null;
  #readers = 0;
  #loading: Promise<void> | null = null;

  constructor(options: ChatOptions) {
    const { client, sessionId } = options;
    this.#options = options;
    this.#session = sessionId == null ? null : Promise.resolve(client.session(sessionId));
    this.#snapshot = sessionId == null ? EMPTY : { ...EMPTY, sessionId, status: 'loading' };
  }

  readonly snapshot = (): ChatSnapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Reads while something is shown. @returns a function that leaves */
  readonly attach = (): (() => void) => {
    this.#readers += 1;
    if (this.#readers === 1) void this.#resume();
    return () => {
      this.#readers -= 1;
      if (this.#readers > 0) return;
      this.#reading?.abort();
      this.#reading = null;
    };
  };

  /**
   * Sends a message, and resolves at the end of its run.
   *
   * @returns false if a message is being sent or answered: then nothing is sent
   */
  readonly send = async (content: string | readonly ContentPart[]): Promise<boolean> => {
    if (BUSY.has(this.#snapshot.status)) return false;
    const text =
      typeof content === 'string' ? content : content.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const { messages } = this.#snapshot;
    const own: ChatMessage = { id: `message-${messages.length}`, role: 'user', text, run: null };
    this.#change({ messages: [...messages, own], status: 'sending', error: null });
    try {
      const session = await this.#open();
      const run = await session.send(content, this.#runOptions());
      this.#active = run.id;
      await this.#read(run);
    } catch (fault) {
      this.#failed(fault);
    }
    return true;
  };

  /** Cancels the active run. */
  readonly stop = async (): Promise<void> => {
    const session = await this.#session;
    if (session !== null && this.#active !== null)
      await session.cancel().catch((fault: unknown) => this.#failed(fault));
  };

  /** Decides a request for approval. @param id `approval_id` of one of `approvals` */
  readonly decide = async (id: string, approve: boolean, note?: string, content?: JsonObject): Promise<void> => {
    const session = await this.#session;
    const decision = {
      approve,
      ...(note === undefined ? {} : { note }),
      ...(content === undefined ? {} : { content }),
    };
    await session?.decide(id, decision).catch((fault: unknown) => this.#failed(fault));
  };

  #open(): Promise<Session> {
    const { client, agent } = this.#options;
    this.#session ??= client.createSession(agent).then(
      (session) => {
        this.#change({ sessionId: session.id });
        return session;
      },
      (fault: unknown) => {
        // the next message tries again
        this.#session = null;
        throw fault;
      },
    );
    return this.#session;
  }

  #runOptions(): { readonly clientTools?: ClientTools; readonly onApproval?: OnApproval } {
    const { clientTools, onApproval } = this.#options;
    return {
      ...(clientTools === undefined ? {} : { clientTools }),
      ...(onApproval === undefined ? {} : { onApproval }),
    };
  }

  /** Reads the earlier conversation once, and a run that is active. */
  async #resume(): Promise<void> {
    try {
      const session = await this.#session;
      if (session === null) return;
      if (this.#snapshot.status === 'loading') await (this.#loading ??= this.#load(session));
      if (this.#active !== null) await this.#read(session.run(this.#active, this.#runOptions()));
    } catch (fault) {
      this.#failed(fault);
    }
  }

  async #load(session: Session): Promise<void> {
    const [history, { runs }] = await Promise.all([session.history(), session.runs({ limit: 1 })]);
    const [latest] = runs;
    const isActive = latest !== undefined && !OVER.has(latest.status);
    const shown = history.messages.flatMap(({ role, content, run_id: run = '' }, at): ChatMessage[] => {
      if (role === 'tool' || (role === 'assistant' && isActive && run === latest.run_id)) return [];
      return [{ id: `${role}-${run}-${at}`, role, text: content ?? '', run: null }];
    });
    this.#active = isActive ? latest.run_id : null;
    this.#change({ messages: shown, status: isActive ? 'streaming' : 'idle' });
  }

  async #read(run: Run): Promise<void> {
    const reading = new AbortController();
    this.#reading?.abort();
    this.#reading = reading;
    // nothing is shown: the run is read when something is
    if (this.#readers === 0) return;
    const before = this.#snapshot.messages.filter(({ id }) => id !== run.id);
    for await (const message of run.messages({ signal: reading.signal })) {
      if (reading.signal.aborted) return;
      const answer: ChatMessage = { id: run.id, role: 'assistant', text: visibleText(message), run: message };
      const status = message.status === 'waiting' || message.approvals.length > 0 ? 'waiting' : 'streaming';
      this.#change({ messages: [...before, answer], status, approvals: message.approvals });
    }
    if (reading.signal.aborted) return;
    this.#active = null;
    const end = this.#snapshot.messages.at(-1)?.run ?? null;
    const failure = end?.error ?? null;
    const error = failure === null ? null : new CortexError(failure);
    this.#change({ status: error === null ? 'idle' : 'error', approvals: [], error });
  }

  #failed(fault: unknown): void {
    if (this.#reading?.signal.aborted === true || this.#readers === 0) return;
    this.#change({ status: 'error', error: fault instanceof Error ? fault : new Error(String(fault)) });
  }

  #change(change: Partial<ChatSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    for (const listener of this.#listeners) listener();
  }
}
