/** `type="llm"`: one model call outside the conversation (P6). Idempotent. */
import { askedText } from '../domain/call-text.ts';
import { isJsonObject, parseJson } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { WorkMeter } from '../domain/work.ts';
import type { ActionContext, Executor } from './executor.ts';
import { failure } from '../domain/failure.ts';
import { failureOf, quote, wrongParameter } from './failure.ts';
import { validateJson, UNCHECKED, schemaIssue } from './validate-parameters.ts';

export const llmExecutor: Executor = {
  async execute({ action, parameters }, { callModel, pacer, progress, signal }) {
    const { system: given = null, model = null, output_schema: schema = null } = parameters;
    const prompt = askedText('llm', parameters);
    // Named values do not say what to do with them, but the name of the action does.
    const system = given ?? (Object.hasOwn(parameters, 'prompt') ? null : taskOf(action.name));
    if (typeof prompt !== 'string' || prompt.trim() === '') return wrongParameter('prompt', 'text', prompt);
    if (system !== null && typeof system !== 'string') return wrongParameter('system', 'text', system);
    if (model !== null && typeof model !== 'string') return wrongParameter('model', 'the name of a model', model);
    if (schema !== null && !isJsonObject(schema)) return wrongParameter('output_schema', 'a JSON Schema', schema);
    const ask = (further: Further): Promise<string> =>
      callModel({
        prompt,
        system: schema === null ? system : withSchema(system, schema),
        model,
        further,
        onText: (delta) => progress({ text: delta }),
      });
    const parse = (text: string, by: JsonObject): Promise<Parsed> =>
      pacer.run(limits.schemaSteps, (meter) => parseAnswer(text, by, meter), signal);
    try {
      if (schema === null) return { ok: true, output: withoutReasoning(await ask([])) };
      const unusable = await pacer.run(limits.schemaSteps, (meter) => schemaIssue(schema, meter), signal);
      if (unusable !== null) return unusableSchema(unusable);
      const text = await ask([]);
      const first = await parse(text, schema);
      if (first.ok) return { ok: true, output: first.value };
      if (first.issue.includes(UNCHECKED)) return unusableSchema(first.issue);
      // One repair round: most models succeed when they see the error.
      const second = await parse(await ask([{ role: 'assistant', content: text }, repairRequest(first.issue)]), schema);
      return second.ok ? { ok: true, output: second.value } : failure('invalid_output', second.issue);
    } catch (fault) {
      return failureOf(fault, signal, 'model_unavailable');
    }
  },
};

function taskOf(name: string): string | null {
  return name === 'llm' ? null : `Your task is called "${name}".`;
}

type Further = NonNullable<Parameters<ActionContext['callModel']>[0]['further']>;
type Parsed = { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly issue: string };

function unusableSchema(why: string): ReturnType<typeof failure> {
  return failure('invalid_parameters', `parameters.output_schema: ${why}`);
}

function parseAnswer(text: string, schema: JsonObject, meter: WorkMeter): Parsed {
  const value = jsonIn(withoutReasoning(text));
  if (value === undefined) return { ok: false, issue: `the model's answer is not JSON: ${quote(text)}` };
  const issue = validateJson(schema, value, 'output', meter);
  if (issue === null) return { ok: true, value };
  return { ok: false, issue: `the model's JSON does not match output_schema: ${issue}` };
}

function repairRequest(issue: string): Further[number] {
  const what = issue.replace("the model's", 'your');
  return {
    role: 'user',
    content: `That answer is not valid: ${what}. Answer again with the JSON value and nothing else.`,
  };
}

function withSchema(system: string | null, schema: JsonObject): string {
  const rule = `Answer with one JSON value and nothing else. It must match this JSON Schema: ${JSON.stringify(schema)}`;
  return system === null ? rule : `${system}\n\n${rule}`;
}

/** The JSON in an answer: the whole answer, a fenced block, or one value surrounded by text. */
function jsonIn(text: string): Json | undefined {
  const start = text.search(/[{[]/);
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'));
  const within = start === -1 || end < start ? undefined : text.slice(start, end + 1);
  for (const candidate of [text, inFence(text), within]) {
    const value = candidate === undefined ? undefined : parseJson(candidate);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Content of the first fenced code block; reads each line once. */
function inFence(text: string): string | undefined {
  const opening = /```(?:json)?[^\S\n]*\n/i.exec(text);
  if (opening === null) return undefined;
  const within = text.slice(opening.index + opening[0].length);
  const closing = /^[^\S\n]*```/m.exec(within);
  return closing === null ? undefined : within.slice(0, closing.index);
}

/** The answer without a reasoning block before it. */
function withoutReasoning(text: string): string {
  const thinking = /^\s*<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>\s*/i.exec(text);
  return thinking === null ? text : text.slice(thinking[0].length);
}
