/** `cognitive_engine` of the original: other names of providers, and parameters of one model. */
import { isJsonObject } from '../../../src/domain/json.ts';
import { MODEL_PROVIDERS } from '../../../src/domain/manifests/model.ts';
import { nearestNames } from '../../../src/domain/nearest.ts';
import type { FieldPath } from '../../../src/catalog/check/problem.ts';
import { quoted } from '../../../src/catalog/check/problem.ts';
import type { Draft } from '../draft.ts';
import { numberOf } from '../values.ts';

const PROVIDERS: Readonly<Record<string, (typeof MODEL_PROVIDERS)[number]>> = {
  google: 'gemini',
  'google-ai': 'gemini',
  googleai: 'gemini',
  'x-ai': 'xai',
  'xai-auth': 'xai',
  grok: 'xai',
  claude: 'anthropic',
  llamacpp: 'llama.cpp',
};
const ENGINE = ['cognitive_engine'] as const;
/** Fields that our engines have for a model. */
const CHOICE: ReadonlySet<string> = new Set(['provider', 'model', 'endpoint', 'api_key_secret']);
/** Parameters that the original reads as numbers. */
const NUMERIC = ['temperature', 'top_p', 'top_k', 'max_tokens', 'presence_penalty', 'frequency_penalty'] as const;

export function understandEngine(draft: Draft): void {
  if (!isJsonObject(draft.get(ENGINE))) return;
  modelOfTheEngine(draft);
  const primary = [...ENGINE, 'primary'];
  readChoice(draft, primary);
  parametersOfThePrimary(draft, primary);
  fallbacks(draft);
  thinking(draft);
  parameters(draft);
}

/** `provider` and `model` directly under `cognitive_engine`. */
function modelOfTheEngine(draft: Draft): void {
  if (draft.has([...ENGINE, 'primary'])) return;
  const found = [...CHOICE].filter((name) => draft.has([...ENGINE, name]));
  const [first] = found;
  if (first === undefined) return;
  draft.note([...ENGINE, first], 'understood as part of cognitive_engine.primary');
  for (const name of found) draft.move([...ENGINE, name], [...ENGINE, 'primary', name]);
}

/** Another name of a provider, or an unknown one: then the deployment's endpoint decides. */
function readChoice(draft: Draft, path: FieldPath): void {
  if (typeof draft.get(path) === 'string') {
    draft.note(path, 'text, understood as the name of the model');
    draft.set(path, { model: draft.get(path) ?? '' });
  }
  const field = [...path, 'provider'];
  const written = draft.get(field);
  if (typeof written !== 'string' || isProvider(written)) return;
  const lower = written.trim().toLowerCase();
  const known = isProvider(lower) ? lower : Object.hasOwn(PROVIDERS, lower) ? PROVIDERS[lower] : undefined;
  if (known !== undefined) {
    draft.note(field, `understood as the provider ${known}`);
    return draft.set(field, known);
  }
  const near = nearestNames(lower, MODEL_PROVIDERS);
  const hint = near.length > 0 ? ` Did you mean ${near[0]}?` : '';
  const endpoint = draft.has([...path, 'endpoint']) ? 'the endpoint' : "the deployment's endpoint";
  draft.lose(field, `${quoted(written)} is not a known provider: ${endpoint} decides (docs/models.md).${hint}`);
  draft.remove(field);
}

function isProvider(name: string): name is (typeof MODEL_PROVIDERS)[number] {
  return (MODEL_PROVIDERS as readonly string[]).includes(name);
}

function parametersOfThePrimary(draft: Draft, path: FieldPath): void {
  const own = draft.get([...path, 'parameters']);
  if (!isJsonObject(own)) return;
  draft.note([...path, 'parameters'], 'understood as cognitive_engine.parameters, which apply to all models');
  addParameters(draft, [...path, 'parameters']);
}

/** Moves the members of a map to `cognitive_engine.parameters`, unless they are there. */
function addParameters(draft: Draft, path: FieldPath): void {
  for (const name of Object.keys(draft.get(path) as object)) {
    const target = [...ENGINE, 'parameters', name];
    if (!draft.has(target)) draft.move([...path, name], target);
  }
  draft.remove(path);
}

/** Fallbacks inside one another, and their parameters, which the primary model's replace. */
function fallbacks(draft: Draft): void {
  const found: FieldPath[] = [];
  const collect = (path: FieldPath): void => {
    const value = draft.get(path);
    if (Array.isArray(value)) return value.forEach((_, index) => collect([...path, index]));
    if (value === undefined || found.length > 16) return;
    found.push(path);
    if (isJsonObject(value)) collect([...path, 'fallback']);
  };
  const first = [...ENGINE, 'fallback'];
  const inPrimary = [...ENGINE, 'primary', 'fallback'];
  collect(first);
  collect(inPrimary);
  for (const path of found) {
    readChoice(draft, path);
    if (!draft.has([...path, 'parameters'])) continue;
    draft.lose([...path, 'parameters'], 'has no effect: cognitive_engine.parameters apply to all models');
    draft.remove([...path, 'parameters']);
  }
  const isNested = found.some(
    (path) => path.includes('primary') || path.filter((step) => step === 'fallback').length > 1,
  );
  if (!isNested) return;
  draft.note(found.at(-1) ?? first, 'understood as a further item of cognitive_engine.fallback');
  const choices = found.map((path) => draft.get(path) ?? null);
  for (const path of found.toReversed()) draft.remove([...path, 'fallback']);
  draft.remove(inPrimary);
  draft.set(first, choices);
}

/** Settings of the original for thinking, which has no counterpart that all endpoints accept. */
function thinking(draft: Draft): void {
  const list = draft.get([...ENGINE, 'fallback']);
  const inFallbacks = Array.isArray(list) ? list.map((_, index) => ['fallback', index]) : [['fallback']];
  for (const owner of [[], ['primary'], ...inFallbacks]) {
    for (const name of ['thinking', 'thinking_level', 'function_calling']) {
      const path = [...ENGINE, ...owner, name];
      if (!draft.has(path)) continue;
      const advice =
        name === 'function_calling' ? '' : '; if the model supports it, write parameters: {reasoning_effort: low}';
      draft.lose(path, `has no effect here${advice}`);
      draft.remove(path);
    }
  }
}

function parameters(draft: Draft): void {
  const at = (name: string): FieldPath => [...ENGINE, 'parameters', name];
  if (isJsonObject(draft.get(at('extra_params')))) {
    draft.note(at('extra_params'), 'understood as parameters');
    addParameters(draft, at('extra_params'));
  }
  if (draft.has(at('stop_sequences')) && !draft.has(at('stop'))) {
    draft.note(at('stop_sequences'), 'understood as stop');
    draft.move(at('stop_sequences'), at('stop'));
  }
  if (draft.has(at('stream'))) {
    draft.note(at('stream'), 'has no effect here: answers are always streamed');
    draft.remove(at('stream'));
  }
  for (const name of NUMERIC) {
    const value = draft.get(at(name));
    const number = typeof value === 'string' ? numberOf(value) : null;
    if (number === null) continue;
    draft.note(at(name), 'understood as a number');
    draft.set(at(name), number);
  }
}
