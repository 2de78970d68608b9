/** The compact form of a stream decodes to the events of the full form, wherever a reader begins (Z4). */
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import { frameDecoder } from '../../src/client/frame-decoder.ts';
import type { FrameDecoder } from '../../src/client/frame-decoder.ts';
import { sseReader } from '../../src/client/sse-reader.ts';
import type { SessionEvent, TextPatch } from '../../src/domain/event.ts';
import { wholePatch } from '../../src/domain/event.ts';
import { limits } from '../../src/domain/limits.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import { Broadcaster } from '../../src/engine/session/broadcaster.ts';
import type { EventBatch } from '../../src/engine/session/broadcaster.ts';
import { CompactEncoder } from '../../src/http/compact-frames.ts';
import { Heartbeat } from '../../src/http/heartbeat.ts';
import { eventSource } from '../../src/http/session-app.ts';
import { batchStream, eventStream, sseFrame } from '../../src/http/sse.ts';
import { VIEW } from '../../src/http/view.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { sessionKit } from '../support/session-kit.ts';

const RUN = 'run_0123456789abcdef0123456789abcdef_1';
const base = {
  session_id: 'ses_0123456789abcdef0123456789abcdef',
  run_id: RUN,
  iteration: 1,
  timestamp: 1_790_000_000_000,
};

const opening = (seq: number): SessionEvent => ({ seq, type: 'response_started', ...base, data: { final: true } });
const patch = (segment: number, offset: number, delta: string, ms = 0): TextPatch => ({
  seq: null,
  type: 'response',
  ...base,
  timestamp: base.timestamp + ms,
  data: { segment, offset, delta },
});
const closing = (seq: number, segment: number, content: string) =>
  ({ seq, type: 'response_completed', ...base, data: { segment, content, final: true } }) as const;
const completed = (seq: number, response: string): SessionEvent => {
  const usage = { prompt_tokens: 1, completion_tokens: 1, cached_tokens: 0, model_calls: 1, estimated: false };
  return { seq, type: 'agent_completed', ...base, data: { response, iterations: 1, usage } };
};
const warning = (seq: number, action = ''): SessionEvent => {
  const about = action === '' ? {} : { action_id: action, action_name: 'echo' };
  return { seq, type: 'warning', ...base, ...about, data: { code: 'c', message: '' } };
};

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
/** The data of the full frames of events. */
const fullData = (events: readonly SessionEvent[]): string[] => sseReader()(events.map(sseFrame).join(''));

/** What a reader of compact frames has, as JSON. */
function decoded(decoder: FrameDecoder, bytes: Uint8Array): string[] {
  return sseReader()(text(bytes)).map((data) => JSON.stringify(decoder(data)));
}

/** One reader's stream of batches, encoded and decoded. */
function throughFrames(batches: readonly EventBatch[]): string[] {
  const encoder = new CompactEncoder();
  const decoder = frameDecoder();
  return batches.flatMap((batch) => decoded(decoder, encoder.encode(batch)));
}

test('[Z4] the first frame is complete; then frames have only what is new, and no text comes twice', () => {
  const encoder = new CompactEncoder();
  const batches = [
    [opening(5)],
    [patch(5, 0, 'He', 20)],
    [patch(5, 2, 'llo', 45)],
    [closing(6, 5, 'Hello'), warning(7, 'a')],
    [completed(8, 'Hello')],
  ];
  const { session_id, run_id, timestamp } = base;
  expect(batches.map((batch) => text(encoder.encode(batch))).join('')).toBe(
    [
      `id: 5\ndata: {"seq":5,"type":"response_started","session_id":"${session_id}","run_id":"${run_id}","iteration":1,"timestamp":${timestamp},"data":{"final":true}}`,
      'data: {"type":"response","t":20,"data":{"segment":5,"offset":0,"delta":"He"}}',
      'data: [25,"llo"]',
      'id: 6\ndata: {"seq":6,"type":"response_completed","t":-45,"data":{"segment":5,"content":5,"final":true}}',
      'id: 7\ndata: {"seq":7,"type":"warning","action_id":"a","action_name":"echo","data":{"code":"c","message":""}}',
      'id: 8\ndata: {"seq":8,"type":"agent_completed","data":{"response":5,"iterations":1,"usage":{"prompt_tokens":1,"completion_tokens":1,"cached_tokens":0,"model_calls":1,"estimated":false}}}',
      '',
    ].join('\n\n'),
  );
  expect(throughFrames(batches)).toEqual(fullData(batches.flat()));
});

