/** Keys that share a namespace, rotation of keys, and what was made without keys (T4). */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import { edge } from '../../src/durable/edge.ts';
import type { Env } from '../../src/durable/env.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { here } from './bindings.ts';

const TOKENS = { SESSION_TOKEN_SECRET: 'a-secret-of-this-test-that-is-long-enough' };
const SHARED: Env = { ...here, ...TOKENS, API_KEYS: 'ops:admin:k-ops@shop,app:run:k-app@shop,eve:run:k-eve' };
/** The key of the app is replaced: first both exist, then only the new one. */
const BOTH: Env = { ...SHARED, API_KEYS: `${SHARED.API_KEYS},app-2:run:k-new@shop` };
const ROTATED: Env = { ...SHARED, API_KEYS: 'ops:admin:k-ops@shop,app-2:run:k-new@shop,eve:run:k-eve' };

async function ask(env: Env, key: string | null, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (key !== null) headers.set('authorization', `Bearer ${key}`);
  const request = new Request(`http://127.0.0.1:8787${path}`, { ...init, headers });
  const ctx = createExecutionContext();
  const response = await edge.fetch?.(request as Request<unknown, IncomingRequestCfProperties>, env, ctx);
  if (response === undefined) throw new Error('the Worker has no fetch');
  const body = await response.arrayBuffer();
  await waitOnExecutionContext(ctx);
  return new Response(body.byteLength === 0 ? null : body, response);
}

const post = (env: Env, key: string | null, path: string, body: unknown): Promise<Response> =>
  ask(env, key, path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  });
const status = async (env: Env, key: string | null, path: string): Promise<number> =>
  (await ask(env, key, path)).status;

const files = (word: string): Readonly<Record<string, string>> => ({
  'agents/clerk.yaml':
    'kind: Agent\nversion: "1"\nname: clerk\nsummary: Keeps orders.\npersona: You keep orders.\nimport: {tools: [stamp], relics: [orders]}\n',
  'tools/stamp.yaml': `kind: Tool\nversion: "1"\nname: stamp\nsummary: Returns a word.\neffects: pure\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {type: object, properties: {word: {type: string, default: ${word}}}}\n`,
  'relics/orders.yaml':
    'kind: Relic\nversion: "1"\nname: orders\nsummary: The orders.\nscope: shared\nimplementation: {type: edge, store: kv}\n',
  'flows/close.yaml':
    'kind: Workflow\nversion: "1"\nname: close\nsummary: Closes the day.\ntrigger: {type: scheduled, cron: "0 0 * * *"}\nimport: {tools: [stamp]}\nsteps:\n  - {name: say, type: tool, target: stamp, parameters: {word: closed}}\noutputs: {word: steps.say.word}\n',
});

async function upload(env: Env, key: string | null): Promise<void> {
  const uploaded = await ask(env, key, '/manifests', { method: 'PUT', body: JSON.stringify({ files: files('ok') }) });
  expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
}

/** Calls the uploaded tool and relic as the uploaded agent. */
async function run(env: Env, key: string | null, relic: string, parameters: unknown): Promise<Response> {
  const text = `<action type="tool" name="stamp" id="t">{"word": "seen"}</action><action type="relic" id="r">${JSON.stringify({ name: relic, parameters })}</action><response final="true">$t.word</response>`;
  return await post(env, key, '/execute/direct', { agent: 'clerk', protocol_text: text, stream: false });
}

async function relicOf(response: Response): Promise<unknown> {
  const { actions } = await response.json<RunResult>();
  expect(actions.map((action) => action.status)).toEqual(['completed', 'completed']);
  return actions.find(({ id }) => id === 'r')?.output;
}

async function chat(env: Env, key: string | null): Promise<string> {
  const created = await post(env, key, '/agent/clerk/session', {});
  expect(created.status).toBe(201);
  const { session_id: session } = await created.json<{ session_id: string }>();
  const answered = await post(env, key, `/agent/session/${session}/message`, { content: 'hello', stream: false });
  expect([answered.status, (await answered.json<RunResult>()).status]).toEqual([200, 'completed']);
  return session;
}

