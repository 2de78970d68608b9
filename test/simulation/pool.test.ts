import { describe, expect, test } from 'vitest';
import { historyOf } from './arbitrary.ts';
import { checkHistory } from './check.ts';
import { NEVER_BLOCKS, Thread, checkSeeds } from './pool.ts';

describe('the pool', () => {
  test('a seed gives the same facts in two threads, whatever ran before it', async () => {
    const digests = async (first: number, threads: number): Promise<Map<number, string | null>> => {
      const found = new Map<number, string | null>();
      const onDigest = (seed: number, digest: string | null): void => void found.set(seed, digest);
      await checkSeeds({ first, count: 40, threads, onDigest });
      return found;
    };
    const [forwards, shared] = await Promise.all([digests(1, 1), digests(11, 2)]);
    const both = [...forwards.keys()].filter((seed) => shared.has(seed));
    expect(both).toHaveLength(30);
    expect(both.map((seed) => shared.get(seed))).toEqual(both.map((seed) => forwards.get(seed)));
    expect(new Set(forwards.values()).size).toBeGreaterThan(30);
  });

  test('a history gives the same observation in a thread and here', async () => {
    await using thread = new Thread();
    const { seen } = await thread.run(7, { isDetailed: true });
    expect(seen?.facts).toEqual((await checkHistory(historyOf(7))).seen?.facts);
  });

  test('a history without an answer in time is a violation, and the next one runs in a new thread', async () => {
    await using thread = new Thread(1);
    const { violations, digest } = await thread.run(1);
    expect(violations).toEqual([{ invariant: NEVER_BLOCKS, what: 'no end after 1 ms' }]);
    expect(digest).toBeNull();
  });
});
