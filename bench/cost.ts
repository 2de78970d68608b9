/**
 * `npm run bench:cost`: CPU time of workerd for a streamed answer and for an action, compared with bare objects that
 * relay the same answer and make the same calls.
 *
 * BENCH_BASE=<folder> also measures the system in another checkout, in turns with this one, and writes nothing.
 * BENCH_ROWS=<part of a name> runs only those rows and writes nothing.
 */
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { startBare, startOwn } from './cost/systems.ts';
import type { CostSystem } from './cost/systems.ts';
import { startCallServer } from './cost/tool-server.ts';
import { allWork } from './cost/work.ts';
import type { Work } from './cost/work.ts';
import { startModelServer } from './makespan/model-server.ts';
import { percentile, table, writeSection } from './report.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
/** Runs before the measurement: the engine compiles what runs often. */
const WARM_UP = Number(process.env['BENCH_WARM_UP'] ?? 5);
const only = process.env['BENCH_ROWS'] ?? '';
const base = process.env['BENCH_BASE'] ?? '';

interface Figures {
  readonly cpuMs: number;
  readonly ms: number;
}

await using stack = new AsyncDisposableStack();
const model = stack.use(await startModelServer());
const tools = stack.use(await startCallServer());
const bare = stack.use(await startBare('bare object', model.baseUrl));
const own = stack.use(await startOwn('Cortex Edge', PACKAGE_ROOT, model.baseUrl, tools.host));
const systems: CostSystem[] = [bare, own];
if (base !== '') systems.push(stack.use(await startOwn('base', base, model.baseUrl, tools.host)));

const rows: string[][] = [];
for (const work of allWork(model, tools.host).filter(({ name }) => name.includes(only))) {
  const figures = await measure(work);
  rows.push(rowOf(work, figures));
  console.error(rows.at(-1)?.join(' | '));
}
const body = report(rows);
if (only === '' && base === '') writeSection('Cost of a chunk and an action', 'npm run bench:cost', body);
console.log(body);

/** Medians of the rounds; the systems take turns. */
async function measure(work: Work): Promise<Map<CostSystem, Figures>> {
  const samples = new Map(systems.map((system) => [system, [] as Figures[]]));
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    for (const system of systems) {
      const run = system === bare ? work.bare : work.own;
      const before = system.cpuMs();
      const times = await Promise.all(Array.from({ length: work.atOnce }, () => run(system.url)));
      const cpuMs = (system.cpuMs() - before) / (work.units * work.atOnce);
      if (round >= 0) samples.get(system)?.push({ cpuMs, ms: percentile(times, 0.5) });
    }
  }
  const median = (of: readonly Figures[], name: keyof Figures): number =>
    percentile(
      of.map((figures) => figures[name]),
      0.5,
    );
  return new Map([...samples].map(([system, of]) => [system, { cpuMs: median(of, 'cpuMs'), ms: median(of, 'ms') }]));
}

function rowOf(work: Work, figures: ReadonlyMap<CostSystem, Figures>): string[] {
  const of = (system: CostSystem): Figures => figures.get(system) ?? { cpuMs: Number.NaN, ms: Number.NaN };
  const durations = systems.map((system) => duration(work, of(system).ms));
  return [
    work.name,
    ...systems.map((system) => `${of(system).cpuMs.toFixed(2)} ms`),
    ...systems.slice(1).map((system) => `${(of(system).cpuMs / of(bare).cpuMs).toFixed(1)}×`),
    ...durations,
  ];
}

function duration({ boundMs }: Work, ms: number): string {
  return boundMs === null ? '–' : `${ms.toFixed(0)} ms, ${(ms / boundMs).toFixed(2)}×`;
}

function report(all: readonly (readonly string[])[]): string {
  const names = systems.map(({ name }) => name);
  return `CPU time of the whole workerd process, per answer in the first two rows and per action in the others, and the duration of
a run as a multiple of its bound: the shortest possible duration with these slots, if nothing but the calls took time.
The bare objects relay the model's text without reading its tags, and call the URLs of a list or of the model's text; they
store nothing. For \`echo\` they make no call and only answer. Values are medians of ${ROUNDS} rounds, in which the systems take turns.

${table(
  [
    '',
    ...names.map((name) => `CPU, ${name}`),
    ...names.slice(1).map((name) => `ratio, ${name}`),
    ...names.map((name) => `duration, ${name}`),
  ],
  all,
)}`;
}
