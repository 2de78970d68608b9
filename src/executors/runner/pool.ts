/**
 * Several runners as one (R7): each job goes to the least loaded runner that can run it, a session's
 * jobs stay together, and what a runner cannot take goes to the next one.
 *
 * Owns: which runner a session is on, what is known of each one's load. Does not own: jobs in
 * flight, which are their client's, and the wait for a runner (runner-wait.ts).
 *
 * Invariants:
 *  1. A job that may have started somewhere starts elsewhere only when it is movable (S7).
 *  2. A job is offered to each runner at most once in a round; a new round begins only when nothing of it was sent.
 *  3. A runner that was not heard within `limits.runnerAliveMs` is asked for its health before it gets a job or a
 *     call: the platform does not tell a refused connection from a lost answer, a health check without an answer
 *     proves that nothing was sent.
 */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RelicDefinition, SandboxLevel } from '../../domain/manifest.ts';
import type {
  Clock,
  JobObserver,
  JobResult,
  RelicAnswer,
  RelicCall,
  RunnerClient,
  RunnerJob,
} from '../../domain/ports.ts';
import type { SingleRunner } from './client.ts';
import { RunnerError } from './error.ts';
import type { RunnerAddress } from './list.ts';
import { describeAbsence, untilReached } from './wait.ts';

export interface RunnerPoolOptions {
  readonly runners: readonly RunnerAddress[];
  readonly connect: (url: string) => SingleRunner;
  readonly clock: Clock;
}

/** What a job needs of a runner. */
type Needs = Pick<RunnerJob, 'session' | 'kind'> &
  Partial<Pick<RunnerJob, 'runtime' | 'image' | 'build' | 'sandbox' | 'labels'>>;

interface Place {
  readonly address: RunnerAddress;
  readonly client: SingleRunner;
  health: JsonObject | null;
  /** What it said when it was last asked, also where that was not that it is healthy; null = nothing. */
  lastAnswer: JsonObject | null;
  /** When `health` was asked for. */
  askedAt: number;
  /** The question that is on its way. */
  asking: Promise<void> | null;
  /** Jobs handed over since then. */
  since: number;
  /** Left out of the choice until then. */
  downUntil: number;
}

