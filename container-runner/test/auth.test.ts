/** Authentication of requests: signed, expiring, single use (R7). */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { parseKeys } from '../keys.ts';
import { limits } from '../limits.ts';
import { FakeSandbox } from './support/fake-sandbox.ts';
import { job, SECRET, signed, startRunner, type Tampering, type TestRunner } from './support/test-runner.ts';

let sandbox: FakeSandbox;
let runner: TestRunner;
beforeEach(async () => {
  sandbox = new FakeSandbox();
  runner = await startRunner({ sandboxes: [sandbox] });
});
afterEach(async () => {
  await runner.close();
});

const body = JSON.stringify(job({ kind: 'python', code: 'print(1)' }));

async function send(tampering: Tampering): Promise<Response> {
  return await fetch(await signed(runner.url, 'PUT', '/jobs/a', body, tampering));
}

async function expectRefused(response: Response): Promise<void> {
  expect(response.status).toBe(401);
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(response.headers.get('www-authenticate')).toBe('Bearer');
  const problem = (await response.json()) as { code: string; detail: string };
  expect(problem.code).toBe('unauthorized');
  expect(problem.detail).not.toContain(SECRET);
  // nothing was executed
  expect(sandbox.started).toEqual([]);
  expect((await runner.ask('GET', '/jobs/a')).status).toBe(404);
}

const now = Math.floor(Date.now() / 1_000);
const refused: readonly (readonly [string, Tampering])[] = [
  ['with another secret', { secret: 'another secret, as long as the right one' }],
  ['for another method', { claims: { htm: 'GET' } }],
  ['for another path', { sentTarget: '/jobs/a?x=1' }],
  ['for another job', { claims: { htu: '/jobs/b' } }],
  ['for another body', { sentBody: body.replace('print(1)', 'print(2)') }],
  ['for an empty body', { sentBody: '' }],
  ['that has expired', { claims: { iat: now - 120, exp: now - 60 } }],
  ['from the future', { claims: { iat: now + 600, exp: now + 660 } }],
  ['for longer than allowed', { claims: { iat: now, exp: now + limits.tokenSeconds * 10 } }],
  ['long ago with a long lifetime', { claims: { iat: now - 1_000, exp: now + 1_000 } }],
  ['for another audience', { claims: { aud: 'someone else' } }],
  ['without an audience', { claims: { aud: undefined } }],
  ['without an id', { claims: { jti: undefined } }],
  ['with a guessable id', { claims: { jti: '1' } }],
  ['without an expiry', { claims: { exp: undefined } }],
  ['with another algorithm', { algorithm: 'HS512' }],
];

describe('[R7] refused with 401 and without an effect', () => {
  test.each(refused)('a request signed %s', async (_name, tampering) => {
    await expectRefused(await send(tampering));
  });

  test.each([
    ['none', {}],
    ['a bare secret', { authorization: `Bearer ${SECRET}` }],
    ['another scheme', { authorization: 'Basic YTpi' }],
    ['nonsense', { authorization: 'Bearer a.b.c' }],
    ['an unsigned token', { authorization: `Bearer ${unsignedToken()}` }],
  ])('a request with authorization: %s', async (_name, headers) => {
    await expectRefused(await fetch(`${runner.url}/jobs/a`, { method: 'PUT', body, headers }));
  });

  test('a replayed request', async () => {
    const request = await signed(runner.url, 'PUT', '/jobs/a', body);
    expect((await fetch(request.clone())).status).toBe(202);
    const again = await fetch(request);
    expect(again.status).toBe(401);
    expect(sandbox.started.length).toBe(1);
  });

  test('a request replayed after a restart', async () => {
    const { stateDir } = runner;
    const request = await signed(runner.url, 'DELETE', '/jobs/a', '');
    const path = new URL(request.url).pathname;
    expect((await fetch(request.clone())).status).toBe(202);
    await runner.stop();
    runner = await startRunner({ sandboxes: [sandbox], stateDir });
    const replayed = await fetch(runner.url + path, { method: 'DELETE', headers: request.headers });
    expect(replayed.status).toBe(401);
  });

  test('an unsigned request to any route except health and metrics', async () => {
    for (const request of [
      'GET /events?session=ses_test',
      'GET /jobs/a',
      'DELETE /jobs/a',
      'POST /prewarm',
      'PUT /workspaces/ses_test/files',
      'POST /workspaces/ses_test/files/read',
      'DELETE /workspaces/ses_test',
      'POST /egress',
      'POST /egress/resolve',
      'GET /relics?space=ses_test',
      'DELETE /relics?space=ses_test',
      'POST /relics/r/call',
      'POST /relics/r/start',
    ]) {
      const [method = '', path = ''] = request.split(' ');
      expect((await fetch(runner.url + path, { method })).status, request).toBe(401);
    }
  });
});

