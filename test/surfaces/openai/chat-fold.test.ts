/** Chat completions of a run, as its events are folded (E2). */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { withWholeTexts } from '../../../src/domain/event.ts';
import { openai } from '../../../src/surfaces/openai/index.ts';
import type { FoldedRun, StreamEnd } from '../../../src/surfaces/surface.ts';
import { clientToolRun, journaledOnly, seqOfWait } from '../../support/openai-run.ts';

const RUN: FoldedRun = {
  sessionId: 's',
  runId: 'run_1',
  agent: 'assistant',
  startedAt: 5_000,
  after: 0,
  clientTools: ['pick'],
  options: { api: 'chat' },
};

function framesOf(
  events: readonly SessionEvent[],
  change: Partial<FoldedRun> = {},
  how: StreamEnd = 'stopped',
): string {
  const fold = openai.fold({ ...RUN, ...change });
  return events.map((event) => fold.add(event)).join('') + fold.end(how);
}

interface Completion {
  readonly finish: string;
  readonly content: string | null;
  readonly reasoning: string;
  readonly calls: readonly string[];
}

/** What the client makes of the frames. */
async function read(frames: string): Promise<Completion> {
  const client = new OpenAI({
    apiKey: 'none',
    maxRetries: 0,
    fetch: async () => new Response(frames, { headers: { 'content-type': 'text/event-stream' } }),
  });
  let reasoning = '';
  const stream = client.chat.completions.stream({ model: 'assistant', messages: [] });
  stream.on('chunk', ({ choices: [choice] }) => {
    reasoning += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? '';
  });
  const [choice] = (await stream.finalChatCompletion()).choices;
  if (choice === undefined) throw new Error('expected a choice');
  const calls = (choice.message.tool_calls ?? []).map((one) => JSON.stringify('function' in one ? one.function : {}));
  return { finish: choice.finish_reason, content: choice.message.content, reasoning, calls };
}

function documentOf(events: readonly SessionEvent[], change: Partial<FoldedRun> = {}): unknown {
  const { document } = openai;
  if (document === undefined) throw new Error('expected documents');
  const fold = document.of({ ...RUN, ...change });
  for (const event of events.filter(({ type }) => document.events.includes(type))) fold.add(event);
  return fold.end('completed').body;
}

describe('[E2] a run that calls a tool of the client', async () => {
  const events = await clientToolRun();
  const wait = seqOfWait(events);
  const first: Completion = {
    finish: 'tool_calls',
    content: 'One moment.',
    reasoning: 'I ask.',
    calls: [expect.stringContaining('"name":"pick"') as unknown as string],
  };
  const second: Completion = { finish: 'stop', content: 'It is teal.', reasoning: '', calls: [] };

  test('ends with the call, and the next request has the rest', async () => {
    expect(await read(framesOf(events.slice(0, events.findIndex(({ seq }) => seq === wait) + 1)))).toEqual(first);
    expect(await read(framesOf(events, { after: wait }))).toEqual(second);
  });

  test('a later replay gives the same two messages, also as documents', async () => {
    for (const replay of [events, journaledOnly(events), withWholeTexts(journaledOnly(events))]) {
      expect(await read(framesOf(replay))).toEqual(first);
      expect(await read(framesOf(replay, { after: wait }))).toEqual(second);
    }
    const choices = (document: unknown) =>
      (document as { choices: { message: object; finish_reason: string }[] }).choices;
    expect(choices(documentOf(journaledOnly(events)))[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: 'One moment.',
        reasoning_content: 'I ask.',
        tool_calls: [{ type: 'function', function: { name: 'pick' } }],
      },
    });
    expect(choices(documentOf(journaledOnly(events), { after: wait }))[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: 'It is teal.' },
    });
  });

  test('every cut is an error for the client, and never an answer', async () => {
    const until = events.findIndex(({ seq }) => seq === wait);
    for (let count = 0; count < until; count += 1) {
      for (const how of ['stopped', 'connection_lost', 'token_expired', 'session_deleted'] as const) {
        await expect(read(framesOf(events.slice(0, count), {}, how))).rejects.toThrow(/lost|expired|deleted/);
      }
    }
    await expect(read(openai.lost)).rejects.toThrow(/lost/);
  });
});

const HEAD = { session_id: 's', run_id: 'run_1', iteration: 1, timestamp: 0 };
const event = (seq: number | null, type: string, data: object): SessionEvent =>
  ({ seq, type, ...HEAD, data }) as unknown as SessionEvent;
