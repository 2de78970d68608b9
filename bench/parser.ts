/**
 * `npm run bench:parser`: how fast text becomes events, for chunks of several sizes, beside markup
 * parsers and a bare scan, in Node and in workerd; how long an action takes from its closing tag; what
 * a parser keeps. Every figure of a row comes from rounds in which all readers took turns.
 */
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createParser } from '../src/protocol/parser.ts';
import { freePort, startService, stopService, waitUntilHealthy } from '../scripts/services.ts';
import { ROOT } from '../scripts/system.ts';
import { writeChart } from './parser/chart.ts';
import { CONTESTANTS } from './parser/contestants.ts';
import type { Contestant } from './parser/contestants.ts';
import { cut, workloads } from './parser/text.ts';
import { percentile, table, writeSection } from './report.ts';

const SIZES = [4, 16, 64, 256, 4096];
/** A long generation: some 12,000 tokens, and fewer actions than one may hold. */
const CHARS = 48_000;
const WARM_UP_MS = 300;
const ROUNDS = 31;
const ROUND_MS = 6;
const OWN = 'Cortex Edge';
const BARE = CONTESTANTS.map(({ name }) => name).filter((name) => name.startsWith('bare'));
const TEXTS = workloads(CHARS);

const sections: string[] = [];
for (const workload of TEXTS) {
  const rates = SIZES.map((size) => measure(workload.text, cut(workload.text, size)));
  const names = CONTESTANTS.map(({ name }) => name);
  sections.push(`**${workload.name}**: ${workload.about}.`, rateTable(names, rates));
  if (workload.name === 'mixed') {
    writeChart(
      join(ROOT, 'docs/parser.svg'),
      'Reading a generation, mixed text, Node',
      SIZES,
      names.map((name, index) => ({
        label: name,
        colour: ['#0a7', '#999', '#bbb', '#c33', '#d80', '#85c'][index] ?? '#000',
        dashed: name.startsWith('bare'),
        values: rates.map((row) => row.get(name) ?? 0),
      })),
    );
  }
  console.error(`${workload.name}: done`);
}
const node = sections.join('\n\n');
const latency = measureLatency();
const retained = measureRetained();
const edge = await measureEdge();

const body = `### Throughput

MB/s, medians of ${ROUNDS} rounds in which all readers took turns. Every reader hands out the text as it comes and parses the
bodies of actions; \`${OWN}\` does so by all rules of the protocol. The bare scans know the two tags of an action and
nothing else: no blocks, no attributes, no references, no fences, no edges of white space, no lines, no limits. They are the
limit of what this engine can do with \`indexOf\` and \`JSON.parse\`. The last line is ${OWN} as a share of the better one of them.

![Throughput over chunk size](parser.svg)

${node}

The same in workerd (${edge.passes} passes a request, time taken outside), and HTMLRewriter, mixed text:

${edge.table}

### From the closing tag to the event

The time that \`feed\` takes for the chunk that completes \`</action>\`, Node, in µs, p50 / p99. Every other action of the mixed
text is a file of 3 KB, whose JSON alone takes 3 µs to parse:

${latency}

### What is kept

A parser that has read 4 MB of mixed text, with its last block still open, keeps ${retained} KiB (heap after a collection,
less the heap before).`;
writeSection('Parser', 'npm run bench:parser', body);
console.log(body);

/** MB/s by reader. */
function measure(text: string, chunks: readonly string[]): Map<string, number> {
  const passes = new Map<string, number>();
  for (const contestant of CONTESTANTS) {
    const start = performance.now();
    let done = 0;
    while (performance.now() - start < WARM_UP_MS) {
      contestant.read(chunks);
      done += 1;
    }
    passes.set(contestant.name, Math.max(1, Math.round((done / WARM_UP_MS) * ROUND_MS)));
  }
  const rounds = new Map(CONTESTANTS.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const contestant of CONTESTANTS) {
      rounds.get(contestant.name)?.push(timed(contestant, chunks, passes.get(contestant.name) ?? 1));
    }
  }
  return new Map([...rounds].map(([name, ms]) => [name, text.length / 1_000 / percentile(ms, 0.5)]));
}

/** Milliseconds a pass. */
function timed({ read }: Contestant, chunks: readonly string[], passes: number): number {
  const start = performance.now();
  for (let pass = 0; pass < passes; pass += 1) read(chunks);
  return (performance.now() - start) / passes;
}

