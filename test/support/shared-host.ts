/**
 * The process behind shared.ts, for all files of the tests of the whole system: a system with the demo model and a runner, one
 * with the demo model and API keys, and a Chromium. Each starts when it is first asked for. The process ends, with all of them,
 * when its standard input does.
 */
import { createServer } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { freePort, portIsFree } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import { launchServer } from './chromium.ts';
import { DEPLOYMENT } from './shared.ts';

const folder = mkdtempSync(join(tmpdir(), 'cortex-shared-'));
const ends: (() => Promise<void>)[] = [];

/** More than the files need. */
const PORTS = 100;
const NAMESPACES = 50;

/** Both systems may call these ports of this machine, and answer the pages that they serve. */
const ports = new Set<number>();
while (ports.size < PORTS) ports.add(await freePort());
const unusedPorts = [...ports];
const OPEN_TO_TESTS = {
  ALLOW_HOSTS: [...ports].map((port) => `127.0.0.1:${port}`).join(','),
  ALLOWED_ORIGINS: [...ports].map((port) => `http://127.0.0.1:${port}`).join(','),
};
const namespaces = Array.from({ length: NAMESPACES }, (_, n) => ({ name: `space-${n}`, key: `the-key-of-space-${n}` }));
const API_KEYS = namespaces.map(({ name, key }) => `${name}:admin:${key}`).join(',');

async function start(vars: Readonly<Record<string, string>>, ownRunner: boolean): Promise<string> {
  const started = await startSystem({
    port: await freePort(),
    runnerPort: ownRunner ? await freePort() : 0,
    stateDir: withSnapshot(mkdtempSync(join(folder, 'state-'))),
    vars: { LLM_PROVIDER: 'demo', ...OPEN_TO_TESTS, ...vars },
    ownRunner,
    progress: () => undefined,
  });
  ends.push(async () => await started.stop());
  return started.url;
}

const system = async (): Promise<string> => await start({}, true);
const keyed = async (): Promise<string> => await start({ API_KEYS, ...DEPLOYMENT }, false);

/** Another one for each request. */
async function port(): Promise<string> {
  const next = unusedPorts.pop();
  if (next === undefined) throw new Error(`All ${PORTS} ports are in use`);
  return (await portIsFree(next)) ? String(next) : await port();
}

/** Another one for each request. */
async function namespace(): Promise<string> {
  const next = namespaces.pop();
  if (next === undefined) throw new Error(`All ${NAMESPACES} namespaces are in use`);
  return JSON.stringify(next);
}

async function chromium(): Promise<string> {
  const server = await launchServer();
  ends.push(async () => await server.close());
  return server.wsEndpoint();
}

type Parts = Readonly<Record<string, () => Promise<string>>>;
const parts: Parts = { '/system': system, '/keyed': keyed, '/chromium': chromium };
const eachTime: Parts = { '/port': port, '/namespace': namespace };
const started = new Map<string, Promise<string>>();

const server = createServer((request, response) => {
  const path = request.url ?? '';
  const begin = parts[path];
  const answer = begin === undefined ? eachTime[path]?.() : (started.get(path) ?? begin());
  if (answer === undefined) return void response.writeHead(404).end();
  if (begin !== undefined) started.set(path, answer);
  answer.then(
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
