import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { limits } from '../../src/domain/limits.ts';
import { Broadcaster } from '../../src/engine/session/broadcaster.ts';
import type { EventBatch } from '../../src/engine/session/broadcaster.ts';
import { PatchCoalescer } from '../../src/http/patch-coalescer.ts';
import { once } from '../../src/http/routes/session-actions.ts';
import { eventSource } from '../../src/http/session-app.ts';
import { Heartbeat } from '../../src/http/heartbeat.ts';
import { eventStream, foldedStream } from '../../src/http/sse.ts';
import { sessionKit } from '../support/session-kit.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';

const base = { session_id: 's', run_id: 'run_1', iteration: 1, timestamp: 0 };

function patch(offset: number, delta: string, segment = 1): SessionEvent {
  return { ...base, seq: null, type: 'response', data: { segment, offset, delta } };
}

function journaled(seq: number): SessionEvent {
  return { ...base, seq, type: 'warning', data: { code: 'c', message: '' } };
}

function fixture() {
  const clock = new VirtualClock();
  const broadcaster = new Broadcaster(0, () => []);
  const coalescer = new PatchCoalescer(clock, (listener) => broadcaster.listen(listener));
  const batches: (EventBatch | null)[] = [];
  const leave = coalescer.listen((batch) => batches.push(batch));
  return { clock, broadcaster, coalescer, batches, leave };
}

test('[J4] the first patch is sent at once, and the patches that follow soon are sent as one', () => {
  const { clock, broadcaster, batches } = fixture();
  broadcaster.publish([patch(0, 'a')]);
  expect(batches).toEqual([[patch(0, 'a')]]);
  broadcaster.publish([patch(1, 'b')]);
  broadcaster.publish([patch(2, 'c')]);
  expect(batches).toHaveLength(1);
  clock.advance(limits.patchCoalesceMs);
  expect(batches[1]).toEqual([patch(1, 'bc')]);
  clock.advance(1_000);
  broadcaster.publish([patch(3, 'd')]);
  expect(batches[2]).toEqual([patch(3, 'd')]);
});

test('[Z4] the first character of each block is sent at once, after the pending patches of other blocks', () => {
  const { clock, broadcaster, batches } = fixture();
  broadcaster.publish([journaled(1)]);
  // The opening event was sent a moment ago.
  clock.advance(1);
  broadcaster.publish([patch(0, 'a', 1)]);
  expect(batches.at(-1)).toEqual([patch(0, 'a', 1)]);
  broadcaster.publish([patch(1, 'b', 1)]);
  expect(batches).toHaveLength(2);
  broadcaster.publish([patch(0, 'x', 2)]);
  expect(batches.slice(2)).toEqual([[patch(1, 'b', 1), patch(0, 'x', 2)]]);
});

test('[Z4] events of actions are sent at once, with the text before them, to every kind of stream', async () => {
  const kit = await sessionKit();
  const source = eventSource(kit.session, kit.clock);
  const fold = { add: (event: SessionEvent) => `${event.type} `, end: () => '' };
  const heartbeat = new Heartbeat(kit.clock);
  const options = { after: 0, runId: null };
  const streams = [
    eventStream(source, heartbeat, options),
    eventStream(source, heartbeat, { ...options, compact: true }),
    foldedStream(source, heartbeat, fold, options),
  ];
  const seen = streams.map(async (stream) => {
    let text = '';
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.includes('agent_completed')) return text;
    }
    return text;
  });
  const text =
    '<response final="false">words</response><action type="tool" id="a">{"name":"echo","parameters":{}}</action>';
  await kit.session.execute(once(`${text}<response final="true">more</response>`), text);
  // The clock stands still: nothing waits for it.
  for (const got of await Promise.all(seen)) {
    expect(got).toMatch(/response_started[^]*response[^]*response_completed[^]*action_started[^]*action_completed/);
  }
});

test('[J4] a clock that is set back delays no text', () => {
  const { clock, broadcaster, batches } = fixture();
  broadcaster.publish([patch(0, 'a')]);
  clock.advance(-3_600_000);
  broadcaster.publish([patch(1, 'b')]);
  clock.advance(limits.patchCoalesceMs);
  expect(batches[1]).toEqual([patch(1, 'b')]);
});

test('[J1] a journaled event is sent at once, after the pending patches', () => {
  const { broadcaster, batches } = fixture();
  broadcaster.publish([patch(0, 'a')]);
  broadcaster.publish([patch(1, 'b')]);
  broadcaster.publish([patch(0, 'x', 2), journaled(7)]);
  expect(batches[1]).toEqual([patch(1, 'b'), patch(0, 'x', 2), journaled(7)]);
  const batch = [journaled(8)];
  broadcaster.publish(batch);
  expect(batches[2]).toBe(batch);
});

test('[J5] the last listener that leaves removes the coalescer from the session; the end follows the pending patches', () => {
  const { clock, broadcaster, coalescer, batches, leave } = fixture();
  broadcaster.publish([patch(0, 'a')]);
  broadcaster.publish([patch(1, 'b')]);
  leave();
  clock.advance(1_000);
  expect(batches).toHaveLength(1);
  const again: (EventBatch | null)[] = [];
  coalescer.listen((batch) => again.push(batch));
  broadcaster.publish([patch(2, 'c')]);
  broadcaster.publish([patch(3, 'd')]);
  broadcaster.close();
  expect(again.flatMap((batch): readonly unknown[] => batch ?? ['end'])).toEqual([patch(2, 'c'), patch(3, 'd'), 'end']);
});

test('[J4] patches at any times give the same text in the same order', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('patch', 'other', 'event', 'time'), fc.string({ maxLength: 3 })), {
        maxLength: 60,
      }),
      (steps) => {
        const { clock, broadcaster, batches } = fixture();
        const texts = ['', '', ''];
        const order: number[] = [];
        for (const [kind, text] of steps) {
          if (kind === 'time') clock.advance(text.length * 3);
          else if (kind === 'event') broadcaster.publish([journaled(order.push(order.length + 1))]);
          else {
            const segment = kind === 'patch' ? 1 : 2;
            broadcaster.publish([patch((texts[segment] ?? '').length, text, segment)]);
            texts[segment] += text;
          }
        }
        clock.advance(1_000);
        const shown = ['', '', ''];
        const seen: number[] = [];
        for (const event of batches.flatMap((batch) => batch ?? [])) {
          if (event.seq !== null) seen.push(event.seq);
          else {
            const { segment, offset, delta } = event.data as { segment: number; offset: number; delta: string };
            shown[segment] = (shown[segment] ?? '').slice(0, offset) + delta;
          }
        }
        expect(shown).toEqual(texts);
        expect(seen).toEqual(order);
      },
    ),
  );
});
