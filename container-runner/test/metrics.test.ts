/** The metrics, in the format of Prometheus and in OpenMetrics (R1, O2). */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Ledger } from '../ledger/ledger.ts';
import { type MetricInfo, METRICS } from '../metric-table.ts';
import { DEFAULT_OPERATOR_LIMITS } from '../operator-limits.ts';
import { startCollector } from './support/collector.ts';
import { FakeRelicHost } from './support/fake-relic-host.ts';
import { FakeSandbox } from './support/fake-sandbox.ts';
import { type Family, parseOpenMetrics } from './support/openmetrics.ts';
import { RelicCaller } from './support/relic-kit.ts';
import { job, startRunner, type TestRunner } from './support/test-runner.ts';
import { eventually } from '../../test/support/eventually.ts';

const OPEN = 'application/openmetrics-text; version=1.0.0';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const ended = ({ type }: { type: string }): boolean => type === 'exited';

let sandbox: FakeSandbox;
let runner: TestRunner;
let now: number;
beforeEach(async () => {
  sandbox = new FakeSandbox();
  now = Date.now();
  runner = await startRunner({ sandboxes: [sandbox], relicHost: new FakeRelicHost(), now: () => now });
});
afterEach(async () => {
  await runner.close();
});

const ask = (accept?: string): Promise<Response> =>
  fetch(`${runner.url}/metrics`, { headers: accept === undefined ? {} : { accept } });
const read = async (): Promise<string> => await (await ask()).text();
const readOpen = async (): Promise<ReadonlyMap<string, Family>> => parseOpenMetrics(await (await ask(OPEN)).text());

test('[R1] count running jobs, ended jobs by outcome, and requests by route', async () => {
  await runner.put('ses/1', job({ kind: 'python', code: 'x' }));
  await runner.put('ses/2', job({ kind: 'shell', code: 'y' }));
  sandbox.started[0]?.end({ exitCode: 1 });
  await eventually(async () => expect(await read()).toContain('end="exited"} 1'));
  await new RelicCaller(runner, 'ses_1').call('r', { image: 'x', port: 80, health: { path: '/health' } }, ['GET', '/']);
  const text = await read();
  for (const line of [
    'cortex_runner_jobs_running 1',
    'cortex_runner_jobs_queued 0',
    'cortex_runner_jobs_ended_total{kind="python",sandbox="wasm",end="exited"} 1',
    'cortex_runner_job_seconds_count{kind="python",sandbox="wasm"} 1',
    'cortex_runner_job_prepare_seconds_count{kind="python",sandbox="wasm"} 1',
    'cortex_runner_job_wait_seconds_count 1',
    'cortex_runner_sandboxes_in_use{sandbox="wasm"} 1',
    'cortex_runner_sandboxes_in_use{sandbox="docker"} 0',
    'cortex_runner_sandboxes_warm{sandbox="wasm"} 0',
    'cortex_runner_requests_total{method="PUT",route="/jobs/:id",status="202"} 2',
    'cortex_runner_relics_running 1',
    'cortex_runner_relic_restarts_total 0',
    'cortex_runner_spans_dropped_total{reason="queue_full"} 0',
    'cortex_runner_draining 0',
  ]) {
    expect(text).toContain(`\n${line}\n`);
  }
  expect(text).toMatch(/cortex_runner_ledger_bytes [1-9]/);
  expect(text).toMatch(/cortex_runner_process_resident_memory_bytes \d/);
  // names of jobs and sessions would create a separate series for each
  expect(text).not.toMatch(/ses[_/]/);
});

test('[O2] durations are those of the phases: waiting, preparation, and both together with the run', async () => {
  await runner.put('a', job({ kind: 'python', code: 'x' }));
  now += 2_000;
  sandbox.started[0]?.end();
  await runner.watch('ses_test', 0, ended);
  const families = await readOpen();
  const sum = (name: string): number | undefined =>
    families.get(name)?.samples.find((sample) => sample.name === `${name}_sum`)?.value;
  expect(sum('cortex_runner_job_wait_seconds')).toBe(0);
  expect(sum('cortex_runner_job_prepare_seconds')).toBe(0);
  expect(sum('cortex_runner_job_seconds')).toBe(2);
});

test('[O2] rejected jobs are counted by their error code', async () => {
  await runner.close();
  runner = await startRunner({
    sandboxes: [sandbox],
    operatorLimits: { ...DEFAULT_OPERATOR_LIMITS, running: 1, queued: 0 },
  });
  await runner.put('a', job({ kind: 'python', code: 'x' }));
  expect((await runner.put('b', job({ kind: 'python', code: 'x' }))).status).toBe(429);
  expect((await runner.put('c', job({ kind: 'python', code: 'x' }))).status).toBe(429);
  expect((await runner.put('d', job({ kind: 'nothing' }))).status).toBe(400);
  const text = await read();
  expect(text).toContain('cortex_runner_jobs_rejected_total{code="busy"} 2\n');
  expect(text).toContain('cortex_runner_jobs_rejected_total{code="invalid_request"} 1\n');
});

test('[O2] jobs that a crash ended count as lost, without a duration: its end is unknown', async () => {
  const stateDir = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-metrics-'));
  const ledger = new Ledger(path.join(stateDir, 'runner', 'jobs.sqlite'), () => now);
  ledger.add({ id: 'a', session: 's', kind: 'shell', requestHash: 'h' });
  ledger.start('a', 's', 'docker');
  ledger.close();
  await runner.close();
  runner = await startRunner({ sandboxes: [sandbox], stateDir });
  const text = await read();
  expect(text).toContain('cortex_runner_jobs_ended_total{kind="shell",sandbox="docker",end="lost"} 1\n');
  expect(text).not.toContain('cortex_runner_job_seconds_count{');
});

