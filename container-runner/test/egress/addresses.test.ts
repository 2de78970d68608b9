/** Addresses of tool requests (X2): how the runner resolves host names, and which addresses it refuses. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createResolve } from '../../egress/resolve.ts';
import { createSender } from '../../egress/send.ts';
import { limits } from '../../limits.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';
import { resolversFor } from '../support/resolvers.ts';
import { startRunner, type TestRunner } from '../support/test-runner.ts';

let runner: TestRunner;
const answers = { 'many.example': Array.from({ length: 40 }, (_, at) => `192.0.2.${at % 20}`) };

beforeEach(async () => {
  runner = await startRunner({
    sandboxes: [new FakeSandbox()],
    egressParts: { resolve: createResolve(resolversFor(answers)), sender: createSender({ interfaces: () => [] }) },
  });
});
afterEach(async () => await runner.close());

describe('addresses of this machine', () => {
  test.each([
    ['127.0.0.1', ['127.0.0.1/8']],
    ['203.0.113.7', ['203.0.113.7/24']],
    ['2001:db8:1:2::99', ['2001:db8:1:2::1/64']],
    ['::1', ['::1/128']],
  ])(
    '[X2] %s is refused by a machine with the interfaces %j, whatever the Worker has checked',
    async (address, interfaces) => {
      const sender = createSender({ interfaces: () => interfaces });
      const asked = sender.send({
        session: 's',
        url: new URL('http://some.example/'),
        method: 'GET',
        headers: {},
        body: null,
        addresses: ['198.51.100.1', address],
        maxBytes: 1,
        signal: AbortSignal.timeout(5_000),
      });
      await expect(asked).rejects.toMatchObject({
        name: 'BlockedAddressError',
        message: expect.stringContaining(address),
      });
      sender.close();
    },
  );
});

describe('a host name', () => {
  const ask = (host: string): Promise<Response> => runner.ask('POST', '/egress/resolve', { session: 'ses_a', host });

  test('[X2] resolves to all of its addresses, each once, at most sixteen', async () => {
    const { addresses } = (await (await ask('many.example')).json()) as { addresses: string[] };
    expect(addresses).toEqual(Array.from({ length: limits.egressAddresses }, (_, at) => `192.0.2.${at}`));
  });

  test('[X2] without an address fails before anything is sent', async () => {
    const response = await ask('none.example');
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ code: 'egress_failed', before_dispatch: true });
  });

  test.each(['', '-x', 'a b', 'a/b', '[::1]', 'x'.repeat(254), 'a\nb'])('[X2] %j is invalid', async (host) => {
    expect((await ask(host)).status).toBe(400);
  });

  test('[X2] unknown to the name servers is looked up by the system, once for two callers', async () => {
    let waiting = 0;
    const release: (() => void)[] = [];
    const resolve = createResolve({
      network: (host) =>
        host === 'known' ? Promise.resolve(['192.0.2.1']) : Promise.reject(new Error('unknown there')),
      system: () => {
        waiting += 1;
        return new Promise((done) => {
          release.push(() => done(['192.0.2.2']));
        });
      },
    });
    const slow = [resolve('slow-1'), resolve('slow-2')];
    await expect(resolve('slow-3')).rejects.toThrow('unknown there');
    expect(waiting).toBe(limits.egressLookups);
    // a lookup of a known name does not wait for them
    expect(await resolve('known')).toEqual(['192.0.2.1']);
    for (const done of release) done();
    expect(await Promise.all(slow)).toEqual([['192.0.2.2'], ['192.0.2.2']]);
  });

  test('[X2] in the hosts file of this machine is resolved', async () => {
    expect(await createResolve()('localhost')).toEqual(
      expect.arrayContaining([expect.stringMatching(/^(127\.0\.0\.1|::1)$/)]),
    );
  });
});
