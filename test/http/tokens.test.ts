/** Session tokens, origins and hosts, through the Worker's own routes (H5). */
import { sign } from 'hono/jwt';
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import type { MissingPart } from '../../src/http/health.ts';
import {
  EXPIRY_HEADER,
  INCARNATION_HEADER,
  INCARNATION_PATH,
  PRINCIPAL_HEADER,
  REVISION_HEADER,
  SCOPES_HEADER,
  WORKER_HEADERS,
} from '../../src/http/session-env.ts';
import { parseTokenSecret, Tokens } from '../../src/http/tokens.ts';
import { edgeApp } from './edge-app.ts';
import { checkedFetch } from '../support/response-check.ts';

const SECRET = 'a secret for signing that nobody knows';
const ID = `ses_${'1'.repeat(32)}`;
const OTHER = `ses_${'2'.repeat(32)}`;
/** An id that this deployment did not issue. */
const MADE_UP = `ses_${'3'.repeat(32)}`;
const NOW = 1_790_000_000_000;
const PAGE = 'https://app.example';
const ANN = { authorization: 'Bearer k-ann' };

/** A Worker with one session of Ann's, whose object records its requests. */
function edge(
  options: { readonly keys?: string; readonly now?: () => number; readonly missing?: readonly MissingPart[] } = {},
) {
  const lines: string[] = [];
  const asked: { path: string; principal: string | null; authorization: string | null; [header: string]: unknown }[] =
    [];
  const revisions: (readonly [owner: string | null, revision: number])[] = [];
  const now = options.now ?? ((): number => NOW);
  const keys = options.keys ?? 'ann:run:k-ann,bob:run:k-bob';
  const app = edgeApp({
    auth: { keys: parseApiKeys(keys), allowedOrigins: [PAGE] },
    tokens: new Tokens(() => SECRET, now),
    now,
    newSessionId: async () => ID,
    mayBeSession: async (id) => id !== MADE_UP,
    forward: async (sessionId, path, request) => {
      const principal = request.headers.get(PRINCIPAL_HEADER);
      const expires = request.headers.get(EXPIRY_HEADER);
      const set = Object.fromEntries(WORKER_HEADERS.map((name) => [name, request.headers.get(name)]));
      asked.push({ path, principal, authorization: request.headers.get('authorization'), expires, ...set });
      const mine = sessionId === ID && principal === (keys === '' ? null : 'ann');
      if (mine && path === INCARNATION_PATH) return Response.json({ incarnation: null });
      return new Response(mine ? 'yes' : 'no', { status: mine ? 200 : 404 });
    },
    catalogRevisions: { of: () => 0, require: (owner, revision) => void revisions.push([owner, revision]) },
    executions: async () => ({ entries: [], next: null }),
    status: async (owner) => ({
      executors: [],
      model: 'm',
      endpoints: [{ endpoint: `seen by ${owner ?? 'everybody'}` }],
      runner: null,
      missing: options.missing ?? [],
    }),
    log: (event, fields) => lines.push(`${event} ${fields.message ?? String(fields.fault)} ${JSON.stringify(fields)}`),
  });
  const call = async (path: string, init: RequestInit = {}): Promise<Response> =>
    await checkedFetch(app)(
      new Request(`http://127.0.0.1:8787${path}`, { ...init, headers: { host: '127.0.0.1:8787', ...init.headers } }),
    );
  const post = (path: string, body: unknown, headers: Record<string, string>): Promise<Response> =>
    call(path, { method: 'POST', body: JSON.stringify(body), headers });
  return { asked, lines, revisions, call, post };
}

async function issued(on: ReturnType<typeof edge>, body: unknown = {}): Promise<string> {
  const response = await on.post(`/agent/session/${ID}/tokens`, body, ANN);
  expect(response.status).toBe(201);
  expect(response.headers.get('cache-control')).toBe('no-store');
  const { token } = (await response.json()) as { token: string };
  return token;
}

const code = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

