/** The workloads as data: actions with durations and dependencies, and the model's pace. */

export type ToolName = 'search' | 'math' | 'work';

export interface WorkAction {
  readonly id: string;
  readonly tool: ToolName;
  readonly ms: number;
  /** Ids of earlier actions whose results this action uses. */
  readonly after: readonly string[];
  /** The parameter with the task's text, which is also the result. */
  readonly q: string;
}

export interface Pace {
  readonly firstTokenMs: number;
  readonly tokensPerSecond: number;
}

export interface Workload {
  readonly name: string;
  readonly actions: readonly WorkAction[];
  /** Maximum number of concurrent tool calls, the same for every actor. */
  readonly slots: number;
  /** Tokens of thinking after the first calls, in the same generation. */
  readonly thinkingTokens: number;
  readonly pace: Pace;
  /** Maximum number of actions per generation; the remaining ones follow in later generations. */
  readonly batch: number;
  /** Runs of each actor; the median counts. */
  readonly repeats: number;
  /** Required speed relative to the best other actor; 1 = at least equal. */
  readonly targetLead: number;
  /** Maximum excess over the bound, as a share. */
  readonly targetOver: number;
}

/** First token after 600 ms, then 60 per second. */
const PACE: Pace = { firstTokenMs: 600, tokensPerSecond: 60 };
/** Above all limits that these workloads can reach. */
export const WIDE = 256;

const SUBJECTS = ['copper', 'zinc', 'nickel', 'cobalt', 'lithium', 'silver', 'tin', 'lead'] as const;

function subject(at: number): string {
  return SUBJECTS[at % SUBJECTS.length] ?? 'iron';
}

function action(id: string, tool: ToolName, ms: number, q: string, ...after: string[]): WorkAction {
  return { id, tool, ms, q, after };
}

function workload(
  name: string,
  actions: readonly WorkAction[],
  rest: Partial<Omit<Workload, 'name' | 'actions'>> = {},
): Workload {
  return {
    name,
    actions,
    slots: WIDE,
    thinkingTokens: 0,
    pace: PACE,
    batch: 250,
    repeats: 1,
    targetLead: 1,
    targetOver: 0.01,
    ...rest,
  };
}

export const WORKLOADS: readonly Workload[] = [
  workload(
    'two parallel searches',
    [action('a', 'search', 1_200, 'copper price'), action('b', 'search', 900, 'zinc price')],
    { repeats: 3 },
  ),
  workload(
    'eight parallel searches, 0.6–1.5 s',
    [900, 600, 1_500, 1_100, 700, 1_300, 800, 1_000].map((ms, at) =>
      action(`s${at + 1}`, 'search', ms, `${subject(at)} price`),
    ),
    { repeats: 3 },
  ),
  workload(
    'four search→math chains and a join',
    [
      ...[1_200, 800, 1_500, 1_000].map((ms, at) => action(`s${at + 1}`, 'search', ms, `${subject(at)} price`)),
      ...[300, 1_200, 300, 900].map((ms, at) => action(`m${at + 1}`, 'math', ms, 'per tonne', `s${at + 1}`)),
      action('join', 'math', 200, 'mean', 'm1', 'm2', 'm3', 'm4'),
    ],
    { targetLead: 1.7 },
  ),
  workload('research assistant, ten actions, 1/10', [
    action('wiki', 'search', 3_000, 'wiki article'),
    action('arxiv', 'search', 3_000, 'arxiv papers'),
    action('news', 'search', 2_000, 'recent news'),
    action('facts', 'work', 1_500, 'key facts', 'wiki'),
    action('summary', 'work', 6_000, 'summary', 'arxiv'),
    action('report', 'work', 12_000, 'report', 'facts', 'summary', 'news'),
    action('cache', 'work', 1_000, 'cache', 'report'),
    action('quality', 'work', 2_000, 'quality', 'report'),
    action('citations', 'work', 1_500, 'citations', 'report'),
    action('final', 'work', 1_000, 'final', 'quality', 'citations'),
  ]),
  workload('three chains (1,8,1) (8,1,1) (1,1,8) s', skewedChains(), { targetLead: 1.2 }),
  workload(
    'four 6 s tools, then 500 tokens of thinking',
    [1, 2, 3, 4].map((n) => action(`t${n}`, 'work', 6_000, `part ${n}`)),
    { thinkingTokens: 500, targetLead: 1.12 },
  ),
  workload(
    '64 × 2 s at 8 slots',
    Array.from({ length: 64 }, (_, at) => action(`f${at + 1}`, 'work', 2_000, `part ${at + 1}`)),
    { slots: 8, targetOver: 0.03 },
  ),
  workload('random graph, 30 actions, 0.2–3 s', randomGraph(30, 7), { targetLead: 1.2 }),
  workload(
    '1,000 actions of 0 ms, model 50 times as fast',
    Array.from({ length: 1_000 }, (_, at) => action(`z${at + 1}`, 'work', 0, `part ${at + 1}`)),
    { pace: { firstTokenMs: 600, tokensPerSecond: 3_000 } },
  ),
];

function skewedChains(): WorkAction[] {
  const chains = [
    ['x', [1_000, 8_000, 1_000]],
    ['y', [8_000, 1_000, 1_000]],
    ['z', [1_000, 1_000, 8_000]],
  ] as const;
  // Declared step by step, as in a typical plan.
  return [0, 1, 2].flatMap((step) =>
    chains.map(([chain, ms]) =>
      action(`${chain}${step}`, 'work', ms[step] ?? 0, `${chain} step`, ...(step === 0 ? [] : [`${chain}${step - 1}`])),
    ),
  );
}

/** Each action uses up to two of the six previous ones; the same graph on every machine. */
function randomGraph(size: number, seed: number): WorkAction[] {
  let value = seed;
  const random = (): number => {
    value = (value * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return value / 4_294_967_296;
  };
  return Array.from({ length: size }, (_, at) => {
    const after = new Set<string>();
    const wanted = at < 3 ? 0 : Math.floor(random() * 3);
    for (let n = 0; n < wanted; n += 1) after.add(`n${Math.max(0, at - 1 - Math.floor(random() * 6))}`);
    return action(`n${at}`, 'work', 200 + Math.floor(random() * 28) * 100, `node ${at}`, ...after);
  });
}
