/**
 * Relic manifests of the original system: a service in a container, described by `service_type`, `interface`,
 * `health_check`, `persistence`, `deployment` and `environment` (MK1), or by `mode`, `port` and `compose_file`
 * (agent-lib).
 */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { FieldPath } from '../../../src/catalog/check/problem.ts';
import type { Draft } from '../draft.ts';
import { keepAsMetadata } from '../values.ts';
import { understandEndpoints } from './relic-endpoints.ts';

/** Fields that only the original has. */
const SIGNS = ['service_type', 'interface', 'health_check', 'deployment', 'persistence', 'mode', 'compose_file'];
const COMPOSE = /^docker[-_]?compose$|^compose$/i;
/** Where the original looks for a service that the manifest does not describe. */
const DEFAULT_COMPOSE = 'docker-compose.yml';

export function understandRelic(draft: Draft): void {
  keepAsMetadata(draft, ['category', 'import', 'automation']);
  listenPort(draft);
  const hasCompose = COMPOSE.test(
    String(draft.get(['service', 'type']) ?? draft.get(['implementation', 'type']) ?? ''),
  );
  if (!hasCompose && !SIGNS.some((name) => draft.has([name]))) return;
  understandEndpoints(draft);
  if (!isOwn(draft)) deployment(draft);
  if (draft.get(['implementation', 'type']) === 'container') {
    addresses(draft);
    healthCheck(draft);
    persistence(draft);
    environment(draft);
  }
  draft.move(['service_type'], ['metadata', 'service_type']);
  for (const path of [['deployment', 'resources'], ['deployment'], ['interface']]) {
    const left = draft.get(path);
    if (isJsonObject(left) && Object.keys(left).length === 0) draft.remove(path);
  }
}

/** The original has the port of the service at the top level. */
function listenPort(draft: Draft): void {
  if (!draft.has(['port']) || draft.has(['implementation', 'port']) || draft.has(['mode'])) return;
  draft.note(['port'], 'understood as implementation.port');
  draft.move(['port'], ['implementation', 'port']);
}

/** Whether the manifest already has an implementation in this system's form. */
function isOwn(draft: Draft): boolean {
  const name = ['implementation', 'executor', 'execution', 'service'].find((one) => draft.has([one]));
  if (name === undefined) return false;
  const written = draft.get([name]);
  if (!isJsonObject(written)) return true;
  const { type, store, image, build } = written;
  if (typeof type === 'string') return !COMPOSE.test(type) && type !== 'docker';
  return store !== undefined || image !== undefined || build !== undefined;
}

/** What runs the service: the first of these that the manifest has. */
function deployment(draft: Draft): void {
  const mode = draft.get(['mode']);
  const type = text(draft.get(['deployment', 'type']));
  if (typeof mode === 'string' && mode !== 'managed') {
    const what = mode === 'builtin' ? 'a part of the original program' : 'a service that runs elsewhere';
    draft.lose(
      ['mode'],
      `"${mode}" is ${what}; use implementation {type: edge, store: kv}, or {type: container, image: …}, or a tool of type http`,
    );
    // the missing implementation is the only error
    for (const name of ['mode', 'interface']) draft.remove([name]);
    return;
  }
  if (type !== null && !/^docker|^compose|^container$/i.test(type)) {
    draft.lose(['deployment', 'type'], `"${type}" is not supported; the service runs in a container on the runner`);
  }
  const file = COMPOSE_FILES.find((path) => draft.has(path));
  const from = [['deployment', 'image'], ...COMPOSE_FILES, ['deployment'], ['service']].find((path) => draft.has(path));
  draft.note(from ?? ['kind'], 'understood as implementation {type: container}');
  const known: Record<string, Json> = { type: 'container' };
  for (const name of ['command', 'resources', 'labels']) {
    const own = draft.get(['implementation', name]) ?? draft.get(['service', name]);
    if (own !== undefined) known[name] = own;
  }
  const port = draft.get(['implementation', 'port']) ?? containerPort(draft);
  if (port !== null) known['port'] = port;
  const limits = draft.get(['deployment', 'resources', 'limits']);
  if (isJsonObject(limits)) known['resources'] = only(limits, ['memory', 'cpu']);
  const isCompose = file !== undefined && !draft.has(['deployment', 'image']);
  if (isCompose) known['compose'] = composeOf(draft, String(draft.get(file)));
  else Object.assign(known, imageOf(draft));
  draft.set(['implementation'], known, from ?? ['kind']);
  for (const name of ['service', 'compose_file', 'compose_dir', 'project_name', 'mode']) draft.remove([name]);
  const read = 'type engine docker_compose_file compose_file dockerfile image build ports';
  for (const name of read.split(' ')) draft.remove(['deployment', name]);
  draft.remove(['deployment', 'resources', 'limits']);
}

/** Where a Compose file is named. */
const COMPOSE_FILES: readonly FieldPath[] = [
  ['deployment', 'docker_compose_file'],
  ['deployment', 'compose_file'],
  ['service', 'compose_file'],
  ['implementation', 'compose_file'],
  ['compose_file'],
];

function composeOf(draft: Draft, file: string): Json {
  const folder = draft.get(['compose_dir']);
  const path = typeof folder === 'string' ? `${folder.replace(/\/+$/, '')}/${file}` : file;
  const published = publishedPort(draft);
  return published === null ? path : { file: path, published_port: published };
}

