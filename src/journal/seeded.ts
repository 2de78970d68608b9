/**
 * The seeded history: the conversation before the session (C1). It is written once, with the session, and never changes.
 *
 * A turn is a message of the user with everything up to the next one. A history that begins with another message has a
 * first turn without one.
 */
import { limits } from '../domain/limits.ts';
import type { SeededCall, SeededMessage } from '../domain/seeded.ts';
import type { JournalDatabase } from './journal-database.ts';

/** A row without its message. */
interface SeededRow {
  readonly id: number;
  readonly turn: number;
  /** What it takes to read the message for the model. */
  readonly bytes: number;
}

const COLUMNS = `id, turn, role, bytes, data`;
const encoder = new TextEncoder();

export class Seeded {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** Writes the whole history; called once, while the session is created. */
  write(messages: readonly SeededMessage[]): void {
    let turn = 1;
    let rows: string[] = [];
    let chars = 0;
    const flush = (): void => {
      if (rows.length === 0) return;
      const values = [0, 1, 2, 3, 4].map((at) => `value ->> ${at}`).join(', ');
      this.#db.exec(`INSERT INTO seeded (${COLUMNS}) SELECT ${values} FROM json_each(?)`, `[${rows.join(',')}]`);
      rows = [];
      chars = 0;
    };
    for (const [at, message] of messages.entries()) {
      if (message.role === 'user' && at > 0) turn += 1;
      const data = JSON.stringify(message);
      const id = at + 1;
      const bytes = encoder.encode(data).length;
      if (data.length > limits.inlineBytes) {
        this.#db.storeWith(id, 'seeded', data, (column) => {
          const sql = `INSERT INTO seeded (${COLUMNS}) VALUES (?, ?, ?, ?, ?)`;
          this.#db.exec(sql, id, turn, message.role, bytes, column);
        });
        continue;
      }
      const row = JSON.stringify([id, turn, message.role, bytes, data]);
      rows.push(row);
      chars += row.length;
      if (chars > limits.batchChars) flush();
    }
    flush();
    this.#db.changed();
  }

  /** Number of messages; they are numbered from 1. */
  get count(): number {
    return Number(this.#db.findIn('seeded', `SELECT COALESCE(MAX(id), 0) AS id FROM seeded`)[0]?.['id'] ?? 0);
  }

  /** Number of turns; they are numbered from 1. */
  get turns(): number {
    return Number(this.#db.findIn('seeded', `SELECT MAX(turn) AS turn FROM seeded`)[0]?.['turn'] ?? 0);
  }

  /** The messages of one turn. Of a tool's result, `limits.historyResultChars` are read. */
  turn(turn: number): SeededMessage[] {
    const rows = this.#db.findIn('seeded', `SELECT id FROM seeded WHERE turn = ? ORDER BY id`, turn);
    return rows.map(({ id }) => shortened(this.get(Number(id)).message));
  }

  /**
   * The messages before the number `before`, newest first. They are read in slices of `limits.pageRows`; a long one is
   * read separately.
   */
  *newestFirst(
    before: number = Number.MAX_SAFE_INTEGER,
  ): Generator<{ readonly id: number; readonly message: SeededMessage; readonly chars: number }> {
    for (let next = before; next > 1;) {
      const rows = this.#db.findIn(
        'seeded',
        `SELECT id, CASE WHEN OCTET_LENGTH(data) <= ? THEN data END AS data FROM seeded
         WHERE id < ? ORDER BY id DESC LIMIT ?`,
        limits.inlineBytes,
        next,
        limits.pageRows,
      );
      for (const row of rows) yield this.#read(Number(row['id']), row['data']);
      next = rows.length < limits.pageRows ? 0 : Number(rows.at(-1)?.['id']);
    }
  }

  /** One message. @throws Error if there is none with this number */
  get(id: number): { readonly id: number; readonly message: SeededMessage; readonly chars: number } {
    return this.#read(id, null);
  }

  /** The first message of the user; null if there is none. */
  firstOfUser(): SeededMessage | null {
    const id = this.#db.findIn('seeded', `SELECT id FROM seeded WHERE role = 'user' ORDER BY id LIMIT 1`)[0]?.['id'];
    return id === undefined ? null : this.get(Number(id)).message;
  }

  /** The message with the calls that the result with this number belongs to, and its number. */
  callsOf(result: number): { readonly id: number; readonly calls: readonly SeededCall[] } {
    const sql = `SELECT id FROM seeded WHERE id < ? AND role <> 'tool' ORDER BY id DESC LIMIT 1`;
    const id = Number(this.#db.findIn('seeded', sql, result)[0]?.['id'] ?? 0);
    const message = id === 0 ? null : this.get(id).message;
    return { id, calls: message?.role === 'assistant' ? (message.tool_calls ?? []) : [] };
  }

  /**
   * The latest turns that fit, oldest first: whole turns, at most `turns` of them, and together at most `bytes`. Of a
   * tool's result, `limits.historyResultChars` are counted and read.
   */
  latestTurns(turns: number, bytes: number): { readonly turns: SeededMessage[][]; readonly bytes: number } {
    const rows = this.#latestRows(turns, bytes);
    const byTurn = new Map<number, SeededMessage[]>();
    let read = 0;
    for (const { id, turn, bytes: own } of rows.toReversed()) {
      read += own;
      const messages = byTurn.get(turn) ?? [];
      messages.push(shortened(this.get(id).message));
      byTurn.set(turn, messages);
    }
    return { turns: [...byTurn.values()], bytes: read };
  }

  /** The rows of these turns, newest first. */
  #latestRows(mostTurns: number, mostBytes: number): SeededRow[] {
    const rows: SeededRow[] = [];
    let turns = 0;
    let bytes = 0;
    for (let before = Number.MAX_SAFE_INTEGER; ;) {
      const page = this.#db.findIn(
        'seeded',
        `SELECT id, turn, CASE role WHEN 'tool' THEN MIN(bytes, ?) ELSE bytes END AS bytes FROM seeded
         WHERE id < ? ORDER BY id DESC LIMIT ?`,
        limits.historyResultChars,
        before,
        limits.pageRows,
      );
      for (const found of page) {
        const row = { id: Number(found['id']), turn: Number(found['turn']), bytes: Number(found['bytes']) };
        const isNew = row.turn !== rows.at(-1)?.turn;
        if (isNew) turns += 1;
        bytes += row.bytes;
        if (turns > mostTurns) return rows;
        if (bytes > mostBytes) return rows.filter(({ turn }) => turn !== row.turn);
        rows.push(row);
      }
      if (page.length < limits.pageRows) return rows;
      before = Number(page.at(-1)?.['id']);
    }
  }

  #read(id: number, column: unknown): { readonly id: number; readonly message: SeededMessage; readonly chars: number } {
    const data = column ?? this.#db.exec(`SELECT data FROM seeded WHERE id = ?`, id)[0]?.['data'];
    const text = this.#db.load(id, 'seeded', data);
    return { id, message: JSON.parse(text) as SeededMessage, chars: text.length };
  }
}

/** A result with the beginning of its text, and its files. */
function shortened(message: SeededMessage): SeededMessage {
  if (message.role !== 'tool') return message;
  const { content } = message;
  let left: number = limits.historyResultChars;
  const cut = (text: string): string => {
    const kept = text.slice(0, left);
    left -= kept.length;
    return kept;
  };
  if (typeof content === 'string') return { ...message, content: cut(content) };
  return {
    ...message,
    content: content.map((part) => (part.type === 'text' ? { ...part, text: cut(part.text) } : part)),
  };
}
