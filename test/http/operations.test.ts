/** The table of operations and what every kind of credential may do (T1, T2, T3, T5). */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import type { Session } from '../../src/engine/session/session.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { descriptionOf } from '../../src/http/openapi/describe.ts';
import { findOperation, OPERATIONS, routedPath, SCOPES, SESSION_PATH } from '../../src/http/operations.ts';
import type { Operation, OperationName, Scope } from '../../src/http/operations.ts';
import { createSessionApp, sessionRoutes } from '../../src/http/session-app.ts';
import { SURFACES, Tokens } from '../../src/http/tokens.ts';
import type { SessionToken, UserToken } from '../../src/http/tokens.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { edgeApp } from './edge-app.ts';

const NOW = 1_790_000_000_000;
const ID = `ses_${'1'.repeat(32)}`;
const GONE = `ses_${'2'.repeat(32)}`;
const names = Object.keys(OPERATIONS) as OperationName[];
const pathOf = (name: OperationName): string => name.split(' ')[1] ?? '';
const isSessionOperation = (name: OperationName): boolean => pathOf(name).startsWith(SESSION_PATH);

const RECORD: SessionRecord = {
  session_id: ID,
  incarnation: 'i1',
  agent: 'assistant',
  owner: 'ann',
  user_id: 'Zoë',
  kind: 'chat',
  metadata: {},
  created_at: NOW,
};

const GONE_SESSION = {
  exists: false,
  recover: async () => undefined,
  get record(): SessionRecord {
    throw new EngineError('unknown_session', 'This session does not exist');
  },
};

/** Passes the checks before the handlers; each handler fails, which counts as reached. */
function objectOf(id: string): ReturnType<typeof createSessionApp> {
  const found = { exists: true, recover: async () => undefined, record: RECORD };
  const gone = new Proxy(GONE_SESSION, {
    get: (target, name) => Reflect.get(target, name in target ? name : 'record'),
  });
  const session = (id === ID ? found : gone) as unknown as Session;
  return createSessionApp({ session, clock: new VirtualClock(), destroy: async () => undefined, log: () => undefined });
}

const tokens = new Tokens(
  () => 'a secret for signing that nobody knows',
  () => NOW,
);
const edge = edgeApp({
  auth: {
    keys: parseApiKeys('ann:admin:k-ann,app:run:k-app@ann,bob:admin:k-bob'),
    allowedOrigins: ['https://app.example'],
  },
  tokens,
  now: () => NOW,
  forward: async (id, path, request) => await objectOf(id).fetch(new Request(`http://session${path}`, request)),
});

type Outcome = 'reached' | 'unauthorized' | 'forbidden' | 'unknown_session';

async function outcomeOf(name: OperationName, authorization: string | null, id = ID): Promise<Outcome> {
  const [method = '', path = ''] = name.split(' ');
  const filled = path
    .replace(':id', id)
    .replace(':kind', 'tool')
    .replace(/:name|:model/, 'assistant')
    .replaceAll(/:\w+/g, 'x');
  const init = { method, ...(method === 'GET' ? {} : { body: '{}' }) };
  const headers = authorization === null ? {} : { authorization: `Bearer ${authorization}` };
  const response = await edge.fetch(new Request(`http://127.0.0.1${filled}`, { ...init, headers }));
  const text =
    response.headers.get('content-type')?.startsWith('text/event-stream') === true ? '' : await response.text();
  const codes = /("code":"|\()(unauthorized|forbidden|unknown_session)("|\)$)/.exec(text);
  const code = codes?.[2] ?? 'reached';
  return code as Outcome;
}

const session = (change: Partial<SessionToken> = {}): Promise<string> =>
  tokens.issue({
    type: 'session',
    sessionId: ID,
    incarnation: 'i1',
    owner: 'ann',
    scopes: SCOPES,
    expiresAt: NOW + 60_000,
    ...change,
  });
