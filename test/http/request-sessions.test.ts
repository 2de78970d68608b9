/** Sessions of requests without a key, which a client may repeat by itself (E2). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { RequestSessions } from '../../src/http/surfaces/request-sessions.ts';

class World {
  now = 0;
  readonly made: string[] = [];
  #random = 0;
  readonly sessions = new RequestSessions({
    now: () => this.now,
    sessionIdOf: async (start) => start,
    newSessionId: async () => `random ${(this.#random += 1)}`,
  });

  first(request = 'Hello'): Promise<string> {
    return this.sessions.create([request], async (id) => {
      if (this.made.includes(id)) return false;
      this.made.push(id);
      return true;
    });
  }

  repeated(request = 'Hello'): Promise<string | null> {
    return this.sessions.find([request], async (id) => this.made.includes(id));
  }
}

describe('[E2] a repeated request', () => {
  test.each([
    ['at once', 0],
    ['in the next slot', limits.repeatedRequestMs],
  ])('finds the session of the first one, %s', async (_, laterMs) => {
    const world = new World();
    const id = await world.first();
    world.now += laterMs;
    expect(await world.repeated()).toBe(id);
    expect(await world.repeated('Something else')).toBe(null);
  });

  test('finds nothing if its first request has made none, or long ago', async () => {
    const world = new World();
    expect(await world.repeated()).toBe(null);
    await world.first();
    world.now += 2 * limits.repeatedRequestMs;
    expect(await world.repeated()).toBe(null);
  });

  test.each([
    ['in one slot', 0],
    ['in two slots', limits.repeatedRequestMs],
  ])('finds nothing if it could be one of several (%s)', async (_, laterMs) => {
    const world = new World();
    await world.first();
    world.now += laterMs;
    await world.first();
    expect(await world.repeated()).toBe(null);
  });
});

test('[E2] equal requests have sessions of their own', async () => {
  const world = new World();
  const ids = [await world.first(), await world.first(), await world.first(), await world.first()];
  expect(new Set(ids).size).toBe(4);
});
