/** Puts the runner together: ledger, sandboxes, jobs, routes, server. */
import type { AddressInfo } from 'node:net';
import path from 'node:path';

import { createAdaptorServer } from '@hono/node-server';
import { type Logger, pino } from 'pino';

import { createApp } from './app.ts';
import { createAuthority } from './auth.ts';
import type { RunnerConfig } from './config.ts';
import { Jobs } from './jobs.ts';
import { parseKeys } from './keys.ts';
import { Ledger } from './ledger.ts';
import { limits } from './limits.ts';
import { MAXIMA } from './maxima.ts';
import { openRelics } from './relics/open.ts';
import type { RelicHost } from './relics/service.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { Prewarmer } from './prewarm.ts';
import { BubblewrapSandbox } from './sandbox/bubblewrap.ts';
import { DockerSandbox } from './sandbox/docker.ts';
import { ProcessSandbox } from './sandbox/process.ts';
import { SandboxRegistry } from './sandbox/registry.ts';
import { type Sandbox, SANDBOX_LEVELS, type SandboxLevel } from './sandbox/sandbox.ts';
import { WasmSandbox } from './sandbox/wasm.ts';
import { SERVICE, VERSION } from './version.ts';

export interface RunnerOptions extends RunnerConfig {
  /** Epoch milliseconds. */
  readonly now?: () => number;
  readonly log?: Logger;
  /** Instead of the sandboxes of this machine. */
  readonly sandboxes?: readonly Sandbox[];
  /** Instead of the place for relics of this machine. */
  readonly relicHost?: RelicHost;
}

export interface Runner {
  readonly url: string;
  readonly sandboxes: SandboxRegistry;
  /** Takes no new jobs, lets those that run end by themselves within the time that is set, then closes. */
  drain(): Promise<void>;
  /** Ends running jobs and everything that they started, then closes; resolves when nothing is left. */
  close(): Promise<void>;
}

/** @throws Error when the port is taken or the ledger cannot be opened */
export async function createRunner(options: RunnerOptions): Promise<Runner> {
  const now = options.now ?? Date.now;
  const maxima = options.maxima ?? MAXIMA;
  const log =
    options.log ?? pino({ level: options.logLevel, base: { service: SERVICE, version: VERSION } }, pino.destination(2));
  const stopping = new AbortController();
  const ledger = new Ledger(path.join(options.stateDir, 'runner', 'jobs.sqlite'), now);
  const { sandboxes, absent } =
    options.sandboxes === undefined ? sandboxesOf(options, log) : { sandboxes: options.sandboxes, absent: new Map() };
  const registry = await SandboxRegistry.open(sandboxes, absent, options.sandbox);
  const prewarmer = new Prewarmer(registry);
  const jobs: Jobs = new Jobs({
    ledger,
    sandboxes: registry,
    images: options.images,
    prewarmer,
    maxima,
    log,
    onEnd: (job) => metrics.jobEnded(job),
  });
  const authority = createAuthority(parseKeys(options.secret), ledger, now, options.publicHost);
  const relics = await openRelics(options, log, options.relicHost);
  const metrics: Metrics = createMetrics({
    jobs,
    relics,
    prewarmer,
    ledger,
    maxRunning: maxima.running,
    draining: () => jobs.draining,
  });
  const app = createApp({
    metrics,
    maxima,
    jobs,
    ledger,
    sandboxes: registry,
    relics,
    prewarmer,
    authority,
    log,
    stopping: stopping.signal,
  });

  const server = createAdaptorServer({ fetch: app.fetch });
  const address = await new Promise<AddressInfo>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => resolve(server.address() as AddressInfo));
  }).catch(async (fault: unknown) => {
    await relics.close();
    await registry.close();
    ledger.close();
    throw fault;
  });
  const pruning = setInterval(() => ledger.prune(), limits.pruneEveryMs);
  pruning.unref();

  let closing: Promise<void> | null = null;
  let hurry: () => void = () => undefined;
  async function close(): Promise<void> {
    clearInterval(pruning);
    await jobs.stop();
    stopping.abort();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      // streams have ended; what is idle needs no farewell
      setTimeout(() => 'closeAllConnections' in server && server.closeAllConnections(), 50);
    });
    await relics.close();
    await prewarmer.close();
    await registry.close();
    ledger.close();
  }
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  async function drain(): Promise<void> {
    const { running, queued } = jobs.counts;
    log.info({ running, queued, ms: options.drainMs }, 'draining: no new jobs are taken');
    relics.drain();
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, options.drainMs ?? limits.drainSeconds * 1_000);
    });
    // what closes meanwhile has no need of patience
    await Promise.race([jobs.drain(), patience, new Promise((resolve) => (hurry = () => resolve(null)))]);
    clearTimeout(timer);
    await (closing ??= close());
  }
  return {
    drain,
    url: `http://${host}:${address.port}`,
    sandboxes: registry,
    close: () => {
      hurry();
      return (closing ??= close());
    },
  };
}

function sandboxesOf(
  options: RunnerOptions,
  log: Logger,
): { readonly sandboxes: readonly Sandbox[]; readonly absent: ReadonlyMap<SandboxLevel, string> } {
  const absent = new Map<SandboxLevel, string>();
  const sandboxes: Sandbox[] = [];
  const wanted = (level: SandboxLevel): boolean => options.sandbox === null || options.sandbox === level;
  if (options.dockerSocket === 'off') absent.set('docker', 'switched off (RUNNER_DOCKER=off)');
  else if (wanted('docker')) {
    const docker = new DockerSandbox({
      socket: options.dockerSocket,
      stateDir: options.stateDir,
      warm: options.warm,
      images: options.baseImages,
      allowed: options.images,
      pipIndex: options.pipIndex,
      log: (message) => log.info(message),
    });
    sandboxes.push(docker);
  }
  if (wanted('bubblewrap')) sandboxes.push(new BubblewrapSandbox(options.warm));
  if (!options.allowProcess) absent.set('process', 'not allowed; RUNNER_ALLOW_PROCESS=1 allows it');
  else if (wanted('process')) {
    log.warn('jobs may run as plain processes, with the rights of this user (RUNNER_ALLOW_PROCESS)');
    sandboxes.push(new ProcessSandbox());
  }
  if (wanted('wasm')) {
    const wasm = new WasmSandbox({
      stateDir: options.stateDir,
      warm: options.warm,
      warn: (message) => log.warn(message),
    });
    sandboxes.push(wasm);
  }
  for (const level of SANDBOX_LEVELS) {
    if (!wanted(level)) absent.set(level, `the operator allows only ${options.sandbox}`);
  }
  return { sandboxes, absent };
}