const user = (change: Partial<UserToken> = {}): Promise<string> =>
  tokens.issue({
    type: 'user',
    userId: 'Zoë',
    agents: null,
    surfaces: [...SURFACES],
    owner: 'ann',
    scopes: SCOPES,
    expiresAt: NOW + 60_000,
    ...change,
  });

interface Credential {
  readonly name: string;
  readonly make: () => Promise<string | null>;
  readonly isSessionToken?: true;
  /** What it may do with an operation of the session, and with another one. */
  readonly expected: (operation: Operation, isOfSession: boolean) => Outcome;
}

const always = (outcome: Outcome) => (): Outcome => outcome;
/** Refused with this code by the session's object; operations without scopes are refused before. */
const inObject =
  (code: Outcome, outside: Outcome) =>
  ({ scopes = [] }: Operation, isOfSession: boolean): Outcome =>
    scopes.length === 0 ? 'forbidden' : isOfSession ? code : outside;
const byScope =
  (scope: Scope, isUser: boolean) =>
  ({ scopes = [] }: Operation, isOfSession: boolean): Outcome =>
    (isOfSession || isUser) && scopes.includes(scope) ? 'reached' : 'forbidden';

/** Their paths name no agent: it is in the body, or the answer leaves out others (surfaces.test.ts, directory.test.ts). */
const WITHOUT_AGENT: ReadonlySet<Operation> = new Set<Operation>([
  OPERATIONS['GET /sessions'],
  OPERATIONS['POST /mcp'],
  OPERATIONS['GET /v1/models'],
  OPERATIONS['POST /v1/chat/completions'],
  OPERATIONS['POST /v1/responses'],
  OPERATIONS['GET /v1/responses/:response'],
  OPERATIONS['POST /v1/responses/:response/cancel'],
]);

const CREDENTIALS: readonly Credential[] = [
  { name: 'nothing', make: async () => null, expected: always('unauthorized') },
  { name: 'an unknown key', make: async () => 'k-eve', expected: always('unauthorized') },
  {
    name: 'a run key',
    make: async () => 'k-app',
    expected: ({ role }) => (role === undefined ? 'reached' : 'forbidden'),
  },
  { name: 'an admin key', make: async () => 'k-ann', expected: always('reached') },
  {
    name: 'an admin key of another namespace',
    make: async () => 'k-bob',
    expected: (_operation, isOfSession) => (isOfSession ? 'unknown_session' : 'reached'),
  },
  ...SCOPES.flatMap((scope): Credential[] => [
    {
      name: `a session token with ${scope}`,
      isSessionToken: true,
      make: () => session({ scopes: [scope] }),
      expected: byScope(scope, false),
    },
    { name: `a user token with ${scope}`, make: () => user({ scopes: [scope] }), expected: byScope(scope, true) },
  ]),
  {
    name: 'a token of another session',
    isSessionToken: true,
    make: () => session({ sessionId: GONE }),
    expected: (_operation, isOfSession) => (isOfSession ? 'unknown_session' : 'forbidden'),
  },
  {
    name: 'a session token of another namespace',
    isSessionToken: true,
    make: () => session({ owner: 'bob' }),
    expected: inObject('unknown_session', 'forbidden'),
  },
  {
    name: 'a token of an earlier incarnation',
    isSessionToken: true,
    make: () => session({ incarnation: 'i0' }),
    expected: inObject('unknown_session', 'forbidden'),
  },
  {
    name: 'a token of a session without an incarnation',
    isSessionToken: true,
    make: () => session({ incarnation: null }),
    expected: inObject('unknown_session', 'forbidden'),
  },
  {
    name: 'a token of another user',
    make: () => user({ userId: 'Zo' }),
    expected: inObject('unknown_session', 'reached'),
  },
  {
    name: 'a user token of another namespace',
    make: () => user({ owner: 'bob' }),
    expected: inObject('unknown_session', 'reached'),
  },
  {
    name: 'a user token for other agents',
    make: () => user({ agents: ['writer'] }),
    expected: (operation, isOfSession) =>
      WITHOUT_AGENT.has(operation) ? 'reached' : inObject('forbidden', 'forbidden')(operation, isOfSession),
  },
  {
    name: 'a user token for this agent',
    make: () => user({ agents: ['assistant'] }),
    expected: inObject('reached', 'reached'),
  },
  { name: 'a user token for no surface', make: () => user({ surfaces: [] }), expected: always('forbidden') },
  {
    name: 'an expired session token',
    isSessionToken: true,
    make: () => session({ expiresAt: NOW }),
    expected: always('unauthorized'),
  },
  { name: 'an expired user token', make: () => user({ expiresAt: NOW }), expected: always('unauthorized') },
  {
    name: 'a token of a namespace without keys',
    make: () => user({ owner: 'eve' }),
    expected: always('unauthorized'),
  },
];

