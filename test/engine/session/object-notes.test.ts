/** Where the notes of a session's object are (C6). */
import { beforeEach, describe, expect, test } from 'vitest';
import { objectNotes } from '../../../src/engine/session/object-notes.ts';
import { Journal } from '../../../src/journal/journal.ts';
import type { NoteStorage, SqlDatabase } from '../../../src/domain/ports/storage.ts';
import { SESSION_RECORD } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';

/** Like the platform's key-value storage: each write, also a deletion, creates its table. */
class ObjectNotes implements NoteStorage {
  readonly values = new Map<string, unknown>();
  writes = 0;

  get<T>(key: string): T | undefined {
    return this.values.get(key) as T | undefined;
  }
  put(key: string, value: unknown): void {
    this.writes += 1;
    this.values.set(key, value);
  }
  delete(key: string): void {
    this.writes += 1;
    this.values.delete(key);
  }
  list<T>({ prefix }: { readonly prefix: string }): [string, T][] {
    return [...this.values].filter(([key]) => key.startsWith(prefix)) as [string, T][];
  }
}

let db: SqlDatabase;
let object: ObjectNotes;
let journal: Journal;
let notes: NoteStorage;

/** The next host of the object. */
function open(): void {
  journal = new Journal(db);
  notes = objectNotes(() => (journal.record === null ? null : journal.notes), object);
}

beforeEach(() => {
  db = openNodeSql();
  object = new ObjectNotes();
  open();
});

describe('[Z2] the notes of a session', () => {
  test('are in its row, also before its first event, and the next host has them', () => {
    journal.create(SESSION_RECORD);
    notes.put('a', { n: 1 });
    notes.put('b', { n: 2 });
    notes.put('a', { n: 3 });
    notes.delete('b');
    notes.delete('unknown');
    open();
    expect([notes.get('a'), notes.get('b'), [...notes.list({ prefix: '' })]]).toEqual([
      { n: 3 },
      undefined,
      [['a', { n: 3 }]],
    ]);
    expect([object.writes, journal.record]).toEqual([0, SESSION_RECORD]);
    expect(db.exec(`SELECT name FROM sqlite_master WHERE type = 'table'`)).toEqual([{ name: 'session' }]);
  });

  test('hide those of earlier sessions when they change; the others of the object stay', () => {
    object.values.set('listed', 1).set('retry', 1).set('gone:x', 1);
    journal.create(SESSION_RECORD);
    expect([notes.get('listed'), [...notes.list({ prefix: 'gone:' })]]).toEqual([1, [['gone:x', 1]]]);
    notes.put('listed', 2);
    notes.delete('retry');
    expect([...object.values]).toEqual([['gone:x', 1]]);
    open();
    expect([notes.get('listed'), notes.get('retry'), notes.get('gone:x')]).toEqual([2, undefined, 1]);
    // Its other tables are created later.
    journal.runs.addInputs(1, {});
    open();
    expect([journal.record, notes.get('listed')]).toEqual([SESSION_RECORD, 2]);
  });

  test('without a session are those of the object', () => {
    notes.put('retry', 1);
    expect([...object.values]).toEqual([['retry', 1]]);
    expect(db.exec(`SELECT name FROM sqlite_master`)).toEqual([]);
  });

  test('that cannot be written are not remembered', () => {
    journal.create(SESSION_RECORD);
    notes.put('a', 1);
    db.exec(`CREATE TRIGGER full BEFORE UPDATE ON session BEGIN SELECT RAISE(ABORT, 'full'); END`);
    expect(() => notes.put('a', 2)).toThrow('full');
    expect(notes.get('a')).toBe(1);
  });
});
