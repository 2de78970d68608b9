/**
 * Combines several runners into one client (R7): each job goes to the runner that choice.ts chooses, and a job that a runner
 * cannot accept goes to the next one.
 *
 * Does not own: the choice of a runner (choice.ts), running jobs, which belong to their client, and the wait for a runner
 * (wait.ts).
 *
 * Invariants:
 *  1. A job that may have started on a runner starts on another one only if it is movable (S7).
 *  2. A job is offered to each runner at most once per round. A new round begins only if nothing was sent.
 */
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RelicDefinition } from '../../domain/manifests/relic.ts';
import type { Random } from '../../domain/ports/clock.ts';
import type {
  JobObserver,
  JobResult,
  RelicAnswer,
  RelicCall,
  RunnerClient,
  RunnerJob,
} from '../../domain/ports/runner.ts';
import { Fleet, type FleetOptions, type FleetRunner, rankOf } from './choice.ts';
import { RunnerError } from './error.ts';
import { hasLabels, mayRun, namesOf, noRunnerFor } from './needs.ts';
import { RunnerRecord, startsFirst } from './record.ts';
import { retryUntilReached } from './wait.ts';

export interface RunnerPoolOptions extends Omit<FleetOptions, 'recordOf'> {
  /** Default: nothing is known about any runner. */
  readonly recordOf?: FleetOptions['recordOf'];
  /** For the jitter of pauses; default: none. */
  readonly random?: Random | undefined;
}

