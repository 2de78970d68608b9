/** Errors of runners reach clients and models, so they do not contain the runner's address (R7, X3). */
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/domain/ports/clock.ts';
import type { RunnerJob } from '../../../src/domain/ports/runner.ts';
import { createRunnerEgress } from '../../../src/executors/outbound/egress.ts';
import { createRunnerClient } from '../../../src/executors/runner/client.ts';
import type { RunnerClientOptions } from '../../../src/executors/runner/client.ts';
import { instantClock } from '../../../testing/instant-clock.ts';

const ADDRESS = 'runner.internal.example';
const URL_OF_RUNNER = `http://${ADDRESS}:8790`;
const KEY = { id: null, secret: 's'.repeat(32) } as unknown as RunnerClientOptions['key'];
const lost = new TypeError(`connect failed: ${ADDRESS}:8790`);
const refused = Object.assign(new TypeError(`fetch failed ${ADDRESS}`), { cause: { code: 'ECONNREFUSED' } });

type Fetch = RunnerClientOptions['fetch'];
const failing =
  (fault: Error): Fetch =>
  () =>
    Promise.reject(fault);
const answering =
  (status: number, body: string): Fetch =>
  async () =>
    new Response(body, { status });

const JOB: RunnerJob = {
  id: 'j',
  session: 's',
  kind: 'python',
  code: '',
  runtime: null,
  inputs: {},
  limits: { timeoutMs: 1_000, memoryMb: null },
};
const RELIC = { name: 'r', implementation: { type: 'container' } } as never;

describe.each<[string, Fetch]>([
  ['a refused connection', failing(refused)],
  ['a lost connection', failing(lost)],
  ['an error of a proxy', answering(502, '<html>')],
  ['a runner that stops', answering(503, '{"detail": "stopping"}')],
])('[R7] %s', (_what, fetch) => {
  const clock: Clock = instantClock();
  const client = createRunnerClient({ baseUrl: URL_OF_RUNNER, key: KEY, fetch, clock, newNonce: () => 'n'.repeat(16) });
  const observe = { signal: new AbortController().signal, output: () => undefined };
  const call = { space: 's', relic: RELIC, method: 'GET', path: '/', body: null, timeoutMs: 1_000 };
  const egress = createRunnerEgress({
    runners: [{ url: URL_OF_RUNNER, labels: [] }],
    key: KEY,
    fetch,
    clock,
    newNonce: () => 'n'.repeat(16),
    session: () => 's',
  });
  const url = new URL('https://a.example/');
  const request = { url, method: 'POST', headers: new Headers(), body: null, timeoutMs: 1_000, maxBytes: 1 };

  test.each([
    ['a job', () => client.run(JOB, observe)],
    ['a call of a relic', () => client.callRelic(call, observe)],
    ['a name', () => egress.resolve('a.example', observe.signal)],
    ['a request of a tool', () => egress.send({ ...request, signal: observe.signal }, ['192.0.2.1'])],
  ])('the error of %s says what happened, without the address', async (_work, work) => {
    const fault = await work().then(
      () => new Error('it did not fail'),
      (thrown: unknown) => thrown as Error,
    );
    expect(fault.message).toMatch(/runner (could not be reached: |cannot |closed )/);
    expect(JSON.stringify([fault.message, { ...fault }])).not.toContain(ADDRESS);
  });
});
