/** The tables, the text and the chart. */
import { table, writeSection } from '../report.ts';
import { writeBars } from '../chart.ts';
import type { BarGroup } from '../chart.ts';
import type { DispatchFigures } from './dispatch.ts';
import type { Workload } from './workloads.ts';

interface Measured {
  readonly ms: number;
  readonly boundMs: number;
}

export interface Row {
  readonly workload: Workload;
  readonly reactMs: number;
  readonly nativeMs: number;
  readonly wavesMs: number;
  readonly equalWavesMs: number;
  /** In the order of the peers. */
  readonly peersMs: readonly number[];
  readonly own: Readonly<Record<'full' | 'compact' | 'one' | 'equal' | 'equalOne', Measured>>;
  readonly tokens: Readonly<Record<'full' | 'compact' | 'native', number>>;
}

interface Findings {
  readonly rows: readonly Row[];
  readonly dispatch: readonly DispatchFigures[] | null;
  readonly peers: readonly string[];
  readonly minutes: number;
  /** Path of the chart; null for a trial run, which writes nothing. */
  readonly chart: string | null;
}

/** @returns the section's text, which is written to docs/benchmarks.md unless this is a trial run */
export function report(findings: Findings): string {
  const { rows, dispatch, peers, minutes, chart } = findings;
  const body = [
    introduction(peers),
    ...(chart === null ? [] : ['![Makespans](benchmarks-makespan.svg)']),
    '### Own tokens',
    'Every actor with the tokens that its own way of writing needs, in seconds. Columns with * are computed.',
    ownTokens(rows, peers),
    '### Equal tokens',
    `The same with as many tokens for each action and for the answer as they have natively, whatever their text: this
compares the ways of working, not the ways of writing.`,
    equalTokens(rows, peers),
    '### Against the bound',
    `How far the runs of this system end after their own bound, in milliseconds and percent: release = arrival of the
closing tag, finish = max(release, finish of the dependencies, a free slot) + duration; then the answer. The bound takes
nothing for network, journal and HTTP.`,
    againstBound(rows),
    '### Against the others',
    'How many times as fast as the best measured peer. "never slower" compares with every column, ideal ones included.',
    leads(rows, peers),
    ...(dispatch === null
      ? []
      : ['### From the last character of a call to the tool', dispatchWords(dispatch), dispatchTable(dispatch)]),
    '### Not measured',
    notMeasured(minutes),
  ].join('\n\n');
  if (chart !== null) {
    const groups = rows.map((row) => barsOf(row, peers));
    const longest = Math.max(...groups.flatMap(({ bars }) => bars.map(({ share }) => share)));
    writeBars(
      chart,
      {
        title: 'From the message to the end of the answer',
        note: "Bars in multiples of the row's lower bound (dashed); shorter is better.",
      },
      groups.map(({ title, bars }) => ({
        title,
        bars: bars.map((bar) => ({ ...bar, share: bar.share / longest })),
      })),
      1 / longest,
    );
    writeSection('Makespan', 'npm run bench:makespan', body);
  }
  return body;
}

function introduction(peers: readonly string[]): string {
  return `How long an agent's work takes, from the user's message to the last character of the answer. The model is scripted:
first token after 600 ms, then 60 tokens a second, each at its own time; tools wait for a set time. So the figures are
about the system between model and tools, and nothing else.

- **sequential ReAct**: one native call a generation. **native parallel, ideal**: all calls whose inputs are there in one
  generation, by an ideal client that starts each as its arguments close and asks again at once. **plan, then waves**: one
  plan in the compact form; wave after wave from its end on; then an answer.
- ${peers.map((peer) => `**${peer}**`).join(', ')}: the packages, driven as their documentation says, streaming, over
  chat completions with native parallel calls. Each runs in a process of its own with the delays in the process.
- **this system**: the Worker in workerd with journal, HTTP and SSE; the delays are its built-in tool. In the full and in
  the compact form of actions, answering in a second generation, and answering in the generation that plans
  ("one generation"), with references to the results.
- **bound**: of this system's one-generation answer.

The same slots hold for everybody. After its first calls the model of the thinking row goes on with its 500 tokens in the
same generation, for every actor. Each run is checked: every tool called once, and the answer complete.`;
}

function ownTokens(rows: readonly Row[], peers: readonly string[]): string {
  const head = [
    'workload',
    'tokens an action: full / compact / native',
    'sequential ReAct*',
    'native parallel, ideal*',
    'plan, then waves*',
    ...peers,
    'this system, full',
    'this system, compact',
    'this system, one generation',
    'bound*',
  ];
  return table(
    head,
    rows.map(({ workload, tokens, reactMs, nativeMs, wavesMs, peersMs, own }) => [
      workload.name,
      [tokens.full, tokens.compact, tokens.native].map((count) => count.toFixed(1)).join(' / '),
      ...[reactMs, nativeMs, wavesMs, ...peersMs, own.full.ms, own.compact.ms].map(seconds),
      seconds(own.one.ms),
      seconds(own.one.boundMs),
    ]),
  );
}

function equalTokens(rows: readonly Row[], peers: readonly string[]): string {
  const head = [
    'workload',
    'native parallel, ideal*',
    'plan, then waves*',
    ...peers,
    'this system',
    'this system, one generation',
    'bound*',
  ];
  return table(
    head,
    rows.map(({ workload, nativeMs, equalWavesMs, peersMs, own }) => [
      workload.name,
      ...[nativeMs, equalWavesMs, ...peersMs, own.equal.ms, own.equalOne.ms, own.equalOne.boundMs].map(seconds),
    ]),
  );
}

