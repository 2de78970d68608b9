/**
 * Combines several runners into one client (R7): each job goes to the least loaded runner that can run it, a session's
 * jobs stay on one runner, and a job that a runner cannot accept goes to the next one.
 *
 * Owns: the runner of each session, and the known load of each runner. Does not own: running jobs, which belong to
 * their client, and the wait for a runner (wait.ts).
 *
 * Invariants:
 *  1. A job that may have started on a runner starts on another one only if it is movable (S7).
 *  2. A job is offered to each runner at most once per round. A new round begins only if nothing was sent.
 *  3. A runner without contact within `limits.runnerAliveMs` must pass a health check before it gets a job or a call.
 *     The platform does not distinguish a refused connection from a lost answer; an unanswered health check proves that
 *     nothing was sent.
 */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RelicDefinition } from '../../domain/manifests/relic.ts';
import type { SandboxLevel } from '../../domain/manifests/program.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type {
  JobObserver,
  JobResult,
  RelicAnswer,
  RelicCall,
  RunnerClient,
  RunnerJob,
} from '../../domain/ports/runner.ts';
import type { SingleRunner } from './client.ts';
import { RunnerError } from './error.ts';
import type { RunnerAddress } from './list.ts';
import { describeAbsence, retryUntilReached } from './wait.ts';

export interface RunnerPoolOptions {
  readonly runners: readonly RunnerAddress[];
  readonly connect: (url: string) => SingleRunner;
  readonly clock: Clock;
}

/** The requirements of a job. */
type Needs = Pick<RunnerJob, 'session' | 'kind'> &
  Partial<Pick<RunnerJob, 'runtime' | 'image' | 'build' | 'sandbox' | 'labels'>>;

interface PooledRunner {
  readonly address: RunnerAddress;
  readonly client: SingleRunner;
  health: JsonObject | null;
  /** Its last health answer, even if it was not healthy; null if there was none. */
  lastAnswer: JsonObject | null;
  /** When `health` was requested. */
  askedAt: number;
  /** The pending health request. */
  asking: Promise<void> | null;
  /** Jobs submitted since then. */
  since: number;
  /** Not chosen before this time. */
  downUntil: number;
}

