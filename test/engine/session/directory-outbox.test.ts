/** Writes of a session to the directory of all sessions: lost hosts, failures, deletions (C6). */
import { beforeEach, describe, expect, test } from 'vitest';
import type { DirectoryEntry, DirectoryRecord } from '../../../src/domain/directory.ts';
import type { ExecutionEntry, ListedRuns, UnlistedRuns } from '../../../src/domain/execution.ts';
import { limits } from '../../../src/domain/limits.ts';
import { DirectoryOutbox } from '../../../src/engine/session/directory-outbox.ts';
import type { DirectoryNote } from '../../../src/engine/session/directory-outbox.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { settle } from '../../support/session-kit.ts';

const ID = `ses_${'1'.repeat(32)}`;
const ENTRY: DirectoryEntry = {
  session_id: ID,
  agent: 'assistant',
  user_id: null,
  title: null,
  status: 'idle',
  created_at: 1,
  updated_at: 1,
  cost: null,
};

type Call = DirectoryRecord | { readonly forgotten: string };

/** Storage that outlives its hosts. */
class Notes {
  values = new Map<string, string>();

  get = <T>(key: string): T | undefined => {
    const text = this.values.get(key);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  };
  put = (key: string, value: unknown): void => void this.values.set(key, JSON.stringify(value));
  delete = (key: string): void => void this.values.delete(key);
  list = <T>({ prefix }: { readonly prefix: string }): [string, T][] =>
    [...this.values].filter(([key]) => key.startsWith(prefix)).map(([key, text]) => [key, JSON.parse(text) as T]);

  replace(notes: readonly DirectoryNote[]): void {
    this.values.clear();
    for (const [key, value] of notes) this.put(key, value);
  }
}

let clock: VirtualClock;
let notes: Notes;
let calls: Call[];
/** How the index answers; default: at once. */
let answer: () => Promise<void>;
let current: DirectoryEntry | null;
let incarnation: string;
let isNew: boolean;
/** Runs by number: the status of each one that has ended or waits. */
let runs: Map<number, string>;
let outbox: DirectoryOutbox;

const runEntry = (run: number, status: string): ExecutionEntry => ({
  execution_id: `run_${'1'.repeat(32)}_${run}`,
  session_id: ID,
  run_id: `run_${'1'.repeat(32)}_${run}`,
  kind: 'chat',
  agent: 'assistant',
  status,
  error: null,
  started_at: run,
  ended_at: run,
});

/** As run-listing.ts, of runs that end in order. */
const listing = (known: ListedRuns | null): UnlistedRuns => {
  const listed = known ?? { through: 0, open: [] };
  const isNew = (run: number): boolean =>
    run > listed.through || (listed.open.some(([one]) => one === run) && runs.get(run) !== 'waiting');
  const found = [...runs].filter(([run]) => isNew(run));
  return {
    entries: found.map(([run, status]) => runEntry(run, status)),
    listed: {
      through: runs.size,
      open: [...runs].flatMap(([run, status]) => (status === 'waiting' ? [[run, true]] : [])),
    },
  };
};

/** The next host of the same object, or the same host with another session. */
function open(): DirectoryOutbox {
  return (outbox = new DirectoryOutbox({
    storage: notes,
    current: () =>
      current && { whose: { owner: 'ann', session_id: ID, incarnation }, entry: current, isNew, runs: listing },
    index: (owner, id) => {
      expect([owner, id]).toEqual(['ann', ID]);
      const call = async (made: Call): Promise<void> => {
        calls.push(made);
        await answer();
      };
      return {
        write: (record) => call(record),
        forget: (_id, forgotten) => call({ forgotten }),
      };
    },
    clock,
  }));
}

beforeEach(() => {
  clock = new VirtualClock();
  notes = new Notes();
  calls = [];
  answer = async () => undefined;
  current = ENTRY;
  incarnation = 'i1';
  isNew = false;
  runs = new Map();
  open();
});

const change = (given: Partial<DirectoryEntry>): void => void (current = { ...ENTRY, ...current, ...given });
const away = (): Promise<void> => Promise.reject(new Error('the index is away'));
const written = (): unknown[] => calls.map((call) => ('entry' in call ? [call.number, call.entry?.title] : call));