describe('[Z4] [J4] decoded, a stream has the events of the full form', () => {
  /** A step of a history: what is published, or lost before it is. */
  const step = fc.record({
    kind: fc.constantFrom('open', 'patch', 'patch', 'patch', 'lost', 'whole', 'close', 'other', 'live', 'end', 'batch'),
    text: fc.string({ unit: 'grapheme', maxLength: 4 }),
    ms: fc.constantFrom(0, 0, 1, 40, -5, 0.1),
    block: fc.constantFrom(0, 0, 0, 1),
    run: fc.constantFrom(RUN, RUN, 'run_other_2'),
  });

  test('for histories with lost patches, several blocks and runs, times that go back, and resumed readers', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), fc.nat(60), (steps, from) => {
        const batches: SessionEvent[][] = [[]];
        const blocks: { segment: number; content: string }[] = [];
        let [seq, timestamp, answer] = [0, base.timestamp, ''];
        for (const { kind, text: delta, ms, block: at, run } of steps) {
          timestamp += ms;
          const head = { ...base, run_id: run, timestamp };
          const add = (event: SessionEvent): unknown => batches.at(-1)?.push({ ...event, ...head } as SessionEvent);
          const block = blocks[at % Math.max(1, blocks.length)];
          if (kind === 'batch') batches.push([]);
          else if (kind === 'other') add(warning((seq += 1), delta));
          else if (kind === 'live')
            add({ seq: null, type: 'llm_token', ...head, data: { token: delta } } as SessionEvent);
          else if (kind === 'end') add(completed((seq += 1), answer));
          else if (kind === 'open') {
            add(opening((seq += 1)));
            blocks.push({ segment: seq, content: '' });
          } else if (block !== undefined && kind === 'close') {
            add(closing((seq += 1), block.segment, block.content));
            answer = block.content;
            blocks.splice(blocks.indexOf(block), 1);
          } else if (block !== undefined) {
            const { segment, content } = block;
            block.content += delta;
            if (kind === 'patch') add(patch(segment, content.length, delta));
            if (kind === 'whole') add(patch(segment, 0, block.content));
          }
        }
        const sent = batches.slice(from % batches.length);
        expect(throughFrames(sent)).toEqual(fullData(sent.flat()));
      }),
      { numRuns: 300 },
    );
  });

  const MODEL = `words before <thought>first I <action name="echo" id="a">{"x": "🎈🎈", "delay_ms": 5}</action>think 🎈 twice</thought>
<response final="false">one moment, $a.x it is, and more</response>
<response final="true">The whole answer: $a.x, 🎈 with a tail that is long enough to be cut in many places.</response>`;
  const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  test('of a real session: from every position, over cut connections, for one run, with a view, and with raw tokens', async () => {
    const cut = fc.record({ batches: fc.integer({ min: 1, max: 12 }), pause: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(cut, { maxLength: 8 }),
        fc.integer({ min: 1, max: 40 }),
        fc.constantFrom(null, VIEW),
        fc.boolean(),
        fc.boolean(),
        async (cuts, size, view, ofRun, tokens) => {
          const kit = await sessionKit({
            async *stream(): AsyncGenerator<ModelDelta> {
              for (let at = 0; at < MODEL.length; at += size) {
                yield { type: 'text', text: MODEL.slice(at, at + size) };
                await tick();
                kit.clock.advance(9);
              }
              yield { type: 'finish', reason: 'stop' };
            },
          });
          const run = await kit.session.message({ content: 'go', ifBusy: 'queue', tokens, idempotencyKey: null });
          const source = eventSource(kit.session, kit.clock);
          let after = 0;
          let isOver = false;
          for (const { batches: most, pause } of [...cuts, { batches: Infinity, pause: 0 }]) {
            const options = { after, runId: ofRun ? run.runId : null, view };
            const reader = batchStream(source, options).getReader();
            const batches: EventBatch[] = [];
            while (batches.length < most && !isOver) {
              const { done, value } = await reader.read();
              if (done) break;
              batches.push(value);
              isOver = value.some(({ type }) => type === 'agent_completed');
              for (let turn = 0; turn < pause; turn += 1) await tick();
            }
            await reader.cancel();
            expect(throughFrames(batches)).toEqual(fullData(batches.flat()));
            after = batches.flat().findLast(({ seq }) => seq !== null)?.seq ?? after;
            if (isOver) break;
          }
        },
      ),
      { numRuns: 25 },
    );
  });
});

/** A session with `stored` in its journal. */
function source(stored: SessionEvent[], open: TextPatch[] = []) {
  const broadcaster = new Broadcaster(stored.length, () => []);
  return {
    publish: (batch: EventBatch) => {
      stored.push(...batch.filter(({ seq }) => seq !== null));
      broadcaster.publish(batch);
    },
    events: (after: number) => stored.filter(({ seq }) => (seq ?? 0) > after).slice(0, limits.pageRows),
    openBlocks: () => open,
    listen: (listener: Parameters<Broadcaster['listen']>[0]) => broadcaster.listen(listener),
    hasEnded: () => false,
    isWaiting: () => false,
  };
}

