/** What a model writes that follows the ideal plan of a task. The economy of a model is measured by its length. */
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { ProtocolOptions } from '../../../src/domain/manifests/agent.ts';
import { renderAction } from '../../../src/protocol/prompt/examples.ts';
import { estimateTokens } from '../../../src/domain/tokens.ts';
import { TEXT_PLACEHOLDER } from './dataset.ts';
import type { PlannedCall, Task } from './dataset.ts';
import type { IdealPlan } from './ideal-plan.ts';

/** The parameters of a planned call as a model writes them: with the text of the task, in which `$` is `$$` (P12). */
export function writtenParameters({ parameters }: PlannedCall, { text = '' }: Task): JsonObject {
  const filled = (value: Json): Json => {
    if (typeof value === 'string') return value === TEXT_PLACEHOLDER ? text.replaceAll('$', '$$$$') : value;
    if (Array.isArray(value)) return value.map(filled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filled(member)]));
  };
  return filled(parameters) as JsonObject;
}

/** One call as protocol text. */
function callText(call: PlannedCall, task: Task, form: ProtocolOptions['form']): string {
  const { id, tool, after } = call;
  const parameters = writtenParameters(call, task);
  return renderAction(
    { name: tool, id, mode: 'async', parameters, ...(after === undefined ? {} : { dependsOn: after }) },
    form,
  );
}

export function finalResponse(answer: string): string {
  return `<response final="true">\n${answer}\n</response>`;
}

/** Estimated tokens of all that a perfect model writes. References in the answer count as they are. */
export function idealCompletionTokens(task: Task, { generations }: IdealPlan, form: ProtocolOptions['form']): number {
  const texts = generations.flat().map((call) => callText(call, task, form));
  return estimateTokens([...texts, finalResponse(task.answer)].join('\n'));
}
