/** Commands of other protocols in the session's object: answers and decisions (E1 to E3, T1). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { createSessionApp } from '../../src/http/session-app.ts';
import { SCOPES_HEADER } from '../../src/http/session-env.ts';
import { SURFACE_PATH } from '../../src/http/surfaces/session-surface.ts';
import type { SurfaceCall } from '../../src/http/surfaces/session-surface.ts';
import type { SurfaceCommand } from '../../src/surfaces/surface.ts';
import { callsOf } from '../support/client-calls.ts';
import { toolOf } from '../support/definitions.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { say, sessionKit, settle } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';

const PAY = toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', approval: 'always' });
const LOCATE = toolOf({ type: 'client' }, { name: 'locate' });
const action = (id: string, name: string): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name, parameters: {} })}</action>`;

type Run = Extract<SurfaceCommand, { type: 'run' }>;

const RUN: Run = {
  type: 'run',
  answers: [],
  decisions: [],
  message: null,
  since: null,
  follows: null,
  stream: true,
  options: { threadId: 't', runId: 'r', answered: [], hasState: true, knowsCancelled: true, messages: null },
};

/** A session whose run waits for a decision and a client. */
async function waiting(): Promise<SessionKit & { readonly approval: string; readonly callId: string }> {
  const script = [action('p', 'pay') + action('l', 'locate'), '<response final="true">Over.</response>'];
  const kit = await sessionKit({ script, tools: [PAY, LOCATE] });
  kit.sql.onSync = settle;
  await say(kit, 'go');
  const [approval = ''] = kit.session.openApprovalIds;
  const [callId = ''] = callsOf(kit);
  return { ...kit, approval, callId };
}

interface Asked {
  readonly scopes?: string | null;
  readonly surface?: SurfaceCall['surface'];
  readonly repeats?: SurfaceCall['repeats'];
}

async function ask(
  { session }: SessionKit,
  change: Partial<Run>,
  { scopes = null, surface = 'ag-ui', repeats = null }: Asked = {},
): Promise<Response> {
  const app = createSessionApp({
    session,
    clock: new VirtualClock(),
    destroy: async () => undefined,
    log: () => undefined,
  });
  const call: SurfaceCall = { surface, agent: 'assistant', open: null, repeats, command: { ...RUN, ...change } };
  const headers = scopes === null ? {} : { [SCOPES_HEADER]: scopes };
  const body = JSON.stringify(call);
  return await app.fetch(new Request(`http://session${SURFACE_PATH}`, { method: 'POST', headers, body }));
}

const outcomeOf = async (response: Response): Promise<string> => {
  const text = await response.text();
  const { code = '' } = text.startsWith('{') ? (JSON.parse(text) as { code?: string }) : {};
  return [response.status, code].join(' ').trim();
};

describe('[T1] a token', () => {
  test.each([
    ['decides', 'approve'],
    ['answers', 'tools'],
    ['sends a message', 'message'],
  ])('that %s needs the scope "%s"', async (what, scope) => {
    const kit = await waiting();
    const change: Partial<Run> =
      what === 'decides'
        ? { decisions: [{ approvalId: kit.approval, approved: true, note: null }] }
        : what === 'answers'
          ? { answers: [{ callId: kit.callId, output: 'Bern' }] }
          : { message: { content: 'go', tools: [], instructions: null, key: null, metadata: null } };
    const others = ['approve', 'tools', 'message', 'read'].filter((one) => one !== scope).join(' ');
    expect(await outcomeOf(await ask(kit, change, { scopes: others }))).toBe('403 forbidden');
    expect(kit.session.openApprovalIds).toEqual([kit.approval]);
    const allowed = await ask(kit, change, { scopes: scope });
    expect(allowed.status).toBe(200);
    await allowed.body?.cancel();
  });
});

describe('[E3] an answer or a decision that comes too late', () => {
  const late = (kit: Awaited<ReturnType<typeof waiting>>): Partial<Run>[] => [
    { answers: [{ callId: kit.callId, output: 'Rome' }] },
    { decisions: [{ approvalId: kit.approval, approved: true, note: null }] },
  ];

  test('is an error, or has no effect where the protocol would repeat it', async () => {
    const kit = await waiting();
    await kit.session.resolveApproval(kit.approval, false, null);
    await kit.session.settleCall(kit.callId, { output: 'Bern' });
    await kit.session.ended(1);
    const before = kit.session.lastSeq;
    for (const [index, change] of late(kit).entries()) {
      expect(await outcomeOf(await ask(kit, change))).toBe(['409 call_settled', '409 approval_closed'][index]);
      const ignored = await ask(kit, { ...change, ignoresLate: true });
      expect([ignored.status, ignored.headers.get('x-run-id')]).toEqual([200, kit.session.runs(1)[0]?.runId]);
      expect(await ignored.text()).toContain('"outcome":{"type":"success"}');
    }
    expect(kit.session.lastSeq).toBe(before);
  });

  test('is an error where nothing knows it', async () => {
    const kit = await waiting();
    const change = { decisions: [{ approvalId: `apr_${'9'.repeat(32)}`, approved: true, note: null }] };
    expect(await outcomeOf(await ask(kit, { ...change, ignoresLate: true }))).toBe('404 unknown_approval');
  });
});

