/** Notes about recovered work, and their effect at the next start (J2). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { RecoveryQueue } from '../../../src/engine/replay/recovery-queue.ts';
import type { HostLife } from '../../../src/engine/replay/recovery-queue.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { settle } from '../../support/session-kit.ts';

const NO_DELAY = { delayOf: () => 0 };

/** The queue of a host over a disk, without delays by default. */
function queueOf(
  sql: NodeSql,
  host: HostLife = { life: 1, frozen: [] },
  clock = new VirtualClock(),
  slots: ConstructorParameters<typeof RecoveryQueue>[3] = NO_DELAY,
): RecoveryQueue {
  return new RecoveryQueue(sql, host, clock, slots);
}

const notes = (sql: NodeSql): unknown[] => sql.exec('SELECT work, lives, aside FROM taken_up ORDER BY work');

/** Hosts of these lives recover `work`, and each ends shortly afterwards. @returns the result of the last one */
async function through(
  sql: NodeSql,
  lives: readonly (number | null)[],
  frozen: readonly number[],
): Promise<string | null> {
  let said: string | null = null;
  for (const life of lives) said = await queueOf(sql, { life, frozen }).take('run 1');
  return said;
}

describe('[J2] a note', () => {
  test('is on disk before the work begins', async () => {
    const sql = openNodeSql();
    const disk = Promise.withResolvers<void>();
    sql.onSync = () => disk.promise;
    let begun = false;
    const taken = queueOf(sql, { life: 4, frozen: [] })
      .take('run 1')
      .then((why) => {
        begun = true;
        return why;
      });
    await settle();
    expect(notes(sql)).toEqual([{ work: 'run 1', lives: '[4]', aside: 0 }]);
    expect(begun).toBe(false);
    disk.resolve();
    expect(await taken).toBeNull();
  });

  test('is removed when its host has run long enough, or when the work has ended', async () => {
    const sql = openNodeSql();
    const clock = new VirtualClock();
    const queue = queueOf(sql, undefined, clock);
    await queue.take('run 1');
    await queue.take('run 2');
    queue.end('run 2');
    expect(notes(sql)).toMatchObject([{ work: 'run 1' }]);
    clock.advance(limits.provenMs - 1);
    expect(notes(sql)).toHaveLength(1);
    clock.advance(1);
    expect(notes(sql)).toEqual([]);
    await queue.take('run 3');
    queue.end('run 3');
    expect(clock.next).toBeNull();
    // The work has ended here; a later host's note is not this host's.
    await queueOf(sql, { life: 2, frozen: [] }).take('run 3');
    queue.end('run 3');
    expect(notes(sql)).toMatchObject([{ work: 'run 3', lives: '[2]' }]);
  });

  test('of work that is recovered again is kept', async () => {
    const sql = openNodeSql();
    const clock = new VirtualClock();
    const queue = queueOf(sql, undefined, clock);
    await queue.take('run 1');
    clock.advance(limits.provenMs - 1);
    await queue.take('run 1');
    clock.advance(limits.provenMs - 1);
    expect(notes(sql)).toEqual([{ work: 'run 1', lives: '[1,1]', aside: 0 }]);
    clock.advance(1);
    expect(notes(sql)).toEqual([]);
  });

  test('of another host is not removed at the end of the work, and a failing disk causes no error', async () => {
    const sql = openNodeSql();
    await queueOf(sql).take('run 1');
    queueOf(sql, { life: 2, frozen: [] }).end('run 1');
    expect(notes(sql)).toHaveLength(1);
    const queue = queueOf(sql);
    await queue.take('run 2');
    const { exec } = sql;
    sql.exec = () => {
      throw new Error('disk full');
    };
    expect(() => queue.end('run 2')).not.toThrow();
    sql.exec = exec;
    expect(notes(sql)).toHaveLength(2);
  });
});

