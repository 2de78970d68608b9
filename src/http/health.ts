/** What `GET /health` says: alive, and whether everything that is configured answers (H1). */
import type { JsonObject } from '../domain/json.ts';

export interface SystemStatus {
  /** Action types with where they run. */
  readonly executors: readonly JsonObject[];
  readonly model: string;
  /** Model endpoints that are left alone or on trial (L2). */
  readonly endpoints?: readonly object[];
  /** What the runner says of itself, of several the best off; null when none answers or none is configured. */
  readonly runner: JsonObject | null;
  /** Parts that are configured and do not work; absent or empty = ready. */
  readonly missing?: readonly MissingPart[];
  /** Databases that could not be read and were renamed. */
  readonly setAside?: readonly string[];
}

export interface MissingPart {
  readonly part: 'runner';
  /** In words, without an address. */
  readonly reason: string;
  /** It has worked since this Worker started. */
  readonly workedBefore: boolean;
}

/** `starting` while a part has not worked yet, `degraded` when one works no more, else `healthy`. */
export function healthStatus({ missing = [] }: Pick<SystemStatus, 'missing'>): 'healthy' | 'starting' | 'degraded' {
  if (missing.length === 0) return 'healthy';
  return missing.some(({ workedBefore }) => workedBefore) ? 'degraded' : 'starting';
}

/**
 * The document.
 *
 * @param isWhole false for callers without a key: which model, endpoints and runners there are is not for them
 */
export function healthDocument(version: string, status: SystemStatus, isWhole: boolean): JsonObject {
  const { executors, model, endpoints = [], runner, missing = [], setAside = [] } = status;
  return {
    status: healthStatus(status),
    service: 'cortex-edge',
    version,
    ...(missing.length === 0 ? {} : { missing: missing.map(({ part, reason }) => ({ part, reason })) }),
    executors: executors
      .filter((executor) => executor['available'] === true)
      .map((executor) => executor['type'] ?? null),
    ...(isWhole
      ? {
          model,
          model_endpoints: endpoints.map((endpoint) => endpoint as JsonObject),
          runner: runner === null ? null : runnerHealth(runner),
          ...(setAside.length === 0 ? {} : { set_aside: [...setAside] }),
        }
      : {}),
  };
}

/** What every caller with a key may know of the runners: no addresses. */
function runnerHealth({ status, sandbox, relics, runners, starting, set_aside: setAside }: JsonObject): JsonObject {
  return {
    status: status ?? 'unknown',
    sandbox: sandbox ?? null,
    relics: relics ?? null,
    ...(starting === undefined ? {} : { starting }),
    // State files that could not be read and were renamed.
    ...(Array.isArray(setAside) && setAside.length > 0 ? { set_aside: setAside } : {}),
    ...(runners === undefined ? {} : { runners }),
  };
}
