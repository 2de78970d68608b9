/**
 * `npm run bench:index`: the index of executions at 1,000 runs a second of one namespace, on real objects with SQLite: the
 * writes without an answer over time, the latency of writes, the balance of the shards, pages read meanwhile, and the CPU time
 * of a run.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { percentile, table, writeSection } from './report.ts';
import { startHost } from './sessions/host.ts';
import type { Host } from './sessions/host.ts';

const RATE = Number(process.env['BENCH_RATE'] ?? 1_000);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 20);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 2);
const WRITERS = 8;

interface Driven {
  readonly runs: number;
  readonly failed: number;
  readonly latencies: readonly number[];
  readonly backlog: readonly number[];
}

interface Round {
  readonly runs: number;
  readonly perSecond: number;
  readonly failed: number;
  readonly latencies: readonly number[];
  /** Of all writers, by second. */
  readonly backlog: readonly number[];
  readonly pages: readonly number[];
  readonly cpuMs: number;
}

const OWNER = 'bench';

async function json<T>(host: Host, path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(`${host.base}${path}`, init);
  if (!response.ok) throw new Error(`${path}: HTTP ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

async function drive(host: Host): Promise<Round> {
  const cpuBefore = host.usage().cpuMs;
  const startedAt = performance.now();
  const over = new AbortController();
  const load = { owner: OWNER, perSecond: RATE, seconds: SECONDS, writers: WRITERS };
  const driven = json<Driven[]>(host, '/drive', { method: 'POST', body: JSON.stringify(load) }).finally(() =>
    over.abort(),
  );
  const pages: number[] = [];
  const reading = (async () => {
    for (; !over.signal.aborted; await delay(500)) {
      const at = performance.now();
      await json(host, `/page?owner=${OWNER}`);
      pages.push(performance.now() - at);
    }
  })();
  const all = await driven;
  const tookMs = performance.now() - startedAt;
  await reading;
  const runs = all.reduce((sum, one) => sum + one.runs, 0);
  return {
    runs,
    perSecond: (runs * 1_000) / tookMs,
    failed: all.reduce((sum, one) => sum + one.failed, 0),
    latencies: all.flatMap(({ latencies }) => latencies),
    backlog: Array.from({ length: SECONDS }, (_, second) =>
      all.reduce((sum, { backlog }) => sum + (backlog[second] ?? 0), 0),
    ),
    pages,
    cpuMs: host.usage().cpuMs - cpuBefore,
  };
}

const host = await startHost('http://127.0.0.1:1', {
  folder: join(PACKAGE_ROOT, 'bench/execution-index'),
  withOurs: false,
});
try {
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const taken = await drive(host);
    rounds.push(taken);
    console.error(taken.perSecond.toFixed(0), 'runs/s, backlog', taken.backlog.join(' '));
  }
  const count = await json<{ listed: number; distinct: number; shards: number[] }>(host, `/count?owner=${OWNER}`);
  const body = report(rounds, count);
  writeSection('Index of executions', 'npm run bench:index', body);
  console.log(body);
} finally {
  await host.stop();
}

function report(
  rounds: readonly Round[],
  { listed, distinct, shards }: { listed: number; distinct: number; shards: number[] },
): string {
  const ms = (values: readonly number[], share: number): string => percentile(values, share).toFixed(0);
  const latencies = rounds.flatMap((one) => one.latencies);
  const half = Math.ceil(SECONDS / 2);
  const backlog = (from: number, to: number): string =>
    ms(
      rounds.flatMap((one) => one.backlog.slice(from, to)),
      0.5,
    );
  const median = (of: (round: Round) => number): number => percentile(rounds.map(of), 0.5);
  const row = [
    '16 shards',
    median(({ perSecond }) => perSecond).toFixed(0),
    `${ms(latencies, 0.5)} / ${ms(latencies, 0.99)}`,
    `${backlog(0, half)} / ${backlog(half, SECONDS)}`,
    median(({ cpuMs, runs: count }) => cpuMs / count).toFixed(2),
  ];
  const runs = rounds.reduce((sum, one) => sum + one.runs, 0);
  const failed = rounds.reduce((sum, one) => sum + one.failed, 0);
  const pages = rounds.flatMap((one) => one.pages);
  const even = listed / 16;
  const head = ['', 'runs/s', 'write, p50 / p99 (ms)', 'writes without an answer, 1st / 2nd half', 'CPU of a run (ms)'];
  return `${RATE.toLocaleString('en')} runs a second end in sessions of one namespace for ${SECONDS} s, ${ROUNDS} times. Each writes its entries with the outbox
of a session; the writers begin at their times, whether or not earlier writes were answered. All objects share one workerd and
its thread, so the CPU time is that of the whole system with its writers.

${table(head, [row])}

- Of ${runs.toLocaleString('en')} runs, ${failed} writes failed, ${listed.toLocaleString('en')} entries are listed, and ${distinct.toLocaleString('en')} of them are distinct.
- The fullest shard has ${(Math.max(...shards) / even).toFixed(2)} times an equal share, the emptiest ${(Math.min(...shards) / even).toFixed(2)} times.
- A merged page of 50 runs takes ${ms(pages, 0.5)} ms (p50) and ${ms(pages, 0.99)} ms (p99) meanwhile.`;
}
