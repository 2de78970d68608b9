/**
 * The facts about one user, in the SQLite of one object (C10).
 *
 * Owns the facts, the calls that have changed them, and when keys were forgotten. Does not own permissions, or how many
 * facts an agent keeps.
 *
 * Invariants:
 *  1. The change of a call and its record are written together: a repeated call gets the same answer and changes nothing.
 *  2. The record of a call does not contain a value: what was forgotten is stored nowhere here.
 *  3. A repeated attempt does not write a key that was forgotten after its action began, and no attempt writes after it was
 *     given up.
 *  4. Of several changes of a key, the last one counts; a change never affects another key.
 *  5. Facts never exceed the room of a change; forgetting is always possible.
 */
import { factChars } from '../domain/facts.ts';
import type { Fact } from '../domain/facts.ts';
import { limits } from '../domain/limits.ts';
import type { FactAnswer, FactCall, FactChange, FactsSnapshot } from '../domain/ports/user-facts.ts';
import type { SqlDatabase } from '../domain/ports/storage.ts';

type Remember = Extract<FactChange, { type: 'remember' }>;

/** Forgotten keys beyond the limit, and all keys if everything was forgotten. No key is empty. */
const ALL_KEYS = '';

const TABLES = [
  `CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_at INTEGER NOT NULL,
   session_id TEXT, run_id TEXT)`,
  `CREATE TABLE IF NOT EXISTS fact_calls (number INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT UNIQUE NOT NULL,
   changed INTEGER NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS forgotten_facts (key TEXT PRIMARY KEY, at INTEGER NOT NULL)`,
  // The last one: if it exists, all of them do.
  `CREATE TABLE IF NOT EXISTS fact_version (version INTEGER NOT NULL)`,
];

export class FactStore {
  readonly #sql: SqlDatabase;
  readonly #now: () => number;
  /** Whether anything was ever written: most users have no facts, and reading stores nothing. */
  #isStored: boolean;

  constructor({ sql, now }: { readonly sql: SqlDatabase; readonly now: () => number }) {
    this.#sql = sql;
    this.#now = now;
    this.#isStored = sql.exec(`SELECT 1 FROM sqlite_master WHERE name = 'fact_version'`).length > 0;
  }

  read(): FactsSnapshot {
    if (!this.#isStored) return { version: 0, facts: [] };
    const facts = this.#sql.exec(`SELECT key, value, updated_at, session_id, run_id FROM facts ORDER BY key`);
    return {
      version: this.#version,
      facts: facts.map((row): Fact => ({
        key: String(row['key']),
        value: String(row['value']),
        updatedAt: Number(row['updated_at']),
        sessionId: row['session_id'] == null ? null : String(row['session_id']),
        runId: row['run_id'] == null ? null : String(row['run_id']),
      })),
    };
  }

  /** What the call has changed; null if it is unknown. */
  lookup(call: string): { readonly changed: number } | null {
    if (!this.#isStored) return null;
    const [row] = this.#sql.exec(`SELECT changed FROM fact_calls WHERE call = ?`, call);
    return row === undefined ? null : { changed: Number(row['changed']) };
  }

  change(change: FactChange): FactAnswer {
    if (!this.#isStored) for (const statement of TABLES) this.#sql.exec(statement);
    this.#isStored = true;
    return this.#sql.transaction(() => {
      const call = callOf(change);
      const known = call === null ? null : this.lookup(call.id);
      if (known !== null) return { ok: true, ...known, after: this.read() };
      const why = call === null ? null : this.#whyTooLate(change, call);
      if (why !== null) return { ok: false, code: 'superseded', message: why };
      const full = change.type === 'remember' ? this.#whyFull(change) : null;
      if (full !== null) return { ok: false, code: 'memory_full', message: full };
      const changed = this.#apply(change);
      const version = this.#version + 1;
      this.#sql.exec(`DELETE FROM fact_version`);
      this.#sql.exec(`INSERT INTO fact_version (version) VALUES (?)`, version);
      if (call !== null) this.#note(call, changed);
      return { ok: true, changed, after: this.read() };
    });
  }

  get #version(): number {
    const [row] = this.#sql.exec(`SELECT max(version) AS version FROM fact_version`);
    return Number(row?.['version'] ?? 0);
  }

