/**
 * What other users and web pages of this machine can reach of `npm start` (X1, H5): each listener of its processes has a known
 * guard (start.test.ts has those without the inspector), and requests mean the same to the local platform and to the Worker.
 */
import { once } from 'node:events';
import { appendFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { guardsOf, upgrade } from '../support/listener-guards.ts';
import { listenersOf } from '../support/listeners.ts';
import { cleanUp, processesOf, start, stateFolder, stop } from '../support/npm-start.ts';
import type { Started } from '../support/npm-start.ts';
import { MALFORMED_HOSTS, sendRaw } from '../support/raw-http.ts';
import { sharedPart } from '../support/shared.ts';

afterAll(cleanUp);

const KEY = 'key-of-this-test';
const LIGHT = { RUNNER_SANDBOX: 'process', RUNNER_ALLOW_PROCESS: '1', RUNNER_WARM: '0' };

const portOf = ({ url }: Pick<Started, 'url'>): number => Number(new URL(url).port);

/** A reverse proxy on this machine. @returns the status of a request through it */
async function through(
  system: Pick<Started, 'url'>,
  rewrite: (headers: Record<string, string>) => Record<string, string>,
  headers: Record<string, string>,
): Promise<number> {
  const proxy = createServer((received, response) => {
    const passed = rewrite({ ...(received.headers as Record<string, string>) });
    received.pipe(
      request(
        { host: '127.0.0.1', port: portOf(system), path: received.url, method: received.method, headers: passed },
        (answer) => answer.pipe(response.writeHead(answer.statusCode ?? 0)),
      ),
    );
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const { port } = proxy.address() as AddressInfo;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const { status } = await sendRaw(port, ['GET /agents HTTP/1.1', ...lines, 'Connection: close']);
  proxy.close();
  return status;
}

const PUBLIC = { host: 'agent.example' };
const asIs = (headers: Record<string, string>): Record<string, string> => headers;
/** As nginx and most others do. */
const rewriting =
  (added: Record<string, string>) =>
  (headers: Record<string, string>): Record<string, string> => ({ ...headers, host: '127.0.0.1:8787', ...added });

/** Routes of Miniflare and wrangler in spellings that their routing accepts. */
const PLATFORM_PATHS = [
  '/cdn-cgi/local/scheduled',
  '/cdn-cgi/local/email',
  '/cdn-cgi/local/r2/public/FILES/x',
  '/cdn-cgi/local/r2/public/cortex-edge-files/x',
  '/cdn-cgi/local/r2/s3/x',
  '/cdn-cgi/local/explorer/api',
  '/cdn-cgi/local/platform-proxy',
  '/cdn-cgi/handler/scheduled',
  '/cdn-cgi/handler/r2/public/FILES/x',
  '/cdn-cgi/mf/scheduled',
  '/cdn-cgi/mf/stream/x',
  '/cdn-cgi/explorer',
  '/cdn-cgi/live-reload',
  '/__cf_local/stream/x',
  '/__cf_local/imagedelivery/x',
  '/__cf_local/imageupload/x',
  '//cdn-cgi/handler/scheduled',
  '/x/../cdn-cgi/handler/scheduled',
  '/x/%2e%2e/cdn-cgi/handler/scheduled',
  '/%63dn-cgi/handler/scheduled',
  '/CDN-CGI/handler/scheduled',
  String.raw`/\cdn-cgi/handler/scheduled`,
  String.raw`/cdn-cgi\handler\scheduled`,
];

describe('without keys', () => {
  let system: Pick<Started, 'url'>;

  beforeAll(async () => {
    system = { url: await sharedPart('system') };
  });

  test.each([
    ['no header', []],
    ['the URL for Miniflare', ['MF-Original-URL: http://127.0.0.1/agents']],
    ['the URL in lower case', ['mf-original-url: http://localhost/agents']],
    ['the host name for Miniflare', ['MF-Original-Hostname: 127.0.0.1']],
    ['another route', ['MF-Route-Override: cortex-edge', 'MF-Original-URL: http://127.0.0.1/agents']],
    ['the scheme of a proxy', ['X-Forwarded-Proto: https', 'X-Forwarded-Host: 127.0.0.1']],
    ['the host of a proxy', ['Forwarded: for=127.0.0.1;host=127.0.0.1']],
    ['the address of Cloudflare', ['CF-Connecting-IP: 127.0.0.1', 'MF-Original-URL: http://127.0.0.1/agents']],
    ['the origin of the system', ['Origin: http://127.0.0.1', 'MF-Original-URL: http://127.0.0.1/agents']],
  ])('[H5] a page with a rebound host reads nothing, with %s', async (_name, headers) => {
    for (const method of ['GET', 'HEAD']) {
      const lines = [
        `${method} /agents HTTP/1.1`,
        `Host: evil.example:${portOf(system)}`,
        ...headers,
        'Connection: close',
      ];
      expect((await sendRaw(portOf(system), lines)).status).toBe(403);
    }
  });

  test('[H5] headers for Miniflare change nothing for this machine', async () => {
    const headers = {
      'mf-original-url': 'http://127.0.0.1/nowhere',
      'mf-route-override': 'x',
      'mf-cf-blob': 'not JSON',
    };
    expect((await fetch(`${system.url}/agents`, { headers })).status).toBe(200);
  });

  test.each<[string, (headers: Record<string, string>) => Record<string, string>, number]>([
    ['that rewrites nothing', asIs, 403],
    ['that names the client', rewriting({ 'x-forwarded-for': '203.0.113.7' }), 403],
    ['that appends the client', rewriting({ 'x-forwarded-for': '127.0.0.1, 203.0.113.7' }), 403],
    [
      'that names its own host',
      rewriting({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'agent.example' }),
      403,
    ],
    ['that names the client in another header', rewriting({ 'x-real-ip': '2001:db8::7' }), 403],
    ['with the standard header', rewriting({ forwarded: 'for=127.0.0.1' }), 403],
    ['that names itself', rewriting({ via: '1.1 proxy' }), 403],
    ['that is a tunnel', rewriting({ 'cf-connecting-ip': '203.0.113.7' }), 403],
    [
      'of a development server of this machine',
      rewriting({ 'x-forwarded-for': '::1', 'x-forwarded-host': 'localhost:3000' }),
      200,
    ],
  ])('[H5] a reverse proxy %s gets the right answer', async (_name, rewrite, status) => {
    expect(await through(system, rewrite, PUBLIC)).toBe(status);
  });

  test.each(MALFORMED_HOSTS)('[H5] %s: 400 with a problem document', async (_name, hosts) => {
    const { status, body } = await sendRaw(portOf(system), ['GET /agents HTTP/1.1', ...hosts, 'Connection: close']);
    expect([status, (JSON.parse(body) as { code: string }).code]).toEqual([400, 'invalid_request']);
  });
});

describe.runIf(process.platform === 'linux')('with keys, a bucket and the inspector', () => {
  let system: Started;
  const state = stateFolder();
  let runnerPort = 0;
  const built = mkdtempSync(join(tmpdir(), 'cortex-bucket-'));
  const bearer = { authorization: `Bearer ${KEY}` };

  beforeAll(async () => {
    cpSync(process.env['CORTEX_BUILT_WORKER'] ?? '', built, { recursive: true });
    appendFileSync(
      join(built, 'wrangler.toml'),
      '\n[[r2_buckets]]\nbinding = "FILES"\nbucket_name = "cortex-edge-files"\n',
    );
    runnerPort = await freePort();
    const env = {
      ...LIGHT,
      CORTEX_STATE_DIR: state,
      CORTEX_BUILT_WORKER: built,
      RUNNER_PORT: String(runnerPort),
      API_KEYS: `ann:admin:${KEY}`,
      ALLOWED_ORIGINS: 'https://listed.example',
    };
    system = await start(env, [process.execPath, 'cli/main.ts', 'dev', '--inspect']);
  });
  afterAll(async () => {
    await stop(system);
    rmSync(built, { recursive: true, force: true });
  });

  test('[X1] the inspector is one more listener, which only the printed address opens', async () => {
    const listeners = listenersOf(processesOf(system));
    expect(await guardsOf(listeners, { front: portOf(system), runner: runnerPort, state })).toEqual([
      'folder of this user',
      'front',
      'random address',
      'runner',
      'secret of miniflare',
      'secret of the inspector',
    ]);
    const [, port = '', path = ''] = /ws:\/\/127\.0\.0\.1:(\d+)(\/[0-9a-f]{32})\b/.exec(system.output()) ?? [];
    expect(await upgrade(Number(port), path, ['Host: 127.0.0.1'])).toBe('HTTP/1.1 101');
    expect(await upgrade(Number(port), path, ['Host: 127.0.0.1', 'Origin: http://evil.example'])).toBe('HTTP/1.1 403');
    expect(await upgrade(Number(port), path, ['Host: evil.example'])).toBe('HTTP/1.1 403');
  });

  test.each(PLATFORM_PATHS)('[X1] %s does not answer', async (path) => {
    const targets = [path, `http://127.0.0.1:${portOf(system)}${path}`];
    for (const target of targets) {
      for (const method of ['GET', 'POST', 'PUT', 'OPTIONS']) {
        const lines = [
          `${method} ${target} HTTP/1.1`,
          `Host: 127.0.0.1:${portOf(system)}`,
          'Content-Length: 0',
          'Connection: close',
        ];
        const { status, head, body } = await sendRaw(portOf(system), lines);
        expect([method, target, status]).toEqual([method, target, 404]);
        expect(head.toLowerCase()).not.toContain('access-control');
        expect(JSON.parse(body)).toMatchObject({
          code: 'not_found',
          detail: expect.stringContaining('local platform'),
        });
      }
    }
  });

  test.each<[string, (headers: Record<string, string>) => Record<string, string>, Record<string, string>, number]>([
    ['that rewrites nothing, with a key', asIs, bearer, 200],
    ['that rewrites nothing, without a key', asIs, {}, 401],
    ['that rewrites nothing, for its own page', asIs, { ...bearer, origin: 'https://agent.example' }, 200],
    ['that rewrites nothing, for another page', asIs, { ...bearer, origin: 'https://evil.example' }, 403],
    ['that rewrites the host, with a key', rewriting({ 'x-forwarded-for': '203.0.113.7' }), bearer, 200],
    ['that rewrites the host, without a key', rewriting({ 'x-forwarded-for': '127.0.0.1' }), {}, 401],
    ['that rewrites the host, for its own page', rewriting({}), { ...bearer, origin: 'https://agent.example' }, 403],
    ['that rewrites the host, for a listed page', rewriting({}), { ...bearer, origin: 'https://listed.example' }, 200],
    [
      'that passes a forged host of a proxy',
      rewriting({ 'x-forwarded-host': 'evil.example' }),
      { ...bearer, origin: 'https://evil.example' },
      403,
    ],
  ])('[H5] a reverse proxy %s', async (_name, rewrite, headers, status) => {
    expect(await through(system, rewrite, { ...PUBLIC, ...headers })).toBe(status);
  });
});