describe('[E2] the results of all calls in one request', () => {
  test.each(['chat', 'responses'])(
    'are answered with what follows, also if the request is repeated (%s)',
    async (api) => {
      const script = [action('a', 'locate') + action('b', 'locate'), '<response final="true">Both.</response>'];
      const kit = await sessionKit({ script, tools: [LOCATE] });
      kit.sql.onSync = settle;
      await say(kit, 'go');
      const answers = callsOf(kit).map((callId) => ({ callId, output: 'Bern' }));
      expect(answers).toHaveLength(2);
      const change = { answers, stream: false, options: { api } };
      const answer = await (await ask(kit, change, { surface: 'openai' })).text();
      expect(answer).toContain('Both.');
      expect(answer).not.toContain('call_');
      expect(await (await ask(kit, change, { surface: 'openai' })).text()).toBe(answer);
    },
  );
});

/** The name of each protocol, with the options of its requests. */
const STREAMS = [
  ['ai-sdk', 'ai-sdk', {}],
  ['responses', 'openai', { api: 'responses' }],
  ['ag-ui', 'ag-ui', RUN.options],
] as const;

describe('[E1] [E2] [E3] what follows an answer', () => {
  test.each(STREAMS)('%s: one request denies an action and approves another one', async (_name, surface, options) => {
    let count = 0;
    const kit = await sessionKit({
      script: [action('a', 'pay') + action('b', 'pay'), '<response final="true">Both are decided.</response>'],
      tools: [PAY],
      approvalIds: () => `apr_${String((count += 1)).padStart(32, '0')}`,
    });
    kit.sql.onSync = settle;
    await say(kit, 'go');
    const decisions = kit.session.openApprovalIds.map((approvalId, index) => ({
      approvalId,
      approved: index === 1,
      note: null,
    }));
    expect(decisions).toHaveLength(2);
    const answered = async (): Promise<string> => await (await ask(kit, { decisions, options }, { surface })).text();
    const first = await answered();
    for (const part of [/was denied|tool-output-denied/, /"output"|TOOL_CALL_RESULT/, /decided\./]) {
      expect(first).toMatch(part);
    }
    expect(await answered()).toBe(first);
  });

  test.each(STREAMS)(
    '%s: begins where the run waited for it, although others have answered, and it waited again',
    async (_name, surface, options) => {
      const script = [action('p', 'pay') + action('l', 'locate'), '<response final="true">Over.</response>'];
      const kit = await sessionKit({ script, tools: [PAY, LOCATE] });
      kit.sql.onSync = settle;
      await say(kit, 'go');
      const [approvalId = ''] = kit.session.openApprovalIds;
      const [callId = ''] = callsOf(kit);
      // It is approved elsewhere: the action is done, and the run waits for the call.
      await kit.session.resolveApproval(approvalId, true, null);
      await settle();
      const answers = [{ callId, output: 'Bern' }];
      const decisions = [{ approvalId, approved: true, note: null }];
      const frames = await (await ask(kit, { answers, decisions, options }, { surface })).text();
      expect(frames).toMatch(/tool-output-available|mcp_call\.completed|TOOL_CALL_RESULT/);
      // A response ends where the run waited next.
      expect(frames).toContain(surface === 'openai' ? '"type":"function_call"' : 'Over.');
    },
  );

  test.each([...STREAMS, ['chat', 'openai', { api: 'chat' }] as const])(
    '%s: is nothing if the run has ended and a background action has asked',
    async (_name, surface, options) => {
      const background = action('p', 'pay').replace('async', 'fire_and_forget');
      const kit = await sessionKit({ script: [`${background}<response final="true">Over.</response>`], tools: [PAY] });
      kit.sql.onSync = settle;
      await say(kit, 'go');
      const [approvalId = ''] = kit.session.openApprovalIds;
      const decisions = [{ approvalId, approved: true, note: null }];
      const frames = await (await ask(kit, { decisions, options }, { surface })).text();
      expect(frames).not.toContain('Over.","');
      expect(frames).not.toMatch(/delta":"Over/);
      expect(frames).toMatch(
        /"finishReason":"stop"|"type":"response.completed"|"finish_reason":"stop"|"outcome":{"type":"success"/,
      );
    },
  );
});

describe('[T1] instructions with a message', () => {
  const message = { content: 'go', tools: [], instructions: 'Be brief.', key: null, metadata: null };

  test.each([
    ['an API key', null, '200'],
    ['a token', 'message', '403 forbidden'],
  ])('of %s', async (_, scopes, outcome) => {
    const kit = await sessionKit({ script: ['<response final="true">Over.</response>'] });
    kit.sql.onSync = settle;
    expect(await outcomeOf(await ask(kit, { message }, { scopes }))).toBe(outcome);
  });
});

test('[E2] one run is cancelled, and not what waits behind it', async () => {
  const kit = await waiting();
  const [{ runId } = { runId: '' }] = kit.session.runs(1);
  kit.session.message({ content: 'next', tokens: false, ifBusy: 'queue', idempotencyKey: null }).catch(() => undefined);
  await settle();
  const [, { runId: next } = { runId: '' }] = kit.session.runs(2);
  await kit.session.cancel('by a test', runId);
  await kit.session.ended(2);
  expect(kit.session.run(runId).status).toBe('cancelled');
  expect(kit.session.run(next).status).toBe('completed');
});

test('[E1] a run that has just ended is streamed again; later, there is nothing to follow', async () => {
  const clock = new VirtualClock();
  const kit = await sessionKit({ script: ['<response final="true">Over.</response>'], clock });
  kit.sql.onSync = settle;
  await say(kit, 'go');
  const app = createSessionApp({
    session: kit.session,
    clock,
    destroy: async () => undefined,
    log: () => undefined,
  });
  const follow = async (): Promise<Response> =>
    await app.fetch(
      new Request(`http://session${SURFACE_PATH}`, {
        method: 'POST',
        body: JSON.stringify({
          surface: 'ai-sdk',
          agent: 'assistant',
          open: null,
          repeats: null,
          command: { type: 'follow', runId: null, after: 0, stream: true, options: {} },
        } satisfies SurfaceCall),
      }),
    );
  expect(await (await follow()).text()).toContain('Over.');
  clock.advance(limits.repeatedAnswerMs);
  expect((await follow()).status).toBe(204);
});

describe('[E2] a request that may be another client’s equal one', () => {
  const message = { content: 'go', tools: [], instructions: null, key: 'only', metadata: null };
  const join = async (kit: SessionKit, more: object = {}): Promise<string> =>
    await outcomeOf(await ask(kit, { message: { ...message, ...more } }, { repeats: 'session' }));

  test('joins a run that has just ended, and asked for nothing', async () => {
    const kit = await sessionKit({ script: ['<response final="true">Over.</response>'] });
    kit.sql.onSync = settle;
    await kit.session.message({ content: 'go', tokens: false, ifBusy: 'queue', idempotencyKey: 'only' });
    await kit.session.ended(1);
    expect(await join(kit)).toBe('200');
    expect(kit.session.runs(2)).toHaveLength(1);
    // The results of its tools would reach the other client's run.
    expect(await join(kit, { tools: [{ name: 'x', description: '', parameters: {} }] })).toBe('404 unknown_session');
  });

  test('joins no run that waits for its client', async () => {
    expect(await join(await waiting())).toBe('404 unknown_session');
  });
});

test('[E2] a result that the run does not know changes nothing about the message after it', async () => {
  const kit = await sessionKit({ script: ['<response final="true">Over.</response>'] });
  kit.sql.onSync = settle;
  const message = { content: 'go', tools: [], instructions: null, key: null, metadata: null };
  const change = { message, answers: [{ callId: 'call_of_another_session', output: 1 }], ignoresLate: true };
  expect(await outcomeOf(await ask(kit, change))).toBe('200');
  expect(await outcomeOf(await ask(kit, change, { scopes: 'message' }))).toBe('200');
});

test('[E1] a run that has called the client is not streamed again after its end: it would execute the calls again', async () => {
  const kit = await waiting();
  await kit.session.resolveApproval(kit.approval, false, null);
  await kit.session.settleCall(kit.callId, { output: 'Bern' });
  await kit.session.ended(1);
  const follow = { type: 'follow', runId: null, after: 0, stream: true, options: {} } as const;
  expect(await outcomeOf(await ask(kit, follow as never, { surface: 'ai-sdk' }))).toBe('204');
});
