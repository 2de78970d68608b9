/** What the system keeps on disk: rows by table, alarms, databases, files. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

export interface StoredState {
  /** Rows by class and table, such as `DirectoryObject.sessions`. */
  readonly rows: ReadonlyMap<string, number>;
  /** Alarms of all objects that are set. */
  readonly alarms: number;
  /** Databases that hold a table. The local system keeps an empty file for each object that it has ever had. */
  readonly databases: number;
}

/** Size of a database without tables. */
const EMPTY_BYTES = 4_096;
const ALARMS = '_cf_ALARM';
/** The local system's own notes about an object. */
const PLATFORM_TABLES = /^(sqlite_|_cf_METADATA|__miniflare)/;

/** @param folder of the local system's objects: one folder for each class */
export function objectState(folder: string): StoredState {
  const rows = new Map<string, number>();
  let alarms = 0;
  let databases = 0;
  for (const name of readdirSync(folder)) {
    const className = name.replace(/^cortex-edge-/, '');
    for (const file of databasesIn(join(folder, name))) {
      const isObject = !file.endsWith('metadata.sqlite');
      const tables = rowsIn(file);
      alarms += isObject ? 0 : (tables.get(ALARMS) ?? 0);
      if (!isObject || tables.size === 0) continue;
      databases += 1;
      for (const [table, count] of tables) {
        const key = `${className}.${table}`;
        rows.set(key, (rows.get(key) ?? 0) + count);
      }
    }
  }
  return { rows, alarms, databases };
}

/** Rows of each table of a database, which another process may be writing. */
export function rowsIn(file: string): ReadonlyMap<string, number> {
  using database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
  const names = database.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).all();
  return new Map(
    names
      .map(({ name }) => String(name))
      .filter((name) => !PLATFORM_TABLES.test(name))
      .map((name) => [name, Number(database.prepare(`SELECT count(*) AS rows FROM "${name}"`).get()?.['rows'])]),
  );
}

export interface FolderSize {
  readonly files: number;
  readonly bytes: number;
}

/** Files of a folder and the folders in it. @param skips names that are not counted */
export function folderSize(folder: string, skips: RegExp | null = null): FolderSize {
  let files = 0;
  let bytes = 0;
  for (const entry of existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : []) {
    if (!entry.isFile() || skips?.test(entry.name) === true) continue;
    try {
      bytes += statSync(join(entry.parentPath, entry.name)).size;
      files += 1;
    } catch {
      // It was removed meanwhile.
    }
  }
  return { files, bytes };
}

function databasesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sqlite'))
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).size > EMPTY_BYTES || existsSync(`${file}-wal`));
}
