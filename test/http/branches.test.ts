/** Branches of a session (C4), through the session API. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { EngineError } from '../../src/domain/errors.ts';
import type { ModelRequest } from '../../src/domain/ports/model.ts';
import { FORK_PATH, SCOPES_HEADER } from '../../src/http/session-env.ts';
import { toolOf } from '../support/definitions.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { checkedSession } from '../support/response-check.ts';
import { sessionKit, settle, variablesOf } from '../support/session-kit.ts';
import type { KitOptions } from '../support/session-kit.ts';
import { sessionApi } from './session-api.ts';

const RUN = (run: number): string => `run_${'a'.repeat(32)}_${run}`;
const answer = (text: string): string => `<response final="true">${text}</response>`;
const action = (type: string, id: string, body: object): string =>
  `<action type="${type}" mode="async" id="${id}">${JSON.stringify(body)}</action>`;
const echo = (id: string, value: unknown, more: object = {}): string =>
  action('tool', id, { name: 'echo', parameters: { value }, ...more });
const setVariable = (id: string, key: string, value: unknown): string =>
  action('internal', id, { name: 'set_variable', parameters: { key, value } });

interface Document {
  readonly run_id: string;
  readonly status: string;
  readonly response: string;
  readonly code?: string;
  readonly detail?: string;
  readonly actions: readonly { readonly id: string; readonly status: string; readonly output: unknown }[];
}

/** Runs of a session; `history` has the messages and answers of a branch. */
async function tree(options: KitOptions = {}) {
  const { kit, get, post: send } = await sessionApi(options);
  const post = async (path: string, body: object, headers = {}): Promise<[number, Document]> => {
    const given = path === '/head' ? body : { ...body, stream: false };
    const { status, body: document } = await send<Document>(path, given, headers);
    return [status, document];
  };
  return {
    kit,
    post,
    get,
    say: async (content: string, more: object = {}) => (await post('/message', { content, ...more }))[1],
    retry: async (run: number, body: object = {}) => (await post(`/runs/${RUN(run)}/retry`, body))[1],
    history: async (query = '') =>
      (await get<{ messages: { content: string }[] }>(`/history${query}`)).messages.map(({ content }) => content),
  };
}

/** What the user has said, as the model was shown it. */
const asked = ({ messages }: ModelRequest): string[] =>
  messages.flatMap(({ role, content }) => (role === 'user' ? [String(content).split('\n', 1)[0] ?? ''] : []));

test('[C4] a fork is limited in rate, as every request that starts work', async () => {
  const { session } = await sessionKit();
  const fetch = checkedSession({
    session,
    clock: new VirtualClock(),
    destroy: async () => undefined,
    log: () => undefined,
    admit: async () => new EngineError('rate_limited', 'too many requests'),
  });
  const body = JSON.stringify({ has_key: false });
  expect((await fetch(new Request(`http://session${FORK_PATH}`, { method: 'POST', body }))).status).toBe(429);
});