describe('[T1] every operation with every kind of credential', () => {
  test.each(CREDENTIALS)('$name', async ({ name: credentialName, make, expected, isSessionToken }) => {
    const credential = await make();
    for (const name of names) {
      const operation: Operation = OPERATIONS[name];
      if (operation.open !== undefined) continue;
      // Other protocols name the session anywhere in the request: test/http/surfaces.test.ts.
      if (operation.surface !== undefined && isSessionToken === true) continue;
      const outcome = await outcomeOf(name, credential);
      const wanted = expected(operation, isSessionOperation(name));
      const isRefused = isSessionToken === true && operation.makesSession === true && wanted !== 'unauthorized';
      const isOther = credentialName === 'a token of another session';
      expect([name, outcome]).toEqual([name, isRefused && !isOther ? 'forbidden' : wanted]);
    }
  });

  test('an open operation does not depend on the credential', async () => {
    for (const { make } of CREDENTIALS.filter(({ name }) => name !== 'an unknown key')) {
      const credential = await make();
      expect(await outcomeOf('GET /health', credential)).toBe('reached');
      // The handler has found no signature.
      expect(await outcomeOf('POST /webhooks/:name', credential)).toBe('unauthorized');
    }
  });

  test('[T5] a token of a deleted session, and a user token for it, find no session', async () => {
    const ofSession = await session({ sessionId: GONE });
    for (const credential of [ofSession, await user()]) {
      for (const name of names.filter((one) => isSessionOperation(one))) {
        const { scopes = [], makesSession }: Operation = OPERATIONS[name];
        const isRefused = scopes.length === 0 || (makesSession === true && credential === ofSession);
        const expected = isRefused ? 'forbidden' : 'unknown_session';
        expect([name, await outcomeOf(name, credential, GONE)]).toEqual([name, expected]);
      }
    }
  });
});

