/**
 * Counts the outbound requests of an invocation, so that a request over the plan's limit fails with a clear error before it
 * is sent (Z3). The last `limits.platformReservedSubrequests` are for the model and the runner: without them, a run whose
 * tools have used up the limit could not report it.
 */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { OutboundError } from '../../domain/outbound-error.ts';
import { PLAN_SUBREQUESTS } from '../../domain/platform-plan.ts';
import type { PlatformPlan } from '../../domain/platform-plan.ts';

/** `tool`: requests of actions. `service`: requests of the runtime itself, to models, runners and collectors. */
export type RequestPurpose = 'tool' | 'service';

/** The platform's own error for a request over its limit; nothing was sent. */
const OVER_LIMIT = /^Too many subrequests\b/;

export class Subrequests {
  readonly #plan: PlatformPlan | null;
  #used = 0;

  /** @param plan null: there is no limit */
  constructor(plan: PlatformPlan | null) {
    this.#plan = plan;
  }

  /** A new event has been delivered: the platform's limits begin again. */
  topUp(): void {
    this.#used = 0;
  }

  /** Counts a request. @throws OutboundError (tools) or EngineError (services) `platform_limit`; nothing was sent */
  take(purpose: RequestPurpose): void {
    const plan = this.#plan;
    if (plan === null) return;
    const kept = purpose === 'tool' ? limits.platformReservedSubrequests : 0;
    if (this.#used >= PLAN_SUBREQUESTS[plan] - kept) throw this.#overLimit(plan, purpose);
    this.#used += 1;
  }

  /** The error to report for one of `fetch`: the platform's own refusal becomes `platform_limit`. */
  errorOf(fault: unknown, purpose: RequestPurpose): unknown {
    const plan = this.#plan;
    const isOver = plan !== null && fault instanceof Error && OVER_LIMIT.test(fault.message);
    return isOver ? this.#overLimit(plan, purpose, fault) : fault;
  }

  #overLimit(plan: PlatformPlan, purpose: RequestPurpose, cause?: unknown): Error {
    const limit = PLAN_SUBREQUESTS[plan];
    const message =
      `The platform's ${plan} plan allows ${limit} outbound requests for one request or alarm; ` +
      `${this.#used} were sent` +
      (purpose === 'tool' ? `, and ${limits.platformReservedSubrequests} are kept for the model and the runner` : '');
    return purpose === 'tool'
      ? new OutboundError('platform_limit', message, true, cause)
      : new EngineError('platform_limit', message, { beforeDispatch: true, plan, limit }, cause);
  }
}
