/**
 * The catalogue of one namespace: what its people have put in, by versions, on top of what comes with the
 * system (M4).
 *
 * Owns: the tables `files`, `manifests`, `current` and `scoped` of its database. Does not own: the common
 * manifests, who may change what (http), and which versions a run keeps (the session).
 *
 * Invariants:
 *  1. What is current has loaded without an error, with everything that it imports.
 *  2. A change is taken as a whole or not at all; nothing that was current stops loading by it.
 *  3. A version, once given, always means the same text, until it makes room.
 */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../domain/manifest.ts';
import type { SqlDatabase } from '../domain/ports.ts';
import { CATALOG_KINDS, createCatalog } from './catalog.ts';
import type { AnyDefinition, Catalog, CatalogData, CatalogKind } from './catalog.ts';
import { loadManifests } from './load.ts';
import type { LoadedManifests, ManifestEntry, ManifestFile } from './load.ts';
import { formatProblem } from './problem.ts';
import type { ManifestProblem } from './problem.ts';

/** A manifest as it is listed. `revision` counts the changes under one name, from 1; null for the common ones. */
export interface ListedManifest {
  readonly kind: CatalogKind;
  readonly name: string;
  readonly version: string;
  readonly revision: number | null;
  readonly summary: string;
  readonly tags: readonly string[];
  /** Whether it comes with the system and cannot be changed. */
  readonly common: boolean;
  /** Epoch milliseconds; null for the common ones. */
  readonly updatedAt: number | null;
}

export interface StoredManifest extends ListedManifest {
  readonly definition: AnyDefinition;
  /** YAML as it was written; null where it is not known. */
  readonly source: string | null;
  readonly file: string | null;
  readonly versions: readonly { readonly revision: number; readonly version: string; readonly createdAt: number }[];
}

/** What a change did, or, where nothing was taken, would do. */
export interface ChangeReport {
  readonly manifests: readonly ListedManifest[];
  /** Of the files that were given. */
  readonly problems: readonly ManifestProblem[];
  readonly warnings: readonly ManifestProblem[];
}

/** The same, with what was there before and is not any more. */
export interface ReplaceReport extends ChangeReport {
  readonly removed: readonly ManifestRef[];
}

export interface ManifestRef {
  readonly kind: CatalogKind;
  readonly name: string;
}

interface Plan {
  readonly files: ReadonlyMap<string, string>;
  readonly loaded: LoadedManifests;
  readonly report: Omit<ChangeReport, 'manifests'>;
  readonly taken: readonly ManifestEntry[];
}

export class ManifestStore {
  readonly #sql: SqlDatabase;
  readonly #common: Catalog;
  readonly #sources: Readonly<Record<string, string>>;
  #catalog: Catalog | null = null;

