/**
 * Isolation between API keys on one system, with a real workerd and its state folder (H5, X3), a rate limit (H4) and the
 * limits of the platform's free plan (Z3).
 */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sign } from 'hono/jwt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { startGateServer } from '../support/gate-server.ts';
import type { GateServer } from '../support/gate-server.ts';
import type { RunResult } from '../../src/view/result.ts';

const KEYS =
  'ann:admin:key-of-ann-in-this-test,bob:admin:key-of-bob-in-this-test,eve:run:key-of-eve-in-this-test,bob-app:run:key-of-app-in-this-test@ann,' +
  'tim:admin:key-of-tim-in-this-test,tim-app:run:key-of-tim-app-in-this-test@tim';
/** `app` is a second key of the namespace of Ann, with the name of another one in its own. */
type Who = 'ann' | 'bob' | 'eve' | 'app' | 'tim' | 'tim-app';

/** Records the headers of its requests and returns them. */
let echo: Server;
const seen: (string | undefined)[] = [];
let gate: GateServer;
let system: System;
const stateDir = mkdtempSync(join(tmpdir(), 'cortex-tenants-'));

beforeAll(async () => {
  echo = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.setHeader('content-type', 'application/json').end(JSON.stringify(request.headers));
  }).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  gate = await startGateServer();
  system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir,
    vars: {
      API_KEYS: KEYS,
      LLM_PROVIDER: 'demo',
      ALLOW_HOSTS: `${host()},${new URL(gate.url).host}`,
      RATE_LIMIT: '3',
      PLATFORM_LIMITS: 'free',
      TOOL_KEY: 'secret-of-the-operator',
      TOOL_ANN__KEY: 'secret-of-ann-0123',
      TOOL_BOB__KEY: 'secret-of-bob-0123',
    },
    ownRunner: false,
    progress: () => undefined,
  });
});

afterAll(async () => {
  await system?.stop();
  await gate?.[Symbol.asyncDispose]();
  echo.close();
  rmSync(stateDir, { recursive: true, force: true });
});

function host(): string {
  return `127.0.0.1:${(echo.address() as AddressInfo).port}`;
}

async function as(who: Who | null, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (who !== null) headers.set('authorization', `Bearer key-of-${who}-in-this-test`);
  return await fetch(`${system.url}${path}`, { ...init, headers });
}

const post = (who: Who, path: string, body: unknown): Promise<Response> =>
  as(who, path, { method: 'POST', body: JSON.stringify(body) });

const tool = (secret: string): string => `kind: Tool
version: "1"
name: ask
summary: Asks.
implementation: {type: http, url: "http://${host()}/", headers: {authorization: "${secret}"}}
`;
const AGENT = 'kind: Agent\nversion: "1"\nname: asker\nsummary: Asks.\npersona: You ask.\nimport: {tools: [ask]}\n';

describe('[X3] the secrets of tools', () => {
  test('each key’s tool sends that key’s secret, under the same name, and does not show it', async () => {
    for (const who of ['ann', 'bob'] as const) {
      const files = { 'tools/ask.yaml': tool('${TOOL_KEY}'), 'agents/asker.yaml': AGENT };
      const uploaded = await as(who, '/manifests', { method: 'PUT', body: JSON.stringify({ files }) });
      expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
      const run = await post(who, '/execute/direct', {
        agent: 'asker',
        protocol_text: '<action name="ask" id="a">{}</action><response final="true">$a</response>',
        stream: false,
      });
      const text = await run.text();
      expect(JSON.parse(text) as RunResult).toMatchObject({ actions: [{ status: 'completed' }] });
      expect(text).toContain('[secret]');
      expect(text).not.toMatch(/secret-of/);
      expect(seen.at(-1)).toBe(`secret-of-${who}-0123`);
    }
  });

  test('[T4] belong to the namespace of a key, not to its name', async () => {
    const run = await post('app', '/execute/direct', {
      agent: 'asker',
      protocol_text: '<action name="ask" id="a">{}</action>',
      stream: false,
    });
    const text = await run.text();
    expect(JSON.parse(text) as RunResult).toMatchObject({ actions: [{ status: 'completed' }] });
    expect(text).not.toMatch(/secret-of/);
    expect(seen.at(-1)).toBe('secret-of-ann-0123');
  });

  test.each(['TOOL_BOB__KEY', 'TOOL_NOBODY__KEY'])('a tool that names %s is refused', async (name) => {
    const refused = await as('ann', '/manifests/tool/ask', { method: 'PUT', body: tool(`\${${name}}`) });
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'invalid_manifest' }]);
  });

  test('a key without its own secret gets none, including the operator’s', async () => {
    const refused = await as('eve', '/manifests/tool/ask', { method: 'PUT', body: tool('${TOOL_KEY}') });
    expect(refused.status).toBe(403);
    const before = seen.length;
    const run = await post('eve', '/execute/direct', {
      protocol_text: '<action name="ask" id="a">{}</action><response final="true">$a</response>',
      stream: false,
    });
    const text = await run.text();
    expect(JSON.parse(text) as RunResult).toMatchObject({ actions: [{ status: 'rejected' }] });
    expect(text).not.toMatch(/secret-of/);
    expect(seen).toHaveLength(before);
  });
});

