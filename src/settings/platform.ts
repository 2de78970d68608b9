/** The platform's plan, and whether its limits are enforced here (Z3, docs/deploy.md). Pure. */
import { EngineError } from '../domain/errors.ts';
import { nearestNames } from '../domain/nearest.ts';
import { PLATFORM_PLANS } from '../domain/platform-plan.ts';
import type { PlatformPlan } from '../domain/platform-plan.ts';

export interface PlatformSettings {
  readonly plan: PlatformPlan;
  /** Our own code enforces the limits of the plan: `PLATFORM_LIMITS` on a local system. */
  readonly enforced: boolean;
  /** There are limits: those of the platform, or those that are enforced here. */
  readonly hasLimits: boolean;
}

interface PlatformVariables {
  readonly PLATFORM_PLAN?: string | undefined;
  readonly PLATFORM_LIMITS?: string | undefined;
}

/**
 * @param isLocal whether `npm start` has started the Worker; elsewhere the platform enforces its limits
 * @throws EngineError `internal` for an unknown plan
 */
export function parsePlatform(variables: PlatformVariables, isLocal: boolean): PlatformSettings {
  const limitsOf = planOf('PLATFORM_LIMITS', variables.PLATFORM_LIMITS);
  const plan = planOf('PLATFORM_PLAN', variables.PLATFORM_PLAN) ?? 'paid';
  if (!isLocal) return { plan, enforced: false, hasLimits: true };
  return { plan: limitsOf ?? plan, enforced: limitsOf !== null, hasLimits: limitsOf !== null };
}

/** Why `PLATFORM_LIMITS` has no effect, or null. */
export function platformIssue({ PLATFORM_LIMITS: written = '' }: PlatformVariables, isLocal: boolean): string | null {
  if (isLocal || written.trim() === '') return null;
  return 'PLATFORM_LIMITS is for local systems (npm start); a deployment states its plan in PLATFORM_PLAN';
}

/** @returns null if it is unset or empty */
function planOf(setting: string, text: string | undefined): PlatformPlan | null {
  const written = text?.trim().toLowerCase() ?? '';
  if (written === '') return null;
  const plan = PLATFORM_PLANS.find((known) => known === written);
  if (plan !== undefined) return plan;
  const [nearest] = nearestNames(written, PLATFORM_PLANS);
  const hint = nearest === undefined ? '' : `; did you mean "${nearest}"?`;
  throw new EngineError('internal', `${setting} must be free or paid, found "${written.slice(0, 20)}"${hint}`);
}
