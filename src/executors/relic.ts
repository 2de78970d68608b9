/** `type="relic"`: calls an endpoint of a service, named as `name.endpoint` or by `parameters.endpoint` (R5). */
import type { ActionDeclaration, ActionOutcome, Effects } from '../domain/action.ts';
import { EngineError } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { isJsonObject } from '../domain/json.ts';
import { failure } from '../domain/failure.ts';
import { limits } from '../domain/limits.ts';
import type { RelicDefinition, RelicEndpoint } from '../domain/manifests/relic.ts';
import { sharedSpace } from '../domain/owner.ts';
import type { RelicAnswer } from '../domain/ports/runner.ts';
import { RequestTemplate, encoded, textOf } from '../domain/request-template.ts';
import { unlessAborted } from '../domain/sleep.ts';
import type { ActionCall, ActionContext, Executor } from './executor.ts';
import { failureOf, isOverload, quote } from './failure.ts';
import { waitingFor } from './runner/job.ts';
import { parseOutput } from './runner/job-output.ts';
import { completeParameters, validateParameters } from './validate-parameters.ts';

const IN_QUERY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/** The target of a relic action, before it is checked. */
export interface RelicTarget {
  readonly relic: string;
  /** Null if none is named, and the relic is not known. */
  readonly endpoint: string | null;
  readonly parameters: JsonObject;
  /** The parameter that holds all parameters; null if none does. */
  readonly within: 'parameters' | 'body' | null;
  /** How the endpoint was found, if not by its own form; null if it was. */
  readonly note: string | null;
}

type Relics = ReadonlyMap<string, Pick<RelicDefinition, 'endpoints'>>;

/** Parameters that name the endpoint in other systems. */
const OTHER_NAMES = ['operation', 'action'] as const;

/**
 * An endpoint in the name takes precedence; `parameters.endpoint` is then an ordinary parameter. Else `endpoint`,
 * `operation` or `action` names it. Without any of them, it is the first one.
 *
 * @param action as declared: values of references never decide which endpoint is called
 * @param relics the known relics; null if none are known
 * @param values the parameters with the values of references
 */
export function relicTarget(
  { name, parameters: declared }: Pick<ActionDeclaration, 'name' | 'parameters'>,
  relics: Relics | null,
  values: JsonObject = declared,
): RelicTarget {
  const dot = name.indexOf('.');
  if (dot >= 0)
    return { relic: name.slice(0, dot), endpoint: name.slice(dot + 1), parameters: values, within: null, note: null };
  const relic = relics?.get(name);
  const { endpoint } = declared;
  if (typeof endpoint === 'string') {
    const given = unwrapped(without(values, 'endpoint'), relic && endpointOf(relic, endpoint));
    return { relic: name, endpoint, ...given, note: null };
  }
  const unnamed = { relic: name, endpoint: null, parameters: values, within: null, note: null };
  if (relic === undefined) return unnamed;
  const asked = unnamedEndpoint(relic, declared);
  for (const key of OTHER_NAMES) {
    const value = declared[key];
    const isParameter = asked !== null && takes(relic.endpoints[asked], key);
    if (typeof value !== 'string' || (isParameter && !Object.hasOwn(relic.endpoints, value))) continue;
    const given = unwrapped(without(values, key), endpointOf(relic, value));
    return { relic: name, endpoint: value, ...given, note: `"${key}" names its endpoint` };
  }
  return asked === null ? unnamed : { ...unnamed, endpoint: asked, note: `it names no endpoint: "${asked}" is called` };
}

/** The name may come from a model and be `constructor`. */
function endpointOf({ endpoints }: Pick<RelicDefinition, 'endpoints'>, name: string): RelicEndpoint | undefined {
  return Object.hasOwn(endpoints, name) ? endpoints[name] : undefined;
}

/** The first endpoint, or, if it does not have these parameters, the first one that has them all; null if there is none. */
function unnamedEndpoint({ endpoints }: Pick<RelicDefinition, 'endpoints'>, parameters: JsonObject): string | null {
  const [first = null, ...others] = Object.keys(endpoints);
  const given = Object.keys(parameters);
  const isClosed = first !== null && endpoints[first]?.parameters['additionalProperties'] === false;
  if (!isClosed || given.every((key) => takes(endpoints[first], key))) return first;
  return others.find((name) => given.every((key) => takes(endpoints[name], key))) ?? first;
}

