/**
 * Chooses the runner of each job of a session (R7), and asks a runner for its health before it gets work.
 *
 * The rule: the first runner with a free place, the session's own first. A container that sleeps comes after those that are
 * awake. If no place is free, the job joins the queue of the session's own runner. Equal runners are ordered by rendezvous
 * hashing of the session, so an object that was evicted finds the runner of its session again.
 *
 * Owns: pending health requests, and the last runner of each session. Does not own: what is known about the runners, which
 * sessions share (record.ts), and jobs.
 *
 * Invariants:
 *  1. A session that stays on a runner with a free place asks no other one.
 *  2. A runner without contact within `limits.runnerAliveMs` must pass a health check before it gets a job or a call.
 *     The platform does not distinguish a refused connection from a lost answer; an unanswered health check proves that
 *     nothing was sent. For a job that may run only once, the contact must be one of this session.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { SingleRunner } from './client.ts';
import { RunnerError } from './error.ts';
import type { RunnerAddress } from './list.ts';
import { canRun, hasLabels, type Needs } from './needs.ts';
import type { RunnerRecord, RunnerReports } from './record.ts';
import { describeAbsence } from './wait.ts';

export interface Candidate {
  /** It did not answer, or drains. */
  readonly isDown: boolean;
  readonly isAsleep: boolean;
  readonly hasPlace: boolean;
  /** The session's last job ran on it. */
  readonly isLast: boolean;
  /** Rendezvous rank for the session. */
  readonly rank: number;
}

/** The runner of the next job; undefined without candidates. */
export function chooseRunner<Some extends Candidate>(candidates: readonly Some[]): Some | undefined {
  return candidates.toSorted(
    (a, b) => groupOf(a) - groupOf(b) || Number(b.isLast) - Number(a.isLast) || b.rank - a.rank,
  )[0];
}

function groupOf({ isDown, isAsleep, hasPlace }: Candidate): number {
  if (isDown) return 3;
  if (!hasPlace) return 2;
  return isAsleep ? 1 : 0;
}

/** Rendezvous hashing (FNV-1a): every Worker finds the same runner, and a new runner takes over only its own share. */
export function rankOf(url: string, key: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${url}\n${key}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  // Final mixing as in MurmurHash3: FNV gives similar hashes for similar texts.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export interface FleetOptions {
  readonly runners: readonly RunnerAddress[];
  readonly connect: (url: string, reports: RunnerReports) => SingleRunner;
  /** What is known about the runner with this URL. */
  readonly recordOf: (url: string) => RunnerRecord;
  readonly clock: Clock;
}

export interface FleetRunner {
  readonly address: RunnerAddress;
  readonly client: SingleRunner;
  readonly record: RunnerRecord;
  /** Time of the last contact of this session, epoch milliseconds. The record has that of all sessions. */
  readonly seen: { at: number };
  /** The pending health request. */
  asking: Promise<void> | null;
}

/** The runners as one session uses them. */
export class Fleet {
  readonly runners: readonly FleetRunner[];
  readonly #clock: Clock;
  /** The last runner of each session; the latest session last. */
  readonly #last = new Map<string, FleetRunner>();

  constructor({ runners, connect, recordOf, clock }: FleetOptions) {
    this.#clock = clock;
    this.runners = runners.map((address) => {
      const record = recordOf(address.url);
      const seen = { at: Number.NEGATIVE_INFINITY };
      const alive = {
        get at(): number {
          return record.alive.at;
        },
        set at(time: number) {
          record.alive.at = time;
          seen.at = time;
        },
      };
      const client = connect(address.url, { alive, jobAnswered: (answer) => record.jobAnswered(answer, clock.now()) });
      return { address, client, record, seen, asking: null };
    });
  }

