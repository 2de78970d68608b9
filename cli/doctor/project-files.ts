/** The files of a project as the checks need them: its settings and the environment of wrangler.toml that counts. */
import { join } from 'node:path';
import { messageOf } from '../../src/domain/errors.ts';
import { isJsonObject } from '../../src/domain/json.ts';
import { parseDevVars } from '../system/dev-vars.ts';
import { readSettings } from '../system/settings.ts';
import type { SystemSettings } from '../system/settings.ts';
import type { Machine } from './machine.ts';

/** Members of an environment that a check reads, as they are written. */
export interface Environment {
  readonly main: string | null;
  readonly compatibilityDate: string | null;
  readonly compatibilityFlags: readonly string[];
  /** Whether wrangler runs a command before it bundles the Worker. */
  readonly hasBuild: boolean;
  readonly vars: Readonly<Record<string, string>>;
  /** Bindings of Durable Objects of this Worker: class by name. */
  readonly objects: ReadonlyMap<string, string>;
  readonly migrations: readonly Readonly<Record<string, unknown>>[];
  readonly containers: readonly Readonly<Record<string, unknown>>[];
  /** The names of all bindings. */
  readonly bindings: ReadonlySet<string>;
}

export interface ProjectFiles {
  readonly root: string;
  /** The text of `.dev.vars`; empty without the file. */
  readonly devVars: string;
  readonly settings: SystemSettings;
  /** The Worker's settings: those of npm start, over the variables of wrangler.toml. */
  readonly worker: Readonly<Record<string, string>>;
  /** Null if the file is absent or not valid. */
  readonly environment: Environment | null;
  /** Names of the other environments that have containers. */
  readonly containersElsewhere: readonly string[];
  /** Why wrangler cannot read its file; null if it can, or if there is none. */
  readonly fault: string | null;
}

/** The names that wrangler may read a configuration from, in its own order. */
const WRANGLER_FILES = ['wrangler.json', 'wrangler.jsonc', 'wrangler.toml'] as const;

/** @param environment the name of an environment of wrangler.toml; null means the top level */
export async function readProject(root: string, environment: string | null, machine: Machine): Promise<ProjectFiles> {
  const devVars = machine.read(join(root, '.dev.vars')) ?? '';
  // the check of the settings reports what cannot be read
  const isValid = parseDevVars(devVars).issues.length === 0;
  const settings = readSettings(machine.environment, isValid ? devVars : '');
  const name = WRANGLER_FILES.find((file) => machine.read(join(root, file)) !== null);
  if (name === undefined) {
    return { ...EMPTY, root, devVars, settings, worker: settings.worker };
  }
  try {
    const file = await machine.readWrangler(join(root, name));
    const environments = isJsonObject(file['env']) ? file['env'] : {};
    if (environment !== null && !isJsonObject(environments[environment])) {
      throw new Error(`has no environment "${environment}" (known: ${Object.keys(environments).join(', ') || 'none'})`);
    }
    const chosen = environment === null ? file : { ...inherited(file), ...(environments[environment] as object) };
    const read = environmentOf(chosen);
    const elsewhere = Object.entries(environments).filter(
      ([other, value]) => other !== environment && isJsonObject(value) && listOf(value['containers']).length > 0,
    );
    return {
      root,
      devVars,
      settings,
      worker: { ...read.vars, ...settings.worker },
      environment: read,
      containersElsewhere: elsewhere.map(([other]) => other),
      fault: null,
    };
  } catch (fault) {
    return { ...EMPTY, root, devVars, settings, worker: settings.worker, fault: `${name}: ${messageOf(fault)}` };
  }
}

const EMPTY = { environment: null, containersElsewhere: [], fault: null } as const;

/** An environment has these from the top level, unless it has its own. */
function inherited(file: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { main, compatibility_date: date, compatibility_flags: flags, migrations, build } = file;
  return { main, compatibility_date: date, compatibility_flags: flags, migrations, build };
}

function environmentOf(file: Readonly<Record<string, unknown>>): Environment {
  const objects = isJsonObject(file['durable_objects']) ? listOf(file['durable_objects']['bindings']) : [];
  const own = objects.filter((one) => typeof one['script_name'] !== 'string');
  const vars = isJsonObject(file['vars']) ? file['vars'] : {};
  return {
    main: textOf(file['main']),
    compatibilityDate: dateOf(file['compatibility_date']),
    hasBuild: isJsonObject(file['build']) && textOf(file['build']['command']) !== null,
    compatibilityFlags: (Array.isArray(file['compatibility_flags']) ? file['compatibility_flags'] : []).map(String),
    vars: Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, varOf(value)])),
    objects: new Map(own.map((one) => [String(one['name']), String(one['class_name'])])),
    migrations: listOf(file['migrations']),
    containers: listOf(file['containers']),
    bindings: new Set([...bindingNames(file), ...Object.keys(vars)]),
  };
}

/** Wrangler calls the name of a binding `binding`, that of an object `name`. */
function bindingNames(value: unknown, depth = 0): string[] {
  if (depth > BINDING_DEPTH || typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((one) => bindingNames(one, depth + 1));
  return Object.entries(value).flatMap(([member, inner]) => {
    if (typeof inner === 'string') return member === 'binding' || member === 'name' ? [inner] : [];
    return member === 'env' || member === 'migrations' ? [] : bindingNames(inner, depth + 1);
  });
}

/** `queues.producers[0].binding` is the deepest place of a binding. */
const BINDING_DEPTH = 4;

function varOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A date without quotation marks is another type of TOML; what else is written is shown as it is. */
function dateOf(value: unknown): string | null {
  if (value instanceof Date) return value.toISOString().slice(0, 10);
  return typeof value === 'number' ? String(value) : textOf(value);
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter((one) => isJsonObject(one)) : [];
}
