/** Builds a relic's definition from its manifest, with all defaults (R5, R6). */
import { limits } from '../../domain/limits.ts';
import type { RelicDefinition, RelicEndpoint, RelicImplementation } from '../../domain/manifest.ts';
import { toBase, toImage, toNeeds, toTimeoutMs } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { EDGE_ENDPOINTS } from './edge-endpoints.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { toParameterSchema } from './parameters.ts';
import { knownParameters, placeholderIssue } from './placeholders.ts';
import type { FieldPath } from '../check/problem.ts';
import type { EndpointInput, RelicInput } from '../schema/schema-relic.ts';
import { toBytes, toCpus, toMebibytes, toMs } from '../schema/units.ts';

export function toRelic(input: RelicInput, context: BuildContext): RelicDefinition {
  const implementation = toImplementation(input, context);
  const written = writtenEndpoints(input, context);
  const endpoints =
    implementation.type === 'edge'
      ? edgeEndpoints(implementation.store, written, context)
      : written.map((one) => toEndpoint(one, null, context));
  if (implementation.type === 'container' && endpoints.length === 0 && input.endpoints === undefined) {
    context.addIssue(['endpoints'], 'is missing: the endpoints of the service');
  }
  return {
    kind: 'Relic',
    ...toBase(input, context.unknown),
    implementation,
    scope: input.scope ?? 'session',
    persistent: input.persistent ?? implementation.type === 'edge',
    idleMs: input.idle === undefined ? limits.relicIdleMs : toMs(input.idle),
    endpoints: Object.fromEntries(endpoints.map((endpoint) => [endpoint.name, endpoint])),
  };
}

function toImplementation(input: RelicInput, context: BuildContext): RelicImplementation {
  const written = input.implementation;
  if (written.type === 'edge') {
    if (written.schema !== undefined && written.store !== 'sql') {
      context.addIssue(['implementation', 'schema'], `is allowed only for sql stores; this store is ${written.store}`);
    }
    const quotaBytes = written.quota === undefined ? limits.relicQuotaBytes : toBytes(written.quota);
    if (quotaBytes > limits.relicQuotaMostBytes) {
      const most = limits.relicQuotaMostBytes / 1_048_576;
      context.addIssue(['implementation', 'quota'], `exceeds the maximum size of an edge relic (${most} MiB)`);
    }
    const schema = [written.schema ?? []].flat();
    if (schema.length > limits.relicSchemaStatements) {
      const most = limits.relicSchemaStatements;
      context.addIssue(['implementation', 'schema'], `has ${schema.length} statements (allowed: ${most})`);
    }
    return {
      type: 'edge',
      store: written.store,
      ttlMs: written.ttl === undefined ? null : toMs(written.ttl),
      quotaBytes,
      schema,
    };
  }
  const health = typeof written.health === 'string' ? { path: written.health } : (written.health ?? {});
  return {
    type: 'container',
    ...toImage(written, context),
    command: written.command ?? null,
    port: written.port ?? 8080,
    health: {
      path: health.path ?? '/health',
      intervalMs: health.interval === undefined ? limits.relicHealthMs : toMs(health.interval),
      startMs: health.start === undefined ? limits.relicStartMs : toMs(health.start),
    },
    memoryMb: written.resources?.memory === undefined ? null : toMebibytes(written.resources.memory),
    cpus: written.resources?.cpu === undefined ? null : toCpus(written.resources.cpu),
    ...toNeeds(written.resources),
  };
}

interface WrittenEndpoint {
  readonly name: string;
  readonly path: FieldPath;
  readonly spec: EndpointInput;
}

/** Both forms of endpoints, a map and a list, as a list; a bare name selects a built-in endpoint. */
function writtenEndpoints({ endpoints }: RelicInput, context: BuildContext): WrittenEndpoint[] {
  const found: WrittenEndpoint[] = [];
  const entries = Array.isArray(endpoints)
    ? endpoints.map((spec, index) => ({ name: typeof spec === 'string' ? spec : spec.name, key: index, spec }))
    : Object.entries(endpoints ?? {}).map(([key, spec]) => ({ name: spec.name ?? key, key, spec }));
  if (entries.length > limits.relicEndpoints) {
    context.addIssue(['endpoints'], `has ${entries.length} endpoints (allowed: ${limits.relicEndpoints})`);
    return [];
  }
  for (const { name, key, spec } of entries) {
    const path = ['endpoints', key];
    if (name === undefined || !/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name)) {
      context.addIssue(
        path,
        name === undefined
          ? 'has no "name"'
          : `"${name}" is not an endpoint name (allowed: a letter or "_", then up to 63 letters, digits, "_" and "-")`,
      );
    } else if (found.some((other) => other.name === name)) {
      context.addIssue(path, `another endpoint is already called "${name}"`);
    } else found.push({ name, path, spec: typeof spec === 'string' ? {} : spec });
  }
  return found;
}

/** Edge stores have fixed endpoints: a manifest selects some of them and may change their summaries. */
function edgeEndpoints(
  store: 'kv' | 'log' | 'sql',
  written: readonly WrittenEndpoint[],
  context: BuildContext,
): readonly RelicEndpoint[] {
  const standard = EDGE_ENDPOINTS[store];
  if (written.length === 0) return standard;
  return written.flatMap((one) => {
    const known = standard.find((endpoint) => endpoint.name === one.name);
    if (known !== undefined) return [toEndpoint(one, known, context)];
    const names = standard.map(({ name }) => name);
    const [near] = nearestNames(one.name, names);
    const suggestion = near === undefined ? '' : `. Did you mean ${near}?`;
    context.addIssue(
      one.path,
      `a ${store} store has no endpoint "${one.name}" (allowed: ${names.join(', ')})${suggestion}`,
    );
    return [];
  });
}

/** @param standard an edge store's built-in endpoint with this name; its parameters cannot be changed */
function toEndpoint(
  { name, path, spec }: WrittenEndpoint,
  standard: RelicEndpoint | null,
  context: BuildContext,
): RelicEndpoint {
  const method = spec.method ?? 'POST';
  const schema = spec.parameters ?? spec.parameters_schema;
  const field = spec.parameters === undefined ? 'parameters_schema' : 'parameters';
  let isValid = true;
  const parameters =
    standard?.parameters ??
    toParameterSchema(
      schema ?? null,
      (fault) => {
        isValid = false;
        context.addIssue([...path, field, ...fault.path], fault.message);
      },
      context.work,
    );
  if (standard === null && isValid && spec.path !== undefined) {
    const issue = placeholderIssue({ text: spec.path, kind: 'path' }, knownParameters(parameters));
    if (issue !== null) context.addIssue([...path, 'path'], issue);
  }
  return {
    name,
    summary: spec.summary ?? spec.description ?? standard?.summary ?? '',
    parameters,
    returns: spec.returns ?? standard?.returns ?? null,
    effects: spec.effects ?? standard?.effects ?? (method === 'GET' || method === 'HEAD' ? 'idempotent' : 'unsafe'),
    timeoutMs: toTimeoutMs(spec.timeout, [...path, 'timeout'], context),
    http: standard?.http ?? { method, path: spec.path ?? `/${name}` },
  };
}