export function createRunnerPool({ runners, connect, clock }: RunnerPoolOptions): RunnerClient {
  const places: readonly Place[] = runners.map((address) => ({
    address,
    client: connect(address.url),
    health: null,
    lastAnswer: null,
    askedAt: Number.NEGATIVE_INFINITY,
    asking: null,
    since: 0,
    downUntil: 0,
  }));
  /** By session, the runners that it has used, the latest last. */
  const sessions = new Map<string, readonly Place[]>();

  function stick(session: string, place: Place): void {
    const used = sessions.get(session) ?? [];
    sessions.delete(session);
    sessions.set(session, [...used.filter((other) => other !== place), place]);
    const [oldest] = sessions.keys();
    if (sessions.size > limits.runnerSessions && oldest !== undefined) sessions.delete(oldest);
  }

  function markDown(place: Place): void {
    place.health = null;
    place.downUntil = clock.now() + limits.runnerDownMs;
  }

  async function ask(place: Place): Promise<void> {
    place.askedAt = clock.now();
    place.since = 0;
    place.health = await place.client.health();
    place.lastAnswer = place.health;
    place.asking = null;
    if (place.health?.['status'] === 'healthy') place.downUntil = 0;
    else markDown(place);
  }

  function measure(place: Place): Promise<void> {
    return (place.asking ??= ask(place));
  }

  /** Asks for loads that are not fresh; waits for all of them only until one has answered and the time is over. */
  async function weigh(among: readonly Place[]): Promise<void> {
    const now = clock.now();
    const stale = among.filter(
      ({ asking, askedAt, downUntil }) => asking !== null || (now - askedAt >= limits.runnerLoadMs && downUntil <= now),
    );
    if (stale.length === 0) return;
    const asked = stale.map((place) => measure(place));
    let cancel: () => void = () => undefined;
    const late = new Promise<void>((resolve) => {
      cancel = clock.schedule(limits.runnerChoiceMs, resolve);
    });
    await Promise.race([Promise.all(asked), late.then(() => Promise.any(asked))]);
    cancel();
  }

  /** The runner for a job, or null when none is left that may be asked. */
  async function choose(needs: Needs, tried: ReadonlySet<Place>): Promise<Place | null> {
    const labelled = places.filter((place) => !tried.has(place) && hasLabels(place, needs.labels ?? []));
    if (places.length === 1) return labelled[0] ?? null;
    const up = (): Place[] => labelled.filter((place) => isUp(place));
    const ableOnes = (): Place[] => up().filter((place) => canRun(place, needs));
    const sticky = (): Place | undefined => {
      const able = ableOnes();
      return sessions.get(needs.session)?.findLast((place) => able.includes(place));
    };
    if (sticky() === undefined) await weigh(labelled);
    // another job of the session may have chosen meanwhile; and what is known may be out of date: better asked in
    // vain than not at all
    const chosen = sticky() ?? leastLoaded(ableOnes()) ?? labelled.find((place) => place.health === null) ?? null;
    if (chosen !== null) {
      stick(needs.session, chosen);
      chosen.since += 1;
    }
    return chosen;
  }

  /** @returns why the runner cannot be given anything now; null when it can */
  async function unreachable(place: Place): Promise<RunnerError | null> {
    if (clock.now() - place.client.heardAt() <= limits.runnerAliveMs) return null;
    await measure(place);
    if (place.health?.['status'] === 'healthy') return null;
    return new RunnerError('runner_unavailable', describeAbsence(place.lastAnswer), { beforeDispatch: true });
  }

  async function run(job: RunnerJob, observe: JobObserver): Promise<JobResult> {
    return await untilReached(clock, job.limits.timeoutMs, observe, () => offerJob(job, observe));
  }

  async function offerJob(job: RunnerJob, observe: JobObserver): Promise<JobResult> {
    const tried = new Set<Place>();
    let refused: RunnerError | null = null;
    let lost: JobResult | null = null;
    for (;;) {
      const place = await choose(job, tried);
      observe.signal.throwIfAborted();
      if (place === null) {
        if (lost !== null) return lost;
        throw refused ?? noRunnerFor(job, places);
      }
      tried.add(place);
      const away = await unreachable(place);
      observe.signal.throwIfAborted();
      if (away !== null) {
        refused ??= away;
        continue;
      }
      try {
        const result = await place.client.run(job, observe);
        if (result.end !== 'lost' || job.movable !== true || observe.signal.aborted) return result;
        lost = result;
        markDown(place);
      } catch (fault) {
        if (!(fault instanceof RunnerError) || observe.signal.aborted) throw fault;
        if (fault.code === 'runner_unavailable') markDown(place);
        if (!fault.beforeDispatch && job.movable !== true) throw fault;
        // of several refusals the caller hears the one that says most
        if (refused === null || refused.code === 'runner_unavailable') refused = fault;
      }
    }
  }

  /** The runner that knows a job; null when all say that they do not, undefined when one cannot be asked. */
  async function holderOf(id: string): Promise<Place | null | undefined> {
    const records = await Promise.all(places.map(async (place) => ({ place, record: await place.client.record(id) })));
    const known = records.filter(({ record }) => isJsonObject(record));
    // two runners know a job that was moved; the one that lost it knows less
    const best = known.find(({ record }) => record?.['end'] !== 'lost') ?? known[0];
    if (best !== undefined) return best.place;
    return records.every(({ record }) => record === null) ? null : undefined;
  }

  async function lookup(
    job: Pick<RunnerJob, 'id' | 'session'>,
    observe: Parameters<RunnerClient['lookup']>[1],
  ): Promise<JobResult | null> {
    const until = clock.now() + limits.runnerLostMs;
    for (;;) {
      const holder = places.length === 1 ? places[0] : await holderOf(job.id);
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
   * The runner of a relic: always the same one for a scope and a name, because it holds the state. Null
   * when it is out of reach and the relic has state; without state the next one takes it.
   */
  async function relicPlace(space: string, relic: RelicDefinition): Promise<Place | null> {
    const { name, persistent, implementation } = relic;
    const asked = implementation.type === 'container' ? (implementation.labels ?? []) : [];
    const among = places.filter((place) => hasLabels(place, asked));
    const [only] = among;
    if (places.length === 1) return only ?? null;
    await Promise.all(among.map((place) => (place.health === null && isUp(place) ? measure(place) : null)));
    const labelled = among.filter(
      ({ address }) => address.labels.includes('relic') || address.labels.includes('docker'),
    );
    const able = labelled.length > 0 ? labelled : among.filter((place) => mayRun(place, 'relic'));
    const ranked = able.toSorted((a, b) => rankOf(b, space, name) - rankOf(a, space, name));
    if (!persistent) return ranked.find((place) => isUp(place)) ?? ranked[0] ?? null;
    return ranked[0] ?? null;
  }

  async function offerCall(call: RelicCall, observe: Pick<JobObserver, 'signal' | 'waiting'>): Promise<RelicAnswer> {
    const place = await relicPlace(call.space, call.relic);
    if (place === null) {
      throw new RunnerError('runner_rejected', `No runner has a place for the relic ${call.relic.name}`, {
        beforeDispatch: true,
      });
    }
    const away = await unreachable(place);
    observe.signal.throwIfAborted();
    if (away !== null) throw away;
    try {
      return await place.client.callRelic(call, observe);
    } catch (fault) {
      if (fault instanceof RunnerError && fault.code === 'runner_unavailable') markDown(place);
      throw fault;
    }
  }

  function isUp({ downUntil }: Place): boolean {
    return downUntil <= clock.now();
  }

  return {
    run,
    lookup,

    callRelic: (call, observe) => untilReached(clock, call.timeoutMs, observe, () => offerCall(call, observe)),

    async stopRelics(space, options) {
      await Promise.all(places.map((place) => place.client.stopRelics(space, options)));
    },

    prewarm(hint) {
      void choose(hint, new Set()).then((place) => place?.client.prewarm(hint));
    },

    async health() {
      await Promise.all(places.map((place) => measure(place)));
      const answered = places.flatMap(({ lastAnswer }) => (lastAnswer === null ? [] : [lastAnswer]));
      const first = answered.find(({ status }) => status === 'healthy') ?? answered[0];
      if (first === undefined || places.length === 1) return first ?? null;
      return {
        ...first,
        executors: [...new Set(answered.flatMap((health) => namesOf(health['executors'])))],
        runners: places.map(({ address, lastAnswer }) => ({
          labels: [...address.labels],
          status: lastAnswer?.['status'] ?? 'unreachable',
          jobs: lastAnswer?.['jobs'] ?? null,
        })),
      };
    },
  };
}

function hasLabels({ address }: Place, labels: readonly string[]): boolean {
  return labels.every((label) => address.labels.includes(label));
}

/** Whether a runner can run a job, by its own word; one that has said nothing yet may be tried. */
function canRun({ address, health }: Place, needs: Needs): boolean {
  const { sandbox } = needs;
  if (sandbox !== undefined && !hasLevel(health, sandbox)) return false;
  const contained = needs.kind === 'docker' || needs.image !== undefined || needs.build !== undefined;
  return !contained || address.labels.includes('docker') || mayRun({ health }, 'docker');
}

/** Whether a level works on a runner, by its own word. */
function hasLevel(health: JsonObject | null, sandbox: SandboxLevel): boolean {
  const report = health?.['sandbox'];
  const levels = isJsonObject(report) ? report['levels'] : null;
  if (!Array.isArray(levels)) return true;
  return levels.some(
    (level) => isJsonObject(level) && level['level'] === sandbox && namesOf(level['interpreters']).length > 0,
  );
}

function mayRun({ health }: Pick<Place, 'health'>, executor: string): boolean {
  return health === null || namesOf(health['executors']).includes(executor);
}

/** Rendezvous hashing (FNV-1a): every Worker finds the same runner, and a new one takes only its own share. */
function rankOf({ address }: Place, space: string, name: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${address.url}\n${space}\n${name}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  // what FNV leaves alike in alike texts is mixed, as MurmurHash3 ends
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function leastLoaded(places: readonly Place[]): Place | undefined {
  const [first, ...others] = places;
  return others.reduce((best, place) => (best !== undefined && loadOf(place) < loadOf(best) ? place : best), first);
}

/** Jobs per place, those included that were handed over since it was asked. */
function loadOf({ health, since }: Place): number {
  const jobs = health?.['jobs'];
  if (!isJsonObject(jobs)) return since;
  const number = (name: string): number => (typeof jobs[name] === 'number' ? jobs[name] : 0);
  return (number('running') + number('queued') + since) / Math.max(1, number('max_running'));
}

function noRunnerFor({ kind, sandbox, labels = [] }: RunnerJob, places: readonly Place[]): RunnerError {
  const level = sandbox === undefined ? '' : ` in the sandbox ${sandbox}`;
  const what = labels.length > 0 ? `has the labels ${labels.join(', ')}` : `runs ${kind}${level}`;
  const known = places.map(({ address }) => address.labels.join('+') || 'none').join('; ');
  return new RunnerError('runner_rejected', `No runner ${what} (labels of the runners: ${known})`, {
    beforeDispatch: true,
  });
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name): name is string => typeof name === 'string') : [];
}
