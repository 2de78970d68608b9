/** Tool manifests of the original system. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { Draft } from '../draft.ts';
import { isFeedDocument, understandFeedDocument } from './feed-document.ts';
import { keepAsMetadata, VALIDATION_RULES } from '../values.ts';
import { understandProgram } from './program.ts';

export function understandTool(draft: Draft): void {
  if (isFeedDocument(draft.value)) understandFeedDocument(draft);
  summary(draft);
  understandProgram(draft);
  describedReturns(draft);
  listedReturns(draft);
  validationRules(draft);
  wrappedExamples(draft);
  keepAsMetadata(draft, ['category', 'on_error', 'allow_empty']);
}

/** agent-lib needs only one of summary and description. */
function summary(draft: Draft): void {
  const description = draft.get(['description']);
  if (draft.has(['summary']) || typeof description !== 'string') return;
  const [first = ''] = description
    .trim()
    .slice(0, 2_000)
    .split(/(?<=[.!?])\s|\n\s*\n/, 1);
  if (first === '') return;
  draft.note(['description'], 'its first sentence is understood as summary');
  draft.set(['summary'], first.replaceAll(/\s+/g, ' ').slice(0, SUMMARY_CHARS), ['description']);
}

/** Maximum of the schema. */
const SUMMARY_CHARS = 500;

/** `returns` as text describes the result. */
function describedReturns(draft: Draft): void {
  const returns = draft.get(['returns']);
  if (typeof returns !== 'string') return;
  draft.note(['returns'], 'text, understood as the description of the result');
  draft.set(['returns'], { description: returns });
}

/** `returns` as a list of `{name, type, description}`, like parameters. */
function listedReturns(draft: Draft): void {
  const returns = draft.get(['returns']);
  if (!Array.isArray(returns)) return;
  const properties = returns.flatMap((item): [string, Json][] => {
    if (typeof item === 'string') return [[item, {}]];
    if (!isJsonObject(item) || typeof item['name'] !== 'string') return [];
    const { name, required: _required, ...schema } = item;
    return [[name, schema]];
  });
  draft.note(['returns'], 'a list, understood as the properties of the result');
  draft.set(['returns'], { type: 'object', properties: Object.fromEntries(properties) });
}

/** `parameters: [{name, type, validation: {min, max, …}}]`. */
function validationRules(draft: Draft): void {
  const parameters = draft.get(['parameters']);
  if (!Array.isArray(parameters)) return;
  let isTold = false;
  for (const [index, item] of parameters.entries()) {
    const path = ['parameters', index, 'validation'];
    const rules = draft.get(path);
    if (!isJsonObject(item) || !isJsonObject(rules)) continue;
    const known = Object.keys(rules).filter((rule) => Object.hasOwn(VALIDATION_RULES, rule));
    if (known.length === 0) continue;
    if (!isTold) draft.note(path, 'understood as JSON Schema: minimum, maximum, minLength, maxLength, pattern');
    isTold = true;
    for (const rule of known) {
      const target = ['parameters', index, VALIDATION_RULES[rule] ?? rule];
      if (draft.has(target)) draft.remove([...path, rule]);
      else draft.move([...path, rule], target);
    }
    // a rule that is not known is an unknown field of the parameter
    if (Object.keys(rules).length === 0) draft.remove(path);
  }
}

const INPUTS = ['input', 'params', 'parameters'] as const;
const OUTPUTS = ['output', 'expected_output', 'expected', 'result'] as const;
/** Members of an example around its parameters. */
const AROUND: ReadonlySet<string> = new Set([...INPUTS, ...OUTPUTS, 'description', 'name', 'summary', 'title']);

/** Examples as `{description, input, output}`: only the parameters are an example of a call. */
function wrappedExamples(draft: Draft): void {
  const examples = draft.get(['examples']);
  if (!Array.isArray(examples)) return;
  const declared = parameterNames(draft.value);
  let isWrapped = false;
  const calls = examples.flatMap((example, index): Json[] => {
    const known = draft.get(['examples', index]) ?? null;
    if (!isJsonObject(example) || Object.keys(example).some((key) => !AROUND.has(key) || declared.has(key)))
      return [known];
    const field = INPUTS.find((name) => isJsonObject(example[name]));
    if (field === undefined && !OUTPUTS.some((name) => Object.hasOwn(example, name))) return [known];
    isWrapped = true;
    return field === undefined ? [] : [draft.get(['examples', index, field]) ?? null];
  });
  if (!isWrapped) return;
  draft.note(['examples'], 'understood as examples of the parameters alone');
  draft.set(['examples'], calls);
}

/** Names that the manifest declares, in any of the three forms of parameters (M3). */
function parameterNames({
  parameters,
  parameters_schema: schema,
  input_schema: input,
}: JsonObject): ReadonlySet<string> {
  const written = parameters ?? schema ?? input;
  if (Array.isArray(written)) {
    return new Set(
      written.flatMap((item) => (isJsonObject(item) && typeof item['name'] === 'string' ? [item['name']] : [])),
    );
  }
  if (!isJsonObject(written)) return new Set();
  const { properties } = written;
  return new Set(Object.keys(isJsonObject(properties) ? properties : written));
}
