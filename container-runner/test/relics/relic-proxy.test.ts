/** The runner's side of a relic's proxy, without a relic (R5). */
import { PassThrough } from 'node:stream';

import { expect, test } from 'vitest';

import { RelicProxy } from '../../relics/relic-proxy.ts';

const CALL = { method: 'GET', path: '/', body: null } as const;

test('[R5] a closed proxy fails its calls with the reason, and accepts no later ones', async () => {
  const input = new PassThrough();
  const output = new PassThrough();
  const reasons: string[] = [];
  const proxy = new RelicProxy(input, output, (why) => {
    reasons.push(why);
    proxy.close(`too much: ${why}`);
  });
  const underWay = proxy.ask(CALL, 1_000);
  // one chunk, as from a proxy that has read the state before it serves
  output.write('{"id":0,"end":"state","why":"9 files"}\n{"id":1,"end":"answered","status":200,"type":"","body":""}\n');
  expect(await underWay).toEqual({ end: 'broken', why: 'too much: 9 files' });
  expect(reasons).toEqual(['9 files']);
  expect(await proxy.ask(CALL, 1_000)).toEqual({ end: 'refused' });
});