  /** @param sources the common manifests as they were written, by `kind/name` */
  constructor(sql: SqlDatabase, common: Catalog, sources: Readonly<Record<string, string>>) {
    this.#sql = sql;
    this.#common = common;
    this.#sources = sources;
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

  agent(name: string): ResolvedAgent | null {
    return this.#whole().agent(name);
  }

  workflow(name: string): ResolvedWorkflow | null {
    return this.#whole().workflow(name);
  }

  /** The namespace's own and the common ones. */
  get data(): CatalogData {
    return this.#whole().data;
  }

  list(kind: CatalogKind | null): ListedManifest[] {
    const kinds = kind === null ? CATALOG_KINDS : [kind];
    const own = new Map(
      this.#sql
        .exec(
          `SELECT m.kind, m.name, m.revision, m.created_at FROM manifests m JOIN current USING (kind, name, revision)`,
        )
        .map((row) => [
          `${String(row['kind'])}/${String(row['name'])}`,
          { revision: Number(row['revision']), updatedAt: Number(row['created_at']) },
        ]),
    );
    return kinds.flatMap((of) =>
      this.#whole()
        .list(of)
        .map((definition) => listed(of, definition, own.get(`${of}/${definition.name}`) ?? null)),
    );
  }

  /**
   * One manifest, as it is now or as it was.
   *
   * @param wanted the author's version (its latest revision), or a revision
   * @throws EngineError `unknown_manifest`
   */
  get(
    { kind, name }: ManifestRef,
    wanted: { readonly version?: string; readonly revision?: number } = {},
  ): StoredManifest {
    const common = this.#common.list(kind).find((definition) => definition.name === name);
    const asked = wanted.revision === undefined ? wanted.version : `revision ${wanted.revision}`;
    if (common !== undefined) {
      if (asked !== undefined && asked !== common.version) throw this.#unknown({ kind, name }, asked);
      const source = this.#sources[`${kind}/${name}`] ?? null;
      return { ...listed(kind, common, null), definition: common, source, file: null, versions: [] };
    }
    const rows = this.#sql.exec(
      `SELECT m.revision, m.version, m.created_at, c.revision AS now FROM manifests m
       LEFT JOIN current c ON c.kind = m.kind AND c.name = m.name WHERE m.kind = ? AND m.name = ? ORDER BY m.revision DESC`,
      kind,
      name,
    );
    const versions = rows.map((row) => ({
      revision: Number(row['revision']),
      version: String(row['version']),
      createdAt: Number(row['created_at']),
    }));
    const now = rows[0]?.['now'] ?? null;
    const found = versions.find(({ revision, version }) =>
      wanted.revision === undefined
        ? wanted.version === undefined
          ? revision === now
          : version === wanted.version
        : revision === wanted.revision,
    );
    if (found === undefined) throw this.#unknown({ kind, name }, asked);
    const [row] = this.#sql.exec(
      `SELECT file, source, definition FROM manifests WHERE kind = ? AND name = ? AND revision = ?`,
      kind,
      name,
      found.revision,
    );
    const definition = JSON.parse(String(row?.['definition'])) as AnyDefinition;
    return {
      ...listed(kind, definition, { revision: found.revision, updatedAt: found.createdAt }),
      definition,
      source: String(row?.['source']),
      file: String(row?.['file']),
      versions,
    };
  }

  /**
   * Puts one manifest in, or a new version of it.
   *
   * @throws EngineError `invalid_manifest` with the problems, `manifest_read_only`, `manifest_in_use`
   */
  put(ref: ManifestRef, text: string, now: number): ChangeReport {
    this.#refuseCommon(ref);
    const home = this.#fileOf(ref);
    const others =
      home === null ? [] : this.#sourcesIn(home).filter(({ name, kind }) => name !== ref.name || kind !== ref.kind);
    if (home !== null && others.length > 0) {
      throw new EngineError(
        'manifest_in_use',
        `The ${ref.kind} "${ref.name}" stands in ${home} together with others; send that file to /manifests instead`,
      );
    }
    const path = home ?? `${ref.kind}s/${ref.name}.yaml`;
    const plan = this.#plan([{ path, text }]);
    const taken = plan.taken.map(({ definition }) => `${definition.kind.toLowerCase()} "${definition.name}"`);
    if (plan.report.problems.length > 0) throw invalid(plan.report);
    if (taken.length !== 1 || taken[0] !== `${ref.kind} "${ref.name}"`) {
      const found = taken.length === 0 ? 'none' : taken.join(', ');
      throw new EngineError(
        'invalid_manifest',
        `The body must hold the ${ref.kind} "${ref.name}" and nothing else, it holds: ${found}`,
      );
    }
    return this.#take(plan, now);
  }

  /** Takes files in: what loads is taken, what does not is reported and left out. */
  upload(files: readonly ManifestFile[], now: number): ChangeReport {
    return this.#take(this.#planOfWhatLoads(files), now);
  }

  /**
   * Makes the catalogue what these files are, as a whole: what is not among them goes. Versions of what goes
   * can still be asked for.
   *
   * @throws EngineError `invalid_manifest` with the problems; then nothing has changed
   */
  replace(files: readonly ManifestFile[], now: number): ReplaceReport {
    const before = this.#currentRefs();
    const plan = this.#plan(files, { whole: true });
    if (plan.report.problems.length > 0) throw invalid(plan.report);
    const report = this.#take(plan, now);
    const stays = new Set(this.#currentRefs().map(({ kind, name }) => `${kind}/${name}`));
    const removed = before.filter(({ kind, name }) => !stays.has(`${kind}/${name}`));
    return { ...report, removed: removed.map(({ kind, name }) => ({ kind, name })) };
  }

  /** What `upload` would say; nothing is changed. */
  validate(files: readonly ManifestFile[]): ChangeReport {
    const { report, taken } = this.#plan(files, { lenient: true });
    const manifests = taken.map(({ definition }) => ({
      ...listed(kindOf(definition), definition, null),
      common: false,
    }));
    return { ...report, manifests };
  }

  /**
   * Takes one manifest out. Its versions can still be asked for.
   *
   * @throws EngineError `unknown_manifest`, `manifest_read_only`, `manifest_in_use` naming the importers
   */
  remove(ref: ManifestRef, now: number): void {
    this.#refuseCommon(ref);
    const file = this.#fileOf(ref);
    if (file === null) throw this.#unknown(ref, undefined);
    const rest = this.#sourcesIn(file).filter(({ name, kind }) => name !== ref.name || kind !== ref.kind);
    const text = rest.length === 0 ? null : rest.map(({ source }) => source).join('\n---\n');
    this.#take(
      this.#plan(text === null ? [] : [{ path: file, text }], { without: text === null ? [file] : [], removed: [ref] }),
      now,
    );
  }

  /** Files that do not load, or that would take something away that loaded before, are left out as they are. */
  #planOfWhatLoads(files: readonly ManifestFile[]): Plan {
    const first = this.#plan(files, { lenient: true });
    const faulty = new Set(first.report.problems.map(({ file }) => file));
    const good = new Set(first.taken.map(({ file }) => file));
    const now = new Set(first.loaded.entries.map(({ definition }) => `${kindOf(definition)}/${definition.name}`));
    const lost = new Set(
      this.#currentRefs().flatMap(({ kind, name, file }) => (now.has(`${kind}/${name}`) ? [] : [file])),
    );
    const left = files.filter(({ path }) => !faulty.has(path) || (good.has(path) && !lost.has(path)));
    return { ...this.#plan(left), report: first.report };
  }

  /**
   * What becomes of the catalogue with these files.
   *
   * @throws EngineError `manifest_in_use` when something else would not load any more; `invalid_manifest` past a limit
   */
  #plan(
    given: readonly ManifestFile[],
    options: {
      /** Paths that go. */
      readonly without?: readonly string[];
      readonly removed?: readonly ManifestRef[];
      /** The files are all that there will be. */
      readonly whole?: boolean;
      /** Only look; what would be lost is the caller's business. */
      readonly lenient?: boolean;
    } = {},
  ): Plan {
    const { without = [], removed = [], whole = false, lenient = false } = options;
    const files = new Map(
      whole
        ? []
        : this.#sql.exec(`SELECT path, text FROM files`).map((row) => [String(row['path']), String(row['text'])]),
    );
    for (const path of without) files.delete(path);
    for (const { path, text } of given) files.set(path, text);
    let chars = 0;
    for (const text of files.values()) chars += text.length;
    if (files.size > limits.catalogFiles || chars > limits.catalogBytes) {
      throw new EngineError(
        'invalid_manifest',
        `The catalogue would hold ${files.size} files of ${chars} characters (allowed: ${limits.catalogFiles} files, ${limits.catalogBytes} characters)`,
      );
    }
    const loaded = loadManifests(
      [...files].map(([path, text]) => ({ path, text })),
      this.#common,
    );
    const changed = new Set(given.map(({ path }) => path));
    const report = {
      problems: loaded.problems.filter(({ file }) => changed.has(file)),
      warnings: loaded.warnings.filter(({ file }) => changed.has(file)),
    };
    const stays = new Set(loaded.entries.map(({ definition }) => `${kindOf(definition)}/${definition.name}`));
    const gone = this.#currentRefs().filter(
      ({ kind, name, file }) =>
        !stays.has(`${kind}/${name}`) &&
        !changed.has(file) &&
        !removed.some((ref) => ref.kind === kind && ref.name === name),
    );
    if (gone.length > 0 && !lenient && !whole) {
      const why = loaded.problems.filter(({ file }) => !changed.has(file)).map(formatProblem);
      throw new EngineError(
        'manifest_in_use',
        `${gone.map(({ kind, name }) => `${kind} "${name}"`).join(', ')} would not load any more: ${why.slice(0, 5).join('; ')}`,
        { problems: why },
      );
    }
    return { files, loaded, report, taken: loaded.entries.filter(({ file }) => changed.has(file)) };
  }

  #take({ files, loaded, report, taken }: Plan, now: number): ChangeReport {
    this.#sql.transaction(() => {
      this.#sql.exec(`DELETE FROM files`);
      for (const [path, text] of files) this.#sql.exec(`INSERT INTO files (path, text) VALUES (?, ?)`, path, text);
      this.#sql.exec(`DELETE FROM scoped`);
      for (const { importer, definition } of loaded.catalog.data.scoped ?? []) {
        this.#sql.exec(`INSERT INTO scoped (importer, definition) VALUES (?, ?)`, importer, JSON.stringify(definition));
      }
      const before = new Map(this.#currentRefs().map(({ kind, name, revision }) => [`${kind}/${name}`, revision]));
      this.#sql.exec(`DELETE FROM current`);
      const findable = new Set(CATALOG_KINDS.flatMap((kind) => loaded.catalog.list(kind)));
      for (const entry of loaded.entries) if (findable.has(entry.definition)) this.#keep(entry, before, now);
    });
    this.#catalog = null;
    const revisions = new Map(this.list(null).map((one) => [`${one.kind}/${one.name}`, one]));
    return {
      ...report,
      manifests: taken.flatMap(({ definition }) => revisions.get(`${kindOf(definition)}/${definition.name}`) ?? []),
    };
  }

  /** Makes a definition current: as the revision that it was, or as a new one when it has changed. */
  #keep({ definition, file, source }: ManifestEntry, before: ReadonlyMap<string, number>, now: number): void {
    const kind = kindOf(definition);
    const { name, version } = definition;
    const text = JSON.stringify(definition);
    if (text.length > limits.definitionChars) {
      throw new EngineError(
        'invalid_manifest',
        `The ${kind} "${name}" has ${text.length} characters with its files (allowed: ${limits.definitionChars})`,
      );
    }
    const was = before.get(`${kind}/${name}`) ?? null;
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
        version,
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
    this.#sql.exec(`INSERT INTO current (kind, name, revision) VALUES (?, ?, ?)`, kind, name, revision);
  }

  #whole(): Catalog {
    if (this.#catalog !== null) return this.#catalog;
    const own = this.#sql
      .exec(`SELECT m.definition FROM manifests m JOIN current USING (kind, name, revision)`)
      .map((row) => JSON.parse(String(row['definition'])) as AnyDefinition);
    const scoped = this.#sql.exec(`SELECT importer, definition FROM scoped`).map((row) => ({
      importer: String(row['importer']),
      definition: JSON.parse(String(row['definition'])) as AnyDefinition,
    }));
    const { data } = this.#common;
    this.#catalog = createCatalog({
      agents: [...data.agents, ...own.filter((one) => one.kind === 'Agent')],
      tools: [...data.tools, ...own.filter((one) => one.kind === 'Tool')],
      relics: [...data.relics, ...own.filter((one) => one.kind === 'Relic')],
      workflows: [...data.workflows, ...own.filter((one) => one.kind === 'Workflow')],
      monuments: [...data.monuments, ...own.filter((one) => one.kind === 'Monument')],
      scoped: [...(data.scoped ?? []), ...scoped],
    });
    return this.#catalog;
  }

  #currentRefs(): { kind: CatalogKind; name: string; revision: number; file: string }[] {
    return this.#sql
      .exec(`SELECT m.kind, m.name, m.revision, m.file FROM manifests m JOIN current USING (kind, name, revision)`)
      .map((row) => ({
        kind: String(row['kind']) as CatalogKind,
        name: String(row['name']),
        revision: Number(row['revision']),
        file: String(row['file']),
      }));
  }

  #fileOf({ kind, name }: ManifestRef): string | null {
    return this.#currentRefs().find((one) => one.kind === kind && one.name === name)?.file ?? null;
  }

  #sourcesIn(file: string): { kind: CatalogKind; name: string; source: string }[] {
    return this.#sql
      .exec(
        `SELECT m.kind, m.name, m.source FROM manifests m JOIN current USING (kind, name, revision) WHERE m.file = ?`,
        file,
      )
      .map((row) => ({
        kind: String(row['kind']) as CatalogKind,
        name: String(row['name']),
        source: String(row['source']),
      }));
  }

  #refuseCommon({ kind, name }: ManifestRef): void {
    if (!this.#common.list(kind).some((definition) => definition.name === name)) return;
    throw new EngineError(
      'manifest_read_only',
      `The ${kind} "${name}" comes with the system and cannot be changed; choose another name for yours`,
    );
  }

  #unknown({ kind, name }: ManifestRef, asked: string | undefined): EngineError {
    const near = this.#whole()
      .nearest(kind, name)
      .filter((other) => other !== name);
    const hint = near.length > 0 ? ` (nearest: ${near.join(', ')})` : '';
    const what =
      asked === undefined
        ? ''
        : ` in ${asked.startsWith('revision') ? asked : `version ${asked.slice(0, limits.excerptChars)}`}`;
    return new EngineError(
      'unknown_manifest',
      `There is no ${kind} "${name.slice(0, limits.excerptChars)}"${what}${hint}`,
    );
  }
}

function invalid({ problems, warnings }: Plan['report']): EngineError {
  const lines = problems.map(formatProblem);
  return new EngineError('invalid_manifest', lines.slice(0, 5).join('; '), { problems, warnings });
}

function kindOf(definition: AnyDefinition): CatalogKind {
  return definition.kind.toLowerCase() as CatalogKind;
}

function listed(
  kind: CatalogKind,
  { name, version, summary, tags }: AnyDefinition,
  own: { readonly revision: number; readonly updatedAt: number } | null,
): ListedManifest {
  return {
    kind,
    name,
    version,
    revision: own?.revision ?? null,
    summary,
    tags,
    common: own === null,
    updatedAt: own?.updatedAt ?? null,
  };
}
