/**
 * `npm run bench:parser`: parsing speed for several chunk sizes, compared with markup parsers and a bare scan, in
 * Node and in workerd; the latency of an action after its closing tag; the memory of a parser. All figures of a row
 * come from rounds in which the readers took turns.
 */
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createParser } from '../src/protocol/parser/parser.ts';
import { freePort, startService, stopService, waitUntilHealthy } from '../cli/system/services.ts';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { writeLines } from './chart.ts';
import { CONTESTANTS, DECLARING } from './parser/contestants.ts';
import type { Contestant } from './parser/contestants.ts';
import { cut, workloads } from './parser/text.ts';
import { percentile, table, writeSection } from './report.ts';

const SIZES = [4, 16, 64, 256, 4096];
/** A long generation: about 12,000 tokens, with fewer actions than the limit. */
const CHARS = 48_000;
const WARM_UP_MS = 300;
const ROUNDS = 41;
const ROUND_MS = 6;
/** The share of rounds that were faster than the reported value: on a shared machine, most disturbances only slow down. */
const QUANTILE = 0.25;
const LATENCY_PASSES = 400;
const OWN = 'Cortex Edge';
const BARE = CONTESTANTS.map(({ name }) => name).filter((name) => name.startsWith('bare'));
const TEXTS = workloads(CHARS);

const NAMES = CONTESTANTS.map(({ name }) => name);
const MARKUP = NAMES.filter((name) => name !== OWN && name !== DECLARING && !BARE.includes(name));
/** MB/s by reader, for each size. */
type Rates = readonly ReadonlyMap<string, number>[];

expectTheSameWork();
const rates = new Map<string, Rates>();
const sections: string[] = [];
for (const workload of TEXTS) {
  const measured = SIZES.map((size) => measure(workload.text, cut(workload.text, size)));
  rates.set(workload.name, measured);
  sections.push(`**${workload.name}**: ${workload.about}.`, rateTable(NAMES, measured));
  console.error(`${workload.name}: done`);
}
const mixed = rates.get('mixed') ?? [];
writeLines(
  join(PACKAGE_ROOT, 'docs/parser.svg'),
  {
    title: 'Reading a generation, mixed text, Node',
    note: 'MB/s over characters per chunk; higher is better',
  },
  SIZES,
  NAMES.map((name, index) => ({
    label: name,
    colour: ['#0a7', '#999', '#bbb', '#38c', '#c33', '#d80', '#85c'][index] ?? '#000',
    dashed: name === DECLARING || BARE.includes(name),
    values: mixed.map((row) => row.get(name) ?? 0),
  })),
);
const latencies = measureLatency();
const retained = measureRetained();
const edge = await measureEdge();

const body = `### Throughput

MB/s of CPU time: the lower quartile of ${ROUNDS} rounds, in which all parsers take turns. Every parser returns the same data: the text of each
block as it arrives, the tags with their attributes, and the parsed bodies of actions. Before the measurement, the totals of
all parsers are compared. \`${OWN}\` follows all rules of the protocol.

The bare scans show the maximum speed of this JavaScript engine with \`indexOf\` and \`JSON.parse\`. They search for the next
\`<\`, recognise the three tags by name, also across chunks (the end of a chunk that may be the start of a tag is kept), return
the text between tags as deltas of its block and the tags verbatim, and parse a body at the first \`</action>\`. One of them
reads each chunk separately, the other a buffer. They implement no other rule: no attributes, fields, checks, references,
fences, removal of white space, \`</action>\` in a string, error handling, positions for messages, or limits.

\`${DECLARING}\` is the first bare scan, but it also returns what an engine needs: attributes, declarations as objects,
and references as separate events. It implements no other rule either. Its distance from the bare scan is the cost of
creating these objects, which every parser of the protocol has. The last rows show ${OWN} as a share of the faster bare scan,
and of this scan.

![Throughput over chunk size](parser.svg)

${sections.join('\n\n')}

The same measurement in workerd, with HTMLRewriter, for mixed text. The time is measured outside of workerd, minus that of an
empty request:

${edge}

### From the closing tag to the event

Duration of \`feed\` for the chunk that completes \`</action>\`, in Node, in µs, p50 / p99. \`calls\` has small calls; in \`mixed\`, every
second action writes a file of 3 KB. The row below each text is \`JSON.parse\` alone, of the same bodies as flat strings:

${latencyTable()}

### Retained memory

After 10 MB of mixed text, of which it reads the first 4 MiB and reports the rest as a warning, a parser retains ${retained.fed} KiB. After
4 MB with the last block still open, it retains ${retained.open} KiB (heap after a garbage collection, minus the heap before).

### Targets

${table(['target', 'met'], targets())}`;
writeSection('Parser', 'npm run bench:parser', body);
console.log(body);

