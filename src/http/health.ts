/** `GET /health`: liveness, and whether every configured part answers (H1). */
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';

export interface SystemStatus {
  /** Action types, with where they run. */
  readonly executors: readonly JsonObject[];
  readonly model: string;
  /** Model endpoints whose circuit breaker is open or half-open (L2). */
  readonly endpoints?: readonly object[];
  /** The runner's own health (the best one of several); null if none answers or none is configured. */
  readonly runner: JsonObject | null;
  /** Configured parts that do not work; absent or empty means ready. */
  readonly missing?: readonly MissingPart[];
  /** Databases that could not be read and were renamed. */
  readonly setAside?: readonly string[];
}

export interface MissingPart {
  readonly part: 'runner';
  readonly state: PartState;
  /** Message without an address. */
  readonly reason: string;
  /** Whether it has worked since this Worker started. */
  readonly workedBefore: boolean;
  /** How long this Worker has been running. */
  readonly upMs: number;
}

/** `unreachable`: it does not answer; `draining`: it accepts no new work; `unavailable`: it reports anything else. */
export const PART_STATES = ['healthy', 'starting', 'draining', 'unavailable', 'unreachable'] as const;
export type PartState = (typeof PART_STATES)[number];

/** The state of a runner. @param answer its answer to `/health`; null if it did not answer */
export function runnerState(answer: JsonObject | null): PartState {
  if (answer === null) return 'unreachable';
  const { status } = answer;
  return PART_STATES.find((state) => state === status) ?? 'unavailable';
}

/**
 * `starting` if a part has not worked yet, `degraded` if one no longer works, else `healthy`. A part that has never
 * answered counts as starting only for a while.
 */
export function healthStatus({ missing = [] }: Pick<SystemStatus, 'missing'>): 'healthy' | 'starting' | 'degraded' {
  if (missing.length === 0) return 'healthy';
  const isGone = ({ workedBefore, state, upMs }: MissingPart): boolean =>
    workedBefore || (state === 'unreachable' && upMs >= limits.healthStartMs);
  return missing.some(isGone) ? 'degraded' : 'starting';
}

/**
 * The document.
 *
 * @param isWhole false for callers without a key, who do not see models, endpoints and runners
 */
export function healthDocument(version: string, status: SystemStatus, isWhole: boolean): JsonObject {
  const { executors, model, endpoints = [], runner, missing = [], setAside = [] } = status;
  const [absent] = missing;
  return {
    status: healthStatus(status),
    service: 'cortex-edge',
    version,
    parts: runner !== null || absent !== undefined ? { runner: absent?.state ?? 'healthy' } : {},
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

/** The runner's health for callers with a key, without addresses. */
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
