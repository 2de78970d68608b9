/** Asks the caller about open requests for approval of one run, also of its sub-agents, each once (J8). */
import type { SessionEvent } from '../domain/event.ts';
import type { OpenApproval } from './documents.ts';
import { CortexError } from './error.ts';
import { Repeated } from './repeated.ts';

export interface Decision {
  readonly approve: boolean;
  /** Shown to the model and stored; up to 2,000 characters. */
  readonly note?: string;
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
  readonly #check: Repeated;

  constructor(options: ApprovalRequestsOptions) {
    this.#options = options;
    this.#check = new Repeated(() => this.#askOpen(), options.fail);
  }

  take(event: SessionEvent): void {
    if (asks(event)) this.check();
  }

  /** Asks about what is open and was not asked yet: requests may be in events that were missed. */
  check(): void {
    this.#check.run();
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

/** Whether a request may be open: this one asks, or one of a sub-agent, or the run waits. */
function asks(event: SessionEvent): boolean {
  if (event.type === 'approval_requested' || event.type === 'agent_waiting') return true;
  if (event.type !== 'progress' || event.data.event === undefined) return false;
  // The event of a child session, which may have children as well.
  return asks(event.data.event as unknown as SessionEvent);
}