  #apply(change: FactChange): number {
    const now = this.#now();
    switch (change.type) {
      case 'remember': {
        const { key, value, by } = change;
        this.#sql.exec(
          `INSERT OR REPLACE INTO facts (key, value, updated_at, session_id, run_id) VALUES (?, ?, ?, ?, ?)`,
          key,
          value,
          now,
          by?.sessionId ?? null,
          by?.runId ?? null,
        );
        return 1;
      }
      case 'forget': {
        const removed = this.#sql.exec(`DELETE FROM facts WHERE key = ? RETURNING key`, change.key).length;
        this.#forgotten(change.key, now);
        return removed;
      }
      case 'forget_all': {
        const removed = this.#sql.exec(`DELETE FROM facts RETURNING key`).length;
        this.#sql.exec(`DELETE FROM forgotten_facts`);
        this.#forgotten(ALL_KEYS, now);
        return removed;
      }
    }
  }

  /** Keeps when a key was forgotten. Of too many keys, the oldest become one entry for all keys. */
  #forgotten(key: string, at: number): void {
    this.#sql.exec(`INSERT OR REPLACE INTO forgotten_facts (key, at) VALUES (?, max(?, ?))`, key, at, this.#gone(key));
    const [row] = this.#sql.exec(
      `SELECT key, at FROM forgotten_facts WHERE key <> ? ORDER BY at DESC LIMIT 1 OFFSET ?`,
      ALL_KEYS,
      limits.factDeletions,
    );
    if (row === undefined) return;
    const oldest = Number(row['at']);
    this.#sql.exec(`DELETE FROM forgotten_facts WHERE key = ?`, String(row['key']));
    this.#sql.exec(
      `INSERT OR REPLACE INTO forgotten_facts (key, at) VALUES (?, ?)`,
      ALL_KEYS,
      Math.max(oldest, this.#gone(ALL_KEYS)),
    );
  }

  /** When the key was forgotten, alone or with all others; 0: it was not. */
  #gone(key: string): number {
    const [row] = this.#sql.exec(`SELECT max(at) AS at FROM forgotten_facts WHERE key IN (?, ?)`, key, ALL_KEYS);
    return Number(row?.['at'] ?? 0);
  }

  #whyTooLate(change: FactChange, { since, until, isRepeated }: FactCall): string | null {
    if (this.#now() > until) return 'the attempt was given up before it arrived';
    if (change.type !== 'remember' || !isRepeated || this.#gone(change.key) <= since) return null;
    return `"${change.key}" was forgotten while this was repeated`;
  }

  /** With the keys, so that a model can choose one to forget. */
  #whyFull({ key, value, room }: Remember): string | null {
    const others = this.read().facts.filter((fact) => fact.key !== key);
    const chars = others.reduce((sum, fact) => sum + factChars(fact), 2 + factChars({ key, value }));
    const known = `forget one first: ${others.map((fact) => fact.key).join(', ')}`;
    if (others.length + 1 > room.facts) return `${room.facts} facts are the limit; ${known}`;
    if (chars <= room.chars) return null;
    if (others.length === 0) return `it has ${chars} characters, and all facts may have ${room.chars}`;
    return `with it, the facts have ${chars} characters, and ${room.chars} are the limit; ${known}`;
  }

  #note({ id }: FactCall, changed: number): void {
    const [row] = this.#sql.exec(`INSERT INTO fact_calls (call, changed) VALUES (?, ?) RETURNING number`, id, changed);
    this.#sql.exec(`DELETE FROM fact_calls WHERE number <= ?`, Number(row?.['number'] ?? 0) - limits.factCalls);
  }
}

function callOf(change: FactChange): FactCall | null {
  if (change.type === 'forget_all') return null;
  return change.type === 'forget' ? change.call : (change.by?.call ?? null);
}
