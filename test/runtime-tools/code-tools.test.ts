/** Code tools in workerd (K2): the example with a real D1 database, bucket and queue, and tools that fail in every way. */
import { abortAllDurableObjects, applyD1Migrations, runDurableObjectAlarm } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeAll, describe, expect, test } from 'vitest';
import schema from '../../examples/code-tools/migrations/0001_shop.sql?raw';
import { call, events, execute, post } from '../runtime/client.ts';
import type { RunResult } from '../../src/view/result.ts';
import { SESSIONS } from '../runtime/bindings.ts';

const { SHOP, REPORTS } = env as unknown as { readonly SHOP: D1Database; readonly REPORTS: R2Bucket };

beforeAll(async () => {
  const queries = schema.split(';').map((query) => query.trim());
  await applyD1Migrations(SHOP, [{ name: '0001_shop.sql', queries: queries.filter((query) => query !== '') }]);
});

const action = (name: string, parameters: object): string =>
  `<action type="tool" mode="async" id="a" name="${name}">${JSON.stringify(parameters)}</action>`;

async function output(name: string, parameters: object): Promise<unknown> {
  const run = await execute(`${action(name, parameters)}<response final="true">done</response>`, { agent: 'clerk' });
  const [first] = run.actions;
  return first?.status === 'completed' ? first.output : first;
}

describe('[K2] the example', () => {
  test('find_orders queries D1', async () => {
    expect(await output('find_orders', { customer: 'ada' })).toEqual({
      orders: [
        { id: 2, status: 'open', total: 9 },
        { id: 1, status: 'shipped', total: 20.5 },
      ],
      count: 2,
    });
    expect(await output('find_orders', { customer: "x' OR 1=1 --" })).toEqual({ orders: [], count: 0 });
    expect(await output('find_orders', { customer: 'ada', status: 'lost' })).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_parameters' },
    });
  });

  test('save_report writes to R2, and an artifact', async () => {
    const saved = (await output('save_report', { title: 'Week 7', markdown: '# Good' })) as { key: string };
    expect(saved.key).toMatch(/^reports\/ses_.*\/week-7\.md$/);
    expect(await (await REPORTS.get(saved.key))?.text()).toBe('# Good');
  });

  test('get_weather sends its secret, and tries again only what may succeed later', async () => {
    expect(await output('get_weather', { city: 'Rome' })).toEqual({ city: 'Rome', celsius: 7.5, conditions: 'rain' });
    expect(await output('get_weather', { city: 'Busytown' })).toMatchObject({ city: 'Busytown' });
    expect(await output('get_weather', { city: 'Atlantis' })).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'unknown_city', message: 'No weather is known for "Atlantis"' },
    });
  });

  test('send_email asks a person, then puts one message into the queue', async () => {
    const text = `${action('send_email', { to: 'ada@example.com', subject: 'Hi', text: 'Hello' })}<response final="true">$a.id</response>`;
    const begun = await post('/execute/direct', { protocol_text: text, agent: 'clerk', stream: false });
    const waiting = await begun.json<{ session_id: string; run_id: string; status: string }>();
    expect(waiting.status).toBe('waiting');
    const session = `/agent/session/${waiting.session_id}`;
    const { approvals } = await (await call(`${session}/approvals`)).json<{ approvals: { approval_id: string }[] }>();
    await post(`${session}/approvals/${approvals[0]?.approval_id ?? ''}`, { approve: true });
    await expect
      .poll(async () => (await (await call(`${session}/runs/${waiting.run_id}`)).json<{ status: string }>()).status)
      .toBe('completed');
    const run = await (await call(`${session}/runs/${waiting.run_id}`)).json();
    expect(run).toMatchObject({ actions: [{ status: 'completed', output: { queued: true } }] });
  });

  test('find_similar searches vectors', async () => {
    expect(await output('find_similar', { text: 'something for wet days', count: 2 })).toMatchObject([
      { name: expect.stringMatching(/Rain jacket|Umbrella/) },
      { name: expect.stringMatching(/Rain jacket|Umbrella/) },
    ]);
  });

  test('the prompt has the schemas of the code', async () => {
    const prompt = await (await call('/agents/clerk/prompt')).text();
    expect(prompt).toContain('find_orders');
    expect(prompt).toContain('Orders of a customer, newest first');
    expect(prompt).toContain('customer');
  });
});

const text = (name: string, parameters: object = {}, more: object = {}): string =>
  `<action type="tool" mode="async" id="a">${JSON.stringify({ name, parameters, ...more })}</action><response final="true">done</response>`;

async function first(name: string, parameters: object = {}, more: object = {}): Promise<RunResult['actions'][number]> {
  const { actions } = await execute(text(name, parameters, more), { agent: 'tester' });
  const [action] = actions;
  if (action === undefined) throw new Error('the run has no action');
  return action;
}

