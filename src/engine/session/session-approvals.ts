/**
 * Decisions about actions that wait for approval, or for the answer to a question of their target (J8).
 *
 * Invariant: the first decision counts. A different one that arrives while it is being written is rejected.
 */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { openApprovals } from '../actions/approval-list.ts';
import type { ApprovalsPage, OpenApproval } from '../actions/approval-list.ts';
import { approvalClosed, approvalView } from '../actions/approval-view.ts';
import type { ApprovalView } from '../actions/approval-view.ts';
import { answerContent } from '../actions/question-answer.ts';
import type { Decision } from '../actions/question-answer.ts';
import { recordOf } from './run-setup.ts';
import type { SessionScope } from './session-ports.ts';
import type { SessionRuns } from './session-runs.ts';

export class SessionApprovals {
  readonly #scope: Pick<SessionScope, 'journal' | 'clock'>;
  readonly #runs: SessionRuns;
  /** Decisions that are not durable yet, by approval; each resolves to whether it counts, or null if its run ends first. */
  readonly #deciding = new Map<string, { readonly approved: boolean; readonly counts: Promise<boolean | null> }>();

  constructor(scope: Pick<SessionScope, 'journal' | 'clock'>, runs: SessionRuns) {
    this.#scope = scope;
    this.#runs = runs;
  }

  /**
   * Resolves when the decision is durable (J1).
   *
   * @throws EngineError `unknown_approval`, `approval_closed`, `invalid_answer`
   */
  async decide(approvalId: string, { approved, note, content: given }: Decision): Promise<void> {
    const found = this.#runs.waitingFor(approvalId);
    if (found !== null) {
      const { run, active, key } = found;
      if (this.#deciding.has(approvalId)) throw approvalClosed(this.view(approvalId), 'deciding');
      const content = answerContent(this.view(approvalId), { approved, content: given });
      this.#runs.resume(run);
      const counts = new Promise<boolean | null>((onDecided) => {
        const values = content === undefined ? {} : { content };
        active.put({ type: 'approval_resolved', key, approved, note, ...values, onDecided });
        // A run that ends first does not call back.
        active.live.drained.catch(() => undefined).finally(() => onDecided(null));
      });
      this.#deciding.set(approvalId, { approved, counts });
      let isCounted: boolean | null;
      try {
        isCounted = await counts;
      } finally {
        this.#deciding.delete(approvalId);
      }
      if (isCounted === true) return;
      if (isCounted === null) await this.#over(run);
    }
    await this.#scope.journal.sync();
    const view = this.view(approvalId);
    throw approvalClosed(view, view.status);
  }

  /** The run may end because it could not write a decision: its end says which one counts. */
  async #over(run: number): Promise<void> {
    try {
      await this.#runs.ended(run);
    } catch (fault) {
      throw new EngineError('storage_unavailable', 'The decision could not be written; post it again', {}, fault);
    }
  }

  /**
   * The same, but the decision that counts is accepted again.
   *
   * @returns the id of the run
   */
  async accept(approvalId: string, decision: Decision): Promise<string> {
    const { approved } = decision;
    const deciding = this.#deciding.get(approvalId);
    if (deciding?.approved === approved) await deciding.counts;
    const { run_id: runId, status } = this.view(approvalId);
    if (status !== (approved ? 'approved' : 'denied')) await this.decide(approvalId, decision);
    else await this.#scope.journal.sync();
    return runId;
  }

  /** The requests that wait for a decision, oldest first. */
  open(page: ApprovalsPage): OpenApproval[] {
    const requests = this.#runs.active.flatMap(({ live }) => live.openApprovals());
    return openApprovals(this.#scope.journal, recordOf(this.#scope), requests, page);
  }

  /** The whole call of an approval request, open or not. @throws EngineError `unknown_approval` */
  view(approvalId: string): ApprovalView {
    const { journal, clock } = this.#scope;
    const found = approvalView(journal, approvalId, clock.now(), this.#runs.waitingFor(approvalId) !== null);
    if (found !== null) return found;
    throw new EngineError(
      'unknown_approval',
      `This session has no approval with the id "${approvalId.slice(0, limits.excerptChars)}"`,
    );
  }
}