/** `parameters`, or `body` next to a `method`, can hold all parameters of a call. */
function unwrapped(given: JsonObject, endpoint: RelicEndpoint | undefined): Pick<RelicTarget, 'parameters' | 'within'> {
  const { method, parameters, body, ...rest } = given;
  const names = Object.keys(given);
  if (isJsonObject(parameters) && names.length === 1 && !takes(endpoint, 'parameters')) {
    return { parameters, within: 'parameters' };
  }
  const isRequest =
    isJsonObject(body) &&
    parameters === undefined &&
    Object.keys(rest).length === 0 &&
    (method === undefined || !takes(endpoint, 'method'));
  return isRequest && !takes(endpoint, 'body')
    ? { parameters: body, within: 'body' }
    : { parameters: given, within: null };
}

/**
 * The values of a relic action, completed for its endpoint (D3). The target of the result is that of the action, with
 * completed parameters.
 */
export function completeRelicCall(
  action: Pick<ActionDeclaration, 'name' | 'parameters'>,
  relics: Relics | null,
  values: JsonObject,
): JsonObject {
  const { relic: name, endpoint, parameters, within } = relicTarget(action, relics, values);
  const relic = relics?.get(name);
  const schema = endpoint === null || relic === undefined ? undefined : endpointOf(relic, endpoint)?.parameters;
  const completed = schema === undefined ? parameters : completeParameters(schema, parameters);
  if (completed === parameters) return values;
  if (within !== null) return { ...values, [within]: completed };
  // Of the values, those that name the endpoint are no parameters.
  const naming = Object.entries(values).filter(([key]) => !Object.hasOwn(parameters, key));
  return Object.fromEntries([...naming, ...Object.entries(completed)]);
}

/** Whether an endpoint declares a parameter. */
function takes(endpoint: RelicEndpoint | undefined, parameter: string): boolean {
  const properties = endpoint?.parameters['properties'];
  return isJsonObject(properties) && Object.hasOwn(properties, parameter);
}

function without(values: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([name]) => name !== key));
}

export const relicExecutor: Executor = {
  async execute(call, context) {
    const { relic } = call;
    if (relic == null) {
      return failure('unknown_name', `No relic is called "${call.action.name}"`, { beforeDispatch: true });
    }
    const target = relicTarget(call.action, new Map([[relic.name, relic]]), call.parameters);
    const endpoint = target.endpoint === null ? undefined : relic.endpoints[target.endpoint];
    if (endpoint === undefined || target.endpoint === null || !Object.hasOwn(relic.endpoints, target.endpoint)) {
      const asked =
        target.endpoint === null ? 'was called without an endpoint' : `has no endpoint "${target.endpoint}"`;
      const known = Object.keys(relic.endpoints).join(', ');
      return failure('unknown_endpoint', `The relic "${relic.name}" ${asked} (it has: ${known})`, {
        beforeDispatch: true,
      });
    }
    const issue = await context.pacer.run(
      limits.schemaSteps,
      (meter) => validateParameters(endpoint.parameters, target.parameters, meter),
      context.signal,
    );
    if (issue !== null) return failure('invalid_parameters', issue, { beforeDispatch: true });
    if (relic.implementation.type !== 'container') {
      return await callStore(relic, endpoint, target.parameters, call.runtimeKey, context);
    }
    return await callService(relic, endpoint, target.parameters, call, context);
  },

  async recover({ relic, runtimeKey: key }, { edgeRelics, session, owner }) {
    if (relic?.implementation.type !== 'edge' || edgeRelics == null) return null;
    return await edgeRelics.lookup({ space: spaceOf(relic, session, owner ?? null), relic, key });
  },
};

/** Calls an edge store. If the answer is lost, the store is asked once for the recorded outcome. */
async function callStore(
  relic: RelicDefinition,
  endpoint: RelicEndpoint,
  parameters: JsonObject,
  key: string,
  { edgeRelics, session, owner, signal }: ActionContext,
): Promise<ActionOutcome> {
  if (edgeRelics == null) {
    return failure('not_available', `The relic "${relic.name}" is an edge relic, which this runtime does not support`, {
      beforeDispatch: true,
    });
  }
  const space = spaceOf(relic, session, owner ?? null);
  try {
    return await unlessAborted(
      edgeRelics.call({ space, owner: owner ?? null, relic, endpoint: endpoint.name, parameters, key }),
      signal,
    );
  } catch (fault) {
    const failed = failureOf(fault, signal, 'relic_unavailable');
    if (signal.aborted) return failed;
    const known = await unlessAborted(edgeRelics.lookup({ space, relic, key }), signal).catch(() => null);
    if (known !== null) return known;
    const { message } = failed.error;
    return isRepeatable(endpoint.effects)
      ? failure('relic_unavailable', message, { retryable: true })
      : failure('outcome_unknown', `${message}; it is unknown whether ${endpoint.name} took effect`);
  }
}