/** An image, a Dockerfile, or by default the Compose file beside the manifest. */
function imageOf(draft: Draft): JsonObject {
  const get = (name: string): Json | undefined =>
    draft.get(['deployment', name]) ?? draft.get(['implementation', name]);
  const [image, dockerfile, build] = [get('image'), get('dockerfile'), get('build')];
  if (typeof image === 'string') return { image };
  if (typeof build === 'string') return { build: { context: build } };
  if (isJsonObject(build)) return { build: only(build, ['context', 'dockerfile']) };
  if (typeof dockerfile !== 'string') return { compose: composeOf(draft, DEFAULT_COMPOSE) };
  const [, folder, name = dockerfile] = /^(.*)\/([^/]+)$/.exec(dockerfile) ?? [];
  return { build: { context: folder ?? '.', dockerfile: name } };
}

/** The port that clients of the original use: `port`, or the one in `interface.base_url`. */
function publishedPort(draft: Draft): number | null {
  const port = draft.get(['port']);
  if (typeof port === 'number') return port;
  const url = text(draft.get(['interface', 'base_url']));
  const found = url === null ? undefined : /:(\d{2,5})(?=\/|\}|$)/.exec(url)?.[1];
  return found === undefined ? null : Number(found);
}

/** `deployment.ports`: `[{port, target_port}]` or `["8004:8000"]`. */
function containerPort(draft: Draft): number | null {
  const ports = draft.get(['deployment', 'ports']);
  const [first] = Array.isArray(ports) ? ports : [];
  if (isJsonObject(first)) {
    const port = first['target_port'] ?? first['port'];
    return typeof port === 'number' ? port : null;
  }
  const port = Number(
    String(first ?? '')
      .split(':')
      .at(-1),
  );
  return Number.isInteger(port) && port > 0 ? port : null;
}

/** No port is published: calls go through the runner. */
function addresses(draft: Draft): void {
  const hasPort = ['port', 'compose', 'build'].some((name) => draft.has(['implementation', name]));
  const port = publishedPort(draft);
  if (!hasPort && port !== null) {
    const from: FieldPath = draft.has(['port']) ? ['port'] : ['interface', 'base_url'];
    draft.set(['implementation', 'port'], port, from);
  }
  if (draft.has(['interface', 'base_url'])) {
    draft.note(['interface', 'base_url'], 'without effect: the runner starts the service and makes its calls');
    draft.remove(['interface', 'base_url']);
  }
  draft.remove(['port']);
  for (const name of ['type', 'protocol']) draft.remove(['interface', name]);
}

/** `health_check: {type, endpoint, interval, …}`, or `health_path`. */
function healthCheck(draft: Draft): void {
  if (draft.has(['implementation', 'health'])) return;
  const at = ['health_check', 'health_path', 'implementation'].find((name) =>
    draft.has(name === 'implementation' ? [name, 'health_check'] : [name]),
  );
  if (at === undefined) return;
  const from = at === 'implementation' ? [at, 'health_check'] : [at];
  const written = draft.get(from) ?? null;
  const check = isJsonObject(written) ? written : { endpoint: written };
  const path = pathOf(check['endpoint'] ?? check['path'] ?? check['url']);
  const interval = durationOf(check['interval']);
  const start = durationOf(check['start_period']);
  draft.note(from, 'understood as implementation.health; the runner decides about timeouts and retries');
  draft.set(
    ['implementation', 'health'],
    { ...(path && { path }), ...(interval && { interval }), ...(start && { start }) },
    from,
  );
  draft.remove(from);
}

/** `/health`, `health` or `http://localhost:8004/health`. */
function pathOf(written: Json | undefined): string | null {
  if (typeof written !== 'string') return null;
  const path = written.trim().replace(/^(?:https?:\/\/|\$\{)[^/]*?(?=\/[^/]|$)/, '');
  if (/\s/.test(path)) return null;
  return path.startsWith('/') ? path : `/${path}`;
}

function durationOf(written: Json | undefined): string | number | null {
  if (typeof written === 'number') return written;
  return typeof written === 'string' && /^\s*\d+(\.\d+)?\s*(ms|s|m|h|d)\s*$/.test(written) ? written : null;
}

/** The original has one service with one state, which all its users share. */
function persistence(draft: Draft): void {
  if (!draft.has(['persistence'])) return;
  const written = draft.get(['persistence']) ?? null;
  const type = isJsonObject(written) ? text(written['type']) : text(written);
  const isKept = type === null ? written !== false : !/^(?:none|ephemeral|memory)$/i.test(type);
  const mount = isJsonObject(written) ? written['mount_path'] : undefined;
  const known = isKept ? 'persistent: true and scope: shared' : 'persistent: false';
  draft.note(['persistence'], `understood as ${known}; the operator limits the size`);
  if (!draft.has(['persistent'])) draft.set(['persistent'], isKept, ['persistence']);
  if (isKept && !draft.has(['scope'])) draft.set(['scope'], 'shared', ['persistence']);
  if (isKept && typeof mount === 'string' && !draft.has(['implementation', 'state'])) {
    draft.set(['implementation', 'state'], mount, ['persistence']);
  }
  draft.remove(['persistence']);
}

/** `environment: {variables, secrets}`, also under `deployment` and `implementation`. */
function environment(draft: Draft): void {
  for (const from of [['environment'], ['deployment', 'environment']]) {
    const written = draft.get(from);
    if (!isJsonObject(written)) continue;
    const variables = isJsonObject(written['variables']) ? written['variables'] : written;
    if (written['secrets'] !== undefined) {
      draft.lose([...from, 'secrets'], 'without effect: relics get no secrets');
    }
    const plain = Object.entries(variables).filter(([, value]) => typeof value !== 'object');
    if (plain.length > 0) {
      draft.note(from, 'understood as implementation.environment');
      for (const [name, value] of plain) {
        const path = ['implementation', 'environment', name];
        if (!draft.has(path)) draft.set(path, value, [...from, ...(variables === written ? [] : ['variables']), name]);
      }
    }
    draft.remove(from);
  }
}

function only(value: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])));
}

function text(value: Json | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