/** All readers must return the same text, except white space at the edges of blocks, and the same actions. */
function expectTheSameWork(): void {
  for (const { name, text } of TEXTS) {
    for (const size of SIZES) {
      const chunks = cut(text, size);
      const own = CONTESTANTS.find((one) => one.name === OWN)?.read(chunks) ?? { text: 0, actions: 0 };
      for (const other of CONTESTANTS) {
        const found = other.read(chunks);
        if (found.actions === own.actions && Math.abs(found.text - own.text) < text.length / 50) continue;
        throw new Error(
          `${other.name} reads ${name} at ${size} differently: ${JSON.stringify(found)}, not ${JSON.stringify(own)}`,
        );
      }
    }
  }
}

/** The goals for the parser, compared with the measured figures. */
function targets(): string[][] {
  const list = (values: readonly string[]): string => (values.length === 0 ? 'yes' : `no: ${values.join('; ')}`);
  const behind = [...rates].flatMap(([text, rows]) =>
    rows.flatMap((row, index) =>
      MARKUP.filter((name) => (row.get(name) ?? 0) >= (row.get(OWN) ?? 0)).map(
        (name) =>
          `${text} at ${SIZES[index] ?? 0}, ${((row.get(OWN) ?? 0) / (row.get(name) ?? 1)).toFixed(2)} of ${name}`,
      ),
    ),
  );
  const thrice = [...rates].flatMap(([text, rows]) =>
    rows.flatMap((row, index) => {
      const times = (row.get(OWN) ?? 0) / (row.get('htmlparser2') ?? 1);
      return (SIZES[index] ?? 0) >= 256 && times < 3
        ? [`${times.toFixed(1)}× for ${text} at ${SIZES[index] ?? 0}`]
        : [];
    }),
  );
  const late = latencies.flatMap(({ name, own }) =>
    own.flatMap(({ size, p50, p99 }) =>
      p50 > 2 || p99 > 5 ? [`${name} at ${size}, ${p50.toFixed(1)} / ${p99.toFixed(1)} µs`] : [],
    ),
  );
  const kept = Math.max(retained.fed, retained.open);
  return [
    ['faster than every markup parser, for every text and chunk size', list(behind)],
    ['three times as fast as htmlparser2, from 256 characters per chunk', list(thrice)],
    ['closing tag to event, chunks of up to 256 characters: p50 at most 2 µs, p99 at most 5 µs', list(late)],
    ['at most 64 KiB retained', kept <= 64 ? 'yes' : `no: ${kept} KiB`],
  ];
}

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
  return new Map([...rounds].map(([name, ms]) => [name, text.length / 1_000 / percentile(ms, QUANTILE)]));
}

/** Milliseconds of CPU time per pass, which other processes affect least. */
function timed({ read }: Contestant, chunks: readonly string[], passes: number): number {
  const before = process.cpuUsage();
  for (let pass = 0; pass < passes; pass += 1) read(chunks);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / passes;
}

/** The speed of this parser relative to the fastest of these. */
function shares(measured: Rates, of: readonly string[] = BARE): number[] {
  return measured.map((row) => (row.get(OWN) ?? 0) / Math.max(...of.map((name) => row.get(name) ?? 0)));
}

function rateTable(names: readonly string[], measured: Rates): string {
  return table(
    ['characters per chunk', ...SIZES.map(String)],
    [
      ...names.map((name) => [name, ...measured.map((row) => (row.get(name) ?? 0).toFixed(0))]),
      ['share of the faster bare scan', ...shares(measured).map((part) => part.toFixed(2))],
      ['share of the scan with declarations', ...shares(measured, [DECLARING]).map((part) => part.toFixed(2))],
    ],
  );
}

interface Latency {
  readonly size: number;
  /** Microseconds. */
  readonly p50: number;
  readonly p99: number;
}

function measureLatency(): { name: string; own: Latency[]; json: Latency }[] {
  return TEXTS.filter(({ name }) => name !== 'prose').map(({ name, text }) => ({
    name,
    own: SIZES.filter((size) => size <= 256).map((size) => summary(size, closingTags(cut(text, size)))),
    json: summary(0, parsing(text)),
  }));
}

