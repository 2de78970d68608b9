import type { ExecutionEntry } from '../../src/domain/execution.ts';
import type { ExecutionKind } from '../../src/domain/session.ts';
import { directoryIndex } from '../../src/durable/directory.ts';
import { listExecutions } from '../../src/durable/executions.ts';
import { describe, expect, test } from 'vitest';
import { objectName } from '../../src/domain/owner.ts';
import { here } from './bindings.ts';
import { call, newSession, post } from './client.ts';

async function problem(
  response: Response,
): Promise<{ status: number; code: string; detail: string; type: string | null }> {
  const body = await response.json<{ status: number; code: string; detail: string }>();
  return { ...body, type: response.headers.get('content-type') };
}

describe('[H4] errors are problem documents with a stable code', () => {
  test.each([
    ['an unknown route', () => call('/nope'), 404, 'not_found'],
    ['an unknown agent', () => post('/agent/nobody/session', {}), 404, 'unknown_agent'],
    [
      'an unknown agent before an invalid body',
      () => post('/agent/nobody/session', { user_id: 5 }),
      404,
      'unknown_agent',
    ],
    [
      'an unknown session',
      () => post(`/agent/session/ses_${'0'.repeat(32)}/message`, { content: 'x' }),
      404,
      'unknown_session',
    ],
    ['a malformed session id', () => call('/agent/session/../etc/history'), 404, 'not_found'],
    ['a guessed id', () => call('/agent/session/1/history'), 404, 'unknown_session'],
    [
      'a route that only the Worker can call',
      () => post(`/agent/session/ses_${'0'.repeat(32)}/-/execute`, {}),
      404,
      'not_found',
    ],
    [
      'malformed JSON',
      () =>
        call('/execute/direct', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"protocol_text": ',
        }),
      400,
      'invalid_json',
    ],
    ['a missing field', () => post('/execute/direct', {}), 400, 'invalid_request'],
    ['a field of the wrong type', () => post('/execute/direct', { protocol_text: 5 }), 400, 'invalid_request'],
    ['an unknown agent of an execution', () => post('/execute/direct', { agent: 'nobody' }), 404, 'unknown_agent'],
    ['an unknown execution', () => call(`/executions/run_${'0'.repeat(32)}_1`), 404, 'unknown_execution'],
    ['a plan without text', () => post('/plan', {}), 400, 'invalid_request'],
    ['a plan of 2 MB', () => post('/plan', { protocol_text: 'x'.repeat(2_000_000) }), 413, 'body_too_large'],
    ['20 MB', () => post('/execute/direct', { protocol_text: 'x'.repeat(20_000_000) }), 413, 'body_too_large'],
  ] as const)('%s', async (_name, request, status, code) => {
    const answer = await problem(await request());
    expect(answer).toMatchObject({ status, code, type: 'application/problem+json; charset=utf-8' });
    expect(answer.detail.length).toBeGreaterThan(10);
  });

  test('a message without content is refused with the field name, and the session stays usable', async () => {
    const session = await newSession();
    const answer = await post(`/agent/session/${session}/message`, { contents: 'typo' });
    expect(await answer.json()).toMatchObject({
      code: 'invalid_request',
      detail: '"contents": unknown member (did you mean "content"?)',
      issues: [{ path: 'contents' }, { path: 'content' }],
    });
    const list = await post(`/agent/session/${session}/message`, { content: [{ type: 'text', txt: 'x' }] });
    expect(await list.json()).toMatchObject({ code: 'invalid_request' });
    expect((await call(`/agent/session/${session}`)).status).toBe(200);
  });
});

describe('[H5] callers from other sites', () => {
  test.each([[{ host: 'evil.example' }], [{ origin: 'https://evil.example' }], [{ origin: 'null' }]] as Record<
    string,
    string
  >[][])('%j gets no access', async (headers) => {
    const response = await post('/execute/direct', { protocol_text: '<response>x</response>' }, headers);
    expect(response.status).toBe(403);
    expect(await problem(response)).toMatchObject({ code: 'forbidden_origin' });
  });
});