export function createRunnerPool({ runners, connect, clock }: RunnerPoolOptions): RunnerClient {
  const pooled: readonly PooledRunner[] = runners.map((address) => ({
    address,
    client: connect(address.url),
    health: null,
    lastAnswer: null,
    askedAt: Number.NEGATIVE_INFINITY,
    asking: null,
    since: 0,
    downUntil: 0,
  }));
  /** Runners used by each session, the latest last. */
  const sessions = new Map<string, readonly PooledRunner[]>();

  function stick(session: string, runner: PooledRunner): void {
    const used = sessions.get(session) ?? [];
    sessions.delete(session);
    sessions.set(session, [...used.filter((other) => other !== runner), runner]);
    const [oldest] = sessions.keys();
    if (sessions.size > limits.runnerSessions && oldest !== undefined) sessions.delete(oldest);
  }

  function markDown(runner: PooledRunner): void {
    runner.health = null;
    runner.downUntil = clock.now() + limits.runnerDownMs;
  }

  async function ask(runner: PooledRunner): Promise<void> {
    runner.askedAt = clock.now();
    runner.since = 0;
    runner.health = await runner.client.health();
    runner.lastAnswer = runner.health;
    runner.asking = null;
    if (runner.health?.['status'] === 'healthy') runner.downUntil = 0;
    else markDown(runner);
  }

  function measure(runner: PooledRunner): Promise<void> {
    return (runner.asking ??= ask(runner));
  }

  /** Refreshes outdated loads; waits for all answers, but after one answer only until the time is over. */
  async function weigh(among: readonly PooledRunner[]): Promise<void> {
    const now = clock.now();
    const stale = among.filter(
      ({ asking, askedAt, downUntil }) => asking !== null || (now - askedAt >= limits.runnerLoadMs && downUntil <= now),
    );
    if (stale.length === 0) return;
    const asked = stale.map((runner) => measure(runner));
    let cancel: () => void = () => undefined;
    const late = new Promise<void>((resolve) => {
      cancel = clock.schedule(limits.runnerChoiceMs, resolve);
    });
    await Promise.race([Promise.all(asked), late.then(() => Promise.any(asked))]);
    cancel();
  }

  /** The runner for a job, or null if none is left. */
  async function choose(needs: Needs, tried: ReadonlySet<PooledRunner>): Promise<PooledRunner | null> {
    const labelled = pooled.filter((runner) => !tried.has(runner) && hasLabels(runner, needs.labels ?? []));
    if (pooled.length === 1) return labelled[0] ?? null;
    const up = (): PooledRunner[] => labelled.filter((runner) => isUp(runner));
    const ableOnes = (): PooledRunner[] => up().filter((runner) => canRun(runner, needs));
    const sticky = (): PooledRunner | undefined => {
      const able = ableOnes();
      return sessions.get(needs.session)?.findLast((runner) => able.includes(runner));
    };
    if (sticky() === undefined) await weigh(labelled);
    // Another job of the session may have chosen in the meantime. The known state may also be outdated: a useless
    // request is better than none.
    const chosen = sticky() ?? leastLoaded(ableOnes()) ?? labelled.find((runner) => runner.health === null) ?? null;
    if (chosen !== null) {
      stick(needs.session, chosen);
      chosen.since += 1;
    }
    return chosen;
  }

  /** @returns why the runner is unreachable; null if it can be used */
  async function unreachable(runner: PooledRunner): Promise<RunnerError | null> {
    if (clock.now() - runner.client.lastContactAt() <= limits.runnerAliveMs) return null;
    await measure(runner);
    if (runner.health?.['status'] === 'healthy') return null;
    return new RunnerError('runner_unavailable', describeAbsence(runner.lastAnswer), { beforeDispatch: true });
  }

  async function run(job: RunnerJob, observe: JobObserver): Promise<JobResult> {
    return await retryUntilReached(clock, job.limits.timeoutMs, observe, () => offerJob(job, observe));
  }

  async function offerJob(job: RunnerJob, observe: JobObserver): Promise<JobResult> {
    const tried = new Set<PooledRunner>();
    let refused: RunnerError | null = null;
    let lost: JobResult | null = null;
    for (;;) {
      const runner = await choose(job, tried);
      observe.signal.throwIfAborted();
      if (runner === null) {
        if (lost !== null) return lost;
        throw refused ?? noRunnerFor(job, pooled);
      }
      tried.add(runner);
      const away = await unreachable(runner);
      observe.signal.throwIfAborted();
      if (away !== null) {
        refused ??= away;
        continue;
      }
      try {
        const result = await runner.client.run(job, observe);
        if (result.end !== 'lost' || job.movable !== true || observe.signal.aborted) return result;
        lost = result;
        markDown(runner);
      } catch (fault) {
        if (!(fault instanceof RunnerError) || observe.signal.aborted) throw fault;
        if (fault.code === 'runner_unavailable') markDown(runner);
        if (!fault.beforeDispatch && job.movable !== true) throw fault;
        // Of several errors, the caller gets the most informative one.
        if (refused === null || refused.code === 'runner_unavailable') refused = fault;
      }
    }
  }

  /** The runner that knows a job; null if all runners deny it, undefined if one is unreachable. */
  async function holderOf(id: string): Promise<PooledRunner | null | undefined> {
    const records = await Promise.all(
      pooled.map(async (runner) => ({ runner, record: await runner.client.record(id) })),
    );
    const known = records.filter(({ record }) => isJsonObject(record));
    // A moved job is known to two runners; the runner that lost it has less information.
    const best = known.find(({ record }) => record?.['end'] !== 'lost') ?? known[0];
    if (best !== undefined) return best.runner;
    return records.every(({ record }) => record === null) ? null : undefined;
  }

  async function lookup(
    job: Pick<RunnerJob, 'id' | 'session'>,
    observe: Parameters<RunnerClient['lookup']>[1],
  ): Promise<JobResult | null> {
    const until = clock.now() + limits.runnerLostMs;
    for (;;) {
      const holder = pooled.length === 1 ? pooled[0] : await holderOf(job.id);
      if (holder === null) return null;
      if (holder !== undefined) {
        stick(job.session, holder);
        return await holder.client.lookup(job, observe);
      }
      if (observe.signal.aborted) return { end: 'killed', exitCode: null, stdout: '', stderr: '', truncated: false };
      if (clock.now() >= until) return { end: 'lost', exitCode: null, stdout: '', stderr: '', truncated: false };
      await new Promise<void>((resolve) => {
        clock.schedule(limits.runnerRetryMaxMs, resolve);
      });
    }
  }

  /**
   * The runner of a relic: always the same one for a scope and a name, because it holds the state. Null if it is
   * unreachable and the relic has state; a relic without state moves to the next runner.
   */
  async function relicRunner(space: string, relic: RelicDefinition): Promise<PooledRunner | null> {
    const { name, persistent, implementation } = relic;
    const asked = implementation.type === 'container' ? (implementation.labels ?? []) : [];
    const among = pooled.filter((runner) => hasLabels(runner, asked));
    const [only] = among;
    if (pooled.length === 1) return only ?? null;
    await Promise.all(among.map((runner) => (runner.health === null && isUp(runner) ? measure(runner) : null)));
    const labelled = among.filter(
      ({ address }) => address.labels.includes('relic') || address.labels.includes('docker'),
    );
    const able = labelled.length > 0 ? labelled : among.filter((runner) => mayRun(runner, 'relic'));
    const ranked = able.toSorted((a, b) => rankOf(b, space, name) - rankOf(a, space, name));
    if (!persistent) return ranked.find((runner) => isUp(runner)) ?? ranked[0] ?? null;
    return ranked[0] ?? null;
  }

  async function offerCall(call: RelicCall, observe: Pick<JobObserver, 'signal' | 'waiting'>): Promise<RelicAnswer> {
    const runner = await relicRunner(call.space, call.relic);
    if (runner === null) {
      throw new RunnerError('runner_rejected', `No runner can run the relic ${call.relic.name}`, {
        beforeDispatch: true,
      });
    }
    const away = await unreachable(runner);
    observe.signal.throwIfAborted();
    if (away !== null) throw away;
    try {
      return await runner.client.callRelic(call, observe);
    } catch (fault) {
      if (fault instanceof RunnerError && fault.code === 'runner_unavailable') markDown(runner);
      throw fault;
    }
  }

  function isUp({ downUntil }: PooledRunner): boolean {
    return downUntil <= clock.now();
  }

  return {
    run,
    lookup,

    callRelic: (call, observe) => retryUntilReached(clock, call.timeoutMs, observe, () => offerCall(call, observe)),

    async stopRelics(space, options) {
      await Promise.all(pooled.map((runner) => runner.client.stopRelics(space, options)));
    },

    async forgetWorkspace(session) {
      await Promise.all(pooled.map((runner) => runner.client.forgetWorkspace(session)));
    },

    prewarm(hint) {
      void choose(hint, new Set()).then((runner) => runner?.client.prewarm(hint));
    },

    async health() {
      await Promise.all(pooled.map((runner) => measure(runner)));
      const answered = pooled.flatMap(({ lastAnswer }) => (lastAnswer === null ? [] : [lastAnswer]));
      const first = answered.find(({ status }) => status === 'healthy') ?? answered[0];
      if (first === undefined || pooled.length === 1) return first ?? null;
      return {
        ...first,
        executors: [...new Set(answered.flatMap((health) => namesOf(health['executors'])))],
        runners: pooled.map(({ address, lastAnswer }) => ({
          labels: [...address.labels],
          status: lastAnswer?.['status'] ?? 'unreachable',
          jobs: lastAnswer?.['jobs'] ?? null,
        })),
      };
    },
  };
}

