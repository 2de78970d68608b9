/** The service as a process: its ready line, its settings, its stop (R1, H8). */
import { once } from 'node:events';
import fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { startCollector } from './support/collector.ts';
import { isAlive, treeOf } from './support/processes.ts';
import { launchRunner, type RunnerProcess } from './support/runner-process.ts';
import { SECRET, signed } from './support/test-runner.ts';
import { eventually } from '../../test/support/eventually.ts';
import { lacks } from '../../test/support/programs.ts';

const SLOW = 90_000;

let stateDir: string;
let started: RunnerProcess[];
beforeEach(async () => {
  stateDir = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-main-'));
  started = [];
});
afterEach(async () => {
  for (const { child } of started) child.kill('SIGKILL');
  await fs.rm(stateDir, { recursive: true, force: true });
});

function launch(env: Record<string, string>): RunnerProcess {
  const service = launchRunner(stateDir, env);
  started.push(service);
  return service;
}

test('[R1] prints one line of JSON when it is ready, with its configuration', { timeout: SLOW }, async () => {
  const service = launch({ RUNNER_SANDBOX: 'wasm' });
  expect(await service.ready()).toMatchObject({
    ready: true,
    service: 'container-runner',
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    sandbox: { python3: 'wasm', shell: 'wasm', node: null },
  });
  service.child.kill('SIGTERM');
  expect(await service.ended).toBe(0);
});

// The job runs the machine's own programs.
test.skipIf(lacks('sleep'))(
  '[R4] [R8] after the drain time, SIGTERM ends all jobs and everything that they started',
  { timeout: SLOW },
  async () => {
    const service = launch({ RUNNER_SANDBOX: 'process', RUNNER_ALLOW_PROCESS: '1', RUNNER_DRAIN_SECONDS: '0.3' });
    const { url } = await service.ready();
    const body = JSON.stringify({ kind: 'shell', session: 's', code: 'sleep 601 & echo in; sleep 602' });
    expect((await fetch(await signed(url, 'PUT', '/jobs/a', body))).status).toBe(202);
    const tree = await eventually(() => {
      const pids = treeOf(service.child.pid ?? 0);
      expect(pids.length).toBeGreaterThanOrEqual(3);
      return pids;
    });
    service.child.kill('SIGTERM');
    expect(await service.ended).toBe(0);
    await eventually(() => expect(tree.filter(isAlive)).toEqual([]));
  },
);

// The job runs the machine's own programs.
describe.skipIf(lacks('sleep', 'touch'))('SIGTERM', () => {
  const launched = async (drainSeconds: string): Promise<{ readonly service: RunnerProcess; readonly url: string }> => {
    const service = launch({
      RUNNER_SANDBOX: 'process',
      RUNNER_ALLOW_PROCESS: '1',
      RUNNER_DRAIN_SECONDS: drainSeconds,
    });
    const { url } = await service.ready();
    const code = 'touch here; while [ ! -e "$proxy" ]; do sleep 0.05; done; echo finished';
    const body = JSON.stringify({ kind: 'shell', session: 's', code, inputs: { proxy: path.join(stateDir, 'proxy') } });
    expect((await fetch(await signed(url, 'PUT', '/jobs/a', body))).status).toBe(202);
    return { service, url };
  };
  const another = async (url: string): Promise<Response> =>
    await fetch(await signed(url, 'PUT', '/jobs/b', JSON.stringify({ kind: 'shell', session: 's', code: 'true' })));

  test('[R8] refuses new jobs with Retry-After, and lets running ones end', { timeout: SLOW }, async () => {
    const { service, url } = await launched('20');
    service.child.kill('SIGTERM');
    const refused = await eventually(async () => {
      const response = await another(url);
      expect(response.status).toBe(503);
      return response;
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ status: 'draining', jobs: { running: 1 } });
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('cortex_runner_draining 1');
    // a repeated request is still the same job
    await fs.writeFile(path.join(stateDir, 'proxy'), '');
    expect(await service.ended).toBe(0);
    const next = launch({ RUNNER_SANDBOX: 'process', RUNNER_ALLOW_PROCESS: '1' });
    const again = await next.ready();
    const record = await (await fetch(await signed(again.url, 'GET', '/jobs/a', ''))).json();
    expect(record).toMatchObject({ state: 'ended', end: 'exited', exit_code: 0, stdout: 'finished\n' });
  });

  test('[R8] twice, or followed by SIGINT, ends jobs at once', { timeout: SLOW }, async () => {
    const { service, url } = await launched('600');
    service.child.kill('SIGTERM');
    await eventually(async () => expect((await another(url)).status).toBe(503));
    service.child.kill('SIGINT');
    expect(await service.ended).toBe(0);
  });
});

