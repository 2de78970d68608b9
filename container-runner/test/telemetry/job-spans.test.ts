/** The spans that a runner exports for its jobs (O1). */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { Ledger } from '../../ledger/ledger.ts';
import type { RunnerOptions } from '../../runner.ts';
import { type Collector, startCollector } from '../support/collector.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';
import { job, startRunner, type TestRunner } from '../support/test-runner.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

let collector: Collector;
let sandbox: FakeSandbox;
let now: number;
beforeEach(async () => {
  collector = await startCollector();
  sandbox = new FakeSandbox();
  now = Date.now();
});
afterEach(async () => {
  expect(collector.faults).toEqual([]);
  await collector.close();
});

async function start(options: Partial<RunnerOptions> = {}): Promise<TestRunner> {
  const spans = { url: `${collector.url}/v1/traces`, headers: {}, resource: {} };
  return await startRunner({ sandboxes: [sandbox], spans, now: () => now, ...options });
}
const ended = ({ type }: { type: string }): boolean => type === 'exited';
/** Name and parent of each span. */
const tree = (): unknown[] => {
  const names = new Map(collector.spans.map(({ spanId, name }) => [spanId, name]));
  return collector.spans.map(({ name, parentSpanId = '' }) => [name, names.get(parentSpanId) ?? parentSpanId]);
};

test('[O1] a job is a span below the one that sent it, with a span for each phase, and its program is below the last', async () => {
  const runner = await start();
  const body = job({ kind: 'python', code: 'x' });
  await runner.put('ses_test/run_1/1/0/1', body, { traceparent: `00-${TRACE}-${PARENT}-01` });
  now += 250;
  sandbox.started[0]?.end({ exitCode: 3 });
  await runner.watch('ses_test', 0, ended);
  await runner.close();
  expect(tree()).toEqual([
    ['job python', PARENT],
    ['queued', 'job python'],
    ['prepare', 'job python'],
    ['run', 'job python'],
  ]);
  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
  expect(collector.spans[0]?.attributes).toEqual({
    'cortex.job.id': 'ses_test/run_1/1/0/1',
    'cortex.job.kind': 'python',
    'cortex.job.end': 'exited',
    'cortex.job.truncated': false,
    'cortex.sandbox.level': 'wasm',
    'gen_ai.conversation.id': 'ses_test',
    'process.exit.code': 3,
    'error.type': 'nonzero_exit',
  });
  const [whole, , , run] = collector.spans;
  expect(sandbox.started[0]?.launch.env['TRACEPARENT']).toBe(`00-${TRACE}-${run?.spanId}-01`);
  expect(BigInt(whole?.endTimeUnixNano ?? 0) - BigInt(whole?.startTimeUnixNano ?? 0)).toBe(250_000_000n);
});

test('[O1] spans hold no code, input, output, environment or error text', async () => {
  const runner = await start();
  const hidden = job({ kind: 'shell', code: 'echo hidden-code', inputs: { variable: 'hidden-input' } });
  await runner.put('a', hidden, { traceparent: `00-${TRACE}-${PARENT}-01` });
  sandbox.started[0]?.print('hidden-output');
  sandbox.started[0]?.end({ exitCode: 1 });
  await runner.watch('ses_test', 0, ended);
  await runner.close();
  expect(collector.requests.length).toBe(1);
  expect(collector.requests[0]?.text).not.toContain('hidden');
  // the schema of the collector has no member for events, links and the message of a status
  expect(collector.faults).toEqual([]);
});

test('[O1] a job that was lost in a crash has a span with that end, with the same ids however often it is exported', async () => {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-spans-'));
  try {
    for (const name of ['first', 'second']) {
      const stateDir = path.join(directory, name);
      const ledger = new Ledger(path.join(stateDir, 'runner', 'jobs.sqlite'), () => now);
      const traceparent = `00-${TRACE}-${PARENT}-01`;
      const job = { id: 'a', session: 's', kind: 'shell', requestHash: 'h', createdAt: now - 500, spansDue: true };
      ledger.add({ ...job, traceparent });
      ledger.start('a', 's', 'bubblewrap');
      ledger.close();
      const runner = await start({ stateDir });
      await runner.stop();
    }
    const [first, second] = collector.requests;
    expect(first?.spans.map(({ name, attributes }) => [name, attributes['cortex.job.end']])).toEqual([
      ['job shell', 'lost'],
      ['queued', undefined],
    ]);
    expect(second?.spans.map(({ spanId }) => spanId)).toEqual(first?.spans.map(({ spanId }) => spanId));
    expect(first?.spans[0]).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, status: { code: 2 } });
  } finally {
    await fs.rm(directory, { recursive: true, force: true });
  }
});

test('[O1] spans that a runner could not send before its end are sent by the next one, once', async () => {
  collector.answer = () => undefined;
  const first = await start();
  await first.put('a', job({ kind: 'python', code: 'x' }));
  sandbox.started[0]?.end();
  await first.watch('ses_test', 0, ended);
  await first.stop();
  const unanswered = collector.spans.map(({ spanId }) => spanId);
  expect(unanswered.length).toBe(4);

  collector.answer = (response) => response.end('{}');
  const { stateDir } = first;
  await (await start({ stateDir })).stop();
  expect(collector.spans.map(({ spanId }) => spanId)).toEqual([...unanswered, ...unanswered]);
  await (await start({ stateDir })).close();
  expect(collector.requests.length).toBe(2);
});

test('[O1] spans that the collector refused are not sent again', async () => {
  collector.answer = (response) => response.writeHead(400).end();
  const first = await start();
  await first.put('a', job({ kind: 'python', code: 'x' }));
  sandbox.started[0]?.end();
  await first.watch('ses_test', 0, ended);
  await first.stop();
  await (await start({ stateDir: first.stateDir })).close();
  expect(collector.requests.length).toBe(1);
});

test('[O1] a collector that never answers delays no job', async () => {
  collector.answer = () => undefined;
  const runner = await start();
  for (let at = 0; at < 3; at += 1) {
    await runner.put(`job-${at}`, job({ kind: 'python', code: 'x' }));
    sandbox.started[at]?.end();
    await runner.watch('ses_test', 0, (event) => ended(event) && event.job === `job-${at}`);
  }
  await runner.close();
  expect(collector.spans.length).toBe(12);
});