  /** The session's jobs stay on the runner from now on. */
  stick(session: string, runner: FleetRunner): void {
    this.#last.delete(session);
    this.#last.set(session, runner);
    const [oldest] = this.#last.keys();
    if (this.#last.size > limits.runnerSessions && oldest !== undefined) this.#last.delete(oldest);
  }

  markDown({ record }: FleetRunner): void {
    record.markDown(this.#clock.now());
  }

  isUp({ record }: FleetRunner): boolean {
    return record.downUntil <= this.#clock.now();
  }

  /** Asks for its health, or joins the pending request. */
  measure(runner: FleetRunner): Promise<void> {
    return (runner.asking ??= this.#ask(runner));
  }

  async #ask(runner: FleetRunner): Promise<void> {
    const askedAt = this.#clock.now();
    const answer = await runner.client.health();
    const now = this.#clock.now();
    runner.record.healthAnswered(answer, now - askedAt, now);
    runner.asking = null;
  }

  /**
   * @param runsOnce the work must not run on another runner if this one is lost
   * @returns why the runner is unreachable; null if it can be used
   */
  async unreachable(runner: FleetRunner, runsOnce: boolean): Promise<RunnerError | null> {
    if (this.#isAlive(runner, runsOnce)) return null;
    await this.measure(runner);
    return runner.record.health === null ? absent(runner) : null;
  }

  #isAlive({ client, seen }: FleetRunner, runsOnce: boolean): boolean {
    return this.#clock.now() - (runsOnce ? seen.at : client.lastContactAt()) <= limits.runnerAliveMs;
  }

  /**
   * The runner for a job, which is reachable.
   *
   * @param tried runners that are not chosen
   * @param submits the job will be sent to it, and takes one of its places
   * @returns the error that says why none is reachable; null if none can run the job
   */
  async choose(
    needs: Needs,
    {
      tried,
      runsOnce,
      submits,
    }: { readonly tried: ReadonlySet<FleetRunner>; readonly runsOnce: boolean; readonly submits: boolean },
  ): Promise<FleetRunner | RunnerError | null> {
    const asked = new Set<FleetRunner>();
    let away: RunnerError | null = null;
    for (;;) {
      const runner = this.#best(needs, tried, asked);
      if (runner === undefined) return away;
      // An answer changes the order: the runner may be full or asleep.
      if (!asked.has(runner) && this.#mustAsk(runner, runsOnce)) {
        asked.add(runner);
        await this.measure(runner);
        if (runner.record.health === null) away ??= absent(runner);
        continue;
      }
      this.stick(needs.session, runner);
      if (submits) runner.record.takePlace();
      return runner;
    }
  }

  #mustAsk(runner: FleetRunner, runsOnce: boolean): boolean {
    return !this.#isAlive(runner, runsOnce) || (this.runners.length > 1 && runner.record.wasFull(this.#clock.now()));
  }

  /** @param asked runners whose health was just requested: without an answer, they are not chosen */
  #best(needs: Needs, tried: ReadonlySet<FleetRunner>, asked: ReadonlySet<FleetRunner>): FleetRunner | undefined {
    const now = this.#clock.now();
    const able = this.runners.filter(
      (runner) =>
        !tried.has(runner) &&
        !(asked.has(runner) && runner.record.health === null) &&
        hasLabels(runner.address, needs.labels ?? []) &&
        canRun(runner.address, runner.record.health, needs),
    );
    // One that was down gets no work before it has answered, and no job waits for that.
    if (able.length > 1) for (const runner of able) if (runner.record.isDue(now)) void this.measure(runner);
    const last = this.#last.get(needs.session);
    return chooseRunner(
      able.map((runner) => ({
        runner,
        isDown: runner.record.isDown,
        isAsleep: runner.record.isAsleep,
        hasPlace: runner.record.hasPlace(now),
        isLast: runner === last,
        rank: rankOf(runner.address.url, needs.session),
      })),
    )?.runner;
  }
}

function absent({ record }: FleetRunner): RunnerError {
  return new RunnerError('runner_unavailable', describeAbsence(record.lastAnswer), { beforeDispatch: true });
}
