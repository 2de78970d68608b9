/** Where a session keeps its rows and bytes. */

export type SqlValue = null | number | string | Uint8Array;

export type SqlRow = Record<string, SqlValue>;

/** A small synchronous SQLite: a Durable Object's database, or node:sqlite (J1). */
export interface SqlDatabase {
  exec(sql: string, ...parameters: SqlValue[]): SqlRow[];
  /** Runs several statements without parameters, separated by semicolons. Unlike those of `exec`, they are not kept prepared. */
  script(sql: string): void;
  /** Runs `body` atomically: if it throws, its writes are rolled back. */
  transaction<T>(body: () => T): T;
  /** Resolves when everything written before the call is durable. */
  sync(): Promise<void>;
  /** Size of the database, including unsynced writes. */
  sizeBytes(): number;
}

/** A few short values by key, written synchronously. They are plain JSON. */
export interface NoteStorage {
  get<T>(key: string): T | undefined;
  put(key: string, value: unknown): void;
  delete(key: string): void;
  list<T>(options: { readonly prefix: string }): Iterable<readonly [key: string, value: T]>;
}

/** Bytes of messages of a session, by their SHA-256 in lower-case hexadecimal (C2). */
export interface BlobStore {
  /** Null if they are not stored. */
  get(sha256: string): Promise<Uint8Array | null>;
}

/** Storage outside the session for the bytes of large files: R2. Each key is only ever put with the same bytes. */
export interface ObjectStore {
  /** @param sha256 of the bytes: others are refused */
  put(key: string, bytes: Uint8Array, sha256: string): Promise<void>;
  /** Null if the object does not exist. */
  get(key: string): Promise<Uint8Array | null>;
  /** Also succeeds if the object does not exist. */
  delete(key: string): Promise<void>;
  /** Deletes up to `limits.objectsPerDeletion` objects whose keys begin with the prefix. @returns whether none remains */
  deleteSome(prefix: string): Promise<boolean>;
}
