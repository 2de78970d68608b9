/** AG-UI events of a run, read by the protocol's own client, which verifies them (E3). */
import type { Message } from '@ag-ui/core';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { withWholeTexts } from '../../../src/domain/event.ts';
import type { Json } from '../../../src/domain/json.ts';
import { agUi, readRun } from '../../../src/surfaces/ag-ui/index.ts';
import type { StreamEnd, SurfaceRequest } from '../../../src/surfaces/surface.ts';
import { agUiChat, answersTo, shownIn } from '../../support/ag-ui.ts';
import type { AgUiChat } from '../../support/ag-ui.ts';
import { callsOf } from '../../support/client-calls.ts';
import { toolOf } from '../../support/definitions.ts';
import { failedStream, say, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

const PAY = toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', effects: 'idempotent', approval: 'always' });
const LOCATE = toolOf({ type: 'client' }, { name: 'locate' });

const action = (type: string, id: string, body: object, mode = 'async'): string =>
  `<action type="${type}" mode="${mode}" id="${id}">${JSON.stringify(body)}</action>`;

const FIRST = [
  '<thought>I ask first.</thought>',
  'Some bare text.',
  action('internal', 'v', { name: 'set_variable', parameters: { key: 'colour', value: 'red' } }, 'sync'),
  action('tool', 'e', { name: 'echo', parameters: { text: 'one' } }),
  action('tool', 'd', { name: 'echo', parameters: { text: 'after $e.text' } }),
  action('tool', 'p', { name: 'pay', parameters: { to: 'Ann' } }),
  action('tool', 'l', { name: 'locate', parameters: {} }),
  action('tool', 'e', { name: 'echo', parameters: { text: 'the id is used already' } }),
].join('\n');
const SECOND = [
  '<thought>So be it.</thought>',
  action('internal', 'w', { name: 'delete_variable', parameters: { key: 'colour' } }, 'sync'),
  '<response final="true">Over and out.</response>',
].join('\n');

/** A run that waits for a decision and a client, and goes on after both. */
async function asked(approved: boolean): Promise<SessionKit> {
  const kit = await sessionKit({
    script: [FIRST, SECOND],
    tools: [PAY, LOCATE],
    executors: { tool: async ({ action: { name }, parameters }) => ({ ok: true, output: { name, ...parameters } }) },
  });
  kit.sql.onSync = settle;
  await say(kit, 'go');
  const [call = ''] = callsOf(kit);
  const [open = ''] = kit.session.openApprovalIds;
  await Promise.all([
    kit.session.resolveApproval(open, approved, null),
    kit.session.settleCall(call, { output: 'Bern' }),
  ]);
  await kit.session.ended(1);
  await settle();
  return kit;
}

interface Answer {
  readonly events: readonly SessionEvent[];
  readonly how?: StreamEnd;
  readonly after?: number;
}

/** The response to a request of the client. */
function streamOf(input: unknown, { events = [], how = 'stopped', after = 0 }: Partial<Answer>): string {
  const { command } = requestOf(input);
  if (command.type !== 'run') throw new Error('expected a run');
  const { options } = command;
  const run = { sessionId: 's', runId: 'run_a_1', agent: 'assistant', startedAt: 0, after, options };
  const fold = agUi.fold({ ...run, clientTools: ['locate'] });
  return events.map((event) => fold.add(event)).join('') + fold.end(how);
}

const requestOf = (body: unknown): SurfaceRequest =>
  readRun({ body: body as Json, params: { name: 'assistant' }, query: {}, key: null, session: null, isKey: true });

/** A chat whose requests get these answers, in order. */
function chatOf(...answers: Answer[]): AgUiChat & { readonly requests: SurfaceRequest[] } {
  const requests: SurfaceRequest[] = [];
  const chat = agUiChat({ url: 'http://x/agui/assistant', threadId: 't' }, async (input) => {
    requests.push(requestOf(input));
    const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
    return new Response(streamOf(input, answers.shift() ?? {}), { headers });
  });
  return { ...chat, requests };
}

const journaled = ({ events }: SessionKit): SessionEvent[] =>
  withWholeTexts(events.filter(({ seq }) => seq !== null)) as SessionEvent[];

const waitOf = ({ events }: SessionKit): number => events.find(({ type }) => type === 'agent_waiting')?.seq ?? 0;

const untilWait = (kit: SessionKit): SessionEvent[] =>
  kit.events.slice(0, kit.events.findIndex(({ type }) => type === 'agent_waiting') + 1);

/** The client's messages after a whole run in one stream. */
async function whole(events: readonly SessionEvent[]): Promise<{ messages: Message[]; state: unknown }> {
  const { agent, say } = chatOf({ events });
  expect(await say('go', 'r1')).toBe('success');
  return { messages: agent.messages, state: agent.state as unknown };
}

// The client warns about what it repairs or leaves out.
beforeEach(() => {
  vi.spyOn(console, 'warn');
  // The client compares the expiry of interrupts with its own clock; the session has its own too.
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
  expect(vi.mocked(console.warn).mock.calls).toEqual([]);
});

describe.each([
  ['approves', true],
  ['denies', false],
])('[E3] a person %s an action', (_, approved) => {
  test('the messages are the same live and replayed', async () => {
    const kit = await asked(approved);
    const live = await whole(kit.events);
    expect(await whole(journaled(kit))).toEqual(live);
    expect(live.state).toEqual({});
    expect(shownIn(live.messages).join('\n')).toContain(approved ? '"to":"Ann"' : 'approval_denied');
  });

  test('the run finishes with an interrupt and a pending call, and the next one continues it', async () => {
    const kit = await asked(approved);
    const { agent, say, run, requests } = chatOf(
      { events: untilWait(kit) },
      { events: journaled(kit), after: waitOf(kit) },
    );
    expect(await say('go', 'r1')).toBe('interrupt');
    const [interrupt] = agent.pendingInterrupts;
    const calls = agent.messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []));
    expect(calls.find(({ id }) => id === interrupt?.toolCallId)?.function.name).toBe('pay');
    expect(Date.parse(interrupt?.expiresAt ?? '')).toBeGreaterThan(0);
    expect(agent.state).toEqual({ colour: 'red' });
    const [call = ''] = callsOf(kit);
    agent.addMessage({ id: 'mine', role: 'tool', toolCallId: call, content: 'Bern' });
    expect(await run({ resume: answersTo(agent.pendingInterrupts, { approved }) ?? [] })).toBe('success');
    expect(requests[1]?.command).toMatchObject({
      answers: [{ callId: call, output: 'Bern' }],
      decisions: [{ approvalId: interrupt?.id, approved }],
      message: null,
    });
    const shown = await whole(journaled(kit));
    expect([...shownIn(agent.messages)].sort()).toEqual([...shownIn(shown.messages)].sort());
    expect([agent.pendingInterrupts, agent.state]).toEqual([[], {}]);
  });
});

