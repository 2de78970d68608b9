/** When a helper that could not be started, or has ended, may have sent a request (Z3). */
import { expect, test } from 'vitest';
import type { HelperAnswer, OutboundConnections, OutboundHostRpc } from '../../src/durable/env.ts';
import { helperOf } from '../../src/durable/outbound-helper.ts';
import { HelperLost, HelperNotOpened } from '../../src/executors/outbound/connection-pool.ts';

/** A host whose calls on the promise of a stub are sent at once, as the platform's are. */
function host(send: (id: number) => Promise<HelperAnswer>) {
  const opened = Promise.withResolvers<OutboundConnections & Disposable>();
  const sent: number[] = [];
  const connections = {
    send: async (id: number) => {
      sent.push(id);
      return await send(id);
    },
    cancel: () => undefined,
    [Symbol.dispose]: () => undefined,
  };
  const open = () => Object.assign(opened.promise, connections);
  return { rpc: { open } as unknown as OutboundHostRpc, opened, connections, sent };
}

const answer: HelperAnswer = { type: 'whole', status: 200, statusText: '', headers: [], body: new Uint8Array() };

test('[Z3] nothing is sent to a helper before it is open, so one that cannot be started has sent nothing', async () => {
  const { rpc, opened, sent } = host(async () => answer);
  const request = helperOf(rpc, null).send('http://x/', {});
  opened.reject(new Error('the helper has ended'));
  await expect(request).rejects.toThrow(HelperNotOpened);
  expect(sent).toEqual([]);
});

test('[Z3] a request that is aborted before its helper is open is not sent', async () => {
  const { rpc, opened, connections, sent } = host(async () => answer);
  const abort = new AbortController();
  const helper = helperOf(rpc, null);
  const request = helper.send('http://x/', { signal: abort.signal });
  abort.abort(new Error('cancelled'));
  await expect(request).rejects.toThrow('cancelled');
  opened.resolve(connections);
  const next = await helper.send('http://x/', {});
  expect([next.response.status, sent]).toEqual([200, [2]]);
});

test('[Z3] a helper that ends during a request may have sent it', async () => {
  const { rpc, opened, connections, sent } = host(async () => await Promise.reject(new Error('reset')));
  opened.resolve(connections);
  await expect(helperOf(rpc, null).send('http://x/', {})).rejects.toThrow(HelperLost);
  expect(sent).toEqual([1]);
});