describe('[C6] the outbox', () => {
  test('writes a session once, and again after each change', async () => {
    expect(outbox.isBehind).toBe(true);
    await outbox.update();
    expect(calls).toEqual([{ session_id: ID, incarnation: 'i1', number: 1, entry: ENTRY, runs: [] }]);
    expect([outbox.isBehind, outbox.dueAt, outbox.update()]).toEqual([false, null, null]);
    change({ title: 'Hello' });
    await outbox.update();
    await outbox.update();
    expect(written()).toEqual([
      [1, null],
      [2, 'Hello'],
    ]);
  });

  test('writes nothing about a session that is not listed', () => {
    current = null;
    expect([outbox.isBehind, outbox.dueAt, outbox.update(), outbox.close()]).toEqual([false, null, null, []]);
  });

  test('has one write under way, and then writes the newest state only', async () => {
    const first = Promise.withResolvers<void>();
    answer = () => first.promise;
    const done = outbox.update();
    for (const title of ['a', 'b', 'c']) {
      change({ title });
      expect(outbox.update()).toBeNull();
    }
    await settle();
    expect(written()).toEqual([[1, null]]);
    first.resolve();
    await done;
    expect(written()).toEqual([
      [1, null],
      [2, 'c'],
    ]);
  });

  test('waits a little while the session is running: a short run costs one write', async () => {
    await outbox.update();
    change({ status: 'running', title: 'Hello' });
    const done = outbox.update();
    clock.advance(limits.directoryDelayMs - 1);
    await settle();
    expect(calls).toHaveLength(1);
    change({ status: 'idle', updated_at: 2 });
    expect(outbox.update()).toBeNull();
    await done;
    expect(calls.slice(1)).toEqual([{ session_id: ID, incarnation: 'i1', number: 2, entry: current, runs: [] }]);
    expect(clock.next).toBeNull();
  });

  test('writes that a session is running, if the run takes longer', async () => {
    change({ status: 'running' });
    const done = outbox.update();
    clock.advance(limits.directoryDelayMs);
    await done;
    expect(calls).toMatchObject([{ entry: { status: 'running' } }]);
  });

  test('waits a little for the first run of a new session: with a short one, it costs one write', async () => {
    isNew = true;
    const done = outbox.update();
    // In the turn in which the session is created: with the session, it is one commit.
    expect(notes.values.size).toBe(1);
    clock.advance(limits.directoryDelayMs - 1);
    await settle();
    expect(calls).toEqual([]);
    isNew = false;
    change({ status: 'running' });
    expect(outbox.update()).toBeNull();
    const stored: unknown[] = [];
    const put = notes.put;
    notes.put = (key, value) => (stored.push(value), put(key, value));
    change({ status: 'idle', title: 'Hello' });
    expect(outbox.update()).toBeNull();
    await done;
    expect(written()).toEqual([[1, 'Hello']]);
    expect(stored).toMatchObject([{ number: 1, entry: JSON.stringify(current) }]);
    expect([outbox.isBehind, clock.next]).toEqual([false, null]);
    change({ title: 'Again' });
    await outbox.update();
    expect(written()).toEqual([
      [1, 'Hello'],
      [2, 'Again'],
    ]);
  });

  test('writes a new session that gets no message', async () => {
    isNew = true;
    const done = outbox.update();
    await settle();
    expect(calls).toEqual([]);
    clock.advance(limits.directoryDelayMs);
    await done;
    expect(written()).toEqual([[1, null]]);
    expect([outbox.isBehind, clock.next]).toEqual([false, null]);
  });

  test('does not write a state that the index has already', async () => {
    await outbox.update();
    change({ status: 'running' });
    const done = outbox.update();
    change({ status: 'idle' });
    outbox.update();
    await done;
    expect(calls).toHaveLength(1);
  });

  test('a change in the turn of the last answer is written, too', async () => {
    answer = async () => {
      answer = async () => undefined;
      await Promise.resolve();
      queueMicrotask(() => {
        change({ title: 'late' });
        void outbox.update();
      });
    };
    await outbox.update();
    await settle();
    expect(outbox.isBehind).toBe(false);
    expect(written().at(-1)).toEqual([2, 'late']);
  });
});

describe('[Z2] runs', () => {
  const sent = (): unknown[] =>
    calls.map((call) =>
      'runs' in call ? [call.number, call.runs.map(({ run_id: id, status }) => [id.at(-1), status])] : call,
    );

  test('are in the write of their session, once, and again when they continue after a wait', async () => {
    runs.set(1, 'waiting');
    change({ status: 'waiting' });
    await outbox.update();
    expect(outbox.isBehind).toBe(false);
    runs.set(1, 'completed').set(2, 'failed');
    change({ status: 'idle' });
    await outbox.update();
    await open().update();
    expect(sent()).toEqual([
      [1, [['1', 'waiting']]],
      [
        2,
        [
          ['1', 'completed'],
          ['2', 'failed'],
        ],
      ],
    ]);
  });

  test('are written again by the next host, if their write had no answer', async () => {
    await outbox.update();
    runs.set(1, 'completed');
    change({ updated_at: 2 });
    answer = away;
    await expect(outbox.update()).rejects.toThrow('away');
    answer = async () => undefined;
    clock.advance(limits.directoryRetryMs);
    await open().update();
    expect(sent().slice(1)).toEqual([
      [2, [['1', 'completed']]],
      [3, [['1', 'completed']]],
    ]);
    expect(outbox.isBehind).toBe(false);
  });
});

