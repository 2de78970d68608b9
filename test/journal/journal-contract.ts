/** The contract of every database behind the journal: runs on node:sqlite and on a real Durable Object. */
import { describe, expect, test } from 'vitest';
import type { JournalEntry, SessionEvent } from '../../src/domain/event.ts';
import { encodeEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SqlDatabase } from '../../src/domain/ports/storage.ts';
import { utf8Length } from '../../src/domain/utf8.ts';
import { Journal } from '../../src/journal/journal.ts';
import type { SeededMessage } from '../../src/domain/seeded.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import { runIdOf } from '../../src/journal/run-id.ts';
import { readSchema, upgradeSchema } from '../../src/journal/schema.ts';
import { anyData, membersOf } from '../support/events.ts';
import { newJournal, SESSION_ID, SESSION_RECORD, withStatements } from './journal-kit.ts';

/** A record with every field. */
const RECORD: SessionRecord = { ...SESSION_RECORD, user_id: 'u1', metadata: { from: 'test' } };
const RUN_ID = runIdOf({ session_id: SESSION_ID }, 1);

function entry(data: JsonObject, more: Partial<JournalEntry> = {}): JournalEntry {
  return { type: 'warning', runId: RUN_ID, iteration: 1, at: 5, data: anyData(data), ...more };
}

function outcome(data: JsonObject, more: Partial<JournalEntry> = {}): JournalEntry {
  return { ...entry(data, more), type: 'action_completed' } as JournalEntry;
}

/** Of the first run, and the action `a1`. */
function isQueued(event: SessionEvent): boolean {
  return event.type === 'action_queued' && event.action_id === 'a1' && (event.seq ?? 0) <= 100;
}

