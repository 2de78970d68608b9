import { expect, test } from 'vitest';
import type { EventType, SessionEvent, TextPatch } from '../../src/domain/event.ts';
import { limits } from '../../src/domain/limits.ts';
import { ThreadShare, FairQueue } from '../../src/domain/fair-queue.ts';
import { Slices } from '../../src/domain/work.ts';
import { Broadcaster } from '../../src/engine/session/broadcaster.ts';
import { Heartbeat } from '../../src/http/heartbeat.ts';
import { eventStream, foldedStream } from '../../src/http/sse.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { anyData } from '../support/events.ts';

const base = { session_id: 's', run_id: 'run_1', iteration: 1, timestamp: 0 };

function event(seq: number, more: { type?: EventType; run_id?: string; data?: JsonObject } = {}): SessionEvent {
  const { type = 'warning', data = {}, ...rest } = more;
  return { seq, type, ...base, ...rest, data: anyData(data) } as SessionEvent;
}

function textPatch(
  type: TextPatch['type'],
  segment: number,
  offset: number,
  delta: string,
  runId = 'run_1',
): TextPatch {
  return { seq: null, type, ...base, run_id: runId, data: { segment, offset, delta } };
}

/** A session with `stored` in its journal. */
function source(stored: SessionEvent[], open: TextPatch[] = [], ended = false) {
  const broadcaster = new Broadcaster(0, () => []);
  return {
    broadcaster,
    events: (after: number) => stored.filter(({ seq }) => (seq ?? 0) > after).slice(0, limits.pageRows),
    openBlocks: () => open,
    listen: (listener: Parameters<Broadcaster['listen']>[0]) => broadcaster.listen(listener),
    hasEnded: () => ended,
    isWaiting: () => stored.at(-1)?.type === 'agent_waiting',
  };
}

async function frames(stream: ReadableStream<Uint8Array>, count: number): Promise<string[]> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (text.split('\n\n').length - 1 < count) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  return text.split('\n\n').slice(0, -1);
}

const ids = (all: string[]): string[] => all.map((frame) => /^id: (\d+)/.exec(frame)?.[1] ?? '-');

test('[J4] a reader that reconnects with an id gets exactly the missing events, then live ones', async () => {
  const stored = [1, 2, 3].map((seq) => event(seq));
  const from = source(stored);
  const stream = eventStream(from, new Heartbeat(new VirtualClock()), { after: 1, runId: null });
  const read = frames(stream, 3);
  await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  from.broadcaster.publish([event(3), event(4)]);
  expect(ids(await read)).toEqual(['2', '3', '4']);
});

test('[J4] a reader whose journal cannot be read fails alone: the others are closed with the session', async () => {
  const from = source([event(1)]);
  const failing = { ...from, events: () => fail() };
  const broken = eventStream(failing, new Heartbeat(new VirtualClock()), { after: 0, runId: null }).getReader();
  const other = eventStream(from, new Heartbeat(new VirtualClock()), { after: 1, runId: null }).getReader();
  await expect(broken.read()).rejects.toThrow('disk failed');
  from.broadcaster.close();
  expect(await other.read()).toMatchObject({ done: true });
});

function fail(): never {
  throw new Error('disk failed');
}

test('[H2] a frame has id, event and data; live patches have no id and no second name of their type', async () => {
  const patch = textPatch('thought', 1, 0, 'a');
  const stream = eventStream(source([event(1)], [patch]), new Heartbeat(new VirtualClock()), { after: 0, runId: null });
  const [journaled, live] = await frames(stream, 2);
  expect(journaled).toBe(`id: 1\nevent: warning\ndata: ${JSON.stringify({ ...event(1), event_type: 'warning' })}`);
  expect(live).toBe(`event: thought\ndata: ${JSON.stringify(patch)}`);
});

test('[J4] a reader without the opening event of a block gets the block’s whole text', async () => {
  const patch = textPatch('thought', 9, 0, 'a');
  const stream = eventStream(source([event(1)], [patch]), new Heartbeat(new VirtualClock()), { after: 0, runId: null });
  expect(ids(await frames(stream, 1))).toEqual(['1']);
});

test.each(['agent_completed', 'agent_failed', 'agent_cancelled'] as const)(
  '[H2] a stream of one run skips other runs and closes after its end (%s)',
  async (type) => {
    const stored = [event(1), event(2, { run_id: 'run_2' }), event(3, { type }), event(4)];
    const stream = eventStream(source(stored), new Heartbeat(new VirtualClock()), { after: 0, runId: 'run_1' });
    expect(ids(await frames(stream, 99))).toEqual(['1', '3']);
  },
);

