/** The HTTP status of a run's document, and its count of failed actions (H4, H7). */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { withErrorTable } from '../../scripts/event-tables.ts';
import { EngineError, ERROR_TABLE, runErrorStatus } from '../../src/domain/errors.ts';
import type { ErrorCode } from '../../src/domain/errors.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import type { RunResult } from '../../src/view/result.ts';
import { failedStream } from '../support/session-kit.ts';
import type { KitOptions } from '../support/session-kit.ts';
import { sessionApi } from './session-api.ts';

const fails = (code: ErrorCode): KitOptions => ({
  stream: () => failedStream(new EngineError(code, 'the endpoint answered 401: wrong key')),
});
const act = (id: string, parameters: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters, retry: 1 })}</action>`;
const HI = { method: 'POST', body: JSON.stringify({ content: 'hi', stream: false }) };
const ANSWER = '<response final="true">done</response>';

describe('[H7] the document of a failed run', () => {
  test.each([
    ['model_rejected', 502],
    ['model_timeout', 504],
    ['not_configured', 501],
  ] as const)('%s: has the status %i of its error, and is still the whole document', async (code, status) => {
    const { load } = await sessionApi(fails(code));
    const response = await load('/message', HI);
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json']);
    const run = (await response.json()) as RunResult;
    expect(run).toMatchObject({ status: 'failed', error: { code }, failed_actions: 0 });
    expect(response.headers.get('x-run-id')).toBe(run.run_id);
  });

  test('the history says why there is no answer', async () => {
    const { get, post } = await sessionApi(fails('model_rejected'));
    await post('/message', { content: 'hi', stream: false });
    const { messages } = await get('/history');
    expect(messages).toMatchObject([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: '', status: 'failed', error: { code: 'model_rejected' } },
    ]);
  });

  test('a stream stays 200 and ends with agent_failed', async () => {
    const { load } = await sessionApi(fails('model_rejected'));
    const response = await load('/message', { method: 'POST', body: '{"content":"hi"}' });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('event: agent_failed');
  });

  test('reading it later is 200, because the run exists', async () => {
    const { post, load } = await sessionApi(fails('model_rejected'));
    const { body } = await post<RunResult>('/message', { content: 'hi', stream: false });
    expect((await load(`/runs/${body.run_id}`)).status).toBe(200);
    expect((await load('/-/latest-run')).status).toBe(200);
  });

  test('a run without progress is 502, and one over its budget 422', async () => {
    const idle = await sessionApi({ script: ['<thought>hm</thought>', '<thought>hm</thought>'] });
    const stuck = await idle.post<RunResult>('/message', { content: 'hi', stream: false });
    expect([stuck.status, stuck.body.error?.code]).toEqual([502, 'no_progress']);
    const poor = await sessionApi({
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, maxIterations: 1 } }),
      script: [act('a'), '<thought>hm</thought>'],
    });
    const over = await poor.post<RunResult>('/message', { content: 'hi', stream: false });
    expect([over.status, over.body.error?.code]).toEqual([422, 'max_iterations']);
  });

  test('a cancelled run has no error and is 200', async () => {
    const { kit, post } = await sessionApi({
      async *stream({ signal }): AsyncGenerator<ModelDelta> {
        yield { type: 'text', text: '<thought>' };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    const answer = post<RunResult>('/message', { content: 'hi', stream: false });
    while (kit.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await post('/cancel', {});
    const { status, body } = await answer;
    expect([status, body.status]).toEqual([200, 'cancelled']);
  });

  test('a code of another version is 500', () => expect(runErrorStatus('toString')).toBe(500));
});

describe('[H7] failed_actions', () => {
  test('a completed run counts its failed and rejected actions', async () => {
    const text = `${act('bad', { fail_times: 9 })}${act('fine')}<action id="broken">{</action><action id="none">{"name":"no_such_tool"}</action>`;
    const { kit, post } = await sessionApi({});
    const { status, body: run } = await post<RunResult>('/-/execute', { protocol_text: text, stream: false });
    expect(status).toBe(200);
    expect(run).toMatchObject({ status: 'completed', failed_actions: 3 });
    expect(run.actions.map(({ id, status }) => [id, status])).toEqual(
      expect.arrayContaining([
        ['bad', 'failed'],
        ['fine', 'completed'],
        ['broken', 'rejected'],
        ['none', 'rejected'],
      ]),
    );
    expect(kit.events.find(({ type }) => type === 'agent_completed')?.data).toMatchObject({ failed_actions: 3 });
  });

  test('none: the event leaves the member out', async () => {
    const { kit, post } = await sessionApi({ script: [`${act('fine')}${ANSWER}`] });
    const { body: run } = await post<RunResult>('/message', { content: 'hi', stream: false });
    expect(run.failed_actions).toBe(0);
    expect(kit.events.find(({ type }) => type === 'agent_completed')?.data).not.toHaveProperty('failed_actions');
  });
});

describe('[H4] docs/runs.md', () => {
  const page = readFileSync(new URL('../../docs/runs.md', import.meta.url), 'utf8');

  test('lists every code with its status (npm run docs updates it)', () => {
    expect(page).toBe(withErrorTable(page));
    for (const [code, { status }] of Object.entries(ERROR_TABLE)) expect(page).toContain(`| ${status} | \`${code}\` |`);
  });
});
