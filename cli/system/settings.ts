/** Reads the settings of the whole system (docs/configure.md) and assigns them to services. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RUNNER_SETTINGS } from '../../container-runner/config.ts';
import { settingIssues } from '../../src/settings/setting-issues.ts';
import { checkSettings } from '../../src/settings/setting-checks.ts';
import { WORKER_SETTINGS } from '../../src/settings/setting-table.ts';
import type { ApiKey } from '../../src/http/api-keys.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { replaceFile } from '../project/real-path.ts';
import { checkNames, devVarsText, valuesOf } from './dev-vars.ts';
import { givenSettings, startSettings } from './start-settings.ts';
import type { StartSettings, Variables } from './start-settings.ts';

/** Settings of the runner that `npm start` always overrides. */
const SET_BY_START: ReadonlySet<string> = new Set(['RUNNER_PORT', 'CORTEX_STATE_DIR', 'RUNNER_SECRET']);

/** Environment variables that child programs and the Docker client need. With a compile cache, programs start faster. */
const MACHINE = (
  'PATH HOME TMPDIR TMP TEMP LANG LC_ALL TZ SystemRoot windir ComSpec PATHEXT NODE_COMPILE_CACHE ' +
  'XDG_RUNTIME_DIR DOCKER_HOST DOCKER_CERT_PATH DOCKER_TLS_VERIFY NODE_EXTRA_CA_CERTS'
).split(' ');
/** Additional environment variables of wrangler. */
const WRANGLER = (
  'USER USERPROFILE APPDATA LOCALAPPDATA XDG_CONFIG_HOME XDG_CACHE_HOME MINIFLARE_WORKERD_PATH ' +
  // the build reads the folders of manifests
  'CORTEX_MANIFESTS'
).split(' ');

export interface SystemSettings {
  readonly start: StartSettings;
  /** For the Worker: its settings and the `TOOL_…` secrets. */
  readonly worker: Readonly<Record<string, string>>;
  /** For the runner. */
  readonly runner: Readonly<Record<string, string>>;
}

/**
 * @param file the text of `.dev.vars`; the environment takes precedence, and empty values count as unset
 * @throws Error that names the lines of the file that cannot be read
 */
export function readSettings(environment: Variables, file = ''): SystemSettings {
  const given = givenSettings(environment, valuesOf(file));
  const only = (wanted: (name: string) => boolean): Record<string, string> =>
    Object.fromEntries([...given].filter(([name]) => wanted(name)));
  return {
    start: startSettings(given),
    worker: only((name) => isToolSecret(name) || isOneOf(WORKER_SETTINGS, name)),
    runner: only((name) => isOneOf(RUNNER_SETTINGS, name) && !SET_BY_START.has(name)),
  };
}

/**
 * Reads the settings of the project in `root`.
 *
 * @throws Error that names the lines of `.dev.vars` that cannot be read, or whose names no part of the system reads
 */
export function settingsOf(root: string, environment: Variables): SystemSettings {
  const text = devVarsText(root);
  const settings = readSettings(environment, text);
  checkNames(text);
  return settings;
}

/** @returns the API keys. @throws Error that names an invalid setting of the Worker */
export function checkWorkerSettings(worker: Readonly<Record<string, string>>): ApiKey[] {
  checkSettings(worker);
  // A local system numbers its lives.
  const [issue] = settingIssues({ HOST_LIFE: '0', ...worker });
  if (issue !== undefined) throw new Error(issue);
  return parseApiKeys(worker['API_KEYS'], worker['OWNER_OF_KEYLESS']);
}

/** The settings that affect which manifests load. */
export function clockSettings(worker: Variables): NodeJS.ProcessEnv {
  return pick(worker, ['FEED_MIN_SECONDS', 'CRON_MIN_SECONDS']);
}

/** Environment of the runner's process: only what it needs, and none of the Worker's secrets. */
export function runnerEnvironment(environment: Variables, runner: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...pick(environment, MACHINE), ...runner };
}

/** Environment of the wrangler process; the Worker's settings are passed in a file. */
export function workerEnvironment(environment: Variables): NodeJS.ProcessEnv {
  return pick(environment, [...MACHINE, ...WRANGLER]);
}

/** The default key for signing tokens: generated once per state folder, readable only by this user. */
export function tokenSecretIn(stateDir: string): string {
  const file = join(stateDir, 'session-token.secret');
  const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (/^[0-9a-f]{64}$/.test(known)) return known;
  const made = randomBytes(32).toString('hex');
  replaceFile(file, `${made}\n`, 0o600);
  return made;
}

function pick(environment: Variables, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(
    names.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])),
  );
}

/** Secrets that manifests may use (X3). */
function isToolSecret(name: string): boolean {
  return name.startsWith('TOOL_');
}

function isOneOf(names: readonly string[], name: string): boolean {
  return names.includes(name);
}