describe('[H5] a token for a browser', () => {
  test('is issued only to the key of the session, and lists its scopes', async () => {
    const on = edge();
    const response = await on.post(`/agent/session/${ID}/tokens`, { scopes: ['read'], expires_in: 60 }, ANN);
    expect(await response.json()).toEqual({
      token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      session_id: ID,
      scopes: ['read'],
      expires_at: NOW + 60_000,
    });
    const other = await on.post(`/agent/session/${ID}/tokens`, {}, { authorization: 'Bearer k-bob' });
    expect(other.status).toBe(404);
    const missing = await on.post(`/agent/session/${OTHER}/tokens`, { scopes: 'nonsense' }, ANN);
    expect(missing.status).toBe(404);
  });

  test.each(['%74ranscript', 'tr%61nscript', '%2D/latest-run', '%2d/execute', '-/latest-run'])(
    'another encoding of a path gives no access: /%s',
    async (path) => {
      const on = edge();
      const headers = { authorization: `Bearer ${await issued(on, { scopes: ['read'] })}` };
      on.asked.length = 0;
      for (const id of [ID, ID.replace('1', '%31')]) {
        const response = await on.call(`/agent/session/${id}/${path}`, { headers });
        expect([403, 404]).toContain(response.status);
        await response.text();
      }
      expect((await on.call(`/agent/session/${ID}/%2D/latest-run`, { headers: ANN })).status).toBe(404);
      expect((await on.call(`/agent/session/${ID.replace('1', '%31')}/-/execute`, { headers: ANN })).status).toBe(404);
      expect(on.asked).toMatchObject([]);
    },
  );

  test.each([
    [{ scopes: [] }],
    [{ scopes: ['admin'] }],
    [{ expires_in: 0 }],
    [{ expires_in: limits.sessionTokenMaxSeconds + 1 }],
    [{ expires_in: 1.5 }],
  ])('%j is refused', async (body) => {
    expect(await code(await edge().post(`/agent/session/${ID}/tokens`, body, ANN))).toEqual([400, 'invalid_request']);
  });

  test('gives access as a header and as ?token=, which the Worker does not forward', async () => {
    const on = edge();
    const token = await issued(on);
    on.asked.length = 0;
    const bearer = { authorization: `Bearer ${token}` };
    expect((await on.call(`/agent/session/${ID}/events?after=3`, { headers: bearer })).status).toBe(200);
    expect((await on.call(`/agent/session/${ID}/events?token=${token}&after=3`)).status).toBe(200);
    expect((await on.call(`/agent/session/${ID}?token=${token}`)).status).toBe(200);
    expect(on.asked).toMatchObject([
      { path: '/events?after=3', principal: 'ann', authorization: null },
      { path: '/events?after=3', principal: 'ann', authorization: null },
      { path: '/', principal: 'ann', authorization: null },
    ]);
  });

  test('[T1] the object gets the scopes of a token, and no header that a client has sent', async () => {
    const on = edge();
    const authorization = `Bearer ${await issued(on, { scopes: ['read', 'tools'], expires_in: 60 })}`;
    on.asked.length = 0;
    const forged = Object.fromEntries(WORKER_HEADERS.map((name) => [name, 'approve']));
    await on.call(`/agent/session/${ID}`, { headers: { ...forged, authorization } });
    await on.call(`/agent/session/${ID}`, { headers: { ...forged, ...ANN } });
    const removed = Object.fromEntries(WORKER_HEADERS.map((name) => [name, null]));
    expect(on.asked).toMatchObject([
      {
        ...removed,
        [PRINCIPAL_HEADER]: 'ann',
        [EXPIRY_HEADER]: String(NOW + 60_000),
        [SCOPES_HEADER]: 'read tools',
        [INCARNATION_HEADER]: '',
      },
      { ...removed, [PRINCIPAL_HEADER]: 'ann' },
    ]);
  });

  test('expires, and is revoked with the key that issued it', async () => {
    let now = NOW;
    const token = await issued(edge(), { expires_in: 60 });
    const path = `/agent/session/${ID}/events?token=${token}`;
    const on = edge({ now: () => now });
    now = NOW + 59_000;
    expect((await on.call(path)).status).toBe(200);
    now = NOW + 60_000;
    expect(await code(await on.call(path))).toEqual([401, 'unauthorized']);
    const without = edge({ keys: 'bob:run:k-bob' });
    expect(await code(await without.call(path))).toEqual([401, 'unauthorized']);
  });

  test('with any forged part gives 401, and no request reaches the session', async () => {
    const on = edge();
    const claims = {
      aud: 'cortex-edge:session',
      sub: ID,
      own: 'ann',
      scope: 'read message approve',
      exp: Math.floor(NOW / 1_000) + 60,
    };
    const without = (name: string): Record<string, string | number> =>
      Object.fromEntries(Object.entries(claims).filter(([claim]) => claim !== name));
    const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const good = await issued(on);
    const [header, payload, signature] = good.split('.');
    on.asked.length = 0;
    const forged: Record<string, string> = {
      'alg none': `${base64({ alg: 'none', typ: 'JWT' })}.${base64(claims)}.`,
      'alg None with a signature': `${base64({ alg: 'None', typ: 'JWT' })}.${base64(claims)}.${signature}`,
      'another algorithm': await sign(claims, SECRET, 'HS512'),
      'another secret': await sign(claims, 'another secret', 'HS256'),
      'another audience': await sign({ ...claims, aud: 'runner' }, SECRET, 'HS256'),
      'no audience': await sign(without('aud'), SECRET, 'HS256'),
      'no expiry': await sign(without('exp'), SECRET, 'HS256'),
      'an expiry that is no number': await sign({ ...claims, exp: '9999999999' as never }, SECRET, 'HS256'),
      'no session': await sign(without('sub'), SECRET, 'HS256'),
      'other claims under its signature': `${header}.${base64({ ...claims, scope: 'approve' })}.${signature}`,
      'no signature': `${header}.${payload}.`,
      'a cut signature': good.slice(0, -4),
      nonsense: 'a.b.c',
      'too long': `${'a'.repeat(limits.sessionTokenChars)}.b.c`,
      empty: '',
    };
    for (const [how, token] of Object.entries(forged)) {
      expect([how, ...(await code(await on.call(`/agent/session/${ID}/events?token=${token}`)))]).toEqual([
        how,
        401,
        'unauthorized',
      ]);
    }
    expect(on.asked).toMatchObject([]);
  });

  test('works without API keys on loopback', async () => {
    const on = edge({ keys: '' });
    const response = await on.post(`/agent/session/${ID}/tokens`, {}, {});
    const { token } = (await response.json()) as { token: string };
    expect((await on.call(`/agent/session/${ID}/events?token=${token}`)).status).toBe(200);
    const far = await on.call(`/agent/session/${ID}/events?token=${token}`, { headers: { host: 'evil.example' } });
    expect(await code(far)).toEqual([403, 'forbidden_origin']);
  });

  test('is redacted in logs', async () => {
    const on = edge();
    const token = await issued(on);
    await on.call(`/agent/session/${ID}/tokens?token=${token}`, { method: 'PUT' });
    await on.call(`/agents?token=${token}`);
    expect(on.lines.join('')).not.toContain(token);
  });
});

