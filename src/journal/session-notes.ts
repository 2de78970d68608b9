/**
 * What a session notes about itself for later hosts: its entry in the lists of all sessions, and how far its export is.
 *
 * All notes are one column of the session's row: a table, or the platform's key-value storage, would cost every session tens
 * of KiB of memory and another statement. So they are few and short, and end with the session.
 */
import type { NoteStorage } from '../domain/ports/storage.ts';
import type { JournalDatabase } from './journal-database.ts';

export class SessionNotes implements NoteStorage {
  readonly #db: JournalDatabase;
  /** By key; read on first use. */
  #known: Map<string, unknown> | null = null;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  get<T>(key: string): T | undefined {
    return this.#all.get(key) as T | undefined;
  }

  /** @param value plain JSON */
  put(key: string, value: unknown): void {
    this.#write(new Map(this.#all).set(key, value));
  }

  delete(key: string): void {
    if (!this.#all.has(key)) return;
    this.#write(new Map([...this.#all].filter(([known]) => known !== key)));
  }

  list<T>({ prefix }: { readonly prefix: string }): (readonly [key: string, value: T])[] {
    return [...this.#all].flatMap(([key, value]) => (key.startsWith(prefix) ? [[key, value as T] as const] : []));
  }

  get #all(): ReadonlyMap<string, unknown> {
    this.#known ??= new Map(Object.entries(JSON.parse(this.#db.notes ?? '{}') as object));
    return this.#known as ReadonlyMap<string, unknown>;
  }

  /** What could not be written is not remembered either. */
  #write(notes: Map<string, unknown>): void {
    this.#db.writeNotes(notes.size === 0 ? null : JSON.stringify(Object.fromEntries(notes)));
    this.#known = notes;
  }
}
