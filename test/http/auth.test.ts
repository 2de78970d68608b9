import { describe, expect, test } from 'vitest';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { authenticate } from '../../src/http/auth.ts';

const OPEN = { keys: [], allowedOrigins: [] };
const KEYS = {
  keys: parseApiKeys('ann:run:k-ann,bob:admin:k:bob,eve:run:k@eve@bob'),
  allowedOrigins: ['https://app.example'],
};

function request(headers: Record<string, string>): Request {
  return new Request('http://127.0.0.1:8787/execute/direct', { method: 'POST', headers });
}

describe('[H5] without keys, only this machine has access', () => {
  test.each([['127.0.0.1:8787'], ['localhost:8787'], ['[::1]:8787'], ['LOCALHOST']])(
    'host %s is served',
    async (host) => {
      await expect(authenticate(request({ host }), OPEN)).resolves.toEqual({ owner: null, role: 'admin' });
    },
  );

  test.each([
    ['evil.example', {}],
    ['127.0.0.1.evil.example', {}],
    ['localhost.evil.example:8787', {}],
    ['192.168.1.5:8787', {}],
    ['127.0.0.1:8787', { 'cf-connecting-ip': '203.0.113.7' }],
    ['127.0.0.1:8787', { 'x-forwarded-for': '203.0.113.7' }],
    ['127.0.0.1:8787', { 'x-forwarded-for': '127.0.0.1, 203.0.113.7' }],
    ['127.0.0.1:8787', { 'x-forwarded-for': '' }],
    ['127.0.0.1:8787', { 'x-forwarded-host': 'agent.example' }],
    ['127.0.0.1:8787', { 'x-real-ip': '2001:db8::7' }],
    ['127.0.0.1:8787', { 'true-client-ip': '203.0.113.7:80' }],
    ['127.0.0.1:8787', { forwarded: 'for=127.0.0.1' }],
    ['127.0.0.1:8787', { via: '1.1 proxy' }],
    ['127.0.0.1:8787', { origin: 'http://evil.example' }],
    ['127.0.0.1:8787', { origin: 'null' }],
    ['127.0.0.1:8787', { origin: 'http://127.0.0.1:9999' }],
  ])('host %s with %j is refused', async (host, extra) => {
    await expect(authenticate(request({ host, ...extra }), OPEN)).rejects.toMatchObject({ code: 'forbidden_origin' });
  });

  test.each([
    [{ 'x-forwarded-for': '::1' }],
    [{ 'x-forwarded-for': '::ffff:127.0.0.1, 127.0.0.1:5173', 'x-forwarded-host': 'localhost:3000' }],
    [{ 'x-forwarded-host': '[::1]:3000', 'x-forwarded-proto': 'http' }],
  ])('a proxy that forwards for this machine is served: %j', async (headers) => {
    await expect(authenticate(request({ host: '127.0.0.1:8787', ...headers }), OPEN)).resolves.toMatchObject({
      owner: null,
    });
  });

  test('a page that the server itself serves can call it', async () => {
    const same = request({ host: '127.0.0.1:8787', origin: 'http://127.0.0.1:8787' });
    await expect(authenticate(same, OPEN)).resolves.toMatchObject({ owner: null });
  });
});

test.each([
  'user@127.0.0.1',
  '127.0.0.1, 127.0.0.1',
  '127.0.0.1:',
  '127.0.0.1:8x',
  '127.0.0.1:65536',
  '127.0.0.1/x',
  '127.0.0.1#@evil.example',
  '127.0.0.1 x',
  '%31.example',
  '[::1',
  '1.2.3.4.5',
  '',
])('[H5] the malformed Host "%s" is an invalid request, with and without keys', async (host) => {
  for (const config of [OPEN, KEYS]) {
    await expect(authenticate(request({ host, authorization: 'Bearer k-ann' }), config)).rejects.toMatchObject({
      code: 'invalid_request',
    });
  }
});

describe('[H5] with keys', () => {
  test('a known key gives its owner and role; the key can contain colons', async () => {
    const host = 'api.example';
    await expect(authenticate(request({ host, authorization: 'Bearer k-ann' }), KEYS)).resolves.toEqual({
      owner: 'ann',
      role: 'run',
    });
    await expect(authenticate(request({ host, authorization: 'bearer k:bob' }), KEYS)).resolves.toEqual({
      owner: 'bob',
      role: 'admin',
    });
  });

  test('[T4] a key of another name gives the owner of its namespace', async () => {
    const headers = { host: 'api.example', authorization: 'Bearer k@eve' };
    await expect(authenticate(request(headers), KEYS)).resolves.toEqual({ owner: 'bob', role: 'run' });
  });

  test.each([
    ['k@eve@bob', /Unknown API key: it ends before the last "@"/],
    ['k@eve@ann', /^Unknown API key$/],
    ['k', /^Unknown API key$/],
  ])('[T4] %s is not a key, and only the namespace after a right key is explained', async (key, message) => {
    const headers = { host: 'api.example', authorization: `Bearer ${key}` };
    await expect(authenticate(request(headers), KEYS)).rejects.toMatchObject({ code: 'unauthorized' });
    await expect(authenticate(request(headers), KEYS)).rejects.toThrow(message);
  });

  test.each([
    [{}],
    [{ authorization: 'Bearer nope' }],
    [{ authorization: 'Basic k-ann' }],
    [{ authorization: 'Bearer' }],
  ])('%j is unauthorized', async (headers) => {
    await expect(authenticate(request({ host: 'api.example', ...headers }), KEYS)).rejects.toMatchObject({
      code: 'unauthorized',
    });
  });

  test('a listed origin can send a key, another origin cannot', async () => {
    const headers = { host: 'api.example', authorization: 'Bearer k-ann' };
    await expect(authenticate(request({ ...headers, origin: 'https://app.example' }), KEYS)).resolves.toMatchObject({
      owner: 'ann',
    });
    await expect(authenticate(request({ ...headers, origin: 'https://app.example.evil' }), KEYS)).rejects.toMatchObject(
      {
        code: 'forbidden_origin',
      },
    );
  });
});
