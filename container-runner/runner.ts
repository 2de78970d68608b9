/** Assembles the runner: ledger, sandboxes, jobs, routes, server. */
import type { AddressInfo } from 'node:net';

import { getRequestListener, type ServerType } from '@hono/node-server';
import type { Hono } from 'hono';
import { type Logger, pino } from 'pino';

import { createApp } from './app.ts';
import { createAuthority } from './auth.ts';
import type { RunnerConfig } from './config.ts';
import { createResolve } from './egress/resolve.ts';
import type { Egress } from './egress/routes.ts';
import { createSender } from './egress/send.ts';
import { Jobs } from './jobs/jobs.ts';
import { parseKeys } from './keys.ts';
import type { JobRecord, Ledger } from './ledger/ledger.ts';
import { openLedger } from './ledger/open-ledger.ts';
import { limits } from './limits.ts';
import { createHostCheckedServer } from './host-header.ts';
import { DEFAULT_OPERATOR_LIMITS } from './operator-limits.ts';
import { openRelics } from './relics/open-relics.ts';
import type { RelicHost } from './relics/relic-service.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { Prewarmer } from './prewarm.ts';
import { killAbandoned } from './sandbox/abandoned.ts';
import { BubblewrapSandbox } from './sandbox/bubblewrap.ts';
import { DockerSandbox } from './sandbox/docker.ts';
import { ProcessSandbox } from './sandbox/process.ts';
import { SandboxRegistry } from './sandbox/registry.ts';
import { type Sandbox, SANDBOX_LEVELS, type SandboxLevel } from './sandbox/sandbox.ts';
import { WasmSandbox } from './sandbox/wasm.ts';
import { StateFolder } from './state.ts';
import { type ImageListener, Startup } from './startup.ts';
import { recordedTrace, SPANS_OF_JOB, spansOf } from './telemetry/job-trace.ts';
import type { SpanExport } from './telemetry/span-export.ts';
import { SERVICE, VERSION } from './version.ts';
import { FileCache } from './workspace/file-cache.ts';

export interface RunnerOptions extends RunnerConfig {
  /** Time between TERM and KILL of a job, in milliseconds; default: limits.ts. */
  readonly killGraceMs?: number;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  readonly log?: Logger;
  /** Replaces the sandboxes of this machine. */
  readonly sandboxes?: readonly Sandbox[];
  /** Replaces the relic host of this machine. */
  readonly relicHost?: RelicHost;
  /** Replaces the network of this machine. */
  readonly egressParts?: Egress;
}

export interface Runner {
  readonly url: string;
  readonly sandboxes: SandboxRegistry;
  /** Accepts no new jobs, waits for running ones up to the drain time, then closes. */
  drain(): Promise<void>;
  /** Kills running jobs and closes; resolves when everything is cleaned up. */
  close(): Promise<void>;
}

/**
 * Starts the server first, so that callers see that the runner is starting. Resolves when it accepts jobs.
 *
 * @throws Error if the port is in use or the ledger cannot be opened
 */
export async function createRunner(options: RunnerOptions): Promise<Runner> {
  const now = options.now ?? Date.now;
  const startup = new Startup(now);
  let answer: (request: Request, env: unknown) => Response | Promise<Response> = startup.fetch;
  const server = createHostCheckedServer(getRequestListener((request, env) => answer(request, env)));
  const address = await new Promise<AddressInfo>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => resolve(server.address() as AddressInfo));
  });
  try {
    const { runner, app } = await openRunner(options, server, address, startup, now);
    answer = (request, env) => app.fetch(request, env as object);
    return runner;
  } catch (fault) {
    server.close();
    throw fault;
  }
}

