/**
 * The files of a session's workspace by path (C7), and which attempts of open runs have committed theirs.
 *
 * Owns both tables. Does not own the bytes (blobs.ts), the limits, or the paths that are allowed.
 */
import type { SqlRow } from '../domain/ports/storage.ts';
import type { WorkspaceFile } from '../domain/workspace.ts';
import type { JournalDatabase } from './journal-database.ts';

export class WorkspaceTable {
  readonly #db: JournalDatabase;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** All files, in the order of the bytes of their paths. */
  list(): readonly WorkspaceFile[] {
    return this.#db.findIn('workspace', `SELECT * FROM workspace ORDER BY path`).map(fileOf);
  }

  get(path: string): WorkspaceFile | null {
    const [row] = this.#db.findIn('workspace', `SELECT * FROM workspace WHERE path = ?`, path);
    return row === undefined ? null : fileOf(row);
  }

  /** The files below a folder. @param folder without a slash at its end */
  below(folder: string): readonly WorkspaceFile[] {
    // `0` is the character after `/`.
    return this.#db
      .findIn(
        'workspace',
        `SELECT * FROM workspace WHERE path > ? AND path < ? ORDER BY path`,
        `${folder}/`,
        `${folder}0`,
      )
      .map(fileOf);
  }

  get totals(): { readonly files: number; readonly bytes: number } {
    const [row] = this.#db.findIn(
      'workspace',
      `SELECT COUNT(*) AS files, COALESCE(SUM(size), 0) AS bytes FROM workspace`,
    );
    return { files: Number(row?.['files'] ?? 0), bytes: Number(row?.['bytes'] ?? 0) };
  }

  /** Whether any path has these bytes. */
  uses(sha256: string): boolean {
    return this.#db.findIn('workspace', `SELECT 1 FROM workspace WHERE sha256 = ? LIMIT 1`, sha256).length > 0;
  }

  set({ path, sha256, size, executable, modifiedAt }: WorkspaceFile): void {
    this.#db.exec(
      `INSERT OR REPLACE INTO workspace (path, sha256, size, executable, at) VALUES (?, ?, ?, ?, ?)`,
      path,
      sha256,
      size,
      executable ? 1 : 0,
      modifiedAt,
    );
    this.#db.changed();
  }

  delete(path: string): void {
    this.#db.exec(`DELETE FROM workspace WHERE path = ?`, path);
    this.#db.changed();
  }

  /** Whether an attempt has committed its files. @param key of the attempt */
  isCommitted(key: string): boolean {
    return this.#db.findIn('workspace_commits', `SELECT 1 FROM workspace_commits WHERE key = ?`, key).length > 0;
  }

  /** In the transaction of the commit. Forgets the attempts of complete runs: those are never recovered. */
  committed(key: string, run: number): void {
    this.#db.exec(`DELETE FROM workspace_commits WHERE run NOT IN (SELECT run FROM runs WHERE open = 1)`);
    this.#db.exec(`INSERT OR REPLACE INTO workspace_commits (key, run) VALUES (?, ?)`, key, run);
    this.#db.changed();
  }
}

function fileOf(row: SqlRow): WorkspaceFile {
  return {
    path: String(row['path']),
    sha256: String(row['sha256']),
    size: Number(row['size']),
    executable: row['executable'] === 1,
    modifiedAt: Number(row['at']),
  };
}
