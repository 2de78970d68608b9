/** The answers of the routes match the OpenAPI document (H4). */
import { describe, expect, test } from 'vitest';
import { edgeApp } from './edge-app.ts';
import { checkedFetch } from '../support/response-check.ts';
import { runText, say, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { apiOf } from './session-api.ts';

const surface = (kit: SessionKit) => {
  const { load } = apiOf(kit);
  return async (path: string, body?: object): Promise<[number, unknown]> => {
    const response = await load(path, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) });
    return [response.status, await response.json()];
  };
};

const ACTIONS = [
  '<action type="tool" mode="async" id="a">{"name": "echo", "parameters": {"q": 1}}</action>',
  '<action type="tool" mode="async" id="b">{"name": "no_such_tool", "parameters": {}}</action>',
  '<action type="tool" mode="async" id="c">{"name": "calculator", "parameters": {"expression": "1/"}}</action>',
  '<action type="tool" mode="async" id="d">{"name": "echo", "depends_on": ["c"], "parameters": {}}</action>',
  '<action type="tool" mode="async" id="e">{"name": "echo", "when": "1 == 2", "parameters": {}}</action>',
  '<action type="tool" mode="async" id="f">{broken</action>',
  '<response final="true">done: $a</response>',
].join('\n');

describe('[H4] a session', () => {
  test.each(['/', '/history', '/runs', '/artifacts', '/feeds', '/state'])('GET %s', async (path) => {
    const kit = await sessionKit({ script: ['<response final="true">hello</response>'] });
    await say(kit, 'hi');
    await runText(kit, ACTIONS);
    expect(await surface(kit)(path)).toEqual([200, expect.any(Object)]);
  });

  test('GET /runs/{run}, with every final status of an action', async () => {
    const kit = await sessionKit();
    const { run_id: run } = await runText(kit, ACTIONS);
    const [status, document] = await surface(kit)(`/runs/${run}`);
    expect(status).toBe(200);
    const { actions } = document as { actions: { id: string; status: string }[] };
    expect(Object.fromEntries(actions.map(({ id, status: end }) => [id, end]))).toMatchObject({
      a: 'completed',
      b: 'rejected',
      c: 'failed',
      d: 'skipped',
      f: 'rejected',
      e: 'skipped',
    });
  });

  test('approvals', async () => {
    const kit = await sessionKit({ agent: (agent) => ({ ...agent, loop: { ...agent.loop, mode: 'supervised' } }) });
    const { run_id: run, approvals = [] } = await runText(
      kit,
      '<action type="python" mode="async" id="a">{"parameters": {"code": "1"}}</action>',
    );
    const [{ approval_id: id } = { approval_id: '' }] = approvals;
    const ask = surface(kit);
    expect((await ask(`/approvals/${id}`))[0]).toBe(200);
    expect(await ask('/approvals')).toEqual([
      200,
      { approvals: [expect.objectContaining({ approval_id: id, complete: true })], next: null },
    ]);
    expect(await ask('/')).toEqual([200, expect.objectContaining({ status: 'waiting' })]);
    expect((await ask(`/runs/${run}`))[1]).toMatchObject({ status: 'waiting' });
    expect(await ask(`/approvals/${id}`, { approve: false })).toEqual([200, { approval_id: id, decision: 'deny' }]);
    expect((await ask(`/approvals/${id}`, { approve: true }))[0]).toBe(409);
    expect(await ask('/approvals')).toEqual([200, { approvals: [], next: null }]);
    expect(await ask('/')).toEqual([200, expect.objectContaining({ status: 'idle' })]);
    expect((await ask('/cancel', {}))[0]).toBe(200);
  });
});

describe('[H4] the Worker', () => {
  const fetch = checkedFetch(
    edgeApp({
      approvals: async () => ({ approvals: [], next: null }),
      executions: async () => ({
        next: null,
        entries: [
          {
            execution_id: 'run_1',
            session_id: 'ses_1',
            run_id: 'run_1',
            kind: 'chat',
            agent: 'a',
            status: 'failed',
            error: { code: 'model_rejected', message: 'wrong key' },
            started_at: 1,
            ended_at: 2,
          },
        ],
      }),
      status: async () => ({
        executors: [{ type: 'tool', available: true }],
        model: 'm',
        runner: null,
        missing: [{ part: 'runner', state: 'unreachable', reason: 'none answers', workedBefore: false, upMs: 0 }],
      }),
    }),
  );

  test.each([
    '/health',
    '/openapi.json',
    '/executors',
    '/agents',
    '/manifests',
    '/executions',
    '/approvals',
    '/workflows',
    '/schedules',
  ])('GET %s', async (path) => {
    expect((await fetch(new Request(`http://127.0.0.1:8787${path}`))).status).toBe(200);
  });

  test('GET /health?ready answers 503 with the same document', async () => {
    expect((await fetch(new Request('http://127.0.0.1:8787/health?ready'))).status).toBe(503);
  });

  test('POST /plan', async () => {
    const init = { method: 'POST', body: JSON.stringify({ protocol_text: ACTIONS }) };
    expect((await fetch(new Request('http://127.0.0.1:8787/plan', init))).status).toBe(200);
  });
});
