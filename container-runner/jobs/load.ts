/**
 * What the runner tells about its load (R7): how long jobs hold a place, and how long a new job would wait for one. The
 * Worker chooses among runners by it.
 */
import { limits } from '../limits.ts';

/** Header of the answers to `PUT /jobs/{id}`. */
export const LOAD_HEADER = 'cortex-load';

/** The load as a new job of one session sees it. Times are milliseconds. */
export interface Load {
  readonly running: number;
  readonly queued: number;
  readonly maxRunning: number;
  /** How long a job holds its place, on average. */
  readonly jobMs: number;
  /** Expected wait for a place of the next job of this session. */
  readonly waitMs: number;
  /** The same for a session without jobs. */
  readonly firstMs: number;
}

/** The smoothed time for which jobs hold a place. Jobs that still run count with their age as soon as they are longer. */
export class PlaceTime {
  readonly #takenAt = new Map<string, number>();
  #sumTakenAt = 0;
  #smoothedMs: number | null = null;

  taken(id: string, now: number): void {
    this.#takenAt.set(id, now);
    this.#sumTakenAt += now;
  }

  freed(id: string, now: number): void {
    const takenAt = this.#takenAt.get(id);
    if (takenAt === undefined) return;
    this.#takenAt.delete(id);
    this.#sumTakenAt -= takenAt;
    const ms = Math.max(0, now - takenAt);
    this.#smoothedMs =
      this.#smoothedMs === null ? ms : this.#smoothedMs + limits.placeTimeWeight * (ms - this.#smoothedMs);
  }

  meanMs(now: number): number {
    const { size } = this.#takenAt;
    const meanAgeMs = size === 0 ? 0 : now - this.#sumTakenAt / size;
    return Math.max(this.#smoothedMs ?? limits.placeTimeMs, meanAgeMs);
  }
}

/** @param ahead queued jobs that start before it */
export function waitMsOf(
  ahead: number,
  { hasFreePlace, maxRunning, jobMs }: { readonly hasFreePlace: boolean; maxRunning: number; jobMs: number },
): number {
  return hasFreePlace && ahead === 0 ? 0 : ((ahead + 1) * jobMs) / maxRunning;
}

/** `running=8, queued=20, max_running=8, job_ms=250, wait_ms=700, first_ms=60` */
export function formatLoad({ running, queued, maxRunning, jobMs, waitMs, firstMs }: Load): string {
  const members = {
    running,
    queued,
    max_running: maxRunning,
    job_ms: Math.round(jobMs),
    wait_ms: Math.round(waitMs),
    first_ms: Math.round(firstMs),
  };
  return Object.entries(members)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');
}
