/** `type="llm"`: one model call outside the conversation (P6). Idempotent: asked again, it answers again. */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { ActionContext, Executor } from './executor.ts';
import { failure, failureOf, quote, wrongParameter } from './failure.ts';
import { validateParameters } from './validate-parameters.ts';

export const llmExecutor: Executor = {
  async execute({ parameters }, { callModel, progress, signal }) {
    const { prompt, system = null, model = null, output_schema: schema = null } = parameters;
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
    try {
      const text = await ask([]);
      if (schema === null) return { ok: true, output: text };
      const first = judge(text, schema);
      if (first.ok) return { ok: true, output: first.value };
      // One round to mend it: most models do when they are told what is wrong.
      const second = judge(await ask([{ role: 'assistant', content: text }, mendIt(first.complaint)]), schema);
      return second.ok ? { ok: true, output: second.value } : failure('invalid_output', second.complaint);
    } catch (fault) {
      return failureOf(fault, signal, 'model_unavailable');
    }
  },
};

type Further = NonNullable<Parameters<ActionContext['callModel']>[0]['further']>;
type Judged = { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly complaint: string };

function judge(text: string, schema: JsonObject): Judged {
  const value = jsonIn(text);
  if (value === undefined) return { ok: false, complaint: `the model answered no JSON: ${quote(text)}` };
  // the validator speaks of `parameters`; here it judges an answer
  const complaint = validateParameters({ type: 'object', properties: { output: schema } }, { output: value });
  if (complaint === null) return { ok: true, value };
  const said = complaint.replaceAll('parameters.output', 'output');
  return { ok: false, complaint: `the model's JSON does not match output_schema: ${said}` };
}

function mendIt(complaint: string): Further[number] {
  const what = complaint.replace("the model's JSON", 'your JSON').replace('the model answered', 'you answered');
  return { role: 'user', content: `That cannot be used: ${what}. Answer again, with the JSON value and nothing else.` };
}

function withSchema(system: string | null, schema: JsonObject): string {
  const rule = `Answer with one JSON value and nothing else. It must match this JSON Schema: ${JSON.stringify(schema)}`;
  return system === null ? rule : `${system}\n\n${rule}`;
}

/** The JSON of an answer that is JSON, that holds one fenced block of it, or that has words around one value. */
function jsonIn(text: string): Json | undefined {
  const unthought = text.replace(/^\s*<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>/i, '');
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n\s*```/.exec(unthought)?.[1];
  const start = unthought.search(/[{[]/);
  const end = Math.max(unthought.lastIndexOf('}'), unthought.lastIndexOf(']'));
  const within = start === -1 || end < start ? undefined : unthought.slice(start, end + 1);
  for (const candidate of [unthought, fenced, within]) {
    if (candidate === undefined) continue;
    try {
      return JSON.parse(candidate) as Json;
    } catch {
      // the next candidate may be it
    }
  }
  return undefined;
}
