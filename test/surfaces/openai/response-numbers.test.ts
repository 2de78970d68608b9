/** Frames of a response and their numbers: the same live and replayed (E2). */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { withWholeTexts } from '../../../src/domain/event.ts';
import { openai } from '../../../src/surfaces/openai/index.ts';
import { endOfPiece } from '../../../src/surfaces/openai/responses/numbering.ts';
import type { FoldedRun } from '../../../src/surfaces/surface.ts';

const RUN: FoldedRun = {
  sessionId: 's',
  runId: 'run_1',
  agent: 'assistant',
  startedAt: 0,
  after: 0,
  clientTools: ['pick'],
  options: { api: 'responses' },
};
const HEAD = { session_id: 's', run_id: 'run_1', iteration: 1, timestamp: 1_000 };
const event = (seq: number | null, type: string, data: object, head: object = {}): SessionEvent =>
  ({ seq, type, ...HEAD, ...head, data }) as unknown as SessionEvent;

const KINDS = ['thought', 'text', 'response'] as const;
type Kind = (typeof KINDS)[number];

interface Open {
  readonly kind: Kind;
  readonly segment: number;
  readonly text: string;
}

/** What may happen in a run, in any order. Numbers choose among what is possible. */
type Step =
  | { readonly type: 'open'; readonly kind: Kind; readonly text: string }
  | { readonly type: 'close'; readonly which: number; readonly cut: boolean }
  | { readonly type: 'action'; readonly id: string; readonly name: string; readonly does: string };

const words = fc.array(
  fc.oneof(
    fc.constantFrom(' ', '\n', '\n\n', '  ', 'a', 'word', 'punctuation, too.', '😀', '😀😀', 'x'.repeat(40), '漢字'),
    fc.string({ maxLength: 8, unit: 'grapheme' }),
    fc.string({ maxLength: 40, unit: 'binary' }),
  ),
  { maxLength: 12 },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    type: fc.constant('open' as const),
    kind: fc.constantFrom(...KINDS),
    text: words.map((all) => all.join('')),
  }),
  fc.record({ type: fc.constant('close' as const), which: fc.nat(5), cut: fc.constant(false) }),
  fc.record({
    type: fc.constant('action' as const),
    id: fc.constantFrom('a', 'b', 'c'),
    name: fc.constantFrom('fetch', 'pick'),
    does: fc.constantFrom(
      'action_queued',
      'action_started',
      'action_completed',
      'action_failed',
      'action_rejected',
      'approval_requested',
      'client_tool_called',
      'usage',
    ),
  }),
);

const DATA: Readonly<Record<string, object>> = {
  action_queued: { parameters: { q: 1 } },
  action_started: { attempt: 1 },
  action_completed: { output: { ok: true } },
  action_failed: { error: { code: 'e', message: 'failed' } },
  action_rejected: { code: 'e', message: 'rejected' },
  approval_requested: { approval_id: 'apr_1', parameters: { q: 2 } },
  client_tool_called: { call_id: 'call_1', name: 'pick', parameters: {} },
  usage: { prompt_tokens: 2, completion_tokens: 1, cached_tokens: 0 },
};

interface Journal {
  readonly events: readonly SessionEvent[];
  /** The blocks, with the positions of their first and last events. */
  readonly blocks: readonly (Open & { readonly from: number; readonly to: number })[];
}

/** @param before the events of the run before these */
function journalOf(steps: readonly Step[], last: string, before: readonly SessionEvent[] = []): Journal {
  const events: SessionEvent[] = before.length > 0 ? [...before] : [event(1, 'agent_started', {})];
  const blocks: (Open & { from: number; to: number })[] = [];
  let open: (Open & { from: number })[] = [];
  const close = (block: Open & { from: number }): void => {
    open = open.filter((other) => other !== block);
    const { segment, kind, text: content } = block;
    events.push(event(events.length + 1, `${kind}_completed`, { segment, content, final: null }));
    blocks.push({ ...block, to: events.length - 1 });
  };
  for (const one of steps) {
    if (one.type === 'open') {
      open.push({ kind: one.kind, text: one.text, segment: events.length + 1, from: events.length });
      events.push(event(events.length + 1, `${one.kind}_started`, {}));
    } else if (one.type === 'close') {
      const block = open[one.which % Math.max(1, open.length)];
      if (block !== undefined) close(block);
    } else {
      const head = { action_id: one.id, action_name: one.name };
      events.push(event(events.length + 1, one.does, DATA[one.does] ?? {}, head));
    }
  }
  for (const block of open) close(block);
  const end = last === 'agent_failed' ? { error: { code: 'e', message: 'failed' } } : { reason: 'client_tools' };
  events.push(event(events.length + 1, last, end));
  return { events, blocks };
}

