/** Workflow manifests of the original system: MK1's, and agent-lib's with steps by id. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { isFreeField, unknownField } from '../../../src/catalog/check/issues.ts';
import type { Draft } from '../draft.ts';
import { symbolsIn } from './step-symbols.ts';
import { convertSteps, retryOf } from './workflow-steps.ts';
import type { Conversion } from './workflow-steps.ts';
import { keepAsMetadata, VALIDATION_RULES } from '../values.ts';
import { translateText } from './workflow-references.ts';

/** Fields of a workflow that only the original has. */
const SIGNS = ['configuration', 'input_schema', 'output_schema', 'extends', 'auto_checkpoint', 'variables', 'triggers'];
/** Fields of a step that only the original has. */
const STEP_SIGNS = ['id', 'tool', 'agent', 'workflow', 'relic', 'params', 'on_error', 'if', 'parallel'];
const STEP_TYPES = /^(?:condition|decision|map|human|emit|checkpoint|try_catch|parallel_race|parallel_join|feed)$/;
const BUILTIN = /^builtin\//;
/** The path of a tool that is called `exec`. */
const OWN_EXEC = /(?:^|\/)exec(?:\/tool)?\.ya?ml$/i;

export function understandWorkflow(draft: Draft): void {
  const isOriginal = isOriginalForm(draft);
  trigger(draft);
  keepAsMetadata(draft, ['category']);
  if (!isOriginal) return;
  inputs(draft);
  const conversion = steps(draft, configuration(draft));
  outputs(draft, conversion);
  imports(draft);
  metadata(draft);
}

function isOriginalForm(draft: Draft): boolean {
  if (SIGNS.some((name) => draft.has([name])) || draft.has(['trigger', 'parameters'])) return true;
  const list = draft.get(['steps']);
  return (Array.isArray(list) ? list : []).some(
    (step) =>
      isJsonObject(step) &&
      (STEP_SIGNS.some((name) => Object.hasOwn(step, name)) ||
        step['type'] === undefined ||
        STEP_TYPES.test(String(step['type']))),
  );
}

function trigger(draft: Draft): void {
  const get = (name: string): Json | undefined => draft.get(['trigger', name]);
  if (typeof get('schedule') === 'string' && get('cron') === undefined) {
    draft.note(['trigger', 'schedule'], 'understood as trigger.cron');
    draft.move(['trigger', 'schedule'], ['trigger', 'cron']);
    if (get('type') === undefined) draft.set(['trigger', 'type'], 'scheduled', ['trigger']);
  }
  const type = get('type');
  if (type === 'event' && get('event') === undefined) {
    const name = get('event_type') === undefined ? 'event_source' : 'event_type';
    if (typeof get(name) === 'string') draft.note(['trigger', name], 'understood as trigger.event');
    draft.move(['trigger', name], ['trigger', 'event']);
  }
  if (type === 'webhook' && get('secret') === undefined) {
    draft.lose(
      ['trigger', 'type'],
      'understood as manual: a webhook needs a signature; add "secret: TOOL_…" for POST /webhooks',
    );
    draft.set(['trigger', 'type'], 'manual');
  }
  if (get('type') === 'manual' && isJsonObject(draft.get(['trigger']))) {
    const unused = ['event', 'webhook_path', 'path', 'method', 'authentication'].filter(
      (name) => get(name) !== undefined,
    );
    if (unused.length > 0)
      draft.lose(['trigger', unused[0] ?? ''], `without effect in a manual trigger: ${unused.join(', ')}`);
    for (const name of unused) draft.remove(['trigger', name]);
  }
}

/** `trigger.parameters` and `input_schema`. The original checks no parameter of a trigger. */
function inputs(draft: Draft): void {
  const isOwn = draft.has(['inputs']) || draft.has(['parameters']);
  if (draft.has(['input_schema'])) {
    draft.note(['input_schema'], isOwn ? 'without effect beside inputs' : 'understood as inputs');
    if (isOwn) draft.remove(['input_schema']);
    else draft.move(['input_schema'], ['inputs']);
  }
  schemaDefaults(draft);
  const written = draft.get(['trigger', 'parameters']);
  if (written === undefined) return;
  draft.note(['trigger', 'parameters'], 'understood as inputs');
  const defaults: Record<string, Json> = {};
  const known: Record<string, Json> = {};
  for (const [name, spec] of Object.entries(isJsonObject(written) ? written : {})) {
    known[name] = inputOf(spec);
    if (isJsonObject(spec) && spec['default'] !== undefined) defaults[name] = spec['default'];
  }
  if (!draft.has(['inputs']) && Object.keys(known).length > 0) draft.set(['inputs'], known, ['trigger', 'parameters']);
  if (Object.keys(defaults).length > 0) draft.set(['defaults'], defaults, ['trigger', 'parameters']);
  draft.remove(['trigger', 'parameters']);
}

/** The original starts a workflow with the defaults of its schema. */
function schemaDefaults(draft: Draft): void {
  const properties = draft.get(['inputs', 'properties']);
  if (!isJsonObject(properties) || draft.has(['defaults'])) return;
  const defaults: Record<string, Json> = {};
  for (const [name, spec] of Object.entries(properties)) {
    if (isJsonObject(spec) && spec['default'] !== undefined) defaults[name] = spec['default'];
  }
  if (Object.keys(defaults).length > 0) draft.set(['defaults'], defaults, ['inputs']);
}

