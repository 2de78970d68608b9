/** The tables, the text and the chart. */
import { table, writeSection } from '../report.ts';
import { writeBars } from '../chart.ts';
import type { BarGroup } from '../chart.ts';
import type { DispatchFigures } from './dispatch.ts';
import type { FanOutFigures } from './fan-out.ts';
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
  readonly fanOut: readonly FanOutFigures[] | null;
  readonly peers: readonly string[];
  readonly minutes: number;
  /** Path of the chart; null for a trial run, which writes nothing. */
  readonly chart: string | null;
}

/** @returns the section's text, which is written to docs/benchmarks.md unless this is a trial run */
export function report(findings: Findings): string {
  const { rows, dispatch, fanOut, peers, minutes, chart } = findings;
  const body = [
    introduction(peers),
    ...(chart === null ? [] : ['![Makespans](benchmarks-makespan.svg)']),
    '### Own tokens',
    'Each system with the tokens that its own notation needs, in seconds. Columns with * are computed.',
    ownTokens(rows, peers),
    '### Equal tokens',
    `The same, but each action and the answer have the number of tokens of their native form. This compares the execution, without
the notation.`,
    equalTokens(rows, peers),
    '### Compared with the bound',
    `Time by which the runs of Cortex Edge exceed their own bound, in milliseconds and percent: release = arrival of the closing
tag, finish = max(release, finish of the dependencies, a free slot) + duration; then the answer. The bound assumes no time
for network, journal and HTTP.`,
    againstBound(rows),
    '### Compared with other frameworks',
    'Speed relative to the fastest measured framework. "never slower" compares with all columns, including computed ones.',
    leads(rows, peers),
    ...(dispatch === null
      ? []
      : ['### From the last character of a call to the tool', dispatchWords(dispatch), dispatchTable(dispatch)]),
    ...(fanOut === null
      ? []
      : ['### A wide fan-out with the limits of the platform', FAN_OUT_WORDS, fanOutTable(fanOut)]),
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
  return `Time from the user's message to the last character of the answer. The model is scripted: the first token arrives after
600 ms, then 60 tokens per second, each at its own time. Tools wait for a fixed time. The values therefore measure only the
system between model and tools.

- **sequential ReAct**: one native call per generation.
- **native parallel, ideal**: each generation contains all calls whose inputs are available. An ideal client starts each call
  when its arguments are complete, and requests the next generation without delay.
- **plan, then waves**: one plan in the compact form; after its end, one wave after another; then an answer.
- ${peers.map((peer) => `**${peer}**`).join(', ')}: the packages, used as their documentation describes, with streaming, chat
  completions and native parallel calls. Each runs in a separate process, which also contains the delays of the tools.
- **Cortex Edge**: the Worker in workerd with journal, HTTP and SSE; its built-in tool provides the delays. It is measured with
  the full and the compact form of actions and an answer in a second generation, and with the answer in the generation that
  plans ("one generation"), with references to the results. Its actions are text, which starts at the closing tag. A native
  call with unsafe effects would start later, when it is confirmed (rule N4).
- **bound**: the lower bound of Cortex Edge's one-generation answer.

All systems have the same number of slots. In the row with thinking, the model of every system continues with its 500 tokens
in the same generation after its first calls. Each run is checked: every tool is called once, and the answer is complete.`;
}

function ownTokens(rows: readonly Row[], peers: readonly string[]): string {
  const head = [
    'workload',
    'tokens per action: full / compact / native',
    'sequential ReAct*',
    'native parallel, ideal*',
    'plan, then waves*',
    ...peers,
    'Cortex Edge, full',
    'Cortex Edge, compact',
    'Cortex Edge, one generation',
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
    'Cortex Edge',
    'Cortex Edge, one generation',
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
    ['workload', 'fastest framework', ...namesOf(RIVALS), 'target', 'met', 'never slower'],
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
        slower.length === 0 ? 'yes' : `except: ${namesOf(slower).join(', ')}`,
      ];
    }),
  );
}

function dispatchWords([first]: readonly DispatchFigures[]): string {
  return `Time from just before the model server writes the last character of a call until the tool's HTTP server, in the same process,
receives the call. The generation continues for ${first?.restMs.toFixed(0) ?? '?'} ms after the call, so a system that starts calls at its end is later by
this time. Target: p50 at most 2 ms, max at most 5 ms.`;
}

function dispatchTable(figures: readonly DispatchFigures[]): string {
  const show = (value: number): string => `${value.toFixed(2)} ms`;
  return table(
    ['', 'samples', 'p50', 'p99', 'max'],
    figures.map(({ actor, samples, p50, p99, max }) => [actor, String(samples), show(p50), show(p99), show(max)]),
  );
}

const FAN_OUT_WORDS = `A model writes 64 HTTP calls of five seconds in one generation, at 1,000 tokens per second, with free slots for all of them. The
limits are those of \`PLATFORM_LIMITS=paid\`
([fan-outs](deploy.md#wide-fan-outs)): six connections that wait for their headers, of the session's object and of each of
its helpers. The last row is computed: the same bound with six slots. Target: 1.1 times the bound.`;

function fanOutTable(figures: readonly FanOutFigures[]): string {
  return table(
    ['', 'runs', 'median', 'bound', 'median / bound'],
    figures.map(({ actor, runs, medianMs, boundMs }) => [
      actor,
      runs === 0 ? '' : String(runs),
      `${seconds(medianMs)} s`,
      `${seconds(boundMs)} s`,
      (medianMs / boundMs).toFixed(2),
    ]),
  );
}

function notMeasured(minutes: number): string {
  return `- A real model: how well it plans, whether it declares parallel calls, and how often it makes mistakes. The scripts are ideal
  for every system, and contain the same dependencies.
- Prompts: the time to the first token does not depend on the length of the prompt. The longer system prompt of Cortex Edge
  and the additional rounds of the other frameworks, which send the growing conversation again, therefore cost nothing here.
  Costs in money are not counted either.
- The cost of inputs: a native call repeats its inputs, which are two words long here.
- Networks: everything runs on one machine, over loopback.
- Features that only Cortex Edge has: a journal on disk, recovery after a crash, events for other readers.
- In the row with 1,000 actions, the model is 50 times as fast and writes four generations of 250 actions, for every system.
  The row shows the cost of 1,000 actions in the system, not the behaviour of a model. The ten actions of the research
  assistant have a tenth of their durations.
- Contention: three runs were active at a time (the two tables of Cortex Edge, and the other frameworks), except in the row with
  1,000 actions and in the last table. Rows below 7 s are medians of three runs; the others are single runs. The whole
  benchmark took ${minutes.toFixed(0)} minutes.`;
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
      bar('Cortex Edge, compact', own.compact.ms, '#3a9b6f'),
      bar('Cortex Edge, one generation', own.one.ms, '#1f7a52'),
    ],
  };
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(2);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)}%`;
}
