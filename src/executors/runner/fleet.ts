/**
 * The runners as one session uses them (R7): asks for their state when it is outdated, and chooses one for each job.
 *
 * Owns: pending health requests, the runners that each session used, and what each runner told this session. Does not
 * own: what is known about the runners, which sessions share (record.ts), and jobs.
 *
 * Invariants:
 *  1. A choice for a session that stays on its runner needs no request.
 *  2. A runner without contact within `limits.runnerAliveMs` must pass a health check before it gets a job or a call.
 *     The platform does not distinguish a refused connection from a lost answer; an unanswered health check proves that
 *     nothing was sent. For a job that may run only once, the contact must be one of this session.
 *  3. A runner that is too far away to be chosen is asked at most every `limits.runnerExploreMs` by all sessions of a
 *     thread.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock, Random } from '../../domain/ports/clock.ts';
import { chooseRunner, moveMsOf, rankOf } from './choice.ts';
import { isAsleep, type JobAnswer, type KnownWait, type RunnerRecord, type RunnerReports } from './record.ts';
import type { SingleRunner } from './client.ts';
import { RunnerError } from './error.ts';
import type { RunnerAddress } from './list.ts';
import { canRun, hasLabels, type Needs } from './needs.ts';
import { describeAbsence } from './wait.ts';

export interface FleetOptions {
  readonly runners: readonly RunnerAddress[];
  readonly connect: (url: string, reports: RunnerReports) => SingleRunner;
  /** What is known about the runner with this URL. */
  readonly recordOf: (url: string) => RunnerRecord;
  readonly clock: Clock;
  /** For the jitter of pauses; default: none. */
  readonly random?: Random | undefined;
}

export interface FleetRunner {
  readonly address: RunnerAddress;
  readonly client: SingleRunner;
  readonly record: RunnerRecord;
  /** Time of the last contact of this session, epoch milliseconds. The record has that of all sessions. */
  readonly seen: { at: number };
  /** The pending health request. */
  asking: Promise<void> | null;
  /** What it told this session. */
  own: KnownWait | null;
  /** It rejected a job of this session; null once it has accepted one. */
  full: Full | null;
}

/** One job at a time finds out whether a full runner accepts jobs again. */
interface Full {
  /** No job is offered before this time. */
  readonly until: number;
  /** Rejections in a row. */
  readonly refusals: number;
  /** A job was offered; the others wait for the answer. */
  readonly isProbed: boolean;
}

/** How a session used a runner. */
interface Use {
  /** Time of the last use, epoch milliseconds. */
  readonly at: number;
  /** Hashes of files that the session's jobs left on it; at most about `limits.workspaceFiles`. */
  readonly left: ReadonlySet<string>;
}

export class Fleet {
  readonly runners: readonly FleetRunner[];
  readonly #clock: Clock;
  readonly #random: Random;
  /** Runners used by each session; the latest last. */
  readonly #sessions = new Map<string, Map<FleetRunner, Use>>();

  constructor({ runners, connect, recordOf, clock, random = () => 0 }: FleetOptions) {
    this.#clock = clock;
    this.#random = random;
    this.runners = runners.map((address) => {
      const record = recordOf(address.url);
      const jobAnswered = (answer: JobAnswer): void => {
        const own = record.jobAnswered(answer, clock.now());
        if (own !== null) runner.own = own;
        if (answer.status < 300) runner.full = null;
      };
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
      const runner: FleetRunner = {
        address,
        client: connect(address.url, { alive, jobAnswered }),
        record,
        seen,
        asking: null,
        own: null,
        full: null,
      };
      return runner;
    });
  }

