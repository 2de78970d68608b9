/**
 * The tables of one namespace's catalogue: files, versions of manifests, current versions, and definitions visible to
 * only one importer. Knows SQL, and nothing about loading.
 *
 * A row that cannot be read is reported and kept; all other rows are served.
 */
import { MANIFEST_KINDS } from '../../domain/catalog.ts';
import type { ManifestKind, ManifestRef, ManifestRevision } from '../../domain/catalog.ts';
import { messageOf } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { SqlDatabase, SqlRow } from '../../domain/ports/storage.ts';
import type { AnyDefinition, CatalogData } from '../catalog.ts';
import type { ManifestEntry } from '../load.ts';

/** The current version of a manifest. */
export interface CurrentRow extends ManifestRef {
  readonly revision: number;
  readonly version: string;
  readonly file: string;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
}

/** A manifest that cannot be served, with the reason. */
export interface DamagedRow extends ManifestRef {
  readonly error: string;
}

export class ManifestTables {
  readonly #sql: SqlDatabase;

  constructor(sql: SqlDatabase) {
    this.#sql = sql;
    sql.exec(`CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID`);
    sql.exec(
      `CREATE TABLE IF NOT EXISTS manifests (
         kind TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, version TEXT NOT NULL, file TEXT NOT NULL,
         source TEXT NOT NULL, definition TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (kind, name, revision)
       ) WITHOUT ROWID`,
    );
    sql.exec(
      `CREATE TABLE IF NOT EXISTS current (
         kind TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (kind, name)
       ) WITHOUT ROWID`,
    );
    sql.exec(`CREATE TABLE IF NOT EXISTS scoped (importer TEXT NOT NULL, definition TEXT NOT NULL)`);
  }

  transaction<T>(body: () => T): T {
    return this.#sql.transaction(body);
  }

  files(): Map<string, string> {
    return new Map(
      this.#sql.exec(`SELECT path, text FROM files`).map((row) => [String(row['path']), String(row['text'])]),
    );
  }

  /** Writes the differences between `before` and `after`. */
  writeFiles(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): void {
    for (const path of before.keys()) if (!after.has(path)) this.#sql.exec(`DELETE FROM files WHERE path = ?`, path);
    for (const [path, text] of after) {
      if (before.get(path) === text) continue;
      this.#sql.exec(`INSERT OR REPLACE INTO files (path, text) VALUES (?, ?)`, path, text);
    }
  }

  current(): CurrentRow[] {
    return this.#sql
      .exec(
        `SELECT m.kind, m.name, m.revision, m.version, m.file, m.created_at
         FROM manifests m JOIN current USING (kind, name, revision)`,
      )
      .flatMap((row) => {
        const kind = kindOf(row);
        if (kind === null) return [];
        return [
          {
            kind,
            name: String(row['name']),
            revision: Number(row['revision']),
            version: String(row['version']),
            file: String(row['file']),
            updatedAt: Number(row['created_at']),
          },
        ];
      });
  }

