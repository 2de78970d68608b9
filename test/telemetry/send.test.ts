import { describe, expect, test } from 'vitest';
import { sendTelemetry } from '../../src/telemetry/send.ts';
import type { SendResult } from '../../src/telemetry/outbox.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { settle } from '../support/session-kit.ts';

const COLLECTOR = { url: 'http://collector.example:4318/v1/traces', headers: { 'x-key': 'k' } };

async function answered(response: () => Promise<Response>): Promise<SendResult> {
  const clock = new VirtualClock();
  return await sendTelemetry(COLLECTOR, '{}', { fetch: response, clock, timeoutMs: 10_000 });
}

describe('[O1] an answer of the collector', () => {
  test('is sent with the headers of the operator', async () => {
    const seen: [string, RequestInit][] = [];
    const fetch = async (url: string, init: RequestInit): Promise<Response> => {
      seen.push([url, init]);
      return Response.json({});
    };
    const clock = new VirtualClock();
    expect(await sendTelemetry(COLLECTOR, '{"a":1}', { fetch, clock, timeoutMs: 1_000 })).toEqual({ type: 'sent' });
    expect(seen).toMatchObject([
      [
        COLLECTOR.url,
        {
          method: 'POST',
          body: '{"a":1}',
          redirect: 'manual',
          headers: { 'x-key': 'k', 'content-type': 'application/json' },
        },
      ],
    ]);
  });

  test.each([
    [429, 'failed'],
    [503, 'failed'],
    [301, 'refused'],
    [400, 'refused'],
    [500, 'refused'],
  ])('%i: %s', async (status, type) => {
    expect(await answered(async () => new Response('no', { status }))).toMatchObject({ type });
  });

  test.each([
    ['7', 7_000],
    [new Date(60_000).toUTCString(), 60_000],
    ['soon', null],
  ])('Retry-After %s is taken', async (value, afterMs) => {
    const response = new Response('', { status: 503, headers: { 'retry-after': value } });
    const clock = new VirtualClock(0);
    const fetch = async (): Promise<Response> => response;
    expect(await sendTelemetry(COLLECTOR, '{}', { fetch, clock, timeoutMs: 1_000 })).toMatchObject({ afterMs });
  });

  test('what it drops is not sent again', async () => {
    const partial = (more: object): Promise<SendResult> =>
      answered(async () => Response.json({ partialSuccess: more }));
    expect(await partial({ rejectedSpans: '3', errorMessage: 'too old' })).toMatchObject({
      type: 'refused',
      why: expect.stringContaining('3'),
    });
    expect(await partial({ rejectedDataPoints: 1 })).toMatchObject({ type: 'refused' });
    // a message without a number is a warning of the collector
    expect(await partial({ errorMessage: 'slow down' })).toEqual({ type: 'sent' });
    expect(await partial({})).toEqual({ type: 'sent' });
  });

  test('that does not come ends the request', async () => {
    const clock = new VirtualClock();
    const fetch = (_url: string, { signal }: RequestInit): Promise<Response> =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('aborted')));
      });
    const sending = sendTelemetry(COLLECTOR, '{}', { fetch, clock, timeoutMs: 10_000 });
    await settle();
    await clock.advance(10_000);
    expect(await sending).toEqual({
      type: 'failed',
      why: 'the collector did not answer within 10 s',
      afterMs: null,
    });
  });

  test('a failed connection does not say where the collector is', async () => {
    const result = await answered(() => Promise.reject(new Error('connect http://user:pass@collector')));
    expect(result).toEqual({ type: 'failed', why: 'the collector could not be reached', afterMs: null });
  });
});
