/** Client tools and approvals: each call is executed once, each request is asked about once (C3, J8, K3). */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { ClientTools, OpenApproval } from '../../src/client/index.ts';
import { sessionKit, settle } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { toolOf } from '../support/definitions.ts';
import { eventsOf } from '../support/events.ts';
import { limits } from '../../src/domain/limits.ts';
import { allOf, clientOf } from './client-kit.ts';
import type { Fault } from './client-kit.ts';

const call = (id: string, name: string, parameters = '{}'): string =>
  `<action type="tool" mode="async" id="${id}">{"name": "${name}", "parameters": ${parameters}}</action>`;
const SCRIPT = [
  call('a', 'locate', '{"exact": true}') + call('b', 'locate'),
  '<response final="true">$a and $b</response>',
];

async function asking(script: readonly string[] = SCRIPT): Promise<SessionKit> {
  const kit = await sessionKit({ script });
  kit.sql.onSync = settle;
  return kit;
}

/** A tool that counts its calls. */
function counting(output: (calls: number) => unknown = (calls) => calls): { tools: ClientTools; calls: unknown[] } {
  const calls: unknown[] = [];
  const run = (parameters: unknown): unknown => output(calls.push(parameters));
  return { tools: { locate: { description: 'Where', parameters: { type: 'object' }, run } }, calls };
}

const outputs = (kit: SessionKit): unknown[] => eventsOf(kit.events, 'action_completed').map(({ data }) => data.output);
const errors = (kit: SessionKit): unknown[] => eventsOf(kit.events, 'action_failed').map(({ data }) => data.error);