/** Everything except the server. */
async function openRunner(
  options: RunnerOptions,
  server: ServerType,
  address: AddressInfo,
  startup: Startup,
  now: () => number,
): Promise<{ readonly runner: Runner; readonly app: Hono }> {
  const operatorLimits = options.operatorLimits ?? DEFAULT_OPERATOR_LIMITS;
  const log =
    options.log ?? pino({ level: options.logLevel, base: { service: SERVICE, version: VERSION } }, pino.destination(2));
  const stopping = new AbortController();
  const state = new StateFolder(options.stateDir, {
    now,
    onSetAside: (file, reason) => log.error({ file, reason }, 'an unusable file was renamed and replaced'),
  });
  const ledger = openLedger(state, now);
  const files = new FileCache(state, now);
  const abandoned = killAbandoned();
  if (abandoned > 0) log.warn({ processes: abandoned }, 'processes of a runner that was killed are ended');
  const { sandboxes, absent } =
    options.sandboxes === undefined
      ? sandboxesOf(options, state, log, startup.image)
      : { sandboxes: options.sandboxes, absent: new Map() };
  const registry = await SandboxRegistry.open(sandboxes, absent, options.sandbox);
  const prewarmer = new Prewarmer(registry);
  const spans = await openSpans(options, ledger, log);
  const ended = (job: JobRecord): void => {
    metrics.jobEnded(job, spans === null ? null : recordedTrace(job));
    spans?.record(spansOf(job));
  };
  const jobs: Jobs = new Jobs({
    ledger,
    sandboxes: registry,
    files,
    images: options.images,
    prewarmer,
    operatorLimits,
    killGraceMs: options.killGraceMs ?? limits.killGraceMs,
    log,
    now,
    exportsSpans: spans !== null,
    onEnd: ended,
  });
  const authority = createAuthority(parseKeys(options.secret), ledger, now, options.publicHost);
  const relics = await openRelics(options, state, log, options.relicHost);
  const metrics: Metrics = createMetrics({
    jobs,
    sandboxes: registry,
    relics,
    prewarmer,
    ledger,
    files,
    spans,
    maxRunning: operatorLimits.running,
    draining: () => jobs.draining,
  });
  // what the previous process has not reported
  for (const job of ledger.lostAtStart()) metrics.jobEnded(job, null);
  if (spans !== null) for (const job of ledger.spansDue(limits.spanQueue / SPANS_OF_JOB)) spans.record(spansOf(job));
  const sender = createSender();
  const egress: Egress | null =
    options.egress === false ? null : (options.egressParts ?? { resolve: createResolve(), sender });
  const app = createApp({
    metrics,
    operatorLimits,
    jobs,
    ledger,
    state,
    files,
    sandboxes: registry,
    relics,
    prewarmer,
    egress,
    authority,
    log,
    stopping: stopping.signal,
  });

  const pruning = setInterval(() => {
    for (const [name, part] of [
      ['the ledger', ledger],
      ['the cache of files', files],
    ] as const) {
      try {
        part.prune();
      } catch (fault) {
        log.error({ reason: fault instanceof Error ? fault.message : String(fault) }, `${name} cannot be pruned`);
      }
    }
  }, limits.pruneEveryMs);
  pruning.unref();

  let closing: Promise<void> | null = null;
  let skipWait: () => void = () => undefined;
  async function close(): Promise<void> {
    clearInterval(pruning);
    await jobs.stop();
    stopping.abort();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      // all streams have ended; only idle connections remain
      setTimeout(() => 'closeAllConnections' in server && server.closeAllConnections(), 50);
    });
    sender.close();
    await relics.close();
    await prewarmer.close();
    await registry.close();
    await spans?.close();
    ledger.close();
  }
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  async function drain(): Promise<void> {
    const { running, queued } = jobs.counts;
    log.info({ running, queued, ms: options.drainMs }, 'draining: no new jobs are accepted');
    relics.drain();
    let timer: NodeJS.Timeout | undefined;
    const drainTimeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, options.drainMs ?? limits.drainSeconds * 1_000);
    });
    // `close` skips the wait
    await Promise.race([jobs.drain(), drainTimeout, new Promise((resolve) => (skipWait = () => resolve(null)))]);
    clearTimeout(timer);
    await (closing ??= close());
  }
  const runner: Runner = {
    drain,
    url: `http://${host}:${address.port}`,
    sandboxes: registry,
    close: () => {
      skipWait();
      return (closing ??= close());
    },
  };
  return { runner, app };
}

/** Loads the SDK only if there is an endpoint. */
async function openSpans({ spans }: RunnerOptions, ledger: Ledger, log: Logger): Promise<SpanExport | null> {
  if (spans === undefined || spans === null) return null;
  const { SpanExport } = await import('./telemetry/span-export.ts');
  return new SpanExport(spans, {
    service: SERVICE,
    version: VERSION,
    onSettled: (jobs) => {
      try {
        ledger.spansDone(jobs);
      } catch (fault) {
        // they are exported again after the next start, with the same ids
        log.error({ reason: fault instanceof Error ? fault.message : String(fault) }, 'the ledger cannot be written');
      }
    },
    onState: (reason) => {
      if (reason === null) log.info('spans are exported again');
      else log.warn({ reason }, 'spans are not exported');
    },
  });
}

function sandboxesOf(
  options: RunnerOptions,
  state: StateFolder,
  log: Logger,
  onImage: ImageListener,
): { readonly sandboxes: readonly Sandbox[]; readonly absent: ReadonlyMap<SandboxLevel, string> } {
  const absent = new Map<SandboxLevel, string>();
  const sandboxes: Sandbox[] = [];
  const wanted = (level: SandboxLevel): boolean => options.sandbox === null || options.sandbox === level;
  if (options.dockerSocket === 'off') absent.set('docker', 'disabled (RUNNER_DOCKER=off)');
  else if (wanted('docker')) {
    const docker = new DockerSandbox({
      socket: options.dockerSocket,
      state,
      warm: options.warm,
      images: options.baseImages,
      allowed: options.images,
      pipIndex: options.pipIndex,
      log: (message) => log.info(message),
      onImage,
    });
    sandboxes.push(docker);
  }
  if (wanted('bubblewrap')) sandboxes.push(new BubblewrapSandbox(options.warm));
  if (!options.allowProcess) absent.set('process', 'disabled; set RUNNER_ALLOW_PROCESS=1 to enable it');
  else if (wanted('process')) {
    log.warn('jobs may run as plain processes with the permissions of this user (RUNNER_ALLOW_PROCESS)');
    sandboxes.push(new ProcessSandbox());
  }
  if (wanted('wasm')) {
    const wasm = new WasmSandbox({
      state,
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