export function createRunnerPool(options: RunnerPoolOptions): RunnerClient {
  const { clock, random } = options;
  const fleet = new Fleet({ recordOf: () => new RunnerRecord(), ...options });
  const { runners } = fleet;
  const addresses = runners.map(({ address }) => address);

  async function run(job: RunnerJob, observe: JobObserver): Promise<JobResult> {
    const { timeoutMs } = job.limits;
    const wait = { timeoutMs, busyMs: timeoutMs * limits.runnerBusyShare, random };
    return await retryUntilReached(clock, wait, observe, () => offerJob(job, observe));
  }

  async function offerJob(job: RunnerJob, observe: JobObserver): Promise<JobResult> {
    const runsOnce = job.movable !== true;
    let tried = new Set<FleetRunner>();
    const lostOn = new Set<FleetRunner>();
    let refused: RunnerError | null = null;
    let lost: JobResult | null = null;
    for (;;) {
      const runner = await fleet.choose(job, { tried, runsOnce, submits: true });
      observe.signal.throwIfAborted();
      if (runner === null || runner instanceof RunnerError) {
        refused = moreInformative(refused, runner);
        // A lost job that is movable waits for a place like any other.
        if (lost !== null && refused?.code !== 'runner_busy') return lost;
        throw refused ?? noRunnerFor(job, addresses);
      }
      tried.add(runner);
      if (startsFirst(runner.record)) observe.waiting?.('its container starts');
      try {
        const result = await runner.client.run(job, observe);
        if (result.end !== 'lost') runner.record.givePlace();
        if (result.end !== 'lost' || runsOnce || observe.signal.aborted) return result;
        lost = result;
        fleet.markDown(runner);
        // Those that refused the job may take it now.
        lostOn.add(runner);
        tried = new Set(lostOn);
        refused = null;
      } catch (fault) {
        if (!(fault instanceof RunnerError) || observe.signal.aborted) throw fault;
        // A container that starts is not down.
        if (fault.code === 'runner_unavailable' && fault.details['problem'] !== 'starting') fleet.markDown(runner);
        if (!fault.beforeDispatch && runsOnce) throw fault;
        refused = moreInformative(refused, fault);
      }
    }
  }

  /** The runner that knows a job; null if all runners deny it, undefined if one is unreachable. */
  async function holderOf(id: string): Promise<FleetRunner | null | undefined> {
    const records = await Promise.all(
      runners.map(async (runner) => ({ runner, record: await runner.client.record(id) })),
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
      const holder = runners.length === 1 ? runners[0] : await holderOf(job.id);
      if (holder === null) return null;
      if (holder !== undefined) {
        fleet.stick(job.session, holder);
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
  async function relicRunner(space: string, relic: RelicDefinition): Promise<FleetRunner | null> {
    const { name, persistent, implementation } = relic;
    const asked = implementation.type === 'container' ? (implementation.labels ?? []) : [];
    const among = runners.filter(({ address }) => hasLabels(address, asked));
    const [only] = among;
    if (runners.length === 1) return only ?? null;
    await Promise.all(
      among.map((runner) => (runner.record.health === null && fleet.isUp(runner) ? fleet.measure(runner) : null)),
    );
    const labelled = among.filter(
      ({ address }) => address.labels.includes('relic') || address.labels.includes('docker'),
    );
    const able = labelled.length > 0 ? labelled : among.filter(({ record }) => mayRun(record.health, 'relic'));
    const rank = ({ address }: FleetRunner): number => rankOf(address.url, `${space}\n${name}`);
    const ranked = able.toSorted((a, b) => rank(b) - rank(a));
    if (!persistent) return ranked.find((runner) => fleet.isUp(runner)) ?? ranked[0] ?? null;
    return ranked[0] ?? null;
  }

  async function offerCall(call: RelicCall, observe: Pick<JobObserver, 'signal' | 'waiting'>): Promise<RelicAnswer> {
    const runner = await relicRunner(call.space, call.relic);
    if (runner === null) {
      throw new RunnerError('runner_rejected', `No runner can run the relic ${call.relic.name}`, {
        beforeDispatch: true,
      });
    }
    const away = await fleet.unreachable(runner, true);
    observe.signal.throwIfAborted();
    if (away !== null) throw away;
    try {
      return await runner.client.callRelic(call, observe);
    } catch (fault) {
      if (fault instanceof RunnerError && fault.code === 'runner_unavailable') fleet.markDown(runner);
      throw fault;
    }
  }

  return {
    run,
    lookup,

    callRelic: (call, observe) =>
      retryUntilReached(clock, { timeoutMs: call.timeoutMs }, observe, () => offerCall(call, observe)),

    async stopRelics(space, stop) {
      await Promise.all(runners.map((runner) => runner.client.stopRelics(space, stop)));
    },

    async forgetWorkspace(session) {
      await Promise.all(runners.map((runner) => runner.client.forgetWorkspace(session)));
    },

    prewarm(hint) {
      void fleet
        .choose(hint, { tried: new Set(), runsOnce: false, submits: false })
        .then((runner) => (runner instanceof RunnerError ? undefined : runner?.client.prewarm(hint)));
    },

    async health() {
      await Promise.all(runners.map((runner) => fleet.measure(runner)));
      const answered = runners.flatMap(({ record }) => (record.lastAnswer === null ? [] : [record.lastAnswer]));
      const first =
        answered.find(({ status }) => status === 'healthy') ??
        answered.find(({ status }) => status === 'asleep') ??
        answered[0];
      if (first === undefined || runners.length === 1) return first ?? null;
      return {
        ...first,
        executors: [...new Set(answered.flatMap((health) => namesOf(health['executors'])))],
        runners: runners.map((runner) => reportOf(runner)),
      };
    },
  };
}

/** Of the errors of several runners: a full one may run the job later, and one that rejects it says more than silence. */
function moreInformative(first: RunnerError | null, second: RunnerError | null): RunnerError | null {
  const order = ['runner_unavailable', 'runner_rejected', 'runner_busy'];
  const weigh = (fault: RunnerError | null): number => (fault === null ? -1 : order.indexOf(fault.code));
  return weigh(second) > weigh(first) ? second : first;
}

function reportOf({ address, record }: FleetRunner): JsonObject {
  const { lastAnswer, roundTripMs } = record;
  return {
    labels: [...address.labels],
    status: lastAnswer?.['status'] ?? 'unreachable',
    jobs: lastAnswer?.['jobs'] ?? null,
    round_trip_ms: roundTripMs === null ? null : Math.round(roundTripMs),
  };
}
