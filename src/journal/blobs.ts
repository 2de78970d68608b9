/**
 * The files of messages, stored once by the hash of their bytes (C2), and deleted with the session.
 *
 * Owns a row for each file: its size, how the first message called it, where its bytes are, and whether a message has it.
 * Owns the bytes in rows; those in objects belong to session-files.ts of the engine.
 *
 * Invariants:
 *  1. A file has one row that is `stored` exactly if a message of the session has it.
 *  2. The row of an object exists before the object, and as long as it: `pending` until a message has it, `collecting`
 *     while it is deleted because no message came. Then the bytes may be stored in rows, with a second row of the file.
 */
import { joinedBytes } from '../domain/bytes.ts';
import { limits } from '../domain/limits.ts';
import type { SqlRow } from '../domain/ports.ts';
import type { JournalDatabase } from './journal-database.ts';

/** How the first message with a file called it: hostile input. Null for a file of an earlier version. */
export interface FileAbout {
  readonly name: string | null;
  readonly mediaType: string | null;
}

export interface StoredFile extends FileAbout {
  /** Of the bytes, in lower-case hexadecimal. */
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly place: 'rows' | 'object';
}

const UNNAMED: FileAbout = { name: null, mediaType: null };

const NEW_FILE = `INSERT OR REPLACE INTO message_files (sha256, size, name, media_type, place, state, at) VALUES (?, ?, ?, ?, ?, ?, ?)`;

export class Blobs {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** Stores the bytes in rows, unless a message has them already. @param sha256 of the bytes, in hexadecimal */
  put(sha256: string, bytes: Uint8Array, { name, mediaType }: FileAbout = UNNAMED): void {
    if (this.has(sha256)) return;
    this.#db.exec(NEW_FILE, sha256, bytes.length, name, mediaType, 'rows', 'stored', 0);
    for (let part = 0; part * limits.rowBytes < bytes.length; part += 1) {
      const piece = bytes.slice(part * limits.rowBytes, (part + 1) * limits.rowBytes);
      this.#db.exec(`INSERT INTO blobs (sha256, part, bytes) VALUES (?, ?, ?)`, sha256, part, piece);
    }
    this.#db.changed();
  }

  /** Whether a message has the file, wherever its bytes are. */
  has(sha256: string): boolean {
    return this.file(sha256) !== null;
  }

  /** A file that a message has. */
  file(sha256: string): StoredFile | null {
    const [row] = this.#db.find(`SELECT * FROM message_files WHERE sha256 = ? AND state = 'stored'`, sha256);
    return row === undefined ? null : fileOf(row);
  }

  /** All files that messages have now, the oldest first. */
  files(): Generator<StoredFile> {
    const [last] = this.#db.find(`SELECT MAX(id) AS id FROM message_files`);
    return this.#files(Number(last?.['id'] ?? 0));
  }

  *#files(until: number): Generator<StoredFile> {
    for (let after = 0; ;) {
      const [row] = this.#db.find(
        `SELECT * FROM message_files WHERE id > ? AND id <= ? AND state = 'stored' ORDER BY id LIMIT 1`,
        after,
        until,
      );
      if (row === undefined) return;
      after = Number(row['id']);
      yield fileOf(row);
    }
  }

  /** The bytes in rows; null if there are none. */
  get(sha256: string): Uint8Array | null {
    const rows = this.#db.find(`SELECT bytes FROM blobs WHERE sha256 = ? ORDER BY part`, sha256);
    // The platform returns an ArrayBuffer, and node:sqlite an array.
    const pieces = rows.map(({ bytes }) => new Uint8Array(bytes as Uint8Array));
    if (pieces.length === 0) return null;
    return joinedBytes(pieces);
  }

  // --- objects ---

  /** Announces an object that no message has, before it is put; an announced one counts from now. */
  announce(sha256: string, sizeBytes: number, { name, mediaType }: FileAbout, now: number): void {
    this.#db.exec(NEW_FILE, sha256, sizeBytes, name, mediaType, 'object', 'pending', now);
    this.#db.changed();
  }

  /** Whether an object is being deleted, here or by an earlier host. */
  isCollecting(sha256: string): boolean {
    return this.#db.find(`SELECT 1 FROM message_files WHERE sha256 = ? AND state = 'collecting'`, sha256).length > 0;
  }

  /** A message has the object. @throws Error if it was not announced */
  refer(sha256: string): void {
    if (this.has(sha256)) return;
    this.#db.exec(
      `UPDATE message_files SET state = 'stored', at = 0 WHERE sha256 = ? AND place = 'object' AND state = 'pending'`,
      sha256,
    );
    if (!this.has(sha256)) throw new Error(`the object ${sha256.slice(0, 12)} was not announced`);
    this.#db.changed();
  }

  /** When the oldest object without a message was announced, epoch milliseconds; null if there is none. */
  get oldestUnreferred(): number | null {
    const [row] = this.#db.find(`SELECT MIN(at) AS at FROM message_files WHERE state <> 'stored'`);
    return typeof row?.['at'] === 'number' ? row['at'] : null;
  }

  /** Objects without a message that were announced up to this time, the oldest first; some of them. */
  unreferred(until: number): readonly string[] {
    const rows = this.#db.find(
      `SELECT sha256 FROM message_files WHERE state <> 'stored' AND at <= ? ORDER BY at LIMIT ?`,
      until,
      limits.pageRows,
    );
    return rows.map((row) => String(row['sha256']));
  }

  /** Marks an object without a message before it is deleted. */
  collect(sha256: string): void {
    this.#db.exec(`UPDATE message_files SET state = 'collecting' WHERE sha256 = ? AND state = 'pending'`, sha256);
    this.#db.changed();
  }

  /** Its object is deleted. A file that was stored in rows meanwhile remains. */
  collected(sha256: string): void {
    this.#db.exec(`DELETE FROM message_files WHERE sha256 = ? AND state = 'collecting'`, sha256);
    this.#db.changed();
  }

  /** Bytes of all objects, announced ones included. */
  get objectBytes(): number {
    const [row] = this.#db.find(`SELECT SUM(size) AS size FROM message_files WHERE place = 'object'`);
    return Number(row?.['size'] ?? 0);
  }
}

function fileOf(row: SqlRow): StoredFile {
  const { sha256, size, name, media_type: mediaType, place } = row;
  return {
    sha256: String(sha256),
    sizeBytes: Number(size),
    name: typeof name === 'string' ? name : null,
    mediaType: typeof mediaType === 'string' ? mediaType : null,
    place: place === 'object' ? 'object' : 'rows',
  };
}