describe('[E3] the same request again', () => {
  test('completes the messages of a stream that was cut anywhere, which is an error', async () => {
    const kit = await asked(true);
    const expected = await whole(journaled(kit));
    for (let cut = 0; cut < kit.events.length; cut += 1) {
      const { agent, say, run } = chatOf(
        { events: kit.events.slice(0, cut), how: 'connection_lost' },
        { events: journaled(kit) },
      );
      expect(await say('go', 'r1')).toMatch(/^error connection_lost: /);
      expect(await run({ runId: 'r1' })).toBe('success');
      expect({ messages: agent.messages, state: agent.state as unknown }).toEqual(expected);
    }
  });

  test('completes a continued stream that was cut anywhere', async () => {
    const kit = await asked(true);
    const [call = ''] = callsOf(kit);
    const after = waitOf(kit);
    let expected: Message[] | null = null;
    for (let cut = kit.events.length; cut >= untilWait(kit).length; cut -= 1) {
      const { agent, say, run } = chatOf(
        { events: untilWait(kit) },
        { events: kit.events.slice(0, cut), after, how: cut === kit.events.length ? 'stopped' : 'connection_lost' },
        { events: journaled(kit), after },
      );
      await say('go', 'r1');
      agent.addMessage({ id: 'mine', role: 'tool', toolCallId: call, content: 'Bern' });
      const again = { runId: 'r2', resume: answersTo(agent.pendingInterrupts, { approved: true }) ?? [] };
      expect(await run(again)).toMatch(expected === null ? 'success' : /^error connection_lost: /);
      expected ??= agent.messages;
      expect(await run(again)).toBe('success');
      expect(agent.messages).toEqual(expected);
    }
  });
});