test('[Z4] [J4] a reader that falls back to the journal, and catches up, decodes the same events', async () => {
  const from = source([]);
  const heartbeat = new Heartbeat(new VirtualClock());
  const stream = eventStream(from, heartbeat, { after: 0, runId: null, compact: true }).getReader();
  const turn = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));
  await turn();
  const big = 'x'.repeat(limits.readerQueueBytes);
  const answer = `begin ${big} middle ${big}`;
  // It stops in the middle of a block, and misses patches.
  from.publish([opening(1), patch(1, 0, 'begin ')]);
  from.publish([patch(1, 6, big)]);
  from.publish([patch(1, 6 + big.length, ' middle ')]);
  from.publish([patch(1, 14 + big.length, big)]);
  from.publish([closing(2, 1, answer), warning(3)]);
  const end = [completed(4, answer)];
  const decoder = frameDecoder();
  const got: string[] = [];
  const read = async (last: string): Promise<void> => {
    while (got.at(-1)?.includes(last) !== true) {
      const { value, done } = await stream.read();
      if (done) throw new Error('the stream has ended');
      got.push(...decoded(decoder, value));
    }
  };
  await read('"seq":3');
  await turn();
  from.publish(end);
  await read('"seq":4');
  const whole = wholePatch(closing(2, 1, answer));
  const all = fullData([
    opening(1),
    patch(1, 0, 'begin '),
    patch(1, 6, big),
    whole,
    closing(2, 1, answer),
    warning(3),
    ...end,
  ]);
  expect(got.filter((event) => !all.includes(event))).toEqual([]);
  expect(got.slice(-4)).toEqual(all.slice(-4));
});

test('[Z4] the decoder of docs/journal.md gives the events without the second names of their types', () => {
  const page = readFileSync(new URL('../../docs/journal.md', import.meta.url), 'utf8');
  const code = /```js\n(let last[^]*?)```/.exec(page)?.[1] ?? '';
  const decode = runInNewContext(`${code}; decode`) as (data: string) => unknown;
  const batches = [
    [opening(5), patch(5, 0, 'He', 20), patch(5, 2, 'llo', 45)],
    [closing(6, 5, 'Hello'), warning(7, 'a'), completed(8, 'Hello')],
  ];
  const encoder = new CompactEncoder();
  const frames = batches.flatMap((batch) => sseReader()(text(encoder.encode(batch))));
  expect(frames.map((data) => JSON.stringify(decode(data)))).toEqual(batches.flat().map((one) => JSON.stringify(one)));
  expect(page).toContain(frames[2]);
});

test('[Z4] a text that was not sent without a gap is in the closing event', () => {
  const encoder = new CompactEncoder();
  encoder.encode([opening(1), patch(1, 0, 'ab'), patch(1, 3, 'd')]);
  expect(text(encoder.encode([closing(2, 1, 'abcd')]))).toContain('"content":"abcd"');
  expect(text(encoder.encode([completed(3, 'abcd')]))).toContain('"response":"abcd"');
  // The whole text was sent before the end.
  encoder.encode([opening(4), patch(4, 3, 'd'), patch(4, 0, 'abcd')]);
  expect(text(encoder.encode([closing(5, 4, 'abcd')]))).toContain('"content":4');
});

test('[Z4] [J4] a batch is encoded once for all readers that had the same batch before it', async () => {
  const blocks: TextPatch[] = [];
  const from = source([warning(1), warning(2)], blocks);
  const heartbeat = new Heartbeat(new VirtualClock());
  const open = (after: number) => eventStream(from, heartbeat, { after, runId: null, compact: true }).getReader();
  const early = [open(2), open(2)];
  const turn = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));
  await turn();
  const next = async (batch: EventBatch, readers: typeof early) => {
    from.publish(batch);
    const chunks = await Promise.all(readers.map(async (reader) => (await reader.read()).value));
    return chunks.map((chunk) => chunks.indexOf(chunk));
  };
  expect(await next([opening(3)], early)).toEqual([0, 0]);
  expect(await next([patch(3, 0, 'a')], early)).toEqual([0, 0]);
  // One that comes later begins with complete frames, and shares the bytes after its first live batch.
  blocks.push(patch(3, 0, 'a'));
  const late = open(3);
  expect(text((await late.read()).value)).toContain(RUN);
  const all = [...early, late];
  expect(await next([patch(3, 1, 'b')], all)).toEqual([0, 0, 2]);
  expect(await next([patch(3, 2, 'c')], all)).toEqual([0, 0, 0]);
  expect(await next([closing(4, 3, 'abc')], all)).toEqual([0, 0, 0]);
  expect(await next([completed(5, 'abc')], all)).toEqual([0, 0, 0]);
});

test('[Z4] [H2] [H5] heartbeats and the end of a token are the comments of the full form', async () => {
  const clock = new VirtualClock();
  const expiry = { clock, at: clock.now() + limits.heartbeatMs + 1 };
  const read = async (compact: boolean): Promise<string> =>
    await new Response(
      eventStream(source([]), new Heartbeat(clock), { after: 0, runId: null, expiry, compact }),
    ).text();
  const both = [read(true), read(false)];
  clock.advance(limits.heartbeatMs);
  clock.advance(1);
  const [compact, full] = await Promise.all(both);
  expect(compact).toBe(full);
  expect(compact).toContain(': the token has expired');
});
