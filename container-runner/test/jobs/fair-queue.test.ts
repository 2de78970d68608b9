/** Fair order of queued jobs, and what the runner tells about the wait (R7, R8). */
import { describe, expect, test } from 'vitest';

import { FairQueue } from '../../jobs/fair-queue.ts';

interface Job {
  readonly id: string;
  readonly tenant: string | null;
  readonly session: string;
}

function queueOf(
  ...lots: readonly (readonly [tenant: string | null, session: string, count: number])[]
): FairQueue<Job> {
  const queue = new FairQueue<Job>();
  for (const [tenant, session, count] of lots) {
    for (let at = 0; at < count; at += 1) {
      queue.push({ id: `${tenant ?? ''}/${session}/${at}`, tenant, session });
    }
  }
  return queue;
}

const always = (): boolean => true;

/** Ids in the order in which `places` places take them; each job ends before the next one is taken if all are used. */
function order(queue: FairQueue<Job>, places: number, count = Number.POSITIVE_INFINITY): string[] {
  const running: Job[] = [];
  const ids: string[] = [];
  while (ids.length < count) {
    if (running.length === places) {
      const [first] = running.splice(0, 1);
      if (first !== undefined) queue.ended(first);
    }
    const job = queue.take(always);
    if (job === undefined) return ids;
    ids.push(job.id);
    running.push(job);
  }
  return ids;
}

describe('[R8] fair order', () => {
  test.each([1, 2, 8])('with %i places, one job of a tenant waits for one job of each other tenant', (places) => {
    const queue = queueOf(['ann', 's', 1_000], ['ben', 's', 1_000]);
    expect(order(queue, places, places)).toHaveLength(places);
    queue.push({ id: 'lone', tenant: 'cid', session: 's' });
    expect(order(queue, 1, 3)).toContain('lone');
  });

  test('with one place, sessions of a tenant take turns, and jobs of a session keep their order', () => {
    const queue = queueOf([null, 'a', 4], [null, 'b', 2], [null, 'c', 1]);
    expect(order(queue, 1)).toEqual(['/a/0', '/b/0', '/c/0', '/a/1', '/b/1', '/a/2', '/a/3']);
  });

  test('the tenant with the fewest running jobs is next, whatever its turn', () => {
    const queue = queueOf(['ann', 's', 3], ['ben', 's', 1]);
    expect([queue.take((tenant) => tenant === 'ann')?.id, queue.take((tenant) => tenant === 'ann')?.id]).toEqual([
      'ann/s/0',
      'ann/s/1',
    ]);
    queue.push({ id: 'ben/s/1', tenant: 'ben', session: 's' });
    expect([queue.take(always)?.id, queue.take(always)?.id, queue.take(always)?.id]).toEqual([
      'ben/s/0',
      'ben/s/1',
      'ann/s/2',
    ]);
  });

  test('a tenant that may not take a place is passed over', () => {
    const queue = queueOf(['ann', 's', 1], ['ben', 's', 1]);
    expect(queue.take((tenant) => tenant !== 'ann')?.id).toBe('ben/s/0');
    expect(queue.take((tenant) => tenant !== 'ann')).toBeUndefined();
    expect(queue.size).toBe(1);
  });

  test('a removed job does not start, and counts are exact', () => {
    const queue = queueOf(['ann', 'a', 2], ['ann', 'b', 1]);
    const job = queue.find('ann/a/0');
    expect(job !== undefined && queue.remove(job)).toBe(true);
    expect(job !== undefined && queue.remove(job)).toBe(false);
    expect([queue.size, queue.waitingOf('ann'), queue.waitingOfSession({ tenant: 'ann', session: 'a' })]).toEqual([
      2, 2, 1,
    ]);
    expect(queue.clear().map(({ id }) => id)).toEqual(['ann/a/1', 'ann/b/0']);
    expect([queue.size, queue.waitingOf('ann'), queue.take(always)]).toEqual([0, 0, undefined]);
  });
});
