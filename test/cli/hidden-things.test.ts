import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, expect, test } from 'vitest';
import { hiddenThings } from '../../cli/system/hidden-things.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

let made = 0;
function fileOf(of: string): string {
  const parent = join(folder, 'v3/do', `cortex-edge-${of}`);
  mkdirSync(parent, { recursive: true });
  made += 1;
  return join(parent, `${String(made).padStart(64, '0')}.sqlite`);
}

function database(of: string, ...statements: string[]): void {
  const db = new DatabaseSync(fileOf(of));
  for (const statement of statements) db.exec(statement);
  db.close();
}

const named = (name: string): string =>
  `CREATE TABLE __miniflare_do_name (name); INSERT INTO __miniflare_do_name VALUES ('${name}')`;
const session = (owner: string | null, kind = 'chat'): void =>
  database(
    'SessionObject',
    `CREATE TABLE session (data); INSERT INTO session VALUES ('${JSON.stringify({ owner, kind })}')`,
  );
const catalogue = (name: string, count: number): void =>
  database(
    'CatalogObject',
    named(name),
    `CREATE TABLE current (kind)`,
    ...Array.from({ length: count }, () => `INSERT INTO current VALUES ('tool')`),
  );

beforeAll(() => {
  session(null);
  session(null, 'execution');
  session(null, 'child');
  session('ann');
  // A deleted session, and a damaged file.
  database('SessionObject', 'CREATE TABLE session (data)');
  writeFileSync(fileOf('SessionObject'), 'no database');
  catalogue('local', 3);
  catalogue('key:ann', 1);
  catalogue('key:local', 7);
  database('RelicObject', named('["key:","notes"]'));
  database('RelicObject', named('["key:ann","notes"]'));
  database('RelicObject', named('["ses_1","notes"]'));
});

test('[T4] what was made without keys is counted for the operator', () => {
  expect(hiddenThings(folder, parseApiKeys('ann:admin:k1'))).toEqual([
    'made without keys and hidden from all keys: 2 sessions, 3 manifests, 1 shared relic; OWNER_OF_KEYLESS=<namespace> gives them to a namespace',
  ]);
});

test('[T4] with OWNER_OF_KEYLESS, what its namespace had before is counted instead', () => {
  expect(hiddenThings(folder, parseApiKeys('ann:admin:k1,bob:run:k2', 'ann'))).toEqual([
    'hidden because of OWNER_OF_KEYLESS: 1 session, 1 manifest, 1 shared relic that the namespace ann had before; without this setting, it has them again',
  ]);
  expect(hiddenThings(folder, parseApiKeys('ann:admin:k1,bob:run:k2', 'bob'))).toEqual([]);
});

test('[T4] nothing is hidden without keys, or in a new folder', () => {
  expect(hiddenThings(folder, [])).toEqual([]);
  expect(hiddenThings(join(folder, 'none'), parseApiKeys('ann:admin:k1'))).toEqual([]);
});