const COMPLETED = event(9, 'agent_completed', { response: 'Whole.', iterations: 1, usage: {} });
const CUT = event(2, 'text_completed', { segment: 1, content: 'Ha', cut: true });
const AGAIN = [
  event(3, 'response_started', { final: true }),
  event(5, 'response_completed', { segment: 3, content: 'Whole.', final: true }),
  COMPLETED,
];

describe('[E2] how a message ends', () => {
  test('a block that a crash cut off is an error if a part of it was sent, and is left out if not', async () => {
    const started = event(1, 'text_started', {});
    const sent = [started, event(null, 'text', { segment: 1, offset: 0, delta: 'Ha' }), CUT, ...AGAIN];
    await expect(read(framesOf(sent))).rejects.toMatchObject({ code: 'interrupted' });
    expect((await read(framesOf([started, CUT, ...AGAIN]))).content).toBe('Whole.');
  });

  const patch = (segment: number, offset: number, delta: string): SessionEvent =>
    event(null, 'response', { segment, offset, delta });
  const ended = (seq: number, segment: number, content: string): SessionEvent =>
    event(seq, 'response_completed', { segment, content, final: null });

  test('a response that waits for a value holds back what follows it, live and replayed', async () => {
    const live = [
      event(1, 'response_started', {}),
      patch(1, 0, 'The sum is '),
      event(2, 'response_started', {}),
      patch(2, 0, 'Over.'),
      ended(3, 2, 'Over.'),
      patch(1, 11, '5.'),
      ended(4, 1, 'The sum is 5.'),
      COMPLETED,
    ];
    for (const events of [live, live.filter(({ seq }) => seq !== null)]) {
      expect((await read(framesOf(events))).content).toBe('The sum is 5.\n\nOver.');
    }
  });

  test('a response that was open while the client had to act is whole in the next message', async () => {
    const before = [
      event(1, 'response_started', {}),
      patch(1, 0, 'The color is '),
      event(2, 'agent_waiting', { reason: 'client_tools', iterations: 1 }),
    ];
    const after = [patch(1, 0, 'The color is '), patch(1, 13, 'teal.'), ended(4, 1, 'The color is teal.'), COMPLETED];
    const live = [...before, ...after];
    for (const events of [live, live.filter(({ seq }) => seq !== null)]) {
      expect((await read(framesOf(events, { after: 2 }))).content).toBe('The color is teal.');
    }
  });

  test('an approval is an error that names it; the answer after it is one', async () => {
    const asked = [
      {
        ...event(1, 'approval_requested', { approval_id: 'apr_1' }),
        action_id: 'a',
        action_name: 'pay',
      } as SessionEvent,
      event(2, 'agent_waiting', { reason: 'approvals', iterations: 1 }),
    ];
    await expect(read(framesOf(asked))).rejects.toMatchObject({
      code: 'approval_required',
      message: expect.stringMatching(/"pay".*POST \/agent\/session\/s\/approvals\/apr_1 /),
    });
    const resolved = event(3, 'approval_resolved', { approval_id: 'apr_1', approved: true });
    const rest = [
      event(4, 'text_started', {}),
      event(5, 'text_completed', { segment: 4, content: 'Paid.' }),
      COMPLETED,
    ];
    expect((await read(framesOf([...asked, resolved, ...rest]))).content).toBe('Paid.');
  });

  test.each([
    ['agent_failed', { error: { code: 'model_timeout', message: 'The model was silent' } }, 'model_timeout'],
    ['agent_cancelled', { reason: 'no' }, 'cancelled'],
  ])('%s is an error, whose status no client repeats', async (type, data, code) => {
    const events = [event(1, type, data)];
    await expect(read(framesOf(events))).rejects.toMatchObject({ code });
    expect(openai.document?.of(RUN).end('failed').status).toBe(422);
    expect(documentOf(events)).toMatchObject({ error: { code } });
  });

  test('an answer that was cut off before the wait ends with length after it', async () => {
    const cut = event(1, 'warning', { code: 'generation_cut', message: 'The generation ended early (length)' });
    const wait = event(2, 'agent_waiting', { reason: 'client_tools', iterations: 1 });
    const done = event(3, 'agent_completed', { response: '', iterations: 1, usage: {} });
    expect((await read(framesOf([cut, wait, done], { after: 2 }))).finish).toBe('length');
  });

  test('an empty answer is an answer', async () => {
    expect(await read(framesOf([COMPLETED]))).toEqual({ finish: 'stop', content: null, reasoning: '', calls: [] });
  });
});