test('[R1] logs are lines of JSON without secrets, code and inputs', { timeout: SLOW }, async () => {
  const service = launch({ RUNNER_SANDBOX: 'process', RUNNER_ALLOW_PROCESS: '1', RUNNER_LOG: 'debug' });
  const { url } = await service.ready();
  const body = JSON.stringify({
    kind: 'shell',
    session: 's',
    code: 'echo hidden-code $x',
    inputs: { x: 'hidden-input' },
  });
  await fetch(await signed(url, 'PUT', '/jobs/a', body));
  await fetch(await signed(url, 'PUT', '/jobs/b', '{"hidden": "in a body"}'));
  await fetch(`${url}/jobs/c`, { method: 'PUT', body, headers: { authorization: 'Bearer hidden-token' } });
  await eventually(() => expect(service.err()).toContain('job ended'));
  // after the last line is complete
  const closed = once(service.child, 'close');
  service.child.kill('SIGTERM');
  expect(await closed).toEqual([0, null]);
  const lines = service
    .err()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.find(({ msg }) => msg === 'job ended')).toMatchObject({ job: 'a', end: 'exited', sandbox: 'process' });
  expect(lines.filter(({ msg }) => msg === 'request')).toEqual(
    expect.arrayContaining([expect.objectContaining({ method: 'PUT', route: '/jobs/:id', status: 401 })]),
  );
  expect(service.err()).not.toMatch(/hidden/);
  expect(service.err()).not.toContain(SECRET);
});

test(
  '[R1] a killed runner leaves no process running, and reports lost jobs after the restart',
  { timeout: SLOW },
  async () => {
    const service = launch({ RUNNER_SANDBOX: 'wasm' });
    const { url } = await service.ready();
    const body = JSON.stringify({ kind: 'python', session: 's', code: 'print("in")\nwhile True: pass' });
    await fetch(await signed(url, 'PUT', '/jobs/a', body));
    await eventually(async () => {
      const record = (await (await fetch(await signed(url, 'GET', '/jobs/a', ''))).json()) as { stdout: string };
      expect(record.stdout).toBe('in\n');
    });
    const tree = treeOf(service.child.pid ?? 0);
    expect(tree.length).toBeGreaterThan(0);
    service.child.kill('SIGKILL');
    await service.ended;
    // setpriv ends them with the runner.
    if (process.platform === 'linux' && !lacks('setpriv')) {
      await eventually(() => expect(tree.filter(isAlive)).toEqual([]));
    }
    const next = launch({ RUNNER_SANDBOX: 'wasm' });
    const again = await next.ready();
    const record = await (await fetch(await signed(again.url, 'GET', '/jobs/a', ''))).json();
    expect(record).toMatchObject({ state: 'ended', end: 'lost', stdout: 'in\n' });
  },
);

/** A program that prints the packages of the SDK that the runner loads. */
const REPORT_PACKAGES = `data:text/javascript,${encodeURIComponent(
  `import { registerHooks } from 'node:module';
   registerHooks({ load(url, context, next) {
     const [, name] = /node_modules.@opentelemetry.([\\w-]+)/.exec(url) ?? [];
     if (name !== undefined) process.stderr.write('loaded ' + name + '\\n');
     return next(url, context);
   } });`,
)}`;

describe('spans of jobs', () => {
  const PLAIN = { RUNNER_SANDBOX: 'process', RUNNER_ALLOW_PROCESS: '1', NODE_OPTIONS: `--import ${REPORT_PACKAGES}` };
  const runJob = async (url: string): Promise<void> => {
    const body = JSON.stringify({ kind: 'shell', session: 's', code: 'echo "$TRACEPARENT"' });
    await fetch(await signed(url, 'PUT', '/jobs/a', body));
    await eventually(async () => {
      const record = await (await fetch(await signed(url, 'GET', '/jobs/a', ''))).json();
      expect(record).toMatchObject({ state: 'ended' });
    });
  };

  test('[O1] are exported before the runner ends', { timeout: SLOW }, async () => {
    const collector = await startCollector();
    const service = launch({
      ...PLAIN,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20t',
      OTEL_SERVICE_NAME: 'runner-of-the-test',
    });
    await runJob((await service.ready()).url);
    service.child.kill('SIGTERM');
    expect(await service.ended).toBe(0);
    expect(service.err()).toContain('loaded sdk-trace\n');
    expect(collector.faults).toEqual([]);
    expect(collector.spans.map(({ name }) => name)).toEqual(['job shell', 'queued', 'prepare', 'run']);
    expect(collector.requests[0]).toMatchObject({
      path: '/v1/traces',
      headers: { authorization: 'Bearer t' },
      resource: { 'service.name': 'runner-of-the-test' },
    });
    await collector.close();
  });

  test('[O1] without an endpoint, the SDK is not loaded', { timeout: SLOW }, async () => {
    const service = launch({ ...PLAIN, OTEL_SERVICE_NAME: 'x' });
    await runJob((await service.ready()).url);
    service.child.kill('SIGTERM');
    expect(await service.ended).toBe(0);
    // prom-client loads the interface, which is no SDK
    expect([...service.err().matchAll(/^loaded (.*)$/gm)].filter(([, name]) => name !== 'api')).toEqual([]);
  });
});

test('[H8] a port in use is reported with advice', async () => {
  const holder = net.createServer();
  await new Promise<void>((resolve) => {
    holder.listen(0, '127.0.0.1', resolve);
  });
  const { port } = holder.address() as net.AddressInfo;
  const service = launch({ RUNNER_PORT: String(port), RUNNER_SANDBOX: 'process', RUNNER_ALLOW_PROCESS: '1' });
  expect(await service.ended).toBe(1);
  expect(service.err()).toContain(`port ${port} is in use; set RUNNER_PORT`);
  holder.close();
});

test('[H8] a setting that is not valid is refused at start with its name', async () => {
  const service = launch({ RUNNER_PORT: 'http' });
  expect(await service.ended).toBe(1);
  expect(service.err()).toContain('RUNNER_PORT');
  expect(service.out()).toBe('');
});
