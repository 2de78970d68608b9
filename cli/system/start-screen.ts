/** The text that `npm start` prints when the system is ready. It contains no key. */
import { commandLine } from '../project/command-line.ts';
import pc from 'picocolors';
import type { ApiKey } from '../../src/http/api-keys.ts';
import type { WorkerHealth } from './system.ts';

export interface StartScreen {
  readonly url: string;
  readonly health: WorkerHealth;
  readonly keys: readonly ApiKey[];
  /** What no key can see. */
  readonly hidden: readonly string[];
  readonly stateDir: string;
  /** The folders with manifests, and how many errors they have. */
  readonly manifests: { readonly folders: readonly string[]; readonly errors: number };
  /** The runners of RUNNER_URLS, and whether RUNNER_SECRET is set; null if this start has its own runner. */
  readonly external: { readonly urls: readonly string[]; readonly hasSecret: boolean } | null;
}

export function startScreen({ url, health, keys, hidden, stateDir, manifests, external }: StartScreen): string {
  const hasSandbox = health.runner?.status === 'healthy';
  const hasKeys = keys.length > 0;
  return [
    '',
    `${pc.bold('Cortex Edge')} ${health.version} is ready`,
    '',
    `  ${pc.dim('console')}   ${pc.cyan(`${url}/`)}   ${pc.dim('(open it in a browser)')}`,
    `  ${pc.dim('address')}   ${pc.cyan(url)}   ${pc.dim(`(health: ${url}/health)`)}`,
    `  ${pc.dim('model')}     ${health.model}`,
    `  ${pc.dim('sandbox')}   ${describeRunner(health.runner, external)}`,
    `  ${pc.dim('auth')}      ${describeKeys(keys)}`,
    ...hidden.map((line) => pc.yellow(`            ${line} (docs/configure.md, From no keys to keys)`)),
    `  ${pc.dim('state')}     ${stateDir}`,
    ...[
      ...(health.set_aside ?? []).map((file) => ({ file, part: 'worker' })),
      ...(health.runner?.set_aside ?? []).map((file) => ({ file, part: 'runner' })),
    ].map(({ file, part }) =>
      pc.red(`            ${stateDir}/${part}/${file} could not be read; it was set aside and replaced with a new one`),
    ),
    `  ${pc.dim('manifests')} ${describeFolders(manifests)} ${pc.dim('(a change counts from the next message on)')}`,
    '',
    ...(hasKeys ? [`  Set a key for this command and for ${commandLine('chat')}: export CORTEX_API_KEY=<key>`] : []),
    `  Try: ${exampleOf(url, hasKeys, hasSandbox)}`,
    `  ${pc.dim(external === null ? 'Ctrl-C stops both services.' : 'Ctrl-C stops the Worker.')}`,
    '',
  ].join('\n');
}

function describeFolders({ folders, errors }: StartScreen['manifests']): string {
  const named = folders.map((folder) => `${folder.replace(/\/$/, '')}/`).join(', ');
  return errors === 0 ? named : `${named}   ${pc.red(`${errors} ${errors === 1 ? 'error' : 'errors'}, see above`)}`;
}

/** A command that runs as it is printed. */
function exampleOf(url: string, hasKeys: boolean, hasSandbox: boolean): string {
  const [type, parameters] = hasSandbox
    ? ['python', { code: 'print(2**64)' }]
    : ['tool', { name: 'calculator', parameters: { expression: '2**64' } }];
  const text = `<action type="${type}" id="x">${JSON.stringify(parameters)}</action><response final="true">$x</response>`;
  const header = hasKeys ? ' -H "authorization: Bearer $CORTEX_API_KEY"' : '';
  return `curl -N ${url}/execute/direct${header} -d '${JSON.stringify({ protocol_text: text })}'`;
}

/** Names, roles and namespaces of the keys, never the keys. */
function describeKeys(keys: readonly ApiKey[]): string {
  if (keys.length === 0) return 'none: only this machine may call (set API_KEYS to require keys)';
  const known = keys.map(({ name, role, namespace, owner }) => {
    const keyless = owner === null ? ', with what was made without keys' : '';
    return `${name} (${role}, namespace ${namespace}${keyless})`;
  });
  return `API keys: ${known.join(', ')}`;
}

function describeRunner(runner: WorkerHealth['runner'], external: StartScreen['external']): string {
  if (runner?.status === 'healthy') return describeSandbox(runner.sandbox);
  if (external?.hasSecret === false) {
    return pc.yellow('none: RUNNER_URLS needs RUNNER_SECRET; python and shell actions fail');
  }
  const state = runner === null ? 'does not answer' : `is ${runner.status}`;
  const sandbox = runner?.sandbox == null ? '' : ` (${describeSandbox(runner.sandbox)})`;
  return pc.yellow(`none: ${runnerName(external?.urls ?? [])} ${state}; python and shell actions fail${sandbox}`);
}

/** An origin has no user and password. */
function runnerName(urls: readonly string[]): string {
  if (urls.length === 0) return 'the runner';
  const origins = urls.map((url) => new URL(url).origin).join(', ');
  return urls.length === 1 ? `the runner ${origins} (RUNNER_URLS)` : `each runner of RUNNER_URLS (${origins})`;
}

interface LevelReport {
  readonly level: string;
  readonly missing: Readonly<Record<string, string>>;
}

/** The active level of each interpreter, and why a better one is not available. */
function describeSandbox(sandbox: unknown): string {
  if (typeof sandbox === 'string') return sandbox;
  if (typeof sandbox !== 'object' || sandbox === null) return 'unknown';
  const { level, active, levels } = sandbox as { level?: unknown; active?: unknown; levels?: readonly LevelReport[] };
  if (typeof level === 'string') return level;
  if (typeof active === 'object' && active !== null) {
    const kinds = Object.entries(active).map(([kind, name]) => `${kind}: ${name === null ? 'none' : String(name)}`);
    const best = levels?.[0];
    const reason = Object.values(best?.missing ?? {})[0];
    return `${kinds.join(', ')}${reason === undefined ? '' : pc.dim(`   (not ${best?.level}: ${reason})`)}`;
  }
  return JSON.stringify(sandbox);
}
