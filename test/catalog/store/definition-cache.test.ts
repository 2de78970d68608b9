/** Copies of uploaded definitions (Z1). */
import { describe, expect, test } from 'vitest';
import { DefinitionCache } from '../../../src/catalog/store/definition-cache.ts';
import type { CachedText } from '../../../src/catalog/store/definition-cache.ts';
import { limits } from '../../../src/domain/limits.ts';

const START = 1_000_000;

/** A catalogue with one definition, and one isolate that reads it. */
function kit() {
  let now = START;
  const cache = new DefinitionCache({ now: () => now });
  const world = { text: 'first' as string | null, isAway: false, asked: 0, read: () => ask() };
  const works: Promise<void>[] = [];
  const ask = async (): Promise<string | null> => {
    world.asked += 1;
    await Promise.resolve();
    if (world.isAway) throw new Error('away');
    return world.text;
  };
  const read = async (known?: CachedText, owner: string | null = null): Promise<string | null> => {
    const found = await cache.find({
      owner,
      key: 'agent/one',
      ask,
      behind: (work) => works.push(work),
      ...(known === undefined ? {} : { known: () => known }),
    });
    return found.text;
  };
  const pass = (ms: number): number => (now += ms);
  return {
    cache,
    world,
    read,
    pass,
    now: () => now,
    settled: async () => void (await Promise.all(works.splice(0))),
    works,
  };
}

describe('[Z1] copies of uploaded definitions', () => {
  test('are used without a request, then refreshed behind a message, then not used', async () => {
    const { world, read, pass, settled, works } = kit();
    expect([await read(), await read(), world.asked]).toEqual(['first', 'first', 1]);
    world.text = 'second';
    pass(limits.manifestStalenessMs);
    expect([await read(), world.asked]).toEqual(['first', 1]);
    pass(1);
    expect(await Promise.all([read(), read()])).toEqual(['first', 'first']);
    expect([world.asked, works.length]).toEqual([2, 1]);
    await settled();
    expect([await read(), world.asked]).toEqual(['second', 2]);
    world.text = 'third';
    pass(limits.manifestMaxAgeMs + 1);
    expect([await read(), world.asked]).toEqual(['third', 3]);
  });

  test('end at their maximum age, also while the catalogue does not answer', async () => {
    const { world, read, pass, settled } = kit();
    await read();
    world.isAway = true;
    pass(limits.manifestMaxAgeMs);
    expect(await read()).toBe('first');
    await settled();
    pass(1);
    await expect(read()).rejects.toThrow('away');
  });

  test('that were asked for before a known change are not used, wherever they come from', async () => {
    const { cache, world, read, now } = kit();
    await read();
    const known = { revision: 0, checkedAt: now(), text: 'first' };
    world.text = 'second';
    cache.require(null, now());
    expect([await read(known), world.asked]).toEqual(['second', 2]);
    expect([await read(known), world.asked]).toEqual(['second', 2]);
    cache.take(null, 'agent/one', known);
    expect(await read()).toBe('second');
    // Of another namespace.
    expect([await read(undefined, 'other'), world.asked]).toEqual(['second', 3]);
    cache.require(null, now() + 1);
    expect([await read(undefined, 'other'), world.asked]).toEqual(['second', 3]);
  });

  test('a number that no catalogue can have given yet hides no later change', async () => {
    const { cache, world, read, now } = kit();
    cache.require(null, now() + limits.clockSkewMs + 1);
    expect(cache.revision(null)).toBe(0);
    await read();
    world.text = 'second';
    cache.require(null, now());
    expect(await read()).toBe('second');
    // From the catalogue: its clock was ahead, and later changes have higher numbers.
    world.text = 'third';
    cache.changed(null, now() + 2 * limits.clockSkewMs);
    expect(await read()).toBe('third');
  });

  test('a session that has used a change is not served an older copy of another isolate', async () => {
    const { cache, world, read, pass, now } = kit();
    await read();
    world.text = 'second';
    pass(1);
    const find = async (seen: number): Promise<string | null> =>
      (await cache.find({ owner: null, key: 'agent/one', ask: world.read, behind: () => undefined, seen })).text;
    expect([await find(0), await find(now()), await find(0)]).toEqual(['first', 'second', 'second']);
  });

  test('whose time is in the future are not used and replaced, because the clock was set back', async () => {
    const { world, read, pass } = kit();
    await read();
    world.text = 'second';
    pass(-limits.clockSkewMs);
    expect(await read()).toBe('first');
    pass(-1);
    expect([await read(), await read(), world.asked]).toEqual(['second', 'second', 2]);
  });

  test('a removed definition is not found again in the copy of a session', async () => {
    const { world, read, pass, settled, now } = kit();
    await read();
    const known = { revision: 0, checkedAt: now(), text: 'first' };
    world.text = null;
    pass(limits.manifestStalenessMs + 1);
    expect(await read(known)).toBe('first');
    await settled();
    expect(await read(known)).toBeNull();
  });

  test('of a session serve the first message in an isolate without copies', async () => {
    const { world, read, pass, now } = kit();
    const known = { revision: 0, checkedAt: now(), text: 'known' };
    pass(limits.manifestMaxAgeMs);
    expect(await read(known)).toBe('known');
    expect(world.asked).toBe(1);
    pass(1);
    expect(await read({ ...known, text: 'expired' })).toBe('first');
  });

  test('are bounded in number and size', () => {
    const { cache, now } = kit();
    const text = 'x'.repeat(1_000);
    for (let number = 0; number < limits.cachedDefinitions + 5; number += 1) {
      cache.take(null, String(number), { revision: 0, checkedAt: now(), text });
    }
    expect([cache.peek(null, '4'), cache.peek(null, '5')?.text]).toEqual([null, text]);
    cache.take(null, 'large', {
      revision: 0,
      checkedAt: now(),
      text: 'x'.repeat(limits.cachedDefinitionChars - 1_500),
    });
    expect(cache.peek(null, String(limits.cachedDefinitions + 3))).toBeNull();
    expect(cache.peek(null, String(limits.cachedDefinitions + 4))?.text).toEqual(text);
  });
});
