/** One value that many sessions use (F6). */
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { SharedFeedValue } from '../../../src/domain/ports/shared-values.ts';
import { SharedFeed } from '../../../src/engine/feeds/shared-feed.ts';
import type { StoredFeed } from '../../../src/engine/feeds/shared-feed.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { settle } from '../../support/session-kit.ts';

const INTERVAL = 30_000;

/** A shared feed whose source answers when the test lets it. */
class World {
  readonly clock = new VirtualClock();
  readonly calls: PromiseWithResolvers<Json>[] = [];
  readonly signals: AbortSignal[] = [];
  stored: StoredFeed | null = null;
  deleteAt = 0;
  feed = this.#host();

  #host(): SharedFeed {
    return new SharedFeed(this.clock, {
      read: () => this.stored,
      write: (stored, deleteAt) => {
        this.stored = structuredClone(stored);
        this.deleteAt = deleteAt;
      },
    });
  }

  restart(): void {
    this.feed = this.#host();
  }

  read(asked: { maxAgeMs?: number; waitMs?: number; maxChars?: number } = {}): Promise<SharedFeedValue> {
    return this.feed.read({ maxAgeMs: INTERVAL, waitMs: 1_000, maxChars: 4_000, ...asked }, async (signal) => {
      const call = Promise.withResolvers<Json>();
      this.calls.push(call);
      this.signals.push(signal);
      return await call.promise;
    });
  }

  /** Reads a value for which the source answers at once. */
  async first(value: Json = 'v1'): Promise<SharedFeedValue> {
    const reading = this.read();
    await settle();
    this.calls.at(-1)?.resolve(value);
    return await reading;
  }
}

test('[F6] concurrent requests are one fetch, and all of them get its value', async () => {
  const world = new World();
  const readings = Array.from({ length: 20 }, () => world.read());
  await settle();
  expect(world.calls).toHaveLength(1);
  world.calls[0]?.resolve('v1');
  expect(await Promise.all(readings)).toEqual(
    readings.map(() => ({ value: 'v1', at: world.clock.now(), error: null })),
  );
});

test('[F6] the source is called once per interval, also after the host was lost', async () => {
  const world = new World();
  await world.first();
  const { at } = await world.read();
  world.clock.advance(INTERVAL - limits.sharedFeedSlackMs - 1);
  world.restart();
  expect(await world.read()).toEqual({ value: 'v1', at, error: null });
  expect(world.calls).toHaveLength(1);
  world.clock.advance(1);
  expect(await world.first('v2')).toEqual({ value: 'v2', at: world.clock.now(), error: null });
  expect(world.calls).toHaveLength(2);
});

test('[F6] the slack does not shorten the intervals of sessions, which ask when the value has expired', async () => {
  const world = new World();
  const { at } = await world.first();
  for (let interval = 1; interval <= 3; interval += 1) {
    world.clock.advance(INTERVAL);
    expect((await world.first('v')).at).toBe((at ?? 0) + interval * INTERVAL);
  }
  expect(world.calls).toHaveLength(4);
});

describe('[F6] a slow source', () => {
  test('gives the last value and its age after the time that the caller waits', async () => {
    const world = new World();
    const { at } = await world.first();
    world.clock.advance(INTERVAL);
    const reading = world.read();
    const patient = world.read({ waitMs: 60_000 });
    await settle();
    world.clock.advance(1_000);
    expect(await reading).toEqual({ value: 'v1', at, error: null });
    expect(world.calls).toHaveLength(2);
    world.calls[1]?.resolve('v2');
    expect(await patient).toEqual({ value: 'v2', at: world.clock.now(), error: null });
  });

  test('does not delay a caller that accepts the value', async () => {
    const world = new World();
    await world.first();
    world.clock.advance(INTERVAL);
    void world.read();
    expect((await world.read({ maxAgeMs: 2 * INTERVAL })).value).toBe('v1');
  });

  test('is aborted at its timeout, and its late value is ignored', async () => {
    const world = new World();
    const { at } = await world.first();
    world.clock.advance(INTERVAL);
    const reading = world.read({ waitMs: 2 * limits.feedFetchMs });
    await settle();
    world.clock.advance(limits.feedFetchMs);
    const answer = { value: 'v1', at, error: 'the feed did not answer within 60 s' };
    expect(await reading).toEqual(answer);
    expect(world.signals[1]?.aborted).toBe(true);
    world.calls[1]?.resolve('late');
    await settle();
    expect(world.stored).toMatchObject(answer);
  });
});

describe('[F6] a failing source', () => {
  test('leaves the last value with its age, and is called once per interval too', async () => {
    const world = new World();
    const { at } = await world.first();
    world.clock.advance(INTERVAL);
    const reading = world.read();
    await settle();
    world.calls[1]?.reject(new Error('down: no answer'));
    const answer = { value: 'v1', at, error: 'down: no answer' };
    expect(await reading).toEqual(answer);
    world.clock.advance(INTERVAL / 2);
    expect(await world.read()).toEqual(answer);
    expect(world.calls).toHaveLength(2);
    world.clock.advance(INTERVAL / 2);
    expect(await world.first('v3')).toEqual({ value: 'v3', at: world.clock.now(), error: null });
  });

  test('that never answered has no value', async () => {
    const world = new World();
    const reading = world.read();
    await settle();
    world.calls[0]?.reject(new Error('down'));
    expect(await reading).toEqual({ value: null, at: null, error: 'down' });
    expect(await world.read()).toEqual({ value: null, at: null, error: 'down' });
    expect(world.calls).toHaveLength(1);
  });

  test('that throws at once does not end the fetches', async () => {
    const world = new World();
    const asked = { maxAgeMs: INTERVAL, waitMs: 1_000, maxChars: 10 };
    const thrown = await world.feed.read(asked, () => {
      throw new Error('at once');
    });
    expect(thrown.error).toBe('at once');
    world.clock.advance(INTERVAL);
    expect((await world.first()).value).toBe('v1');
  });
});

test('[F4] [F6] a long value is stored cut, and it expires', async () => {
  const world = new World();
  const reading = world.read({ maxChars: 10 });
  await settle();
  world.calls[0]?.resolve('x'.repeat(50_000));
  expect((await reading).value).toBe('xxxxxxxxxx\n[cut after 10 of 50000 characters]');
  expect(JSON.stringify(world.stored).length).toBeLessThan(200);
  expect(world.deleteAt).toBe(world.clock.now() + limits.sharedFeedKeptMs);
  const daily = world.read({ maxAgeMs: 0 });
  await settle();
  world.calls[1]?.resolve('y');
  await daily;
  world.clock.advance(86_400_000);
  const rare = world.read({ maxAgeMs: 86_400_000 });
  await settle();
  world.calls[2]?.resolve('z');
  await rare;
  expect(world.deleteAt).toBe(world.clock.now() + 2 * 86_400_000);
});
