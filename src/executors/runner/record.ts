/**
 * What is known about one runner (R7): its last answers, and its free places. All sessions of a thread share it, so that a
 * session needs no requests of its own to choose a runner.
 *
 * Owns data only: an object must not wait for a request of another one, so pending requests belong to the pool.
 */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

/** Header of a runner's answers to jobs (docs/runner.md#load). */
const LOAD_HEADER = 'cortex-load';
/** Header of jobs that may run twice. */
export const REPEATABLE_HEADER = 'cortex-repeatable';
/** Code of a container's front: the request was sent to the container once, and the answer is lost. */
export const OUTCOME_UNKNOWN = 'outcome_unknown';

/** An answer to a submitted job. */
export interface JobAnswer {
  readonly status: number;
  readonly headers: Headers;
}

/** What a client reports about its runner. */
export interface RunnerReports {
  /** Time of the last contact, epoch milliseconds; `-Infinity` before the first and after a failed connection. */
  readonly alive: { at: number };
  readonly jobAnswered: (answer: JobAnswer) => void;
}

export class RunnerRecord {
  /** Its last health answer if it is usable: healthy, or a container that sleeps. */
  health: JsonObject | null = null;
  /** Its last health answer, even if it was not healthy; null if there was none. */
  lastAnswer: JsonObject | null = null;
  /** Milliseconds of the last health request that had a usable answer. */
  roundTripMs: number | null = null;
  /** Without an answer, it is not asked before this time, unless there is no other runner. */
  downUntil = 0;
  /** Time of the last contact, see `SingleRunner.lastContactAt`. */
  readonly alive = { at: Number.NEGATIVE_INFINITY };
  /** Free places as of a time, without those of queued jobs; null if they are unknown. */
  #places: { free: number; readonly at: number } | null = null;

  /** A container that starts with the next job. One that is starting counts as awake. */
  get isAsleep(): boolean {
    return startsFirst(this) && this.health?.['starting_ms'] === undefined;
  }

  /** It did not answer when it was last asked, or accepts no jobs. */
  get isDown(): boolean {
    return this.health === null && this.downUntil > 0;
  }

  /** It was down, and may be back. */
  isDue(now: number): boolean {
    return this.isDown && this.downUntil <= now;
  }

  /** Whether a job would probably start at once. */
  hasPlace(now: number): boolean {
    return this.#places === null || this.#places.free > 0 || this.wasFull(now);
  }

  /** It was full, so long ago that it may have places again. */
  wasFull(now: number): boolean {
    return this.#places !== null && this.#places.free <= 0 && now - this.#places.at >= limits.runnerLoadMs;
  }

  /** A job is sent to it. It counts at once, because jobs that choose at the same time must see each other. */
  takePlace(): void {
    if (this.#places !== null) this.#places.free -= 1;
  }

  /** A job has ended on it. */
  givePlace(): void {
    if (this.#places !== null) this.#places.free += 1;
  }

  /** @param answer null: there was none @param ms from the request to the answer */
  healthAnswered(answer: JsonObject | null, ms: number, now: number): void {
    this.lastAnswer = answer;
    if (answer?.['status'] !== 'healthy' && answer?.['status'] !== 'asleep') {
      this.markDown(now);
      return;
    }
    this.health = answer;
    this.downUntil = 0;
    this.roundTripMs = ms;
    const jobs = answer['jobs'];
    this.#places = isJsonObject(jobs) ? placesOf((name) => jobs[name], now) : null;
  }

  jobAnswered({ status, headers }: JobAnswer, now: number): void {
    // It stops, or does not start, or a proxy answered.
    if (status >= 500) return;
    if (startsFirst(this)) this.health = { ...this.health, status: 'healthy' };
    const members = new Map((headers.get(LOAD_HEADER) ?? '').split(',').map((member) => pairOf(member)));
    if (members.has('max_running')) this.#places = placesOf((name) => members.get(name), now);
  }

  markDown(now: number): void {
    this.health = null;
    this.downUntil = now + limits.runnerDownMs;
  }
}

/** Whether a job for the runner waits for the start of its container. */
export function startsFirst({ health }: Pick<RunnerRecord, 'health'>): boolean {
  return health?.['status'] === 'asleep';
}

function pairOf(member: string): readonly [name: string, value: string] {
  const [name = '', value = ''] = member.split('=');
  return [name.trim(), value.trim()];
}

function placesOf(member: (name: string) => unknown, now: number): { free: number; readonly at: number } {
  const number = (name: string): number => {
    const value = Number(member(name) ?? 0);
    return Number.isFinite(value) && value > 0 ? value : 0;
  };
  return { free: Math.max(1, number('max_running')) - number('running') - number('queued'), at: now };
}