test('[E3] every cut of the events ends with an error, unless the run has ended or waits', async () => {
  const { events } = await asked(true);
  for (let cut = 0; cut <= events.length; cut += 1) {
    const type = events[cut - 1]?.type;
    const { say } = chatOf({ events: events.slice(0, cut) });
    const end = type === 'agent_completed' ? 'success' : type === 'agent_waiting' ? 'interrupt' : 'error';
    expect((await say('go')).split(' ')[0]).toBe(end);
  }
  for (const how of ['token_expired', 'session_deleted', 'connection_lost'] as const) {
    const { say } = chatOf({ events, how });
    expect(await say('go')).toContain(`error ${how}: `);
  }
});

test('[E3] text that a crash has taken away is gone from the client too', async () => {
  const kit = await asked(true);
  const replayed = withWholeTexts(
    kit.events
      .filter(({ seq }) => seq !== null)
      .map((event) =>
        event.type === 'text_completed' ? { ...event, data: { ...event.data, content: 'Some b', cut: true } } : event,
      ),
  );
  const cut = kit.events.findIndex(({ type }) => type === 'text_completed');
  const chat = chatOf({ events: kit.events.slice(0, cut), how: 'connection_lost' }, { events: replayed });
  await chat.say('go', 'r1');
  expect(shownIn(chat.agent.messages)).toContain('assistant Some bare text.');
  expect(await chat.run({ runId: 'r1' })).toBe('success');
  expect(chat.agent.messages).toEqual((await whole(replayed)).messages);
  expect(shownIn(chat.agent.messages)).toContain('assistant Some b');
});

test('[E3] what the client shows of a run', async () => {
  const { agent, say } = chatOf({ events: journaled(await asked(true)) });
  await say('go', 'r1');
  expect(shownIn(agent.messages)).toMatchInlineSnapshot(`
    [
      "user go",
      "reasoning I ask first.",
      "assistant Some bare text.",
      "call set_variable {"key":"colour","value":"red"}",
      "tool {"key":"colour","value":"red"}",
      "call e {}",
      "tool Error: Action "e", line 8: The id "e" is already used in this generation; choose another (duplicate_id)",
      "activity {"total":5,"waves":[["v"],["e","p","l"],["d"]],"edges":[{"from":"e","to":"d"}]}",
      "call pay {"to":"Ann"}",
      "tool {"name":"pay","to":"Ann"}",
      "call echo {"text":"one"}",
      "tool {"name":"echo","text":"one"}",
      "call echo {"text":"after one"}",
      "tool {"name":"echo","text":"after one"}",
      "call locate {}",
      "tool Bern",
      "reasoning So be it.",
      "call delete_variable {"key":"colour"}",
      "tool {"key":"colour","deleted":true}",
      "assistant Over and out.",
      "activity {"total":1,"waves":[["w"]],"edges":[]}",
    ]
  `);
});

/** A run with a sub-agent, and an action that continues after its end. */
async function delegated(agent: ActionOutcome, more: Partial<KitOptions> = {}): Promise<SessionKit> {
  const first = [
    action('agent', 'r', { name: 'researcher', parameters: { message: 'look' } }),
    action('tool', 's', { name: 'slow', parameters: {} }, 'fire_and_forget'),
  ];
  const slow = Promise.withResolvers<ActionOutcome>();
  const kit = await sessionKit({
    from: 'research_orchestrator',
    script: [first.join('\n'), '<response final="true">Found.</response>'],
    tools: [toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'slow' })],
    executors: {
      agent: async (_call, { progress }) => {
        progress({ text: 'I look.' });
        return agent;
      },
      tool: async () => await slow.promise,
    },
    ...more,
  });
  kit.sql.onSync = settle;
  await say(kit, 'go');
  const ended = [...kit.events];
  slow.resolve({ ok: true, output: 'late' });
  await settle();
  return { ...kit, events: ended };
}