describe('[H5] origins and hosts', () => {
  test('a page of a listed origin can send requests and read the answers, including refusals', async () => {
    const on = edge();
    const path = `/agent/session/${ID}/message`;
    const asks = {
      origin: PAGE,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization, x-stainless-lang',
    };
    const preflight = await on.call(path, { method: 'OPTIONS', headers: asks });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe(PAGE);
    // Clients of other protocols have headers of their own.
    expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization, x-stainless-lang');
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull();
    const token = await issued(on);
    const fine = await on.call(path, { method: 'POST', headers: { origin: PAGE, authorization: `Bearer ${token}` } });
    expect([fine.status, fine.headers.get('access-control-allow-origin')]).toEqual([200, PAGE]);
    const refused = await on.call(path, { method: 'POST', headers: { origin: PAGE } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, PAGE]);
  });

  test.each(['https://app.example.evil', 'http://app.example', 'null', 'https://evil.example'])(
    'a page of %s gets no access with any credentials',
    async (origin) => {
      const on = edge();
      const token = await issued(on);
      on.asked.length = 0;
      const path = `/agent/session/${ID}/events`;
      const asks = { origin, 'access-control-request-method': 'GET' };
      for (const headers of [asks, { origin, authorization: `Bearer ${token}` }, { origin, ...ANN }]) {
        const response = await on.call(path, { headers });
        expect(await code(response)).toEqual([403, 'forbidden_origin']);
        expect(response.headers.get('access-control-allow-origin')).toBeNull();
      }
      expect((await on.call('/health', { headers: { origin } })).status).toBe(403);
      expect(on.asked).toMatchObject([]);
    },
  );

  test('without keys another host cannot read the health; with keys it can', async () => {
    const far = { headers: { host: 'rebound.example' } };
    expect((await edge({ keys: '' }).call('/health', far)).status).toBe(403);
    expect((await edge({ keys: '' }).call('/health')).status).toBe(200);
    expect((await edge().call('/health', far)).status).toBe(200);
  });

  test('[H1] the readiness check answers 503 until every part answers; the liveness check answers 200', async () => {
    const starting = edge({
      missing: [{ part: 'runner', state: 'starting', reason: 'the runner is starting', workedBefore: false, upMs: 0 }],
    });
    const statuses = async (on: ReturnType<typeof edge>): Promise<number[]> =>
      await Promise.all(['/health', '/health?ready', '/health?ready=1'].map(async (at) => (await on.call(at)).status));
    expect(await statuses(starting)).toEqual([200, 503, 503]);
    expect(await (await starting.call('/health?ready')).json()).toMatchObject({
      status: 'starting',
      missing: [{ part: 'runner', reason: 'the runner is starting' }],
    });
    expect(await statuses(edge())).toEqual([200, 200, 200]);
  });
});