  stick(session: string, runner: FleetRunner): void {
    const used = this.#sessions.get(session) ?? new Map<FleetRunner, Use>();
    const left = used.get(runner)?.left ?? new Set();
    used.delete(runner);
    used.set(runner, { at: this.#clock.now(), left });
    this.#sessions.delete(session);
    this.#sessions.set(session, used);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > limits.runnerSessions && oldest !== undefined) this.#sessions.delete(oldest);
  }

  /** A job of the session left files with these hashes on the runner. */
  keep(session: string, runner: FleetRunner, hashes: readonly string[]): void {
    const used = this.#sessions.get(session);
    const use = used?.get(runner);
    if (used === undefined || use === undefined || hashes.length === 0) return;
    const isFull = use.left.size + hashes.length > limits.workspaceFiles;
    used.set(runner, { at: use.at, left: new Set([...(isFull ? [] : use.left), ...hashes]) });
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
    const { record, client } = runner;
    const askedAt = this.#clock.now();
    record.asking(askedAt);
    const answer = await client.health();
    const now = this.#clock.now();
    record.healthAnswered(answer, now - askedAt, now);
    runner.asking = null;
  }

  /**
   * @param runsOnce the job must not run on another runner if this one is lost
   * @returns why the runner is unreachable; null if it can be used
   */
  async unreachable(runner: FleetRunner, runsOnce: boolean): Promise<RunnerError | null> {
    if (this.#isAlive(runner, runsOnce)) return null;
    await this.measure(runner);
    if (runner.record.health !== null) return null;
    const why = describeAbsence(runner.record.lastAnswer);
    return new RunnerError('runner_unavailable', why, { beforeDispatch: true });
  }

  /**
   * The runner for a job, or null if none is left.
   *
   * @param submits the job will be submitted; it counts at once, because jobs that choose at the same time must see each
   *   other
   */
  async choose(
    needs: Needs,
    { tried, submits }: { readonly tried: ReadonlySet<FleetRunner>; readonly submits: boolean },
  ): Promise<FleetRunner | null> {
    const among = this.runners.filter((runner) => !tried.has(runner) && hasLabels(runner.address, needs.labels ?? []));
    if (this.runners.length > 1) await this.#refresh(needs, among);
    // Another job of the session may have chosen in the meantime. The known state may also be outdated: a useless
    // request is better than none.
    const now = this.#clock.now();
    // A full runner that became unreachable is offered again: it may have restarted, with an empty queue.
    const usable = among.filter((runner) => !this.#isFull(runner, now));
    const best = this.runners.length > 1 ? this.#best(needs, usable)?.chosen.runner : usable[0];
    const chosen = best ?? this.#unknown(needs, usable);
    if (chosen !== null) this.stick(needs.session, chosen);
    if (!submits || chosen === null) return chosen;
    chosen.record.submitting();
    if (chosen.full !== null) chosen.full = { ...chosen.full, until: now + limits.runnerRetryMaxMs, isProbed: true };
    return chosen;
  }

  /** Updates what the choice for a session depends on, unless it is recent. */
  async #refresh(needs: Needs, among: readonly FleetRunner[]): Promise<void> {
    const last = this.#best(needs, among)?.chosen;
    // It must pass a health check anyway; the answer also tells its load.
    if (last?.isLast === true && !this.#isAlive(last.runner)) await this.measure(last.runner);
    const known = this.#best(needs, among);
    const stays = known?.chosen.isLast === true && known.costMs <= limits.runnerSwitchMs;
    if (!stays) await this.#weigh(among, needs);
  }

  #isAlive({ client, seen }: FleetRunner, forOnce = false): boolean {
    return this.#clock.now() - (forOnce ? seen.at : client.lastContactAt()) <= limits.runnerAliveMs;
  }

  /** The runner has rejected a job of the session. @param retryAfterMs what it asked for, in whole seconds */
  markFull(runner: FleetRunner, retryAfterMs: number): void {
    const { full, own } = runner;
    const now = this.#clock.now();
    // Of jobs that were offered together, only the first counts.
    if (full !== null && !full.isProbed && full.until > now) return;
    const refusals = full?.refusals ?? 0;
    // The expected wait is more precise: it is the time in which the queue gets empty.
    const waitMs = own === null ? retryAfterMs : Math.max(limits.runnerRetryMs, own.waitMs);
    const pauseMs = Math.min(retryAfterMs, waitMs) * Math.min(2 ** refusals, limits.runnerBusyMostFactor);
    runner.full = { until: now + pauseMs * (1 + this.#random()), refusals: refusals + 1, isProbed: false };
  }

  #isFull(runner: FleetRunner, now: number): boolean {
    return runner.full !== null && runner.full.until > now && this.isUp(runner);
  }

  /** Milliseconds until one of these runners may accept jobs of the session again; null unless all of them are full. */
  fullForMs(needs: Needs): number | null {
    const now = this.#clock.now();
    const able = this.runners.filter(
      (runner) => hasLabels(runner.address, needs.labels ?? []) && this.isUp(runner) && this.#canRun(runner, needs),
    );
    const until = Math.min(...able.map(({ full }) => full?.until ?? 0));
    return Number.isFinite(until) && until > now ? until - now : null;
  }

  /** A runner without a health answer: the highest by rank, so that not all sessions try the same one. */
  #unknown({ session }: Needs, among: readonly FleetRunner[]): FleetRunner | null {
    const unknown = among.filter(({ record }) => record.health === null);
    const rank = ({ address }: FleetRunner): number => rankOf(address.url, session);
    return unknown.toSorted((a, b) => rank(b) - rank(a))[0] ?? null;
  }

  #canRun({ address, record }: FleetRunner, needs: Needs): boolean {
    return canRun(address, record.health, needs);
  }

  /** The best of the runners that are up and whose health is known. */
  #best(needs: Needs, among: readonly FleetRunner[]) {
    const now = this.#clock.now();
    const { session, workspace } = needs;
    const used = this.#sessions.get(session);
    const able = among.filter(
      (runner) => this.isUp(runner) && runner.record.health !== null && this.#canRun(runner, needs),
    );
    const latest = [...(used?.keys() ?? [])].findLast((runner) => able.includes(runner));
    const ranked = able.map((runner) => ({ runner, rank: rankOf(runner.address.url, session) }));
    const highest = Math.max(...ranked.map(({ rank }) => rank));
    return chooseRunner(
      ranked.map(({ runner, rank }) => {
        // A session that this object does not remember was probably on the runner with the highest rank.
        const use = used?.get(runner);
        const usedAt = use?.at ?? (used === undefined && rank === highest ? now : null);
        return {
          runner,
          rank,
          startMs: runner.record.startMs(runner.own, now),
          moveMs: workspace === undefined ? 0 : moveMsOf(workspace.files, usedAt, use?.left),
          load: runner.record.loadPerPlace(now),
          isLast: runner === latest,
        };
      }),
    );
  }

  /**
   * Refreshes outdated loads. An unanswered runner is at least as far away as the time that has passed, so the wait ends
   * when it cannot be the best one any more.
   */
  async #weigh(among: readonly FleetRunner[], needs: Needs): Promise<void> {
    const startedAt = this.#clock.now();
    const leastMs = this.#best(needs, among)?.costMs ?? Number.POSITIVE_INFINITY;
    const stale = among.filter((runner) => this.#isStale(runner, leastMs));
    if (stale.length === 0) return;
    await new Promise<void>((resolve) => {
      let cancel: () => void = () => undefined;
      let pending = stale.length;
      const check = (): void => {
        cancel();
        const best = this.#best(needs, among);
        const mostMs = Math.min(limits.runnerChoiceMs, Math.max(limits.runnerTieMs, best?.costMs ?? 0));
        const leftMs = startedAt + mostMs - this.#clock.now();
        if (pending === 0 || (best !== null && leftMs <= 0)) resolve();
        else if (best !== null) cancel = this.#clock.schedule(leftMs, resolve);
      };
      for (const runner of stale) {
        void this.measure(runner).finally(() => {
          pending -= 1;
          check();
        });
      }
      check();
    });
  }

  /** @param leastMs the earliest known start */
  #isStale({ asking, record }: FleetRunner, leastMs: number): boolean {
    if (asking !== null) return true;
    const now = this.#clock.now();
    if (record.downUntil > now) return false;
    const sinceAskedMs = now - record.askedAt;
    // If nothing is known, the pending question of another session does not help.
    if (record.health === null) return sinceAskedMs >= limits.runnerLoadMs || leastMs === Number.POSITIVE_INFINITY;
    if (sinceAskedMs >= limits.runnerExploreMs) return true;
    const isTooFar = (record.roundTripMs ?? 0) > leastMs;
    return !isTooFar && now - Math.max(record.askedAt, record.loadAt) >= limits.runnerLoadMs;
  }
}

/** Whether a job for the runner waits for the start of its container. */
export function startsFirst({ record }: FleetRunner): boolean {
  return isAsleep(record.health);
}
