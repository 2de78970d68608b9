/** Scripted models. Each derives its output from the ideal plan of the task and from what the request contains. */
import type { JsonObject } from '../../../src/domain/json.ts';
import { renderAction } from '../../../src/protocol/prompt/examples.ts';
import type { PlannedCall } from '../../../cli/fluency/tasks/dataset.ts';
import { finalResponse, writtenParameters } from '../../../cli/fluency/tasks/ideal-text.ts';
import { nativeId, plainAnswer, turnOf, withValues } from './situation.ts';
import type { Situation } from './situation.ts';

/** The output of one generation. */
export interface ScriptedOutput {
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finish?: string;
}

export type Model = (situation: Situation) => ScriptedOutput;

/** @param byValue with the results in place of references: they must be known */
function asAction(
  { id, tool, after }: PlannedCall,
  situation: Situation,
  parameters: JsonObject,
  byValue: boolean,
): string {
  const order = after === undefined || byValue ? {} : { dependsOn: after };
  const call = { mode: 'async', id, name: tool, parameters, ...order } as const;
  return renderAction(call, situation.form === 'compact' ? 'compact' : 'full');
}

/** Calls as text, or as native calls in the form of these. */
function written(calls: readonly PlannedCall[], situation: Situation, byValue: boolean): ScriptedOutput {
  const isNative = situation.form === 'tool_calls';
  const each = calls.map((call) => {
    const parameters = writtenParameters(call, situation.task);
    const values = isNative || byValue ? (withValues(parameters, situation.results) as JsonObject) : parameters;
    return { call, values };
  });
  if (!isNative) return { text: each.map(({ call, values }) => asAction(call, situation, values, byValue)).join('\n') };
  return {
    calls: each.map(({ call, values }) => ({
      id: nativeId(call.id),
      name: call.tool,
      arguments: JSON.stringify(values),
    })),
  };
}

/** The answer with the results as values. */
function answerByValue({ task, results, form }: Situation): ScriptedOutput {
  if (form === 'tool_calls') return { text: plainAnswer(task, results) };
  const value = withValues(task.answer, results);
  return { text: finalResponse(typeof value === 'string' ? value : JSON.stringify(value)) };
}

/** Acts as the plan says; answers by references in the generation of its last calls. */
export const perfect: Model = (situation) => {
  const { calls, isLast } = turnOf(situation.ideal, situation.generation);
  if (isLast && situation.form === 'tool_calls') return answerByValue(situation);
  const output = written(calls, situation, false);
  return isLast ? { text: `${output.text ?? ''}\n${finalResponse(situation.task.answer)}` } : output;
};

/** Acts by values: reads every result before it uses it, and answers in a generation of its own. */
export const waiting: Model = (situation) => {
  const { calls, isLast } = turnOf(situation.layered, situation.generation);
  return isLast ? answerByValue(situation) : written(calls, situation, true);
};

export const gibberish: Model = ({ form, generation }) => {
  if (form === 'tool_calls') return { calls: [{ id: nativeId('x'), name: 'lorem', arguments: '{"ipsum": "dolor"}' }] };
  return { text: `<action type="tool" id="x${generation}">{{{ lorem: ipsum ]] "dolor" </action> sit amet` };
};

/** Good at native calls, bad at text. */
export const callsOnly: Model = (situation) =>
  situation.form === 'tool_calls' ? perfect(situation) : gibberish(situation);

/** Answers without any call. @param answer from the task */
export function answering(answer: (situation: Situation) => string): Model {
  return (situation) => {
    const text = answer(situation);
    return { text: situation.form === 'tool_calls' ? text : finalResponse(text.replaceAll('$', '$$$$')) };
  };
}
