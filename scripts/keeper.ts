/**
 * Keeps a service running: watches it, says why it stopped serving, and starts it again, up to a limit.
 *
 * Owns: the watch and the restarts of one part. Does not own: what the part is (system.ts), nor what is done when it
 * is given up.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { listProcesses } from './processes.ts';
import { ask, ServiceError } from './services.ts';
import type { Answer, Service } from './services.ts';
import { startLimits } from './start-limits.ts';
import type { Part } from './system.ts';

/** `frozen`: all its processes are there and it answers nothing; `died`: it ended, or one of its processes did. */
export interface Failure {
  readonly why: 'frozen' | 'died';
  /** For people, behind the name of the part. */
  readonly what: string;
}

const RESTARTS: Readonly<Record<Failure['why'], { readonly most: number; readonly windowMs: number }>> = {
  died: { most: startLimits.restarts, windowMs: startLimits.restartWindowMs },
  frozen: { most: startLimits.freezeRestarts, windowMs: startLimits.freezeWindowMs },
};

/** How often something may be started again: so often within a time, for each kind of failure, and later each time. */
export class RestartBudget {
  readonly #now: () => number;
  readonly #at: Record<Failure['why'], number[]> = { died: [], frozen: [] };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes one restart. @returns what to wait before it, and which one it is in words; null when there is none left */
  next(why: Failure['why']): { readonly waitMs: number; readonly count: string } | null {
    const now = this.#now();
    const { most, windowMs } = RESTARTS[why];
    const recent = this.#at[why].filter((at) => now - at < windowMs);
    if (recent.length >= most) return null;
    this.#at[why] = [...recent, now];
    const waitMs = Math.min(startLimits.restartBackoffMs * 2 ** recent.length, startLimits.restartBackoffMaxMs);
    return { waitMs, count: `restart ${recent.length + 1} of at most ${most} within ${windowMs / 60_000} minutes` };
  }
}

/** What a watch needs of the machine; each part of it is the machine's own unless a test says otherwise. */
export interface WatchPorts {
  readonly ask: (url: string, timeoutMs: number) => Promise<Answer>;
  /** The programs that serve, of the group that `leader` leads: when one is gone the service has not frozen, it died. */
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

/** Resolves when the service does not serve any more. */
export async function watchService(
  service: Pick<Service, 'process' | 'exited'>,
  healthUrl: string,
  seen: (phase: 'answers' | 'silent') => void = () => undefined,
  { ask: question, serving, pause }: WatchPorts = MACHINE,
): Promise<Failure> {
  const leader = service.process.pid ?? 0;
  const ended = service.exited.then((code): Failure => ({ why: 'died', what: `has ended (${code})` }));
  let known = serving(leader);
  let misses = 0;
  for (let answers = 0; ;) {
    const turn = pause(startLimits.checkMs).then(() => question(healthUrl, startLimits.answerMs));
    const heard = await Promise.race([turn, ended]);
    if ('why' in heard) return heard;
    if (heard.is === 'answer') {
      misses = 0;
      answers += 1;
      seen('answers');
      if (answers % startLimits.noteEvery === 0) known = serving(leader);
      continue;
    }
    misses += 1;
    if (misses < startLimits.deadMisses) continue;
    const now = serving(leader);
    const isWhole = known.every((pid) => now.includes(pid));
    if (isWhole && heard.is === 'silent') seen('silent');
    if (!isWhole) return { why: 'died', what: 'has lost one of its processes' };
    if (heard.is === 'refused') return { why: 'died', what: 'takes no connections any more' };
    if (misses < startLimits.freezeMisses) continue;
    const seconds = (misses * startLimits.answerMs) / 1_000;
    return { why: 'frozen', what: `has not answered for ${seconds} s` };
  }
}

export interface KeepOptions {
  readonly budget: RestartBudget;
  readonly say: (line: string, isGood: boolean) => void;
  /** Told of every failure, before anything is done about it. */
  readonly failed: (failure: Failure) => void;
  /** Told of each answer of a service that runs, and of a longer silence. */
  readonly seen: (phase: 'answers' | 'silent') => void;
  readonly isStopping: () => boolean;
}

/**
 * Keeps a part that runs running.
 *
 * @returns the failure after which no restart is left; null when the system is stopping
 */
export async function keepRunning(part: Part, options: KeepOptions): Promise<Failure | null> {
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
    // oxlint-disable-next-line no-await-in-loop -- one life after the other
    const failure = await watchService(service, part.healthUrl, seen);
    if (isStopping()) return null;
    failed(failure);
    // oxlint-disable-next-line no-await-in-loop -- as above
    const last = await startAgain(part, failure, { budget, say, failed, isStopping });
    if (last !== null || isStopping()) return last;
  }
}

/** @returns null when it serves again, or the system is stopping; else the failure after which it was given up */
export async function startAgain(
  part: Part,
  first: Failure,
  { budget, say, failed, isStopping }: Omit<KeepOptions, 'seen'>,
): Promise<Failure | null> {
  for (let failure = first; ;) {
    say(`The ${part.name} ${failure.what}; its last lines:`, false);
    for (const line of part.service?.tail.slice(-5) ?? []) say(`  ${line}`, false);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await part.stop(failure.why === 'frozen' ? 0 : startLimits.orphanGraceMs);
    const restart = budget.next(failure.why);
    if (restart === null) return failure;
    const { waitMs, count } = restart;
    say(`Starting it again in ${waitMs / 1_000} s (${count}); what it served is on disk.`, false);
    // oxlint-disable-next-line no-await-in-loop -- as above
    await delay(waitMs);
    if (isStopping()) return null;
    try {
      // oxlint-disable-next-line no-await-in-loop -- as above
      await part.start();
      say(`The ${part.name} serves again; what was under way goes on.`, true);
      return null;
    } catch (fault) {
      if (isStopping()) return null;
      failure = failureOf(fault);
      failed(failure);
    }
  }
}

/** Why a start failed. */
export function failureOf(fault: unknown): Failure {
  if (!(fault instanceof ServiceError)) return { why: 'died', what: `does not start: ${String(fault)}` };
  const what = {
    ended: 'has ended while it was starting',
    frozen: 'froze while it was starting',
    silent: 'does not start',
  };
  return { why: fault.reason === 'frozen' ? 'frozen' : 'died', what: what[fault.reason] };
}
