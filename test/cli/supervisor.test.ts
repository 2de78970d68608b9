/** Supervision of the services of `npm start`: classification of failures, and limits of restarts. */
import { describe, expect, test } from 'vitest';

import { failureOf, RestartBudget, restart, watchService } from '../../cli/system/supervisor.ts';
import type { Failure, WatchOptions, WatchPorts } from '../../cli/system/supervisor.ts';
import { ServiceError } from '../../cli/system/services.ts';
import type { Answer } from '../../cli/system/services.ts';
import { startLimits } from '../../cli/system/start-limits.ts';
import type { Part } from '../../cli/system/system.ts';

const OK: Answer = { type: 'answer', ok: true, body: {} };
const BROKEN: Answer = { type: 'answer', ok: false, body: null };
const SILENT: Answer = { type: 'silent' };
const REFUSED: Answer = { type: 'refused' };

/** @param processes the serving processes at each check; the last value is repeated */
async function watched(
  answers: readonly Answer[],
  processes: readonly (readonly number[])[] = [[1, 2]],
  rebuilds: (asked: number) => NonNullable<WatchOptions['rebuilds']> = () => ({ phase: null, reloads: 0 }),
): Promise<{
  readonly failure: Failure | null;
  readonly asked: number;
  readonly seen: readonly string[];
}> {
  let asked = 0;
  let looks = 0;
  const end = Promise.withResolvers<null>();
  const ports: WatchPorts = {
    ask: async () => {
      const answer = answers[asked];
      asked += 1;
      if (answer !== undefined) return answer;
      end.resolve(null);
      return await new Promise<Answer>(() => undefined);
    },
    serving: () => {
      const found = processes[Math.min(looks, processes.length - 1)] ?? [];
      looks += 1;
      return found;
    },
    pause: () => Promise.resolve(),
  };
  const service = { process: { pid: 1 } as never, exited: new Promise<never>(() => undefined) };
  const seen: string[] = [];
  const options: WatchOptions = {
    seen: (phase) => seen.push(phase),
    rebuilds: {
      get phase() {
        return rebuilds(asked).phase;
      },
      get reloads() {
        return rebuilds(asked).reloads;
      },
    },
  };
  const failure = await Promise.race([watchService(service, 'http://x', options, ports), end.promise]);
  return { failure, asked, seen };
}

const times = (count: number, answer: Answer): Answer[] => Array.from({ length: count }, () => answer);