describe('[H5] the signing secret of tokens', () => {
  test('without a secret, no token is issued and none is accepted', async () => {
    const tokens = new Tokens(
      () => null,
      () => NOW,
    );
    const claim = {
      type: 'session',
      sessionId: ID,
      incarnation: null,
      owner: 'ann',
      scopes: ['read'],
      expiresAt: NOW + 1_000,
    } as const;
    await expect(tokens.issue(claim)).rejects.toMatchObject({ code: 'not_configured', status: 501 });
    // a token signed with a secret derived from the keys
    const guessed = await sign(
      { aud: 'cortex-edge:session', sub: ID, own: 'ann', scope: 'read', exp: NOW / 1_000 + 60 },
      'session tokens of ann:run:k-ann',
      'HS256',
    );
    await expect(tokens.read(guessed)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  test('a short secret is refused', () => {
    expect(parseTokenSecret('')).toBeNull();
    expect(parseTokenSecret('x'.repeat(limits.tokenSecretChars))).not.toBeNull();
    expect(() => parseTokenSecret('x'.repeat(limits.tokenSecretChars - 1))).toThrow('at least 32 characters');
    expect(() => parseTokenSecret('hunter2')).not.toThrow(/hunter2/);
  });
});

test('[H5] /health names the model, the runner and endpoints only to a caller with a key, limited to that key’s own observations', async () => {
  const on = edge();
  const members = async (init: RequestInit = {}): Promise<string[]> =>
    Object.keys((await (await on.call('/health', init)).json()) as object);
  const brief = ['status', 'service', 'version', 'parts', 'executors'];
  expect(await members()).toEqual(brief);
  expect(await members({ headers: ANN })).toEqual([...brief, 'model', 'model_endpoints', 'runner']);
  const token = await issued(on);
  expect(await members({ headers: { authorization: `Bearer ${token}` } })).toEqual(brief);
  expect((await on.call('/health', { headers: { authorization: 'Bearer guessed' } })).status).toBe(401);
  const { model_endpoints: seen } = (await (await on.call('/health', { headers: ANN })).json()) as {
    model_endpoints: object[];
  };
  expect(seen).toEqual([{ endpoint: 'seen by ann' }]);
});

test('[Z1] a key says which change of its manifests it must see; a token and other numbers do not', async () => {
  const on = edge();
  const token = await issued(on);
  for (const [caller, revision] of [
    [ANN, String(NOW)],
    [{ authorization: `Bearer ${token}` }, String(NOW + 1)],
    [ANN, '1e12'],
    [ANN, '-1'],
    [ANN, '9'.repeat(16)],
  ] as const) {
    await on.call(`/agent/session/${ID}/events`, { headers: { ...caller, [REVISION_HEADER]: revision } });
    expect(on.asked.at(-1)).toMatchObject({ [REVISION_HEADER]: null });
  }
  expect(on.revisions).toEqual([['ann', NOW]]);
});

test('[H1] no object is started for an invented id of a session, a run or a token', async () => {
  const on = edge();
  for (const [method, path] of [
    ['GET', `/agent/session/${MADE_UP}`],
    ['GET', `/agent/session/${MADE_UP}/events`],
    ['DELETE', `/agent/session/${MADE_UP}`],
    ['POST', `/agent/session/${MADE_UP}/message`],
    ['POST', `/agent/session/${MADE_UP}/tokens`],
    ['GET', `/executions/${MADE_UP}`],
    ['GET', `/executions/${MADE_UP.replace('ses', 'run')}_1`],
    ['POST', `/executions/${MADE_UP}/cancel`],
  ] as const) {
    const response = await on.call(path, { method, headers: ANN, ...(method === 'POST' ? { body: '{}' } : {}) });
    expect([path, response.status]).toEqual([path, 404]);
  }
  expect(on.asked).toEqual([]);
});
