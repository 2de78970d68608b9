import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import { LargeBodies } from '../../src/http/large-bodies.ts';
import type { BodyPlace } from '../../src/http/large-bodies.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { settle } from '../support/session-kit.ts';

const LARGE = limits.largeBodyBytes + 1;

interface Upload {
  readonly place: BodyPlace;
  /** `waiting`, `taken`, or the code of its error. */
  state: string;
  /** Of its error. */
  retryAfterMs: unknown;
  /** More of it arrives. */
  receive(bytes?: number): Promise<void>;
  end(): void;
}

function upload(bodies: LargeBodies, session: string, owner: string | null = 'a'): Upload {
  let onEnd = (): void => undefined;
  const ended = new Promise<void>((resolve) => (onEnd = resolve));
  let place: BodyPlace | null = null;
  void bodies.hold({ session, owner }, async (given) => {
    place = given;
    await ended;
  });
  if (place === null) throw new Error('no place');
  const made: Upload = {
    place,
    state: 'waiting',
    retryAfterMs: null,
    receive: async (bytes = LARGE) => {
      try {
        await made.place.received(bytes);
        made.state = 'taken';
      } catch (fault) {
        if (!(fault instanceof EngineError)) throw fault;
        made.state = fault.code;
        made.retryAfterMs = fault.details['retry_after_ms'];
      }
    },
    end: () => onEnd(),
  };
  return made;
}

/** Uploads that have begun, in order. */
async function begun(bodies: LargeBodies, ...of: readonly (readonly [string, string?])[]): Promise<Upload[]> {
  const uploads = of.map(([session, owner]) => upload(bodies, session, owner));
  for (const one of uploads) void one.receive();
  await settle();
  return uploads;
}

const states = (uploads: readonly Upload[]): string[] => uploads.map(({ state }) => state);

async function pass(clock: VirtualClock, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += limits.largeBodyPollMs) {
    clock.advance(limits.largeBodyPollMs);
    await settle();
  }
}

describe('[C2] [X2] large bodies', () => {
  test('a session has one place at a time, a namespace two, the isolate three; smaller bodies never wait', async () => {
    const clock = new VirtualClock();
    const bodies = new LargeBodies(clock);
    const uploads = await begun(bodies, ['1'], ['1'], ['2'], ['3'], ['4', 'b'], ['5', 'c'], ['1', 'b']);
    expect(states(uploads)).toEqual(['taken', 'waiting', 'taken', 'waiting', 'taken', 'waiting', 'waiting']);
    const small = upload(bodies, '1');
    await small.receive(limits.largeBodyBytes);
    expect(small.state).toBe('taken');
    uploads[0]?.end();
    await settle();
    await pass(clock, limits.largeBodyPollMs);
    expect(states(uploads)).toEqual(['taken', 'taken', 'taken', 'waiting', 'taken', 'waiting', 'waiting']);
  });

  test('a body that waits too long is refused, and the client is told when to retry', async () => {
    const clock = new VirtualClock();
    const bodies = new LargeBodies(clock);
    const [first, second] = await begun(bodies, ['1'], ['1']);
    for (let at = 0; at < limits.largeBodyWaitMs; at += 1_000) {
      await first?.receive(1);
      await pass(clock, 1_000);
    }
    expect([first?.state, second?.state]).toEqual(['taken', 'large_bodies_busy']);
    expect(second?.retryAfterMs).toBe(limits.largeBodyRetryMs);
  });

  test('only so many bodies wait', async () => {
    const bodies = new LargeBodies(new VirtualClock());
    const many = Array.from({ length: limits.largeBodiesWaiting + 3 }, () => ['1'] as const);
    const uploads = await begun(bodies, ...many);
    expect(states(uploads).slice(-2)).toEqual(['large_bodies_busy', 'large_bodies_busy']);
    expect(states(uploads).slice(1, -2)).toEqual(Array.from({ length: limits.largeBodiesWaiting }, () => 'waiting'));
  });

  test.each([
    ['a body that has stalled', limits.largeBodyStallMs, false],
    ['a body that takes too long', limits.largeBodyMs, true],
  ])('%s loses its place to one that waits', async (_title, afterMs, isSending) => {
    const clock = new VirtualClock();
    const bodies = new LargeBodies(clock);
    const [first] = await begun(bodies, ['1']);
    for (let at = 0; at <= afterMs; at += 1_000) {
      if (isSending) await first?.receive(1);
      await pass(clock, 1_000);
    }
    await first?.receive(isSending ? 1 : 0);
    // Without another one, it keeps its place.
    expect(first?.state).toBe('taken');
    if (!isSending) await pass(clock, limits.largeBodyStallMs + limits.largeBodyPollMs);
    const [second] = await begun(bodies, ['1']);
    await pass(clock, limits.largeBodyPollMs);
    expect(second?.state).toBe('taken');
    await first?.receive(1);
    expect(first?.state).toBe('large_bodies_busy');
  });

  test('a failed request frees its place', async () => {
    const bodies = new LargeBodies(new VirtualClock());
    const failing = bodies.hold({ session: '1', owner: 'a' }, async (place) => {
      await place.received(LARGE);
      throw new Error('cut');
    });
    await expect(failing).rejects.toThrow('cut');
    const [next] = await begun(bodies, ['1']);
    expect(next?.state).toBe('taken');
  });
});

test('[C2] files of one message that arrive at the same time take one place', async () => {
  const clock = new VirtualClock();
  const one = upload(new LargeBodies(clock), 'one');
  await Promise.all([one.receive(), one.receive(), one.receive()]);
  expect(one.state).toBe('taken');
  expect(clock.next).toBeNull();
});

test('[C2] a request that ends while it waits does not take a place afterwards', async () => {
  const clock = new VirtualClock();
  const bodies = new LargeBodies(clock);
  const [first, second] = await begun(bodies, ['one'], ['one']);
  second?.end();
  await settle();
  first?.end();
  await pass(clock, limits.largeBodyPollMs);
  expect(second?.state).toBe('large_bodies_busy');
  const third = upload(bodies, 'one');
  await third.receive();
  expect(third.state).toBe('taken');
});