describe('[S10] a service that no longer serves', () => {
  test.each<[string, Answer[], Failure['type'] | null]>([
    ['answers', times(20, OK), null],
    ['answers with errors: it is alive, and a restart would not help', times(20, BROKEN), null],
    ['is silent occasionally', [...times(3, SILENT), OK, ...times(3, SILENT), OK], null],
    ['is silent for a long time', [OK, ...times(startLimits.freezeMisses, SILENT)], 'frozen'],
    ['refuses once, during a reload', [OK, REFUSED, OK, REFUSED, OK], null],
    ['refuses', [OK, ...times(startLimits.deadMisses, REFUSED)], 'died'],
  ])('%s', async (_name, answers, type) => {
    const { failure, asked } = await watched(answers);
    expect(failure?.type ?? null).toBe(type);
    expect(asked).toBe(type === null ? answers.length + 1 : answers.length);
  });

  test('a service without its process has died, and does not count as frozen', async () => {
    const answers = [OK, ...times(startLimits.freezeMisses, SILENT)];
    expect(
      await watched(answers, [
        [1, 2],
        [2, 3],
      ]),
    ).toMatchObject({
      failure: { type: 'died', what: 'has lost one of its processes' },
      asked: 1 + startLimits.deadMisses,
    });
  });

  test('a service that is being rebuilt may be silent for any time, and is not seen as silent', async () => {
    const answers = [OK, ...times(40, SILENT), OK];
    const { failure, asked, seen } = await watched(answers, [[1, 2]], () => ({ phase: 'building', reloads: 0 }));
    expect([failure, asked]).toEqual([null, answers.length + 1]);
    expect(new Set(seen)).toEqual(new Set(['answers']));
  });

  test('a service whose process is being replaced may be silent, and then has another process', async () => {
    // five checks during the reload, which takes the place of process 2
    const answers = [OK, ...times(5, SILENT), ...times(startLimits.freezeMisses - 1, SILENT), OK, ...times(3, SILENT)];
    const processes = [
      [1, 2],
      [1, 3],
    ];
    const { failure } = await watched(answers, processes, (asked) =>
      asked <= 6 ? { phase: 'reloading', reloads: 0 } : { phase: null, reloads: 1 },
    );
    expect(failure).toBeNull();
  });

  test.each([
    ['building', 0],
    [null, 1],
  ] as const)(
    'a service that dies in the phase %s, after %i reloads, is detected as fast as ever',
    async (phase, reloads) => {
      const processes = [[1, 2], ...(reloads === 0 ? [] : [[1, 3]]), [1]];
      const { failure, asked } = await watched([OK, ...times(startLimits.freezeMisses, SILENT)], processes, (checks) =>
        checks === 0 ? { phase: null, reloads: 0 } : { phase, reloads },
      );
      expect(failure?.what).toBe('has lost one of its processes');
      expect(asked).toBe(1 + startLimits.deadMisses);
    },
  );

  test('a service that freezes after a rebuild is detected as fast as ever', async () => {
    const answers = [OK, ...times(9, SILENT), ...times(startLimits.freezeMisses, SILENT)];
    const { failure, asked, seen } = await watched(answers, [[1, 2]], (checks) => ({
      phase: checks <= 10 ? 'reloading' : null,
      reloads: 0,
    }));
    expect(failure?.type).toBe('frozen');
    expect(asked).toBe(answers.length);
    expect(seen).toContain('silent');
  });

  test('a service that exits is reported at once', async () => {
    const service = { process: { pid: 1 } as never, exited: Promise.resolve('SIGKILL') };
    const never: WatchPorts = {
      ask: () => new Promise(() => undefined),
      serving: () => [],
      pause: () => Promise.resolve(),
    };
    expect(await watchService(service, 'http://x', undefined, never)).toEqual({
      type: 'died',
      what: 'has ended (SIGKILL)',
    });
  });
});

test('[S10] each kind of failure has a number of restarts per time window, with a growing delay', () => {
  let now = 0;
  const budget = new RestartBudget(() => now);
  const waits = (type: Failure['type'], count: number): (number | null)[] =>
    Array.from({ length: count }, () => budget.next(type)?.waitMs ?? null);
  expect(waits('died', startLimits.restarts + 1)).toEqual([500, 1_000, 2_000, 4_000, 8_000, null]);
  expect(waits('frozen', startLimits.freezeRestarts + 1).filter((wait) => wait !== null)).toHaveLength(
    startLimits.freezeRestarts,
  );
  now = startLimits.restartWindowMs;
  expect(budget.next('died')).toEqual({ waitMs: 500, count: 'restart 1 of at most 5 within 10 minutes' });
  expect(budget.next('frozen')).toBeNull();
});

test('[S10] a service that does not start is given up when no restart is left, and each failure is reported', async () => {
  const lines: string[] = [];
  let starts = 0;
  const part: Part = {
    name: 'Worker',
    healthUrl: '',
    service: null,
    note: () => undefined,
    start: () => {
      starts += 1;
      return Promise.reject(new ServiceError('frozen', 'no answer'));
    },
    stop: () => Promise.resolve(),
  };
  let taken = 0;
  const budget = Object.assign(new RestartBudget(() => 0), {
    next: () => (taken < 3 ? { waitMs: 0, count: `restart ${(taken += 1)}` } : null),
  });
  const failures: Failure[] = [];
  const last = await restart(
    part,
    { type: 'died', what: 'has ended (1)' },
    {
      budget,
      say: (line) => lines.push(line),
      failed: (failure) => failures.push(failure),
      isStopping: () => false,
    },
  );
  expect(last).toMatchObject({ type: 'frozen', what: 'froze while it was starting' });
  expect([starts, failures.length]).toEqual([3, 3]);
  expect(lines[0]).toBe('The Worker has ended (1); its last lines:');
  expect(lines.filter((line) => line.startsWith('Restarting it'))).toHaveLength(3);
});

test.each([
  ['ended', 'died'],
  ['silent', 'died'],
  ['frozen', 'frozen'],
] as const)('[S10] a start that %s counts as %s', (reason, type) => {
  expect(failureOf(new ServiceError(reason, '')).type).toBe(type);
});
