/**
 * Scripted models, from perfect to hopeless. Each derives its output from the ideal plan of the task and from what the
 * request contains; a model that mends an error does so only if the runtime has named it.
 */
import type { JsonObject } from '../../../src/domain/json.ts';
import { renderAction } from '../../../src/protocol/prompt/examples.ts';
import type { PlannedCall } from '../../../cli/fluency/tasks/dataset.ts';
import type { IdealPlan } from '../../../cli/fluency/tasks/ideal-plan.ts';
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

/** How a call is written as text. */
export type WriteCall = (call: WrittenCall, situation: Situation) => string;

export interface WrittenCall {
  readonly id: string;
  readonly name: string;
  readonly parameters: JsonObject;
  readonly dependsOn?: readonly string[];
}

export const asAction: WriteCall = (call, { form }) =>
  renderAction({ mode: 'async', ...call }, form === 'compact' ? 'compact' : 'full');

/** @param byValue with the results in place of references: they must be known */
export function written(call: PlannedCall, situation: Situation, byValue = false): WrittenCall {
  const { id, tool, after } = call;
  const parameters = writtenParameters(call, situation.task);
  return {
    id,
    name: tool,
    parameters: byValue ? (withValues(parameters, situation.results) as JsonObject) : parameters,
    ...(after === undefined || byValue ? {} : { dependsOn: after }),
  };
}

export function native(calls: readonly WrittenCall[]): ScriptedOutput {
  return {
    calls: calls.map(({ id, name, parameters }) => ({ id: nativeId(id), name, arguments: JSON.stringify(parameters) })),
  };
}

/** The answer with the results as values. */
function answerByValue({ task, results, form }: Situation): ScriptedOutput {
  if (form === 'tool_calls') return { text: plainAnswer(task, results) };
  return { text: finalResponse(String(asText(withValues(task.answer, results)))) };
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Acts as the plan says; answers by references in the generation of its last calls. */
export function acting(
  situation: Situation,
  { plan = situation.ideal, write = asAction }: { readonly plan?: IdealPlan; readonly write?: WriteCall } = {},
): ScriptedOutput {
  const { calls, isLast } = turnOf(plan, situation.generation);
  if (situation.form === 'tool_calls') {
    if (isLast) return answerByValue(situation);
    return native(calls.map((call) => written(call, situation, true)));
  }
  const parts = calls.map((call) => write(written(call, situation), situation));
  if (isLast) parts.push(finalResponse(situation.task.answer));
  return { text: parts.join('\n') };
}

/** Acts by values: reads every result before it uses it, and answers in a generation of its own. */
export function waiting(situation: Situation, write: WriteCall = asAction): ScriptedOutput {
  const { calls, isLast } = turnOf(situation.layered, situation.generation);
  if (isLast) return answerByValue(situation);
  const each = calls.map((call) => written(call, situation, true));
  if (situation.form === 'tool_calls') return native(each);
  return { text: each.map((call) => write(call, situation)).join('\n') };
}

/** JSON with a superfluous comma at the end: not strict, but repaired. */
const sloppyAction: WriteCall = (call, situation) => asAction(call, situation).replace(/\}(\n?<\/action>)$/, ',}$1');

function sloppy(situation: Situation): ScriptedOutput {
  // A grammar allows only strict JSON.
  return acting(situation, { write: situation.form === 'grammar' ? asAction : sloppyAction });
}

const misspelt: WriteCall = (call, situation) => asAction({ ...call, name: `${call.name}s` }, situation);

/** Misspells all tools at first. @param mends writes them right when the runtime has named a similar tool */
function misspelling(situation: Situation, mends: boolean): ScriptedOutput {
  const later = { ...situation, generation: situation.generation - 1 };
  if (situation.generation === 1) {
    const { calls } = turnOf(situation.ideal, 1);
    const each = calls.map((call) => written(call, situation, situation.form === 'tool_calls'));
    if (situation.form === 'tool_calls') return native(each.map((call) => ({ ...call, name: `${call.name}s` })));
    return { text: each.map((call) => misspelt(call, situation)).join('\n') };
  }
  const isTold = situation.generation > 2 || situation.told.includes('did you mean');
  return mends && isTold ? acting(later) : giveUp(situation);
}

export function giveUp({ form }: Situation): ScriptedOutput {
  const text = 'I do not know.';
  return { text: form === 'tool_calls' ? text : finalResponse(text) };
}

/** Refers to members that no result has, and answers by value when it is told. */
function missingReferences(situation: Situation): ScriptedOutput {
  const { form, generation, task } = situation;
  if (form === 'tool_calls') return acting(situation);
  const { calls, isLast } = turnOf(situation.layered, generation);
  if (!isLast) return { text: calls.map((call) => asAction(written(call, situation, true), situation)).join('\n') };
  if (generation > situation.layered.generations.length) return answerByValue(situation);
  return { text: finalResponse(task.answer.replaceAll(/\$(\w+)(?:\.\w+|\[\d+\])*/g, '$$$1.no_such_member')) };
}

function prose({ task }: Situation): ScriptedOutput {
  const tools = task.plan.map(({ tool }) => tool).join(', ');
  return { text: `Sure! To answer that, I would use ${tools}, and then I would tell you what they say.` };
}

function gibberish({ form, generation }: Situation): ScriptedOutput {
  if (form === 'tool_calls') return { calls: [{ id: nativeId('x'), name: 'lorem', arguments: '{"ipsum": "dolor"}' }] };
  return { text: `<action type="tool" id="x${generation}">{{{ lorem: ipsum ]] "dolor" </action> sit amet` };
}

/** From the best to the worst. */
export const FAMILY = {
  perfect: (situation) => acting(situation),
  sloppy,
  'mends errors': (situation) => misspelling(situation, true),
  'waits for results': (situation) => waiting(situation),
  'misses references': missingReferences,
  'gives up after errors': (situation) =>
    situation.task.name.length % 2 === 0 ? misspelling(situation, false) : acting(situation),
  'ignores the protocol': prose,
  gibberish,
} as const satisfies Readonly<Record<string, Model>>;

/** Good at native calls, bad at text. */
export const callsOnly: Model = (situation) =>
  situation.form === 'tool_calls' ? acting(situation) : gibberish(situation);

/** Answers without any call. @param answer from the task */
export function answering(answer: (situation: Situation) => string): Model {
  return (situation) => {
    const text = answer(situation);
    return { text: situation.form === 'tool_calls' ? text : finalResponse(text.replaceAll('$', '$$$$')) };
  };
}