function summary(size: number, samples: readonly number[]): Latency {
  return { size, p50: percentile(samples, 0.5), p99: percentile(samples, 0.99) };
}

function latencyTable(): string {
  const show = ({ p50, p99 }: Latency): string => `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
  return table(
    ['characters per chunk', ...(latencies[0]?.own ?? []).map(({ size }) => String(size))],
    latencies.flatMap(({ name, own, json }) => [
      [name, ...own.map(show)],
      [`${name}, JSON.parse alone`, ...own.map(() => show(json))],
    ]),
  );
}

/** Microseconds of `JSON.parse` for every body. */
function parsing(text: string): number[] {
  const bodies = [...text.matchAll(/<action[^>]*>([^<]*)<\/action>/g)].map(
    ([, body = '']) => cut(body, body.length)[0] ?? '',
  );
  const samples: number[] = [];
  for (let pass = 0; pass < LATENCY_PASSES; pass += 1) {
    for (const body of bodies) {
      const start = performance.now();
      JSON.parse(body);
      const micros = (performance.now() - start) * 1_000;
      if (pass >= LATENCY_PASSES / 2) samples.push(micros);
    }
  }
  return samples;
}

/** Microseconds of `feed` for every chunk that completed an action. */
function closingTags(chunks: readonly string[]): number[] {
  const samples: number[] = [];
  for (let pass = 0; pass < LATENCY_PASSES; pass += 1) {
    const parser = createParser({ json: 'repair', actInReasoning: false });
    for (const chunk of chunks) {
      const start = performance.now();
      const events = parser.feed(chunk);
      const micros = (performance.now() - start) * 1_000;
      if (pass >= LATENCY_PASSES / 2 && events.some(({ type }) => type === 'action_declared')) samples.push(micros);
    }
  }
  return samples;
}

/** KiB that a parser retains: near the end of the longest text, and when it was fed more. */
function measureRetained(): { open: number; fed: number } {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const chunks = cut(TEXTS[1]?.text ?? '', 16);
  const calls = cut(TEXTS[0]?.text ?? '', 16);
  const held = (chars: number): number => {
    collect();
    const before = process.memoryUsage().heapUsed;
    const parser = createParser({ json: 'repair', actInReasoning: false });
    for (const chunk of calls) parser.feed(chunk);
    for (let read = 0; read < chars; read += CHARS) for (const chunk of chunks) parser.feed(chunk);
    parser.feed('<response>still open');
    collect();
    const kept = process.memoryUsage().heapUsed - before;
    parser.end();
    return kept;
  };
  // The first times include the engine's compilation.
  const kib = (chars: number): number =>
    Math.round(percentile(Array.from({ length: 9 }, () => held(chars)).slice(2), 0.5) / 1_024);
  return { open: kib(4_000_000), fed: kib(10_000_000) };
}

async function measureEdge(): Promise<string> {
  const port = await freePort();
  const service = startService(
    'workerd',
    'wrangler',
    ['dev', '--ip=127.0.0.1', `--port=${port}`, '--inspector-port=0', '--show-interactive-dev-session=false'],
    { env: process.env, cwd: join(PACKAGE_ROOT, 'bench/parser'), echo: () => false },
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
    const measured: Map<string, number>[] = [];
    for (const size of SIZES) {
      const rounds = new Map(['', ...names].map((name) => [name, [] as number[]]));
      // Long enough, even for the fastest reader, to exceed the cost of the request.
      const passes = 40 + Math.min(360, size * 4);
      // HTMLRewriter awaits every chunk.
      const fewPasses = Math.max(1, size >> 6);
      for (let round = 0; round < 9; round += 1) {
        for (const name of rounds.keys()) {
          const count = name === '' ? 0 : name === 'HTMLRewriter' ? fewPasses : passes;
          const ms = await ask(name, size, count);
          if (round > 1) rounds.get(name)?.push(ms);
        }
      }
      const empty = percentile(rounds.get('') ?? [], QUANTILE);
      const rate = (name: string): number => {
        const ms = percentile(rounds.get(name) ?? [], QUANTILE) - empty;
        return (CHARS * (name === 'HTMLRewriter' ? fewPasses : passes)) / 1_000 / Math.max(ms, 0.01);
      };
      measured.push(new Map(names.map((name) => [name, rate(name)])));
      console.error(`workerd, ${size}: done`);
    }
    return rateTable(names, measured);
  } finally {
    await stopService(service);
  }
}
