/**
 * The ramp: live sessions double until a bound is exceeded. A live session has a turn every `--interval-seconds` on average,
 * at times that do not depend on the answers before it (open loop), and each turn is measured from its planned time:
 * a system that falls behind gets no less load, and its queue counts.
 */
import { cpus, freemem, totalmem } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from '../report.ts';
import { createSession, inParallel, OURS, takeTurn } from './client.ts';
import type { Subject } from './client.ts';
import type { LoadOptions } from './options.ts';
import { CALL, CHAT, SCRIPT } from './script.ts';
import type { LoadSystem } from './system.ts';

const AT_ONCE = 8;
/** For turns that are still running at the end of a stage. */
const DRAIN_MS = 30_000;

/** Bounds that end the ramp, next to the first byte's. */
export const BOUNDS = {
  /** Share of one core that workerd uses: it runs all objects in one thread. */
  core: 0.95,
  /** Share of the machine's memory that must stay free. */
  freeMemory: 0.1,
} as const;

export interface Stage {
  readonly sessions: number;
  readonly turns: number;
  readonly failed: number;
  readonly firstMs: readonly number[];
  readonly dispatchMs: readonly number[];
  /** How late the generator itself sent its requests. Part of `firstMs`. */
  readonly lateMs: readonly number[];
  /** CPU time of workerd for a turn, in ms. */
  readonly cpuMsPerTurn: number;
  /** Share of one core that workerd used. */
  readonly core: number;
  /** Share of the machine's cores that all processes used. */
  readonly machine: number;
  /** Resident memory for a session, in KiB. */
  readonly residentKb: number;
  /** The bound that was exceeded; null: none. */
  readonly exceeded: string | null;
}

/** Stages with twice as many sessions each; after the first that exceeds a bound, one half-way to it. */
export async function ramp(
  system: LoadSystem,
  subject: Subject,
  options: LoadOptions,
  progress: (stage: Stage) => void,
): Promise<Stage[]> {
  const sessions: string[] = [];
  await warmUp(system, subject);
  const residentMb = system.usage().memoryMb;
  const stages: Stage[] = [];
  const measure = async (count: number): Promise<Stage> => {
    const stage = await runStage(system, subject, { sessions, count, options, residentMb });
    stages.push(stage);
    progress(stage);
    return stage;
  };
  for (let count = options.first; count <= options.most; count *= 2) {
    if ((await measure(count)).exceeded === null) continue;
    if (count > options.first) await measure(Math.round(count * 0.75));
    break;
  }
  return stages.toSorted((a, b) => a.sessions - b.sessions);
}

/** One turn of each kind, so that the first stage has no one-time costs. */
async function warmUp({ base }: LoadSystem, subject: Subject): Promise<void> {
  for (const isCall of [false, true]) {
    const content = contentOf(subject, isCall);
    await takeTurn(base, subject, { session: await createSession(base, subject), content });
  }
}

/** Each call has another name. The bare object has no calls. */
function contentOf(subject: Subject, isCall: boolean): string {
  nextCall += 1;
  return isCall && subject === OURS ? `${CALL}${nextCall}` : CHAT;
}

let nextCall = 0;

interface StageInput {
  /** Those of the stages before, which continue. */
  readonly sessions: string[];
  readonly count: number;
  readonly options: LoadOptions;
  /** Resident memory of workerd before the first session. */
  readonly residentMb: number;
}

async function runStage(
  system: LoadSystem,
  subject: Subject,
  { sessions, count, options, residentMb }: StageInput,
): Promise<Stage> {
  await inParallel(
    count - sessions.length,
    AT_ONCE,
    async () => void sessions.push(await createSession(system.base, subject)),
  );
  await system.dispatch();
  const intervalMs = options.intervalSeconds * 1_000;
  const firstMs: number[] = [];
  const lateMs: number[] = [];
  let [sent, turns, failed] = [0, 0, 0];
  const random = seededRandom(count);
  const start = performance.now();
  // The sessions begin one after the other during the first interval, which is not measured.
  const [from, to] = [start + intervalMs, start + intervalMs + options.stageSeconds * 1_000];
  const isMeasured = (at: number): boolean => at >= from && at < to;
  const running = new Set<Promise<void>>();
  const turn = async (session: string, at: number): Promise<void> => {
    const counts = isMeasured(at);
    turns += counts ? 1 : 0;
    if (counts) lateMs.push(performance.now() - at);
    const content = contentOf(subject, (sent += 1) % SCRIPT.callEvery === 0);
    try {
      const taken = await takeTurn(system.base, subject, { session, content, since: at });
      if (counts) firstMs.push(taken.firstMs);
    } catch (fault) {
      if (counts && (failed += 1) === 1) console.error(fault);
    }
  };
  const drive = async (session: string, offset: number): Promise<void> => {
    for (let at = start + offset; at < to; at += intervalMs * (0.5 + random())) {
      await delay(Math.max(0, at - performance.now()));
      const taken = turn(session, at).finally(() => running.delete(taken));
      running.add(taken);
    }
  };
  const driven = sessions.slice(0, count).map((session, n) => drive(session, (n * intervalMs) / count));
  await delay(from - performance.now());
  const before = { cpuMs: system.usage().cpuMs, machine: machineTimes(), at: performance.now() };
  await delay(to - performance.now());
  const usage = system.usage();
  const [machine, elapsedMs] = [machineTimes(), performance.now() - before.at];
  const free = freemem() / totalmem();
  await Promise.all(driven);
  await Promise.race([Promise.all(running), delay(DRAIN_MS, undefined, { ref: false })]);
  const { ms: dispatchMs } = await system.dispatch();
  const unanswered = turns - firstMs.length - failed;
  const cpuMs = usage.cpuMs - before.cpuMs;
  const core = cpuMs / elapsedMs;
  const busy = 1 - (machine.idle - before.machine.idle) / (machine.total - before.machine.total);
  const p99 = percentile(firstMs, 0.99);
  const exceeded = [
    [failed + unanswered > 0, `${failed + unanswered} of ${turns} turns failed`],
    [!(p99 <= options.p99Ms), `p99 of the first byte over ${options.p99Ms} ms`],
    [core > BOUNDS.core, `workerd uses ${(core * 100).toFixed(0)}% of a core`],
    [free < BOUNDS.freeMemory, "the machine's memory is used"],
  ] as const;
  return {
    sessions: count,
    turns,
    failed: failed + unanswered,
    firstMs,
    dispatchMs,
    lateMs,
    cpuMsPerTurn: cpuMs / turns,
    core,
    machine: busy,
    residentKb: ((usage.memoryMb - residentMb) * 1_024) / count,
    exceeded:
      exceeded
        .filter(([is]) => is)
        .map(([, text]) => text)
        .join('; ') || null,
  };
}

/** The same plan for each subject and in each run: a linear congruential generator, from 0 to 1. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
}

function machineTimes(): { idle: number; total: number } {
  const times = cpus().map((cpu) => cpu.times);
  const total = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), total };
}
