/** Runs the whole system on this machine, the runner and the Worker, for `npm start`, the demo and the tests. */
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import { privateTree } from '../../container-runner/private-folder.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { PROJECT_ROOT, programPath } from '../project/folders.ts';
import { replaceFile } from '../project/real-path.ts';
import { envFileText } from './env-file.ts';
import { setAsideNames } from './damaged-databases.ts';
import { Lives } from './lives.ts';
import { LogLines } from './log-lines.ts';
import { recordServices } from './orphans.ts';
import { Rebuilds } from './rebuilds.ts';
import { ask, startService, stopService, waitUntilHealthy } from './services.ts';
import type { Answer, StartTimeouts, Service } from './services.ts';
import { clockSettings, readSettings, runnerEnvironment, tokenSecretIn, workerEnvironment } from './settings.ts';
import { startLimits } from './start-limits.ts';
import { INSPECTOR_PREFIX } from './inspector.ts';
import { imageProgress } from './start-progress.ts';
import { temporaryFolder } from './temporary-folder.ts';
import type { HostOptions } from './worker-host.ts';
import { QUIET } from './wrangler.ts';

export interface SystemOptions {
  readonly port: number;
  readonly runnerPort: number;
  readonly stateDir: string;
  /** Settings of the Worker (H8), except the runner's URL and secret, which are generated here. */
  readonly vars: Readonly<Record<string, string>>;
  /** False if RUNNER_URLS names external runners. */
  readonly ownRunner: boolean;
  readonly runnerEnv?: Readonly<Record<string, string>>;
  /**
   * Folder of a Worker that is built already, with its `wrangler.toml`: nothing is bundled, and changes are not seen.
   * Default: the environment's CORTEX_BUILT_WORKER, which the tests set; else the Worker is built from the sources.
   */
  readonly builtWorker?: string;
  /** Opens the V8 inspector of the Worker, and prints its address. */
  readonly inspect?: boolean;
  readonly progress: (message: string) => void;
  /** Prints the Worker's log. Default: every entry. */
  readonly logLines?: LogLines;
}

/** A service that can be restarted. */
export interface Part {
  readonly name: 'runner' | 'Worker';
  /** URL of its health check. */
  readonly healthUrl: string;
  /** The running instance, or null. */
  readonly service: Service | null;
  /** Its rebuilds after changes, if it has any. */
  readonly rebuilds?: Rebuilds;
  /** Records its current processes, so that a later start can end them if this process is killed. */
  note(): void;
  /** Starts the service and resolves when it serves. @throws ServiceError; then call `stop` to clean up */
  start(): Promise<void>;
  stop(graceMs?: number): Promise<void>;
}

export interface System {
  readonly url: string;
  readonly parts: readonly Part[];
  /** The running services. */
  readonly services: readonly Service[];
  readonly health: WorkerHealth;
  stop(): Promise<void>;
}

export interface WorkerHealth {
  readonly status: string;
  readonly version: string;
  readonly executors: readonly string[];
  readonly model: string;
  /** Databases that were damaged and renamed. */
  readonly set_aside?: readonly string[];
  readonly runner: {
    readonly status: string;
    readonly sandbox: unknown;
    /** State files of the runner that were damaged and renamed. */
    readonly set_aside?: readonly string[];
  } | null;
}

/** Starts all services and resolves when they serve. After a failure, nothing is left running. */
export async function startSystem(options: SystemOptions): Promise<System> {
  const plan = planSystem(options);
  try {
    await Promise.all(plan.parts.map((part) => part.start()));
    const answer = await plan.askHealth();
    if (answer.type !== 'answer') throw new Error('The Worker does not answer GET /health');
    return { ...plan, services: servicesOf(plan.parts), health: answer.body as WorkerHealth };
  } catch (fault) {
    await plan.stop();
    throw fault;
  }
}

export interface SystemPlan extends Pick<System, 'url' | 'parts' | 'stop'> {
  /** Lives of the Worker. */
  readonly lives: Lives;
  /** The Worker's `/health`, as a caller with a key sees it. */
  askHealth(): Promise<Answer>;
}

