/**
 * Reads the service of a Docker Compose file that a container relic names (R5): image or build, command, port,
 * environment, state and health check. Everything that concerns the machine (published ports, mounted directories,
 * networks, privileges) is left out with a warning.
 */
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { FieldPath } from '../check/problem.ts';
import { folderOf } from '../read/paths.ts';
import { readYaml } from '../read/yaml-file.ts';
import type { BuildContext } from './build-base.ts';
import { joined } from './image-context.ts';

/** What a compose file says about the relic; absent fields are not stated. */
export interface ComposeService {
  image?: string;
  /** Relative to the manifest. */
  build?: { readonly context: string; readonly dockerfile: string };
  command?: string[];
  port?: number;
  /** The first directory that a named volume is mounted at. */
  state?: string;
  environment?: Record<string, Json>;
  health?: { path?: string; interval?: string; start?: string };
  memory?: string | number;
  cpu?: string | number;
}

export interface ComposeChoice {
  readonly file: string;
  readonly service: string | null;
  readonly publishedPort: number | null;
  /** The relic's name: selects the service with the same name. */
  readonly name: string;
  readonly field: FieldPath;
}

type Files = Pick<BuildContext, 'addIssue' | 'warn' | 'readFile' | 'hasFile'>;

const HARMLESS: ReadonlySet<string> = new Set(
  'image build command entrypoint ports expose environment env_file healthcheck volumes deploy mem_limit cpus restart container_name labels hostname init tty stdin_open stop_grace_period stop_signal profiles pull_policy platform logging working_dir user read_only depends_on'.split(
    ' ',
  ),
);
/** Maximum lines of an environment file. */
const ENVIRONMENT_LINES = 200;

/** Null if there is an issue. */
export function readComposeService(choice: ComposeChoice, context: Files): ComposeService | null {
  const { file, field } = choice;
  const text = context.readFile(file, field);
  if (text === null) return null;
  const [document] = readYaml(text).documents;
  const services = document?.value['services'];
  if (!isJsonObject(services) || Object.keys(services).length === 0) {
    context.addIssue(field, `${file} is not a Compose file: it has no services`);
    return null;
  }
  const name = chosen(services, choice);
  const service = name === null ? null : services[name];
  if (name === null || !isJsonObject(service)) {
    const known = Object.keys(services).slice(0, 10).join(', ');
    const problem = choice.service === null ? 'has several services' : `has no service "${choice.service}"`;
    context.addIssue(field, `${file} ${problem}; set implementation.compose.service (known: ${known})`);
    return null;
  }
  const others = Object.keys(services).filter((other) => other !== name);
  if (others.length > 0) {
    const message = `only the service ${name} of ${file} is used; start the others (${others.join(', ')}) as relics of their own`;
    context.warn(field, message.slice(0, 500));
  }
  const dropped: string[] = Object.keys(service).filter((key) => !HARMLESS.has(key) && !key.startsWith('x-'));
  const found: ComposeService = {};
  readImage(service, found, folderOf(file) === '' ? '.' : folderOf(file));
  readCommand(service, found);
  readPort(service, found, choice.publishedPort);
  readVolumes(service, found, dropped);
  readEnvironment(service, found, folderOf(file), context, field);
  readHealth(service, found);
  readResources(service, found);
  if (dropped.length > 0) {
    context.warn(field, `without effect in ${file}: ${[...new Set(dropped)].slice(0, 10).join(', ')}`);
  }
  return found;
}

function chosen(services: JsonObject, { service, publishedPort, name }: ComposeChoice): string | null {
  const names = Object.keys(services);
  if (service !== null) return names.includes(service) ? service : null;
  if (names.length === 1) return names[0] ?? null;
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const same = names.filter((one) => plain(one) === plain(name));
  if (same.length === 1) return same[0] ?? null;
  const publishing = names.filter((one) => {
    const value = services[one];
    return isJsonObject(value) && portsOf(value).some(({ published }) => published === publishedPort);
  });
  return publishedPort !== null && publishing.length === 1 ? (publishing[0] ?? null) : null;
}

function readImage(service: JsonObject, found: ComposeService, folder: string): void {
  const { image, build } = service;
  if (typeof build === 'string') found.build = { context: joined(folder, build), dockerfile: 'Dockerfile' };
  else if (isJsonObject(build)) {
    const { context, dockerfile } = build;
    found.build = {
      context: joined(folder, typeof context === 'string' ? context : '.'),
      dockerfile: typeof dockerfile === 'string' ? dockerfile : 'Dockerfile',
    };
  } else if (typeof image === 'string') found.image = withDefaults(image);
}

function readCommand({ entrypoint, command }: JsonObject, found: ComposeService): void {
  const words = [...wordsOf(entrypoint), ...wordsOf(command)];
  if (words.length > 0) found.command = words;
}

