/**
 * The whole system with real processes: the Worker and the runner, which are killed with SIGKILL and start again from the
 * same state folder.
 */
import { join } from 'node:path';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { freePort, startService, stopService, waitUntilHealthy } from '../../cli/system/services.ts';
import type { Service } from '../../cli/system/services.ts';
import type { System } from '../../cli/system/system.ts';
import type { Stage } from '../support/staged-system.ts';
import type { WorkerLog } from './worker-log.ts';

export type Victim = 'worker' | 'runner' | 'both';

const SECRET = 'f'.repeat(64);
const START_MS = 120_000;
/** Programs have a network, so that they can call the tool server. */
const PYTHON_WITH_NETWORK = { RUNNER_SANDBOX: 'process', RUNNER_ALLOW_PROCESS: '1', RUNNER_WARM: '0' };

export interface RealSystemOptions {
  readonly stage: Stage;
  /** Host and port of the tool server, and of the model. */
  readonly toolHost: string;
  readonly modelHost: string;
  readonly log: WorkerLog;
  /** Settings of the Worker, besides those that name the other parts. */
  readonly vars?: Readonly<Record<string, string>>;
  /** Settings of the runner's sandbox. Default: the level `process`. */
  readonly sandbox?: Readonly<Record<string, string>>;
}

export class RealSystem implements AsyncDisposable {
  readonly url: string;
  readonly #options: RealSystemOptions;
  readonly #ports: { readonly worker: number; readonly runner: number };
  #worker: System | null = null;
  #runner: Service | null = null;

  private constructor(options: RealSystemOptions, ports: { readonly worker: number; readonly runner: number }) {
    this.#options = options;
    this.#ports = ports;
    this.url = `http://127.0.0.1:${ports.worker}`;
  }

  static async open(options: RealSystemOptions): Promise<RealSystem> {
    return new RealSystem(options, { worker: await freePort(), runner: await freePort() });
  }

  /** Leaders of the process groups that are running. */
  get leaders(): { readonly worker: number | null; readonly runner: number | null } {
    return {
      worker: this.#worker?.services[0]?.process.pid ?? null,
      runner: this.#runner?.process.pid ?? null,
    };
  }

  /** Starts what is not running. */
  async start(): Promise<void> {
    await Promise.all([this.#startRunner(), this.#startWorker()]);
  }

  async kill(victim: Victim): Promise<void> {
    const worker = victim === 'runner' ? null : this.#worker;
    const runner = victim === 'worker' ? null : this.#runner;
    await Promise.all([...(worker?.services ?? []), ...(runner === null ? [] : [runner])].map(killGroup));
    if (worker !== null) this.#worker = null;
    if (runner !== null) this.#runner = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.stop();
    if (this.#runner !== null) await stopService(this.#runner);
  }

  async #startRunner(): Promise<void> {
    if (this.#runner !== null) return;
    const { root } = this.#options.stage;
    const stateDir = withSnapshot(join(root, 'state'));
    const usual = process.platform === 'win32' ? LIGHT_SANDBOX : PYTHON_WITH_NETWORK;
    const { sandbox = usual } = this.#options;
    this.#runner = startService('runner', process.execPath, [join(root, 'container-runner/main.ts')], {
      cwd: root,
      env: {
        ...process.env,
        ...sandbox,
        RUNNER_PORT: String(this.#ports.runner),
        CORTEX_STATE_DIR: stateDir,
        RUNNER_SECRET: SECRET,
      },
      echo: () => false,
    });
    await waitUntilHealthy(this.#runner, `http://127.0.0.1:${this.#ports.runner}/health`, START_MS);
  }

  async #startWorker(): Promise<void> {
    if (this.#worker !== null) return;
    const { stage, modelHost, toolHost, log, vars = {} } = this.#options;
    this.#worker = await stage.startSystem({
      port: this.#ports.worker,
      runnerPort: this.#ports.runner,
      stateDir: join(stage.root, 'state'),
      vars: {
        ...vars,
        ALLOW_HOSTS: toolHost,
        LLM_BASE_URL: `http://${modelHost}/v1`,
        LLM_API_KEY: 'none',
        LLM_MODEL: 'scripted',
        RUNNER_URLS: `http://127.0.0.1:${this.#ports.runner}`,
        RUNNER_SECRET: SECRET,
        PLATFORM_LIMITS: 'paid',
      },
      ownRunner: false,
      progress: () => undefined,
      logLines: log,
    });
  }
}

async function killGroup({ process: { pid }, exited }: Service): Promise<void> {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
  await exited;
}