/** The services of a system, none of them started. */
export function planSystem(options: SystemOptions): SystemPlan {
  const stateDir = resolve(PROJECT_ROOT, options.stateDir);
  // The folder contains everyone's sessions.
  privateTree(stateDir, ['worker', 'runner', 'temporary']);
  const url = `http://127.0.0.1:${options.port}`;
  const vars: Record<string, string> = { ...options.vars };
  vars['SESSION_TOKEN_SECRET'] ??= tokenSecretIn(stateDir);
  // the Worker shares the network of this machine, so resolved addresses must be checked (X2)
  vars['EGRESS'] ??= 'runner';
  if (options.ownRunner) {
    vars['RUNNER_SECRET'] ??= randomBytes(32).toString('hex');
    vars['RUNNER_URLS'] = `http://127.0.0.1:${options.runnerPort}`;
  }
  const logLines = options.logLines ?? new LogLines();
  const lives = new Lives(stateDir);
  const varsOfLife = (): Record<string, string> => {
    const { life, frozen } = lives.begin();
    return {
      ...vars,
      HOST_LIFE: String(life),
      HOST_FROZEN: frozen.join(','),
      HOST_SET_ASIDE: setAsideNames(join(stateDir, 'worker')).join(','),
    };
  };
  const record = (): void => recordServices(stateDir, identify(parts));

  const runner = (): Part => {
    const healthUrl = `http://127.0.0.1:${options.runnerPort}/health`;
    const launch = (): Service =>
      startService('runner', process.execPath, [programPath('container-runner/main')], {
        cwd: PROJECT_ROOT,
        env: runnerEnvironment(process.env, {
          ...readSettings(process.env).runner,
          RUNNER_PORT: String(options.runnerPort),
          CORTEX_STATE_DIR: stateDir,
          RUNNER_SECRET: vars['RUNNER_SECRET'] ?? '',
          // stopping the system does not wait for jobs
          RUNNER_DRAIN_SECONDS: '0',
          ...options.runnerEnv,
        }),
        echo: (line) => line.includes('"level":50') || line.includes('"level":60'),
      });
    const { startMs, runnerStartMs: startingMs } = startLimits;
    return partOf({
      name: 'runner',
      healthUrl,
      launch,
      record,
      timeouts: () => ({ startMs, startingMs, onAnswer: imageProgress(options.progress) }),
      starting: () => options.progress('starting the runner …'),
    });
  };

  const worker = (): Part => {
    const rebuilds = new Rebuilds(Date.now);
    const launch = (): Service => {
      rebuilds.reset();
      const args = workerArguments(options, writeVars(stateDir, varsOfLife()), stateDir);
      return startService('worker', process.execPath, args, {
        cwd: PROJECT_ROOT,
        // it creates databases of the state folder
        umask: 0o077,
        env: {
          ...workerEnvironment(process.env),
          ...temporaryFolder(stateDir),
          ...QUIET,
          CLOUDFLARE_CF_FETCH_ENABLED: 'false',
          // Logs every request, statement and fetch to a file: it costs a third of the Worker's time, and the log would
          // contain URLs.
          X_LOCAL_OBSERVABILITY: 'false',
          // Pages that show everyone's sessions without a key.
          X_LOCAL_EXPLORER: 'false',
          CORTEX_KEEP_BUNDLE: '1',
          // For the build, which loads the manifests.
          ...clockSettings(vars),
        },
        // the manifest watcher already reports errors of manifests
        echo: (line) =>
          (/\b(error|✘)/i.test(line) && !line.includes('[custom build]')) || line.startsWith(INSPECTOR_PREFIX),
        entry: (line) => {
          rebuilds.read(line);
          return logLines.read(line);
        },
      });
    };
    return partOf({
      name: 'Worker',
      healthUrl: `${url}/health`,
      rebuilds,
      launch,
      record,
      // any answer is sufficient: what the Worker waits for is another service
      timeouts: () => ({ startMs: startLimits.startMs, startingMs: 0, onLate: () => lives.seen('silent') }),
      serves: () => lives.seen('answers'),
      starting: () => options.progress('starting the Worker …'),
    });
  };

  const parts: readonly Part[] = options.ownRunner ? [runner(), worker()] : [worker()];
  return {
    url,
    parts,
    lives,
    askHealth: async () => {
      // With API keys, only a caller with a key sees the model and the sandbox.
      const key = parseApiKeys(vars['API_KEYS'])[0]?.key;
      return await ask(
        `${url}/health`,
        startLimits.answerMs,
        key === undefined ? {} : { authorization: `Bearer ${key}` },
      );
    },
    stop: async () => {
      await Promise.all(parts.map((part) => part.stop()));
    },
  };
}

function servicesOf(parts: readonly Part[]): Service[] {
  return parts.flatMap(({ service }) => (service === null ? [] : [service]));
}

function identify(parts: readonly Part[]): { readonly name: string; readonly pid: number }[] {
  return servicesOf(parts).flatMap(({ name, process: { pid } }) => (pid === undefined ? [] : [{ name, pid }]));
}

function partOf({
  name,
  healthUrl,
  launch,
  record,
  timeouts,
  starting,
  serves = () => undefined,
  ...watched
}: Pick<Part, 'name' | 'healthUrl' | 'rebuilds'> & {
  readonly launch: () => Service;
  /** Records the running processes for a later start. */
  readonly record: () => void;
  readonly timeouts: () => StartTimeouts;
  readonly starting: () => void;
  readonly serves?: () => void;
}): Part {
  let service: Service | null = null;
  return {
    name,
    healthUrl,
    ...watched,
    get service() {
      return service;
    },
    note: record,
    async start() {
      starting();
      const launched = launch();
      service = launched;
      record();
      await waitUntilHealthy(launched, healthUrl, timeouts());
      serves();
      // the service has started all its processes
      record();
    },
    async stop(graceMs) {
      const stopped = service;
      if (stopped === null) return;
      await stopService(stopped, graceMs);
      if (service === stopped) service = null;
    },
  };
}

function workerArguments(options: SystemOptions, envFile: string, stateDir: string): string[] {
  const built = options.builtWorker ?? process.env['CORTEX_BUILT_WORKER'] ?? '';
  const host: HostOptions = {
    port: options.port,
    config: built === '' ? null : join(built, 'wrangler.toml'),
    persistTo: join(stateDir, 'worker'),
    envFile,
    socketFolder: join(stateDir, 'sockets'),
    inspect: options.inspect === true,
  };
  return [programPath('cli/system/worker-host'), JSON.stringify(host)];
}

/** Passes settings to the Worker in a file that only this user can read, because command lines are public. */
function writeVars(stateDir: string, vars: Readonly<Record<string, string>>): string {
  const file = join(stateDir, 'worker.env');
  replaceFile(file, envFileText(vars), 0o600);
  return file;
}
