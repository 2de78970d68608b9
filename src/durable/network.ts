/**
 * Outbound requests of the Worker's code: the only place that takes `fetch` from the platform.
 *
 * A session's object spreads what exceeds its connections over helper invocations (Z3, docs/decisions/043). Other
 * invocations, such as a request or a code tool, use their own connections only.
 */
import { limits } from '../domain/limits.ts';
import { PLAN_SUBREQUESTS } from '../domain/platform-plan.ts';
import type { PlatformPlan } from '../domain/platform-plan.ts';
import { ConnectionPool } from '../executors/outbound/connection-pool.ts';
import { PlatformLimits } from '../executors/outbound/platform-limits.ts';
import type { NetworkFetch } from '../executors/outbound/platform-limits.ts';
import { Subrequests } from '../executors/outbound/subrequests.ts';
import type { Settings } from '../settings/settings.ts';
import type { OutboundHostRpc } from './env.ts';
import { helperOf } from './outbound-helper.ts';
import { platformClock } from './platform.ts';

/** The outbound requests of one I/O context. */
export interface Network {
  /** Requests of actions, feeds and messages: to addresses from manifests and models. */
  readonly tools: NetworkFetch;
  /** Requests to models, runners and collectors. */
  readonly services: NetworkFetch;
  /** A new event has been delivered to the object: the platform's limits begin again. */
  topUp(): void;
}

type NetworkSettings = Pick<Settings, 'platform'>;

const platformFetch: NetworkFetch = (url, init) => fetch(url, init);

/** For one invocation, or an object with few requests: all requests use its own connections. */
export function invocationNetwork({ platform }: NetworkSettings): Network {
  return networkWith(platform, null);
}

/**
 * For a session's object.
 *
 * @param loopback the Worker's own entrypoints (`ctx.exports`); without `OutboundHost`, every request is direct
 */
export function sessionNetwork({ platform }: NetworkSettings, loopback: unknown): Network {
  const { OutboundHost: host } = (loopback ?? {}) as { readonly OutboundHost?: OutboundHostRpc };
  // A local system has no limits unless it enforces them, and a direct request costs least.
  return networkWith(platform, platform.hasLimits ? (host ?? null) : null);
}

function networkWith({ plan, enforced, hasLimits }: Settings['platform'], host: OutboundHostRpc | null): Network {
  const limited = enforced ? new PlatformLimits(plan, platformFetch) : null;
  const subrequests = new Subrequests(hasLimits ? plan : null);
  const pool = new ConnectionPool({
    direct: limited?.fetch ?? platformFetch,
    openHelper: host === null ? null : () => helperOf(host, enforced ? plan : null),
    subrequests,
    helperRequests: helperRequestsOf(plan),
    clock: platformClock,
  });
  return {
    tools: pool.fetcher('tool'),
    services: pool.fetcher('service'),
    topUp: () => {
      subrequests.topUp();
      limited?.topUp();
    },
  };
}

/**
 * Requests of one helper. It has a plan's limit of its own, which begins again only with a new helper; a request that follows
 * redirects counts more than once.
 */
function helperRequestsOf(plan: PlatformPlan): number {
  return Math.min(limits.outboundHelperRequests, PLAN_SUBREQUESTS[plan] - limits.platformReservedSubrequests);
}

/** `fetch` of an invocation that sends requests for a session. @param plan whose limits are enforced; null: none */
export function helperFetch(plan: PlatformPlan | null): NetworkFetch {
  return plan === null ? platformFetch : new PlatformLimits(plan, platformFetch).fetch;
}