describe('[C6] a host that is lost', () => {
  test('between its write and the note about it: the next one writes again, with a higher number', async () => {
    answer = () => new Promise(() => undefined);
    void outbox.update();
    await settle();
    answer = async () => undefined;
    expect(open().isBehind).toBe(true);
    await outbox.update();
    expect(written()).toEqual([
      [1, null],
      [2, null],
    ]);
    expect(outbox.isBehind).toBe(false);
  });

  test('before its write: nothing was sent, and the next one has the same number', async () => {
    const storage = notes.put;
    notes.put = () => {
      throw new Error('no storage');
    };
    await expect(outbox.update()).rejects.toThrow('no storage');
    notes.put = storage;
    expect(calls).toEqual([]);
    await open().update();
    expect(written()).toEqual([[1, null]]);
  });

  test('during the delay of a new session: the next one writes it, with a higher number', async () => {
    isNew = true;
    void outbox.update();
    clock = new VirtualClock();
    open();
    expect(outbox.dueAt).toBe(clock.now());
    const done = outbox.update();
    clock.advance(limits.directoryDelayMs);
    await done;
    expect(written()).toEqual([[2, null]]);
  });

  test('while the first write of a new session fails: the next one has a higher number', async () => {
    isNew = true;
    answer = away;
    const failed = outbox.update();
    clock.advance(limits.directoryDelayMs);
    await expect(failed).rejects.toThrow('the index is away');
    answer = async () => undefined;
    clock.advance(limits.directoryRetryMostMs);
    const done = outbox.update();
    clock.advance(limits.directoryDelayMs);
    await done;
    expect(written()).toEqual([
      [1, null],
      [2, null],
    ]);
  });

  test('during the delay: the alarm of the next one writes', async () => {
    change({ status: 'running' });
    void outbox.update();
    change({ status: 'idle' });
    open();
    expect(outbox.dueAt).toBe(clock.now());
    await outbox.update();
    expect(calls).toHaveLength(1);
  });
});

describe('[C6] an index that is away', () => {
  beforeEach(() => {
    answer = away;
  });

  test('is asked again with growing pauses, also by later hosts, and by no timer', async () => {
    const pauses: number[] = [];
    for (let failures = 1; failures <= 14; failures += 1) {
      await expect(outbox.update()).rejects.toThrow('away');
      pauses.push((outbox.dueAt ?? 0) - clock.now());
      expect([outbox.update(), clock.next]).toEqual([null, null]);
      clock.advance((outbox.dueAt ?? 0) - clock.now() - 1);
      expect(outbox.update()).toBeNull();
      clock.advance(1);
      if (failures % 3 === 0) open();
    }
    expect(pauses.slice(0, 4)).toEqual([1, 2, 4, 8].map((times) => times * limits.directoryRetryMs));
    expect(pauses.slice(-3)).toEqual(Array.from({ length: 3 }, () => limits.directoryRetryMostMs));
  });

  test('gets a write whose answer is lost again, also if the session is as it was before that write', async () => {
    answer = async () => undefined;
    await outbox.update();
    change({ status: 'waiting' });
    answer = away;
    await expect(outbox.update()).rejects.toThrow('away');
    change({ status: 'idle' });
    expect([outbox.isBehind, open().isBehind]).toEqual([true, true]);
    answer = async () => undefined;
    clock.advance((outbox.dueAt ?? 0) - clock.now());
    await outbox.update();
    expect(calls.map((call) => 'entry' in call && [call.number, call.entry?.status])).toEqual([
      [1, 'idle'],
      [2, 'waiting'],
      [3, 'idle'],
    ]);
  });

  test('has failed if it does not answer in time; what it does later changes nothing', async () => {
    const late = Promise.withResolvers<void>();
    answer = () => late.promise;
    const done = outbox.update();
    await settle();
    clock.advance(limits.directoryTimeoutMs);
    await expect(done).rejects.toMatchObject({ code: 'directory_unavailable' });
    expect([outbox.dueAt, clock.next]).toEqual([clock.now() + limits.directoryRetryMs, null]);
    answer = async () => undefined;
    change({ title: 'Hello' });
    clock.advance(limits.directoryRetryMs);
    await outbox.update();
    late.resolve();
    await settle();
    expect([written(), outbox.isBehind]).toEqual([
      [
        [1, null],
        [2, 'Hello'],
      ],
      false,
    ]);
  });

  test('has failed to forget a session if it does not answer in time', async () => {
    answer = async () => undefined;
    await outbox.update();
    notes.replace(outbox.close());
    current = null;
    answer = () => new Promise(() => undefined);
    const done = open().update();
    await settle();
    clock.advance(limits.directoryTimeoutMs);
    await expect(done).rejects.toMatchObject({ code: 'directory_unavailable' });
    expect([outbox.hasUnlisted, clock.next]).toEqual([true, null]);
  });

  test('gets the newest state when it is back, and the next failure begins with the shortest pause', async () => {
    for (const title of ['a', 'b', 'c']) {
      change({ title });
      await outbox.update()?.catch(() => undefined);
      clock.advance((outbox.dueAt ?? 0) - clock.now());
    }
    calls = [];
    answer = async () => undefined;
    await outbox.update();
    expect(written()).toEqual([[4, 'c']]);
    answer = away;
    change({ title: 'd' });
    await expect(outbox.update()).rejects.toThrow('away');
    expect((outbox.dueAt ?? 0) - clock.now()).toBe(limits.directoryRetryMs);
  });
});

