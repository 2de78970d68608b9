/** Two namespaces on one system, with keys `name:role:key@namespace`: neither sees what the other one has (T4, H5). */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { beforeAll, expect, test } from 'vitest';
import { edge } from '../../src/durable/edge.ts';
import type { Env } from '../../src/durable/env.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { here } from './bindings.ts';

const ENV: Env = {
  ...here,
  SESSION_TOKEN_SECRET: 'a-secret-of-this-test-that-is-long-enough',
  // The name of one key is the namespace of the other one.
  API_KEYS: 'blue:admin:k-red@red,red:admin:k-blue@blue',
};

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(key: string, method: string, path: string, body?: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const init = { method, headers, ...(body === undefined ? {} : { body: text }) };
  const request = new Request(`http://127.0.0.1:8787${path}`, init);
  const ctx = createExecutionContext();
  const response = await edge.fetch?.(request as Request<unknown, IncomingRequestCfProperties>, ENV, ctx);
  const answer = { status: response?.status ?? 0, text: (await response?.text()) ?? '' };
  await waitOnExecutionContext(ctx);
  return answer;
}

const json = async <T>(key: string, method: string, path: string, body?: unknown): Promise<T> =>
  JSON.parse((await ask(key, method, path, body)).text) as T;

const TOOL =
  'kind: Tool\nversion: "1"\nname: seal\nsummary: Seals.\napproval: always\neffects: unsafe\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {type: object, properties: {text: {type: string}}}\n';
const AGENT =
  'kind: Agent\nversion: "1"\nname: sealer\nsummary: Seals letters.\npersona: You seal.\nimport: {tools: [seal]}\n';
const SEAL =
  '<action type="tool" mode="async" id="s">{"name": "seal", "parameters": {"text": "the word is wax"}}</action>';

interface Waiting {
  readonly session: string;
  readonly run: string;
  readonly approval: string;
}

/** A session of the namespace red that waits for an approval. */
async function waiting(): Promise<Waiting> {
  const body = { agent: 'sealer', protocol_text: SEAL, stream: false };
  const result = await json<RunResult>('k-red', 'POST', '/execute/direct', body);
  expect(result.status).toBe('waiting');
  const session = result.session_id;
  const open = await json<{ approvals: { approval_id: string }[] }>(
    'k-red',
    'GET',
    `/agent/session/${session}/approvals`,
  );
  return { session, run: result.run_id, approval: open.approvals[0]?.approval_id ?? '' };
}

beforeAll(async () => {
  for (const [path, text] of [
    ['tool/seal', TOOL],
    ['agent/sealer', AGENT],
  ] as const) {
    expect([200, 201]).toContain((await ask('k-red', 'PUT', `/manifests/${path}`, text)).status);
  }
});

test('[T4] [J8] the list of approvals and the index of executions are of one namespace', async () => {
  const { session, run, approval } = await waiting();
  const listed = async (key: string, path: string): Promise<boolean> =>
    (await ask(key, 'GET', path)).text.includes(session);
  for (const path of ['/approvals', '/executions']) {
    await expect.poll(async () => await listed('k-red', path)).toBe(true);
    expect([path, await listed('k-blue', path)]).toEqual([path, false]);
  }
  const at = `/agent/session/${session}`;
  const hidden: readonly (readonly [string, string, unknown?])[] = [
    ['GET', at],
    ['GET', `${at}/approvals`],
    ['GET', `${at}/approvals/${approval}`],
    ['POST', `${at}/approvals/${approval}`, { approve: true }],
    ['GET', `${at}/runs/${run}`],
    ['GET', `/executions/${run}`],
    ['POST', `/executions/${run}/cancel`, {}],
    ['POST', `${at}/cancel`, {}],
    ['POST', `${at}/message`, { content: 'hello' }],
    ['POST', `${at}/tokens`, {}],
    ['DELETE', at],
  ];
  for (const [method, path, body] of hidden) {
    const { status, text } = await ask('k-blue', method, path, body);
    expect([method, path, status]).toEqual([method, path, 404]);
    expect(text).not.toContain('wax');
  }
  // Nothing of it had an effect.
  const document = await json<RunResult>('k-red', 'GET', `${at}/runs/${run}`);
  expect(document.status).toBe('waiting');
});

test('[T3] [T4] tokens of one namespace give access to no session of another one, also for the same user', async () => {
  const created = await json<{ session_id: string }>('k-red', 'POST', '/agent/sealer/session', { user_id: 'zoe' });
  const at = `/agent/session/${created.session_id}`;
  const scopes = ['read', 'message', 'approve', 'tools'];
  const user = (key: string): Promise<{ token: string }> => json(key, 'POST', '/tokens', { user_id: 'zoe', scopes });
  const other = await json<{ session_id: string }>('k-blue', 'POST', '/agent/assistant/session', { user_id: 'zoe' });
  const session = await json<{ token: string }>('k-blue', 'POST', `/agent/session/${other.session_id}/tokens`, {
    scopes,
  });
  expect((await ask((await user('k-red')).token, 'GET', at)).status).toBe(200);
  for (const { token } of [await user('k-blue'), session]) {
    for (const path of [at, `${at}/history`, `${at}/approvals`]) {
      const { status } = await ask(token, 'GET', path);
      expect([path, [401, 403, 404].includes(status)]).toEqual([path, true]);
    }
    expect((await ask(token, 'POST', `${at}/message`, { content: 'x' })).status).toBeGreaterThanOrEqual(401);
  }
  const history = await json<{ messages: unknown[] }>('k-red', 'GET', `${at}/history`);
  expect(history.messages).toEqual([]);
});
