/**
 * Runs tasks in forms, and measures each run.
 *
 * Invariants:
 *  1. A run starts only if its estimated tokens and cost fit into what the budget has left, beside the runs in progress.
 *  2. The kinds of tasks take turns, and the forms for each task, so that a budget that is used up leaves runs of all kinds that
 *     can be compared.
 *  3. After several runs in a row that the endpoint has failed, no further run starts.
 */
import type { ModelProvider } from '../../../src/domain/ports/model.ts';
import type { Task } from '../tasks/dataset.ts';
import { estimateRun } from './estimate.ts';
import type { FormName } from '../tasks/forms.ts';
import { idealPlan } from '../tasks/ideal-plan.ts';
import { measure } from '../score/measure.ts';
import type { RunMeasures } from '../score/measure.ts';
import { runTask } from './session.ts';
import type { RunPorts } from './session.ts';
import { nominalMs } from '../tasks/tools.ts';
import type { Budget, Work } from './work.ts';

export interface WorkPorts extends Omit<RunPorts, 'model'> {
  readonly model: ModelProvider;
  /** Aborted: no further run starts, and those in progress end. */
  readonly signal: AbortSignal;
  /** Called after each run. */
  readonly done: (run: RunMeasures, count: number, total: number) => void;
}

export interface WorkResult {
  /** By repetition, task and form, whatever the order of their ends. */
  readonly runs: readonly RunMeasures[];
  /** Runs that did not start. */
  readonly omitted: number;
  readonly end: WorkEnd;
}

/** Why no further run has started: none was left, one did not fit into the budget, the signal, or the endpoint. */
export type WorkEnd = 'complete' | 'budget' | 'stopped' | 'endpoint';

/** After as many failures in a row, the endpoint is not asked any more. */
const MOST_ENDPOINT_ERRORS = 5;

interface Planned {
  readonly task: Task;
  readonly form: FormName;
  readonly repetition: number;
}

export async function runAll(work: Work, ports: WorkPorts): Promise<WorkResult> {
  const { tasks, forms, repeat, concurrency, budget } = work;
  const planned = Array.from({ length: repeat }, (_, at) =>
    inTurns(tasks).flatMap((task) => forms.map((form): Planned => ({ task, form, repetition: at + 1 }))),
  ).flat();
  const runs: RunMeasures[] = [];
  const spent = new Spending(budget);
  const isLimited = budget.tokens !== null || budget.cost !== null;
  let next = 0;
  let count = 0;
  let failedInARow = 0;
  const hasFailed = (): boolean => failedInARow >= MOST_ENDPOINT_ERRORS;
  const worker = async (): Promise<void> => {
    for (
      let at = next++;
      at < planned.length && !spent.isUsedUp && !hasFailed() && !ports.signal.aborted;
      at = next++
    ) {
      const one = planned[at];
      if (one === undefined) return;
      const estimate = isLimited ? estimateRun(one.task, one.form, work) : NOTHING;
      if (!spent.reserve(estimate)) return;
      const run = await runOne(one, work, ports);
      spent.settle(estimate, run.usage);
      failedInARow = run.endpointError === null ? 0 : failedInARow + 1;
      runs[at] = run;
      count += 1;
      ports.done(run, count, planned.length);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, planned.length) }, worker));
  const made = runs.filter((run) => run !== undefined);
  const omitted = planned.length - made.length;
  const end = hasFailed() ? 'endpoint' : spent.isUsedUp ? 'budget' : 'stopped';
  return { runs: made, omitted, end: omitted === 0 && !hasFailed() ? 'complete' : end };
}

/** The first task of each kind, then the second ones, and so on. */
function inTurns(tasks: readonly Task[]): Task[] {
  const place = new Map<Task, number>();
  const counts = new Map<string, number>();
  for (const task of tasks) {
    const count = counts.get(task.kind) ?? 0;
    place.set(task, count);
    counts.set(task.kind, count + 1);
  }
  return [...tasks].sort((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0));
}

async function runOne({ task, form, repetition }: Planned, work: Work, ports: WorkPorts): Promise<RunMeasures> {
  const { dataset, agents, grammar } = work;
  const msOf = nominalMs(dataset.tools);
  const { clock, random, model } = ports;
  const resolved = agents.agentFor(task, form, grammar);
  const run = await runTask(task, resolved, dataset.tools, { clock, random, model: () => model });
  return measure({ task, form, repetition, ideal: idealPlan(task, form, msOf) }, run, msOf);
}

interface Spent {
  readonly tokens: number;
  readonly cost: number | null;
}

const NOTHING: Spent = { tokens: 0, cost: 0 };

/** What is spent and what the runs in progress may spend. */
class Spending {
  readonly #budget: Budget;
  #tokens = 0;
  #cost = 0;
  /** A run did not fit: later ones are not tried, so that the comparison stays fair. */
  isUsedUp = false;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** @returns whether the run may start */
  reserve({ tokens, cost }: Spent): boolean {
    const { tokens: mostTokens, cost: mostCost } = this.#budget;
    const fits =
      (mostTokens === null || this.#tokens + tokens <= mostTokens) &&
      (mostCost === null || this.#cost + (cost ?? 0) <= mostCost);
    if (fits) this.#add({ tokens, cost }, 1);
    else this.isUsedUp = true;
    return fits;
  }

  settle(estimate: Spent, { prompt, completion, cost }: RunMeasures['usage']): void {
    this.#add(estimate, -1);
    this.#add({ tokens: prompt + completion, cost }, 1);
  }

  #add({ tokens, cost }: Spent, sign: 1 | -1): void {
    this.#tokens += sign * tokens;
    this.#cost += sign * (cost ?? 0);
  }
}
