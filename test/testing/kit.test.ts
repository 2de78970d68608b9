/** The test kit on a small project: what a test of an agent can replace, script and observe (K6). */
import { describe, expect, test, vi } from 'vitest';
import { openSession, scripted, ToolError } from '../../testing/index.ts';
import type { SessionOptions, Step, TestRun, TestSession } from '../../testing/index.ts';
import '../../testing/vitest.ts';
import { action, answer, shop } from './shop.ts';

/** Real milliseconds that a test with hours of its own time takes at most on a busy machine. */
const SOON_MS = 3_000;
const ADA = action('tool', 'orders', 'o', { customer: 'ada' });
const REFUND = action('tool', 'refund', 'r', { amount: 5 });
const STOCK = action('tool', 'stock', 's', { item: 'pen' });

const clerk = async (replies: readonly Step[], options: SessionOptions = {}): Promise<TestSession> =>
  await openSession(shop, { agent: 'clerk', model: scripted(...replies), ...options });

/** The run of one message. */
const runOf = async (replies: readonly Step[], options: SessionOptions = {}): Promise<TestRun> =>
  await (await clerk(replies, options)).send('?');

describe('[K6] a session of a project in the process of a test', () => {
  test('runs the actions of a scripted reply and fills in their results', async () => {
    const session = await clerk([`<thought>look it up ${ADA}</thought>${answer('Ada has $o.count orders')}`], {
      tools: { orders: async ({ customer }) => ({ customer, count: 2 }) },
    });
    const run = await session.send('How many orders has Ada?');
    expect(run).toHaveCompleted();
    expect(run).toHaveAnswered('Ada has 2 orders');
    expect(run).toHaveCalled('orders', { customer: 'ada' });
    expect(run.thoughts.join('')).toContain('look it up');
    expect(run.usage.model_calls).toBe(1);
    expect(session.requests).toHaveLength(1);
    expect(session.requests[0]?.messages.at(-1)?.content).toContain('How many orders has Ada?');
    expect(session.prompt).toContain('You work for a shop.');
  });

  test('a function makes a reply from what the model is sent, and sees the results of the reply before it', async () => {
    const isTwo: Step = ({ messages }) => answer(/"count":\s*2/.test(messages.at(-1)?.content ?? '') ? 'two' : 'none');
    const run = await runOf([ADA, isTwo], { tools: { orders: () => ({ count: 2 }) } });
    expect(run).toHaveAnswered(/^two$/);
    expect(run.iterations).toBe(2);
  });

  test('[C10] keeps facts about the user of the session', async () => {
    const remember = action('internal', 'remember', 'r', { key: 'size', value: 'large' });
    const session = await clerk([remember, answer('noted'), answer('$memory.size')], { agent: 'buyer', userId: 'ada' });
    expect(await session.send('I wear large')).toHaveEmitted('memory_changed', { key: 'size', value: 'large' });
    expect(await session.send('Which size?')).toHaveAnswered('large');
  });

  test('cancel ends what waits, and run shows it', async () => {
    const session = await clerk([REFUND]);
    const waiting = await session.send('pay');
    expect(waiting).toBeWaiting();
    await session.cancel('enough');
    expect(await session.run()).toMatchObject({ id: waiting.id, status: 'cancelled', approvals: [], outputs: null });
  });

  test('a reply can be the pieces of a stream', async () => {
    const run = await runOf([
      [
        { type: 'reasoning', text: 'simple' },
        { type: 'text', text: '<response final="true">ye' },
        { type: 'text', text: 's</response>' },
        { type: 'finish', reason: 'stop' },
      ],
    ]);
    expect(run).toHaveAnswered(/^yes$/);
    expect(run.thoughts).toEqual(['simple']);
  });

  test.each([
    ['text/html', 'failed', 'Only the Worker reads HTML'],
    ['text/plain', 'completed', '<p>hello</p>'],
  ])('a page of the type %s: reading it has %s', async (type, status, shown) => {
    const run = await runOf([action('tool', 'page', 'p', { url: 'https://shop.example/' }), answer('read')], {
      allowHosts: ['shop.example:443'],
      fetch: () => new Response('<p>hello</p>', { headers: { 'content-type': type } }),
    });
    expect(run.actions[0]?.status).toBe(status);
    expect(JSON.stringify(run.actions[0])).toContain(shown);
  });

  test('the conversation, its variables and its user exist from the start', async () => {
    const session = await clerk([answer('$colour')], {
      variables: { colour: 'blue' },
      userId: 'ada',
      history: [
        { role: 'user', content: 'I am Ada' },
        { role: 'assistant', content: 'Hello Ada' },
      ],
      now: new Date('2030-05-05T00:00:00Z'),
    });
    const run = await session.send('colour?');
    expect(run).toHaveAnswered('blue');
    expect(session.requests[0]?.messages.map(({ content }) => content).join()).toContain('Hello Ada');
    expect(await session.variables()).toMatchObject({ colour: 'blue' });
    expect(run.events[0]?.timestamp).toBeGreaterThanOrEqual(Date.UTC(2030, 4, 5));
  });

  test('parameters of a replaced tool are checked against its schema', async () => {
    const wrong = action('tool', 'orders', 'o', { customer: 5 });
    const run = await runOf([wrong, answer('done')], { tools: { orders: () => 1 } });
    expect(run.actions[0]?.error).toMatchObject({ code: 'invalid_parameters' });
  });
});