function rateTable(names: readonly string[], rates: readonly Map<string, number>[]): string {
  const share = rates.map((row) => (row.get(OWN) ?? 0) / Math.max(...BARE.map((name) => row.get(name) ?? 0)));
  return table(
    ['characters in a chunk', ...SIZES.map(String)],
    [
      ...names.map((name) => [name, ...rates.map((row) => (row.get(name) ?? 0).toFixed(0))]),
      ['share of the better bare scan', ...share.map((part) => part.toFixed(2))],
    ],
  );
}

function measureLatency(): string {
  const rows = TEXTS.filter(({ name }) => name !== 'prose').map(({ name, text }) => [
    name,
    ...[4, 16, 64, 256].map((size) => {
      const samples = closingTags(cut(text, size));
      return `${percentile(samples, 0.5).toFixed(1)} / ${percentile(samples, 0.99).toFixed(1)}`;
    }),
  ]);
  return table(['characters in a chunk', '4', '16', '64', '256'], rows);
}

/** Microseconds of `feed` for every chunk that completed an action. */
function closingTags(chunks: readonly string[]): number[] {
  const samples: number[] = [];
  for (let pass = 0; pass < 500; pass += 1) {
    const parser = createParser({ json: 'repair', actInReasoning: false });
    for (const chunk of chunks) {
      const start = performance.now();
      const events = parser.feed(chunk);
      const micros = (performance.now() - start) * 1_000;
      if (pass >= 200 && events.some(({ type }) => type === 'action_declared')) samples.push(micros);
    }
  }
  return samples;
}

/** KiB that a parser holds on to near the end of the longest text it may read. */
function measureRetained(): string {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const chunks = cut(TEXTS[1]?.text ?? '', 16);
  const calls = cut(TEXTS[0]?.text ?? '', 16);
  const held = (): number => {
    collect();
    const before = process.memoryUsage().heapUsed;
    const parser = createParser({ json: 'repair', actInReasoning: false });
    for (const chunk of calls) parser.feed(chunk);
    for (let read = 0; read < 4_000_000; read += CHARS) for (const chunk of chunks) parser.feed(chunk);
    parser.feed('<response>still open');
    collect();
    const kept = process.memoryUsage().heapUsed - before;
    parser.end();
    return kept;
  };
  held();
  return (percentile([held(), held(), held()], 0.5) / 1_024).toFixed(0);
}

async function measureEdge(): Promise<{ table: string; passes: number }> {
  const passes = 40;
  const port = await freePort();
  const service = startService(
    'workerd',
    'wrangler',
    ['dev', '--ip=127.0.0.1', `--port=${port}`, '--inspector-port=0', '--show-interactive-dev-session=false'],
    { env: process.env, cwd: join(ROOT, 'bench/parser'), echo: () => false },
  );
  try {
    const base = `http://127.0.0.1:${port}/?text=mixed&chars=${CHARS}`;
    await waitUntilHealthy(service, `${base}&size=4096&passes=0`, 60_000);
    const ask = async (reader: string, size: number, count: number): Promise<number> => {
      const start = performance.now();
      const response = await fetch(`${base}&reader=${encodeURIComponent(reader)}&size=${size}&passes=${count}`);
      await response.text();
      return performance.now() - start;
    };
    const names = [...CONTESTANTS.map(({ name }) => name), 'HTMLRewriter'];
    const rates: Map<string, number>[] = [];
    for (const size of SIZES) {
      const rounds = new Map(names.map((name) => [name, [] as number[]]));
      for (let round = 0; round < 9; round += 1) {
        for (const name of names) {
          // HTMLRewriter awaits every chunk; a pass of it is enough.
          const count = name === 'HTMLRewriter' ? 1 : passes;
          const empty = await ask('', size, 0);
          const ms = (await ask(name, size, count)) - empty;
          if (round > 1) rounds.get(name)?.push(Math.max(0.001, ms) / count);
        }
      }
      rates.push(new Map([...rounds].map(([name, ms]) => [name, CHARS / 1_000 / percentile(ms, 0.5)])));
      console.error(`workerd, ${size}: done`);
    }
    return { table: rateTable(names, rates), passes };
  } finally {
    await stopService(service);
  }
}
