/**
 * Runs the whole system for a long time under a low load, kills it now and then, and checks that everything returns to
 * where it began: memory, rows, alarms, processes, descriptors and files.
 *
 * At each checkpoint all sessions are deleted and the system comes to rest. The first checkpoint, after a warm-up, is the
 * baseline. The seed determines the traffic and the kills; real processes take turns as they like.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RealSystem } from '../chaos/system.ts';
import { WorkerLog } from '../chaos/worker-log.ts';
import { stage } from '../support/staged-system.ts';
import { manifestsOf } from './manifests.ts';
import { measure } from './measures.ts';
import { planOf } from './plan.ts';
import type { Segment } from './plan.ts';
import { processesOf, usageOf } from './processes.ts';
import { Random } from './random.ts';
import { judge, lineOf } from './report.ts';
import type { Checkpoint, Judged } from './report.ts';
import { serveModel, serveTools } from './servers.ts';
import { objectState } from './state.ts';
import { Traffic } from './traffic.ts';

const HOUR_MS = 3_600_000;
/** The platform evicts idle objects after ten seconds, and connections are kept for a few. */
const REST_MS = 16_000;
/** What has not ended then is measured as it is. */
const MOST_REST_MS = 60_000;
/** Enough for every request of the soak test, so that the counters are used and refuse nothing. */
const RATE_LIMIT = '100000';
const BUBBLEWRAP = { RUNNER_SANDBOX: 'bubblewrap', RUNNER_WARM: '1' };

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
  readonly onCheckpoint: (checkpoint: Checkpoint) => void;
}

export interface SoakReport {
  readonly visits: number;
  readonly kills: number;
  /** Sessions that no visit could delete, because an answer was lost in a kill. */
  readonly swept: number;
  /** Processor time of the Worker and the runner, as a part of one core. */
  readonly load: number;
  readonly failures: readonly string[];
  readonly judged: readonly Judged[];
}

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const random = new Random(options.seed);
  await using tools = await serveTools();
  await using model = await serveModel();
  using copy = await stage(manifestsOf(tools.host));
  // Of the runner; the Worker's are in the state folder.
  process.env['TMPDIR'] = join(copy.root, 'temporary');
  mkdirSync(process.env['TMPDIR']);
  const errors: string[] = [];
  await using system = await RealSystem.open({
    stage: copy,
    toolHost: tools.host,
    modelHost: model.host,
    log: new WorkerLog(({ message }) => void errors.push(`internal error: ${message}`)),
    vars: { RATE_LIMIT },
    sandbox: BUBBLEWRAP,
  });
  const traffic = new Traffic({ url: system.url, toolHost: tools.host, random, signal: options.signal });
  const soak = new Soak({ ...options, system, traffic, root: copy.root });
  await system.start();
  for (const segment of planOf(options.minutes, random)) {
    if (options.signal.aborted) break;
    await soak.run(segment);
  }
  return {
    visits: traffic.started,
    kills: soak.kills,
    swept: soak.swept,
    load: soak.load,
    failures: [...errors, ...traffic.failures],
    judged: judge(soak.checkpoints),
  };
}

interface Surroundings extends SoakOptions {
  readonly system: RealSystem;
  readonly traffic: Traffic;
  /** Folder of the system: its sources, its state and its temporary files. */
  readonly root: string;
}

class Soak {
  readonly checkpoints: Checkpoint[] = [];
  kills = 0;
  swept = 0;
  readonly #options: Surroundings;
  readonly #startedAt = Date.now();
  readonly #lives = { worker: 0, runner: 0 };
  #cpu = { ms: 0, ofMs: 0 };

  constructor(options: Surroundings) {
    this.#options = options;
  }

  /** In segments without kills. */
  get load(): number {
    return this.#cpu.ofMs === 0 ? 0 : this.#cpu.ms / this.#cpu.ofMs;
  }

  async run({ ms, kills, isFresh }: Segment): Promise<void> {
    const { traffic, signal } = this.#options;
    if (isFresh) await this.#kill('both');
    const before = this.#cpuMs();
    const beganAt = Date.now();
    const killing = (async () => {
      for (const { victim, afterMs } of kills) {
        await delay(Math.max(0, beganAt + afterMs - Date.now()), undefined, { signal }).catch(() => undefined);
        if (!signal.aborted) await this.#kill(victim);
      }
    })();
    await Promise.all([traffic.run(ms, signal), killing]);
    if (kills.length === 0) {
      this.#cpu = { ms: this.#cpu.ms + this.#cpuMs() - before, ofMs: this.#cpu.ofMs + Date.now() - beganAt };
    }
    if (!signal.aborted) await this.#checkpoint();
  }

  async #kill(victim: 'worker' | 'runner' | 'both'): Promise<void> {
    const { system, progress } = this.#options;
    progress(`kill: ${victim === 'both' ? 'the Worker and the runner' : `the ${victim}`}`);
    await system.kill(victim);
    this.kills += 1;
    if (victim !== 'runner') this.#lives.worker += 1;
    if (victim !== 'worker') this.#lives.runner += 1;
    await system.start();
  }

  async #checkpoint(): Promise<void> {
    const { system, traffic, root, progress } = this.#options;
    this.swept += await traffic.sweep();
    await this.#rest();
    const samples = await measure({
      system,
      root,
      done: { sessions: 2 * traffic.started + this.swept },
    });
    const hours = (Date.now() - this.#startedAt) / HOUR_MS;
    const checkpoint = { hours, lives: { ...this.#lives }, samples };
    this.checkpoints.push(checkpoint);
    this.#options.onCheckpoint(checkpoint);
    progress(`${lineOf(checkpoint)}, visits ${traffic.started}`);
  }

  /** Waits until objects are evicted and nothing is scheduled. */
  async #rest(): Promise<void> {
    const { signal, root } = this.#options;
    const deadline = Date.now() + MOST_REST_MS;
    await delay(REST_MS, undefined, { signal }).catch(() => undefined);
    while (Date.now() < deadline && !signal.aborted) {
      const { rows, alarms } = objectState(join(root, 'state/worker/v3/do'));
      const isOpen = [...rows].some(([key, count]) => key.startsWith('SessionObject.') && count > 0);
      if (alarms === 0 && !isOpen) return;
      await delay(1_000);
    }
  }

  #cpuMs(): number {
    const { worker, runner } = this.#options.system.leaders;
    return [worker, runner].reduce<number>(
      (sum, leader) => sum + (leader === null ? 0 : usageOf(processesOf(leader)).cpuMs),
      0,
    );
  }
}
