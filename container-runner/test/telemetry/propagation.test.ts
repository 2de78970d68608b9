/** The header `traceparent` on its way through the runner: into the ledger, to programs and to relics (O1). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { RelicProxy, proxyCommand } from '../../relics/relic-proxy.ts';
import { FakeRelicHost } from '../support/fake-relic-host.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';
import { job, startRunner, type TestRunner } from '../support/test-runner.ts';
import { lacks } from '../../../test/support/programs.ts';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const OTHER = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-b7ad6b7169203331-01';

describe('a job', () => {
  let sandbox: FakeSandbox;
  let runner: TestRunner;
  beforeEach(async () => {
    sandbox = new FakeSandbox('docker');
    runner = await startRunner({ sandboxes: [sandbox] });
  });
  afterEach(async () => {
    await runner.close();
  });
  const traces = (): (string | undefined)[] => sandbox.started.map(({ launch }) => launch.env['TRACEPARENT']);

  test.each([
    ['python', { kind: 'python', code: 'x' }],
    ['shell', { kind: 'shell', code: 'x', inputs: { TRACEPARENT: 'forged' } }],
    ['docker', { kind: 'docker', image: 'busybox', inputs: { TRACEPARENT: 'forged' } }],
    ['a script', { kind: 'tool', runtime: 'node', code: 'x' }],
    ['an image', { kind: 'tool', image: 'busybox' }],
    ['a build', { kind: 'tool', build: { files: { 'main.py': 'x' }, entrypoint: 'main.py' } }],
  ])('[O1] of %s passes the trace of its request to the program', async (_, body) => {
    expect((await runner.put('a', job(body), { traceparent: TRACEPARENT })).status).toBe(202);
    await expect.poll(traces).toEqual([TRACEPARENT]);
  });

  test('[O1] with an invalid header, or none, runs without a trace', async () => {
    const headers: Record<string, string>[] = [{ traceparent: 'x' }, { traceparent: `${TRACEPARENT}-more` }, {}];
    for (const [at, given] of headers.entries()) {
      expect((await runner.put(`job-${at}`, job({ kind: 'python', code: 'x' }), given)).status).toBe(202);
    }
    expect(traces()).toEqual([undefined, undefined, undefined]);
  });

  test('[O1] [R1] that is submitted again keeps its trace: the header is not part of the request', async () => {
    const body = job({ kind: 'python', code: 'x' });
    await runner.put('a', body, { traceparent: TRACEPARENT });
    expect((await runner.put('a', body, { traceparent: OTHER })).status).toBe(200);
    expect((await runner.put('a', body)).status).toBe(200);
    expect(traces()).toEqual([TRACEPARENT]);
  });
});

describe('a relic', () => {
  test('[O1] gets the trace of a call, and none for other requests', async () => {
    const host = new FakeRelicHost();
    const runner = await startRunner({ sandboxes: [new FakeSandbox()], relicHost: host });
    try {
      const relic = { image: 'x', port: 80, health: { path: '/health' } };
      const call = { space: 'ses_1', relic, call: { method: 'GET', path: '/' } };
      for (const headers of [{ traceparent: TRACEPARENT }, { traceparent: 'x' }, {}]) {
        await (await runner.ask('POST', '/relics/r/call', call, headers as Record<string, string>)).text();
      }
      expect(host.started[0]?.calls.map(({ traceparent }) => traceparent)).toEqual([TRACEPARENT, undefined, undefined]);
    } finally {
      await runner.close();
    }
  });

  test.skipIf(lacks('python3'))('[O1] [R5] gets it as an HTTP header from its proxy', async () => {
    const seen: (string | undefined)[] = [];
    const service = createServer((request, response) => {
      seen.push(request.headers['traceparent'] as string | undefined);
      response.end('{}');
    });
    await once(service.listen(0, '127.0.0.1'), 'listening');
    const [command = '', ...args] = proxyCommand('python3', (service.address() as AddressInfo).port);
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    try {
      const proxy = new RelicProxy(child.stdin, child.stdout);
      const call = { method: 'GET', path: '/', body: null } as const;
      expect(await proxy.ask({ ...call, traceparent: TRACEPARENT }, 30_000)).toMatchObject({ end: 'answered' });
      expect(await proxy.ask(call, 30_000)).toMatchObject({ end: 'answered' });
      expect(seen).toEqual([TRACEPARENT, undefined]);
    } finally {
      child.kill('SIGKILL');
      service.close();
    }
  });
});