test('[E3] a sub-agent is an invocation of its own, and what continues after the run has the result "started"', async () => {
  const kit = await delegated({ ok: true, output: 'It is here.' });
  const { agent, seen, say } = chatOf({ events: kit.events });
  expect(await say('go')).toBe('success');
  expect(shownIn(agent.messages)).toEqual([
    'user go',
    'call researcher {"message":"look"}',
    'tool It is here.',
    'call slow {}',
    'tool started',
    expect.stringMatching(/^activity /),
    'assistant Found.',
  ]);
  const subagents = seen.filter(({ type }) => type.startsWith('SUBAGENT') || type === 'CUSTOM');
  const [{ subagentRunId } = {}] = subagents as { subagentRunId?: string }[];
  expect(subagents).toMatchObject([
    { type: 'SUBAGENT_STARTED', name: 'researcher', parentToolCallId: subagentRunId },
    { type: 'CUSTOM', name: 'progress', value: { text: 'I look.' }, subagentRunId },
    { type: 'SUBAGENT_FINISHED', subagentRunId },
  ]);
  const cut = kit.events.findIndex(({ type, action_id: id }) => type === 'action_started' && id === 'r') + 1;
  const broken = chatOf({ events: kit.events.slice(0, cut) });
  expect(await broken.say('go')).toMatch(/^error connection_lost/);
  expect(broken.seen.map(({ type }) => type).slice(-3)).toEqual(['SUBAGENT_FINISHED', 'STEP_FINISHED', 'RUN_ERROR']);
});

test('[E3] a sub-agent that fails is an error of its own', async () => {
  const kit = await delegated({ ok: false, error: { code: 'child_failed', message: 'It was dark', retryable: false } });
  const chat = chatOf({ events: kit.events });
  expect(await chat.say('go')).toBe('success');
  const message = 'Error: It was dark (child_failed)';
  expect(shownIn(chat.agent.messages)).toContain(`tool ${message}`);
  expect(chat.seen.find(({ type }) => type === 'SUBAGENT_ERROR')).toMatchObject({ message });
});

test('[E3] a run that fails is an error with its code', async () => {
  const kit = await sessionKit({ stream: () => failedStream(new Error('no model')) });
  await say(kit, 'go');
  const { code } = kit.events.flatMap((event) => (event.type === 'agent_failed' ? [event.data.error] : []))[0] ?? {};
  expect(await chatOf({ events: kit.events }).say('go')).toMatch(new RegExp(`^error ${code}: .`));
});

test('[E3] a cancelled run is an error for a client that does not know the outcome', async () => {
  const kit = await asked(true);
  const events = [...untilWait(kit), { ...kit.events.at(-1), type: 'agent_cancelled', data: {} } as SessionEvent];
  for (const [version, last] of [
    ['1.0', { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }],
    [undefined, { type: 'RUN_ERROR', code: 'cancelled' }],
  ] as const) {
    const input = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'go' }] };
    const asks = version === undefined ? input : { ...input, protocolVersion: version };
    const [frame = ''] = streamOf(asks, { events }).trim().split('\n\n').slice(-1);
    expect(JSON.parse(frame.replace(/^data: /, ''))).toMatchObject(last);
  }
});

test('[E3] a client whose state is not an object gets one before its first member', async () => {
  const kit = await asked(true);
  const { agent, seen, say } = chatOf({ events: kit.events });
  agent.setState(['mine']);
  await say('go');
  expect(agent.state).toEqual({});
  expect(seen.filter(({ type }) => type.startsWith('STATE')).map(({ type }) => type)).toEqual([
    'STATE_SNAPSHOT',
    'STATE_DELTA',
    'STATE_DELTA',
  ]);
});

test('[E3] a client tool that a person must approve is called after the approval', async () => {
  const ask = toolOf({ type: 'client' }, { name: 'locate', approval: 'always' });
  const kit = await sessionKit({
    script: [action('tool', 'l', { name: 'locate', parameters: {} }), '<response final="true">Done.</response>'],
    tools: [ask],
  });
  kit.sql.onSync = settle;
  await say(kit, 'go');
  const first = chatOf({ events: [...kit.events] });
  expect(await first.say('go')).toBe('interrupt');
  expect(first.agent.pendingInterrupts).toMatchObject([{ metadata: { name: 'locate' } }]);
  expect(shownIn(first.agent.messages)).toEqual(['user go', expect.stringMatching(/^activity /)]);
  const [open = ''] = kit.session.openApprovalIds;
  await kit.session.resolveApproval(open, true, null);
  await kit.session.ended(1);
  const next = chatOf({ events: kit.events });
  expect(await next.say('go')).toBe('success pending');
  expect(shownIn(next.agent.messages)).toContain('call locate {}');
});
