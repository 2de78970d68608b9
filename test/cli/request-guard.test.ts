/** What the front of the local Worker refuses, and what it removes from a request (H5, X1). */
import { describe, expect, test } from 'vitest';
import { guardAnswer, guardRequest } from '../../cli/system/request-guard.ts';
import type { PassedRequest } from '../../cli/system/request-guard.ts';
import { MALFORMED_HOSTS } from '../support/raw-http.ts';

const pass = (target: string, headers: readonly string[] = []): PassedRequest =>
  guardRequest({ target, rawHeaders: ['Host', '127.0.0.1:8787', ...headers], peer: '127.0.0.1' });

describe('[X1] paths of the local platform', () => {
  test.each([
    '/cdn-cgi/',
    '/cdn-cgi',
    '/cdn-cgi/local/r2/public/files/key',
    '//cdn-cgi/local/scheduled',
    '/./cdn-cgi/x',
    '/x/../cdn-cgi/x',
    '/x/%2e%2e/cdn-cgi/x',
    String.raw`/\cdn-cgi/x`,
    String.raw`\cdn-cgi\x`,
    String.raw`/cdn-cgi\x`,
    '/%63dn-cgi/x',
    '/cdn%2dcgi/x',
    '/cdn-cgi%2Fx',
    '/cdn-cgi%3Fx',
    '/%3Ccdn/..%2fcdn-%09cgi/x',
    '/%2563dn-cgi/x',
    '/x%2f..%2fcdn-cgi/x',
    '/CDN-CGI/x',
    '/cdn-\tcgi/x',
    'http://127.0.0.1:8787/cdn-cgi/x',
    'HTTP://127.0.0.1:8787//CDN-cgi/x',
    '/__cf_local/stream/x',
    '/__CF_local/imageupload',
    `/${'%25'.repeat(1)}${'25'.repeat(12)}63dn-cgi/x`,
  ])('%j is refused', (target) => {
    expect(() => pass(target)).toThrow(
      expect.objectContaining({ status: expect.toSatisfy((code) => code === 404 || code === 400) }),
    );
  });

  test.each([
    ['/', '/'],
    ['/health?ready', '/health?ready'],
    ['/agents/cdn-cgi', '/agents/cdn-cgi'],
    ['/cdn-cgi2', '/cdn-cgi2'],
    ['/files/a%2Fb/100%25.txt?token=%2Fcdn-cgi%2F', '/files/a%2Fb/100%25.txt?token=%2Fcdn-cgi%2F'],
    ['/files/caf%C3%A9', '/files/caf%C3%A9'],
    ['/files/%E0%A4%A', '/files/%E0%A4%A'],
    ['/a/../b', '/b'],
    ['http://127.0.0.1:8787/health?x', '/health?x'],
  ])('%j passes as %j', (target, path) => {
    expect(pass(target).path).toBe(path);
  });

  test.each([
    '*',
    '',
    'x',
    '127.0.0.1:8787',
    'http://evil.example/health',
    'http://u:p@127.0.0.1:8787/',
    'ftp://127.0.0.1:8787/',
    'http://',
  ])('the target %j is malformed', (target) => {
    expect(() => pass(target)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });
});

test.each(MALFORMED_HOSTS)('[H5] %s is a malformed request', (_name, lines) => {
  const rawHeaders = lines.flatMap((line) => {
    const at = line.indexOf(':');
    return [line.slice(0, at), line.slice(at + 1).trim()];
  });
  expect(() => guardRequest({ target: '/health', rawHeaders, peer: '' })).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  );
});

test.each(['127.0.0.1', 'localhost:8787', 'LOCALHOST', '[::1]:8787', 'my_host.example', 'xn--bcher-kva.example:443'])(
  '[H5] the Host %s is well-formed',
  (host) => {
    expect(guardRequest({ target: '/', rawHeaders: ['Host', host], peer: '' }).headers).toContain(host);
  },
);

describe('[H5] headers', () => {
  test('that Miniflare and wrangler read, and those of one connection, are removed', () => {
    const platform = 'MF-Original-URL mf-original-hostname MF-Proxy-Shared-Secret MF-CF-Blob MF-Op MF-Anything-New';
    const edge = 'X-Mf-Additional-Response-Log CF-Ray CF-Worker CF-Visitor CF-IPCountry CF-EW-Via CDN-Loop';
    const connection = 'Connection Upgrade Keep-Alive Proxy-Authorization Expect TE Trailer HTTP2-Settings';
    const names = `${platform} ${edge} ${connection}`.split(' ');
    expect(pass('/', ['Accept', 'a', ...names.flatMap((name) => [name, 'value'])]).headers).toEqual(
      'Host 127.0.0.1:8787 Accept a CF-Connecting-IP 127.0.0.1'.split(' '),
    );
  });

  test('the address of the client is added; that which a tunnel names is kept', () => {
    const { headers } = pass('/', ['CF-Connecting-IP', '203.0.113.7']);
    expect(headers).toEqual(['Host', '127.0.0.1:8787', 'CF-Connecting-IP', '203.0.113.7']);
  });

  test('others pass in their order, with duplicates', () => {
    const given = ['X-Forwarded-For', '1.2.3.4', 'cookie', 'a=1', 'cookie', 'b=2', 'Transfer-Encoding', 'chunked'];
    expect(pass('/', given).headers.slice(2, -2)).toEqual(given);
  });

  test('an answer loses the headers of the platform and of its connection', () => {
    const given = 'Set-Cookie a MF-Experimental-Error-Stack x Transfer-Encoding chunked Set-Cookie b'.split(' ');
    expect(guardAnswer(given)).toEqual(['Set-Cookie', 'a', 'Set-Cookie', 'b']);
  });
});