describe('[C4] a retry', () => {
  test('is a new run with the same message and the same history; the session continues after it', async () => {
    const { kit, say, retry, history, get } = await tree({ script: ['a1', 'b1', 'b2', 'c1'].map(answer) });
    await say('a');
    await say('b');
    expect(await retry(2)).toMatchObject({ run_id: RUN(3), status: 'completed', response: 'b2' });
    await say('c');
    expect(kit.requests.map(asked)).toEqual([['a'], ['a', 'b'], ['a', 'b'], ['a', 'b', 'c']]);
    expect(await history()).toEqual(['a', 'a1', 'b', 'b2', 'c', 'c1']);
    expect(await history(`?run=${RUN(2)}`)).toEqual(['a', 'a1', 'b', 'b1']);
    expect(await get('/runs')).toMatchObject({
      head: RUN(4),
      runs: [
        { run_id: RUN(1), parent_run: null },
        { run_id: RUN(2), parent_run: RUN(1) },
        { run_id: RUN(3), parent_run: RUN(1), retry_of: RUN(2) },
        { run_id: RUN(4), parent_run: RUN(3) },
      ],
    });
  });

  test('says what it repeats: in its events, and in the message with all versions of it', async () => {
    const { kit, say, retry, get } = await tree();
    await say('a');
    await retry(1);
    await retry(2, { content: 'other' });
    const { messages } = await get<{ messages: object[] }>('/history');
    expect(messages).toMatchObject([
      { role: 'user', content: 'other', retry_of: RUN(2), parent_run: null, branches: [RUN(1), RUN(2), RUN(3)] },
      { role: 'assistant', run_id: RUN(3) },
    ]);
    const branched = kit.events.filter(({ type }) => type === 'run_branched');
    expect(branched).toMatchObject([
      { run_id: RUN(2), data: { parent_run: null, retry_of: RUN(1) } },
      { run_id: RUN(3), data: { parent_run: null, retry_of: RUN(2) } },
    ]);
  });

  test('of which there are many: the message lists the newest versions and itself', async () => {
    const { say, retry, get } = await tree();
    await say('a');
    for (let count = 0; count <= limits.pageRows; count += 1) await retry(1);
    const versionsOf = async (run: number): Promise<string[]> =>
      (await get<{ messages: { branches: string[] }[] }>(`/history?run=${RUN(run)}`)).messages[0]?.branches ?? [];
    const last = limits.pageRows + 2;
    const newest = Array.from({ length: limits.pageRows }, (_, index) => RUN(index + 3));
    expect(await versionsOf(last)).toEqual(newest);
    expect(await versionsOf(1)).toEqual([RUN(1), ...newest.slice(1)]);
  });

  test('has the metadata, instructions and tools of the message', async () => {
    const tools = [{ name: 'dial', description: '', parameters: { type: 'object', properties: {} } }];
    const { kit, say, retry, get } = await tree();
    await say('a', { metadata: { tag: 'x' }, instructions: 'Be brief.', tools });
    await retry(1, { content: 'b' });
    const { messages } = await get<{ messages: object[] }>('/history');
    expect(messages[0]).toMatchObject({ content: 'b', metadata: { tag: 'x' } });
    const last = JSON.stringify(kit.requests.at(-1)?.messages);
    expect([last.includes('Be brief.'), last.includes('dial')]).toEqual([true, true]);
  });

  test('is one run for the same key, and an error for another message', async () => {
    const { kit, say, post } = await tree();
    await say('a');
    const key = { 'idempotency-key': 'k' };
    const runs = [await post(`/runs/${RUN(1)}/retry`, {}, key), await post(`/runs/${RUN(1)}/retry`, {}, key)];
    expect(runs.map(([, { run_id }]) => run_id)).toEqual([RUN(2), RUN(2)]);
    expect(kit.requests).toHaveLength(2);
    const [, other] = await post(`/runs/${RUN(1)}/retry`, { content: 'x' }, key);
    const [, plain] = await post(`/runs/${RUN(2)}/retry`, {}, key);
    expect([other.code, plain.code]).toEqual(['idempotency_mismatch', 'idempotency_mismatch']);
  });

  test('waits behind a run, or is refused', async () => {
    const gate = Promise.withResolvers<void>();
    const { kit, say, post } = await tree({
      executors: { tool: async () => await gate.promise.then(() => ({ ok: true, output: 1 })) },
      script: [answer('a'), echo('x', 1) + answer('b'), answer('again')],
    });
    await say('a');
    const busy = say('b');
    await settle();
    const [status, refused] = await post(`/runs/${RUN(1)}/retry?if_busy=reject`, {});
    expect([status, refused.code]).toEqual([409, 'run_in_progress']);
    const queued = post(`/runs/${RUN(1)}/retry`, {});
    await settle();
    expect(kit.session.runs().map(({ status: one }) => one)).toEqual(['completed', 'running', 'queued']);
    gate.resolve();
    await busy;
    expect((await queued)[1]).toMatchObject({ status: 'completed', response: 'again' });
  });

  test('needs a run of the session that a message has started, and known members', async () => {
    const { kit, post } = await tree();
    await kit.session.execute((async function* () {})(), answer('x'));
    await settle();
    const [, program] = await post(`/runs/${RUN(1)}/retry`, {});
    expect(program).toMatchObject({ code: 'invalid_request', run_id: RUN(1) });
    const [, unknown] = await post(`/runs/${RUN(9)}/retry`, {});
    expect(unknown.code).toBe('unknown_run');
    const [, both] = await post(`/runs/${RUN(1)}/retry`, { content: 'x', action: 'y' });
    expect(both.detail).toContain('either "content" or "action"');
    const [, unknownMember] = await post(`/runs/${RUN(1)}/retry`, { contents: 'x' });
    expect(unknownMember.detail).toContain('did you mean "content"?');
  });
});

