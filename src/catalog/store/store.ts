/**
 * The catalogue of one namespace: uploaded manifests with versions, in addition to the bundled ones (M4).
 *
 * Owns the tables of its database (store-tables.ts). Does not own the bundled manifests, authorisation (http), and the
 * versions that a run keeps (the session).
 *
 * Invariants:
 *  1. Every current manifest loaded without errors, with all its imports, when it was uploaded.
 *  2. A change is applied completely or not at all; it never breaks another current manifest.
 *  3. A version always refers to the same text, until it is deleted to make room.
 *  4. Changes are processed one after another in slices of limited work; meanwhile, requests see the stored state.
 *  5. A stored manifest that cannot be read, or that the loader no longer accepts, is listed with its error, stays in the
 *     database, and does not block changes of other manifests.
 */
import { DEFAULT_INTERVALS } from '../../domain/intervals.ts';
import type { IntervalLimits } from '../../domain/intervals.ts';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../domain/manifest.ts';
import type { SqlDatabase } from '../../domain/ports.ts';
import { CATALOG_KINDS, createCatalog } from '../catalog.ts';
import type { AnyDefinition, Catalog, CatalogData, CatalogKind } from '../catalog.ts';
import { loadManifestsInSlices } from '../load.ts';
import type { LoadedManifests, ManifestEntry, ManifestFile } from '../load.ts';
import { formatProblem } from '../check/problem.ts';
import type { ManifestProblem } from '../check/problem.ts';
import type { ReadFile } from '../read/read-file.ts';
import { ManifestTables } from './store-tables.ts';
import type { CurrentRow, DamagedRow, ManifestRef, RevisionRow } from './store-tables.ts';

export type { ManifestRef };

/** A listed manifest. `revision` counts the changes of one name, from 1; null for bundled ones. */
export interface ListedManifest {
  readonly kind: CatalogKind;
  readonly name: string;
  readonly version: string;
  readonly revision: number | null;
  readonly summary: string;
  readonly tags: readonly string[];
  /** Whether it is bundled and cannot be changed. */
  readonly common: boolean;
  /** Epoch milliseconds; null for bundled ones. */
  readonly updatedAt: number | null;
  /** Why it is quarantined: it cannot be read, or no longer loads. */
  readonly error?: string;
}

export interface StoredManifest extends ListedManifest {
  /** Null if it cannot be read. */
  readonly definition: AnyDefinition | null;
  /** Source YAML; null if unknown. */
  readonly source: string | null;
  readonly file: string | null;
  readonly versions: readonly RevisionRow[];
}

/** The effect of a change, or of a validation. */
export interface ChangeReport {
  readonly manifests: readonly ListedManifest[];
  /** Issues of the given files. */
  readonly problems: readonly ManifestProblem[];
  readonly warnings: readonly ManifestProblem[];
}

/** The same, with the manifests that were removed. */
export interface ReplaceReport extends ChangeReport {
  readonly removed: readonly ManifestRef[];
}

/** Why a manifest must not use this secret, or null. */
export type SecretCheck = (name: string) => string | null;

interface Plan {
  readonly files: ReadonlyMap<string, string>;
  readonly loaded: LoadedManifests;
  readonly report: Omit<ChangeReport, 'manifests'>;
  /** All issues of the given files, including those that the report omits. */
  readonly allProblems: readonly ManifestProblem[];
  readonly taken: readonly ManifestEntry[];
  /** Current manifests that were not changed and did not load before this change either. */
  readonly stale: readonly DamagedRow[];
}

