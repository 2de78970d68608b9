/**
 * The catalogue of one namespace: uploaded manifests with versions, in addition to the bundled ones (M4).
 *
 * Owns the tables of its database (store-tables.ts); change-plan.ts computes the result of each change. Does not own
 * the bundled manifests, authorisation (http), and the versions that a run uses (the session).
 *
 * Invariants:
 *  1. Every current manifest loaded without errors, with all its imports, when it was uploaded.
 *  2. A change is applied completely or not at all; it never breaks another current manifest.
 *  3. A version always refers to the same text, until it is deleted to free space.
 *  4. Changes are processed one after another in slices of limited work; meanwhile, requests see the stored state.
 *  5. A stored manifest that cannot be read, or that the loader no longer accepts, is listed with its error, stays in
 *     the database, and does not block changes of other manifests.
 */
import { MANIFEST_KINDS } from '../../domain/catalog.ts';
import type {
  ManifestKind,
  ManifestRef,
  ListedManifest,
  StoredManifest,
  ChangeReport,
  ReplaceReport,
  ManifestFile,
} from '../../domain/catalog.ts';
import { DEFAULT_INTERVALS } from '../../domain/intervals.ts';
import type { IntervalLimits } from '../../domain/intervals.ts';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../domain/manifests/resolved.ts';
import type { SqlDatabase } from '../../domain/ports/storage.ts';
import { createCatalog } from '../catalog.ts';
import type { AnyDefinition, Catalog, CatalogData } from '../catalog.ts';
import type { Deployment } from '../check/deployment.ts';
import type { ManifestEntry } from '../load.ts';
import { folderOf } from '../read/paths.ts';
import { ChangePlanner, invalidManifest } from './change-plan.ts';
import type { ChangePlan, SecretCheck } from './change-plan.ts';
import { isSame, kindOf, listed, listedDamaged } from './listed-manifest.ts';
import { ManifestTables } from './store-tables.ts';
import type { DamagedRow } from './store-tables.ts';

/** The current revision of a manifest; null for bundled ones. */
export type RevisionOf = Pick<ListedManifest, 'kind' | 'name' | 'revision'>;

export class ManifestStore {
  readonly #tables: ManifestTables;
  readonly #bundled: Catalog;
  readonly #sources: Readonly<Record<string, string>>;
  readonly #planner: ChangePlanner;
  readonly #written: (manifests: readonly RevisionOf[]) => void;
  #merged: { readonly catalog: Catalog; readonly damaged: readonly DamagedRow[] } | null = null;
  /** Stored manifests that the loader rejected at the last load. */
  #stale: readonly DamagedRow[] = [];
  /** Current definitions as stored. */
  readonly #kept = new WeakMap<AnyDefinition, Omit<ManifestEntry, 'definition'>>();
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /**
   * @param sources source texts of the bundled manifests, by `kind/name`
   * @param refuseSecret why a manifest must not use a secret, or null (X3)
   * @param pause called between slices, so that other work can run
   * @param intervals minimum intervals of feeds and schedules (F3, M6)
   * @param deployment what is known about the deployment, for warnings
   * @param written called in the transaction of each change, with the manifests after it
   */
  constructor(
    sql: SqlDatabase,
    bundled: Catalog,
    sources: Readonly<Record<string, string>>,
    refuseSecret: SecretCheck = () => null,
    pause: () => Promise<void> = () => Promise.resolve(),
    intervals: () => IntervalLimits = () => DEFAULT_INTERVALS,
    deployment: () => Deployment | null = () => null,
    written: (manifests: readonly RevisionOf[]) => void = () => undefined,
  ) {
    this.#written = written;
    this.#tables = new ManifestTables(sql);
    this.#bundled = bundled;
    this.#sources = sources;
    this.#planner = new ChangePlanner({ tables: this.#tables, bundled, refuseSecret, pause, intervals, deployment });
  }

