/** The whole system on this machine: the runner and the Worker, for `npm start`, the demo and the tests. */
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { startService, stopService, waitUntilHealthy } from './services.ts';
import type { Service } from './services.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface SystemOptions {
  readonly port: number;
  readonly runnerPort: number;
  readonly stateDir: string;
  /** Settings of the Worker (H8), without the runner's address and secret, which are made here. */
  readonly vars: Readonly<Record<string, string>>;
  /** False when RUNNER_URLS names runners elsewhere. */
  readonly ownRunner: boolean;
  readonly runnerEnv?: Readonly<Record<string, string>>;
  readonly progress: (message: string) => void;
}

export interface System {
  readonly url: string;
  readonly services: readonly Service[];
  readonly health: WorkerHealth;
  stop(): Promise<void>;
}

export interface WorkerHealth {
  readonly status: string;
  readonly version: string;
  readonly executors: readonly string[];
  readonly model: string;
  readonly runner: { readonly status: string; readonly sandbox: unknown } | null;
}

/** What the Worker reads from its environment (H8). */
export const SETTING_NAMES = [
  'LLM_PROVIDER',
  'LLM_BASE_URL',
  'LLM_API_KEY',
  'LLM_MODEL',
  'API_KEYS',
  'ALLOWED_ORIGINS',
  'RUNNER_URLS',
  'RUNNER_SECRET',
  'RUNNER_ACCESS_ID',
  'RUNNER_ACCESS_SECRET',
  'ALLOW_HOSTS',
  'RATE_LIMIT',
  'SESSION_EXPIRY',
] as const;

/** Settings from `.dev.vars`, overridden by the environment. */
export function readVars(environment: NodeJS.ProcessEnv): Record<string, string> {
  const file = join(ROOT, '.dev.vars');
  const vars: Record<string, string> = {};
  const fromFile = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {};
  for (const [key, value] of Object.entries(fromFile)) if (value !== undefined) vars[key] = value;
  for (const [name, value] of Object.entries(environment)) {
    if (isSetting(name) && value !== undefined && value !== '') vars[name] = value;
  }
  return vars;
}

/** Starts both services and resolves when both answer; on a failure nothing is left running. */
export async function startSystem(options: SystemOptions): Promise<System> {
  const stateDir = resolve(ROOT, options.stateDir);
  mkdirSync(stateDir, { recursive: true });
  const services: Service[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(services.map((service) => stopService(service)));
  };
  const environment = withoutSettings(process.env);
  const vars: Record<string, string> = { ...options.vars };
  try {
    if (options.ownRunner) {
      options.progress('starting the runner …');
      vars['RUNNER_SECRET'] ??= randomBytes(32).toString('hex');
      vars['RUNNER_URLS'] = `http://127.0.0.1:${options.runnerPort}`;
      const runner = startService('runner', process.execPath, ['container-runner/main.ts'], {
        cwd: ROOT,
        env: {
          ...environment,
          RUNNER_PORT: String(options.runnerPort),
          CORTEX_STATE_DIR: stateDir,
          RUNNER_SECRET: vars['RUNNER_SECRET'],
          // whoever stops the whole system does not wait for its jobs
          RUNNER_DRAIN_SECONDS: '0',
          ...options.runnerEnv,
        },
        echo: (line) => line.includes('"level":50') || line.includes('"level":60'),
      });
      services.push(runner);
    }
    options.progress('starting the Worker …');
    const worker = startService(
      'worker',
      process.execPath,
      workerArguments(options, writeVars(stateDir, vars), stateDir),
      {
        cwd: ROOT,
        env: {
          ...environment,
          CLOUDFLARE_CF_FETCH_ENABLED: 'false',
          WRANGLER_SEND_METRICS: 'false',
          // A copy of every request, statement and fetch in a file: it costs a third of the Worker's time,
          // and would keep what stands in URLs.
          X_LOCAL_OBSERVABILITY: 'false',
          // Pages over everybody's sessions that ask for no key.
          X_LOCAL_EXPLORER: 'false',
          CORTEX_KEEP_BUNDLE: '1',
          CI: 'true',
          FORCE_COLOR: '0',
        },
        // what is wrong with a manifest is said once, by the watcher
        echo: (line) => /\b(error|✘)/i.test(line) && !line.includes('[custom build]'),
      },
    );
    services.push(worker);
    const url = `http://127.0.0.1:${options.port}`;
    await Promise.all(
      services.map((service) =>
        waitUntilHealthy(
          service,
          `${service.name === 'runner' ? `http://127.0.0.1:${options.runnerPort}` : url}/health`,
          60_000,
        ),
      ),
    );
    const health = (await (await fetch(`${url}/health`)).json()) as WorkerHealth;
    return { url, services, health, stop };
  } catch (fault) {
    await stop();
    throw fault;
  }
}

function workerArguments(options: SystemOptions, varsFile: string, stateDir: string): string[] {
  return [
    join(ROOT, 'node_modules/wrangler/bin/wrangler.js'),
    'dev',
    '--ip=127.0.0.1',
    `--port=${options.port}`,
    '--inspector-port=0',
    `--persist-to=${join(stateDir, 'worker')}`,
    `--env-file=${varsFile}`,
    '--show-interactive-dev-session=false',
  ];
}

/** Settings go to the Worker in a file that only this user reads, not on a command line that everyone sees. */
function writeVars(stateDir: string, vars: Readonly<Record<string, string>>): string {
  const file = join(stateDir, 'worker.env');
  const lines = Object.entries(vars).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  return file;
}

/** Beside the settings, the secrets that manifests may name (X3). */
function isSetting(name: string): boolean {
  return name.startsWith('TOOL_') || (SETTING_NAMES as readonly string[]).includes(name);
}

function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const rest = { ...environment };
  for (const name of Object.keys(rest)) if (isSetting(name)) delete rest[name];
  return rest;
}