describe('[T4] a run key uses what an admin key of its namespace made', () => {
  test('manifests, shared relics, sessions, executions, schedules and tokens; another namespace sees none of them', async () => {
    await upload(SHARED, 'k-ops');
    expect(await relicOf(await run(SHARED, 'k-ops', 'orders.set', { key: 'one', value: 'tea' }))).not.toBeNull();
    expect(await relicOf(await run(SHARED, 'k-app', 'orders.get', { key: 'one' }))).toBe('tea');
    const session = await chat(SHARED, 'k-app');
    expect(await status(SHARED, 'k-ops', `/agent/session/${session}/history`)).toBe(200);
    expect(await status(SHARED, 'k-app', '/manifests/agent/clerk')).toBe(200);
    const { schedules } = await (await ask(SHARED, 'k-app', '/schedules')).json<{ schedules: unknown[] }>();
    expect(schedules).toMatchObject([{ workflow: 'close' }, ...schedules.slice(1)]);
    const issued = await post(SHARED, 'k-app', `/agent/session/${session}/tokens`, {});
    const { token } = await issued.json<{ token: string }>();
    expect(await status(SHARED, token, `/agent/session/${session}`)).toBe(200);
    // The list is written after the answers.
    const listed = async (): Promise<unknown[]> =>
      (await (await ask(SHARED, 'k-app', '/executions')).json<{ executions: unknown[] }>()).executions;
    await expect.poll(async () => (await listed()).length).toBeGreaterThanOrEqual(2);

    for (const path of [`/agent/session/${session}`, '/manifests/agent/clerk', '/manifests/relic/orders']) {
      expect([path, await status(SHARED, 'k-eve', path)]).toEqual([path, 404]);
    }
    expect((await post(SHARED, 'k-eve', '/agent/clerk/session', {})).status).toBe(404);
    expect((await run(SHARED, 'k-eve', 'orders.get', { key: 'one' })).status).toBe(404);
    expect(await (await ask(SHARED, 'k-eve', '/executions')).json()).toMatchObject({ executions: [] });
    expect(await (await ask(SHARED, 'k-eve', '/schedules')).json()).toMatchObject({ schedules: [] });
  });

  test('and changes none of it: 403', async () => {
    const changes = [
      ask(SHARED, 'k-app', '/manifests/tool/stamp', { method: 'PUT', body: files('other')['tools/stamp.yaml'] ?? '' }),
      ask(SHARED, 'k-app', '/manifests/tool/stamp', { method: 'DELETE' }),
      ask(SHARED, 'k-app', '/manifests', { method: 'PUT', body: JSON.stringify({ files: {} }) }),
    ];
    for (const change of changes) {
      const refused = await change;
      expect([refused.status, await refused.json()]).toMatchObject([
        403,
        { code: 'forbidden', detail: expect.stringContaining('requires an API key with the role admin') },
      ]);
    }
    expect(await status(SHARED, 'k-app', '/manifests/tool/stamp')).toBe(200);
  });
});

test('[T4] a key is rotated without losing anything: add a key of the namespace, then remove the old one', async () => {
  await upload(SHARED, 'k-ops');
  const session = await chat(SHARED, 'k-app');
  const issued = await post(SHARED, 'k-app', `/agent/session/${session}/tokens`, {});
  const { token } = await issued.json<{ token: string }>();
  for (const key of ['k-app', 'k-new']) expect(await status(BOTH, key, `/agent/session/${session}/history`)).toBe(200);
  expect(await status(ROTATED, 'k-app', `/agent/session/${session}`)).toBe(401);
  const more = await post(ROTATED, 'k-new', `/agent/session/${session}/message`, { content: 'again', stream: false });
  expect([more.status, (await more.json<RunResult>()).status]).toEqual([200, 'completed']);
  expect(await status(ROTATED, token, `/agent/session/${session}`)).toBe(200);
  expect(await status({ ...ROTATED, API_KEYS: 'eve:run:k-eve' }, token, `/agent/session/${session}`)).toBe(401);
});

test('[T4] a second key of a namespace sees what the key with the name of the namespace made before', async () => {
  const before: Env = { ...here, API_KEYS: 'old:admin:k-old' };
  const after: Env = { ...here, API_KEYS: 'old:admin:k-old,next:run:k-next@old' };
  await upload(before, 'k-old');
  const session = await chat(before, 'k-old');
  expect(await status(after, 'k-next', `/agent/session/${session}`)).toBe(200);
  await chat(after, 'k-next');
});

test('[T4] OWNER_OF_KEYLESS gives a namespace what was made without keys', async () => {
  const open: Env = { ...here, ...TOKENS };
  const closed: Env = { ...open, API_KEYS: 'me:admin:k-me,ops:admin:k-ops@home,eve:run:k-eve' };
  const given: Env = { ...closed, OWNER_OF_KEYLESS: 'home' };
  await upload(open, null);
  await relicOf(await run(open, null, 'orders.set', { key: 'one', value: 'milk' }));
  const session = await chat(open, null);
  const issued = await post(open, null, `/agent/session/${session}/tokens`, {});
  const { token } = await issued.json<{ token: string }>();
  await expect
    .poll(async () => (await (await ask(open, null, '/executions')).json<{ executions: unknown[] }>()).executions)
    .not.toEqual([]);

  // Set API_KEYS: hidden. A session of the namespace's own name is made in the meantime.
  for (const key of ['k-me', 'k-ops', 'k-eve']) {
    expect(await status(closed, key, `/agent/session/${session}`)).toBe(404);
    expect(await status(closed, key, '/manifests/agent/clerk')).toBe(404);
  }
  expect(await status(closed, token, `/agent/session/${session}`)).toBe(401);
  const meanwhile = await post(closed, 'k-ops', '/agent/assistant/session', {});
  const { session_id: own } = await meanwhile.json<{ session_id: string }>();

  expect(await status(given, 'k-ops', `/agent/session/${session}/history`)).toBe(200);
  expect(await status(given, token, `/agent/session/${session}`)).toBe(200);
  expect(await relicOf(await run(given, 'k-ops', 'orders.get', { key: 'one' }))).toBe('milk');
  expect((await (await ask(given, 'k-ops', '/executions')).json<{ executions: unknown[] }>()).executions).not.toEqual(
    [],
  );
  expect(JSON.stringify(await (await ask(given, 'k-ops', '/schedules')).json())).toContain('"close"');
  const next = await chat(given, 'k-ops');
  // Hidden instead, until the setting is removed.
  expect(await status(given, 'k-ops', `/agent/session/${own}`)).toBe(404);
  expect(await status(closed, 'k-ops', `/agent/session/${own}`)).toBe(200);
  for (const key of ['k-me', 'k-eve']) {
    expect(await status(given, key, `/agent/session/${session}`)).toBe(404);
    expect(await status(given, key, `/agent/session/${next}`)).toBe(404);
    expect(await status(given, key, '/manifests/agent/clerk')).toBe(404);
  }
});
