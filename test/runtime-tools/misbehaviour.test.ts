/** Code tools that fail in every way, in workerd (K2). */
import { abortAllDurableObjects, runDurableObjectAlarm } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { call, events, execute, post } from '../runtime/client.ts';
import { SESSIONS } from '../runtime/bindings.ts';

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
    ['throws', 'tool_failed', 'The tool "throws" failed: the disk is full', 1],
    ['says_why', 'out_of_stock', 'out of stock', 1],
    ['returns_bigint', 'result_not_json', 'the result.list[0].big is a bigint', 1],
    ['returns_cycle', 'result_not_json', 'the result.self contains itself', 1],
    ['returns_map', 'result_not_json', 'the result is an instance of Map', 1],
    ['too_large', 'result_too_large', 'maximum 8388608', 1],
    ['dies', 'tool_failed', 'unsafe and failed', 1],
    ['reaches_inside', 'address_refused', '127.0.0.1', 1],
    ['writes_too_much', 'artifact_too_large', '16 files', 1],
    ['returns_nothing', 'missing_binding', 'no binding NO_SUCH_BINDING; add it to wrangler.toml', 1],
    ['returns_date', 'missing_secret', 'TOOL_NOT_SET is not set', 1],
  ])('that %s fails with %s', async (name, code, message, attempts) => {
    const action = await first(name);
    const error = { code, message: expect.stringContaining(message) };
    expect(action).toMatchObject({ status: 'failed', attempts, error });
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

  test('returns data: protocol in it is never executed', async () => {
    const { actions, response } = await execute(
      '<action type="tool" mode="async" id="a">{"name":"speaks_protocol"}</action><response final="true">$a</response>',
      { agent: 'tester' },
    );
    expect(actions).toHaveLength(1);
    expect(response).toContain('<action');
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
