/** What a failed request of a connection says about its call (E5, S7). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { OutboundError } from '../../../src/domain/outbound-error.ts';
import { failureOfServer } from '../../../src/executors/mcp/failures.ts';
import { connectionHttp } from '../../../src/executors/mcp/http.ts';
import type { ConnectionHttp } from '../../../src/executors/mcp/http.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

const URL = 'https://mcp.example.com/mcp';

const REQUESTS = {
  call: { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call' }) },
  'resumed answer': { method: 'GET', headers: { 'last-event-id': '1' } },
  reply: { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 'q', result: { action: 'accept' } }) },
  cancellation: { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled' }) },
} satisfies Record<string, RequestInit>;

async function sent(request: keyof typeof REQUESTS, answer: () => Promise<Response>): Promise<ConnectionHttp> {
  const http = connectionHttp({ fetch: answer, allowHosts: [], egress: undefined, clock: new VirtualClock() });
  http.begin(limits.mcpResponseBytes);
  await http.fetch(URL, REQUESTS[request]).catch(() => undefined);
  return http;
}

test.each<[keyof typeof REQUESTS, number, boolean | undefined]>([
  ['call', 429, true],
  // Gateways answer so as well if a server that has the request does not answer it.
  ['call', 503, undefined],
  ['call', 500, undefined],
  ['resumed answer', 429, undefined],
  ['resumed answer', 503, undefined],
  ['reply', 429, undefined],
  ['cancellation', 429, undefined],
])('[S7] whether a %s that gets %i was never sent: %s', async (request, status, beforeDispatch) => {
  const http = await sent(request, async () => new Response(null, { status }));
  expect(failureOfServer('s', new Error('failed'), http).error.beforeDispatch).toBe(beforeDispatch);
});

test.each<[keyof typeof REQUESTS, boolean | undefined]>([
  ['call', true],
  ['resumed answer', undefined],
  ['reply', undefined],
])('[S7] whether the call of a %s that cannot be sent was never sent: %s', async (request, beforeDispatch) => {
  const http = await sent(request, async () => {
    throw new OutboundError('egress_unavailable', 'no runner', true);
  });
  expect(failureOfServer('s', new Error('failed'), http).error.beforeDispatch).toBe(beforeDispatch);
});

test('[S7] only a refused call says that the session is forgotten', async () => {
  const gone = async (): Promise<Response> => new Response(null, { status: 404 });
  expect((await sent('call', gone)).refusal()).toMatchObject({ status: 404, isOfRequest: true });
  expect((await sent('resumed answer', gone)).refusal()).toMatchObject({ status: 404, isOfRequest: false });
  expect((await sent('reply', gone)).refusal()).toBeNull();
});
