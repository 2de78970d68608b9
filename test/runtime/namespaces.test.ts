/** Namespaces and their keys on one system: neither sees what the other one has (T4, H5, M4, R6). */
import { expect, test } from 'vitest';
import type { Env } from '../../src/durable/env.ts';
import type { RunResult } from '../../src/view/result.ts';
import { here } from './bindings.ts';
import { manifest, SEAL, SEALER } from './client.ts';
import { ask } from './keyed.ts';

const TOKENS: Env = { ...here, SESSION_TOKEN_SECRET: 'a-secret-of-this-test-that-is-long-enough' };
/** The name of the last key is the namespace of the others. */
const ENV: Env = { ...TOKENS, API_KEYS: 'ops:admin:k-ops@shop,app:run:k-app@shop,shop:admin:k-eve@eve' };
/** The key of the app is replaced: first both exist, then only the new one. */
const BOTH: Env = { ...ENV, API_KEYS: `${ENV.API_KEYS},app-2:run:k-new@shop` };
const ROTATED: Env = { ...ENV, API_KEYS: 'ops:admin:k-ops@shop,app-2:run:k-new@shop,shop:admin:k-eve@eve' };

const json = async <T>(key: string, method: string, path: string, body?: unknown): Promise<T> =>
  await (await ask(ENV, key, method, path, body)).json<T>();
const get = async (env: Env, key: string, path: string): Promise<number> => (await ask(env, key, 'GET', path)).status;

const flow = (name: string, word: string, trigger = 'manual'): string =>
  manifest(
    'Workflow',
    name,
    `trigger: ${trigger}\nimport: {tools: [echo]}\nsteps:\n  - {name: say, type: tool, target: echo, parameters: {word: ${word}}}\noutputs: {word: steps.say.word}`,
  );
const NIGHTLY = '{type: scheduled, cron: "0 0 * * *"}';

async function upload(key: string, ...texts: readonly string[]): Promise<void> {
  const files = Object.fromEntries(texts.map((text, at) => [`${at}.yaml`, text]));
  const uploaded = await ask(ENV, key, 'PUT', '/manifests', { files });
  expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
}

async function chat(env: Env, key: string, agent: string): Promise<string> {
  const created = await ask(env, key, 'POST', `/agent/${agent}/session`, { user_id: 'zoe' });
  const { session_id: session } = await created.json<{ session_id: string }>();
  const said = { content: 'hello', stream: false };
  const answered = await ask(env, key, 'POST', `/agent/session/${session}/message`, said);
  expect([answered.status, (await answered.json<RunResult>()).status]).toEqual([200, 'completed']);
  return session;
}

async function relic(key: string, name: string, parameters: unknown, agent = 'notes_keeper'): Promise<unknown> {
  const text = `<action type="relic" id="r">${JSON.stringify({ name, parameters })}</action>`;
  const run = { agent, protocol_text: text, stream: false };
  const { actions } = await json<RunResult>(key, 'POST', '/execute/direct', run);
  expect(actions.map(({ status }) => status)).toEqual(['completed']);
  return actions[0]?.output;
}

const tokenFor = async (key: string, session: string): Promise<string> =>
  (await json<{ token: string }>(key, 'POST', `/agent/session/${session}/tokens`, {})).token;

test('[T4] a run key uses what an admin key of its namespace made; another namespace sees none of it', async () => {
  await upload(
    'k-ops',
    manifest('Agent', 'clerk', 'persona: You keep orders.\nimport: {relics: [orders]}'),
    manifest('Relic', 'orders', 'scope: shared\nimplementation: {type: edge, store: kv}'),
    flow('close', 'closed', NIGHTLY),
  );
  await relic('k-ops', 'orders.set', { key: 'one', value: 'tea' }, 'clerk');
  expect(await relic('k-app', 'orders.get', { key: 'one' }, 'clerk')).toBe('tea');
  const session = await chat(ENV, 'k-app', 'clerk');
  expect(await get(ENV, 'k-ops', `/agent/session/${session}/history`)).toBe(200);
  expect(await get(ENV, 'k-app', '/manifests/agent/clerk')).toBe(200);
  expect(await get(ENV, await tokenFor('k-app', session), `/agent/session/${session}`)).toBe(200);
  // Lists are written after the answers.
  for (const [path, found] of [
    ['/schedules', '"close"'],
    ['/executions', session],
    ['/sessions', session],
  ] as const) {
    const listed = async (key: string): Promise<string> => await (await ask(ENV, key, 'GET', path)).text();
    await expect.poll(() => listed('k-app')).toContain(found);
    expect(await listed('k-eve')).not.toContain(found);
  }
  for (const path of [`/agent/session/${session}`, '/manifests/agent/clerk', '/manifests/relic/orders']) {
    expect([path, await get(ENV, 'k-eve', path)]).toEqual([path, 404]);
  }
  expect((await ask(ENV, 'k-eve', 'POST', '/agent/clerk/session', {})).status).toBe(404);
});