test('[H5] the signing secret of session tokens is not derived from the keys', async () => {
  const { session_id: id } = (await (await post('ann', '/agent/assistant/session', {})).json()) as {
    session_id: string;
  };
  const issued = await post('ann', `/agent/session/${id}/tokens`, {});
  expect(issued.status).toBe(201);
  const { token } = (await issued.json()) as { token: string };
  expect((await as(null, `/agent/session/${id}?token=${token}`)).status).toBe(200);
  const claims = { aud: 'cortex-edge:session', sub: id, own: 'ann', scope: 'read approve', exp: 4_000_000_000 };
  const guessed = await sign(claims, `session tokens of ${KEYS}`, 'HS256');
  expect((await as(null, `/agent/session/${id}?token=${guessed}`)).status).toBe(401);
});

test('[H1] an invented id of a session, a run or a webhook creates no file', async () => {
  const files = (): string[] =>
    readdirSync(join(stateDir, 'worker'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.sqlite'),
    );
  // The sessions of the other tests are listed, a second after their creation: their objects exist by now.
  const { session_id: last } = (await (await post('ann', '/agent/assistant/session', {})).json()) as {
    session_id: string;
  };
  await eventually(async () =>
    expect(await (await as('ann', '/sessions')).json()).toMatchObject({
      sessions: expect.arrayContaining([expect.objectContaining({ session_id: last })]),
    }),
  );
  // So do those of this key.
  await Promise.all(['/agents', '/executions', '/schedules', '/health'].map(async (path) => await as('bob', path)));
  const before = files();
  const made = `ses_${'a1'.repeat(16)}`;
  const run = made.replace('ses', 'run');
  const statuses = await Promise.all([
    as('bob', `/agent/session/${made}`),
    as('bob', `/agent/session/${made}/events`),
    as('bob', `/agent/session/${made}`, { method: 'DELETE' }),
    post('bob', `/agent/session/${made}/message`, { content: 'hello' }),
    post('bob', `/agent/session/${made}/tokens`, {}),
    as('bob', `/executions/${made}`),
    as('bob', `/executions/${run}_1`),
    post('bob', `/executions/${made}/cancel`, {}),
    post('bob', '/agent/nobody/session', {}),
    post('bob', '/execute/direct', { agent: 'nobody', protocol_text: 'x' }),
    post('bob', '/workflows/nothing/runs', {}),
    as(null, '/webhooks/nothing?owner=bob', { method: 'POST', body: '{}' }),
    as(null, '/webhooks/nothing?owner=mallory', { method: 'POST', body: '{}' }),
  ]);
  expect(statuses.map(({ status }) => status)).toEqual([...Array.from({ length: 11 }, () => 404), 401, 401]);
  expect(files()).toEqual(before);
});

test('[H5] /health without a key reports only which parts of the system are up', async () => {
  expect(Object.keys((await (await as(null, '/health')).json()) as object)).toEqual([
    'status',
    'service',
    'version',
    'parts',
    'executors',
  ]);
  expect(await (await as('eve', '/health')).json()).toMatchObject({ model_endpoints: [] });
});

test('[H4] [T4] RATE_LIMIT counts all sessions of a namespace with an agent; further requests get 429 with Retry-After', async () => {
  const session = async (): Promise<string> => {
    const created = await post('tim', '/agent/assistant/session', {});
    return `/agent/session/${((await created.json()) as { session_id: string }).session_id}`;
  };
  const [one, two] = [await session(), await session()];
  const statuses: number[] = [];
  for (const chat of [one, two, one]) {
    const response = await post('tim', `${chat}/message`, { content: 'hello', stream: false });
    statuses.push(response.status);
    await response.text();
  }
  expect(statuses).toEqual([200, 200, 200]);
  const refused = await post('tim-app', `${two}/message`, { content: 'hello', stream: false });
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(5);
  expect(await refused.json()).toMatchObject({ code: 'rate_limited' });
});

test('[Z3] on the free plan, 40 calls wait for their answers at once; those over the limit fail with it, and are not sent', async () => {
  const agent =
    'kind: Agent\nversion: "1"\nname: wide\nsummary: Calls.\npersona: You call.\n' +
    'import: {tools: [web_fetch]}\nloop: {max_parallel_actions: 64}\n';
  const uploaded = await as('tim', '/manifests/agent/wide', { method: 'PUT', body: agent });
  expect(uploaded.status).toBe(201);
  // The server answers none before 40 have arrived.
  const body = JSON.stringify({ parameters: { url: `${gate.url}/gate/free?of=40` } });
  const calls = Array.from(
    { length: 60 },
    (_, at) => `<action type="tool" name="web_fetch" mode="async" id="c${at}">${body}</action>`,
  );
  const text = `${calls.join('')}<response final="true">done</response>`;
  const response = await post('tim', '/execute/direct', { agent: 'wide', protocol_text: text, stream: false });
  expect(response.status).toBe(200);
  const { actions } = (await response.json()) as RunResult;
  const failed = actions.filter(({ status }) => status === 'failed');
  expect(actions.filter(({ status }) => status === 'completed')).toHaveLength(40);
  expect(failed).toHaveLength(20);
  for (const { error } of failed) {
    expect(error).toMatchObject({
      code: 'platform_limit',
      message: expect.stringContaining('free plan allows 50 outbound requests'),
    });
  }
  expect(await (await fetch(`${gate.url}/seen/free`)).json()).toMatchObject({ arrived: 40 });
});