/** A list, or text that is split as a shell does: at spaces outside quotes. */
function wordsOf(value: Json | undefined): string[] {
  if (Array.isArray(value)) return value.map((item) => withDefaults(String(item)));
  if (typeof value !== 'string') return [];
  return [...withDefaults(value).matchAll(/(?:"([^"]*)"|'([^']*)'|([^\s"']+))/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

interface Port {
  readonly published: number | null;
  readonly target: number;
}

function readPort(service: JsonObject, found: ComposeService, published: number | null): void {
  const ports = portsOf(service);
  const port = ports.find((one) => published !== null && one.published === published) ?? ports[0];
  if (port !== undefined) found.port = port.target;
}

/** `8004:8000`, `127.0.0.1:8004:8000/tcp`, `${PORT:-8004}:8000`, 8000, `{target, published}`. */
function portsOf({ ports, expose }: JsonObject): Port[] {
  const written = [...(Array.isArray(ports) ? ports : []), ...(Array.isArray(expose) ? expose : [])];
  return written.flatMap((entry) => {
    const value = isJsonObject(entry) ? `${String(entry['published'] ?? '')}:${String(entry['target'] ?? '')}` : entry;
    const parts = withDefaults(String(value))
      .replace(/\/\w+$/, '')
      .split(':');
    const [target, host] = [Number(parts.at(-1)), Number(parts.at(-2) ?? '')];
    if (!Number.isInteger(target) || target < 1 || target > 65_535) return [];
    return [{ published: Number.isInteger(host) && host > 0 ? host : null, target }];
  });
}

/** The first named volume is the state; directories of the machine are never mounted. */
function readVolumes({ volumes }: JsonObject, found: ComposeService, dropped: string[]): void {
  for (const volume of Array.isArray(volumes) ? volumes : []) {
    const [source = '', target = ''] = isJsonObject(volume)
      ? [String(volume['source'] ?? ''), String(volume['target'] ?? '')]
      : withDefaults(String(volume)).split(':');
    const isNamed = /^[A-Za-z0-9][\w.-]*$/.test(source) && target.startsWith('/');
    if (isNamed && found.state === undefined) found.state = target;
    else dropped.push(`the volume ${`${source}:${target}`.slice(0, 100)}`);
  }
}

function readEnvironment(
  { environment, env_file: written }: JsonObject,
  found: ComposeService,
  folder: string,
  context: Files,
  field: FieldPath,
): void {
  const values: Record<string, Json> = {};
  for (const entry of [written ?? []].flat()) {
    const name = isJsonObject(entry) ? entry['path'] : entry;
    if (typeof name !== 'string') continue;
    const path = joined(folder, name);
    if (!context.hasFile(path)) {
      context.warn(field, `the environment file ${path} does not exist; its variables are not set`);
      continue;
    }
    const lines = (context.readFile(path, field) ?? '').split(/\r?\n/).slice(0, ENVIRONMENT_LINES);
    addLines(
      lines.filter((line) => !line.startsWith('#')),
      values,
    );
  }
  if (Array.isArray(environment)) addLines(environment.map(String), values);
  else if (isJsonObject(environment)) Object.assign(values, environment);
  if (Object.keys(values).length > 0) found.environment = values;
}

function addLines(lines: readonly string[], values: Record<string, Json>): void {
  for (const line of lines) {
    const [, name, value = ''] = /^\s*([A-Za-z_]\w*)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) values[name] = value.trim().replace(/^(["'])(.*)\1$/, '$2');
  }
}

/** Only the path of an HTTP check has a meaning here: the runner asks it. */
function readHealth({ healthcheck }: JsonObject, found: ComposeService): void {
  if (!isJsonObject(healthcheck)) return;
  const { test, interval, start_period: start } = healthcheck;
  const path = /https?:\/\/[\w.-]+(?::\d+)?(\/[\w~!$&()*+,;=:@%/.?-]*)/.exec(JSON.stringify(test ?? ''))?.[1];
  found.health = {
    ...(path === undefined ? {} : { path }),
    ...durationOf('interval', interval),
    ...durationOf('start', start),
  };
}

function durationOf<Name extends string>(name: Name, value: Json | undefined): { [key in Name]?: string } {
  const text = typeof value === 'string' && /^\d+(\.\d+)?(ms|s|m|h)$/.test(value) ? value : null;
  return (text === null ? {} : { [name]: text }) as { [key in Name]?: string };
}

function readResources(service: JsonObject, found: ComposeService): void {
  const { deploy, mem_limit: memory, cpus } = service;
  const resources = isJsonObject(deploy) ? deploy['resources'] : null;
  const limits = isJsonObject(resources) && isJsonObject(resources['limits']) ? resources['limits'] : {};
  const most = limits['memory'] ?? memory;
  if (typeof most === 'string' || typeof most === 'number') found.memory = most;
  const share = limits['cpus'] ?? cpus;
  if (typeof share === 'string' || typeof share === 'number') found.cpu = share;
}

/**
 * `${NAME:-value}` and `${NAME-value}` as their default. A manifest never reads the environment of this system.
 *
 * @returns the text; a variable without a default stays as it is
 */
export function withDefaults(text: string): string {
  return text.replaceAll(/\$\{[A-Za-z_]\w*:?-([^{}]*)\}/g, '$1');
}