describe('[C4] a branch', () => {
  test('has the results of its own runs only', async () => {
    const { say, retry } = await tree({
      script: [
        echo('x', 'first'),
        answer('one'),
        echo('x', 'second'),
        answer('two'),
        answer('it is $x'),
        answer('it is $x'),
      ],
    });
    await say('a');
    await retry(1);
    expect(await say('b')).toMatchObject({ response: expect.stringContaining('second') as string });
    expect(await say('b', { parent_run: RUN(1) })).toMatchObject({
      response: expect.stringContaining('first') as string,
    });
  });

  test('has no results of runs that it does not follow', async () => {
    const { say } = await tree({ script: [echo('x', 'first'), answer('one'), answer('it is $x')] });
    await say('a');
    const { response } = await say('b', { parent_run: null });
    expect(response).toBe('it is $x');
  });

  test('has the variables of its own runs only, also after a restart', async () => {
    const script = [
      setVariable('s', 'n', 1),
      answer('1'),
      setVariable('s', 'n', 2) + setVariable('t', 'm', 2),
      answer('2'),
      answer('3'),
      answer('4'),
    ];
    const { kit, say, retry, post } = await tree({ script, variables: { n: 0, k: 'kept' } });
    await say('a');
    await say('b');
    expect(await variablesOf(kit.session)).toEqual({ k: 'kept', m: 2, n: 2 });
    await retry(2);
    expect(await variablesOf(kit.session)).toEqual({ k: 'kept', n: 1 });
    await say('c', { parent_run: null });
    expect(await variablesOf(kit.session)).toEqual({ k: 'kept', n: 0 });
    await post('/head', { run_id: RUN(2) });
    expect(await variablesOf(kit.session)).toEqual({ k: 'kept', m: 2, n: 2 });
    const again = await sessionKit({ sql: kit.sql });
    expect(await variablesOf(again.session)).toEqual({ k: 'kept', m: 2, n: 2 });
  });

  test('has its own variables, also if it ends with the newest run and the head was moved away', async () => {
    const script = [setVariable('s', 'n', 1), answer('1'), setVariable('s', 'n', 2), answer('2'), answer('3')];
    const { kit, say, post } = await tree({ script });
    await say('a');
    await say('b');
    await post('/head', { run_id: RUN(1) });
    expect(await variablesOf(kit.session)).toEqual({ n: 1 });
    await say('c', { parent_run: RUN(2) });
    expect(await variablesOf(kit.session)).toEqual({ n: 2 });
  });

  test.each(['live', 'after a restart'])(
    'goes on with its own variables while the head is elsewhere (%s)',
    async (when) => {
      const options: KitOptions = {
        tools: [toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'danger', approval: 'always' })],
        script: [
          setVariable('s', 'n', 1),
          answer('1'),
          setVariable('s', 'n', 2) + action('tool', 'x', { name: 'danger', parameters: { value: 1 } }),
          answer('it is $n'),
        ],
      };
      const { kit, say, post } = await tree(options);
      await say('a');
      expect((await say('b')).status).toBe('waiting');
      await post('/head', { run_id: RUN(1) });
      const { session } =
        when === 'live' ? kit : await sessionKit({ ...options, sql: kit.sql, script: [answer('it is $n')] });
      await session.recover();
      await session.resolveApproval(session.openApprovalIds[0] ?? '', true, null);
      await session.ended(2);
      const end = session.events(0).find(({ type, run_id: run }) => type === 'agent_completed' && run === RUN(2));
      expect(end?.data).toMatchObject({ response: 'it is 2' });
    },
  );

  test('has its own variables, also after a run that was cancelled before it began', async () => {
    const { kit, say } = await tree({
      executors: { tool: () => new Promise(() => undefined) },
      script: [setVariable('s', 'n', 1), answer('1'), echo('x', 1), answer('3')],
    });
    await say('a');
    void say('b');
    await settle();
    void say('c', { parent_run: null });
    await settle();
    await kit.session.cancel('stop');
    expect((await say('d')).status).toBe('completed');
    expect(await variablesOf(kit.session)).toEqual({});
  });

  test('is moved to only after an earlier host has finished its run, which keeps its variables', async () => {
    const script = [setVariable('s', 'n', 1), answer('1'), setVariable('s', 'n', 2) + echo('x', 1)];
    const { kit, say } = await tree({ executors: { tool: () => new Promise(() => undefined) }, script });
    await say('a');
    void say('b');
    await settle();
    const next = await sessionKit({ sql: kit.sql, script: [answer('it is $n')] });
    await next.session.branches.moveHead(next.session.run(RUN(1)));
    await next.session.ended(2);
    expect(next.events.find(({ type }) => type === 'agent_completed')?.data).toMatchObject({ response: 'it is 2' });
  });

  test('continues where the head was moved to, until there is a newer run', async () => {
    const { kit, say, retry, post, history, get } = await tree({ script: ['1', '2', '3', '4'].map(answer) });
    await say('a');
    await retry(1);
    expect((await post('/head', { run_id: RUN(1) }))[1]).toMatchObject({ head: RUN(1) });
    expect(await history()).toEqual(['a', '1']);
    expect(await get('/')).toMatchObject({ head: RUN(1), runs: 2 });
    await say('b');
    expect(await history()).toEqual(['a', '1', 'b', '3']);
    await say('c');
    expect(await history()).toEqual(['a', '1', 'b', '3', 'c', '4']);
    expect(kit.requests.map(asked).at(-1)).toEqual(['a', 'b', 'c']);
  });

  test('is read page by page, from its end to its beginning', async () => {
    const { say, retry, get } = await tree();
    for (const content of ['a', 'b', 'c']) await say(content);
    await retry(2);
    await say('d');
    const pages: string[][] = [];
    for (let before: string | null = ''; before !== null;) {
      const page: { messages: { role: string; content: string }[]; next: string | null } = await get(
        `/history?limit=1${before === '' ? '' : `&before=${before}`}`,
      );
      pages.push(page.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])));
      before = page.next;
    }
    expect(pages).toEqual([['d'], ['b'], ['a']]);
  });

  test('of a run is read from a run on it only', async () => {
    const { say, retry, get } = await tree();
    for (const content of ['a', 'b', 'c']) await say(content);
    await retry(2);
    await say('d');
    const page = async (run: number, before: string): Promise<unknown> => {
      type Page = {
        readonly status?: number;
        readonly detail?: string;
        readonly messages?: { readonly content: string }[];
      };
      const { status, detail, messages } = await get<Page>(`/history?run=${RUN(run)}&before=${before}`);
      return messages === undefined
        ? `${status} ${detail}`
        : messages.flatMap(({ content }, at) => (at % 2 ? [] : [content]));
    };
    expect(await page(3, RUN(3))).toEqual(['a', 'b']);
    expect(await page(3, RUN(2))).toEqual(['a']);
    expect(await page(5, '4')).toEqual(['a']);
    expect(await page(3, RUN(1))).toEqual([]);
    expect(await page(3, RUN(4))).toBe(
      `400 "before" is the run "${RUN(4)}", which is not on the branch that ends with the run "${RUN(3)}"`,
    );
    for (const [run, before] of [
      [3, RUN(5)],
      [5, RUN(2)],
      [2, RUN(3)],
      [5, '99'],
    ] as const)
      expect(await page(run, before)).toContain('400 "before" is the run');
    expect(await page(99, RUN(1))).toContain('404');
  });

  test('is continued by a queued message after a restart', async () => {
    const { kit, say } = await tree({
      executors: { tool: () => new Promise(() => undefined) },
      script: [answer('1'), answer('2'), echo('x', 1)],
    });
    await say('a');
    await say('b');
    void say('c');
    await settle();
    void say('d', { parent_run: RUN(1) });
    await settle();
    const next = await sessionKit({ sql: kit.sql, script: [answer('recovered'), answer('queued')] });
    await next.session.recover();
    await next.session.ended(4);
    expect(next.requests.map(asked).at(-1)).toEqual(['a', 'd']);
  });

  test('needs the scope "branch", except to follow the head', async () => {
    const { say, post, retry } = await tree();
    await say('a');
    await retry(1);
    const token = { [SCOPES_HEADER]: 'read message' };
    expect((await post('/message', { content: 'b', parent_run: RUN(2) }, token))[0]).toBe(200);
    const [status, refused] = await post('/message', { content: 'c', parent_run: RUN(1) }, token);
    expect([status, refused.code]).toEqual([403, 'forbidden']);
    expect((await post('/message', { content: 'd', parent_run: RUN(9) }, token))[1].code).toBe('unknown_run');
  });

  test('follows the head without the scope "branch" once: again with its key, and not twice at once', async () => {
    const { kit, say, post } = await tree();
    await say('a');
    const token = { [SCOPES_HEADER]: 'read message' };
    const behind = async (content: string, headers: Record<string, string>): Promise<number> =>
      (await post('/message', { content, parent_run: RUN(1) }, headers))[0];
    expect(await behind('b', { ...token, 'idempotency-key': 'k' })).toBe(200);
    expect(await behind('b', { ...token, 'idempotency-key': 'k' })).toBe(200);
    await kit.session.branches.moveHead(kit.session.run(RUN(1)));
    expect((await Promise.all([behind('c', token), behind('d', token)])).toSorted()).toEqual([200, 403]);
    expect(kit.session.runs()).toHaveLength(3);
  });
});

