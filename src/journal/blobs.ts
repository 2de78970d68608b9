/**
 * The bytes of files, stored once by their hash: files of messages (C2) and of the workspace (C7).
 *
 * Owns a row for each file: its size, how the first message called it, where its bytes are, and who holds it. Owns the
 * bytes in rows; those in objects belong to session-files.ts of the engine.
 *
 * Invariants:
 *  1. A file has one row that is `stored` exactly if a message or the workspace holds it. Messages hold theirs for as long
 *     as the session.
 *  2. The row of an object exists before the object, and as long as it: `pending` until the file is held and after it was
 *     released, `collecting` while it is deleted. Then the bytes may be stored in rows, with a second row of the file.
 *  3. Bytes in rows without a holder are `pending` as well: they are staged for a commit, or were released while they
 *     were being read.
 */
import { joinedBytes } from '../domain/bytes.ts';
import { limits } from '../domain/limits.ts';
import type { SqlRow } from '../domain/ports/storage.ts';
import type { JournalDatabase } from './journal-database.ts';

/** How the first message with a file called it: hostile input. Null for a file of the workspace. */
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

/** Who holds a file. */
export type Holder = 'message' | 'workspace';

const UNNAMED: FileAbout = { name: null, mediaType: null };

const NEW_FILE = `INSERT OR REPLACE INTO message_files
  (sha256, size, name, media_type, place, state, at, in_messages) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

export class Blobs {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** Stores the bytes in rows for a message, unless they are stored already. @param sha256 of the bytes, in hexadecimal */
  put(sha256: string, bytes: Uint8Array, about: FileAbout = UNNAMED): void {
    if (!this.has(sha256)) this.#writeRows(sha256, bytes, about, 'stored', 0);
    this.#named(sha256, about);
  }

  /** Stores the bytes in rows, for a commit that will hold them. */
  stage(sha256: string, bytes: Uint8Array, now: number): void {
    if (this.has(sha256)) return;
    this.#writeRows(sha256, bytes, UNNAMED, 'pending', now);
  }

  #writeRows(sha256: string, bytes: Uint8Array, about: FileAbout, state: 'stored' | 'pending', at: number): void {
    this.#db.exec(`DELETE FROM blobs WHERE sha256 = ?`, sha256);
    const inMessages = state === 'stored' ? 1 : 0;
    this.#db.exec(NEW_FILE, sha256, bytes.length, about.name, about.mediaType, 'rows', state, at, inMessages);
    for (let part = 0; part * limits.rowBytes < bytes.length; part += 1) {
      const piece = bytes.slice(part * limits.rowBytes, (part + 1) * limits.rowBytes);
      this.#db.exec(`INSERT INTO blobs (sha256, part, bytes) VALUES (?, ?, ?)`, sha256, part, piece);
    }
    this.#db.changed();
  }

  /** A message holds a stored file. */
  #named(sha256: string, { name, mediaType }: FileAbout): void {
    this.#db.exec(
      `UPDATE message_files SET in_messages = 1, name = ?, media_type = ?
       WHERE sha256 = ? AND state = 'stored' AND in_messages = 0`,
      name,
      mediaType,
      sha256,
    );
  }

  /** Whether a file is held, wherever its bytes are. */
  has(sha256: string): boolean {
    return this.stored(sha256) !== null;
  }

  /** A file that a message or the workspace holds. */
  stored(sha256: string): StoredFile | null {
    const [row] = this.#db.findIn(
      'message_files',
      `SELECT * FROM message_files WHERE sha256 = ? AND state = 'stored'`,
      sha256,
    );
    return row === undefined ? null : fileOf(row);
  }

  /** A file that a message holds. */
  file(sha256: string): StoredFile | null {
    const [row] = this.#db.findIn(
      'message_files',
      `SELECT * FROM message_files WHERE sha256 = ? AND state = 'stored' AND in_messages = 1`,
      sha256,
    );
    return row === undefined ? null : fileOf(row);
  }

  /** All files that messages hold now, the oldest first. */
  files(): Generator<StoredFile> {
    const [last] = this.#db.findIn('message_files', `SELECT MAX(id) AS id FROM message_files`);
    return this.#files(Number(last?.['id'] ?? 0));
  }

  *#files(until: number): Generator<StoredFile> {
    for (let after = 0; ;) {
      const [row] = this.#db.findIn(
        'message_files',
        `SELECT * FROM message_files WHERE id > ? AND id <= ? AND state = 'stored' AND in_messages = 1 ORDER BY id LIMIT 1`,
        after,
        until,
      );
      if (row === undefined) return;
      after = Number(row['id']);
      yield fileOf(row);
    }
  }

  /** The bytes in rows; null if there are none. An empty file has no rows: see `stored`. */
  get(sha256: string): Uint8Array | null {
    const rows = this.#db.findIn('blobs', `SELECT bytes FROM blobs WHERE sha256 = ? ORDER BY part`, sha256);
    // The platform returns an ArrayBuffer, and node:sqlite an array.
    const pieces = rows.map(({ bytes }) => new Uint8Array(bytes as Uint8Array));
    return pieces.length === 0 ? null : joinedBytes(pieces);
  }

  /** Where bytes are that may be read, held or not; null if they are stored nowhere. */
  placeOf(sha256: string): 'rows' | 'object' | null {
    const rows = this.#db.findIn('message_files', `SELECT place, state FROM message_files WHERE sha256 = ?`, sha256);
    const places = new Set(rows.filter(({ state }) => state !== 'collecting').map(({ place }) => place));
    return places.has('rows') ? 'rows' : places.has('object') ? 'object' : null;
  }

  /** Bytes of a file that is stored or announced; null for another one. */
  sizeOf(sha256: string): number | null {
    const [row] = this.#db.findIn('message_files', `SELECT size FROM message_files WHERE sha256 = ? LIMIT 1`, sha256);
    return row === undefined ? null : Number(row['size']);
  }

  // --- holders ---

  /** A holder takes an announced or staged file. @throws Error if it was neither */
  refer(sha256: string, holder: Holder = 'message'): void {
    const inMessages = holder === 'message' ? 1 : 0;
    if (!this.has(sha256)) {
      this.#db.exec(
        `UPDATE message_files SET state = 'stored', at = 0, in_messages = ? WHERE id =
           (SELECT id FROM message_files WHERE sha256 = ? AND state = 'pending' ORDER BY place DESC LIMIT 1)`,
        inMessages,
        sha256,
      );
      if (!this.has(sha256)) throw new Error(`the file ${sha256.slice(0, 12)} was not announced`);
    } else if (holder === 'message') {
      this.#db.exec(`UPDATE message_files SET in_messages = 1 WHERE sha256 = ? AND state = 'stored'`, sha256);
    }
    this.#db.changed();
  }

  /** The workspace no longer has a file. Unless a message holds it, it has no holder from now on. */
  release(sha256: string, now: number): void {
    this.#db.exec(
      `UPDATE message_files SET state = 'pending', at = ? WHERE sha256 = ? AND state = 'stored' AND in_messages = 0`,
      now,
      sha256,
    );
    this.#db.changed();
  }

  /** When the oldest bytes without a holder were announced or released, epoch milliseconds; null if there are none. */
  oldestUnreferred(place: StoredFile['place']): number | null {
    const sql = `SELECT MIN(at) AS at FROM message_files WHERE state <> 'stored' AND place = ?`;
    const [row] = this.#db.findIn('message_files', sql, place);
    return typeof row?.['at'] === 'number' ? row['at'] : null;
  }

  /** Bytes without a holder since this time or longer, the oldest first; some of them. */
  unreferred(place: StoredFile['place'], until: number): readonly string[] {
    const rows = this.#db.findIn(
      'message_files',
      `SELECT sha256 FROM message_files WHERE state <> 'stored' AND place = ? AND at <= ? ORDER BY at LIMIT ?`,
      place,
      until,
      limits.pageRows,
    );
    return rows.map(({ sha256 }) => String(sha256));
  }

  /** Deletes bytes in rows without a holder. */
  dropRows(sha256: string): void {
    const [row] = this.#db.findIn(
      'message_files',
      `SELECT id FROM message_files WHERE sha256 = ? AND place = 'rows' AND state = 'pending'`,
      sha256,
    );
    if (row === undefined) return;
    this.#db.atomically(() => {
      this.#db.exec(`DELETE FROM message_files WHERE id = ?`, row['id'] ?? 0);
      this.#db.exec(`DELETE FROM blobs WHERE sha256 = ?`, sha256);
    });
    this.#db.changed();
  }

  // --- objects ---

  /** Announces an object without a holder, before it is put; an announced one counts from now. */
  announce(sha256: string, sizeBytes: number, { name, mediaType }: FileAbout, now: number): void {
    this.#db.exec(NEW_FILE, sha256, sizeBytes, name, mediaType, 'object', 'pending', now, 0);
    this.#db.changed();
  }

  /** Whether an object is being deleted, here or by an earlier host. */
  isCollecting(sha256: string): boolean {
    return (
      this.#db.findIn('message_files', `SELECT 1 FROM message_files WHERE sha256 = ? AND state = 'collecting'`, sha256)
        .length > 0
    );
  }

  /** Marks an object without a holder before it is deleted. */
  collect(sha256: string): void {
    this.#db.exec(
      `UPDATE message_files SET state = 'collecting' WHERE sha256 = ? AND place = 'object' AND state = 'pending'`,
      sha256,
    );
    this.#db.changed();
  }

  /** Its object is deleted. A file that was stored in rows meanwhile remains. */
  collected(sha256: string): void {
    this.#db.exec(`DELETE FROM message_files WHERE sha256 = ? AND state = 'collecting'`, sha256);
    this.#db.changed();
  }

  /** Bytes of all objects, announced ones included. */
  get objectBytes(): number {
    const [row] = this.#db.findIn(
      'message_files',
      `SELECT SUM(size) AS size FROM message_files WHERE place = 'object'`,
    );
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