function inputOf(spec: Json): Json {
  if (typeof spec === 'string') return { type: spec, required: false };
  if (!isJsonObject(spec)) return spec;
  const { validation, ...rest } = spec;
  if (!isJsonObject(validation)) return rest;
  const rules: Record<string, Json> = { ...rest };
  const others: Record<string, Json> = {};
  for (const [name, value] of Object.entries(validation)) {
    const keyword = Object.hasOwn(VALIDATION_RULES, name) ? VALIDATION_RULES[name] : undefined;
    if (keyword === undefined) others[name] = value;
    else rules[keyword] = value;
  }
  // a rule that is not known is an unknown field of the input
  if (Object.keys(others).length > 0) rules['validation'] = others;
  return rules;
}

/** Defaults of steps; the timeout and the observability of a run are the system's. */
function configuration(draft: Draft): Conversion['defaults'] {
  const written = draft.get(['configuration']);
  if (!isJsonObject(written)) return {};
  const { default_retry_policy: retry, error_handling: handling, concurrency } = written;
  const failure = isJsonObject(handling) ? handling['on_step_failure'] : null;
  const most = isJsonObject(concurrency) ? concurrency['max_parallel_steps'] : null;
  draft.lose(
    ['configuration'],
    'understood as on_failure and retry_policy of the steps; timeout and observability have no effect',
  );
  if (typeof most === 'number' && !draft.has(['max_parallel_steps'])) {
    draft.set(['max_parallel_steps'], most, ['configuration']);
  }
  draft.remove(['configuration']);
  return {
    ...(failure === 'continue' ? { on_failure: failure } : {}),
    ...(isJsonObject(retry) ? { retry_policy: retryOf(retry) } : {}),
  };
}

function steps(draft: Draft, defaults: Conversion['defaults']): Conversion {
  const written = draft.get(['steps']);
  const symbols = symbolsIn(written);
  const noted = new Set<string>();
  const conversion: Conversion = {
    symbols,
    defaults,
    hasOwnExec: [draft.get(['import', 'tools']) ?? []].flat().some((name) => OWN_EXEC.test(String(name))),
    usesShell: false,
    // once for each kind of step
    note: (at, message) => {
      if (!noted.has(message)) draft.note(at, message);
      noted.add(message);
    },
    lose: (at, message) => {
      if (!noted.has(message)) draft.lose(at, message);
      noted.add(message);
    },
    refuse: (at, message) => draft.refuse(at, message),
  };
  if (!Array.isArray(written)) return conversion;
  const isById = written.some(
    (step) => isJsonObject(step) && (step['id'] !== undefined || step['params'] !== undefined),
  );
  if (isById) {
    draft.note(
      ['steps'],
      'steps by id: the id is the name, tool, agent, relic and workflow are the target, params are the parameters, on_error is on_failure',
    );
  }
  const converted = convertSteps(written, { at: ['steps'], names: symbols, tolerant: false }, conversion);
  for (const [index, step] of converted.entries()) draft.set(['steps', index], step);
  if (isById && !draft.has(['outputs'])) results(draft, converted);
  if (conversion.usesShell && !draft.has(['capabilities'])) draft.set(['capabilities'], ['shell'], ['steps']);
  return conversion;
}

/** agent-lib returns the result of every step, by id. */
function results(draft: Draft, converted: readonly Json[]): void {
  const names = converted.flatMap((step) => (isJsonObject(step) && step['type'] !== 'return' ? [step] : []));
  const sources = names.map(({ name, type }) => [
    String(name),
    { source: `steps.${String(name)}${type === 'for_each' ? '.items' : ''}` },
  ]);
  if (sources.length > 0) draft.set(['outputs'], Object.fromEntries(sources) as JsonObject, ['steps']);
}

const OUTPUT = ['source', 'description', 'optional', 'type'];

/** `{source, description, optional}`. */
function outputs(draft: Draft, { symbols }: Conversion): void {
  const written = draft.get(['outputs']);
  if (!isJsonObject(written)) return;
  for (const [name, output] of Object.entries(written)) {
    const source = isJsonObject(output) ? output['source'] : output;
    for (const field of isJsonObject(output) ? Object.keys(output) : []) {
      if (!OUTPUT.includes(field) && !isFreeField(field))
        draft.refuse(['outputs', name, field], unknownField(field, OUTPUT));
    }
    if (typeof source === 'string') draft.set(['outputs', name], { source: translateText(source, symbols) });
  }
}

/** Compiled tools of agent-lib are no manifests; the steps name what they use. */
function imports(draft: Draft): void {
  const tools = draft.get(['import', 'tools']);
  if (!Array.isArray(tools)) return;
  const own = tools.filter((name) => typeof name !== 'string' || !BUILTIN.test(name));
  if (own.length === tools.length) return;
  draft.note(['import', 'tools'], 'builtin tools are not imported; steps of the tool exec become shell steps');
  draft.removeItems(['import', 'tools'], new Set(tools.flatMap((name, index) => (own.includes(name) ? [] : [index]))));
}

function metadata(draft: Draft): void {
  for (const name of ['output_schema', 'auto_checkpoint', 'extends', 'triggers', 'error_handlers', 'notifications']) {
    if (!draft.has([name])) continue;
    draft.lose([name], EFFECTS[name] ?? 'without effect; kept under metadata');
    draft.move([name], ['metadata', name]);
  }
}

const EFFECTS: Readonly<JsonObject & Record<string, string>> = {
  output_schema: 'kept under metadata; outputs are not checked',
  auto_checkpoint: 'without effect: the journal keeps every step',
  extends: 'without effect: copy the steps of the other workflow, or start it with a step of type workflow',
};
