/**
 * Steps of the original's workflows: `{id, tool: …, params, on_error}` (agent-lib) and `{name, type, target, if, then}`
 * (MK1) become steps of this system.
 */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { COMMAND, nameOf } from './step-symbols.ts';
import type { Symbols } from './step-symbols.ts';
import { isFreeField, unknownField } from '../../../src/catalog/check/issues.ts';
import { translateCommand } from './workflow-commands.ts';
import { pathOf, translateCondition, translateText, translateValue } from './workflow-references.ts';
import type { Names } from './workflow-references.ts';

type Step = Record<string, Json>;

/** What the conversion finds out about the whole workflow. */
export interface Conversion {
  readonly symbols: Symbols;
  /** Defaults of `configuration`. */
  readonly defaults: { readonly on_failure?: string; readonly retry_policy?: Json };
  /** The workflow imports a tool of its own that is called `exec`: the name does not mean a command. */
  readonly hasOwnExec: boolean;
  /** Set if a step runs a command. */
  usesShell: boolean;
  /** @param at the path of the step in the draft */
  note(at: readonly (string | number)[], message: string): void;
  /** The same for what is lost. */
  lose(at: readonly (string | number)[], message: string): void;
  /** The same for an error. */
  refuse(at: readonly (string | number)[], message: string): void;
}

interface Place {
  readonly at: readonly (string | number)[];
  readonly names: Names;
  /** A failure of the step does not end the workflow. */
  readonly tolerant: boolean;
}

const TARGETS = ['tool', 'agent', 'workflow', 'relic'] as const;
/** Fields with the same meaning in both. */
const SAME = [
  'depends_on',
  'timeout',
  'on_failure',
  'output_mapping',
  'compensate',
  'optional',
  'retry',
  'concurrency',
];
const NAMES_OF_ENDPOINT = ['action', 'endpoint', 'operation'];
/** Other names of `timeout`. */
const TIMEOUTS = ['timeout_secs', 'timeout_sec'];
/** What the conversion reads, and what only describes a step. */
const READ: ReadonlySet<string> = new Set(
  [
    ...SAME,
    ...TARGETS,
    ...NAMES_OF_ENDPOINT,
    ...TIMEOUTS,
    'id name type target description params parameters condition if then else steps step parallel max_concurrency items',
    'over as acc_var initial until body cases on default value try_catch try catch finally prompt response_var event',
    'payload message state on_error max_retries retry_policy feed',
  ].flatMap((names) => names.split(' ')),
);

export function convertSteps(steps: Json | undefined, place: Place, conversion: Conversion): Json[] {
  const list = Array.isArray(steps) ? steps : isJsonObject(steps) ? [steps] : [];
  const taken = new Map<string, number>();
  return list.map((written, index) => {
    if (!isJsonObject(written)) return written;
    const name = unused(nameOf(written, index), taken);
    const at = [...place.at, index];
    for (const field of Object.keys(written)) {
      if (!READ.has(field) && !isFreeField(field)) conversion.refuse([...at, field], unknownField(field, [...READ]));
    }
    return { name, ...convert(written, { ...place, at }, conversion) };
  });
}

/** @param taken the names, each with the last number that was added to it */
function unused(name: string, taken: Map<string, number>): string {
  let free = name;
  let count = taken.get(name) ?? 1;
  while (taken.has(free)) free = `${name.slice(0, 58)}_${(count += 1)}`;
  taken.set(name, count);
  if (free !== name) taken.set(free, 1);
  return free;
}