describe('[C6] a deleted session', () => {
  /** The deletion of the session, as its object does it. */
  const remove = (): void => {
    notes.replace(outbox.close());
    current = null;
    open();
  };

  test('leaves a note until the index has forgotten it', async () => {
    await outbox.update();
    answer = away;
    remove();
    expect([outbox.isBehind, outbox.hasUnlisted, outbox.dueAt]).toEqual([true, true, clock.now()]);
    await expect(outbox.update()).rejects.toThrow('away');
    open();
    clock.advance((outbox.dueAt ?? 0) - clock.now());
    answer = async () => undefined;
    await outbox.update();
    expect(calls.at(-1)).toEqual({ forgotten: 'i1' });
    expect([outbox.isBehind, outbox.hasUnlisted, [...notes.values]]).toEqual([false, false, []]);
  });

  test('is forgotten also if the answer to its only write was lost', async () => {
    answer = away;
    await expect(outbox.update()).rejects.toThrow('away');
    remove();
    answer = async () => undefined;
    clock.advance((outbox.dueAt ?? 0) - clock.now());
    await outbox.update();
    expect(calls.slice(1)).toEqual([{ forgotten: 'i1' }]);
  });

  test('while a write of it is under way: its answer stores nothing', async () => {
    const sent = Promise.withResolvers<void>();
    answer = () => sent.promise;
    const done = outbox.update();
    await settle();
    remove();
    const before = [...notes.values];
    sent.resolve();
    await done;
    expect([...notes.values]).toEqual(before);
    answer = async () => undefined;
    await outbox.update();
    expect(calls.at(-1)).toEqual({ forgotten: 'i1' });
  });

  test('while it waits to be written: it holds no timer and is not written', async () => {
    change({ status: 'running' });
    const done = outbox.update();
    remove();
    await done;
    expect([calls, clock.next]).toEqual([[], null]);
  });

  test('that is new and was not written yet leaves no note, and no timer', async () => {
    isNew = true;
    const done = outbox.update();
    expect(notes.values.size).toBe(1);
    expect(outbox.close()).toEqual([]);
    current = null;
    await done;
    expect([calls, clock.next]).toEqual([[], null]);
  });

  test('that is made again under the same id is forgotten before the new one is written', async () => {
    await outbox.update();
    answer = away;
    for (const next of ['i2', 'i3']) {
      remove();
      incarnation = next;
      current = { ...ENTRY, title: next };
      await outbox.update()?.catch(() => undefined);
      clock.advance(limits.directoryRetryMostMs);
    }
    calls = [];
    answer = async () => undefined;
    await outbox.update();
    // The second one was never written.
    expect(calls).toEqual([
      { forgotten: 'i1' },
      { session_id: ID, runs: [], incarnation: 'i3', number: 1, entry: current },
    ]);
    expect(outbox.isBehind).toBe(false);
  });

  test('a deletion that failed leaves the session as it was', async () => {
    await outbox.update();
    outbox.close();
    expect([outbox.isBehind, outbox.update()]).toEqual([false, null]);
    open();
    expect(outbox.isBehind).toBe(false);
    change({ title: 'still here' });
    await outbox.update();
    expect(written().at(-1)).toEqual([2, 'still here']);
  });
});
