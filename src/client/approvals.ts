/**
 * Asks the caller about open requests for approval of one run, also of its sub-agents, each once (J8).
 *
 * The requests of the run itself are journaled events. Those of its sub-agents are only live events of the run, which a
 * reader can miss: while a sub-agent or workflow is running, the list is looked up whenever the stream was cut or is quiet.
 */
import type { SessionEvent } from '../domain/event.ts';
import type { JsonObject } from '../domain/json.ts';
import type { OpenApproval } from './documents.ts';
import { CortexError } from './error.ts';
import { repeated } from './repeated.ts';

export interface Decision {
  readonly approve: boolean;
  /** Shown to the model and stored; up to 2,000 characters. */
  readonly note?: string;
  /** The values that an approved question asks for. Default: the defaults of its schema. */
  readonly content?: JsonObject;
}

/** Decides; undefined leaves the request open for someone else. */
export type OnApproval = (
  approval: OpenApproval,
) => Decision | boolean | undefined | Promise<Decision | boolean | undefined>;

export interface ApprovalRequestsOptions {
  readonly sessionId: string;
  readonly runId: string;
  readonly onApproval: OnApproval;
  /** All open requests of the session and its sub-agents. */
  readonly list: () => Promise<readonly OpenApproval[]>;
  readonly decide: (approval: OpenApproval, decision: Decision) => Promise<unknown>;
  readonly fail: (fault: unknown) => void;
}

export class ApprovalRequests {
  readonly #options: ApprovalRequestsOptions;
  readonly #known = new Set<string>();
  /** Running actions that have a session of their own. */
  readonly #children = new Set<string>();
  readonly #check: () => void;

  constructor(options: ApprovalRequestsOptions) {
    this.#options = options;
    this.#check = repeated(() => this.#askOpen(), options.fail);
  }

  take(event: SessionEvent): void {
    this.#note(event);
    if (asks(event)) this.#check();
  }

  /** Live events may have been missed. */
  missed(): void {
    if (this.#children.size > 0) this.#check();
  }

  #note(event: SessionEvent): void {
    if (event.type === 'action_queued') {
      const { type } = event.data;
      if (type === 'agent' || type === 'workflow') this.#children.add(placeOf(event));
    } else if (END.test(event.type)) this.#children.delete(placeOf(event));
  }

  async #askOpen(): Promise<void> {
    const { sessionId, runId, list, fail } = this.#options;
    for (const approval of await list()) {
      // A sub-agent's run has an id of its own.
      const isOther = approval.session_id === sessionId && approval.run_id !== runId;
      if (isOther || this.#known.has(approval.approval_id)) continue;
      this.#known.add(approval.approval_id);
      this.#ask(approval).catch(fail);
    }
  }

  async #ask(approval: OpenApproval): Promise<void> {
    const said = await this.#options.onApproval(approval);
    if (said === undefined) return;
    try {
      await this.#options.decide(approval, typeof said === 'boolean' ? { approve: said } : said);
    } catch (fault) {
      // Someone else was faster, or it has expired.
      if (!(fault instanceof CortexError) || fault.code !== 'approval_closed') throw fault;
    }
  }
}

const END = /^action_(completed|failed|skipped|cancelled)$/;

/** Of an action: its id is unique within its iteration. */
function placeOf({ iteration, action_id: id }: SessionEvent): string {
  return `${iteration} ${id ?? ''}`;
}

/** Whether a request may be open: this one asks, or one of a sub-agent, or the run waits. */
function asks(event: SessionEvent): boolean {
  if (event.type === 'approval_requested' || event.type === 'agent_waiting') return true;
  if (event.type !== 'progress' || event.data.event === undefined) return false;
  // The event of a child session, which may have children as well.
  return asks(event.data.event as unknown as SessionEvent);
}
