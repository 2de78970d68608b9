/** The metrics for Prometheus (R1). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { FakeRelicHost } from './support/fake-relic-host.ts';
import { FakeSandbox } from './support/fake-sandbox.ts';
import { RelicCaller } from './support/relic-kit.ts';
import { job, startRunner, type TestRunner } from './support/test-runner.ts';

let sandbox: FakeSandbox;
let runner: TestRunner;
beforeEach(async () => {
  sandbox = new FakeSandbox();
  runner = await startRunner({ sandboxes: [sandbox], relicHost: new FakeRelicHost() });
});
afterEach(async () => {
  await runner.close();
});

const read = async (): Promise<string> => await (await fetch(`${runner.url}/metrics`)).text();

test('[R1] count running jobs, ended jobs by outcome, and requests by route', async () => {
  await runner.put('ses/1', job({ kind: 'python', code: 'x' }));
  await runner.put('ses/2', job({ kind: 'shell', code: 'y' }));
  sandbox.started[0]?.end({ exitCode: 1 });
  await vi.waitFor(async () => expect(await read()).toContain('end="exited"} 1'), { timeout: 60_000 });
  await new RelicCaller(runner, 'ses_1').call('r', { image: 'x', port: 80, health: { path: '/health' } }, ['GET', '/']);
  const text = await read();
  for (const line of [
    'cortex_runner_jobs_running 1',
    'cortex_runner_jobs_queued 0',
    'cortex_runner_jobs_ended_total{kind="python",sandbox="wasm",end="exited"} 1',
    'cortex_runner_job_seconds_count{kind="python",sandbox="wasm"} 1',
    'cortex_runner_job_wait_seconds_count 1',
    'cortex_runner_requests_total{method="PUT",route="/jobs/:id",status="202"} 2',
    'cortex_runner_relics_running 1',
    'cortex_runner_draining 0',
  ]) {
    expect(text).toContain(line);
  }
  expect(text).toMatch(/cortex_runner_ledger_bytes [1-9]/);
  expect(text).toMatch(/cortex_runner_process_resident_memory_bytes \d/);
  // names of jobs and sessions would create a separate series for each
  expect(text).not.toMatch(/ses[_/]/);
});

test('[R1] follow the text format of Prometheus', async () => {
  const response = await fetch(`${runner.url}/metrics`);
  expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
  const lines = (await response.text())
    .trim()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const sample = /^[a-z_][a-z0-9_]*(?:\{[a-z_]+="[^"\n]*"(?:,[a-z_]+="[^"\n]*")*\})? (?:[\d.eE+-]+|Nan|NaN)$/;
  expect(lines.filter((line) => !sample.test(line))).toEqual([]);
});