function hasLabels({ address }: PooledRunner, labels: readonly string[]): boolean {
  return labels.every((label) => address.labels.includes(label));
}

/** Whether a runner reports that it can run a job; a runner without a report may be tried. */
function canRun({ address, health }: PooledRunner, needs: Needs): boolean {
  const { sandbox } = needs;
  if (sandbox !== undefined && !hasLevel(health, sandbox)) return false;
  const contained = needs.kind === 'docker' || needs.image !== undefined || needs.build !== undefined;
  return !contained || address.labels.includes('docker') || mayRun({ health }, 'docker');
}

/** Whether a runner reports that a sandbox level works. */
function hasLevel(health: JsonObject | null, sandbox: SandboxLevel): boolean {
  const report = health?.['sandbox'];
  const levels = isJsonObject(report) ? report['levels'] : null;
  if (!Array.isArray(levels)) return true;
  return levels.some(
    (level) => isJsonObject(level) && level['level'] === sandbox && namesOf(level['interpreters']).length > 0,
  );
}

function mayRun({ health }: Pick<PooledRunner, 'health'>, executor: string): boolean {
  return health === null || namesOf(health['executors']).includes(executor);
}

/** Rendezvous hashing (FNV-1a): every Worker finds the same runner, and a new runner takes over only its own share. */
function rankOf({ address }: PooledRunner, space: string, name: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${address.url}\n${space}\n${name}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  // Final mixing as in MurmurHash3: FNV gives similar hashes for similar texts.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function leastLoaded(pooled: readonly PooledRunner[]): PooledRunner | undefined {
  const [first, ...others] = pooled;
  return others.reduce((best, runner) => (best !== undefined && loadOf(runner) < loadOf(best) ? runner : best), first);
}

/** Jobs per slot, including those submitted since the last health request. */
function loadOf({ health, since }: PooledRunner): number {
  const jobs = health?.['jobs'];
  if (!isJsonObject(jobs)) return since;
  const number = (name: string): number => (typeof jobs[name] === 'number' ? jobs[name] : 0);
  return (number('running') + number('queued') + since) / Math.max(1, number('max_running'));
}

function noRunnerFor({ kind, sandbox, labels = [] }: RunnerJob, pooled: readonly PooledRunner[]): RunnerError {
  const level = sandbox === undefined ? '' : ` in the sandbox ${sandbox}`;
  const what = labels.length > 0 ? `has the labels ${labels.join(', ')}` : `runs ${kind}${level}`;
  const known = pooled.map(({ address }) => address.labels.join('+') || 'none').join('; ');
  return new RunnerError('runner_rejected', `No runner ${what} (labels of the runners: ${known})`, {
    beforeDispatch: true,
  });
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name): name is string => typeof name === 'string') : [];
}