describe('[K6] time', () => {
  test('retries with a backoff pass at once, in the time of the test', async () => {
    const began = performance.now();
    const at: number[] = [];
    const session = await clerk([`${ADA}${answer('$o')}`], {
      tools: {
        orders: (_, { attempt }) => {
          at.push(session.clock.now());
          if (attempt < 3) throw new ToolError('busy', { code: 'busy', retryable: true });
          return 'three';
        },
      },
    });
    const run = await session.send('?');
    expect(run).toHaveAnswered('three');
    expect(run.actions[0]?.attempts).toBe(3);
    expect((at[2] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(10_000);
    expect(performance.now() - began).toBeLessThan(SOON_MS);
  });

  test('an action that does not end reaches its time limit at once', async () => {
    const session = await clerk([REFUND, answer('it took too long')], {
      tools: { refund: async (_, { sleep }) => await sleep(Infinity) },
    });
    await session.send('pay');
    const run = await session.approve();
    expect(run.actions[0]?.error).toMatchObject({ code: 'timeout' });
    expect(run).toHaveAnswered('it took too long');
  });

  test('time does not move while a function of the test is pending', async () => {
    const session = await clerk([`${ADA}${answer('$o')}`], {
      tools: {
        orders: async () => {
          const before = session.clock.now();
          for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
          return session.clock.now() - before;
        },
      },
    });
    expect(await session.send('?')).toHaveAnswered(/^0$/);
  });

  test('a function that does not settle is named', async () => {
    const endless = runOf([ADA], { tools: { orders: () => new Promise(() => undefined) } });
    await expect(endless).rejects.toThrow(/the tool "orders" has not settled.*ctx\.sleep/);
  });

  test('advance moves the time: an approval expires', async () => {
    const session = await clerk([REFUND, answer('nobody answered')]);
    expect(await session.send('pay')).toBeWaiting();
    await session.clock.advance(8 * 24 * 3_600_000);
    expect(await session.run()).toHaveAnswered('nobody answered');
    expect(session.approvals).toEqual([]);
  });

  test('fake timers of the test change nothing', async ({ onTestFinished }) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    expect(await runOf([answer('hi')])).toHaveAnswered('hi');
  });
});

describe('[K6] people and clients', () => {
  test('approve continues the run', async () => {
    const session = await clerk([`${REFUND}${answer('paid: $r')}`], {
      tools: { refund: ({ amount }) => ({ paid: amount }) },
    });
    const asked = await session.send('pay back 5');
    expect(asked).toBeWaiting();
    expect(asked).not.toHaveCalled('refund');
    expect(asked.approvals[0]).toMatchObject({ name: 'refund', parameters: { amount: 5 } });
    const run = await session.approve('refund');
    expect(run).toHaveCompleted();
    expect(run).toHaveCalled('refund', { amount: 5 });
  });

  test('deny shows the reason to the model', async () => {
    const hears: Step = ({ messages }) =>
      answer(messages.at(-1)?.content.includes('too much') === true ? 'sorry' : 'lost');
    const session = await clerk([REFUND, hears]);
    await session.send('pay back 5');
    const run = await session.deny('too much');
    expect(run).toHaveAnswered('sorry');
    expect(run).not.toHaveCalled('refund');
  });

  test('a request that is not open is refused with the nearest one', async () => {
    const session = await clerk([REFUND]);
    await expect(session.approve()).rejects.toThrow('No approval is open');
    await session.send('pay');
    await expect(session.approve('refunds')).rejects.toThrow('did you mean "refund"?');
  });

  test('settle gives the result of a client tool, of the project or of the message', async () => {
    const both = `${action('tool', 'locate', 'l', {})}${action('tool', 'pick', 'p', { of: 2 })}${answer('$l and $p')}`;
    const session = await clerk([both], {
      clientTools: [{ name: 'pick', description: 'Asks the user', parameters: { type: 'object' } }],
    });
    const asked = await session.send('where?');
    expect(asked).toBeWaiting();
    expect(asked.calls.map(({ name }) => name)).toEqual(['locate', 'pick']);
    expect(await session.settle('locate', 'Berlin')).toBeWaiting();
    const run = await session.settle('pick', new Error('closed'));
    expect(run.actions.map(({ status }) => status)).toEqual(['completed', 'failed']);
  });

  test('a sub-agent has its own script and session, and its approval makes the run wait', async () => {
    const session = await clerk([], {
      model: {
        clerk: scripted(`${action('agent', 'buyer', 'b', { message: 'pay' })}${answer('$b')}`),
        buyer: scripted(`${REFUND}${answer('paid $r')}`),
      },
      tools: { refund: () => 'five' },
    });
    const asked = await session.send('pay');
    expect(asked).toBeWaiting();
    expect(asked.approvals).toHaveLength(1);
    const run = await session.approve();
    expect(run).toHaveAnswered('paid five');
    expect(run).toHaveCalled('buyer', { message: 'pay' });
    expect(session.requests.map(({ from }) => from)).toEqual(['clerk', 'buyer']);
  });
});

describe('[K6] what a test replaces', () => {
  test('an http tool sends its request to fetch, with its secret', async () => {
    const run = await runOf([`${ADA}${answer('$o')}`], {
      secrets: { TOOL_ORDERS: 'orders-key-1234' },
      allowHosts: ['orders.example:443'],
      fetch: (url, init) => Response.json({ url, key: new Headers(init.headers).get('x-key') === 'orders-key-1234' }),
    });
    expect(run.actions[0]?.output).toMatchObject({ url: 'https://orders.example/by/ada', key: true });
  });

  test.each<[what: string, options: SessionOptions, error: object]>([
    ['to an address that the Worker refuses', { fetch: () => new Response('warm') }, { code: 'address_refused' }],
    [
      'without fetch, with what to do',
      { allowHosts: ['weather.example:443'] },
      { message: expect.stringContaining('pass fetch:') },
    ],
  ])('a request fails %s', async (_what, options, error) => {
    const run = await runOf([action('tool', 'weather', 'w', {}), answer('done')], options);
    expect(run.actions[0]?.error).toMatchObject(error);
  });

  test('a code tool runs with the bindings, secrets and fetch of the test', async () => {
    const run = await runOf([`${STOCK}${answer('$s.count')}`], {
      env: { COUNTS: { of: (item: string) => item.length } },
      secrets: { TOOL_STOCK: 'stock-key-1234' },
      allowHosts: ['stock.example:443'],
      fetch: () => new Response('pens'),
    });
    expect(run).toHaveAnswered('3');
    expect(run.actions[0]?.output).toMatchObject({ item: 'pen', count: 3, heading: 'pens' });
    expect(run).toHaveEmitted('progress', { stream: 'tool', text: 'counting\n' });
  });

  test.each<[what: string, env: Record<string, unknown>, advice: string]>([
    ['without its binding', {}, 'env: {'],
    ['whose binding is a variable', { COUNTS: 'a text' }, 'is a variable and not a binding'],
  ])('a code tool %s says what to pass', async (_what, env, advice) => {
    const run = await runOf([STOCK, answer('done')], { secrets: { TOOL_STOCK: 'stock-key-1234' }, env });
    const error = { code: 'missing_binding', message: expect.stringContaining(advice) };
    expect(run.actions[0]?.error).toMatchObject(error);
  });

  test.each([
    ['python', action('python', 'python', 'p', { code: 'print(1)' }), 'actions: { python: async (parameters) => … }'],
    ['a container tool', action('tool', 'report', 'r', {}), 'tools: { report: async (parameters) => … }'],
  ])('without a runner, %s says how to replace it', async (_, text, advice) => {
    const run = await runOf([text, answer('done')]);
    const error = { code: 'runner_unavailable', message: expect.stringContaining(advice) };
    expect(run.actions[0]?.error).toMatchObject(error);
  });

  test('actions of a type are replaced by a function', async () => {
    const run = await runOf([`${action('python', 'python', 'p', { code: 'print(1)' })}${answer('$p')}`], {
      actions: { python: async ({ code }) => `ran ${String(code)}` },
    });
    expect(run).toHaveAnswered('ran print(1)');
  });

  test('a workflow runs, as an action and on its own', async () => {
    const restock = `${action('workflow', 'restock', 'w', { count: 4 })}${answer('$w.doubled')}`;
    expect(await runOf([restock])).toHaveAnswered('8');
    const alone = await openSession(shop, { workflow: 'restock' });
    const run = await alone.start({ count: 5 });
    expect(run).toHaveCompleted();
    expect(run.outputs).toEqual({ doubled: 10 });
  });

  test('an edge relic keeps what actions store', async () => {
    const session = await clerk([
      `${action('relic', 'notes.set', 's', { key: 'a', value: 'milk' })}${answer('stored')}`,
      `${action('relic', 'notes.get', 'g', { key: 'a' })}${answer('$g')}`,
    ]);
    await session.send('remember milk');
    expect(await session.send('what?')).toHaveAnswered('milk');
  });
});

describe('[K6] mistakes of a test', () => {
  test('a model call beyond the script fails the run and says which', async () => {
    const run = await runOf([ADA, action('tool', 'orders', 'p', { customer: 'bob' })], { tools: { orders: () => 1 } });
    expect(run).toHaveFailed('model_rejected');
    expect(run.error?.message).toContain('the scripted model has no reply number 3; the agent "clerk" asked after: "');
  });

  test('an agent without a model fails the run and says what to pass', async () => {
    const run = await runOf([], { model: { buyer: scripted() } });
    expect(run.error?.message).toContain('model: { "clerk": scripted(…) }');
  });

  test.each([
    [{ agent: 'clark' }, 'no agent "clark"; did you mean "clerk"?'],
    [{ workflow: 'restok' }, 'no workflow "restok"; did you mean "restock"?'],
    [{ agent: 'clerk', tools: { order: () => 1 } }, 'no tool "order"; did you mean "orders"?'],
    [{ agent: 'clerk', actions: { pyton: () => 1 } as object }, 'no action type "pyton"; did you mean "python"?'],
    [{ agent: 'clerk', model: { buyr: scripted() } }, 'no agent "buyr"; did you mean "buyer"?'],
    [{ agent: 'clerk', secrets: { STOCK: 'x' } }, 'must begin with TOOL_'],
    [{}, 'openSession needs an agent or a workflow'],
  ])('options %j are refused', async (options, message) => {
    await expect(openSession(shop, options)).rejects.toThrow(message);
  });
});