  /** The current definitions, except those that cannot be read. */
  definitions(): { readonly data: CatalogData; readonly damaged: readonly DamagedRow[] } {
    const damaged: DamagedRow[] = [];
    const own: AnyDefinition[] = [];
    const rows = this.#sql.exec(
      `SELECT c.kind, c.name, m.definition FROM current c LEFT JOIN manifests m USING (kind, name, revision)`,
    );
    for (const row of rows) {
      const ref = { kind: kindOf(row), name: String(row['name']) };
      if (ref.kind === null) continue;
      const read = readDefinition(row['definition'], ref.kind, ref.name);
      if (typeof read === 'string') damaged.push({ kind: ref.kind, name: ref.name, error: read });
      else own.push(read);
    }
    const scoped: { importer: string; definition: AnyDefinition }[] = [];
    for (const row of this.#sql.exec(`SELECT importer, definition FROM scoped`)) {
      const importer = String(row['importer']);
      const read = readDefinition(row['definition'], null, null);
      const [kind = '', name = ''] = (importer.split('@')[0] ?? '').split('/');
      if (typeof read !== 'string') scoped.push({ importer, definition: read });
      else if (isKind(kind)) damaged.push({ kind, name, error: `one of its imports: ${read}` });
    }
    const data: CatalogData = {
      agents: own.filter((one) => one.kind === 'Agent'),
      tools: own.filter((one) => one.kind === 'Tool'),
      relics: own.filter((one) => one.kind === 'Relic'),
      workflows: own.filter((one) => one.kind === 'Workflow'),
      skills: own.filter((one) => one.kind === 'Skill'),
      monuments: own.filter((one) => one.kind === 'Monument'),
      scoped,
    };
    return { data, damaged };
  }

  revisions({ kind, name }: ManifestRef): {
    readonly revisions: readonly ManifestRevision[];
    readonly now: number | null;
  } {
    const rows = this.#sql.exec(
      `SELECT m.revision, m.version, m.created_at, c.revision AS now FROM manifests m
       LEFT JOIN current c ON c.kind = m.kind AND c.name = m.name WHERE m.kind = ? AND m.name = ? ORDER BY m.revision DESC`,
      kind,
      name,
    );
    const now = rows[0]?.['now'] ?? null;
    return {
      now: now === null ? null : Number(now),
      revisions: rows.map((row) => ({
        revision: Number(row['revision']),
        version: String(row['version']),
        createdAt: Number(row['created_at']),
      })),
    };
  }

  /** One version with its definition, or the reason why it cannot be read. */
  version(
    { kind, name }: ManifestRef,
    revision: number,
  ): { readonly file: string; readonly source: string; readonly definition: AnyDefinition | string } {
    const [row] = this.#sql.exec(
      `SELECT file, source, definition FROM manifests WHERE kind = ? AND name = ? AND revision = ?`,
      kind,
      name,
      revision,
    );
    const definition = readDefinition(row?.['definition'], kind, name);
    return { file: String(row?.['file']), source: String(row?.['source']), definition };
  }

  /** Source texts of the current documents, trimmed, by `kind/name`. */
  sources(): Map<string, string> {
    const rows = this.#sql.exec(
      `SELECT m.kind, m.name, m.source FROM manifests m JOIN current USING (kind, name, revision)`,
    );
    return new Map(rows.map((row) => [`${String(row['kind'])}/${String(row['name'])}`, String(row['source']).trim()]));
  }

  /** Source texts of a file's documents. */
  sourcesIn(file: string): (ManifestRef & { readonly source: string })[] {
    return this.#sql
      .exec(
        `SELECT m.kind, m.name, m.source FROM manifests m JOIN current USING (kind, name, revision) WHERE m.file = ?`,
        file,
      )
      .flatMap((row) => {
        const kind = kindOf(row);
        return kind === null ? [] : [{ kind, name: String(row['name']), source: String(row['source']) }];
      });
  }

  /** @param staying the current manifests after this, in addition to those passed to `keep` */
  clear(staying: readonly ManifestRef[]): void {
    const stays = new Set(staying.map(({ kind, name }) => `${kind}/${name}`));
    const rows = this.#sql.exec(`SELECT kind, name, revision FROM current`);
    this.#sql.exec(`DELETE FROM current`);
    this.#sql.exec(`DELETE FROM scoped`);
    for (const row of rows) {
      const kind = kindOf(row);
      const name = String(row['name']);
      if (kind !== null && stays.has(`${kind}/${name}`)) this.setCurrent({ kind, name }, Number(row['revision']));
    }
  }

  setCurrent({ kind, name }: ManifestRef, revision: number): void {
    this.#sql.exec(`INSERT OR REPLACE INTO current (kind, name, revision) VALUES (?, ?, ?)`, kind, name, revision);
  }

  addScoped(importer: string, definition: AnyDefinition): void {
    this.#sql.exec(`INSERT INTO scoped (importer, definition) VALUES (?, ?)`, importer, JSON.stringify(definition));
  }

  /** Makes a definition current: with its old revision if unchanged, otherwise with a new one. */
  keep(ref: ManifestRef, { definition, file, source }: ManifestEntry, was: number | null, now: number): void {
    const { kind, name } = ref;
    const text = JSON.stringify(definition);
    const [old] =
      was === null
        ? []
        : this.#sql.exec(
            `SELECT definition, source, file FROM manifests WHERE kind = ? AND name = ? AND revision = ?`,
            kind,
            name,
            was,
          );
    let revision = was;
    if (revision === null || old?.['definition'] !== text || old['source'] !== source || old['file'] !== file) {
      const [last] = this.#sql.exec(
        `SELECT max(revision) AS last FROM manifests WHERE kind = ? AND name = ?`,
        kind,
        name,
      );
      revision = Number(last?.['last'] ?? 0) + 1;
      this.#sql.exec(
        `INSERT INTO manifests (kind, name, revision, version, file, source, definition, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        kind,
        name,
        revision,
        definition.version,
        file,
        source,
        text,
        now,
      );
      this.#sql.exec(
        `DELETE FROM manifests WHERE kind = ? AND name = ? AND revision <= ?`,
        kind,
        name,
        revision - limits.manifestVersions,
      );
    }
    this.setCurrent(ref, revision);
  }
}

function isKind(value: unknown): value is ManifestKind {
  return (MANIFEST_KINDS as readonly unknown[]).includes(value);
}

function kindOf(row: SqlRow): ManifestKind | null {
  const { kind } = row;
  return isKind(kind) ? kind : null;
}

/** A stored definition, or the reason why it cannot be served. */
function readDefinition(text: unknown, kind: ManifestKind | null, name: string | null): AnyDefinition | string {
  if (typeof text !== 'string') return 'its stored definition cannot be read: the row is missing or not text';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (fault) {
    return `its stored definition cannot be read: ${messageOf(fault).slice(0, 200)}`;
  }
  const lacks = whatIsMissing(value);
  if (lacks !== null) return `its stored definition cannot be used: ${lacks}`;
  const definition = value as AnyDefinition;
  if (kind !== null && (definition.kind.toLowerCase() !== kind || definition.name !== name)) {
    return 'its stored definition is of another manifest';
  }
  return definition;
}

/** Members that other code relies on, by kind; `[]` marks lists. */
const MEMBERS: Readonly<Record<ManifestKind, readonly string[]>> = {
  agent: ['persona', 'engine', 'imports', 'feeds[]', 'loop', 'protocol', 'budgets', 'variables', 'secrets[]'],
  tool: ['implementation', 'parameters'],
  relic: ['implementation', 'endpoints'],
  workflow: ['trigger', 'inputs', 'steps[]', 'outputs', 'imports'],
  skill: ['files[]'],
  monument: ['body'],
};
const IMPORTS = ['agents[]', 'tools[]', 'relics[]', 'workflows[]'];

function whatIsMissing(value: unknown): string | null {
  if (!isJsonObject(value)) return 'it is not a map';
  const kind = typeof value['kind'] === 'string' ? value['kind'].toLowerCase() : '';
  if (!isKind(kind)) return 'it has no kind';
  for (const field of ['name', 'version', 'summary']) {
    if (typeof value[field] !== 'string') return `"${field}" is missing`;
  }
  const of = (owner: Json | undefined, members: readonly string[]): string | null => {
    for (const member of members) {
      const field = member.replace('[]', '');
      const found = isJsonObject(owner) ? owner[field] : undefined;
      if (!(member.endsWith('[]') ? Array.isArray(found) : isJsonObject(found))) return `"${field}" is missing`;
    }
    return null;
  };
  const imports = kind === 'agent' || kind === 'workflow' ? IMPORTS : [];
  return of(value, ['tags[]', 'metadata', ...MEMBERS[kind]]) ?? of(value['imports'], imports);
}