function convert(written: JsonObject, place: Place, conversion: Conversion): Step {
  const { names } = place;
  const type = typeOf(written);
  const base: Step = {};
  for (const field of SAME) if (written[field] !== undefined) base[field] = written[field];
  const timeout = TIMEOUTS.find((field) => written[field] !== undefined);
  if (timeout !== undefined) base['timeout'] ??= written[timeout] ?? null;
  const failure = failureOf(written, conversion);
  const inner = (steps: Json | undefined, field: string, more: Partial<Place> = {}): Json[] =>
    convertSteps(steps, { ...place, ...more, at: [...place.at, field] }, conversion);
  const value = (of: Json | undefined): Json => translateValue(of ?? null, names);
  const group = (fields: Step): Step => ({ ...withoutRetry({ ...base, ...failure }), ...guard(), ...fields });
  const guard = (): Step =>
    typeof written['condition'] === 'string' && type !== 'conditional' && type !== 'loop'
      ? { condition: translateCondition(written['condition'], names) }
      : {};
  const note = (message: string): void => conversion.note(place.at, message);
  const lose = (message: string): void => conversion.lose(place.at, message);
  switch (type) {
    case 'conditional': {
      const condition = String(written['if'] ?? written['condition'] ?? 'true');
      const steps = inner(written['then'] ?? written['steps'], 'then');
      const otherwise = inner(written['else'], 'else');
      return group({
        type,
        condition: translateCondition(condition, names),
        ...(steps.length > 0 || otherwise.length === 0 ? { steps } : {}),
        ...(otherwise.length > 0 ? { else: otherwise } : {}),
      });
    }
    case 'parallel': {
      const isLenient =
        written['id'] !== undefined && written['parallel'] === undefined && written['type'] !== 'parallel_join';
      if (isLenient) note('parallel: a step that fails is null, and the others count, as in the original');
      const field = written['parallel'] === undefined ? 'steps' : 'parallel';
      const steps = inner(written[field], field, { tolerant: isLenient }).map((step) =>
        isLenient && isJsonObject(step) ? { ...step, on_failure: 'continue' } : step,
      );
      const most = written['max_concurrency'];
      return group({ type, steps, ...(most === undefined ? {} : { concurrency: most }) });
    }
    case 'race':
      return group({ type, steps: inner(written['steps'], 'steps', { tolerant: true }) });
    case 'for_each':
    case 'reduce': {
      if (written['items'] !== undefined)
        return group({ type, items: value(written['items']), steps: inner(written['steps'], 'steps') });
      const within = new Map(names);
      within.set(String(written['as'] ?? 'item'), { path: 'item', isWhole: false, isText: false, member: null });
      if (type === 'reduce')
        within.set(String(written['acc_var'] ?? 'acc'), { path: 'acc', isWhole: true, isText: false, member: null });
      const field = written['steps'] === undefined ? 'step' : 'steps';
      const first = Array.isArray(written[field]) ? written[field].slice(0, 1) : written[field];
      return group({
        type,
        items: listOf(written['over'], names),
        ...(type === 'reduce' ? { value: value(written['initial']) } : { concurrency: 1 }),
        steps: inner(first, field, { names: within }),
      });
    }
    case 'loop': {
      const until = written['until'] ?? written['condition'];
      const steps = inner(written['body'] ?? written['steps'], 'body');
      return group({ type, steps, ...(typeof until === 'string' ? { until: translateCondition(until, names) } : {}) });
    }
    case 'switch': {
      const cases = Array.isArray(written['cases']) ? written['cases'].filter(isJsonObject) : [];
      const converted = cases.map(({ value: of, steps }, index) => ({
        value: typeof of === 'object' ? JSON.stringify(of) : (of ?? ''),
        steps: convertSteps(steps, { ...place, at: [...place.at, 'cases', index, 'steps'] }, conversion),
      }));
      const rest = inner(written['default'] ?? written['else'], 'default');
      return group({
        type,
        value: value(written['on'] ?? written['value']),
        cases: converted,
        ...(rest.length > 0 ? { else: rest } : {}),
      });
    }
    case 'try': {
      const parts = isJsonObject(written['try_catch']) ? written['try_catch'] : written;
      const rescue = inner(parts['catch'], 'catch');
      const always = inner(parts['finally'], 'finally');
      return group({
        type,
        steps: inner(parts['body'] ?? parts['try'] ?? parts['steps'], 'body', { tolerant: rescue.length > 0 }),
        ...(rescue.length > 0 ? { catch: rescue } : {}),
        ...(always.length > 0 ? { finally: always } : {}),
      });
    }
    case 'ask': {
      lose('human: a person approves or denies; the answer is the default (or y), or n. There is no timeout');
      return group({
        type,
        parameters: {
          prompt: translateText(String(written['prompt'] ?? 'Continue?'), names),
          ...(written['default'] === undefined ? {} : { default: value(written['default']) }),
        },
      });
    }
    case 'emit':
      lose('emit: the event is the result of the step; it starts nothing');
      return group({
        type: 'value',
        value: { event: value(written['event']), payload: value(written['payload']) },
      });
    case 'checkpoint':
      note('checkpoint: the state is the result of the step; the journal keeps every step anyway');
      return group({
        type: 'value',
        value: {
          id: written['id'] ?? written['name'] ?? '',
          message: value(written['message'] ?? ''),
          state: value(written['state']),
        },
      });
    case 'return':
    case 'value':
      return group({ type, value: value(written['value'] ?? written['parameters'] ?? written['params']) });
    default:
      return { ...base, ...failure, ...guard(), ...action(written, type, place, conversion) };
  }
}

/** A value has no attempts, and groups have those of their steps. */
function withoutRetry(step: Step): Step {
  const { retry_policy: _policy, retry: _retry, timeout: _timeout, ...rest } = step;
  return rest;
}

const TYPES: Readonly<Record<string, string>> = {
  condition: 'conditional',
  decision: 'conditional',
  map: 'for_each',
  human: 'ask',
  try_catch: 'try',
  parallel_join: 'parallel',
  parallel_race: 'race',
};

/** The type in this system, or the type as it is written. */
function typeOf(step: JsonObject): string {
  const { type, target } = step;
  const written = typeof type === 'string' ? type : null;
  if (written === 'internal' && target === undefined && step['action'] === undefined) return 'value';
  if (written !== null) return (Object.hasOwn(TYPES, written) ? TYPES[written] : undefined) ?? written;
  const known = TARGETS.find((one) => typeof step[one] === 'string');
  if (known !== undefined) return known;
  if (step['then'] !== undefined) return 'conditional';
  if (step['cases'] !== undefined) return 'switch';
  return step['steps'] === undefined ? 'tool' : 'parallel';
}