export class ManifestStore {
  readonly #tables: ManifestTables;
  readonly #common: Catalog;
  readonly #sources: Readonly<Record<string, string>>;
  readonly #refuseSecret: SecretCheck;
  readonly #pause: () => Promise<void>;
  readonly #intervals: () => IntervalLimits;
  #whole: { readonly catalog: Catalog; readonly damaged: readonly DamagedRow[] } | null = null;
  /** Stored manifests that the loader rejected at the last load. */
  #stale: readonly DamagedRow[] = [];
  /** The stored files; read when they are first needed. */
  #files: ReadonlyMap<string, string> | null = null;
  /** Parsed stored files. */
  #read: ReadonlyMap<string, ReadFile> = new Map();
  /** Current definitions as stored. */
  readonly #kept = new WeakMap<AnyDefinition, Omit<ManifestEntry, 'definition'>>();
  readonly #sizes = new WeakMap<AnyDefinition, number>();
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /**
   * @param sources source texts of the bundled manifests, by `kind/name`
   * @param refuseSecret why a manifest must not use a secret, or null (X3)
   * @param pause called between slices, so that other work can run
   * @param intervals minimum intervals of feeds and schedules (F3, M6)
   */
  constructor(
    sql: SqlDatabase,
    common: Catalog,
    sources: Readonly<Record<string, string>>,
    refuseSecret: SecretCheck = () => null,
    pause: () => Promise<void> = () => Promise.resolve(),
    intervals: () => IntervalLimits = () => DEFAULT_INTERVALS,
  ) {
    this.#refuseSecret = refuseSecret;
    this.#intervals = intervals;
    this.#pause = pause;
    this.#tables = new ManifestTables(sql);
    this.#common = common;
    this.#sources = sources;
  }

  /** @throws EngineError `manifest_damaged` */
  agent(name: string): ResolvedAgent | null {
    this.#refuseDamaged({ kind: 'agent', name });
    return this.#current().catalog.agent(name);
  }

  /** @throws EngineError `manifest_damaged` */
  workflow(name: string): ResolvedWorkflow | null {
    this.#refuseDamaged({ kind: 'workflow', name });
    return this.#current().catalog.workflow(name);
  }

  /** The namespace's definitions and the bundled ones. */
  get data(): CatalogData {
    return this.#current().catalog.data;
  }

  list(kind: CatalogKind | null): ListedManifest[] {
    const kinds = kind === null ? CATALOG_KINDS : [kind];
    const { catalog, damaged } = this.#current();
    const own = new Map(this.#tables.current().map((row) => [`${row.kind}/${row.name}`, row]));
    const stale = new Map(this.#stale.map((one) => [`${one.kind}/${one.name}`, one.error]));
    const errors = new Map(damaged.map((one) => [`${one.kind}/${one.name}`, one]));
    return kinds.flatMap((of) => {
      const found = catalog.list(of).map((definition) => {
        const key = `${of}/${definition.name}`;
        const error = errors.get(key)?.error ?? stale.get(key);
        errors.delete(key);
        return listed(of, definition, own.get(key) ?? null, error);
      });
      const rest = [...errors.values()].filter((one) => one.kind === of);
      return [...found, ...rest.map((one) => setAside(one, own.get(`${of}/${one.name}`) ?? null))];
    });
  }

  /**
   * One manifest, in its current version or an older one.
   *
   * @param wanted a version (its latest revision), or a revision
   * @throws EngineError `unknown_manifest`
   */
  get(ref: ManifestRef, wanted: { readonly version?: string; readonly revision?: number } = {}): StoredManifest {
    const { kind, name } = ref;
    const common = this.#common.list(kind).find((definition) => definition.name === name);
    const asked = wanted.revision === undefined ? wanted.version : `revision ${wanted.revision}`;
    if (common !== undefined) {
      if (asked !== undefined && asked !== common.version) throw this.#unknown(ref, asked);
      const source = this.#sources[`${kind}/${name}`] ?? null;
      return { ...listed(kind, common, null), definition: common, source, file: null, versions: [] };
    }
    const { revisions: versions, now } = this.#tables.revisions(ref);
    const found = versions.find(({ revision, version }) =>
      wanted.revision === undefined
        ? wanted.version === undefined
          ? revision === now
          : version === wanted.version
        : revision === wanted.revision,
    );
    if (found === undefined) throw this.#unknown(ref, asked);
    const { file, source, definition } = this.#tables.version(ref, found.revision);
    const row = { revision: found.revision, updatedAt: found.createdAt };
    if (typeof definition === 'string') {
      const aside = setAside({ ...ref, error: definition }, { ...row, version: found.version });
      return { ...aside, definition: null, source, file, versions };
    }
    const stale = this.#stale.find((one) => one.kind === kind && one.name === name)?.error;
    return { ...listed(kind, definition, row, stale), definition, source, file, versions };
  }

  /**
   * Adds one manifest, or a new version of it.
   *
   * @throws EngineError `invalid_manifest` with the issues, `manifest_read_only`, `manifest_in_use`, `catalog_busy`
   */
  async put(ref: ManifestRef, text: string, now: number): Promise<ChangeReport> {
    return await this.#inTurn(async () => {
      this.#refuseCommon(ref);
      const home = this.#fileOf(ref);
      const others = home === null ? [] : this.#tables.sourcesIn(home).filter((one) => !isSame(one, ref));
      if (home !== null && others.length > 0) {
        throw new EngineError(
          'manifest_in_use',
          `The ${ref.kind} "${ref.name}" is in ${home} together with others; upload that file to /manifests instead`,
        );
      }
      const path = home ?? `${ref.kind}s/${ref.name}.yaml`;
      const plan = await this.#plan([{ path, text }]);
      const taken = plan.taken.map(({ definition }) => `${definition.kind.toLowerCase()} "${definition.name}"`);
      if (plan.report.problems.length > 0) throw invalid(plan.report);
      if (taken.length !== 1 || taken[0] !== `${ref.kind} "${ref.name}"`) {
        const found = taken.length === 0 ? 'none' : taken.slice(0, 10).join(', ');
        throw new EngineError(
          'invalid_manifest',
          `The body must contain only the ${ref.kind} "${ref.name}", found: ${found}`,
        );
      }
      return this.#take(plan, now);
    });
  }

