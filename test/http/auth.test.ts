import { describe, expect, test } from 'vitest';
import { authenticate, parseApiKeys } from '../../src/http/auth.ts';

const OPEN = { keys: [], allowedOrigins: [] };
const KEYS = { keys: parseApiKeys('ann:run:k-ann,bob:admin:k:bob'), allowedOrigins: ['https://app.example'] };

function request(headers: Record<string, string>): Request {
  return new Request('http://127.0.0.1:8787/execute/direct', { method: 'POST', headers });
}

describe('[H5] without keys, only this machine has access', () => {
  test.each([['127.0.0.1:8787'], ['localhost:8787'], ['[::1]:8787'], ['LOCALHOST']])(
    'host %s is served',
    async (host) => {
      await expect(authenticate(request({ host }), OPEN)).resolves.toEqual({ name: null, role: 'admin' });
    },
  );

  test.each([
    ['evil.example', {}],
    ['127.0.0.1.evil.example', {}],
    ['localhost.evil.example:8787', {}],
    ['192.168.1.5:8787', {}],
    ['127.0.0.1:8787', { 'cf-connecting-ip': '203.0.113.7' }],
    ['127.0.0.1:8787', { origin: 'http://evil.example' }],
    ['127.0.0.1:8787', { origin: 'null' }],
    ['127.0.0.1:8787', { origin: 'http://127.0.0.1:9999' }],
  ])('host %s with %j is refused', async (host, extra) => {
    await expect(authenticate(request({ host, ...extra }), OPEN)).rejects.toMatchObject({ code: 'forbidden_origin' });
  });

  test('a page that the server itself serves can call it', async () => {
    const same = request({ host: '127.0.0.1:8787', origin: 'http://127.0.0.1:8787' });
    await expect(authenticate(same, OPEN)).resolves.toMatchObject({ name: null });
  });
});

describe('[H5] with keys', () => {
  test('a known key gives its name and role; the key can contain colons', async () => {
    const host = 'api.example';
    await expect(authenticate(request({ host, authorization: 'Bearer k-ann' }), KEYS)).resolves.toEqual({
      name: 'ann',
      role: 'run',
    });
    await expect(authenticate(request({ host, authorization: 'bearer k:bob' }), KEYS)).resolves.toEqual({
      name: 'bob',
      role: 'admin',
    });
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
      name: 'ann',
    });
    await expect(authenticate(request({ ...headers, origin: 'https://app.example.evil' }), KEYS)).rejects.toMatchObject(
      {
        code: 'forbidden_origin',
      },
    );
  });

  test.each(['ann', 'ann:run', 'ann:root:key', 'ann:run:'])(
    'API_KEYS=%s is refused instead of allowing open access',
    (text) => {
      expect(() => parseApiKeys(text)).toThrow(/entry 1 must be name:role:key/);
    },
  );
});

describe('[X3] API keys with ambiguous secrets or sessions are refused', () => {
  test.each([
    ['ann:admin:k1,Ann:run:k2', '"ann" and "Ann"'],
    ['a-b:admin:k1,a.b:run:k2', 'TOOL_A_B__'],
    ['a:admin:k1,a--b:run:k2', 'cannot be distinguished'],
    ['a:admin:k1,a_:run:k2', 'cannot be distinguished'],
    ['ann:admin:same,bob:run:same', 'entries 1 and 2 have the same key'],
    ['日本:admin:k1', 'visible ASCII'],
    [`${'n'.repeat(65)}:admin:k1`, 'up to 64 characters'],
  ])('%s', (text, message) => {
    expect(() => parseApiKeys(text)).toThrow(message);
    expect(() => parseApiKeys(text)).not.toThrow(/k1|same,/);
  });

  test('one name can have several keys, for example one for each role', () => {
    expect(parseApiKeys('ann:admin:k1,ann:run:k2')).toHaveLength(2);
  });
});