describe('OpenMetrics', () => {
  test('[O2] the document is valid, and has the units of names', async () => {
    await runner.put('a', job({ kind: 'python', code: 'x' }));
    sandbox.started[0]?.end();
    await runner.watch('ses_test', 0, ended);
    const response = await ask(OPEN);
    expect(response.headers.get('content-type')).toBe(`${OPEN}; charset=utf-8`);
    const families = parseOpenMetrics(await response.text());
    expect(families.get('cortex_runner_job_seconds')).toMatchObject({ type: 'histogram', unit: 'seconds' });
    expect(families.get('cortex_runner_ledger_bytes')).toMatchObject({ type: 'gauge', unit: 'bytes' });
    expect(families.get('cortex_runner_jobs_ended')).toMatchObject({
      type: 'counter',
      samples: [{ name: 'cortex_runner_jobs_ended_total', labels: { kind: 'python', sandbox: 'wasm', end: 'exited' } }],
    });
    for (const family of families.values()) expect(family.help, family.name).toMatch(/\w{4}/);
  });

  test('[O2] both formats have the same names of samples, whichever is read first', async () => {
    await runner.put('a', job({ kind: 'python', code: 'x' }));
    const names = async (accept?: string): Promise<string[]> =>
      [...(await (await ask(accept)).text()).matchAll(/^(cortex_runner_(?!process|nodejs)\w+)/gm)]
        .map(([, name = '']) => name)
        .toSorted();
    // the first request adds a sample to the next answer
    await names();
    const first = await names(OPEN);
    const second = await names();
    expect(second).toEqual(first);
    expect(await names(OPEN)).toEqual(first);
    expect(second).toContain('cortex_runner_requests_total');
    expect(await read()).toContain('# TYPE cortex_runner_requests_total counter\n');
  });

  test('[O2] the duration of a job whose spans are exported has its trace as an exemplar', async () => {
    const collector = await startCollector();
    await runner.close();
    runner = await startRunner({
      sandboxes: [sandbox],
      spans: { url: `${collector.url}/v1/traces`, headers: {}, resource: {} },
    });
    const traced = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` };
    await runner.put('a', job({ kind: 'python', code: 'x' }), traced);
    await runner.put('b', job({ kind: 'shell', code: 'x' }), { traceparent: traced.traceparent.replace(/01$/, '00') });
    for (const { end } of sandbox.started) end();
    await runner.watch('ses_test', 0, (event) => ended(event) && event.job === 'b');
    const samples = (await readOpen()).get('cortex_runner_job_seconds')?.samples ?? [];
    const exemplars = samples.flatMap(({ labels, exemplar }) =>
      exemplar === null ? [] : [[labels['kind'], exemplar.labels]],
    );
    expect(await read()).not.toContain(TRACE);
    await runner.stop();
    const span = collector.spans.find(({ name }) => name === 'job python');
    expect(exemplars).toEqual([['python', { trace_id: TRACE, span_id: span?.spanId }]]);
    await collector.close();
  });

  test.each([
    [undefined, false],
    ['*/*', false],
    ['text/plain', false],
    [OPEN, true],
    ['application/openmetrics-text', true],
    ['application/openmetrics-text; version=0.0.1', false],
    ['application/openmetrics-text; version=2.0.0', false],
    [`${OPEN}; q=0.5, text/plain; q=0.6`, false],
    [`text/plain; q=0.5, ${OPEN}; q=0.6`, true],
    [`${OPEN}; q=0`, false],
    ['application/json', false],
    // Prometheus 2 and 3
    [
      'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
      true,
    ],
    [
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
      true,
    ],
  ])('[O2] Accept: %s', async (accept, isOpen) => {
    const type = (await ask(accept)).headers.get('content-type') ?? '';
    expect(type.startsWith('application/openmetrics-text')).toBe(isOpen);
    expect(type.startsWith('text/plain; version=0.0.4')).toBe(!isOpen);
  });
});

test('[R1] follow the text format of Prometheus', async () => {
  const lines = (await read())
    .trim()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const sample = /^[a-z_][a-z0-9_]*(?:\{[a-z_]+="[^"\n]*"(?:,[a-z_]+="[^"\n]*")*\})? (?:[\d.eE+-]+|NaN)$/;
  expect(lines.filter((line) => !sample.test(line))).toEqual([]);
});

describe('the documentation', () => {
  test('[O2] has a row with the type and the labels of every metric, and no others', async () => {
    const page = await fs.readFile(new URL('../../docs/runner.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `(cortex_runner_\w+)` \| (\w+) \| (.*?) \| .+ \|$/gm)].map(
      ([, name = '', type, labels = '']) => [name, type, labels.replaceAll('`', '')],
    );
    const expected = Object.entries<MetricInfo>(METRICS).map(([name, { type, labels }]) => [
      name,
      type,
      labels.length === 0 ? '–' : labels.join(', '),
    ]);
    expect(rows).toEqual(expected);
  });

  test('[O2] the table has every metric that is exported, except those of the process', async () => {
    const families = await readOpen();
    const exported = [...families.values()].map(({ name, type }) => (type === 'counter' ? `${name}_total` : name));
    const own = exported.filter((name) => !/^cortex_runner_(process|nodejs)_/.test(name));
    expect(own.toSorted()).toEqual(Object.keys(METRICS).toSorted());
  });
});