test('[J8] a stream of one run continues after agent_waiting; the stream of its request ends where the run waits now', async () => {
  const stored = [event(1), event(2, { type: 'agent_waiting' }), event(3), event(4, { type: 'agent_completed' })];
  const read = async (endsWaiting: boolean, count: number): Promise<string[]> => {
    const from = source(stored.slice(0, count));
    const options = { after: 0, runId: 'run_1', endsWaiting };
    const reading = frames(eventStream(from, new Heartbeat(new VirtualClock()), options), 9);
    await new Promise((resolve) => setImmediate(resolve));
    from.broadcaster.publish(stored.slice(count));
    return ids(await reading);
  };
  for (const count of [1, 2, 3, 4]) {
    expect(await read(false, count)).toEqual(['1', '2', '3', '4']);
    // A request that is repeated after the decision (J7) gets the whole run.
    expect(await read(true, count)).toEqual(count <= 2 ? ['1', '2'] : ['1', '2', '3', '4']);
  }
});

test('[J4] a reader that does not read uses no memory, and later gets everything from the journal', async () => {
  const stored: SessionEvent[] = [event(1)];
  const from = source(stored);
  const stream = eventStream(from, new Heartbeat(new VirtualClock()), { after: 0, runId: null });
  await new Promise((resolve) => setImmediate(resolve));
  const big = 'x'.repeat(limits.readerQueueBytes / 4);
  for (let seq = 2; seq <= 40; seq += 1) {
    stored.push(event(seq, { data: { big } }));
    from.broadcaster.publish([event(seq, { data: { big } })]);
  }
  const all = await frames(stream, 40);
  expect(ids(all)).toEqual(stored.map(({ seq }) => String(seq)));
});

test('[J4] one turn is one chunk, in order, with the same bytes for every reader', async () => {
  const from = source([]);
  const heartbeat = new Heartbeat(new VirtualClock());
  const readers = [1, 2, 3].map(() => eventStream(from, heartbeat, { after: 0, runId: null }).getReader());
  await new Promise((resolve) => setImmediate(resolve));
  from.broadcaster.publish(Array.from({ length: 1_000 }, (_, index) => event(index + 1)));
  const chunks = await Promise.all(readers.map(async (reader) => (await reader.read()).value));
  expect(chunks[1]).toBe(chunks[0]);
  expect(chunks[2]).toBe(chunks[0]);
  const text = new TextDecoder().decode(chunks[0]);
  expect(ids(text.split('\n\n').slice(0, -1))).toEqual(Array.from({ length: 1_000 }, (_, index) => String(index + 1)));
});

test('[J4] the buffer of a reader that never reads is bounded, for replayed and live events', async () => {
  const big = 'x'.repeat(10_000);
  const stored = Array.from({ length: 500 }, (_, index) => event(index + 1, { data: { big } }));
  const from = source(stored);
  let pages = 0;
  const counted = { ...from, events: (after: number) => ((pages += 1), from.events(after)) };
  eventStream(counted, new Heartbeat(new VirtualClock()), { after: 0, runId: null });
  await new Promise((resolve) => setImmediate(resolve));
  expect(pages * limits.pageRows * big.length).toBeLessThan(limits.readerPageBytes + 2 * limits.pageRows * big.length);
  for (let seq = 501; seq < 600; seq += 1) from.broadcaster.publish([event(seq, { data: { big } })]);
  expect(pages).toBe(1);
});

test('[J4] a block with missed patches is sent whole before its closing event', async () => {
  const patch = (offset: number, delta: string): TextPatch => textPatch('response', 2, offset, delta);
  const closed = event(3, { type: 'response_completed', data: { segment: 2, content: 'hello' } });
  const whole = patch(0, 'hello');
  const deltas = (all: string[]): unknown[] =>
    all.map((frame) => (JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '') as SessionEvent).data);
  const open = (from: ReturnType<typeof source>): ReadableStream<Uint8Array> =>
    eventStream(from, new Heartbeat(new VirtualClock()), { after: 2, runId: null });

  // The block closed while the reader was disconnected.
  expect(deltas(await frames(open(source([event(1), event(2), closed])), 2))).toEqual([whole.data, closed.data]);

  // The block has closed, and its last patches have not been sent yet.
  const from = source([event(1), event(2)]);
  const read = frames(open(from), 3);
  await new Promise((resolve) => setImmediate(resolve));
  from.broadcaster.publish([patch(3, 'lo'), closed, event(4)]);
  expect(deltas(await read)).toEqual([whole.data, closed.data, {}]);

  // The block was open, and its text so far was sent: no text is sent twice.
  const held = source([event(1), event(2)], [patch(0, 'hel')]);
  const live = frames(open(held), 3);
  await new Promise((resolve) => setImmediate(resolve));
  held.broadcaster.publish([patch(3, 'lo'), closed]);
  expect(deltas(await live)).toEqual([patch(0, 'hel').data, patch(3, 'lo').data, closed.data]);
});