function spaceOf({ scope }: RelicDefinition, session: string, owner: string | null): string {
  return scope === 'session' ? session : sharedSpace(owner);
}

/** Calls a relic's service on the runner: parameters in path, query or body; returns JSON or text. */
async function callService(
  relic: RelicDefinition,
  endpoint: RelicEndpoint,
  parameters: JsonObject,
  { timeoutMs, trace }: Pick<ActionCall, 'timeoutMs' | 'trace'>,
  { runner, session, owner, signal, progress }: ActionContext,
): Promise<ActionOutcome> {
  if (runner === null) {
    return failure(
      'runner_unavailable',
      `The relic "${relic.name}" needs a runner, but none is configured (RUNNER_URLS)`,
      {
        beforeDispatch: true,
      },
    );
  }
  const space = spaceOf(relic, session, owner ?? null);
  const http = requestOf(endpoint, parameters);
  if ('reason' in http) return failure('invalid_parameters', http.reason, { beforeDispatch: true });
  try {
    const request = { space, relic, timeoutMs, ...http, ...(trace === undefined ? {} : { trace }) };
    const answer = await runner.callRelic(request, { signal, waiting: waitingFor(progress) });
    return outcomeOf(answer, relic.name, endpoint);
  } catch (fault) {
    const failed = failureOf(fault, signal, 'runner_unavailable');
    const unsupported = fault instanceof EngineError && fault.details['problem'] === 'unsupported';
    return unsupported ? failure('not_available', failed.error.message, { beforeDispatch: true }) : failed;
  }
}

/**
 * `/entries/{key}` takes its parameters from the path; the others become the query or JSON body, by method.
 *
 * @returns the reason, if the parameters do not fit into the path
 */
export function requestOf(
  { http: { method, path } }: Pick<RelicEndpoint, 'http'>,
  parameters: JsonObject,
): { readonly method: string; readonly path: string; readonly body: JsonObject | null } | { readonly reason: string } {
  const template = new RequestTemplate(parameters);
  const filled = template.target(path);
  if (!filled.ok) return { reason: filled.reason };
  if (!IN_QUERY.has(method)) return { method, path: filled.text, body: Object.fromEntries(template.rest) };
  const query = template.rest.flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((item) => item !== null)
      .map((item) => `${encoded(name)}=${encoded(textOf(item))}`),
  );
  const separator = filled.text.includes('?') ? '&' : '?';
  const full = query.length === 0 ? filled.text : `${filled.text}${separator}${query.join('&')}`;
  return { method, path: full, body: null };
}

function outcomeOf(answer: RelicAnswer, name: string, endpoint: RelicEndpoint): ActionOutcome {
  const repeatable = isRepeatable(endpoint.effects);
  if (answer.ok) {
    const { status, body } = answer;
    if (status >= 200 && status < 300) return { ok: true, output: parseOutput(body) };
    return failure('relic_error', `The relic "${name}" answered ${status} to ${endpoint.name}: ${issueOf(body)}`, {
      retryable: status >= 500 ? repeatable : status === 429,
      ...(isOverload(status) ? { overloaded: true } : {}),
    });
  }
  const { code, message, beforeDispatch } = answer;
  if (beforeDispatch) return failure(code, message, { retryable: true, beforeDispatch });
  if (code === 'relic_answer_too_large') return failure(code, message);
  return repeatable
    ? failure(code, message, { retryable: true })
    : failure('outcome_unknown', `${message}; it is unknown whether ${endpoint.name} took effect`);
}

function isRepeatable(effects: Effects): boolean {
  return effects !== 'unsafe';
}

/** The service's own message: `{"error": …}`, or the beginning of its answer. */
function issueOf(body: string): string {
  const answer = parseOutput(body);
  const words = isJsonObject(answer) ? (answer['error'] ?? answer['message'] ?? answer) : answer;
  return typeof words === 'string' ? words.slice(0, 500) : quote(words);
}
