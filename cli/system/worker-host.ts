/**
 * Runs the Worker on this machine: what `wrangler dev` does, without its inspector, its registry of Workers and its proxy,
 * whose listeners every user and web page of the machine can reach. The Front is the only listener for clients.
 *
 * usage: node cli/system/worker-host.ts <HostOptions as JSON>
 */
import { existsSync } from 'node:fs';
import { unstable_DevEnv as DevEnv } from 'wrangler';
import { messageOf } from '../../src/domain/errors.ts';
import { Front } from './front.ts';
import { INSPECTOR_PREFIX, startInspector } from './inspector.ts';
import type { Inspector } from './inspector.ts';
import { makeWorkerdPrivate, workerdSockets } from './private-workerd.ts';
import type { Upstream } from './private-workerd.ts';

export interface HostOptions {
  readonly port: number;
  /** Its configuration; null: that of the current folder. */
  readonly config: string | null;
  readonly persistTo: string;
  readonly envFile: string;
  /** For the sockets of workerd. */
  readonly socketFolder: string;
  readonly inspect: boolean;
}

type Proxy = InstanceType<typeof DevEnv>['proxy'];
type ProxyData = Parameters<Proxy['onReloadComplete']>[0]['proxyData'];
type UrlParts = ProxyData['userWorkerUrl'];
type InspectorUrl = NonNullable<ProxyData['userWorkerInspectorUrl']>;

const options = JSON.parse(process.argv[2] ?? '') as HostOptions;
/** The workerd of Windows cannot listen on Unix sockets. */
const sockets = process.platform === 'win32' ? null : workerdSockets(options.socketFolder);
const front = new Front();
let inspector: Inspector | null = null;
let inspected: InspectorUrl | null = null;
let isStopping = false;

/** Where workerd listens. @throws Error if its listener was not moved */
function upstreamOf({ hostname = '', port }: UrlParts): Upstream {
  if (sockets === null) return { host: hostname, port: Number(port) };
  if (!existsSync(sockets.entry)) throw new Error('This version of wrangler opens a port of workerd that has no guard');
  return { socketPath: sockets.entry };
}

function play({ userWorkerUrl, userWorkerInspectorUrl }: ProxyData): void {
  try {
    inspected = userWorkerInspectorUrl ?? null;
    front.play(upstreamOf(userWorkerUrl));
  } catch (fault) {
    fail(fault);
  }
}

function inspectorTarget(): { readonly upstream: Upstream; readonly path: string } | null {
  if (inspected === null || sockets === null) return null;
  return { upstream: { host: sockets.inspectorHost, port: Number(inspected.port) }, path: inspected.pathname ?? '/' };
}

/** Replaces wrangler's own proxy, a second workerd. */
const proxy = {
  ready: Promise.withResolvers<never>(),
  onConfigUpdate: () => front.pause(),
  onBundleStart: () => front.pause(),
  onReloadStart: () => front.pause(),
  onReloadComplete: ({ proxyData }: { readonly proxyData: ProxyData }) => play(proxyData),
  teardown: () => Promise.resolve(front.close()),
};
proxy.ready.promise.catch(() => undefined);

makeWorkerdPrivate(sockets, () => fail(new Error('workerd has ended')));
const environment = new DevEnv({ proxyFactory: () => proxy as unknown as Proxy });

async function stop(code: number): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  inspector?.close();
  await environment.teardown().catch(() => undefined);
  process.exit(code);
}

function fail(fault: unknown): void {
  if (!isStopping) console.error(`✘ [ERROR] ${messageOf(fault)}`);
  void stop(1);
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void stop(0));
environment.on('error', (event: unknown) => {
  const { cause = event } = event as { readonly cause?: unknown };
  fail(cause);
});

try {
  await front.listen(options.port);
  if (options.inspect) {
    inspector = await startInspector(inspectorTarget);
    console.log(
      `${INSPECTOR_PREFIX} devtools://devtools/bundled/js_app.html?ws=${inspector.address} (in Chrome), or ws://${inspector.address}`,
    );
  }
  await environment.startWorker({
    ...(options.config === null ? {} : { config: options.config }),
    envFiles: [options.envFile],
    dev: {
      server: { hostname: '127.0.0.1', port: options.port },
      inspector: options.inspect ? { hostname: '127.0.0.1', port: 0 } : false,
      persist: options.persistTo,
      // The Host is that of the request, also if the project has routes.
      inferOriginFromRoutes: false,
    },
  });
} catch (fault) {
  fail(fault);
}
