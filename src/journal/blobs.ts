/** The files of messages, stored once by the hash of their bytes (C2). They are deleted with the session. */
import { limits } from '../domain/limits.ts';
import type { JournalDatabase } from './journal-database.ts';

export class Blobs {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** Stores the bytes in rows, unless they are stored already. @param sha256 of the bytes, in hexadecimal */
  put(sha256: string, bytes: Uint8Array): void {
    if (this.has(sha256)) return;
    for (let part = 0; part * limits.rowBytes < bytes.length; part += 1) {
      const piece = bytes.slice(part * limits.rowBytes, (part + 1) * limits.rowBytes);
      this.#db.exec(`INSERT INTO blobs (sha256, part, bytes) VALUES (?, ?, ?)`, sha256, part, piece);
    }
    this.#db.changed();
  }

  has(sha256: string): boolean {
    return this.#db.find(`SELECT 1 FROM blobs WHERE sha256 = ? AND part = 0`, sha256).length > 0;
  }

  /** Null if they are not stored. */
  get(sha256: string): Uint8Array | null {
    const rows = this.#db.find(`SELECT bytes FROM blobs WHERE sha256 = ? ORDER BY part`, sha256);
    // The platform returns an ArrayBuffer, and node:sqlite an array.
    const pieces = rows.map(({ bytes }) => new Uint8Array(bytes as Uint8Array));
    if (pieces.length === 0) return null;
    const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }
}
