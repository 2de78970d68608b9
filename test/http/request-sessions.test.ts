/** Sessions of requests without a key, which a client may repeat by itself (E2). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { requestSession } from '../../src/http/surfaces/request-sessions.ts';

class World {
  now = 0;
  readonly made: string[] = [];
  #random = 0;

  async #session(request: string, isRepeated: boolean): Promise<{ id: string; isJoined: boolean }> {
    const sessions = {
      now: () => this.now,
      idOf: async (text: string) => text,
      newId: async () => `random ${(this.#random += 1)}`,
      open: async (id: string) => {
        if (this.made.includes(id)) return false;
        this.made.push(id);
        return true;
      },
      exists: async (id: string) => this.made.includes(id),
    };
    return await requestSession(sessions, [request], isRepeated);
  }

  async first(request = 'Hello'): Promise<string> {
    const { id, isJoined } = await this.#session(request, false);
    expect(isJoined).toBe(false);
    return id;
  }

  /** The session of the first request; null if the request has a session of its own. */
  async repeated(request = 'Hello'): Promise<string | null> {
    const before = this.made.length;
    const { id, isJoined } = await this.#session(request, true);
    expect(this.made.length - before).toBe(isJoined ? 0 : 1);
    return isJoined ? id : null;
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
    world.now += 2 * limits.repeatedRequestMs;
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