test('[T4] [J8] a session that waits, its approval and its run do not exist for another namespace', async () => {
  await upload('k-ops', SEAL, SEALER);
  const text = '<action type="tool" mode="async" id="s">{"name": "seal", "parameters": {"text": "wax"}}</action>';
  const begun = { agent: 'sealer', protocol_text: text, stream: false };
  const {
    session_id: session,
    run_id: run,
    approvals,
  } = await json<RunResult>('k-ops', 'POST', '/execute/direct', begun);
  const at = `/agent/session/${session}`;
  const approval = approvals?.[0]?.approval_id;
  expect(approval).toMatch(/^apr_/);
  for (const path of ['/approvals', '/executions']) {
    const listed = async (key: string): Promise<string> => await (await ask(ENV, key, 'GET', path)).text();
    await expect.poll(() => listed('k-ops')).toContain(session);
    expect(await listed('k-eve')).not.toContain(session);
  }
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
    const answer = await ask(ENV, 'k-eve', method, path, body);
    expect([method, path, answer.status]).toEqual([method, path, 404]);
    expect(await answer.text()).not.toContain('wax');
  }
  // Nothing of it had an effect.
  expect(await json('k-ops', 'GET', `${at}/runs/${run}`)).toMatchObject({ status: 'waiting' });
});

test('[T3] [T4] a token of one namespace gives access to no session of another one, also for the same user', async () => {
  const [own, other] = [await chat(ENV, 'k-ops', 'assistant'), await chat(ENV, 'k-eve', 'assistant')];
  const user = await json<{ token: string }>('k-eve', 'POST', '/tokens', { user_id: 'zoe' });
  for (const token of [user.token, await tokenFor('k-eve', other)]) {
    expect(await get(ENV, token, `/agent/session/${other}`)).toBe(200);
    for (const path of ['', '/history', '/approvals']) {
      const status = await get(ENV, token, `/agent/session/${own}${path}`);
      expect([path, [401, 403, 404].includes(status)]).toEqual([path, true]);
    }
  }
});

test('[T4] a key is rotated without losing anything: add a key of the namespace, then remove the old one', async () => {
  const session = await chat(ENV, 'k-app', 'assistant');
  const path = `/agent/session/${session}`;
  const token = await tokenFor('k-app', session);
  for (const key of ['k-app', 'k-new']) expect(await get(BOTH, key, path)).toBe(200);
  expect(await get(ROTATED, 'k-app', path)).toBe(401);
  const said = { content: 'again', stream: false };
  expect((await ask(ROTATED, 'k-new', 'POST', `${path}/message`, said)).status).toBe(200);
  expect(await get(ROTATED, token, path)).toBe(200);
  expect(await get({ ...ROTATED, API_KEYS: 'eve:run:k-eve' }, token, path)).toBe(401);
});

test('[R6] a shared relic is shared by the sessions of one namespace; another one has its own under the same name', async () => {
  await relic('k-ops', 'notes.set', { key: 'milk', value: 'two bottles' });
  expect(await relic('k-eve', 'notes.get', { key: 'milk' })).toBeNull();
  await relic('k-eve', 'notes.set', { key: 'milk', value: 'none' });
  expect(await relic('k-ops', 'notes.get', { key: 'milk' })).toBe('two bottles');
  expect(await relic('k-eve', 'notes.list', {})).toMatchObject({ entries: [{ value: 'none' }] });
});

test('[M4] [M6] workflows belong to the namespace that stored them: by name, by event, by schedule', async () => {
  await upload('k-ops', flow('secret', 'x'), flow('same', 'shops'), flow('hourly', 'x', NIGHTLY));
  await upload('k-eve', flow('same', 'eves'), flow('on_order', 'x', '{type: event, event: order}'));
  for (const [key, word] of [
    ['k-ops', 'shops'],
    ['k-eve', 'eves'],
  ] as const) {
    const run = await json<RunResult>(key, 'POST', '/workflows/same/runs', { stream: false });
    expect(run.outputs).toEqual({ word });
  }
  expect((await ask(ENV, 'k-eve', 'POST', '/workflows/secret/runs', { stream: false })).status).toBe(404);
  expect((await ask(ENV, 'k-eve', 'DELETE', '/manifests/workflow/secret')).status).toBe(404);
  const { workflows } = await json<{ workflows: { name: string }[] }>('k-eve', 'GET', '/workflows');
  expect(workflows.map(({ name }) => name).filter((name) => name !== 'data_pipeline')).toEqual(['on_order', 'same']);
  const { schedules } = await json<{ schedules: unknown[] }>('k-ops', 'GET', '/schedules');
  expect(schedules).toMatchObject([{ workflow: 'hourly' }]);
  expect(await json('k-eve', 'GET', '/schedules')).toMatchObject({ schedules: [] });
  const started = async (key: string): Promise<number> =>
    (await json<{ runs: unknown[] }>(key, 'POST', '/events/order', { data: {} })).runs.length;
  expect([await started('k-eve'), await started('k-ops')]).toEqual([1, 0]);
});