describe('[C4] an action that runs again', () => {
  test('is a run of its own, whose result later messages see', async () => {
    let count = 0;
    const { kit, say, retry, history } = await tree({
      executors: { tool: async () => ({ ok: true, output: `result ${(count += 1)}` }) },
      script: [echo('x', 'a'), answer('done'), answer('now $x')],
    });
    await say('a');
    const run = await retry(1, { action: 'x' });
    expect(run).toMatchObject({ run_id: RUN(2), status: 'completed', actions: [{ id: 'x', output: 'result 2' }] });
    expect(kit.requests).toHaveLength(2);
    expect(await say('b')).toMatchObject({ response: 'now result 2' });
    const shown = JSON.stringify(kit.requests.at(-1)?.messages);
    expect([shown.includes('Run the action x (echo) again.'), shown.includes('result 2')]).toEqual([true, true]);
    expect((await history())[2]).toBe('Run the action x (echo) again.');
  });

  test('gets what it referred to in its run, whatever the names mean now; text in it is never a reference', async () => {
    const given: unknown[] = [];
    const { say, retry } = await tree({
      executors: {
        tool: async ({ parameters }) => {
          given.push(parameters['value']);
          return { ok: true, output: parameters['value'] ?? null };
        },
      },
      variables: { secret: 'hidden' },
      script: [
        echo('a', 'the $$secret </action>') + echo('b', { of: '$a' }),
        answer('1'),
        echo('a', 'later'),
        answer('2'),
      ],
    });
    await say('one');
    await say('two');
    await retry(1, { action: 'b' });
    expect(given.at(-1)).toEqual({ of: 'the $secret </action>' });
  });

  test('can be a call of a client tool that came with the message', async () => {
    const tools = [{ name: 'dial', description: '', parameters: { type: 'object', properties: {} } }];
    const { kit, say, retry } = await tree({
      script: [action('tool', 'x', { name: 'dial', parameters: {} }), answer('done')],
    });
    const first = say('a', { tools });
    await settle();
    const [call] = kit.events.flatMap((event) => (event.type === 'client_tool_called' ? [event.data.call_id] : []));
    await kit.session.settleCall(call ?? '', { output: 1 });
    await first;
    await kit.session.ended(1);
    expect(await retry(1, { action: 'x' })).toMatchObject({ run_id: RUN(2), status: 'waiting' });
  });

  test('is asked about again, also if it was approved before', async () => {
    let ids = 0;
    const { kit, say, retry } = await tree({
      tools: [toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'danger', approval: 'always' })],
      approvalIds: () => `apr_${String((ids += 1)).padStart(32, '0')}`,
      script: [action('tool', 'x', { name: 'danger', parameters: { value: 1 } }), answer('done')],
    });
    const first = say('a');
    await settle();
    await kit.session.resolveApproval(kit.session.openApprovalIds[0] ?? '', true, null);
    await first;
    await kit.session.ended(1);
    expect(await retry(1, { action: 'x' })).toMatchObject({ run_id: RUN(2), status: 'waiting' });
    expect(kit.session.openApprovalIds).toEqual([`apr_${'2'.padStart(32, '0')}`]);
  });

  test('must be one that the run has accepted', async () => {
    const { say, post } = await tree();
    await say('a');
    const [status, { code }] = await post(`/runs/${RUN(1)}/retry`, { action: 'nothing' });
    expect([status, code]).toEqual([404, 'unknown_action']);
  });

  test('is one run for the same key, also after the head has moved on', async () => {
    const { say, post } = await tree({ script: [echo('x', 1), answer('1'), answer('2')] });
    await say('a');
    const key = { 'idempotency-key': 'k' };
    const again = async (action = 'x'): Promise<Document> => (await post(`/runs/${RUN(1)}/retry`, { action }, key))[1];
    const accepted = { run_id: RUN(2), status: 'completed' };
    expect(await again()).toMatchObject(accepted);
    expect(await again()).toMatchObject(accepted);
    await say('b');
    expect(await again()).toMatchObject(accepted);
    await say('c', { parent_run: null });
    expect(await again()).toMatchObject(accepted);
  });

  test('follows its run if that is on another branch', async () => {
    const { say, retry, get } = await tree({ script: [echo('x', 1), answer('1'), answer('2')] });
    await say('a');
    await retry(1);
    await retry(1, { action: 'x' });
    expect(await get('/runs')).toMatchObject({
      head: RUN(3),
      runs: [{}, {}, { run_id: RUN(3), parent_run: RUN(1), retry_of: RUN(1) }],
    });
  });
});
