/** `type="llm"`: one model call outside the conversation (P6). Idempotent: asked again, it answers again. */
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import type { Executor } from './executor.ts';
import { failure, failureOf, quote, wrongParameter } from './failure.ts';
import { validateParameters } from './validate-parameters.ts';

export const llmExecutor: Executor = {
  async execute({ parameters }, { callModel, progress, signal }) {
    const { prompt, system = null, model = null, output_schema: schema = null } = parameters;
    if (typeof prompt !== 'string' || prompt.trim() === '') return wrongParameter('prompt', 'text', prompt);
    if (system !== null && typeof system !== 'string') return wrongParameter('system', 'text', system);
    if (model !== null && typeof model !== 'string') return wrongParameter('model', 'the name of a model', model);
    if (schema !== null && !isJsonObject(schema)) return wrongParameter('output_schema', 'a JSON Schema', schema);
    let text: string;
    try {
      text = await callModel({
        prompt,
        system: schema === null ? system : withSchema(system, schema),
        model,
        onText: (delta) => progress({ text: delta }),
      });
    } catch (fault) {
      return failureOf(fault, signal, 'model_unavailable');
    }
    if (schema === null) return { ok: true, output: text };
    const value = jsonIn(text);
    if (value === undefined)
      return failure('invalid_output', `the model answered no JSON: ${quote(text)}`, { retryable: true });
    // the validator speaks of `parameters`; here it judges an answer
    const complaint = validateParameters({ type: 'object', properties: { output: schema } }, { output: value });
    if (complaint === null) return { ok: true, output: value };
    return failure(
      'invalid_output',
      `the model's JSON does not match output_schema: ${complaint.replaceAll('parameters.output', 'output')}`,
      {
        retryable: true,
      },
    );
  },
};

function withSchema(system: string | null, schema: JsonObject): string {
  const rule = `Answer with one JSON value and nothing else. It must match this JSON Schema: ${JSON.stringify(schema)}`;
  return system === null ? rule : `${system}\n\n${rule}`;
}

/** The JSON of an answer that is JSON, or that holds one fenced block of it. */
function jsonIn(text: string): Json | undefined {
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n\s*```/.exec(text)?.[1];
  for (const candidate of [text, fenced]) {
    if (candidate === undefined) continue;
    try {
      return JSON.parse(candidate) as Json;
    } catch {
      // the next candidate may be it
    }
  }
  return undefined;
}
