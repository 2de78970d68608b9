/**
 * Plans of the platform, and what an invocation may do on each (docs/deploy.md). An invocation is a request, an RPC call
 * or an alarm. All requests of one object share its connections.
 */
import { limits } from './limits.ts';

export const PLATFORM_PLANS = ['free', 'paid'] as const;
export type PlatformPlan = (typeof PLATFORM_PLANS)[number];

/** Outbound requests of one invocation, by plan. */
export const PLAN_SUBREQUESTS: Readonly<Record<PlatformPlan, number>> = {
  free: limits.platformFreeSubrequests,
  paid: limits.platformPaidSubrequests,
};
