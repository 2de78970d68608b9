/** What is measured: tasks in forms, and what that may cost. */
import type { TaskAgents } from '../tasks/agents.ts';
import type { Dataset, Task } from '../tasks/dataset.ts';
import type { FormName, GrammarOptions } from '../tasks/forms.ts';

export interface Budget {
  /** Input and output together. */
  readonly tokens: number | null;
  /** US dollars. */
  readonly cost: number | null;
}

export interface Work {
  readonly dataset: Dataset;
  readonly tasks: readonly Task[];
  readonly forms: readonly FormName[];
  readonly repeat: number;
  readonly concurrency: number;
  readonly agents: TaskAgents;
  readonly grammar: GrammarOptions | null;
  readonly budget: Budget;
  /** US dollars of a run with these tokens; null if the price is unknown. */
  readonly priceOf: (promptTokens: number, completionTokens: number) => number | null;
}