  /** Adds files: manifests without errors are added, the others are reported. */
  async upload(files: readonly ManifestFile[], now: number): Promise<ChangeReport> {
    return await this.#inTurn(async () => this.#take(await this.#planOfWhatLoads(files), now));
  }

  /**
   * Replaces the whole catalogue with these files. Old versions can still be read.
   *
   * @throws EngineError `invalid_manifest` with the issues; then nothing has changed
   */
  async replace(files: readonly ManifestFile[], now: number): Promise<ReplaceReport> {
    return await this.#inTurn(async () => {
      const before = this.#tables.current();
      const plan = await this.#plan(files, { whole: true });
      if (plan.report.problems.length > 0) throw invalid(plan.report);
      const report = this.#take(plan, now);
      const stays = new Set(this.#tables.current().map(({ kind, name }) => `${kind}/${name}`));
      const removed = before.filter(({ kind, name }) => !stays.has(`${kind}/${name}`));
      return { ...report, removed: removed.map(({ kind, name }) => ({ kind, name })) };
    });
  }

  /** Returns what `upload` would return; nothing changes. */
  async validate(files: readonly ManifestFile[]): Promise<ChangeReport> {
    const { report, taken } = await this.#inTurn(async () => await this.#plan(files, { lenient: true }));
    const manifests = taken.map(({ definition }) => ({
      ...listed(kindOf(definition), definition, null),
      common: false,
    }));
    return { ...report, manifests };
  }

  /**
   * Removes one manifest. Its versions can still be read.
   *
   * @throws EngineError `unknown_manifest`, `manifest_read_only`, `manifest_in_use` naming the importers
   */
  async remove(ref: ManifestRef, now: number): Promise<void> {
    await this.#inTurn(async () => {
      this.#refuseCommon(ref);
      const file = this.#fileOf(ref);
      if (file === null) throw this.#unknown(ref, undefined);
      const rest = this.#tables.sourcesIn(file).filter((one) => !isSame(one, ref));
      const text = rest.length === 0 ? null : rest.map(({ source }) => source).join('\n---\n');
      const given = text === null ? [] : [{ path: file, text }];
      this.#take(await this.#plan(given, { without: text === null ? [file] : [], removed: [ref] }), now);
    });
  }

  /**
   * Runs changes one after another: while one is paused, no other may change its starting point.
   *
   * @throws EngineError `catalog_busy` if too many are queued
   */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= limits.catalogQueue) {
      throw new EngineError(
        'catalog_busy',
        `${this.#waiting} changes and validations of the catalogue are queued (maximum ${limits.catalogQueue})`,
      );
    }
    this.#waiting += 1;
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Skips files that do not load, or that would break manifests that loaded before. */
  async #planOfWhatLoads(files: readonly ManifestFile[]): Promise<Plan> {
    const first = await this.#plan(files, { lenient: true });
    const faulty = new Set(first.allProblems.map(({ file }) => file));
    const good = new Set(first.taken.map(({ file }) => file));
    const now = new Set(first.loaded.entries.map(({ definition }) => `${kindOf(definition)}/${definition.name}`));
    const lost = new Set(
      this.#tables.current().flatMap(({ kind, name, file }) => (now.has(`${kind}/${name}`) ? [] : [file])),
    );
    const left = files.filter(({ path }) => !faulty.has(path) || (good.has(path) && !lost.has(path)));
    return { ...(await this.#plan(left, { read: first.loaded.read })), report: first.report };
  }

  /**
   * Computes the catalogue after a change.
   *
   * @throws EngineError `manifest_in_use` if another manifest would no longer load; `invalid_manifest` beyond a limit
   */
  async #plan(
    given: readonly ManifestFile[],
    options: {
      /** Paths to remove. */
      readonly without?: readonly string[];
      readonly removed?: readonly ManifestRef[];
      /** The files replace all stored ones. */
      readonly whole?: boolean;
      /** Do not throw for manifests that would be lost. */
      readonly lenient?: boolean;
      /** Parsed files of an earlier plan. */
      readonly read?: ReadonlyMap<string, ReadFile>;
    } = {},
  ): Promise<Plan> {
    const { without = [], removed = [], whole = false, lenient = false } = options;
    const stored = this.#stored();
    const files = new Map(whole ? [] : stored);
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
    const changed = new Set(given.map(({ path }) => path));
    const loaded = await this.#load(files, options.read ?? this.#read, changed);
    this.#remember(loaded.read, stored);
    const allProblems = loaded.problems.filter(({ file }) => changed.has(file));
    const report = {
      problems: shown(allProblems),
      warnings: shown(loaded.warnings.filter(({ file }) => changed.has(file))),
    };
    const stays = new Set(loaded.entries.map(({ definition }) => `${kindOf(definition)}/${definition.name}`));
    const gone = this.#tables
      .current()
      .filter(
        (row) =>
          !stays.has(`${row.kind}/${row.name}`) && !changed.has(row.file) && !removed.some((ref) => isSame(ref, row)),
      );
    const stale = gone.length > 0 && !lenient && !whole ? await this.#staleAmong(gone) : [];
    const lost = gone.filter((row) => !stale.some((one) => isSame(one, row)));
    if (lost.length > 0 && !lenient && !whole) {
      const why = loaded.problems.filter(({ file }) => !changed.has(file)).map(formatProblem);
      const named = lost.slice(0, 10).map(({ kind, name }) => `${kind} "${name}"`);
      throw new EngineError(
        'manifest_in_use',
        `${named.join(', ')} would no longer load: ${why.slice(0, 5).join('; ')}`,
        { problems: why.slice(0, limits.manifestIssues) },
      );
    }
    if (!lenient) this.#refuseTooLarge(loaded);
    const taken = loaded.entries.filter(({ file }) => changed.has(file));
    return { files, loaded, report, allProblems, taken, stale };
  }

  async #load(
    files: ReadonlyMap<string, string>,
    read: ReadonlyMap<string, ReadFile>,
    changed: ReadonlySet<string>,
  ): Promise<LoadedManifests> {
    const sources = this.#tables.sources();
    return await loadManifestsInSlices(
      [...files].map(([path, text]) => ({ path, text })),
      {
        common: this.#common,
        // stored manifests were checked when they were uploaded, and are checked again at run time
        refuseSecret: (name, file) => (changed.has(file) ? this.#refuseSecret(name) : null),
        intervals: this.#intervals(),
        isKept: (kind, name, source) => sources.get(`${kind}/${name}`) === source.trim(),
        read,
      },
      this.#pause,
    );
  }

  /** Those that do not load from the stored files either, so the change did not cause it. */
  async #staleAmong(gone: readonly CurrentRow[]): Promise<DamagedRow[]> {
    const loaded = await this.#load(this.#stored(), this.#read, new Set());
    const loads = new Set(loaded.entries.map(({ definition }) => `${kindOf(definition)}/${definition.name}`));
    return gone
      .filter(({ kind, name }) => !loads.has(`${kind}/${name}`))
      .map(({ kind, name, file }) => {
        const problem = loaded.problems.find((one) => one.file === file);
        const why = problem === undefined ? `its file ${file} no longer contains it` : formatProblem(problem);
        return { kind, name, error: `no longer loads, and is served unchanged: ${why}` };
      });
  }

  /** @throws EngineError `invalid_manifest` beyond the limits of one definition, and of all together */
  #refuseTooLarge({ entries, catalog }: LoadedManifests): void {
    let all = 0;
    for (const { definition } of entries) {
      const chars = this.#sizeOf(definition);
      if (chars > limits.definitionChars) {
        throw new EngineError(
          'invalid_manifest',
          `The ${kindOf(definition)} "${definition.name}" has ${chars} characters with its files (allowed: ${limits.definitionChars})`,
        );
      }
      all += chars;
    }
    // each importer of a folder's own definition has a copy of it
    for (const { definition } of catalog.data.scoped ?? []) all += this.#sizeOf(definition);
    if (all > limits.catalogDefinitionChars) {
      throw new EngineError(
        'invalid_manifest',
        `The manifests of the catalogue would have ${all} characters with the files that they name (allowed: ${limits.catalogDefinitionChars})`,
      );
    }
  }

  #sizeOf(definition: AnyDefinition): number {
    const known = this.#sizes.get(definition);
    if (known !== undefined) return known;
    const chars = JSON.stringify(definition).length;
    this.#sizes.set(definition, chars);
    return chars;
  }

  #stored(): ReadonlyMap<string, string> {
    this.#files ??= this.#tables.files();
    return this.#files;
  }

  /** Keeps parsed stored files, within `limits.catalogMemoryChars`. */
  #remember(read: ReadonlyMap<string, ReadFile>, stored: ReadonlyMap<string, string>): void {
    let left: number = limits.catalogMemoryChars;
    const kept = [...read].filter(([path, { text, size }]) => {
      if (stored.get(path) !== text) return false;
      left -= size;
      return left >= 0;
    });
    this.#read = new Map(kept);
  }

  #take({ files, loaded, report, taken, stale }: Plan, now: number): ChangeReport {
    const tables = this.#tables;
    const findable = new Set(CATALOG_KINDS.flatMap((kind) => loaded.catalog.list(kind)));
    const entries = loaded.entries.filter(({ definition }) => findable.has(definition));
    tables.transaction(() => {
      tables.writeFiles(this.#stored(), files);
      const before = new Map(tables.current().map(({ kind, name, revision }) => [`${kind}/${name}`, revision]));
      tables.clear(stale);
      for (const { importer, definition } of loaded.catalog.data.scoped ?? []) tables.addScoped(importer, definition);
      for (const entry of entries) {
        const ref = { kind: kindOf(entry.definition), name: entry.definition.name };
        const was = before.get(`${ref.kind}/${ref.name}`) ?? null;
        const known = this.#kept.get(entry.definition);
        if (was !== null && known?.file === entry.file && known.source === entry.source) tables.setCurrent(ref, was);
        else tables.keep(ref, entry, was, now);
      }
    });
    for (const { definition, file, source } of entries) this.#kept.set(definition, { file, source });
    this.#files = files;
    this.#remember(loaded.read, files);
    this.#stale = stale;
    this.#whole = stale.length > 0 ? null : { catalog: this.#together(loaded.catalog.data), damaged: [] };
    const all = new Map(this.list(null).map((one) => [`${one.kind}/${one.name}`, one]));
    return {
      ...report,
      manifests: taken.flatMap(({ definition }) => all.get(`${kindOf(definition)}/${definition.name}`) ?? []),
    };
  }

  #current(): { readonly catalog: Catalog; readonly damaged: readonly DamagedRow[] } {
    if (this.#whole !== null) return this.#whole;
    const { data, damaged } = this.#tables.definitions();
    this.#whole = { catalog: this.#together(data), damaged };
    return this.#whole;
  }

  /** The bundled definitions and the namespace's own. */
  #together(own: CatalogData): Catalog {
    const { data } = this.#common;
    // compare by identity: an uploaded definition may have the name of one that is bundled later
    const bundled = new Set(CATALOG_KINDS.flatMap((kind): readonly AnyDefinition[] => data[`${kind}s`]));
    for (const { definition } of data.scoped ?? []) bundled.add(definition);
    return createCatalog(
      {
        agents: [...data.agents, ...own.agents],
        tools: [...data.tools, ...own.tools],
        relics: [...data.relics, ...own.relics],
        workflows: [...data.workflows, ...own.workflows],
        monuments: [...data.monuments, ...own.monuments],
        scoped: [...(data.scoped ?? []), ...(own.scoped ?? [])],
      },
      (definition) => bundled.has(definition),
    );
  }

  #fileOf(ref: ManifestRef): string | null {
    return this.#tables.current().find((one) => isSame(one, ref))?.file ?? null;
  }

  #refuseDamaged({ kind, name }: ManifestRef): void {
    const damaged = this.#current().damaged.find((one) => one.kind === kind && one.name === name);
    if (damaged === undefined) return;
    throw new EngineError(
      'manifest_damaged',
      `The ${kind} "${name}" is quarantined: ${damaged.error}. Upload it again`,
      {
        manifest: { kind, name },
      },
    );
  }

  #refuseCommon({ kind, name }: ManifestRef): void {
    if (!this.#common.list(kind).some((definition) => definition.name === name)) return;
    throw new EngineError(
      'manifest_read_only',
      `The ${kind} "${name}" is bundled and cannot be changed; choose another name`,
    );
  }

  #unknown({ kind, name }: ManifestRef, asked: string | undefined): EngineError {
    const near = this.#current()
      .catalog.nearest(kind, name)
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

/** The first issues, and the number of the others. */
function shown(issues: readonly ManifestProblem[]): readonly ManifestProblem[] {
  const rest = issues.length - limits.manifestIssues;
  const first = issues[limits.manifestIssues];
  if (first === undefined) return issues;
  return [...issues.slice(0, limits.manifestIssues), { ...first, message: `${rest} more are not listed` }];
}

function kindOf(definition: AnyDefinition): CatalogKind {
  return definition.kind.toLowerCase() as CatalogKind;
}

function isSame(a: ManifestRef, b: ManifestRef): boolean {
  return a.kind === b.kind && a.name === b.name;
}

function listed(
  kind: CatalogKind,
  { name, version, summary, tags }: AnyDefinition,
  own: { readonly revision: number; readonly updatedAt: number } | null,
  error?: string,
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
    ...(error === undefined ? {} : { error }),
  };
}

/** A listed manifest whose definition cannot be read. */
function setAside(
  { kind, name, error }: DamagedRow,
  row: { readonly revision: number; readonly version: string; readonly updatedAt: number } | null,
): ListedManifest {
  const { revision = null, version = '', updatedAt = null } = row ?? {};
  return { kind, name, version, revision, summary: '', tags: [], common: false, updatedAt, error };
}