/** The events as a reader gets them that is connected: pieces of text anywhere between the ends of their blocks. */
function liveOf({ events, blocks }: Journal, next: (most: number) => number): SessionEvent[] {
  const sent = new Map<number, number>();
  return events.flatMap((one, index) => {
    const patches = blocks.flatMap(({ segment, kind, text, from, to }) => {
      if (index < from || index >= to) return [];
      const offset = sent.get(segment) ?? 0;
      // A reader that falls behind gets text again.
      const again = Math.max(0, offset - next(3));
      const until = Math.min(text.length, offset + next(text.length));
      sent.set(segment, until);
      return until === offset ? [] : [event(null, kind, { segment, offset: again, delta: text.slice(again, until) })];
    });
    return [one, ...patches];
  });
}

interface Sent {
  readonly type: string;
  readonly sequence_number: number;
  readonly delta?: string;
  readonly output_index?: number;
  readonly response?: { readonly output: readonly unknown[] };
  readonly item?: unknown;
}

const framesIn = (text: string): Sent[] =>
  text
    .split('\n\n')
    .flatMap((one) => /^data: (\{.*)$/m.exec(one)?.[1] ?? [])
    .map((json) => JSON.parse(json) as Sent);

function textOf(events: readonly SessionEvent[], change: Partial<FoldedRun> = {}): string {
  const fold = openai.fold({ ...RUN, ...change });
  return events.map((one) => fold.add(one)).join('') + fold.end('stopped');
}

const anyJournal = fc
  .tuple(
    fc.array(step, { maxLength: 30 }),
    fc.constantFrom('agent_completed', 'agent_waiting', 'agent_failed', 'agent_cancelled'),
  )
  .map(([steps, last]) => journalOf(steps, last));

describe('[E2] frames of a response', () => {
  test('are the same live and replayed, and their numbers increase', () => {
    fc.assert(
      fc.property(anyJournal, fc.infiniteStream(fc.nat(1_000)), (journal, numbers) => {
        const choose = (most: number): number => (numbers.next().value ?? 0) % (most + 1);
        const replayed = textOf(journal.events);
        expect(textOf(withWholeTexts(journal.events))).toBe(replayed);
        expect(textOf(liveOf(journal, choose))).toBe(replayed);
        const sent = framesIn(replayed).map((frame) => frame.sequence_number);
        expect(sent.every((number, index) => index === 0 || number > (sent[index - 1] ?? 0))).toBe(true);
        expect(sent.every(Number.isSafeInteger)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('that follow a number are the rest of the whole, for every number', () => {
    fc.assert(
      fc.property(anyJournal, (journal) => {
        const whole = framesIn(textOf(journal.events));
        for (const [index, { sequence_number: number }] of whole.entries()) {
          const rest = textOf(journal.events, { options: { api: 'responses', startingAfter: number } });
          expect(framesIn(rest)).toEqual(whole.slice(index + 1));
        }
      }),
      { numRuns: 30 },
    );
  });

  test('of a continued run begin where it waited, and those of the first response end there', () => {
    const parts = fc.tuple(anyJournal, fc.array(step, { maxLength: 15 }), fc.infiniteStream(fc.nat(1_000)));
    fc.assert(
      fc.property(parts, ([{ events }, steps, numbers]) => {
        const choose = (most: number): number => (numbers.next().value ?? 0) % (most + 1);
        const wait = event(events.length, 'agent_waiting', { reason: 'client_tools' });
        const first = [...events.slice(0, -1), wait];
        const whole = journalOf(steps, 'agent_completed', first);
        expect(textOf(whole.events)).toBe(textOf(first));
        const after = first.length;
        const replayed = textOf(whole.events, { after });
        expect(textOf(liveOf(whole, choose), { after })).toBe(replayed);
        expect(framesIn(replayed).at(-1)?.response).toMatchObject({ id: `resp_1_c${after}`, status: 'completed' });
      }),
      { numRuns: 100 },
    );
  });

  test('make the document, and their text is that of the blocks', () => {
    fc.assert(
      fc.property(anyJournal, (journal) => {
        const { document } = openai;
        if (document === undefined) throw new Error('expected documents');
        const frames = framesIn(textOf(journal.events));
        const fold = document.of(RUN);
        for (const one of journal.events.filter(({ type }) => document.events.includes(type))) fold.add(one);
        expect(fold.end('completed').body).toEqual(frames.at(-1)?.response);
        const texts = frames.flatMap(({ type, delta = '' }) => (type === 'response.output_text.delta' ? [delta] : []));
        const blocks = journal.blocks.filter(({ kind, text }) => kind !== 'thought' && /\S/.test(text));
        const inOrder = blocks.toSorted((one, other) => one.segment - other.segment);
        expect(texts.join('')).toBe(inOrder.map(({ text }) => text).join(''));
        // Every item that was added is done, once.
        const done = frames.filter(({ type }) => type === 'response.output_item.done');
        const added = frames.filter(({ type }) => type === 'response.output_item.added');
        expect(added.map((frame) => frame.output_index)).toEqual(added.map((_, index) => index));
        expect(new Set(done.map((frame) => frame.output_index)).size).toBe(done.length);
        expect(done).toHaveLength(added.length);
      }),
      { numRuns: 200 },
    );
  });
});

describe('[E2] a block that a crash has cut off', () => {
  const started = [event(1, 'agent_started', {}), event(2, 'text_started', {})];
  const cutAt = (content: string): SessionEvent[] => [
    event(3, 'text_completed', { segment: 2, content, cut: true }),
    event(4, 'text_started', {}),
    event(5, 'text_completed', { segment: 4, content: 'Hello there.' }),
    event(6, 'agent_completed', { response: 'Hello there.' }),
  ];
  const patch = event(null, 'text', { segment: 2, offset: 0, delta: 'Hello to you' });

  test.each(['', 'Hello', 'Hello to you'])('is an item without content, and what follows is the same (%j)', (known) => {
    // The reader of before the crash has lost its connection, and asks for what follows its last frame.
    const before = framesIn(textOf([...started, patch])).filter(({ type }) => type !== 'error');
    const startingAfter = before.at(-1)?.sequence_number ?? 0;
    const rest = framesIn(textOf([...started, ...cutAt(known)], { options: { api: 'responses', startingAfter } }));
    expect(rest.map(({ type }) => type)).toEqual([
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(rest[0]?.item).toMatchObject({ status: 'incomplete', content: [] });
    expect(rest.at(-1)?.response?.output).toMatchObject([
      { status: 'incomplete', content: [] },
      { status: 'completed', content: [{ text: 'Hello there.' }] },
    ]);
  });

  test('also has an item if its end is lost', () => {
    const lost = [...started, event(3, 'agent_failed', { error: { code: 'host_lost', message: 'The host was lost' } })];
    const frames = framesIn(textOf(lost));
    expect(frames.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'host_lost' }, output: [{ status: 'incomplete' }] },
    });
  });
});

describe('[E2] pieces of text', () => {
  test.each([
    ['one word', 3],
    ['one', null],
    [' one\n', 4],
    ['x'.repeat(31), null],
    ['x'.repeat(32), 32],
    [`${'x'.repeat(31)}😀`, 31],
    [`${'x'.repeat(30)}😀`, 32],
    [' '.repeat(40), 32],
    ['', null],
  ])('%j ends at %j', (text, end) => {
    expect(endOfPiece(text, 0)).toBe(end);
  });
});
