/** The configuration of another deployment of the Worker, derived from wrangler.toml. */
import { experimental_readRawConfig as readRawConfig } from 'wrangler';
import { isSecretName } from '../../src/domain/secrets.ts';
import { WORKER_SETTINGS } from '../../src/settings/setting-table.ts';

/** A configuration as it is written in its file. */
interface RawEnvironment {
  readonly [field: string]: unknown;
  readonly vars?: Readonly<Record<string, unknown>>;
  readonly routes?: unknown;
  readonly route?: unknown;
}

interface RawConfig extends RawEnvironment {
  readonly name?: string;
  readonly env?: Readonly<Record<string, RawEnvironment>>;
}

/** Settings that must not be in a file or on a command line; `wrangler secret put` stores them. */
const SECRETS: ReadonlySet<string> = new Set([
  'LLM_API_KEY',
  'API_KEYS',
  'SESSION_TOKEN_SECRET',
  'RUNNER_SECRET',
  'RUNNER_ACCESS_ID',
  'RUNNER_ACCESS_SECRET',
]);
const STAGE = /^[a-z][a-z0-9-]{0,30}[a-z0-9]$/;
const DOMAIN = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;

/** The names of the environments in a configuration. */
export function environmentsOf(file: string): readonly string[] {
  return Object.keys((readRawConfig({ config: file }).rawConfig as RawConfig).env ?? {});
}

export interface StageOptions {
  /** Becomes part of the Worker's name. */
  readonly stage: string;
  /** A custom domain; null means the address at workers.dev. */
  readonly domain: string | null;
  /** `NAME=value` each. */
  readonly variables: readonly string[];
}

/**
 * The configuration of a stage: everything of `file` except name, routes and variables.
 *
 * @throws Error for an invalid name, domain or variable
 */
export function stageConfig(
  file: string,
  { stage, domain, variables }: StageOptions,
): RawConfig & { readonly name: string } {
  if (!STAGE.test(stage)) {
    throw new Error(`"${stage}" is not the name of a stage (allowed: 2 to 32 of a-z, 0-9 and "-", such as staging)`);
  }
  if (domain !== null && !DOMAIN.test(domain)) {
    throw new Error(`"${domain}" is not a domain, such as staging.example.com`);
  }
  const base = readRawConfig({ config: file }).rawConfig as RawConfig;
  const given = Object.fromEntries(variables.map(variableOf));
  const withVariables = (vars: RawEnvironment['vars']): Pick<RawEnvironment, 'vars'> => {
    const all = { ...vars, ...given };
    return Object.keys(all).length === 0 ? {} : { vars: all };
  };
  // an environment inherits the routes, but not the variables
  const environments = Object.entries(base.env ?? {}).map(([name, environment]) => {
    const { vars, routes: _routes, route: _route, ...rest } = environment;
    return [name, { ...rest, ...withVariables(vars) }] as const;
  });
  const { vars, env, routes: _routes, route: _route, workers_dev: _workersDev, ...rest } = base;
  return {
    ...rest,
    name: `${base.name ?? 'cortex-edge'}-${stage}`,
    ...withVariables(vars),
    ...(env === undefined ? {} : { env: Object.fromEntries(environments) }),
    ...(domain === null
      ? { workers_dev: true }
      : { workers_dev: false, routes: [{ pattern: domain, custom_domain: true }] }),
  };
}

function variableOf(written: string): [string, string] {
  const [, name = '', value = ''] = /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(written) ?? [];
  if (name === '') throw new Error(`"${written.split('=')[0] ?? ''}" is not NAME=value`);
  if (SECRETS.has(name) || isSecretName(name)) {
    throw new Error(`${name} is a secret: set it with npx wrangler secret put ${name} -c <file>`);
  }
  const known: readonly string[] = WORKER_SETTINGS;
  if (!known.includes(name)) throw new Error(`${name} is not a setting of the Worker (docs/configure.md)`);
  return [name, value];
}
