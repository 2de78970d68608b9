/** Builds a relic's definition from its manifest, with all defaults (R5, R6). */
import { limits } from '../../domain/limits.ts';
import type { ImageBuild } from '../../domain/manifests/program.ts';
import type { RelicDefinition, RelicEndpoint, RelicImplementation } from '../../domain/manifests/relic.ts';
import { toImage } from './build-image.ts';
import { toBase, toNeeds, toTimeoutMs } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { folderOf } from '../read/paths.ts';
import { joined } from './image-context.ts';
import { readComposeService, withDefaults } from './compose-service.ts';
import { EDGE_ENDPOINTS } from './edge-endpoints.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { toParameterSchema } from './parameters.ts';
import { knownParameters, placeholderIssue } from './placeholders.ts';
import type { FieldPath } from '../check/problem.ts';
import { containerFields } from '../schema/schema-relic.ts';
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
    ...toBase(input, context.free),
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
  return toContainer(withCompose(written, input.name, context), context);
}

type ContainerInput = Extract<RelicInput['implementation'], { type: 'container' }>;

function toContainer(written: ContainerInput, context: BuildContext): RelicImplementation {
  const health = typeof written.health === 'string' ? { path: written.health } : (written.health ?? {});
  const image = toImage(written, context);
  const environment = toEnvironment(written.environment, context);
  return {
    type: 'container',
    ...image,
    command: written.command ?? null,
    port: written.port ?? exposedPort(image.build) ?? 8080,
    health: {
      path: health.path ?? '/health',
      intervalMs: health.interval === undefined ? limits.relicHealthMs : toMs(health.interval),
      startMs: health.start === undefined ? limits.relicStartMs : toMs(health.start),
    },
    memoryMb: written.resources?.memory === undefined ? null : toMebibytes(written.resources.memory),
    cpus: written.resources?.cpu === undefined ? null : toCpus(written.resources.cpu),
    ...(Object.keys(environment).length === 0 ? {} : { environment }),
    ...(written.state === undefined ? {} : { state: written.state }),
    ...toNeeds(written.resources),
  };
}

/** Adds what the Compose file says; the manifest's own fields take precedence. */
function withCompose(written: ContainerInput, name: string, context: BuildContext): ContainerInput {
  const { compose: named, ...own } = written;
  if (named === undefined) return written;
  const {
    file,
    service = null,
    published_port: publishedPort = null,
  } = typeof named === 'string' ? { file: named } : named;
  const field = ['implementation', 'compose'];
  if (!context.hasFile(file)) {
    const folder = folderOf(file) || '.';
    if (context.hasFile(joined(folder, 'Dockerfile'))) {
      context.warn(field, `there is no file ${file}; the Dockerfile in its folder is built`);
      return { ...own, build: { context: folder, dockerfile: 'Dockerfile' } };
    }
    const message = `nothing to run: there is no file ${file} and no Dockerfile in its folder; add one of them, or name an image with implementation: {type: container, image: …}`;
    context.addIssue(field, message);
    return { ...own, image: 'none' };
  }
  const found = readComposeService({ file, service, publishedPort, name, field }, context);
  if (found === null) return { ...own, image: own.image ?? 'none' };
  if (found.image === undefined && found.build === undefined && own.image === undefined && own.build === undefined) {
    context.addIssue(field, `the service in ${file} has neither "image" nor "build"; add one of them`);
    return { ...own, image: 'none' };
  }
  const { image, build, memory, cpu, environment, health, ...others } = found;
  const source =
    own.image === undefined && own.build === undefined ? { ...(image && { image }), ...(build && { build }) } : {};
  const ownHealth = typeof own.health === 'string' ? { path: own.health } : own.health;
  const checked = containerFields.safeParse({ ...others, health: health ?? {}, resources: { memory, cpu } });
  if (!checked.success) {
    for (const { path, message } of checked.error.issues) {
      context.addIssue(field, `${file}: ${path.join('.')} ${message}`);
    }
    return { ...own, ...source };
  }
  const { resources, ...rest } = checked.data;
  return {
    ...rest,
    ...source,
    ...own,
    health: { ...rest.health, ...ownHealth },
    environment: { ...(environment as ContainerInput['environment']), ...own.environment },
    resources: { ...resources, ...own.resources },
  };
}

/** Values are fixed text: a variable without a default is not known here, so it is left out. */
function toEnvironment(written: ContainerInput['environment'], context: BuildContext): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(written ?? {})) {
    const text = withDefaults(String(value ?? ''));
    if (/\$\{[A-Za-z_]\w*\}/.test(text)) {
      const message = `${name} is not set: "${text.slice(0, 100)}" has no default (write \${NAME:-default})`;
      context.warn(['implementation', 'environment'], message);
    } else values[name] = text;
  }
  return values;
}

/** The port in the Dockerfile's EXPOSE. */
function exposedPort(build: ImageBuild | null): number | null {
  const port = /^[ \t]*EXPOSE[ \t]+(\d{1,5})\b/im.exec(build?.files['Dockerfile'] ?? '')?.[1];
  return port === undefined ? null : Number(port);
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