describe('[C3] calls of client tools', () => {
  test('are executed while the run is read, each once, and their results are posted', async () => {
    const kit = await asking();
    const { tools, calls } = counting();
    const { session, requests } = clientOf(kit);
    const run = await session.send('go', { clientTools: tools });
    expect(await run.result()).toMatchObject({ status: 'completed', calls: [] });
    expect(calls).toEqual([{ exact: true }, {}]);
    expect(outputs(kit)).toEqual([1, 2]);
    // Live, nothing has to be looked up.
    expect(requests.filter((path) => path.startsWith('GET /runs'))).toEqual([]);
  });

  test('are not executed again by a client that reads the run from its beginning', async () => {
    const kit = await asking();
    const first = counting();
    const run = await clientOf(kit).session.send('go', { clientTools: first.tools });
    await run.result();
    await allOf(run.events());
    const second = counting();
    await clientOf(kit).session.run(run.id, { clientTools: second.tools }).result();
    expect([first.calls.length, second.calls.length]).toEqual([2, 0]);
  });

  test('that are open after a reload are executed by the next client, those that are settled are not', async () => {
    const kit = await asking();
    const leave = new AbortController();
    const first = counting((calls) => (calls === 1 ? 'first' : new Promise(() => undefined)));
    const run = await clientOf(kit).session.send('go', { clientTools: first.tools, signal: leave.signal });
    for await (const { type } of run.events()) if (type === 'client_tool_settled') leave.abort();
    const second = counting(() => 'second');
    const again = clientOf(kit).session.run(run.id, { clientTools: second.tools });
    expect((await again.result()).status).toBe('completed');
    expect([first.calls.length, second.calls.length]).toEqual([2, 1]);
    expect(outputs(kit)).toEqual(['first', 'second']);
  });

  test('of a repeated message are looked up first', async () => {
    const kit = await asking();
    const options = { idempotencyKey: 'k' };
    const first = counting();
    await (await clientOf(kit).session.send('go', { ...options, clientTools: first.tools })).result();
    const second = counting();
    const run = await clientOf(kit, ['lost']).session.send('go', { ...options, clientTools: second.tools });
    expect((await run.result()).status).toBe('completed');
    expect(second.calls).toEqual([]);
  });

  test('that two clients execute have the first result; the other one is no error', async () => {
    const kit = await asking();
    let other: Promise<unknown> | null = null;
    const slow = counting(async () => {
      await other;
      return 'late';
    });
    const run = await clientOf(kit).session.send('go', { clientTools: slow.tools });
    other = clientOf(kit)
      .session.run(run.id, { clientTools: counting(() => 'early').tools })
      .result();
    expect((await run.result()).status).toBe('completed');
    expect(outputs(kit)).toEqual(['early', 'early']);
  });

  test('keep their results through lost answers and cut streams', async () => {
    const kit = await asking();
    const { tools, calls } = counting();
    const { session } = clientOf(kit, [900, 'lost', 'lost', 'refused', 40, 'lost', 700], { retries: 20 });
    const run = await session.send('go', { clientTools: tools });
    expect((await run.result()).status).toBe('completed');
    expect([calls.length, outputs(kit).length]).toEqual([2, 2]);
  });

  test.each<[string, () => unknown, unknown]>([
    ['throws', () => Promise.reject(new Error('no signal')), 'no signal'],
    ['throws no error', () => Promise.reject(new Error('')), 'The tool failed'],
    ['has an output that is no JSON', () => ({ n: 1n }), expect.stringContaining('BigInt')],
    ['has an output that is too large', () => 'x'.repeat(1_200_000), expect.stringContaining('not accepted')],
  ])('fail if the tool %s', async (_name, output, message) => {
    const kit = await asking([call('a', 'locate'), '<response final="true">sorry</response>']);
    const run = await clientOf(kit).session.send('go', { clientTools: counting(output).tools });
    expect((await run.result()).actions).toMatchObject([{ status: 'failed' }]);
    expect(errors(kit)).toMatchObject([{ message: expect.any(String) as string }]);
    expect((errors(kit)[0] as { message: string }).message).toEqual(
      typeof message === 'string' ? expect.stringContaining(message) : message,
    );
  });

  test('without a value have the output null', async () => {
    const kit = await asking();
    await (await clientOf(kit).session.send('go', { clientTools: counting(() => undefined).tools })).result();
    expect(outputs(kit)).toEqual([null, null]);
  });

  test('are aborted when they are settled otherwise', async () => {
    const kit = await asking([call('a', 'locate'), '<response final="true">ok</response>']);
    const signals: AbortSignal[] = [];
    const { session } = clientOf(kit);
    const locate = async (_: unknown, { signal, callId }: { signal: AbortSignal; callId: string }): Promise<void> => {
      signals.push(signal);
      await session.settle(callId, { output: 'by hand' });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    };
    const run = await session.send('go', { clientTools: { locate: { run: locate } } });
    expect((await run.result()).actions).toMatchObject([{ output: 'by hand' }]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  test('of tools that this client does not have stay open', async () => {
    const kit = await asking([call('a', 'locate'), '<response final="true">ok</response>']);
    const { session } = clientOf(kit);
    const run = await session.send('go', { tools: [{ name: 'locate' }], clientTools: {} });
    for await (const event of run.events()) {
      if (event.type === 'client_tool_called') await session.settle(event.data.call_id, { output: 1 });
    }
    expect(outputs(kit)).toEqual([1]);
  });

  test('whose results the server refuses end the reading with its error', async () => {
    const kit = await asking([call('a', 'locate'), '<response final="true">ok</response>']);
    const { session } = clientOf(kit, [null, { status: 403 }]);
    const run = await session.send('go', { clientTools: counting().tools });
    await expect(run.result()).rejects.toMatchObject({ code: 'http_403' });
  });

  test('whose results the server refuses while nobody reads end the next reading, once', async () => {
    const kit = await asking([call('a', 'locate'), '<response final="true">ok</response>']);
    const { session, requests } = clientOf(kit, [null, { status: 403 }]);
    const run = await session.send('go', { clientTools: counting().tools });
    for await (const { type } of run.events()) if (type === 'client_tool_called') break;
    await expect.poll(() => requests.length).toBe(2);
    await settle();
    await expect(run.result()).rejects.toMatchObject({ code: 'http_403' });
    const [open] = eventsOf(kit.events, 'client_tool_called');
    await session.settle(open?.data.call_id ?? '', { output: 1 });
    expect((await run.result()).status).toBe('completed');
  });

  test('wait for a server that is away, longer than other requests', async () => {
    const kit = await asking([call('a', 'locate'), '<response final="true">ok</response>']);
    const away = Array.from({ length: 20 }, (): Fault => ({ status: 502 }));
    const { session } = clientOf(kit, [null, ...away], { retries: 1 });
    const run = await session.send('go', { clientTools: counting().tools });
    expect((await run.result()).status).toBe('completed');
    expect(outputs(kit)).toEqual([1]);
  });

  test('that have no room in the document of the run are executed once others are settled', async () => {
    const many = Array.from({ length: limits.pendingCalls + 2 }, (_, n) => call(`c${n}`, 'locate'));
    const kit = await asking([many.join(''), '<response final="true">ok</response>']);
    const leave = new AbortController();
    const run = await clientOf(kit).session.send('go', { tools: [{ name: 'locate' }], signal: leave.signal });
    for await (const { type } of run.events()) if (type === 'agent_waiting') leave.abort();
    const { session } = clientOf(kit);
    expect((await session.run(run.id).document()).pending_more).toBe(2);
    const { tools, calls } = counting();
    expect((await session.run(run.id, { clientTools: tools }).result()).status).toBe('completed');
    expect([calls.length, outputs(kit).length]).toEqual([many.length, many.length]);
  });
});

describe('[J8] approvals', () => {
  const FEE = [
    '<action type="tool" mode="async" id="p">{"name": "pay", "parameters": {"sum": 5}}</action>',
    '<response final="true">done</response>',
  ];
  async function paying(): Promise<SessionKit> {
    const echo = { type: 'builtin', entrypoint: 'echo' } as const;
    const kit = await sessionKit({ script: FEE, tools: [toolOf(echo, { name: 'pay', approval: 'always' })] });
    kit.sql.onSync = settle;
    return kit;
  }

  test('are asked for once, and the decision is posted', async () => {
    const kit = await paying();
    const asked: OpenApproval[] = [];
    const run = await clientOf(kit).session.send('go', { onApproval: (approval) => asked.push(approval) > 0 });
    expect((await run.result()).actions).toMatchObject([{ name: 'pay', status: 'completed' }]);
    expect(asked).toMatchObject([{ name: 'pay', parameters: { sum: 5 } }]);
  });

  test('are denied with a note, also after a lost answer', async () => {
    const kit = await paying();
    const { session } = clientOf(kit, [null, null, 'lost', 'lost', 'lost'], { retries: 9 });
    const run = await session.send('go', { onApproval: () => ({ approve: false, note: 'too much' }) });
    const message = await run.result();
    expect(message).toMatchObject({ approvals: [], actions: [{ status: 'failed' }] });
    expect(message.actions[0]?.error?.message).toContain('too much');
  });

  test('that nobody decides stay open; another client finds and decides them', async () => {
    const kit = await paying();
    const leave = new AbortController();
    const run = await clientOf(kit).session.send('go', { onApproval: () => undefined, signal: leave.signal });
    const seen: SessionEvent[] = [];
    for await (const event of run.events()) {
      seen.push(event);
      if (event.type === 'agent_waiting') leave.abort();
    }
    const { session } = clientOf(kit);
    const [open] = await session.approvals();
    const id = open?.approval_id ?? '';
    expect(await session.approval(id)).toMatchObject({ status: 'open', name: 'pay' });
    await session.decide(id, { approve: true });
    await session.decide(id, { approve: true });
    await expect(session.decide(id, { approve: false })).rejects.toMatchObject({ code: 'approval_closed' });
    expect((await session.run(run.id).result()).status).toBe('completed');
  });

  test('are asked for again after a reload, while they are open', async () => {
    const kit = await paying();
    const leave = new AbortController();
    const run = await clientOf(kit).session.send('go', { signal: leave.signal });
    for await (const { type } of run.events()) if (type === 'agent_waiting') leave.abort();
    let asked = 0;
    const onApproval = (): boolean => (asked += 1) > 0;
    await clientOf(kit).session.run(run.id, { onApproval }).result();
    await clientOf(kit).session.run(run.id, { onApproval }).result();
    expect(asked).toBe(1);
  });
});
