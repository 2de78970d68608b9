/**
 * What the state folder contains for an owner whose things no key can see: those that were made without keys, once
 * API_KEYS is set, or those of the namespace that OWNER_OF_KEYLESS names. Read before the Worker starts.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { objectName, sharedSpace } from '../../src/domain/owner.ts';
import type { ApiKey } from '../../src/http/api-keys.ts';

/** Sessions whose databases are opened, oldest first: those from before API_KEYS was set are the oldest. */
const MOST_SESSIONS = 1_000;

interface Things {
  readonly sessions: number;
  readonly manifests: number;
  readonly relics: number;
}

/**
 * A line for each owner whose things are hidden.
 *
 * @param folder state folder of the Worker
 */
export function hiddenThings(folder: string, keys: readonly ApiKey[]): string[] {
  if (keys.length === 0) return [];
  const adopter = keys.find(({ owner }) => owner === null)?.namespace;
  const found = described(thingsOf(folder, adopter ?? null));
  if (found === null) return [];
  return [
    adopter === undefined
      ? `made without keys and hidden from all keys: ${found}; OWNER_OF_KEYLESS=<namespace> gives them to a namespace`
      : `hidden because of OWNER_OF_KEYLESS: ${found} that the namespace ${adopter} had before; without this setting, it has them again`,
  ];
}

function described({ sessions, manifests, relics }: Things): string | null {
  const parts = [counted(sessions, 'session'), counted(manifests, 'manifest'), counted(relics, 'shared relic')].filter(
    (part) => part !== null,
  );
  return parts.length === 0 ? null : parts.join(', ');
}

function counted(count: number, name: string): string | null {
  if (count === 0) return null;
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

function thingsOf(folder: string, owner: string | null): Things {
  const relicPrefix = `${JSON.stringify([sharedSpace(owner)]).slice(0, -1)},`;
  return {
    sessions: total(databasesOf(folder, 'SessionObject', MOST_SESSIONS), (database) => {
      const session = JSON.parse(textOf(database, `SELECT data AS text FROM session`)) as {
        owner: unknown;
        kind: unknown;
      };
      // A child belongs to another session.
      return session.owner === owner && session.kind !== 'child' ? 1 : 0;
    }),
    manifests: total(databasesOf(folder, 'CatalogObject'), (database) =>
      nameOf(database) === objectName(owner) ? Number(textOf(database, `SELECT count(*) AS text FROM current`)) : 0,
    ),
    relics: total(databasesOf(folder, 'RelicObject'), (database) => (nameOf(database).startsWith(relicPrefix) ? 1 : 0)),
  };
}

/** The sum over all databases; those that cannot be read, or that are empty, count as 0. */
function total(files: readonly string[], count: (database: DatabaseSync) => number): number {
  let sum = 0;
  for (const file of files) {
    try {
      const database = new DatabaseSync(file, { readOnly: true });
      try {
        sum += count(database);
      } finally {
        database.close();
      }
    } catch {
      // Not readable, or without this table.
    }
  }
  return sum;
}

/** The databases of the objects of one class, oldest first. */
function databasesOf(folder: string, name: string, most = Infinity): string[] {
  const parent = join(folder, 'v3/do', `cortex-edge-${name}`);
  try {
    return readdirSync(parent)
      .filter((file) => /^[0-9a-f]{64}\.sqlite$/.test(file))
      .map((file) => join(parent, file))
      .map((file) => ({ file, at: statSync(file).birthtimeMs }))
      .toSorted((a, b) => a.at - b.at)
      .slice(0, most)
      .map(({ file }) => file);
  } catch {
    // Nothing was stored yet.
    return [];
  }
}

/** The name of an object, as the local platform stores it. */
function nameOf(database: DatabaseSync): string {
  return textOf(database, `SELECT name AS text FROM __miniflare_do_name`);
}

function textOf(database: DatabaseSync, query: string): string {
  return String(database.prepare(query).get()?.['text']);
}
