/** The texts of the perfect model keep to the grammar that the form `grammar` sends. */
import { expect, test } from 'vitest';
import { finalResponse, callText } from '../../../cli/fluency/tasks/ideal-text.ts';
import { idealPlan } from '../../../cli/fluency/tasks/ideal-plan.ts';
import { nominalMs } from '../../../cli/fluency/tasks/tools.ts';
import { engineFor } from '../../support/xgrammar.ts';
import { agents, dataset, FEW } from './kit.ts';

const GRAMMAR = { parameter: 'body.grammar', format: 'gbnf' } as const;

// Compiling a grammar takes long.
const TASKS = FEW.filter((_, index) => index % 3 === 0);

test.each(TASKS.map((task) => [task.name, task] as const))('[O4] %s', async (_, task) => {
  const { engine } = agents.agentFor(task, 'grammar', GRAMMAR).agent;
  const { grammar } = engine.parameters['body'] as { readonly grammar: string };
  const checker = await engineFor(grammar);
  const { generations } = idealPlan(task, 'grammar', nominalMs(dataset.tools));
  for (const [index, calls] of generations.entries()) {
    const answer = index === generations.length - 1 ? [finalResponse(task.answer)] : [];
    const text = [...calls.map((call) => callText(call, task, 'full')), ...answer].join('\n');
    expect(checker.refusal(text)).toBeNull();
  }
});