  /** @throws EngineError `manifest_damaged` */
  agent(name: string, scope?: string): ResolvedAgent | null {
    if (scope === undefined) this.#refuseDamaged({ kind: 'agent', name });
    return this.#current().catalog.agent(name, scope);
  }

  /** @throws EngineError `manifest_damaged` */
  workflow(name: string, scope?: string): ResolvedWorkflow | null {
    if (scope === undefined) this.#refuseDamaged({ kind: 'workflow', name });
    return this.#current().catalog.workflow(name, scope);
  }

  /** The namespace's definitions and the bundled ones. */
  get data(): CatalogData {
    return this.#current().catalog.data;
  }

  list(kind: ManifestKind | null): ListedManifest[] {
    const kinds = kind === null ? MANIFEST_KINDS : [kind];
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
      return [...found, ...rest.map((one) => listedDamaged(one, own.get(`${of}/${one.name}`) ?? null))];
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
    const bundled = this.#bundled.list(kind).find((definition) => definition.name === name);
    const asked = wanted.revision === undefined ? wanted.version : `revision ${wanted.revision}`;
    if (bundled !== undefined) {
      if (asked !== undefined && asked !== bundled.version) throw this.#unknown(ref, asked);
      const source = this.#sources[`${kind}/${name}`] ?? null;
      return { ...listed(kind, bundled, null), definition: bundled, source, file: null, versions: [] };
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
      const aside = listedDamaged({ ...ref, error: definition }, { ...row, version: found.version });
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
    return await this.#serialised(async () => {
      this.#refuseBundled(ref);
      const home = this.#fileOf(ref);
      const others = home === null ? [] : this.#tables.sourcesIn(home).filter((one) => !isSame(one, ref));
      if (home !== null && others.length > 0) {
        throw new EngineError(
          'manifest_in_use',
          `The ${ref.kind} "${ref.name}" shares the file ${home} with other manifests; upload that file to /manifests instead`,
        );
      }
      const path = home ?? (ref.kind === 'skill' ? `skills/${ref.name}/SKILL.md` : `${ref.kind}s/${ref.name}.yaml`);
      const plan = await this.#planner.plan([{ path, text }]);
      const taken = plan.accepted.map(({ definition }) => `${definition.kind.toLowerCase()} "${definition.name}"`);
      if (plan.report.problems.length > 0) throw invalidManifest(plan.report);
      if (taken.length !== 1 || taken[0] !== `${ref.kind} "${ref.name}"`) {
        const found = taken.length === 0 ? 'none' : taken.slice(0, 10).join(', ');
        throw new EngineError(
          'invalid_manifest',
          `The body must contain only the ${ref.kind} "${ref.name}"; found: ${found}`,
        );
      }
      return this.#apply(plan, now);
    });
  }

  /** Adds files: manifests without errors are added, the others are reported. */
  async upload(files: readonly ManifestFile[], now: number): Promise<ChangeReport> {
    return await this.#serialised(async () => this.#apply(await this.#planner.planWhatLoads(files), now));
  }

  /**
   * Replaces the whole catalogue with these files. Old versions can still be read.
   *
   * @throws EngineError `invalid_manifest` with the issues; then nothing has changed
   */
  async replace(files: readonly ManifestFile[], now: number): Promise<ReplaceReport> {
    return await this.#serialised(async () => {
      const before = this.#tables.current();
      const plan = await this.#planner.plan(files, { whole: true });
      if (plan.report.problems.length > 0) throw invalidManifest(plan.report);
      const report = this.#apply(plan, now);
      const stays = new Set(this.#tables.current().map(({ kind, name }) => `${kind}/${name}`));
      const removed = before.filter(({ kind, name }) => !stays.has(`${kind}/${name}`));
      return { ...report, removed: removed.map(({ kind, name }) => ({ kind, name })) };
    });
  }

  /** Returns what `upload` would return; nothing changes. */
  async validate(files: readonly ManifestFile[]): Promise<ChangeReport> {
    const { report, accepted } = await this.#serialised(async () => await this.#planner.plan(files, { lenient: true }));
    const manifests = accepted.map(({ definition }) => ({
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
    await this.#serialised(async () => {
      this.#refuseBundled(ref);
      const file = this.#fileOf(ref);
      if (file === null) throw this.#unknown(ref, undefined);
      const rest = this.#tables.sourcesIn(file).filter((one) => !isSame(one, ref));
      const text = rest.length === 0 ? null : rest.map(({ source }) => source).join('\n---\n');
      const given = text === null ? [] : [{ path: file, text }];
      // The files of a skill go with it.
      const own = ref.kind === 'skill' ? `${folderOf(file)}/` : null;
      const beside = own === null ? [] : [...this.#planner.stored.keys()].filter((path) => path.startsWith(own));
      const without = text === null ? [file, ...beside] : [];
      this.#apply(await this.#planner.plan(given, { without, removed: [ref] }), now);
    });
  }

  /**
   * Runs changes one after another: while one is paused, no other may change its starting point.
   *
   * @throws EngineError `catalog_busy` if too many are queued
   */
  async #serialised<T>(work: () => Promise<T>): Promise<T> {
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

  /** Stores a plan. */
  #apply(plan: ChangePlan, now: number): ChangeReport {
    const { files, loaded, report, accepted, stale } = plan;
    const tables = this.#tables;
    const findable = new Set(MANIFEST_KINDS.flatMap((kind) => loaded.catalog.list(kind)));
    const entries = loaded.entries.filter(({ definition }) => findable.has(definition));
    tables.transaction(() => {
      tables.writeFiles(this.#planner.stored, files);
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
      const bundled = MANIFEST_KINDS.flatMap((kind) =>
        this.#bundled.list(kind).map(({ name }) => ({ kind, name, revision: null })),
      );
      this.#written([...bundled, ...tables.current()]);
    });
    for (const { definition, file, source } of entries) this.#kept.set(definition, { file, source });
    this.#planner.applied(plan);
    this.#stale = stale;
    this.#merged = stale.length > 0 ? null : { catalog: this.#withBundled(loaded.catalog.data), damaged: [] };
    const all = new Map(this.list(null).map((one) => [`${one.kind}/${one.name}`, one]));
    return {
      ...report,
      manifests: accepted.flatMap(({ definition }) => all.get(`${kindOf(definition)}/${definition.name}`) ?? []),
    };
  }

  #current(): { readonly catalog: Catalog; readonly damaged: readonly DamagedRow[] } {
    if (this.#merged !== null) return this.#merged;
    const { data, damaged } = this.#tables.definitions();
    this.#merged = { catalog: this.#withBundled(data), damaged };
    return this.#merged;
  }

  /** The bundled definitions and the namespace's own. */
  #withBundled(own: CatalogData): Catalog {
    const { data } = this.#bundled;
    // compare by identity: an uploaded definition may have the name of one that is bundled later
    const definitions = new Set(MANIFEST_KINDS.flatMap((kind): readonly AnyDefinition[] => data[`${kind}s`]));
    for (const { definition } of data.scoped ?? []) definitions.add(definition);
    return createCatalog(
      {
        agents: [...data.agents, ...own.agents],
        tools: [...data.tools, ...own.tools],
        relics: [...data.relics, ...own.relics],
        workflows: [...data.workflows, ...own.workflows],
        skills: [...data.skills, ...own.skills],
        monuments: [...data.monuments, ...own.monuments],
        scoped: [...(data.scoped ?? []), ...(own.scoped ?? [])],
      },
      (definition) => definitions.has(definition),
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

  #refuseBundled({ kind, name }: ManifestRef): void {
    if (!this.#bundled.list(kind).some((definition) => definition.name === name)) return;
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