describe('the HTTP API', () => {
  test('[H1] GET /health reports the status of each part', async () => {
    expect(await (await call('/health')).json()).toMatchObject({
      status: 'healthy',
      service: 'cortex-edge',
      executors: expect.arrayContaining(['tool', 'llm', 'internal']),
    });
  });

  test('[H1] sessions can be created, described, listed and deleted', async () => {
    const created = await post('/agent/assistant/session', {
      user_id: 'u',
      initial_state: { a: 1 },
      metadata: { m: true },
    });
    expect(created.status).toBe(201);
    const { session_id: id } = await created.json<{ session_id: string }>();
    expect(id).toMatch(/^ses_[0-9a-f]{32}$/);
    expect(await (await call(`/agent/session/${id}`)).json()).toMatchObject({
      agent: 'assistant',
      user_id: 'u',
      metadata: { m: true },
    });
    expect(await (await call(`/agent/session/${id}/state`)).json()).toMatchObject({ variables: { a: 1 } });
    expect((await call(`/agent/session/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await call(`/agent/session/${id}`)).status).toBe(404);
  });

  test('[H1] a session is exported as training examples, one run per line', async () => {
    const session = await newSession();
    const path = `/agent/session/${session}`;
    const read = async (response: Response): Promise<string> => new TextDecoder().decode(await response.arrayBuffer());
    expect(await read(await call(`${path}/transcript?format=jsonl`))).toBe('');
    for (const content of ['what is 6 * 7', 'what is 2 + 2']) {
      await (await post(`${path}/message`, { content, stream: false })).text();
    }
    const response = await call(`${path}/transcript?format=jsonl`);
    expect(response.headers.get('content-type')).toContain('application/jsonl');
    const lines = (await read(response)).split('\n');
    expect(lines.pop()).toBe('');
    const examples = lines.map((line) => JSON.parse(line) as { messages: { role: string; content: string }[] });
    expect(examples.map(({ messages }) => [messages[0]?.role, messages.at(-1)?.role])).toEqual([
      ['system', 'assistant'],
      ['system', 'assistant'],
    ]);
    expect(examples[0]?.messages.at(-1)?.content).toContain('<response');
    expect(await problem(await call(`${path}/transcript?format=csv`))).toMatchObject({ code: 'invalid_request' });
    expect((await call(`/agent/session/ses_${'0'.repeat(32)}/transcript`)).status).toBe(404);
  });

  test('[H8] a JSON body is read as JSON with any content type', async () => {
    const response = await post(
      '/agent/assistant/session',
      { user_id: 'curl' },
      { 'content-type': 'application/x-www-form-urlencoded' },
    );
    expect(response.status).toBe(201);
  });

  test('[H1] executions are listed newest first, and found by id', async () => {
    const run = async (): Promise<string> => {
      const response = await post('/execute/direct', {
        protocol_text: '<response final="true">x</response>',
        stream: false,
      });
      const { run_id: id } = await response.json<{ run_id: string }>();
      return id;
    };
    const ids = [await run(), await run()];
    const found = await (await call(`/executions/${ids[0]}`)).json();
    expect(found).toMatchObject({ run_id: ids[0], status: 'completed', response: 'x' });
    await expect
      .poll(async () => {
        const { executions } = await (await call('/executions')).json<{ executions: { execution_id: string }[] }>();
        return executions
          .map((entry) => entry.execution_id)
          .filter((id) => ids.includes(id))
          .toSorted();
      })
      .toEqual(ids.toSorted());
  });

  test('[H1] the list of executions has messages and workflows, with their kinds and errors', async () => {
    const chat = await newSession();
    const { run_id: message } = await (
      await post(`/agent/session/${chat}/message`, { content: 'hello', stream: false })
    ).json<{ run_id: string }>();
    const { run_id: failed, session_id: workflow } = await (
      await post('/workflows/data_pipeline/runs', {
        inputs: { orders: [{ item: 'lamp', price: 1e300, quantity: 1e300 }] },
        stream: false,
      })
    ).json<{ run_id: string; session_id: string }>();
    interface Listed {
      readonly executions: readonly { readonly execution_id: string; readonly session_id: string }[];
    }
    const list = async (query: string): Promise<Listed['executions']> =>
      (await (await call(`/executions${query}`)).json<Listed>()).executions;
    const found = async (id: string, query = ''): Promise<unknown> =>
      (await list(query)).find(({ execution_id: one }) => one === id) ?? null;
    await expect
      .poll(() => found(message, '?kind=chat'))
      .toMatchObject({ session_id: chat, run_id: message, kind: 'chat', status: 'completed', error: null });
    await expect
      .poll(() => found(failed, '?kind=workflow&status=failed'))
      .toMatchObject({
        session_id: workflow,
        kind: 'workflow',
        agent: 'data_pipeline',
        error: { code: 'step_failed' },
      });
    expect(await found(message, '?kind=workflow')).toBeNull();
    expect(await found(message, '?kind=chat&status=failed')).toBeNull();
    expect(await (await call(`/executions/${message}`)).json()).toMatchObject({
      session_id: chat,
      status: 'completed',
    });
    // All runs of a deleted session leave the list, and no others.
    await call(`/agent/session/${chat}`, { method: 'DELETE' });
    await expect.poll(() => found(message)).toBeNull();
    expect(await found(failed)).not.toBeNull();
  });

  test('[J9] entries of an earlier version stay readable, as executions', async () => {
    const id = `run_${'d'.repeat(32)}_1`;
    const old = { execution_id: id, session_id: `ses_${'d'.repeat(32)}`, agent: 'assistant', status: 'completed' };
    const times = { started_at: Date.now(), ended_at: Date.now() };
    const owner = 'earlier';
    const index = here.EXECUTIONS.getByName(objectName(owner));
    type Entry = Parameters<typeof index.record>[0];
    await index.record({ ...old, ...times } as unknown as Entry);
    const page = { limit: 100, before: null, status: null };
    const entry = { ...old, ...times, run_id: id, kind: 'execution', error: null } as const;
    const listed = async (kind: ExecutionKind | null): Promise<readonly ExecutionEntry[]> =>
      (await listExecutions(here, owner, { ...page, kind })).entries;
    expect([await listed('execution'), await listed('chat')]).toEqual([[entry], []]);
    // They move to the shards, where a deletion finds them.
    const left = async (): Promise<unknown> => (await index.listEarlier(owner, { ...page, kind: null })).entries;
    await expect.poll(left).toEqual([]);
    expect(await listed('execution')).toEqual([entry]);
    await directoryIndex(here, owner, old.session_id).forget(old.session_id, '');
    expect(await listed(null)).toEqual([]);
    // Of a session that is deleted before they have moved.
    const other = { ...old, execution_id: `run_${'e'.repeat(32)}_1`, session_id: `ses_${'e'.repeat(32)}` };
    await index.record({ ...other, ...times } as unknown as Entry);
    expect(await index.forgetEarlier(owner, other.session_id, '')).toBe(true);
    expect(await left()).toEqual([]);
  });

  test('[H1] the list of executions has pages, and a status filter', async () => {
    const run = async (path: string, text: string): Promise<string> => {
      const response = await post(path, { protocol_text: text, stream: false });
      return (await response.json<{ run_id: string }>()).run_id;
    };
    interface Page {
      readonly executions: readonly { readonly execution_id: string; readonly status: string }[];
      readonly next: string | null;
    }
    const page = async (query: string): Promise<Page> => await (await call(`/executions${query}`)).json<Page>();
    const text = '<response final="true">x</response>';
    const made = await Promise.all(Array.from({ length: 5 }, () => run('/execute/direct', text)));
    const waiting = '<action type="python" id="a">{"code":"1"}</action>';
    made.push(await run('/execute/streaming_protocol', waiting));
    await expect.poll(async () => (await page('')).executions.length).toBeGreaterThanOrEqual(6);
    const seen: string[] = [];
    for (let next: string | null = ''; next !== null;) {
      const { executions, next: further }: Page = await page(`?limit=2${next === '' ? '' : `&before=${next}`}`);
      expect(executions.length).toBeLessThanOrEqual(2);
      seen.push(...executions.map(({ execution_id: id }) => id));
      next = further;
    }
    // Some started in the same millisecond: each is listed exactly once.
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(expect.arrayContaining(made));
    const completed = await page('?status=completed&limit=3');
    expect(completed.executions.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
    expect((await page('?status=queued')).executions).toEqual([]);
    expect((await page(`?before=1`)).executions).toEqual([]);
    const refused = await problem(await call('/executions?status=done'));
    expect(refused).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(refused.detail).toBe(
      '"status" must be one of queued, running, waiting, completed, failed, cancelled, not "done"',
    );
  });

  test.each([
    ['/execute/direct?stream=false', '"stream" in the URL requires a text/plain body'],
    ['/execute/streaming_protocol?agent=assistant', '"agent" in the URL requires a text/plain body'],
    ['/plan?agent=assistant', '"agent" in the URL requires a text/plain body'],
    ['/executions?limits=2', 'Unknown query parameter "limits" (did you mean "limit"?)'],
    ['/agents?token=x', 'This token is invalid or has expired'],
  ])('[H4] %s is refused with a message that names the correct request', async (path, words) => {
    const response =
      path.startsWith('/e') && !path.startsWith('/executions') ? post(path, { protocol_text: 'x' }) : null;
    const answer = await problem(
      await (response ?? (path.startsWith('/plan') ? post(path, { protocol_text: 'x' }) : call(path))),
    );
    expect(answer.detail).toContain(words);
  });

  test('[H4] a session_id in the body of an execution is refused', async () => {
    const answer = await post('/execute/streaming_protocol', {
      protocol_text: 'x',
      session_id: `ses_${'0'.repeat(32)}`,
    });
    expect(await problem(answer)).toMatchObject({
      status: 400,
      code: 'invalid_request',
      detail: expect.stringContaining('POST /agent/session/{id}/message continues a session') as string,
    });
  });

  test('[J7] a request with the same Idempotency-Key joins the run; with another body it is refused', async () => {
    const session = await newSession();
    const send = (content: string): Promise<Response> =>
      post(`/agent/session/${session}/message`, { content, stream: false }, { 'idempotency-key': 'k1' });
    const [first, second] = await Promise.all([send('what is 2 + 2'), send('what is 2 + 2')]);
    const ids = [await first.json<{ run_id: string }>(), await second.json<{ run_id: string }>()].map(
      (run) => run.run_id,
    );
    expect(ids[0]).toBe(ids[1]);
    const other = await send('what is 3 + 3');
    expect(await other.json()).toMatchObject({ status: 422, code: 'idempotency_mismatch' });
  });

  test('[H1] a message during a run waits, or is refused if it asks for that', async () => {
    const session = await newSession();
    const path = `/agent/session/${session}/message`;
    const first = post(path, { content: 'wait 0.3 seconds', stream: false });
    await expect
      .poll(async () => (await (await call(`/agent/session/${session}`)).json<{ status: string }>()).status)
      .toBe('running');
    const refused = await post(`${path}?if_busy=reject`, { content: 'hello' });
    expect(await refused.json()).toMatchObject({
      status: 409,
      code: 'run_in_progress',
      run_id: expect.stringMatching(/_1$/),
    });
    const second = post(path, { content: 'what is 20 + 22', stream: false });
    expect((await first).status).toBe(200);
    expect(await (await second).json()).toMatchObject({ status: 'completed', response: expect.stringContaining('42') });
  });
});

test('[H8] a body of unknown length, in pieces, is read like any other', async () => {
  const id = await newSession();
  const pieces = (value: object): RequestInit => ({
    method: 'POST',
    body: new ReadableStream({
      start(controller) {
        const bytes = new TextEncoder().encode(JSON.stringify(value));
        for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.slice(at, at + 7));
        controller.close();
      },
    }),
  });
  const planned = await call('/plan', pieces({ protocol_text: '<response final="true">é 🎈</response>' }));
  expect([planned.status, await planned.json()]).toMatchObject([200, { actions: [] }]);
  const message = await call(`/agent/session/${id}/message`, pieces({ content: 'hello é 🎈', stream: false }));
  expect([message.status, await message.json()]).toMatchObject([200, { status: 'completed' }]);
});