describe('[T1] the table', () => {
  const routesOf = ({ routes }: Pick<typeof sessionRoutes, 'routes'>, prefix: string): string[] =>
    routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path === '/' ? prefix : `${prefix}${path}`}`);

  test('has a row for every route, and a route for every row', () => {
    const routes = new Set([...routesOf(edge, ''), ...routesOf(sessionRoutes, SESSION_PATH)]);
    // The Worker alone calls these; it refuses a client's path that begins with `/-`.
    const forClients = [...routes].filter((route) => !route.includes(` ${SESSION_PATH}/-/`));
    expect(forClients.toSorted()).toEqual(names.map(routedPath).toSorted());
    const described = [...edge.routes, ...sessionRoutes.routes].map((route) => descriptionOf(route)?.operation);
    expect(described.filter((name) => name !== undefined).toSorted()).toEqual([...names].toSorted());
  });

  test('is not bypassed by routes for all methods: these are middleware, and what forwards to a session', () => {
    const paths = edge.routes.filter(({ method }) => method === 'ALL').map(({ path }) => path);
    expect([...new Set(paths)].toSorted()).toEqual(
      ['/*', '/manifests/*', `${SESSION_PATH}/*`, '/webhooks/*'].toSorted(),
    );
    expect(new Set(sessionRoutes.routes.filter(({ method }) => method === 'ALL').map(({ path }) => path))).toEqual(
      new Set(['/*']),
    );
  });

  test.each(names)('%s is found by its own path', (name) => {
    const [method = '', path = ''] = name.split(' ');
    expect(findOperation(method, path.replaceAll(/:(\w+)/g, 'value-of-$1'))).toBe(name);
  });

  test('finds nothing for other methods and paths, so a token can do nothing there', async () => {
    expect(findOperation('PATCH', '/agents')).toBeNull();
    expect(findOperation('GET', '/agent/session/x//events')).toBeNull();
    expect(findOperation('HEAD', '/agent/session/x/')).toBe('GET /agent/session/:id');
    const headers = { authorization: `Bearer ${await user()}` };
    for (const path of ['/nothing', `/agent/session/${ID}/nothing`, `/agent/session/${ID}/-/latest-run`]) {
      expect((await edge.fetch(new Request(`http://127.0.0.1${path}`, { headers }))).status).toBe(403);
    }
  });

  test('grants decisions to `approve` alone, feeds and prompts never to `view`', () => {
    const withScope = (scope: Scope): string[] =>
      names.filter((name) => ((OPERATIONS[name] as Operation).scopes ?? []).includes(scope));
    expect(withScope('approve').filter((name) => name.startsWith('POST'))).toEqual([
      'POST /agent/session/:id/approvals/:approval',
    ]);
    expect(withScope('view').filter((name) => !name.startsWith('GET'))).toEqual([]);
    expect(withScope('view').join(' ')).not.toMatch(/feeds|prompt|transcript/);
  });

  test('names the operation in a refusal, or an unknown path up to its limit', async () => {
    const detailOf = async (path: string, init: RequestInit = {}): Promise<string> => {
      const headers = { authorization: `Bearer ${await session({ scopes: ['read'] })}` };
      const response = await edge.fetch(new Request(`http://127.0.0.1${path}`, { ...init, headers }));
      return ((await response.json()) as { detail: string }).detail;
    };
    const run = `run_${'1'.repeat(32)}_${'a'.repeat(12)}_1`;
    expect(await detailOf(`/agent/session/${ID}/runs/${run}/retry`, { method: 'POST', body: '{}' })).toBe(
      'POST /agent/session/{id}/runs/{run}/retry requires a token with the scope "branch"',
    );
    const unknown = `/agent/session/${ID}/${'x'.repeat(limits.excerptChars)}`;
    expect(await detailOf(unknown)).toBe(`GET ${unknown.slice(0, limits.excerptChars)}… requires the API key`);
  });

  test('is part of the OpenAPI document, as security requirements', async () => {
    const headers = { authorization: 'Bearer k-ann' };
    const document = (await (await edge.fetch(new Request('http://127.0.0.1/openapi.json', { headers }))).json()) as {
      paths: Record<string, Record<string, { security: unknown; summary: string }>>;
    };
    for (const name of names) {
      const [method = '', path = ''] = name.split(' ');
      const found = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
      const { open, role, scopes = [], summary, makesSession }: Operation = OPERATIONS[name];
      // A session token cannot make another session.
      const isForSessionTokens = isSessionOperation(name) && makesSession !== true;
      const inUrl = scopes.map((scope) => ({ tokenInQuery: [scope] }));
      const tokensFor = [
        ...(isForSessionTokens ? scopes.map((scope) => ({ sessionToken: [scope] })) : []),
        ...scopes.map((scope) => ({ userToken: [scope] })),
        ...inUrl,
      ];
      const key = [{ apiKey: role === undefined ? [] : ['admin'] }, ...tokensFor];
      const expected = open === undefined ? key : [open === 'anyone' ? {} : { signature: [] }];
      expect([name, found?.security, found?.summary]).toEqual([name, expected, summary]);
    }
  });
});