/** `on_error`, `max_retries` and the defaults of `configuration`. */
function failureOf(step: JsonObject, { defaults }: Conversion): Step {
  const { on_error: written, on_failure: own, max_retries: retries, retry_policy: policy } = step;
  const attempts = typeof retries === 'number' && retries > 0 ? { max_attempts: Math.min(retries + 1, 10) } : null;
  const given = isJsonObject(policy) ? retryOf(policy) : (policy ?? attempts ?? defaults.retry_policy);
  const failure =
    typeof written === 'string'
      ? written === 'abort'
        ? 'abort'
        : 'continue'
      : own === undefined
        ? defaults.on_failure
        : undefined;
  return {
    ...(given === undefined ? {} : { retry_policy: given }),
    ...(failure === undefined ? {} : { on_failure: failure }),
  };
}

export function retryOf(policy: JsonObject): JsonObject {
  const {
    max_attempts: most,
    max_retries: retries,
    backoff,
    delay,
    initial_delay: initial,
    max_delay: longest,
  } = policy;
  const attempts = most ?? (typeof retries === 'number' ? retries + 1 : undefined);
  const wait = delay ?? initial;
  const known = typeof backoff === 'string' && /^(?:none|linear|exponential)$/.test(backoff);
  return {
    ...(typeof attempts === 'number' ? { max_attempts: Math.min(Math.max(1, attempts), 10) } : {}),
    ...(known ? { backoff } : {}),
    ...(wait === undefined ? {} : { delay: wait }),
    ...(longest === undefined ? {} : { max_delay: longest }),
  };
}

/** A step that runs one action. */
function action(written: JsonObject, type: string, { at, names, tolerant }: Place, conversion: Conversion): Step {
  const given = written['parameters'] ?? written['params'] ?? {};
  const parameters = isJsonObject(given) ? given : {};
  const target = written['target'] ?? written[type];
  const failure = written['on_error'] ?? written['on_failure'] ?? conversion.defaults.on_failure;
  const isOptional = tolerant || failure === 'skip' || failure === 'continue';
  if (type === 'tool' && typeof target === 'string' && COMMAND.test(target) && !conversion.hasOwnExec) {
    const text = String(parameters['command'] ?? '');
    const command = translateCommand(text, names);
    conversion.usesShell = true;
    if ('reason' in command) {
      conversion.lose(at, `exec: its references are not replaced: ${command.reason}`);
      return { type: 'shell', parameters: { command: text } };
    }
    conversion.lose(
      at,
      'exec: runs in the sandbox, without files of the project; references are environment variables',
    );
    return { type: 'shell', parameters: { command: command.command, inputs: { ...command.inputs } } };
  }
  const values = translateValue(parameters, names) as JsonObject;
  const step: Step = { type, ...(target === undefined ? {} : { target }), ...(isOptional ? { optional: true } : {}) };
  if (type === 'agent') return { ...step, parameters: messageOf(values) };
  if (type !== 'relic')
    return { ...step, ...(written['action'] === undefined ? {} : { action: written['action'] }), parameters: values };
  const own = written['action'] ?? written['endpoint'];
  if (typeof own === 'string') return { ...step, action: own, parameters: values };
  const name = NAMES_OF_ENDPOINT.find((one) => typeof values[one] === 'string' && !String(values[one]).includes('$('));
  if (name === undefined) return { ...step, parameters: values };
  const { [name]: endpoint = null, ...rest } = values;
  return { ...step, action: endpoint, parameters: rest };
}

/** The message for an agent: `instruction`, `query`, the only text, or all values as JSON. */
function messageOf(values: JsonObject): JsonObject {
  if (typeof values['message'] === 'string') return values;
  const { ephemeral: _ephemeral, dump_context: _dump, context, ...rest } = values;
  const texts = Object.values(rest);
  const named = rest['instruction'] ?? rest['prompt'];
  const message = named ?? (texts.length === 1 ? texts[0] : undefined);
  const plain = typeof message === 'string' ? message : texts.length === 0 ? 'Execute task' : JSON.stringify(rest);
  return { message: plain, ...(isJsonObject(context) ? { context } : {}) };
}

/** `over`: a list, JSON text, a reference or the name of a step. */
function listOf(over: Json | undefined, names: Names): Json {
  if (typeof over !== 'string') return translateValue(over ?? [], names);
  try {
    const value = JSON.parse(over) as Json;
    if (Array.isArray(value)) return translateValue(value, names);
  } catch {
    // it is no JSON
  }
  const path = /^[A-Za-z_][\w.-]*$/.test(over.trim()) ? pathOf(over.trim(), names) : null;
  return path === null ? translateText(over, names) : `$(${path})`;
}
