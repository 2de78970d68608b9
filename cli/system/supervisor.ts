/**
 * Supervises a service: detects that it stopped serving, reports the reason, and restarts it up to a limit.
 *
 * Owns the health checks and the restarts of one service. Does not own the service's command (system.ts), nor the
 * reaction to the final failure.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { listProcesses } from './processes.ts';
import type { Rebuilds } from './rebuilds.ts';
import { ask, ServiceError } from './services.ts';
import type { Answer, Service } from './services.ts';
import { startLimits } from './start-limits.ts';
import type { Part } from './system.ts';

/** `frozen`: all its processes exist, but it does not answer; `died`: it or one of its processes ended. */
export interface Failure {
  readonly type: 'frozen' | 'died';
  /** For people; follows the name of the service. */
  readonly what: string;
}

const RESTARTS: Readonly<Record<Failure['type'], { readonly most: number; readonly windowMs: number }>> = {
  died: { most: startLimits.restarts, windowMs: startLimits.restartWindowMs },
  frozen: { most: startLimits.freezeRestarts, windowMs: startLimits.freezeWindowMs },
};

/** Limits restarts: a maximum number per time window for each kind of failure, with exponential backoff. */
export class RestartBudget {
  readonly #now: () => number;
  readonly #at: Record<Failure['type'], number[]> = { died: [], frozen: [] };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes one restart. @returns the delay and a description; null if no restart is left */
  next(type: Failure['type']): { readonly waitMs: number; readonly count: string } | null {
    const now = this.#now();
    const { most, windowMs } = RESTARTS[type];
    const recent = this.#at[type].filter((at) => now - at < windowMs);
    if (recent.length >= most) return null;
    this.#at[type] = [...recent, now];
    const waitMs = Math.min(startLimits.restartBackoffMs * 2 ** recent.length, startLimits.restartBackoffMaxMs);
    return { waitMs, count: `restart ${recent.length + 1} of at most ${most} within ${windowMs / 60_000} minutes` };
  }
}

/** Access to the machine; tests replace it. */
export interface WatchPorts {
  readonly ask: (url: string, timeoutMs: number) => Promise<Answer>;
  /** The serving processes in the group of `leader`. If one is gone, the service died instead of freezing. */
  readonly serving: (leader: number) => readonly number[];
  readonly pause: (ms: number) => Promise<unknown>;
}

const MACHINE: WatchPorts = {
  ask,
  serving: (leader) =>
    listProcesses(({ group }) => group === leader)
      .filter(({ command }) => command.includes('/workerd '))
      .map(({ pid }) => pid),
  pause: (ms) => delay(ms, undefined, { ref: false }),
};

export interface WatchOptions {
  /** Called for each answer, and when the service has been silent for several checks. */
  readonly seen?: (phase: 'answers' | 'silent') => void;
  /** The rebuilds of the service after changes; null if there are none. */
  readonly rebuilds?: Pick<Rebuilds, 'phase' | 'reloads'> | null;
}

/** Resolves when the service stops serving. Failures that a rebuild explains do not count. */
export async function watchService(
  service: Pick<Service, 'process' | 'exited'>,
  healthUrl: string,
  { seen = () => undefined, rebuilds = null }: WatchOptions = {},
  { ask: question, serving, pause }: WatchPorts = MACHINE,
): Promise<Failure> {
  const leader = service.process.pid ?? 0;
  const ended = service.exited.then((code): Failure => ({ type: 'died', what: `has ended (${code})` }));
  let known = serving(leader);
  let misses = 0;
  let reloads = rebuilds?.reloads ?? 0;
  for (let answers = 0; ;) {
    const turn = pause(startLimits.checkMs).then(() => question(healthUrl, startLimits.answerMs));
    const heard = await Promise.race([turn, ended]);
    if ('what' in heard) return heard;
    const phase = rebuilds?.phase ?? null;
    if (rebuilds !== null && rebuilds.reloads !== reloads) {
      reloads = rebuilds.reloads;
      known = serving(leader);
      misses = 0;
    }
    if (heard.type === 'answer') {
      misses = 0;
      answers += 1;
      seen('answers');
      if (answers % startLimits.noteEvery === 0) known = serving(leader);
      continue;
    }
    if (phase === 'reloading') {
      misses = 0;
      continue;
    }
    misses += 1;
    if (misses < startLimits.deadMisses) continue;
    const now = serving(leader);
    const isWhole = known.every((pid) => now.includes(pid));
    if (!isWhole) return { type: 'died', what: 'has lost one of its processes' };
    if (heard.type === 'refused') return { type: 'died', what: 'no longer accepts connections' };
    if (phase === 'building') {
      misses = 0;
      continue;
    }
    seen('silent');
    if (misses < startLimits.freezeMisses) continue;
    const seconds = (misses * startLimits.answerMs) / 1_000;
    return { type: 'frozen', what: `has not answered for ${seconds} s` };
  }
}

export interface SuperviseOptions {
  readonly budget: RestartBudget;
  readonly say: (line: string, isGood: boolean) => void;
  /** Called for each failure, before the restart. */
  readonly failed: (failure: Failure) => void;
  /** Called for each answer, and when the service has been silent for several checks. */
  readonly seen: (phase: 'answers' | 'silent') => void;
  readonly isStopping: () => boolean;
}

/**
 * Supervises a running service.
 *
 * @returns the failure after the last allowed restart; null when the system stops
 */
export async function supervise(part: Part, options: SuperviseOptions): Promise<Failure | null> {
  const { budget, say, failed, isStopping } = options;
  let answers = 0;
  const seen = (phase: 'answers' | 'silent'): void => {
    options.seen(phase);
    answers += 1;
    if (answers % startLimits.noteEvery === 0) part.note();
  };
  for (;;) {
    const { service } = part;
    if (service === null || isStopping()) return null;
    const failure = await watchService(service, part.healthUrl, { seen, rebuilds: part.rebuilds ?? null });
    if (isStopping()) return null;
    failed(failure);
    const last = await restart(part, failure, { budget, say, failed, isStopping });
    if (last !== null || isStopping()) return last;
  }
}

/** @returns null if the service serves again or the system stops; otherwise the final failure */
export async function restart(
  part: Part,
  first: Failure,
  { budget, say, failed, isStopping }: Omit<SuperviseOptions, 'seen'>,
): Promise<Failure | null> {
  for (let failure = first; ;) {
    say(`The ${part.name} ${failure.what}; its last lines:`, false);
    for (const line of part.service?.tail.slice(-5) ?? []) say(`  ${line}`, false);
    await part.stop(failure.type === 'frozen' ? 0 : startLimits.orphanGraceMs);
    const granted = budget.next(failure.type);
    if (granted === null) return failure;
    const { waitMs, count } = granted;
    say(`Restarting it in ${waitMs / 1_000} s (${count}). Its data is on disk.`, false);
    await delay(waitMs);
    if (isStopping()) return null;
    try {
      await part.start();
      say(`The ${part.name} is running again; unfinished work continues.`, true);
      return null;
    } catch (fault) {
      if (isStopping()) return null;
      failure = failureOf(fault);
      failed(failure);
    }
  }
}

/** The reason why a start failed. */
export function failureOf(fault: unknown): Failure {
  if (!(fault instanceof ServiceError)) return { type: 'died', what: `does not start: ${String(fault)}` };
  const what = {
    ended: 'has ended while it was starting',
    frozen: 'froze while it was starting',
    silent: 'does not start',
  };
  return { type: fault.reason === 'frozen' ? 'frozen' : 'died', what: what[fault.reason] };
}
