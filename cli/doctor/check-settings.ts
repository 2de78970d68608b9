/** `.dev.vars` and the environment: names, API keys and secrets. Values of secrets are never printed. */
import { join } from 'node:path';
import { limits as runnerLimits } from '../../container-runner/limits.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { parseSigningKeys } from '../../src/executors/runner/list.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { portOf } from '../system/ports.ts';
import { checkWorkerSettings } from '../system/settings.ts';
import { parseDevVars, unknownSettings } from '../system/dev-vars.ts';
import { found } from './finding.ts';
import type { CheckResult, Finding } from './finding.ts';
import type { Machine } from './machine.ts';
import type { ProjectFiles } from './project-files.ts';

/** 64 bits in hexadecimal digits: more tries than a network carries. */
const LEAST_KEY_CHARS = 16;
/** Longer texts in the place of a role may be a key, which is never printed. */
const ROLE_CHARS = 14;
/** A repeated word or a row of digits has fewer. */
const LEAST_DISTINCT = 8;

export function checkSettings({ settings, devVars, worker }: ProjectFiles): CheckResult {
  const unknown = unknownSettings(devVars).map(({ name, nearest }) => {
    return found(
      'unknown_setting',
      `.dev.vars has an unknown setting ${name}`,
      nearest === null
        ? `remove ${name} from .dev.vars, or begin its name with TOOL_ if it is a secret of a tool`
        : `${nearest}=… instead of ${name}=… in .dev.vars`,
    );
  });
  const malformed = parseDevVars(devVars).issues.map(({ line, message }) =>
    found('malformed_line', `.dev.vars:${line} ${message}`, `NAME=value in line ${line} of .dev.vars`),
  );
  const { start } = settings;
  const invalid = [
    invalidIn(() => void portOf(start, 'PORT')),
    invalidIn(() => void portOf(start, 'RUNNER_PORT')),
    invalidIn(() => void checkWorkerSettings(withoutOthers(worker))),
  ].flat();
  const findings = [...malformed, ...unknown, ...invalid];
  if (findings.length > 0) return findings;
  return devVars === '' ? 'no .dev.vars: the defaults apply' : 'all settings of .dev.vars are known';
}

/** The settings that have no check of their own; API_KEYS, the secrets and the model have one. */
function withoutOthers(worker: ProjectFiles['worker']): Record<string, string> {
  return Object.fromEntries(Object.entries(worker).filter(([name]) => !OTHER_CHECKS.test(name)));
}

/** @param check throws an Error that names a setting that is not valid */
function invalidIn(check: () => void): Finding | [] {
  try {
    check();
    return [];
  } catch (fault) {
    const message = messageOf(fault);
    const [name = '<name>'] = /[A-Z][A-Z_]{3,}/.exec(message) ?? [];
    return found('invalid_setting', message, `a valid ${name}=… in .dev.vars, or none`);
  }
}

const OTHER_CHECKS = /^(?:API_KEYS|OWNER_OF_KEYLESS|SESSION_TOKEN_SECRET|RUNNER_SECRET|LLM_)/;

export function checkKeys({ worker }: ProjectFiles): CheckResult {
  const { API_KEYS: text = '', OWNER_OF_KEYLESS: keyless } = worker;
  try {
    const keys = parseApiKeys(text, keyless);
    if (keys.length === 0) return found('keys_missing', 'API_KEYS is not set on this machine');
    const weak = keys.filter(({ key }) => key.length < LEAST_KEY_CHARS || distinct(key) < LEAST_DISTINCT);
    if (weak.length === 0) return `${keys.length} keys: ${keys.map(shown).join(', ')}`;
    return weak.map((key) =>
      found(
        'key_weak',
        `the key of "${key.name}" has ${key.key.length} characters, ${distinct(key.key)} of them different`,
        `${key.name}:${key.role}:$(openssl rand -hex 24) in API_KEYS`,
      ),
    );
  } catch (fault) {
    return found('keys_malformed', messageOf(fault), roleFix(text));
  }
}

const shown = ({ name, role }: { readonly name: string; readonly role: string }): string => `${name} (${role})`;

/** A role that was mistyped is a common mistake. */
function roleFix(text: string): string | undefined {
  for (const entry of text.split(/[\s,]+/).filter(Boolean)) {
    const [name = '', role = '', ...rest] = entry.split(':');
    if (rest.length === 0 || role === 'run' || role === 'admin') continue;
    if (role.length > ROLE_CHARS) continue;
    const [nearest = 'run'] = nearestNames(role, ['run', 'admin', 'administrator']);
    const meant = nearest.startsWith('admin') ? 'admin' : 'run';
    return `${name}:${meant}:<key> instead of ${name}:${role}:<key> in API_KEYS`;
  }
  return undefined;
}

export function checkSecrets({ worker, devVars }: ProjectFiles, machine: Machine): CheckResult {
  const { RUNNER_URLS: urls, RUNNER_SECRET: secret, SESSION_TOKEN_SECRET: tokens } = worker;
  const findings: Finding[] = [];
  if (urls !== undefined && secret === undefined) {
    findings.push(found('runner_secret_missing', 'RUNNER_URLS is set, and RUNNER_SECRET is not'));
  }
  for (const key of parseSigningKeys(secret)) {
    const name = key.id === null ? 'RUNNER_SECRET' : `the key "${key.id}" of RUNNER_SECRET`;
    const weakness = weaknessOf(key.secret, runnerLimits.secretChars);
    if (weakness !== null) findings.push(found('runner_secret_weak', `${name} ${weakness}`));
  }
  const filed = parseDevVars(devVars).values['RUNNER_SECRET'];
  const given = machine.environment['RUNNER_SECRET'];
  if (filed !== undefined && given !== undefined && given !== '' && filed !== given) {
    const lengths = `${given.length} and ${filed.length} characters`;
    findings.push(
      found('runner_secret_overridden', `the environment and .dev.vars have different secrets (${lengths})`),
    );
  }
  if (tokens !== undefined) {
    const weakness = weaknessOf(tokens, limits.tokenSecretChars);
    if (weakness !== null) findings.push(found('token_secret_weak', `SESSION_TOKEN_SECRET ${weakness}`));
  }
  if (findings.length > 0) return findings;
  return urls === undefined ? 'the own runner gets a secret at each start' : 'RUNNER_SECRET is set';
}

function weaknessOf(secret: string, least: number): string | null {
  if (secret.length < least) return `has ${secret.length} characters; at least ${least} are needed`;
  const different = distinct(secret);
  return different < LEAST_DISTINCT ? `has only ${different} different characters` : null;
}

function distinct(text: string): number {
  return new Set(text).size;
}

/** `.dev.vars` must not be in the repository. */
export async function checkGit({ root }: ProjectFiles, machine: Machine): Promise<CheckResult> {
  const git = async (...args: string[]): Promise<number | null> => (await machine.run(root, 'git', args)).status;
  if ((await git('rev-parse', '--is-inside-work-tree')) !== 0) return 'the folder is not a git repository';
  if ((await git('ls-files', '--error-unmatch', '.dev.vars')) === 0) {
    return found('vars_committed', '.dev.vars is committed to git');
  }
  if ((await git('check-ignore', '-q', '.dev.vars')) === 0) return 'git ignores .dev.vars';
  const where = machine.read(join(root, '.dev.vars')) === null ? ', and would not if it existed' : '';
  return found('vars_not_ignored', `git does not ignore .dev.vars${where}`);
}
