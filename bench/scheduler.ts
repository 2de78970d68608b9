/**
 * The cost of a scheduling decision: whole runs through `step`, without an engine, in microseconds per action.
 *
 * An action's share includes its declaration, its start, its outcome and all resulting commands.
 * Executors take no time; outcomes are returned in the order of the starts.
 */
import { percentile, table, writeSection } from './report.ts';
import { initialState, step } from '../src/scheduler/step.ts';
import type { RunState } from '../src/scheduler/step.ts';
import type { SchedulerCommand, SchedulerInput } from '../src/scheduler/types.ts';
import { TEXT, declaration, policy } from '../test/support/scheduler-kit.ts';

const SLOTS = 5;
const ROUNDS = 15;
/** Number of actions that run before each measurement, to warm up the compiler. */
const WARM_UP_ACTIONS = 100_000;

interface Workload {
  readonly name: string;
  readonly actions: number;
  /** Indexes of the actions that action `at` depends on. */
  readonly dependencies: (at: number, random: () => number) => readonly number[];
  /** `streamed`: outcomes arrive between the declarations; otherwise after all of them. */
  readonly streamed: boolean;
}

/** About one and a half edges per action, to random earlier actions. */
const randomEdges: Workload['dependencies'] = (at, random) => {
  const count = at === 0 ? 0 : random() < 0.5 ? 1 : 2;
  return Array.from({ length: count }, () => Math.floor(random() * at));
};

const WORKLOADS: readonly Workload[] = [
  ...[1_000, 2_000, 4_000, 16_000, 64_000].map((actions) => ({
    name: 'random graph, 1.5 edges per action',
    actions,
    dependencies: randomEdges,
    streamed: false,
  })),
  { name: 'the same graph, outcomes between declarations', actions: 1_000, dependencies: randomEdges, streamed: true },
  { name: 'the same graph, outcomes between declarations', actions: 16_000, dependencies: randomEdges, streamed: true },
  { name: 'one chain', actions: 1_000, dependencies: (at) => (at === 0 ? [] : [at - 1]), streamed: false },
  { name: 'no edges', actions: 1_000, dependencies: () => [], streamed: false },
];

const rows = WORKLOADS.map((workload) => {
  const inputs = declarations(workload);
  for (let warm = 0; warm < WARM_UP_ACTIONS; warm += workload.actions) play(workload, inputs);
  const rounds = Array.from({ length: ROUNDS }, () => play(workload, inputs));
  const micros = (percentile(rounds, 0.5) * 1000) / workload.actions;
  const edges = inputs.reduce((total, { action }) => total + (action.dependsOn?.length ?? 0), 0);
  return [workload.name, String(workload.actions), String(edges), micros.toFixed(2)];
});
const result = table(['graph', 'actions', 'edges', 'µs per action'], rows);
console.log(result);
writeSection(
  'Scheduler',
  'npm run bench:scheduler',
  `Complete runs through \`step\`, without an engine: each action is declared, started and settled. ${SLOTS} slots, median of
${ROUNDS} runs. A run may have 2,000 actions; the larger graphs show how the cost grows.

${result}`,
);

type Declared = Extract<SchedulerInput, { type: 'action_declared' }>;

function declarations({ actions, dependencies }: Workload): Declared[] {
  const random = seeded(42);
  return Array.from({ length: actions }, (_, at) => ({
    type: 'action_declared',
    at: 0,
    action: declaration({
      id: `a${at}`,
      ordinal: at,
      dependsOn: [...new Set(dependencies(at, random))].map((other) => `a${other}`),
    }),
    policy: policy({ estimateMs: Math.floor(random() * 10_000) }),
  }));
}

/** @returns milliseconds of one whole run */
function play({ actions, streamed }: Workload, inputs: readonly Declared[]): number {
  const running: string[] = [];
  let state: RunState = initialState();
  let drained = false;
  let settled = 0;
  const tell = (input: SchedulerInput): void => {
    const decided = step(state, input);
    state = decided.state;
    for (const command of decided.commands) note(command);
  };
  const note = (command: SchedulerCommand): void => {
    if (command.type === 'start') running.push(command.key);
    else if (command.type === 'settle') settled += 1;
    else if (command.type === 'drained') drained = true;
  };
  let next = 0;
  const finishOne = (): void => {
    const key = running[next];
    next += 1;
    if (key !== undefined) tell({ type: 'attempt_succeeded', at: 0, key, attempt: 1 });
  };
  const began = performance.now();
  tell({ type: 'run_started', at: 0, policy: { ...TEXT, maxParallelActions: SLOTS, maxActions: actions } });
  for (const input of inputs) {
    tell(input);
    if (streamed && next < running.length) finishOne();
  }
  tell({ type: 'generation_ended', at: 0, finish: 'stop', answered: false, error: null });
  while (next < running.length) finishOne();
  const took = performance.now() - began;
  if (!drained || settled !== actions) throw new Error(`the run ended with ${settled} of ${actions} actions settled`);
  return took;
}

/** A small deterministic generator, so that all rounds and machines run the same graphs. */
function seeded(seed: number): () => number {
  let value = seed;
  return () => {
    value = (value * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return value / 4_294_967_296;
  };
}
