/**
 * What is known about one runner (R7): its last answers, its load, and how far away it is. All sessions of a thread share
 * it, so that a session needs no requests of its own to choose a runner.
 *
 * Owns data only: an object must not wait for a request of another one, so pending requests belong to the pool.
 */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

/** Header of a runner's answers to jobs (docs/runner.md#load). */
const LOAD_HEADER = 'cortex-load';
/** Header of answers that waited for the start of a container: the milliseconds of this wait. */
export const COLD_START_HEADER = 'cortex-cold-start';
/** Header of jobs that may run twice. */
export const REPEATABLE_HEADER = 'cortex-repeatable';
/** Code of a container's front: the request was sent to the container once, and the answer is lost. */
export const OUTCOME_UNKNOWN = 'outcome_unknown';

/** An answer to a submitted job. */
export interface JobAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** From the request to the answer. */
  readonly ms: number;
}

/** What a client reports about its runner. */
export interface RunnerReports {
  /** Time of the last contact, epoch milliseconds; `-Infinity` before the first and after a failed connection. */
  readonly alive: { at: number };
  readonly jobAnswered: (answer: JobAnswer) => void;
}

/** The expected wait for a place, in milliseconds, as of a time. */
export interface KnownWait {
  readonly waitMs: number;
  readonly at: number;
}

interface KnownLoad extends KnownWait {
  readonly running: number;
  readonly queued: number;
  readonly maxRunning: number;
  readonly jobMs: number;
}

export class RunnerRecord {
  /** Its last health answer if it is usable: healthy, or a container that sleeps. */
  health: JsonObject | null = null;
  /** Its last health answer, even if it was not healthy; null if there was none. */
  lastAnswer: JsonObject | null = null;
  /** When its health was requested. */
  askedAt = Number.NEGATIVE_INFINITY;
  /** Not chosen before this time. */
  downUntil = 0;
  /** Time of the last contact, see `SingleRunner.lastContactAt`. */
  readonly alive = { at: Number.NEGATIVE_INFINITY };
  #load: KnownLoad | null = null;
  #roundTrip: { readonly ms: number; readonly at: number } | null = null;
  #coldStartMs: number = limits.containerColdStartMs;
  /** Jobs that chose it and have no answer yet. */
  #submitting = 0;

  /** Smoothed milliseconds of a request; null if it is unknown. */
  get roundTripMs(): number | null {
    return this.#roundTrip?.ms ?? null;
  }

  /** When its load was reported. */
  get loadAt(): number {
    return this.#load?.at ?? Number.NEGATIVE_INFINITY;
  }

  get isAsleep(): boolean {
    return isAsleep(this.health);
  }

  submitting(): void {
    this.#submitting += 1;
  }

  /** A job that chose it has an answer, or will not get one. */
  submitted(): void {
    this.#submitting = Math.max(0, this.#submitting - 1);
  }

  asking(now: number): void {
    this.askedAt = now;
    // The answer includes them. It also corrects the number after the end of an object that did not report an answer.
    this.#submitting = 0;
  }

  /** @param answer null: there was none @param ms from the request to the answer */
  healthAnswered(answer: JsonObject | null, ms: number, now: number): void {
    this.lastAnswer = answer;
    const isUsable = answer?.['status'] === 'healthy' || isAsleep(answer);
    this.health = isUsable ? answer : null;
    if (!isUsable) {
      this.markDown(now);
      return;
    }
    this.downUntil = 0;
    this.#measured(ms, now);
    const jobs = answer?.['jobs'];
    if (isJsonObject(jobs)) this.#load = loadOf((name) => jobs[name], 'first_ms', now);
  }

  /** @returns the wait of the session that submitted the job, if the runner told it */
  jobAnswered({ status, headers, ms }: JobAnswer, now: number): KnownWait | null {
    this.submitted();
    // It stops, or does not start, or a proxy answered.
    if (status >= 500) return null;
    const coldStart = Number(headers.get(COLD_START_HEADER) ?? Number.NaN);
    // The time in which a container starts says nothing about its speed and distance.
    if (Number.isNaN(coldStart)) this.#measured(ms, now);
    else this.#coldStartMs = smooth(this.#coldStartMs, coldStart);
    if (this.health !== null && this.isAsleep) this.health = { ...this.health, status: 'healthy' };
    const members = new Map((headers.get(LOAD_HEADER) ?? '').split(',').map((member) => pairOf(member)));
    if (!members.has('wait_ms')) return null;
    const member = (name: string): unknown => members.get(name);
    this.#load = loadOf(member, 'first_ms', now);
    const { waitMs } = loadOf(member, 'wait_ms', now);
    return { waitMs, at: now };
  }

  markDown(now: number): void {
    this.health = null;
    this.downUntil = now + limits.runnerDownMs;
  }

  /**
   * Milliseconds until a job that is submitted now would start: the round trip, and the wait for a place. A report gets
   * older, and the wait with it shorter, so a runner that was full is tried again.
   *
   * @param own what the runner told the session; null: nothing, so the wait of a session without jobs counts
   */
  startMs(own: KnownWait | null, now: number): number {
    const roundTripMs = this.#roundTrip?.ms ?? 0;
    if (this.isAsleep) {
      const startingMs = Number(this.health?.['starting_ms'] ?? 0) || 0;
      return roundTripMs + Math.max(0, this.#coldStartMs - startingMs);
    }
    const load = this.#load;
    if (load === null) return roundTripMs;
    const remaining = (wait: KnownWait): number => Math.max(0, wait.waitMs - (now - wait.at));
    // The session's own jobs wait longer than the first job of another one, but the report about it may be older.
    const waitMs = Math.max(remaining(load), own === null ? 0 : remaining(own));
    const free = Math.max(0, load.maxRunning - occupied(load, now));
    return roundTripMs + waitMs + (Math.max(0, this.#submitting - free) * load.jobMs) / load.maxRunning;
  }

  /** Jobs per place. */
  loadPerPlace(now: number): number {
    const load = this.#load;
    return load === null ? this.#submitting : (occupied(load, now) + this.#submitting) / load.maxRunning;
  }

  #measured(ms: number, now: number): void {
    const known = this.#roundTrip;
    const isOld = known === null || now - known.at > limits.runnerExploreMs;
    this.#roundTrip = { ms: isOld ? ms : smooth(known.ms, ms), at: now };
  }
}

/** A container that starts with the next job. */
export function isAsleep(health: JsonObject | null): boolean {
  return health?.['status'] === 'asleep';
}

/** Jobs that probably have not ended since the report. */
function occupied({ running, queued, maxRunning, jobMs, at }: KnownLoad, now: number): number {
  const ended = jobMs > 0 ? ((now - at) * maxRunning) / jobMs : 0;
  return Math.max(0, running + queued - ended);
}

function smooth(known: number, sample: number): number {
  return known + limits.runnerSmoothing * (sample - known);
}

function pairOf(member: string): readonly [name: string, value: string] {
  const [name = '', value = ''] = member.split('=');
  return [name.trim(), value.trim()];
}

function loadOf(member: (name: string) => unknown, wait: string, now: number): KnownLoad {
  const number = (name: string): number => {
    const value = Number(member(name) ?? 0);
    return Number.isFinite(value) && value > 0 ? value : 0;
  };
  return {
    running: number('running'),
    queued: number('queued'),
    maxRunning: Math.max(1, number('max_running')),
    jobMs: number('job_ms'),
    waitMs: number(wait),
    at: now,
  };
}
