/** Runs tasks with a scripted model over HTTP, through the real provider. */
import { limits } from '../../../src/domain/limits.ts';
import { createModel } from '../../../src/llm/routing/select.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { TaskAgents } from '../../../cli/fluency/tasks/agents.ts';
import type { Dataset, Task } from '../../../cli/fluency/tasks/dataset.ts';
import { FORM_NAMES } from '../../../cli/fluency/tasks/forms.ts';
import type { FormName } from '../../../cli/fluency/tasks/forms.ts';
import { runAll } from '../../../cli/fluency/run/fluency.ts';
import { idealPlan } from '../../../cli/fluency/tasks/ideal-plan.ts';
import { shippedDataset } from '../../../cli/fluency/tasks/load.ts';
import { measure } from '../../../cli/fluency/score/measure.ts';
import type { RunMeasures } from '../../../cli/fluency/score/measure.ts';
import { runTask } from '../../../cli/fluency/run/session.ts';
import type { TaskRun } from '../../../cli/fluency/run/session.ts';
import { nominalMs } from '../../../cli/fluency/tasks/tools.ts';
import { startModel } from './endpoint.ts';
import type { EndpointOptions } from './endpoint.ts';
import type { Model } from './models.ts';

export const dataset = shippedDataset();
export const agents = new TaskAgents(dataset, { seconds: 60, prices: {} });

/** Short waits pass at once; timeouts never fire. */
class HastyClock extends VirtualClock {
  override schedule(delayMs: number, callback: () => void): () => void {
    if (delayMs >= limits.actionTimeoutMs || delayMs === limits.usageGraceMs) return () => {};
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  }
}

export function taskNamed(name: string): Task {
  const found = dataset.tasks.find((task) => task.name === name);
  if (found === undefined) throw new Error(`no task is called "${name}"`);
  return found;
}

/** Some tasks of each kind. */
export const SAMPLE: readonly Task[] = dataset.tasks.filter((_, index) => index % 3 === 0);

/** One run of one task. */
export async function single(
  model: Model,
  task: Task,
  options: EndpointOptions & { readonly form?: FormName } = {},
): Promise<{ readonly run: TaskRun; readonly measures: RunMeasures }> {
  const { form = 'full', ...endpoint } = options;
  await using server = await startModel(dataset, model, endpoint);
  const clock = new HastyClock();
  const { provider } = createModel(
    { provider: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-scripted', model: 'scripted' },
    { clock, random: () => 0 },
  );
  const run = await runTask(task, agents.agentFor(task, form, null), dataset.tools, {
    clock,
    random: () => 0,
    model: () => provider,
  });
  const msOf = nominalMs(dataset.tools);
  const measures = measure({ task, form, repetition: 1, ideal: idealPlan(task, form, msOf) }, run, msOf);
  return { run, measures };
}

export interface TrialOptions extends EndpointOptions {
  readonly tasks?: readonly Task[];
  readonly forms?: readonly FormName[];
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  /** Called after each run with their number. */
  readonly done?: (count: number) => void;
}

export async function trial(model: Model, options: TrialOptions = {}, data: Dataset = dataset): Promise<RunMeasures[]> {
  const { tasks = data.tasks, forms = FORM_NAMES, concurrency = 4, ...others } = options;
  const { signal = new AbortController().signal, done = () => undefined, ...endpoint } = others;
  await using server = await startModel(data, model, endpoint);
  const clock = new HastyClock();
  const { provider } = createModel(
    { provider: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-scripted', model: 'scripted' },
    { clock, random: () => 0 },
  );
  const { runs } = await runAll(
    {
      dataset: data,
      tasks,
      forms,
      repeat: 1,
      concurrency,
      agents,
      grammar: { parameter: 'grammar', format: 'gbnf' },
      budget: { tokens: null, cost: null },
      priceOf: () => null,
    },
    { clock, random: () => 0, model: provider, signal, done: (_, count) => done(count) },
  );
  return [...runs];
}