describe('[K2] a code tool', () => {
  test.each([
    ['throws', 'tool_failed', 'The tool "throws" failed: the disk is full'],
    ['says_why', 'out_of_stock', 'out of stock'],
    ['returns_cycle', 'result_not_json', 'the result.self contains itself'],
    ['too_large', 'result_too_large', 'maximum 8388608'],
    ['reaches_inside', 'address_refused', '127.0.0.1'],
    ['writes_too_much', 'artifact_too_large', '16 files'],
    ['returns_nothing', 'missing_binding', 'no binding NO_SUCH_BINDING; add it to wrangler.toml'],
    ['returns_date', 'missing_secret', 'TOOL_NOT_SET is not set'],
  ])('that %s fails with %s', async (name, code, message) => {
    const action = await first(name);
    const error = { code, message: expect.stringContaining(message) };
    expect(action).toMatchObject({ status: 'failed', attempts: 1, error });
  });

  test('that is busy is called again', async () => {
    expect(await first('busy_once')).toMatchObject({ status: 'completed', attempts: 2, output: { calls: 2 } });
  });

  test('gets parsed parameters: coerced, trimmed, with defaults', async () => {
    expect(await first('doubles', { n: 4, word: ' y ' })).toMatchObject({ output: { doubled: 8, word: 'y' } });
    expect(await first('doubles', { n: 4 })).toMatchObject({ output: { word: 'x' } });
    expect(await first('even_only', { n: 3 })).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_parameters', message: 'parameters.n: must be even' },
    });
  });

  test('gets what its schema has given once, in every attempt', async () => {
    const answer = await post('/execute/streaming_protocol', {
      protocol_text: text('shouts', { word: 'a' }),
      agent: 'tester',
    });
    const all = await events(answer);
    const parameters = all.flatMap((event) => (event.type === 'policy_applied' ? [event.data.parameters] : []));
    expect(parameters).toEqual([{ word: 'a!', id: expect.any(String) }]);
    expect(all.flatMap((event) => (event.type === 'action_completed' ? [event.data.output] : []))).toEqual(parameters);
    const failed = all.flatMap((event) => (event.type === 'action_retrying' ? [event.data.error.message] : []));
    expect(failed.map((message) => JSON.parse(message) as unknown)).toEqual(parameters);
  });

  test('whose schema gives no JSON fails before it runs', async () => {
    expect(await first('takes_date', { at: '2026-01-02' })).toMatchObject({
      status: 'failed',
      error: { code: 'parameters_not_json', message: expect.stringContaining('parameters.at is an instance of Date') },
    });
  });

  test('gets the bindings and secrets of its manifest, and no others', async () => {
    expect(await first('lists_bindings')).toMatchObject({ output: { env: ['SHOP'], secrets: ['TOOL_WEATHER_KEY'] } });
  });

  test('that never returns ends at its time-out, and its signal aborts', async () => {
    expect(await first('never_returns', {}, { timeout: 0.2, retry: 1 })).toMatchObject({
      status: 'failed',
      error: { code: 'timeout' },
    });
    await expect.poll(async () => (await first('what_aborts')).output).toMatchObject({ aborts: [expect.any(String)] });
  });

  test('whose run is cancelled sees the abort', async () => {
    const before = (await first('what_aborts')).output as { aborts: string[] };
    const running = await post('/execute/streaming_protocol', {
      protocol_text: text('never_returns'),
      agent: 'tester',
    });
    const session = running.headers.get('x-session-id') ?? '';
    const all = events(running);
    await expect
      .poll(async () => (await post(`/agent/session/${session}/cancel`, {})).status, { interval: 100 })
      .toBe(200);
    expect((await all).at(-1)?.type).toBe('agent_cancelled');
    await expect
      .poll(async () => ((await first('what_aborts')).output as { aborts: string[] }).aborts.length)
      .toBeGreaterThan(before.aborts.length);
  });

  test('reports progress to people', async () => {
    const answer = await post('/execute/streaming_protocol', { protocol_text: text('reports'), agent: 'tester' });
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    for await (const piece of answer.body ?? []) {
      if (pieces.length === 0) await first('has_reader');
      pieces.push(piece as Uint8Array<ArrayBuffer>);
    }
    const updates = (await events(new Response(new Blob(pieces)))).flatMap((event) =>
      event.type === 'progress' ? [event.data] : [],
    );
    expect(updates.map(({ text }) => text).join('')).toBe('half way\n80 %\n');
    expect(updates.at(-1)).toMatchObject({ stream: 'tool', percent: 80 });
  });
});

describe('[K2] [J2] hosts that end while a code tool runs', () => {
  test('set it aside after the third one; other tools go on', async () => {
    const running = await post('/execute/streaming_protocol', {
      protocol_text: text('never_returns', {}, { timeout: 600 }),
      agent: 'tester',
    });
    const id = running.headers.get('x-session-id') ?? '';
    await events(running, ({ type }) => type === 'action_started').catch(() => []);
    const runs = async (): Promise<RunResult> => {
      const list = await (await call(`/agent/session/${id}/runs`)).json<{ runs: { run_id: string }[] }>();
      return await (await call(`/agent/session/${id}/runs/${list.runs[0]?.run_id ?? ''}`)).json();
    };
    for (let death = 1; death <= 3; death += 1) {
      await abortAllDurableObjects();
      await runDurableObjectAlarm(SESSIONS.getByName(id));
      // the next attempt has begun, or the tool is set aside
      await expect.poll(async () => (await runs()).actions[0]?.status).toMatch(/running|failed/);
    }
    await expect
      .poll(async () => (await runs()).actions[0])
      .toMatchObject({
        status: 'failed',
        error: { code: 'tool_set_aside', message: expect.stringContaining('3 hosts ended while it ran') },
      });
    expect(await first('doubles', { n: 1 })).toMatchObject({ status: 'completed' });
    expect(await first('never_returns')).toMatchObject({ error: { code: 'tool_set_aside' } });
  });
});