test('[R7] a signed request passes', async () => {
  expect((await send({})).status).toBe(202);
  expect(sandbox.started.length).toBe(1);
});

test('[R7] a body with characters beyond ASCII is signed by its bytes', async () => {
  const text = JSON.stringify(job({ kind: 'python', code: 'print("é 🙂")' }));
  expect((await fetch(await signed(runner.url, 'PUT', '/jobs/a', text))).status).toBe(202);
  expect(sandbox.started[0]?.launch).toMatchObject({ source: 'print("é 🙂")' });
});

test('[R7] a clock difference of a few seconds is accepted', async () => {
  const skew = limits.clockSkewSeconds - 3;
  expect((await send({ claims: { iat: now + skew, exp: now + skew + 60 } })).status).toBe(202);
});

test('[R1] health and metrics need no signature and show no secret', async () => {
  for (const path of ['/health', '/metrics']) {
    const response = await fetch(runner.url + path);
    expect(response.status).toBe(200);
    expect(await response.text()).not.toContain(SECRET);
  }
});

describe('keys by id', () => {
  const OLD = 'the old secret, with more than thirty-two characters';
  const NEW = 'the-new-secret-with-more-than-thirty-two-characters';
  const old = OLD.replaceAll(/[ ,]/g, '-');

  async function status(tampering: Tampering): Promise<number> {
    return (await fetch(await signed(runner.url, 'PUT', '/jobs/k', body, tampering))).status;
  }

  test('[R7] the old and the new key are valid at the same time, each only with its id', async () => {
    await runner.close();
    runner = await startRunner({ sandboxes: [sandbox], secret: `2026-12=${NEW}, 2026-11=${old}` });
    expect(await status({ secret: NEW, keyId: '2026-12' })).toBe(202);
    expect(await status({ secret: old, keyId: '2026-11' })).toBe(200);
    expect(await status({ secret: old, keyId: '2026-12' })).toBe(401);
    expect(await status({ secret: NEW, keyId: '2026-10' })).toBe(401);
    expect(await status({ secret: NEW })).toBe(401);
  });

  test('[R7] a secret without an id remains valid beside named ones', async () => {
    await runner.close();
    runner = await startRunner({ sandboxes: [sandbox], secret: `2026-12=${NEW},${old}` });
    expect(await status({ secret: NEW, keyId: '2026-12' })).toBe(202);
    expect(await status({ secret: old })).toBe(200);
    expect(await status({ secret: old, keyId: '' })).toBe(401);
  });

  test('[R7] a key that is no longer listed is invalid', async () => {
    await runner.close();
    runner = await startRunner({ sandboxes: [sandbox], secret: `2026-12=${NEW}` });
    await expectRefused(
      await fetch(await signed(runner.url, 'PUT', '/jobs/a', body, { secret: old, keyId: '2026-11' })),
    );
  });

  test.each([
    ['a=short', 'must have at least'],
    [`a=${NEW},b=short`, 'must have at least'],
    [`a=${NEW},a=${old}`, 'a is a duplicate'],
  ])('[R7] the keys %s are refused at start', (keys, why) => {
    expect(() => parseKeys(keys)).toThrow(why);
  });

  test('[R7] a base64 secret is one secret', () => {
    expect(parseKeys(`${'x'.repeat(43)}=`)).toMatchObject([{ id: null }]);
  });
});

test('[R7] a request signed for another runner with the same keys is refused', async () => {
  await runner.close();
  runner = await startRunner({ sandboxes: [sandbox], publicHost: 'a.example' });
  const send = async (claims: Record<string, unknown>): Promise<number> =>
    (await fetch(await signed(runner.url, 'PUT', '/jobs/a', body, { claims }))).status;
  expect(await send({ hst: 'b.example' })).toBe(401);
  expect(await send({})).toBe(401);
  expect(sandbox.started).toEqual([]);
  expect(await send({ hst: 'a.example' })).toBe(202);
});

function unsignedToken(): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${encode({ alg: 'none' })}.${encode({ aud: 'cortex-runner', iat: now, exp: now + 60 })}.`;
}
