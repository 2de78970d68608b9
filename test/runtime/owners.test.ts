/** Isolation between two API keys on one deployment (H5, M4, R6). */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { expect, test } from 'vitest';
import { edge } from '../../src/durable/edge.ts';
import type { Env } from '../../src/durable/env.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { here } from './bindings.ts';

const keyed: Env = { ...here, API_KEYS: 'ann:admin:key-of-ann,bob:admin:key-of-bob' };

type Who = 'ann' | 'bob';

async function as(who: Who, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer key-of-${who}`);
  const request = new Request(`http://127.0.0.1:8787${path}`, { ...init, headers });
  const ctx = createExecutionContext();
  const response = await edge.fetch?.(request as Request<unknown, IncomingRequestCfProperties>, keyed, ctx);
  if (response === undefined) throw new Error('the Worker has no fetch');
  const body = await response.arrayBuffer();
  await waitOnExecutionContext(ctx);
  return new Response(body.byteLength === 0 ? null : body, response);
}

const send = (who: Who, path: string, body: unknown): Promise<Response> =>
  as(who, path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
const put = (who: Who, path: string, body: string): Promise<Response> =>
  as(who, `/manifests/${path}`, { method: 'PUT', body });
const read = async <T>(who: Who, path: string): Promise<T> => await (await as(who, path)).json();

const flow = (name: string, word: string, trigger = 'manual'): string => `kind: Workflow
version: "1.0"
name: ${name}
summary: Says a word.
trigger: ${trigger}
import: { tools: [echo] }
steps:
  - { name: say, type: tool, target: echo, parameters: { word: ${word} } }
outputs: { word: steps.say.word }
`;

async function relic(who: Who, name: string, parameters: unknown): Promise<unknown> {
  const text = `<action type="relic" id="r">${JSON.stringify({ name, parameters })}</action>`;
  const response = await send(who, '/execute/direct', { agent: 'notes_keeper', protocol_text: text, stream: false });
  const { actions } = await response.json<RunResult>();
  return actions[0]?.output;
}

test('[R6] a shared relic is shared by the sessions of one key; another key has its own under the same name', async () => {
  await relic('ann', 'notes.set', { key: 'milk', value: 'two bottles' });
  expect(await relic('bob', 'notes.get', { key: 'milk' })).toBeNull();
  await relic('bob', 'notes.set', { key: 'milk', value: 'none' });
  expect(await relic('ann', 'notes.get', { key: 'milk' })).toBe('two bottles');
  expect(await relic('bob', 'notes.list', {})).toMatchObject({ entries: [{ value: 'none' }] });
});

test('[M4] [M6] workflows belong to the key that stored them: by name, by event, by schedule', async () => {
  expect((await put('ann', 'workflow/secret', flow('secret', 'anns'))).status).toBe(201);
  expect((await put('ann', 'workflow/same', flow('same', 'anns'))).status).toBe(201);
  expect((await put('bob', 'workflow/same', flow('same', 'bobs'))).status).toBe(201);
  const hourly = flow('hourly', 'tick', '{type: scheduled, cron: "0 * * * *"}');
  expect((await put('ann', 'workflow/hourly', hourly)).status).toBe(201);
  for (const who of ['ann', 'bob'] as const) {
    expect((await put(who, 'workflow/on_order', flow('on_order', who, '{type: event, event: order}'))).status).toBe(
      201,
    );
    const run = await send(who, '/workflows/same/runs', { stream: false });
    expect(JSON.parse((await run.json<RunResult>()).response)).toEqual({ word: `${who}s` });
  }
  expect((await send('bob', '/workflows/secret/runs', { stream: false })).status).toBe(404);
  expect((await as('bob', '/manifests/workflow/secret')).status).toBe(404);
  expect((await as('bob', '/manifests/workflow/secret', { method: 'DELETE' })).status).toBe(404);
  const { workflows } = await read<{ workflows: { name: string }[] }>('bob', '/workflows');
  expect(workflows.map(({ name }) => name).filter((name) => name !== 'data_pipeline')).toEqual(['on_order', 'same']);
  const schedules = async (who: Who): Promise<string[]> =>
    (await read<{ schedules: { workflow: string }[] }>(who, '/schedules')).schedules.map(({ workflow }) => workflow);
  expect([await schedules('ann'), await schedules('bob')]).toEqual([['hourly'], []]);
  const { runs } = await (await send('bob', '/events/order', { data: {} })).json<{ runs: { session_id: string }[] }>();
  expect(runs).toHaveLength(1);
});

test('[H5] runs belong to the key that started them', async () => {
  const response = await send('ann', '/workflows/data_pipeline/runs', { inputs: { orders: [] }, stream: false });
  const { session_id: session, run_id: run } = await response.json<RunResult>();
  expect((await as('ann', `/agent/session/${session}`)).status).toBe(200);
  for (const path of ['', '/events', `/runs/${run}`, '/export', '/state']) {
    expect((await as('bob', `/agent/session/${session}${path}`)).status).toBe(404);
  }
  expect((await as('bob', `/agent/session/${session}`, { method: 'DELETE' })).status).toBe(404);
  expect((await as('bob', `/executions/${run}`)).status).toBe(404);
  await expect
    .poll(async () => JSON.stringify(await read('ann', '/executions')), { timeout: 60_000 })
    .toContain(session);
  expect(JSON.stringify(await read('bob', '/executions'))).not.toContain(session);
});

test('[M4] replacing the catalogue of one key does not change the catalogues of other keys', async () => {
  const before = await read<{ manifests: { name: string }[] }>('ann', '/manifests');
  const tool =
    'kind: Tool\nversion: "1"\nname: shout\nsummary: Shouts.\nimplementation: {type: script, runtime: python3, entrypoint: ./shout.py}\n';
  const files = { 'tools/shout.yaml': tool, 'tools/shout.py': 'print("HEY")', 'flows/loud.yaml': flow('loud', 'hey') };
  const replaced = await as('bob', '/manifests', { method: 'PUT', body: JSON.stringify({ files }) });
  expect([replaced.status, await replaced.json()]).toMatchObject([200, { problems: [] }]);
  const bobs = await read<{ manifests: { name: string; common: boolean }[] }>('bob', '/manifests');
  expect(bobs.manifests.flatMap(({ name, common }) => (common ? [] : [name])).toSorted()).toEqual(['loud', 'shout']);
  expect(await read('bob', '/manifests/tool/shout')).toMatchObject({
    definition: { implementation: { source: 'print("HEY")' } },
  });
  const spoilt = { ...files, 'flows/loud.yaml': flow('loud', 'hey').replace('steps.say', 'steps.sya') };
  const refused = await as('bob', '/manifests', { method: 'PUT', body: JSON.stringify({ files: spoilt }) });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { code: 'invalid_manifest', problems: [{ file: 'flows/loud.yaml', line: 9, field: 'outputs.word' }] },
  ]);
  expect(await read('bob', '/manifests')).toEqual(bobs);
  expect(await read('ann', '/manifests')).toEqual(before);
});