/** `withDb` gives the body an empty database; `reopen` gives it as a new instance of the object sees it. */
export function journalContract(withDb: (body: (db: SqlDatabase) => Promise<void> | void) => Promise<void>): void {
  test('[J4] events are numbered from 1 without a gap, across instances too', () =>
    withDb(async (db) => {
      const journal = newJournal(db, RECORD);
      expect([1, 2].map((n) => journal.append(entry({ n })).seq)).toEqual([1, 2]);
      await journal.sync();
      const next = new Journal(db);
      expect(next.record).toEqual(RECORD);
      expect(next.append(entry({ n: 3 })).seq).toBe(3);
      expect(next.range({ after: 0, limit: 10 }).map(({ event }) => event.seq)).toEqual([1, 2, 3]);
    }));

  test('[J6] the database reports its size', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      const before = db.sizeBytes();
      journal.append(entry({ text: 'x'.repeat(2_000_000) }));
      journal.append(entry({}));
      expect(journal.range({ after: 0, limit: 2 })).toHaveLength(2);
      expect(db.sizeBytes()).toBeGreaterThan(before + 1_900_000);
      expect(db.sizeBytes()).toBeLessThan(before + 6_100_000);
      expect(journal.full).toBe(false);
    }));

  test('[J1] [J6] each statement that fails leaves all of a turn, or nothing; what is in memory follows', () =>
    withDb((db) => {
      let left = Infinity;
      const failing = withStatements(db, (statement) => {
        if (/^\s*SELECT/i.test(statement)) return;
        left -= 1;
        if (left === 0) throw new Error('disk full');
      });
      const journal = newJournal(failing, RECORD);
      const long = 'x'.repeat(limits.rowBytes);
      const written = (): number[] => new Journal(db).range({ after: 0, limit: 99 }).map(({ event }) => event.seq ?? 0);
      // Its tables exist.
      journal.variables.set('x', 1);
      let failures = 0;
      for (let nth = 1; nth < 20; nth += 1) {
        const before = written().length;
        let isKnown = false;
        left = nth;
        const turn = (): void => {
          journal.append(entry({ first: nth }));
          journal.atomically(() => {
            journal.append(entry({ long }, { state: { long } }));
            journal.outcomes.remember({ key: `k${nth}`, content: 'c', seq: journal.lastSeq, at: 1, expiresAt: null });
            journal.whenWritten(() => (isKnown = true));
            journal.append(entry({ n: 1 }));
          });
        };
        let hasFailed = false;
        try {
          turn();
        } catch {
          hasFailed = true;
          failures += 1;
        }
        // The event before is written by itself.
        expect(written()).toHaveLength(before + (hasFailed ? 1 : 3));
        expect(written()).toEqual(written().map((_, at) => at + 1));
        expect(journal.lastSeq).toBe(written().length);
        expect(new Journal(db).outcomes.get(`k${nth}`) !== null).toBe(!hasFailed);
        expect(isKnown).toBe(!hasFailed);
        const parts = `SELECT COUNT(*) AS n FROM chunks WHERE seq > ${journal.lastSeq}`;
        expect(db.exec(parts)[0]?.['n']).toBe(0);
      }
      expect(failures).toBeGreaterThan(3);
    }));

  test('[J6] the events of a turn share rows, and are read as if each had its own', () =>
    withDb(async (db) => {
      const journal = newJournal(db, RECORD);
      const kinds = ['iteration_started', 'action_queued', 'action_started', 'action_completed', 'warning'] as const;
      const long = 'é'.repeat(limits.inlineBytes);
      const huge = 'x'.repeat(limits.rowBytes);
      const entries = Array.from({ length: 200 }, (_, n): JournalEntry => {
        const type = kinds[n % kinds.length] ?? 'warning';
        const text = n % 50 === 11 ? long : n === 77 ? huge : `a\u0000b\ud800 🎈 "${n}" \\`;
        const about = n % 3 === 0 ? {} : { actionId: `a${n % 4}`, actionName: 'écho "x"', state: { key: `1/${n}` } };
        const runId = runIdOf({ session_id: SESSION_ID }, n < 100 ? 1 : 2);
        return {
          ...entry({ z: n + 0.5, n, text, deep: { list: [null, true, ''] } }, { ...about, at: n, iteration: n, runId }),
          type,
        } as JournalEntry;
      });
      const sent = entries.map((each) => journal.append(each));
      await journal.sync();
      expect(Number(db.exec(`SELECT COUNT(*) AS rows FROM events`)[0]?.['rows'])).toBeLessThan(65);
      const read = new Journal(db);
      expect(read.lastSeq).toBe(200);
      const stored = read.range({ after: 0, limit: 300 });
      expect(stored.map(({ event }) => encodeEvent(event))).toEqual(sent.map(encodeEvent));
      expect(stored.map(({ state }) => state)).toEqual(entries.map(({ state }) => state ?? null));
      const seqsOf = (found: readonly SessionEvent[]): unknown[] => found.map(({ seq }) => seq);
      for (const { seq } of sent) {
        const one = seq ?? 0;
        expect(encodeEvent(read.event(one) as SessionEvent)).toBe(encodeEvent(sent[one - 1] as SessionEvent));
        expect(read.dataBytes(one)).toBe(utf8Length(JSON.stringify(entries[one - 1]?.data)));
        expect(read.stateAt(one)).toEqual(entries[one - 1]?.state ?? null);
        expect(seqsOf(read.range({ after: one, limit: 2 }).map(({ event }) => event))).toEqual(
          [one + 1, one + 2].filter((next) => next <= 200),
        );
        expect(seqsOf(read.between(one - 1, one + 3))).toEqual([one, one + 1, one + 2].filter((next) => next <= 200));
        const two = read.slice({
          run: one < 100 ? 1 : 2,
          after: one - 1,
          until: one,
          only: ['action_queued', 'warning'],
        });
        const isFound = one !== 100 && [2, 0].includes(one % 5);
        expect([seqsOf(two.found), two.next]).toEqual([isFound ? [one] : [], one]);
      }
      expect(read.history.actionOf(1, 'a1')?.seq).toBe(sent.findLast(isQueued)?.seq);
    }));

  test('[J4] a failed write leaves no gap in the numbers', () =>
    withDb(async (db) => {
      let full = false;
      const watched = withStatements(db, (sql) => {
        if (full && sql.startsWith('INSERT')) throw new Error('the disk is full');
      });
      const journal = newJournal(watched, RECORD);
      journal.append(entry({ n: 1 }));
      await journal.sync();
      full = true;
      for (let n = 2; n < 5; n += 1) journal.append(entry({ n }));
      await expect(journal.sync()).rejects.toThrow('the disk is full');
      expect(journal.lastSeq).toBe(1);
      full = false;
      expect(journal.append(entry({ n: 5 })).seq).toBe(2);
      await journal.sync();
      expect(new Journal(db).range({ after: 0, limit: 9 }).map(({ event }) => membersOf(event)['n'])).toEqual([1, 5]);
    }));

  test('[J6] an event never reuses the long values of a failed write', () =>
    withDb(async (db) => {
      let full = false;
      const watched = withStatements(db, (sql) => {
        if (full && sql.startsWith('INSERT INTO events')) throw new Error('the disk is full');
      });
      const journal = newJournal(watched, RECORD);
      const long = 'x'.repeat(limits.rowBytes);
      full = true;
      journal.append(entry({ long }, { state: { long } }));
      await expect(journal.sync()).rejects.toThrow('the disk is full');
      full = false;
      journal.append(entry({ long: 'no' }));
      await journal.sync();
      journal.append(entry({ long }));
      await journal.sync();
      const stored = new Journal(db).range({ after: 0, limit: 9 });
      expect(stored.map(({ event, state }) => [event.seq, membersOf(event)['long'], state])).toEqual([
        [1, 'no', null],
        [2, long, null],
      ]);
    }));

  test('[C1] a failed write of an event leaves the long messages of the seeded history', () =>
    withDb(async (db) => {
      let full = false;
      const watched = withStatements(db, (sql) => {
        if (full && sql.startsWith('INSERT INTO events')) throw new Error('the disk is full');
      });
      const journal = new Journal(watched);
      const long = 'x'.repeat(limits.rowBytes);
      journal.create(RECORD, () => journal.seeded.write([{ role: 'user', content: long }]));
      await journal.sync();
      full = true;
      journal.append(entry({ n: 1 }));
      await expect(journal.sync()).rejects.toThrow('the disk is full');
      expect(new Journal(db).seeded.get(1).message).toEqual({ role: 'user', content: long });
    }));

  test('[J6] a value larger than a row is restored completely, and no surrogate pair is split', () =>
    withDb(async (db) => {
      const journal = newJournal(db, RECORD);
      const text = `x${'🎈'.repeat(Math.ceil(limits.rowBytes / 2))}`;
      journal.append(entry({ text }, { state: { copy: text } }));
      await journal.sync();
      const [stored] = new Journal(db).range({ after: 0, limit: 1 });
      expect(membersOf(stored?.event)['text']).toBe(text);
      expect(stored?.state?.['copy']).toBe(text);
      const longest = db.exec(`SELECT MAX(LENGTH(CAST(text AS BLOB))) AS bytes FROM chunks`)[0]?.['bytes'];
      expect(Number(longest)).toBeLessThanOrEqual(limits.rowBytes);
    }));

  test('[J4] [J6] pages for readers are limited in number and size, and contain the events as sent', () =>
    withDb(async (db) => {
      const journal = newJournal(db, RECORD);
      const sizes = [10, limits.inlineBytes + 1, limits.readerPageBytes, 10, limits.rowBytes * 2, 10];
      const sent = sizes.map((size) => journal.append(entry({ text: 'é'.repeat(size) }, { state: { s: 'x' } })));
      for (let n = 0; n < limits.pageRows * 2; n += 1) sent.push(journal.append(outcome({ n })));
      await journal.sync();
      const pages: SessionEvent[][] = [];
      for (let after = 0; ; after = pages.at(-1)?.at(-1)?.seq ?? 0) {
        const page = new Journal(db).page(after);
        if (page.length === 0) break;
        pages.push(page);
      }
      expect(pages.flat().map(encodeEvent)).toEqual(sent.map(encodeEvent));
      expect(pages.map(({ length }) => length)).toEqual([3, 2, limits.pageRows + 1, limits.pageRows]);
    }));

  test('[J3] runs are numbered, found by id and idempotency key, and listed while unfinished', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      const first = journal.runs.create({ content: 'hello' }, 10, 'running', 'key-1');
      expect(first).toMatchObject({
        run: 1,
        runId: RUN_ID,
        status: 'running',
        firstSeq: 1,
        input: { content: 'hello' },
      });
      journal.append(entry({}));
      journal.runs.end(1, 'completed', 20, false);
      const second = journal.runs.create({ content: 'again' }, 30, 'queued');
      expect(new Journal(db).runs.open().map(({ run }) => run)).toEqual([second.run]);
      journal.runs.end(2, 'completed', 40, true);
      expect(new Journal(db).runs.open().map(({ run }) => run)).toEqual([second.run]);
      journal.runs.close(2);
      expect(new Journal(db).runs.open()).toEqual([]);
      expect(journal.runs.byIdempotencyKey('key-1')?.run).toBe(1);
      expect(journal.runs.byIdempotencyKey('key-2')).toBeNull();
      expect([...journal.eventsOf(journal.runs.require(1))]).toHaveLength(1);
    }));

  test('[J6] [J9] inputs that no event contains are read in order, each with the event that preceded it', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      journal.runs.create({ content: 'hello' }, 10, 'running');
      journal.append(entry({}));
      journal.runs.addInputs(1, [{ is: 'text', text: 'a' }]);
      journal.runs.addInputs(2, [{ is: 'text', text: 'of another run' }]);
      journal.append(entry({}));
      journal.runs.addInputs(1, [{ is: 'text', text: 'b' }]);
      expect(new Journal(db).runs.looseInputs(1)).toEqual([
        { afterSeq: 1, inputs: [{ is: 'text', text: 'a' }] },
        { afterSeq: 2, inputs: [{ is: 'text', text: 'b' }] },
      ]);
    }));

  test('[P6] a cached outcome is stored by key, and its result is read from the journal', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      const seqs = ['first', 'second'].map(
        (output) => journal.append(entry({ output }, { type: 'action_completed', actionId: 'a' })).seq ?? 0,
      );
      const kept = (seq: number | undefined, expiresAt: number | null) => ({
        key: 'k',
        content: 'c',
        seq: seq ?? 0,
        at: 5,
        expiresAt,
      });
      expect(journal.outcomes.get('k')).toBeNull();
      journal.outcomes.remember(kept(seqs[0], 100));
      expect(new Journal(db).outcomes.get('k')).toEqual({ ...kept(seqs[0], 100), output: 'first' });
      journal.outcomes.remember(kept(seqs[1], null));
      expect(new Journal(db).outcomes.get('k')).toEqual({ ...kept(seqs[1], null), output: 'second' });
    }));

  test('[P6] expired outcomes are removed first, then the oldest; idempotency keys have their own limit', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      const { seq } = journal.append(entry({ output: 1 }, { type: 'action_completed' }));
      const remember = (key: string, order: number, expiresAt: number | null): void =>
        journal.outcomes.remember({ key, content: 'c', seq: order, at: 1_000, expiresAt });
      const count = (): unknown => db.exec(`SELECT COUNT(*) AS n FROM outcomes`)[0]?.['n'];
      remember('lasts', seq ?? 0, null);
      for (let n = 0; n < 100; n += 1) remember(`old${n}`, n, 999);
      for (let n = 0; n < limits.cachedOutcomes - 100; n += 1) remember(`c${n}`, 100 + n, 2_000);
      expect(count()).toBe(limits.cachedOutcomes + 1);
      remember('one more', 5_000, 2_000);
      expect(count()).toBe(limits.cachedOutcomes - 100 + 2);
      for (let n = 0; n < 100; n += 1) remember(`d${n}`, 6_000 + n, 2_000);
      expect(Number(count())).toBeLessThanOrEqual(limits.cachedOutcomes + 1);
      const keys = new Set(db.exec(`SELECT key FROM outcomes`).map((row) => row['key']));
      expect(keys.has('lasts')).toBe(true);
      expect(keys.has('d99')).toBe(true);
      expect(keys.has('c0')).toBe(false);
    }));

  test('[S5] durations are returned in the order of the actions; an action without a target is ignored', () =>
    withDb(async (db) => {
      const journal = newJournal(db, RECORD);
      const done = (state: JsonObject): void =>
        void journal.append(entry({ output: null }, { type: 'action_completed', state }));
      for (let ms = 0; ms < limits.durationsRead + 2; ms += 1) done({ key: '1/0', target: 'tool/x', ms });
      done({ key: '1/1' });
      await journal.sync();
      const seen = new Journal(db).history.durations();
      expect(seen).toHaveLength(limits.durationsRead);
      expect(seen[0]).toEqual({ target: 'tool/x', ms: 2 });
      expect(seen.at(-1)).toEqual({ target: 'tool/x', ms: limits.durationsRead + 1 });
    }));

  test('C6: the cost of a session is that of its runs at their last end; null while no price is known', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      for (let run = 1; run <= 3; run += 1) journal.runs.create({}, run, 'running');
      expect(journal.runs.cost).toBeNull();
      journal.runs.end(1, 'completed', 5, false);
      expect(journal.runs.cost).toBeNull();
      journal.runs.end(2, 'waiting', 6, true, 0.25);
      expect([journal.runs.cost, new Journal(db).runs.cost]).toEqual([0.25, 0.25]);
      journal.runs.end(2, 'completed', 7, false, 0.75);
      journal.runs.end(3, 'completed', 8, false, 0.5);
      // Ended from outside: what was spent before is not forgotten.
      journal.runs.end(3, 'failed', 9, false);
      expect([journal.runs.cost, new Journal(db).runs.cost]).toEqual([1.25, 1.25]);
      // A later run has the sum from the beginning, and earlier ones may cost more after its end.
      journal.runs.create({}, 10, 'running');
      journal.runs.end(2, 'completed', 11, false, 1);
      journal.runs.end(4, 'completed', 12, false, 0.1);
      expect([journal.runs.cost, new Journal(db).runs.cost]).toEqual([1.6, 1.6]);
      expect([1, 2, 3, 4].map((run) => journal.runs.costWithout(run))).toEqual([1.6, 0.6, 1.1, 1.5]);
    }));

  test('[J9] a session that a version before schema 1 has stored is refused, without a write', () =>
    withDb((db) => {
      newJournal(db, RECORD).variables.set('x', 1);
      db.exec(`DROP TABLE schema`);
      db.exec(`CREATE TABLE schema_version (version INTEGER NOT NULL)`);
      const stored = db.exec(`SELECT name, sql FROM sqlite_master ORDER BY name`);
      expect(() => new Journal(db)).toThrow(
        expect.objectContaining({
          code: 'schema_too_old',
          message: expect.stringMatching(/state folder.*Worker name/),
        }),
      );
      expect(db.exec(`SELECT name, sql FROM sqlite_master ORDER BY name`)).toEqual(stored);
    }));

  const upgrades = [`CREATE TABLE second (n INTEGER)`, `ALTER TABLE second ADD COLUMN more TEXT`];
  const upgraded = (db: SqlDatabase): unknown[] => [
    readSchema(db, upgrades)?.version,
    ...db.exec(`SELECT name FROM pragma_table_info('second')`).map(({ name }) => name),
  ];

  test('[J9] an upgrade runs each later script once, and completely or not at all', () =>
    withDb((db) => {
      newJournal(db, RECORD).variables.set('x', 1);
      expect(() => upgradeSchema(db, 1, [...upgrades, 'ALTER TABLE missing ADD COLUMN x'])).toThrow('missing');
      expect(upgraded(db)).toEqual([1]);
      expect([upgradeSchema(db, 1, upgrades.slice(0, 1)), upgraded(db)]).toEqual([true, [2, 'n']]);
      expect([upgradeSchema(db, 2, upgrades), upgraded(db)]).toEqual([true, [3, 'n', 'more']]);
      expect([upgradeSchema(db, 3, upgrades), upgraded(db)]).toEqual([false, [3, 'n', 'more']]);
    }));

  test('[J9] a new database has the newest schema at once', () =>
    withDb((db) => {
      expect([upgradeSchema(db, 0, upgrades), upgraded(db)]).toEqual([true, [3, 'n', 'more']]);
    }));

  test('[J6] a table that is created on first use is created again if that was undone', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      journal.append(entry({}));
      const fail = (): void => {
        journal.summaries.add({ seq: 1, untilRun: 0, turns: 1 });
        throw new Error('undone');
      };
      expect(() => journal.atomically(fail)).toThrow('undone');
      expect(journal.summaries.latest(0, 9)).toBeNull();
      journal.summaries.add({ seq: 1, untilRun: 0, turns: 1 });
      for (const each of [journal, new Journal(db)]) expect(each.summaries.latest(0, 9)).toMatchObject({ turns: 1 });
    }));

  test('[C1] a seeded history is read newest first, and in whole turns within a size', () =>
    withDb((db) => {
      const long = 'é'.repeat(limits.rowBytes);
      const history: SeededMessage[] = [
        { role: 'assistant', content: 'hello' },
        ...Array.from({ length: 150 }, (_, at): SeededMessage => ({ role: 'user', content: `message ${at}` })),
        { role: 'assistant', content: long },
        { role: 'user', content: 'last' },
        { role: 'assistant', content: null, tool_calls: [] },
        { role: 'tool', tool_call_id: 'a', content: long },
      ];
      const journal = new Journal(db);
      journal.create(RECORD, () => journal.seeded.write(history));
      const { seeded } = new Journal(db);
      expect(seeded.count).toBe(history.length);
      const all = [...seeded.newestFirst()];
      expect(all.map(({ message }) => message)).toEqual(history.toReversed());
      expect(all.map(({ id }) => id)).toEqual(history.map((_, at) => history.length - at));
      expect([...seeded.newestFirst(3)].map(({ id }) => id)).toEqual([2, 1]);
      // The result counts as the part that is read.
      const last = seeded.latestTurns(200, limits.historyResultChars + 1_000);
      const cut = { role: 'tool', tool_call_id: 'a', content: long.slice(0, limits.historyResultChars) };
      expect(last.turns).toEqual([[...history.slice(-3, -1), cut]]);
      expect(last.bytes).toBeLessThanOrEqual(limits.historyResultChars + 1_000);
      expect(seeded.latestTurns(3, Infinity).turns.map(([first]) => first?.content)).toEqual([
        'message 148',
        'message 149',
        'last',
      ]);
      expect(seeded.latestTurns(1_000, Infinity).turns.map((turn) => turn.length)).toEqual([
        1,
        ...Array.from({ length: 149 }, () => 1),
        2,
        3,
      ]);
      expect(seeded.latestTurns(0, Infinity).turns).toEqual([]);
      expect(seeded.latestTurns(200, 10).turns).toEqual([]);
    }));

  describe('files of messages (C2)', () => {
    const about = { name: 'a.bin', mediaType: 'application/octet-stream' };
    const pattern = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => (at * 31) % 251);

    test('C2: a file of several rows comes back with the same bytes, across instances too', () =>
      withDb(async (db) => {
        const bytes = pattern(2 * limits.rowBytes + 7);
        const journal = newJournal(db, RECORD);
        journal.blobs.put('a', bytes, about);
        journal.blobs.put('b', pattern(1));
        await journal.sync();
        const { blobs } = new Journal(db);
        const read = blobs.get('a');
        expect(read).toBeInstanceOf(Uint8Array);
        expect(Buffer.from(read ?? []).equals(Buffer.from(bytes))).toBe(true);
        expect(db.exec(`SELECT COUNT(*) AS n FROM blobs WHERE sha256 = 'a'`)).toEqual([{ n: 3 }]);
        expect([...blobs.files()]).toEqual([
          { sha256: 'a', sizeBytes: bytes.length, ...about, place: 'rows' },
          { sha256: 'b', sizeBytes: 1, name: null, mediaType: null, place: 'rows' },
        ]);
        expect([blobs.get('c'), blobs.file('c'), blobs.has('c')]).toEqual([null, null, false]);
      }));

    test('C2: the same hash twice is stored once, with the first name', () =>
      withDb((db) => {
        const { blobs } = newJournal(db, RECORD);
        blobs.put('a', pattern(10), about);
        blobs.put('a', pattern(10), { ...about, name: 'b.bin' });
        expect(db.exec(`SELECT COUNT(*) AS n FROM blobs`)).toEqual([{ n: 1 }]);
        expect([...blobs.files()].map(({ name }) => name)).toEqual(['a.bin']);
      }));

    test('C2: an object is announced, then a message has it', () =>
      withDb((db) => {
        const { blobs } = newJournal(db, RECORD);
        expect([blobs.oldestUnreferred('object'), blobs.unreferred('object', Infinity), blobs.objectBytes]).toEqual([
          null,
          [],
          0,
        ]);
        expect(() => blobs.refer('a')).toThrow('was not announced');
        blobs.announce('a', 10, about, 5);
        blobs.announce('b', 20, about, 6);
        expect([blobs.has('a'), blobs.oldestUnreferred('object'), blobs.objectBytes]).toEqual([false, 5, 30]);
        expect([blobs.unreferred('object', 4), blobs.unreferred('object', 5), blobs.unreferred('object', 6)]).toEqual([
          [],
          ['a'],
          ['a', 'b'],
        ]);
        blobs.announce('a', 10, about, 7);
        expect(blobs.unreferred('object', 6)).toEqual(['b']);
        blobs.refer('a');
        expect(new Journal(db).blobs.file('a')).toEqual({ sha256: 'a', sizeBytes: 10, ...about, place: 'object' });
        expect([blobs.unreferred('object', 9), blobs.get('a')]).toEqual([['b'], null]);
        blobs.refer('a');
      }));

    test('C2: an object without a message is collected; a file stored in rows meanwhile remains', () =>
      withDb((db) => {
        const { blobs } = newJournal(db, RECORD);
        blobs.announce('a', 10, about, 5);
        blobs.collect('a');
        expect(blobs.isCollecting('a')).toBe(true);
        expect(() => blobs.refer('a')).toThrow('was not announced');
        blobs.put('a', pattern(10), about);
        // A host that ended meanwhile: the next one deletes the object again.
        expect(new Journal(db).blobs.unreferred('object', 5)).toEqual(['a']);
        blobs.collected('a');
        expect([blobs.isCollecting('a'), blobs.unreferred('object', 5), blobs.objectBytes]).toEqual([false, [], 0]);
        expect(blobs.file('a')?.place).toBe('rows');
        expect(blobs.get('a')).toEqual(pattern(10));
        blobs.announce('b', 10, about, 5);
        blobs.refer('b');
        blobs.collect('b');
        blobs.collected('b');
        expect(blobs.has('b')).toBe(true);
      }));
  });

  test('[C1] a session exists with its history, or not at all', () =>
    withDb(async (db) => {
      const history = Array.from({ length: 3_000 }, (): SeededMessage => ({ role: 'user', content: 'x'.repeat(100) }));
      let statements = 0;
      const failing = withStatements(db, (statement) => {
        if (statement.startsWith('INSERT INTO seeded') && (statements += 1) === 2) throw new Error('disk failure');
      });
      const journal = new Journal(failing);
      const create = (): void => journal.create(RECORD, () => journal.seeded.write(history));
      expect(create).toThrow('disk failure');
      expect(journal.record).toBeNull();
      for (const each of [journal, new Journal(db)]) {
        expect(each.record).toBeNull();
        expect(each.seeded.count).toBe(0);
      }
      create();
      await journal.sync();
      expect(new Journal(db).record).toEqual(RECORD);
      expect(new Journal(db).seeded.count).toBe(history.length);
    }));

  test('variables survive a new instance', () =>
    withDb((db) => {
      const journal = newJournal(db, RECORD);
      journal.variables.set('x', { deep: [1] });
      journal.variables.set('y', 1);
      journal.variables.set('y', 2);
      journal.variables.delete('x');
      expect([...new Journal(db).variables.all()]).toEqual([['y', { json: '2', bytes: 2 }]]);
    }));

  test('a session without events is a single row, and its tables exist before the first write', () =>
    withDb((db) => {
      const tables = (): unknown[] =>
        db.exec(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'`);
      newJournal(db, RECORD);
      const found = new Journal(db);
      expect(found.record).toEqual(RECORD);
      expect([found.lastSeq, found.runs.list(), found.runs.open(), [...found.feeds()]]).toEqual([0, [], [], []]);
      expect([
        found.runs.count,
        found.runs.get(1),
        found.runs.byIdempotencyKey('k'),
        [...found.variables.all()],
      ]).toEqual([0, null, null, []]);
      expect([
        found.history.outcomesWithArtifacts(0, 9).found,
        found.range({ after: 0, limit: 1 }),
        found.page(0),
      ]).toEqual([[], [], []]);
      expect(tables()).toEqual([{ name: 'session' }]);
      found.variables.set('x', 1);
      expect(tables().length).toBeGreaterThan(1);
      const next = new Journal(db);
      expect([next.record, [...next.variables.all()]]).toEqual([RECORD, [['x', { json: '1', bytes: 2 }]]]);
    }));

  test('reading a session that does not exist writes nothing', () =>
    withDb((db) => {
      expect(new Journal(db).record).toBeNull();
      const tables = db.exec(
        `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'`,
      );
      expect(tables).toEqual([]);
    }));
}
