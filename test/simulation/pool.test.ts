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

  /** Passes, except that it violates invariants, blocks and exits at three seeds. */
  const script = new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ history }) => {
        if (history === 7) while (true);
        if (history === 8) process.exit(3);
        const violations = history === 5 || history === 9 ? [{ invariant: 'one', what: 'seed ' + history }] : [];
        parentPort.postMessage({ violations, digest: 'some', seen: null });
      });
    `)}`,
  );
  const openThread = (): Thread => new Thread(2_000, script);

  test('counts failures by invariant; a history that blocks or ends its thread is a failure, and the next ones run', async () => {
    const seeds: number[] = [];
    const onDigest = (seed: number): void => void seeds.push(seed);
    const report = await checkSeeds({ first: 4, count: 8, threads: 2, openThread, onDigest });
    expect(report).toEqual({
      done: 8,
      failed: 4,
      failures: [
        { invariant: 'one', what: 'seed 5', seed: 5, count: 2 },
        { invariant: NEVER_BLOCKS, what: 'no end after 2000 ms', seed: 7, count: 1 },
        { invariant: 'the thread survives', what: 'the thread ended with code 3', seed: 8, count: 1 },
      ],
    });
    expect(seeds.sort((a, b) => a - b)).toEqual([4, 5, 6, 7, 8, 9, 10, 11]);
  });

  test('ends early when the given number of invariants has failed', async () => {
    const report = await checkSeeds({ first: 4, count: 8, threads: 1, mostInvariants: 1, openThread });
    expect(report).toMatchObject({ done: 2, failed: 1 });
  });
});
