/** The export of spans, to collectors that work and to faulty ones (O1). */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import type { JobSpan } from '../../telemetry/job-trace.ts';
import { SpanExport, type SpanExportOptions } from '../../telemetry/span-export.ts';
import { type Collector, startCollector } from '../support/collector.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
/** Longer than a test: the limit is not what ends the wait. */
const NEVER_MS = 600_000;

let collector: Collector;
let states: (string | null)[];
let settled: string[];
beforeEach(async () => {
  collector = await startCollector();
  states = [];
  settled = [];
});
afterEach(async () => {
  expect(collector.faults).toEqual([]);
  await collector.close();
});

function open(options: Partial<SpanExportOptions> = {}, url = `${collector.url}/v1/traces`): SpanExport {
  return new SpanExport(
    { url, headers: { authorization: 'Bearer t' }, resource: { 'deployment.environment.name': 'test' } },
    {
      service: 'container-runner',
      version: '1.2.3',
      onState: (reason) => states.push(reason),
      onSettled: (jobs) => settled.push(...jobs),
      exportMs: NEVER_MS,
      flushMs: NEVER_MS,
      ...options,
    },
  );
}

function span(number = 1, more: Partial<JobSpan> = {}): JobSpan {
  return {
    name: 'job python',
    kind: 'server',
    context: { traceId: TRACE, spanId: number.toString(16).padStart(16, '0'), flags: 1 },
    parent: { spanId: PARENT, isRemote: true },
    startedAt: 1_700_000_000_123,
    endedAt: 1_700_000_000_456,
    attributes: { 'cortex.job.id': 'a', 'process.exit.code': 3, 'cortex.job.truncated': false },
    isError: true,
    ...more,
  };
}

describe('to a collector that works', () => {
  test('[O1] a span has the given ids, times, attributes and status', async () => {
    const spans = open();
    spans.record([span()]);
    await spans.close();
    expect(collector.spans).toMatchObject([
      {
        traceId: TRACE,
        spanId: '0000000000000001',
        parentSpanId: PARENT,
        name: 'job python',
        kind: 2,
        startTimeUnixNano: '1700000000123000000',
        endTimeUnixNano: '1700000000456000000',
        attributes: { 'cortex.job.id': 'a', 'process.exit.code': 3, 'cortex.job.truncated': false },
        status: { code: 2 },
      },
    ]);
    expect(spans.counts).toMatchObject({ queued: 0, exported: 1 });
  });

  test('[O1] a root has no parent, and a phase is internal and has no status', async () => {
    const spans = open();
    const phase = { name: 'run', kind: 'internal', isError: false, startedAt: 5, attributes: {} } as const;
    spans.record([span(1, { parent: null }), span(2, phase)]);
    await spans.close();
    expect(settled).toEqual(['a']);
    // a clock that begins at 0, as in a test, is no reason to take the time for one of the process
    expect(collector.spans[1]?.startTimeUnixNano).toBe('5000000');
    expect(collector.spans.map(({ parentSpanId, kind, status }) => [parentSpanId, kind, status.code])).toEqual([
      [undefined, 2, 2],
      [PARENT, 1, 0],
    ]);
  });

  test('[O1] the request has the resource and the headers of the settings', async () => {
    const spans = open();
    spans.record([span()]);
    await spans.close();
    expect(collector.requests).toMatchObject([
      {
        path: '/v1/traces',
        headers: { authorization: 'Bearer t' },
        resource: {
          'service.name': 'container-runner',
          'service.version': '1.2.3',
          'deployment.environment.name': 'test',
          'telemetry.sdk.language': 'nodejs',
        },
      },
    ]);
  });

  test('[O1] many spans are sent in batches, and those beyond the limit of the queue are dropped and counted', async () => {
    const spans = open();
    for (let number = 1; number <= limits.spanQueue + 3; number += 1) spans.record([span(number)]);
    expect(spans.counts).toMatchObject({ queued: limits.spanQueue, dropped: { queue_full: 3 } });
    await spans.close();
    expect(spans.counts).toMatchObject({ queued: 0, exported: limits.spanQueue, dropped: { queue_full: 3 } });
    expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(limits.spanQueue);
    expect(Math.max(...collector.requests.map((request) => request.spans.length))).toBeLessThanOrEqual(
      limits.spanBatch,
    );
  });

  test('[O1] nothing to send causes no request, also at the end', async () => {
    await open().close();
    expect(collector.requests).toEqual([]);
  });
});