/** The modes of this system, with the names of their columns. */
const NAMES = {
  full: 'full',
  compact: 'compact',
  one: 'one generation',
  equal: 'equal tokens',
  equalOne: 'equal, one generation',
} as const;
const OWN = ['full', 'compact', 'one', 'equal', 'equalOne'] as const;
/** The modes that are compared with the peers. */
const RIVALS = ['compact', 'one', 'equal', 'equalOne'] as const;

function namesOf(ways: readonly (keyof typeof NAMES)[]): string[] {
  return ways.map((way) => NAMES[way]);
}

function againstBound(rows: readonly Row[]): string {
  return table(
    ['workload', ...namesOf(OWN), 'target', 'met'],
    rows.map(({ workload, own }) => {
      const over = OWN.map((way) => own[way].ms / own[way].boundMs - 1);
      return [
        workload.name,
        ...OWN.map((way, at) => `${(own[way].ms - own[way].boundMs).toFixed(0)} ms (${percent(over[at] ?? 0)})`),
        percent(workload.targetOver),
        over.every((share) => share <= workload.targetOver) ? 'yes' : 'no',
      ];
    }),
  );
}

function leads(rows: readonly Row[], peers: readonly string[]): string {
  return table(
    ['workload', 'best peer', ...namesOf(RIVALS), 'target', 'met', 'never slower'],
    rows.map((row) => {
      const { workload, peersMs, own } = row;
      const best = Math.min(...peersMs);
      const lead = (way: (typeof RIVALS)[number]): number => best / own[way].ms;
      const others = Math.min(best, row.nativeMs, row.reactMs);
      const fastest = {
        compact: Math.min(others, row.wavesMs),
        one: Math.min(others, row.wavesMs),
        equal: Math.min(others, row.equalWavesMs),
        equalOne: Math.min(others, row.equalWavesMs),
      };
      const slower = RIVALS.filter((way) => own[way].ms > fastest[way]);
      return [
        workload.name,
        `${peers[peersMs.indexOf(best)] ?? ''}, ${seconds(best)} s`,
        ...RIVALS.map((way) => `${lead(way).toFixed(2)}×`),
        `${workload.targetLead}×`,
        lead('one') >= workload.targetLead
          ? 'yes'
          : lead('equalOne') >= workload.targetLead
            ? 'with equal tokens'
            : 'no',
        slower.length === 0 ? 'yes' : `not: ${namesOf(slower).join(', ')}`,
      ];
    }),
  );
}

function dispatchWords([first]: readonly DispatchFigures[]): string {
  return `The model server reads the clock just before it writes the last character of a call, the tool's HTTP server, in the
same process, when the call arrives. The generation goes on for ${first?.restMs.toFixed(0) ?? '?'} ms behind the call: who starts at its end is
later by that. Target: p50 at most 2 ms, max at most 5 ms.`;
}

function dispatchTable(figures: readonly DispatchFigures[]): string {
  const show = (value: number): string => `${value.toFixed(2)} ms`;
  return table(
    ['', 'samples', 'p50', 'p99', 'max'],
    figures.map(({ actor, samples, p50, p99, max }) => [actor, String(samples), show(p50), show(p99), show(max)]),
  );
}

function notMeasured(minutes: number): string {
  return `- A real model: how well it plans, whether it declares what could run at once, how often it errs. The scripts are ideal
  for every actor, and every actor's model has the same idea of what depends on what.
- Prompts: the time to the first token is the same for every prompt length, so neither this system's longer system prompt nor
  the peers' further rounds, which send the growing conversation again, cost anything here. Nor is money counted.
- The price of inputs: a native call repeats its inputs, which here are two words long.
- Networks: everything is on one machine, over loopback.
- What the peers do not do and this system does (a journal on disk, resuming after a crash, events for other readers).
- The 1,000-action row has the model at 50 times its pace and in four generations of 250 for everybody: it shows what 1,000
  actions cost the system, not what a model would do. The ten actions are at a tenth of their durations.
- Contention: three runs went on at a time (this system's two tables and the peers), except in the 1,000-action row and for
  the last table. Rows below 7 s are medians of three runs, the others single runs. The whole took ${minutes.toFixed(0)} minutes.`;
}

/** `share` is a multiple of the bound. */
function barsOf({ workload, nativeMs, wavesMs, peersMs, own }: Row, peers: readonly string[]): BarGroup {
  const bar = (label: string, ms: number, colour: string): BarGroup['bars'][number] => ({
    label,
    share: ms / own.one.boundMs,
    shown: `${seconds(ms)} s`,
    colour,
  });
  return {
    title: workload.name,
    bars: [
      bar('plan, then waves (computed)', wavesMs, '#d9d9d9'),
      bar('native parallel, ideal (computed)', nativeMs, '#c4c4c4'),
      ...peersMs.map((ms, at) => bar(peers[at] ?? '', ms, ['#8fa3b8', '#7d93ab', '#6b839d'][at] ?? '#888')),
      bar('this system, compact', own.compact.ms, '#3a9b6f'),
      bar('this system, one generation', own.one.ms, '#1f7a52'),
    ],
  };
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(2);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)}%`;
}
