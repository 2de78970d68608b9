/**
 * The process behind shared.ts: one system with the demo model and a runner, and one Chromium, for all files of the tests of the
 * whole system. Each starts when it is first asked for. The process ends, with both, when its standard input does.
 */
import { createServer } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import { launchServer } from './chromium.ts';

const folder = mkdtempSync(join(tmpdir(), 'cortex-shared-'));
const ends: (() => Promise<void>)[] = [];

async function system(): Promise<string> {
  const started = await startSystem({
    port: await freePort(),
    runnerPort: await freePort(),
    stateDir: withSnapshot(folder),
    vars: { LLM_PROVIDER: 'demo' },
    ownRunner: true,
    progress: () => undefined,
  });
  ends.push(async () => await started.stop());
  return started.url;
}

async function chromium(): Promise<string> {
  const server = await launchServer();
  ends.push(async () => await server.close());
  return server.wsEndpoint();
}

const parts: Readonly<Record<string, () => Promise<string>>> = { '/system': system, '/chromium': chromium };
const started = new Map<string, Promise<string>>();

const server = createServer((request, response) => {
  const path = request.url ?? '';
  const start = parts[path];
  if (start === undefined) return void response.writeHead(404).end();
  const address = started.get(path) ?? start();
  started.set(path, address);
  address.then(
    (text) => response.end(text),
    (fault: unknown) => response.writeHead(500).end(fault instanceof Error ? fault.stack : String(fault)),
  );
}).listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});

process.stdin.resume().on('end', () => void end());

async function end(): Promise<void> {
  server.closeAllConnections();
  server.close();
  await Promise.allSettled(started.values());
  await Promise.allSettled(ends.map(async (stop) => await stop()));
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
}