test('[H2] all readers share one heartbeat timer, which stops without readers', async () => {
  const clock = new VirtualClock();
  let armed = 0;
  const heartbeat = new Heartbeat({
    now: () => clock.now(),
    schedule: (delayMs, callback) => {
      armed += 1;
      const cancel = clock.schedule(delayMs, callback);
      return () => {
        armed -= 1;
        cancel();
      };
    },
  });
  const from = source([]);
  const streams = Array.from({ length: 200 }, () => eventStream(from, heartbeat, { after: 0, runId: null }));
  expect(armed).toBe(1);
  for (const stream of streams) await stream.cancel();
  expect(armed).toBe(0);
});

test('[H2] the stream closes for a reader that reconnects after the end of the run', async () => {
  const stored = [event(1), event(2, { type: 'agent_completed' })];
  const stream = eventStream(source(stored, [], true), new Heartbeat(new VirtualClock()), { after: 2, runId: 'run_1' });
  expect(await frames(stream, 99)).toEqual([]);
});

test('[H2] a comment is sent every five seconds', async () => {
  const clock = new VirtualClock();
  const stream = eventStream(source([]), new Heartbeat(clock), { after: 0, runId: null });
  const read = frames(stream, 2);
  clock.advance(limits.heartbeatMs);
  clock.advance(limits.heartbeatMs);
  expect(await read).toEqual([': heartbeat', ': heartbeat']);
});

test('[E1] [E2] [E3] streams of other protocols have the same comments: proxies cut idle connections', async () => {
  const clock = new VirtualClock();
  const fold = { add: () => '', end: () => 'data: end\n\n' };
  const stream = foldedStream(source([]), new Heartbeat(clock), fold, { after: 0, runId: 'run_1' });
  const read = frames(stream, 2);
  clock.advance(limits.heartbeatMs);
  clock.advance(limits.heartbeatMs);
  expect(await read).toEqual([': heartbeat', ': heartbeat']);
});

test('[J5] a disconnect removes the reader from the broadcaster', async () => {
  const from = source([]);
  let left = 0;
  const listen: typeof from.listen = (listener) => {
    const leave = from.broadcaster.listen(listener);
    return () => {
      left += 1;
      leave();
    };
  };
  await eventStream({ ...from, listen }, new Heartbeat(new VirtualClock()), { after: 0, runId: null }).cancel();
  expect(left).toBe(1);
});

test('[H5] a stream opened with a token ends when the token expires, according to the given clock', async () => {
  const clock = new VirtualClock();
  const from = source([event(1)]);
  const expiry = { clock, at: clock.now() + 60_000 };
  const read = frames(eventStream(from, new Heartbeat(clock), { after: 0, runId: null, expiry }), 99);
  const slow = eventStream(from, new Heartbeat(clock), { after: 0, runId: null, expiry });
  await new Promise((resolve) => setImmediate(resolve));
  from.broadcaster.publish([event(2)]);
  clock.advance(59_999);
  from.broadcaster.publish([event(3)]);
  clock.advance(1);
  from.broadcaster.publish([event(4)]);
  const all = await read;
  expect(ids(all).filter((id) => id !== '-')).toEqual(['1', '2', '3']);
  expect(all.at(-1)).toBe(': the token has expired; the run continues');
  // a reader that has not read yet gets only what was sent before the expiry
  expect((await frames(slow, 99)).at(-1)).toBe(': the token has expired; the run continues');
  expect(clock.next).toBeNull();
});

test('[H5] a stream that has ended clears its expiry timer', async () => {
  const clock = new VirtualClock();
  const stored = [event(1), event(2, { type: 'agent_completed' })];
  const expiry = { clock, at: clock.now() + 60_000 };
  await frames(eventStream(source(stored), new Heartbeat(clock), { after: 0, runId: 'run_1', expiry }), 99);
  expect(clock.next).toBeNull();
});

test('[X2] a long replay yields after each slice, and includes events that arrive meanwhile', async () => {
  const big = 'x'.repeat(10_000);
  const stored = Array.from({ length: 300 }, (_, index) => event(index + 1, { data: { big } }));
  const from = source(stored);
  const clock = new VirtualClock();
  let pages = 0;
  const counted = { ...from, events: (after: number) => ((pages += 1), from.events(after).slice(0, 25)) };
  const slices = new Slices(new ThreadShare(new FairQueue(clock), () => null));
  const stream = eventStream(counted, new Heartbeat(new VirtualClock()), { after: 0, runId: null, slices });
  const read = frames(stream, 301);
  await new Promise((resolve) => setImmediate(resolve));
  expect(pages).toBe(1);
  stored.push(event(301));
  from.broadcaster.publish([event(301)]);
  for (let turn = 0; turn < 40; turn += 1) {
    const before = pages;
    clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
    expect(pages - before).toBeLessThan(3);
  }
  expect(ids(await read)).toEqual(stored.map(({ seq }) => String(seq)));
});