describe('[J2] the slot of recovered work', () => {
  test('depends on the number of notes that count', async () => {
    const sql = openNodeSql();
    await through(sql, [1, 2, 2, 3], [2, 3]);
    const asked: unknown[] = [];
    const slots = {
      delayOf: (count: number, now: number): number => {
        asked.push([count, now]);
        return 0;
      },
    };
    const clock = new VirtualClock(77);
    await queueOf(sql, { life: 4, frozen: [2] }, clock, slots).take('run 1');
    await queueOf(sql, { life: 4, frozen: [] }, clock, slots).take('run 1');
    await queueOf(sql, { life: 4, frozen: [2, 3] }, clock, slots).take('run 2');
    expect(asked).toEqual([
      [1, 77],
      [0, 77],
      [0, 77],
    ]);
    const unwatched = openNodeSql();
    await through(unwatched, [null, null], []);
    await queueOf(unwatched, { life: null, frozen: [] }, clock, slots).take('run 1');
    expect(asked.at(-1)).toEqual([2, 77]);
  });

  test('is reported if the work has to wait', async () => {
    const sql = openNodeSql();
    const clock = new VirtualClock();
    let delays = 0;
    const queue = queueOf(sql, undefined, clock, { delayOf: () => 500 });
    let begun = false;
    void queue.take('run 1', () => (delays += 1)).then(() => (begun = true));
    await settle();
    expect([delays, begun, clock.next]).toEqual([1, false, clock.now() + 500]);
    clock.advance(500);
    await settle();
    expect([delays, begun]).toEqual([1, true]);
    await queueOf(sql).take('run 2', () => (delays += 1));
    expect(delays).toBe(1);
  });
});

describe('[J2] quarantined work', () => {
  const FROZEN = Array.from({ length: limits.frozenStarts }, (_, at) => at + 1);

  test('is reached after a number of frozen lives, and is reported at every later start', async () => {
    const sql = openNodeSql();
    expect(await through(sql, FROZEN, FROZEN)).toBeNull();
    const why = `the host froze at ${limits.frozenStarts} starts in a row, shortly after recovering this`;
    expect(await through(sql, [9], FROZEN)).toBe(why);
    expect(notes(sql)).toEqual([{ work: 'run 1', lives: JSON.stringify(FROZEN), aside: 1 }]);
    // It stays quarantined when no note counts any more.
    expect(await through(sql, [10], [])).toBe(why.replace('froze', 'ended'));
    expect(notes(sql)).toMatchObject([{ lives: JSON.stringify(FROZEN) }]);
  });

  test('is not reached by a life that froze twice', async () => {
    const sql = openNodeSql();
    expect(await through(sql, [1, 2, 2, 2, 2], [1, 2])).toBeNull();
  });

  test('is reached after a number of recoveries, whether or not its hosts froze', async () => {
    const sql = openNodeSql();
    const lives = Array.from({ length: limits.recoveries }, (_, at) => at + 1);
    expect(await through(sql, lives, [])).toBeNull();
    expect(await through(sql, [99], [])).toBe(
      `the host ended at ${limits.recoveries} starts in a row, shortly after recovering this`,
    );
  });

  test('is reached after a number of ends of unsupervised hosts', async () => {
    const sql = openNodeSql();
    expect(
      await through(
        sql,
        FROZEN.map(() => null),
        [],
      ),
    ).toBeNull();
    expect(notes(sql)).toMatchObject([{ lives: JSON.stringify(FROZEN.map(() => 0)) }]);
    expect(await through(sql, [null], [])).toBe(
      `the host ended at ${limits.frozenStarts} starts in a row, shortly after recovering this`,
    );
  });

  test('resumes after it is forgiven, by the beginning of its name', async () => {
    const sql = openNodeSql();
    queueOf(openNodeSql()).forgive('feed ');
    for (const life of [...FROZEN, 8]) {
      for (const work of ['feed a', 'feed b', 'run 1']) await queueOf(sql, { life, frozen: FROZEN }).take(work);
    }
    await queueOf(sql).take('feed c');
    queueOf(sql).forgive('feed ');
    expect(notes(sql)).toMatchObject([
      { work: 'feed c', aside: 0 },
      { work: 'run 1', aside: 1 },
    ]);
    expect(await queueOf(sql, { life: 9, frozen: FROZEN }).take('feed a')).toBeNull();
  });
});