describe('to a collector that does not work', () => {
  test('[O1] that refuses connections: the spans are dropped and counted', async () => {
    const { url } = collector;
    await collector.close();
    const spans = open({ exportMs: 50 }, `${url}/v1/traces`);
    spans.record([span(1), span(2)]);
    await spans.close();
    expect(spans.counts).toMatchObject({ queued: 0, exported: 0, dropped: { failed: 2, shutdown: 0 } });
    expect(states).toEqual([expect.stringContaining('ECONNREFUSED')]);
    expect(settled).toEqual(['a', 'a']);
  });

  test('[O1] that never answers: an export ends after its time', async () => {
    collector.answer = () => undefined;
    const spans = open({ exportMs: 50 });
    spans.record([span()]);
    await spans.close();
    expect(spans.counts).toMatchObject({ queued: 0, exported: 0, dropped: { failed: 1 } });
    expect(states).toEqual(['Request timed out']);
  });

  test('[O1] that never answers: the end of the runner waits only for the time of the last export', async () => {
    collector.answer = () => undefined;
    const spans = open({ flushMs: 50 });
    spans.record([span()]);
    await spans.close();
    spans.record([span(2)]);
    expect(spans.counts).toMatchObject({ queued: 0, exported: 0, dropped: { shutdown: 2 } });
    expect(settled).toEqual([]);
  });

  test('[O1] that never answers: waiting spans stay below the limit of the queue, and `record` does not wait', async () => {
    collector.answer = () => undefined;
    const spans = open({ flushMs: 50 });
    for (let number = 1; number <= 3 * limits.spanQueue; number += 1) spans.record([span(number)]);
    expect(spans.counts).toMatchObject({ queued: limits.spanQueue, dropped: { queue_full: 2 * limits.spanQueue } });
    await spans.close();
    expect(spans.counts.dropped).toMatchObject({ shutdown: limits.spanQueue });
  });

  test('[O1] that answers 503: the spans are dropped after the time for retries', async () => {
    collector.answer = (response) => response.writeHead(503).end();
    const spans = open({ exportMs: 50 });
    spans.record([span()]);
    await spans.close();
    expect(spans.counts).toMatchObject({ queued: 0, exported: 0, dropped: { failed: 1 } });
  });

  test('[O1] that answers 503 with Retry-After, and then works: the same spans are sent again', async () => {
    collector.answer = (response) => {
      response
        .writeHead(collector.requests.length === 1 ? 503 : 200, { 'retry-after': new Date(0).toUTCString() })
        .end('{}');
    };
    const spans = open();
    spans.record([span()]);
    await spans.close();
    expect(spans.counts).toMatchObject({ exported: 1, dropped: { failed: 0 } });
    expect(collector.spans.map(({ spanId }) => spanId)).toEqual(['0000000000000001', '0000000000000001']);
    expect(states).toEqual([]);
  });

  test('[O1] that rejects a part: only the rest counts as exported', async () => {
    collector.answer = (response) => response.end('{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}}');
    const spans = open();
    spans.record([span(1), span(2), span(3)]);
    await spans.close();
    expect(spans.counts).toMatchObject({ queued: 0, exported: 1, dropped: { rejected: 2 } });
    expect(states).toEqual(['2 of 3 spans were rejected']);
  });

  test.each([
    ['{"partialSuccess":{"rejectedSpans":"-7"}}'],
    ['{"partialSuccess":{"rejectedSpans":"x"}}'],
    ['<html>'],
    ['null'],
    [''],
  ])('[O1] that answers %j counts as one that took everything', async (body) => {
    collector.answer = (response) => response.end(body);
    const spans = open();
    spans.record([span()]);
    await spans.close();
    expect(spans.counts).toMatchObject({ queued: 0, exported: 1, dropped: { rejected: 0, failed: 0 } });
  });

  test('[O1] the state is reported when it changes, without the body of the answer', async () => {
    collector.answer = (response) => response.writeHead(400).end('secret words');
    const spans = open();
    // a full batch is sent at once
    const batch = (from: number): JobSpan[] => Array.from({ length: limits.spanBatch }, (_, at) => span(from + at));
    for (const answered of [400, 400, 200]) {
      collector.answer = (response) => response.writeHead(answered).end('secret words');
      const before = spans.counts.exported + spans.counts.dropped.failed;
      spans.record(batch(before + 1));
      await expect.poll(() => spans.counts.queued).toBe(0);
    }
    expect(states).toEqual(['status 400', null]);
    await spans.close();
  });
});
