/** The AI SDK's frames of a run, read by its own parser (E1). */
import { readUIMessageStream } from 'ai';
import type { UIMessage, UIMessageChunk } from 'ai';
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { withWholeTexts } from '../../../src/domain/event.ts';
import { aiSdk } from '../../../src/surfaces/ai-sdk/index.ts';
import type { Fold, StreamEnd } from '../../../src/surfaces/surface.ts';
import { toolOf } from '../../support/definitions.ts';
import { sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';

const PAY = toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', effects: 'idempotent', approval: 'always' });
const ASK =
  '<thought>I ask first.</thought><action type="tool" mode="async" id="a">{"name": "pay", "parameters": {"to": "Ann"}}</action>';

/** A run that waits for a decision, and goes on after it. */
async function asked(decision: boolean): Promise<SessionKit> {
  const kit = await sessionKit({
    script: [ASK, '<response final="true">Over.</response>'],
    tools: [PAY],
    approvalIds: () => `apr_${'1'.padStart(32, '0')}`,
    executors: { tool: async () => ({ ok: true, output: 'paid' }) },
  });
  kit.sql.onSync = settle;
  await kit.session.message({ content: 'go', tokens: false, ifBusy: 'queue', idempotencyKey: null });
  // It waits.
  await kit.session.ended(1);
  await settle();
  const [open = ''] = kit.session.openApprovalIds;
  await kit.session.resolveApproval(open, decision, null);
  await kit.session.ended(1);
  await settle();
  return kit;
}

function foldOf(after = 0): Fold {
  const run = { sessionId: 's', runId: 'run_1', agent: 'assistant', startedAt: 0, after, clientTools: [], options: {} };
  return aiSdk.fold(run);
}

const framesOf = (events: readonly SessionEvent[], how: StreamEnd = 'stopped', after = 0): string => {
  const fold = foldOf(after);
  return events.map((event) => fold.add(event)).join('') + fold.end(how);
};

const chunksOf = (frames: string): UIMessageChunk[] =>
  frames
    .split('\n\n')
    .filter((frame) => frame !== '' && frame !== 'data: [DONE]')
    .map((frame) => JSON.parse(frame.replace(/^data: /, '')) as UIMessageChunk);

/** The message that the client makes of them. */
async function messageOf(frames: string, message?: UIMessage): Promise<UIMessage | undefined> {
  const stream = new ReadableStream<UIMessageChunk>({
    start: (controller) => {
      for (const chunk of chunksOf(frames)) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last = message;
  for await (const next of readUIMessageStream({ stream, ...(message === undefined ? {} : { message }) })) last = next;
  return last;
}

const journaled = ({ events }: SessionKit): SessionEvent[] =>
  withWholeTexts(events.filter(({ seq }) => seq !== null)) as SessionEvent[];

describe.each([
  ['approves', true],
  ['denies', false],
])('[E1] a person %s an action', (_, decision) => {
  test('the message is the same live and replayed', async () => {
    const kit = await asked(decision);
    const live = await messageOf(framesOf(kit.events));
    expect(live?.parts).toEqual((await messageOf(framesOf(journaled(kit))))?.parts);
    const tool = live?.parts.find((part) => part.type === 'dynamic-tool');
    expect(tool?.state).toBe(decision ? 'output-available' : 'output-denied');
  });

  test('the continued stream completes the message that waited', async () => {
    const kit = await asked(decision);
    const wait = kit.events.find(({ type }) => type === 'agent_waiting')?.seq ?? 0;
    const until = kit.events.findIndex(({ type }) => type === 'agent_waiting') + 1;
    const waiting = await messageOf(framesOf(kit.events.slice(0, until)));
    expect(waiting?.parts.find((part) => part.type === 'dynamic-tool')?.state).toBe('approval-requested');
    const continued = await messageOf(framesOf(journaled(kit), 'stopped', wait), waiting);
    expect(continued?.parts).toEqual((await messageOf(framesOf(journaled(kit))))?.parts);
  });
});

test('[E1] every cut of the events ends with an error, unless the run has ended or waits', async () => {
  const { events } = await asked(true);
  for (let cut = 0; cut <= events.length; cut += 1) {
    const type = events[cut - 1]?.type;
    const last = chunksOf(framesOf(events.slice(0, cut))).at(-1)?.type;
    expect(last).toBe(type === 'agent_completed' || type === 'agent_waiting' ? 'finish' : 'error');
  }
  for (const how of ['token_expired', 'session_deleted', 'connection_lost'] as const) {
    expect(chunksOf(framesOf(events, how)).at(-1)?.type).toBe('error');
  }
});

const HEAD = { session_id: 's', run_id: 'run_1', iteration: 1, timestamp: 0 };
const event = (seq: number | null, type: string, data: object): SessionEvent =>
  ({ seq, type, ...HEAD, data }) as unknown as SessionEvent;
/** A response that goes on after a wait, as it arrives. */
const WAITED = [
  event(1, 'iteration_started', { iteration: 1 }),
  event(2, 'agent_waiting', { reason: 'client_tools', iterations: 1 }),
  event(3, 'response_started', { final: true, completes: 1 }),
];
const PATCHES = ['It ', 'is ', 'teal.'].map((delta, n) =>
  event(null, 'response', { segment: 3, offset: n * 3, delta }),
);

test('[E1] text that follows a wait in the same generation is whole, however it is cut', async () => {
  const ended = [
    event(4, 'response_completed', { segment: 3, content: 'It is teal.', final: true }),
    event(5, 'agent_completed', { response: 'It is teal.', iterations: 1, usage: {} }),
  ];
  const live = await messageOf(framesOf([...WAITED, ...PATCHES, ...ended]));
  expect(live?.parts.filter(({ type }) => type === 'text')).toEqual([
    { type: 'text', text: 'It is teal.', state: 'done' },
  ]);
  expect(live).toEqual(await messageOf(framesOf([...WAITED, ...ended])));
});

test('[E1] text that is still being written is ended before the error of a lost connection', async () => {
  const frames = framesOf([...WAITED, ...PATCHES.slice(0, 2)], 'connection_lost');
  expect(
    chunksOf(frames)
      .slice(-3)
      .map(({ type }) => type),
  ).toEqual(['text-end', 'finish-step', 'error']);
});

test('[E1] a cancelled run ends with abort: the client keeps what it has, without an error', async () => {
  const frames = framesOf([
    event(1, 'iteration_started', { iteration: 1 }),
    event(2, 'text_started', {}),
    event(3, 'text_completed', { segment: 2, content: 'So far', cut: true }),
    event(4, 'agent_cancelled', { reason: 'by a person' }),
  ]);
  expect(
    chunksOf(frames)
      .slice(-2)
      .map(({ type }) => type),
  ).toEqual(['finish-step', 'abort']);
  expect((await messageOf(frames))?.parts).toContainEqual({ type: 'text', text: 'So far', state: 'done' });
});
