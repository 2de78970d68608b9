/** What the runs will need, before they start: for a model that follows the ideal plans. */
import { estimateTokens } from '../../../src/domain/tokens.ts';
import { nativeTools } from '../../../src/protocol/native/native-tools.ts';
import { buildSystemPrompt } from '../../../src/protocol/prompt/prompt.ts';
import type { Task } from '../tasks/dataset.ts';
import { FORM_PROTOCOLS } from '../tasks/forms.ts';
import type { FormName } from '../tasks/forms.ts';
import { idealPlan } from '../tasks/ideal-plan.ts';
import { idealCompletionTokens } from '../tasks/ideal-text.ts';
import { nominalMs } from '../tasks/tools.ts';
import type { Work } from './work.ts';

export interface Estimate {
  readonly calls: number;
  /** Input and output together. */
  readonly tokens: number;
  /** US dollars; null if the price is unknown. */
  readonly cost: number | null;
}

export function estimateRun(task: Task, form: FormName, { agents, dataset, priceOf }: Work): Estimate {
  const resolved = agents.agentFor(task, form, null);
  const ideal = idealPlan(task, form, nominalMs(dataset.tools));
  const functions = form === 'tool_calls' ? JSON.stringify(nativeTools(resolved)) : '';
  const first = estimateTokens(buildSystemPrompt(resolved)) + estimateTokens(functions) + estimateTokens(task.message);
  const calls = ideal.generations.length;
  const completion = idealCompletionTokens(task, ideal, FORM_PROTOCOLS[form].form);
  // Later generations also read what was written before, and about as much in results.
  const prompt = calls * first + (calls - 1) * 2 * completion;
  return { calls, tokens: prompt + completion, cost: priceOf(prompt, completion) };
}

/** Of all runs together. */
export function estimateAll(work: Work): Estimate {
  const each = work.tasks.flatMap((task) => work.forms.map((form) => estimateRun(task, form, work)));
  const sum = (values: readonly number[]): number => work.repeat * values.reduce((total, value) => total + value, 0);
  const costs = each.flatMap(({ cost }) => cost ?? []);
  return {
    calls: sum(each.map(({ calls }) => calls)),
    tokens: sum(each.map(({ tokens }) => tokens)),
    cost: costs.length < each.length ? null : sum(costs),
  };
}
