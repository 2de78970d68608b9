/** A real collector in its own process, and a proxy in front of it that fails as a test asks. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../cli/system/services.ts';

const require = createRequire(import.meta.url);
/** Only a process that hangs takes so long. */
const MOST_MS = 60_000;
const POLL_MS = 50;

/** A span as the collector returns it. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: string };
  readonly links: readonly { readonly spanId?: string; readonly context?: { readonly spanId: string } }[];
}

export interface CollectedTrace {
  readonly traceId: string;
  readonly spans: readonly CollectedSpan[];
}

export interface Collector extends AsyncDisposable {
  readonly url: string;
  traces(): Promise<readonly CollectedTrace[]>;
}

/** The package `autotel-devtools`: it stores what it receives, and its page shows it. */
export async function startCollector(): Promise<Collector> {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const args = ['--port', String(port), '--host', '127.0.0.1', '--grpc-port', String(grpcPort)];
  const main = new URL('cli.js', `file://${require.resolve('autotel-devtools')}`);
  const child = spawn(process.execPath, [main.pathname, ...args], { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  try {
    await answering(`${url}/healthz`, child);
  } catch (fault) {
    child.kill('SIGKILL');
    throw fault;
  }
  return {
    url,
    traces: async () => {
      const response = await fetch(`${url}/v1/traces`);
      return ((await response.json()) as { readonly traces: readonly CollectedTrace[] }).traces;
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

async function answering(url: string, child: ChildProcess): Promise<void> {
  const until = Date.now() + MOST_MS;
  while (Date.now() < until && child.exitCode === null) {
    const isReady = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
    await delay(POLL_MS);
  }
  throw new Error(`The collector does not answer at ${url} (exit code ${child.exitCode})`);
}

/** What the sink does with a request: forwards it; answers 503; never answers; forwards it and reports that a part was dropped. */
export type SinkMode = 'forward' | 'refuse' | 'stall' | 'partial';

export interface Sink extends AsyncDisposable {
  readonly url: string;
  mode: SinkMode;
  /** Paths of the requests, with the mode at the time. */
  readonly seen: readonly (readonly [mode: SinkMode, path: string])[];
  /** Bodies of the requests for metrics that were forwarded. */
  readonly metrics: readonly string[];
}

export async function startSink(collector: string): Promise<Sink> {
  const seen: [SinkMode, string][] = [];
  const metrics: string[] = [];
  const state = { mode: 'forward' as SinkMode };
  const server: Server = createServer((request, response) => void handle(request, response));
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { mode } = state;
    const path = request.url ?? '/';
    seen.push([mode, path]);
    let body = '';
    for await (const chunk of request) body += String(chunk);
    if (mode === 'stall') return;
    if (mode === 'refuse') {
      response.writeHead(503, { 'retry-after': '1' }).end();
      return;
    }
    if (path.endsWith('/metrics')) metrics.push(body);
    const answer = await fetch(`${collector}${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': request.headers['content-type'] ?? '' },
    });
    const text = await answer.text();
    const partial = { partialSuccess: { rejectedSpans: '1', errorMessage: 'one was too old' } };
    response
      .writeHead(answer.status, { 'content-type': 'application/json' })
      .end(mode === 'partial' ? JSON.stringify(partial) : text);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get mode() {
      return state.mode;
    },
    set mode(mode) {
      state.mode = mode;
    },
    seen,
    metrics,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
