/**
 * Computes the catalogue after a change, before anything is stored (M4): its files, their definitions, and whether
 * another manifest would be lost.
 *
 * Owns the parsed files, so that a change parses only the files that it changes. Reads the tables, but does not own
 * them.
 */
import { MANIFEST_KINDS } from '../../domain/catalog.ts';
import type { ManifestRef, ManifestProblem, ManifestProblems, ManifestFile } from '../../domain/catalog.ts';
import type { IntervalLimits } from '../../domain/intervals.ts';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { AnyDefinition, Catalog } from '../catalog.ts';
import { loadManifestsInSlices } from '../load.ts';
import type { LoadedManifests, ManifestEntry } from '../load.ts';
import type { Deployment } from '../check/deployment.ts';
import { formatProblem } from '../check/problem.ts';
import type { ReadFile } from '../read/read-file.ts';
import { SkillFolders } from '../read/skill-file.ts';
import { placeholderOf } from './faulty-file.ts';
import { isSame, kindOf } from './listed-manifest.ts';
import type { CurrentRow, DamagedRow, ManifestTables } from './store-tables.ts';

/** Why a manifest must not use this secret, or null. */
export type SecretCheck = (name: string) => string | null;

export interface ChangePlan {
  /** The files after the change. */
  readonly files: ReadonlyMap<string, string>;
  readonly loaded: LoadedManifests;
  readonly report: ManifestProblems;
  /** All issues of the given files, including those that the report omits. */
  readonly allProblems: readonly ManifestProblem[];
  readonly accepted: readonly ManifestEntry[];
  /** Current manifests that were not changed and did not load before this change either. */
  readonly stale: readonly DamagedRow[];
}

export interface PlannerPorts {
  readonly tables: ManifestTables;
  readonly bundled: Catalog;
  readonly refuseSecret: SecretCheck;
  readonly pause: () => Promise<void>;
  readonly intervals: () => IntervalLimits;
  /** For warnings; null if the deployment is unknown. */
  readonly deployment: () => Deployment | null;
}

export class ChangePlanner {
  readonly #ports: PlannerPorts;
  /** The stored files; read when they are first needed. */
  #files: ReadonlyMap<string, string> | null = null;
  /** Parsed stored files. */
  #read: ReadonlyMap<string, ReadFile> = new Map();
  readonly #sizes = new WeakMap<AnyDefinition, number>();

  constructor(ports: PlannerPorts) {
    this.#ports = ports;
  }

  /**
   * Skips manifests that do not load, and files that would break manifests that loaded before; the report says why.
   * Beside manifests that load, a placeholder is stored for a new file with errors, so that its importers omit it.
   */
  async planWhatLoads(files: readonly ManifestFile[]): Promise<ChangePlan> {
    const first = await this.plan(files, { lenient: true });
    const given = new Set(files.map(({ path }) => path));
    const large = this.#tooLarge(first.loaded).filter(({ file }) => given.has(file));
    const tooLarge = new Set(large.map(({ file }) => file));
    const faulty = new Set([...first.allProblems, ...large].map(({ file }) => file));
    const good = new Set(first.accepted.flatMap(({ file }) => (tooLarge.has(file) ? [] : [file])));
    const now = namesIn(first.loaded);
    const current = this.#ports.tables.current();
    const lost = new Set(current.flatMap(({ kind, name, file }) => (now.has(`${kind}/${name}`) ? [] : [file])));
    const stored = new Set(current.map(({ file }) => file));
    const isReserved = (path: string): boolean =>
      first.allProblems.every(({ file, code }) => file !== path || code === 'manifest_read_only');
    const replaced = new Set<string>();
    const usable = files.flatMap((file) => {
      const { path } = file;
      if (!faulty.has(path) || (good.has(path) && !lost.has(path))) return [file];
      const read = first.loaded.read.get(path);
      if (read === undefined || good.size === 0 || good.has(path) || stored.has(path)) return [];
      if (!tooLarge.has(path) && isReserved(path)) return [file];
      replaced.add(path);
      return [placeholderOf(read)];
    });
    // A skill is stored as a whole (C8); without its SKILL.md, its files could be read as manifests.
    const skills = new SkillFolders(files);
    const whole = new Set(usable.flatMap(({ path }) => (replaced.has(path) ? [] : [path])));
    const left = usable.filter(({ path }) => {
      const skill = skills.ownerOf(path);
      return skill === null || whole.has(skill);
    });
    const behind = new Set([...faulty].filter((file) => !good.has(file)));
    const options = { read: first.loaded.read, behind };
    const kept = new Set(left.flatMap(({ path }) => (replaced.has(path) ? [] : [path])));
    try {
      return reported(await this.plan(left, options), first, kept, large);
    } catch (fault) {
      const isInUse = fault instanceof EngineError && fault.code === 'manifest_in_use';
      const taken = isInUse && files.length > 1 ? this.#takenFrom(first.accepted, left) : new Set<string>();
      if (!isInUse || taken.size === 0) throw fault;
      const issues = [...taken].map((file) => ({ file, line: 1, column: 1, field: '', message: fault.message }));
      const rest = left.filter(({ path }) => !taken.has(path));
      for (const path of taken) kept.delete(path);
      return reported(await this.plan(rest, options), first, kept, [...large, ...issues]);
    }
  }

  /** The given files that no longer contain a manifest that they contained. */
  #takenFrom(accepted: readonly ManifestEntry[], given: readonly ManifestFile[]): ReadonlySet<string> {
    const paths = new Set(given.map(({ path }) => path));
    const keyOf = (kind: string, name: string, file: string): string => `${kind}/${name} ${file}`;
    const stays = new Set(accepted.map(({ definition, file }) => keyOf(kindOf(definition), definition.name, file)));
    const rows = this.#ports.tables.current();
    return new Set(
      rows.flatMap(({ kind, name, file }) => (paths.has(file) && !stays.has(keyOf(kind, name, file)) ? [file] : [])),
    );
  }

  /**
   * Computes the catalogue after a change.
   *
   * @throws EngineError `manifest_in_use` if another manifest would no longer load; `invalid_manifest` beyond a limit
   */
  async plan(
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
      /** Given files that leave their names to others. */
      readonly behind?: ReadonlySet<string>;
    } = {},
  ): Promise<ChangePlan> {
    const { without = [], removed = [], whole = false, lenient = false, behind } = options;
    const stored = this.stored;
    const files = new Map(whole ? [] : stored);
    for (const path of without) files.delete(path);
    for (const { path, text } of given) files.set(path, text);
    let chars = 0;
    for (const text of files.values()) chars += text.length;
    if (files.size > limits.catalogFiles || chars > limits.catalogBytes) {
      throw new EngineError(
        'invalid_manifest',
        `The catalogue would contain ${files.size} files with ${chars} characters (allowed: ${limits.catalogFiles} files, ${limits.catalogBytes} characters)`,
      );
    }
    const changed = new Set(given.map(({ path }) => path));
    const loaded = await this.#load(files, { read: options.read ?? this.#read, given, whole, behind });
    this.#remember(loaded.read, stored);
    const allProblems = loaded.problems.filter(({ file }) => changed.has(file));
    const report = {
      problems: shown(allProblems),
      warnings: shown(loaded.warnings.filter(({ file }) => changed.has(file))),
      skipped: shown(loaded.skipped.filter(({ file }) => changed.has(file))),
    };
    const stays = namesIn(loaded);
    const gone = this.#ports.tables
      .current()
      .filter(
        (row) =>
          !stays.has(`${row.kind}/${row.name}`) && !changed.has(row.file) && !removed.some((ref) => isSame(ref, row)),
      );
    const stale = gone.length > 0 && !lenient && !whole ? await this.#staleAmong(gone) : [];
    const lost = gone.filter((row) => !stale.some((one) => isSame(one, row)));
    if (lost.length > 0 && !lenient && !whole) {
      const files = new Set(lost.map(({ file }) => file));
      const why = loaded.problems.filter(({ file }) => files.has(file)).map(formatProblem);
      const named = lost.slice(0, 10).map(({ kind, name }) => `${kind} "${name}"`);
      throw new EngineError(
        'manifest_in_use',
        `${named.join(', ')} would no longer load: ${why.slice(0, 5).join('; ')}`,
        { problems: why.slice(0, limits.manifestIssues) },
      );
    }
    if (!lenient) this.#refuseTooLarge(loaded);
    const accepted = loaded.entries.filter(({ file }) => changed.has(file));
    return { files, loaded, report, allProblems, accepted, stale };
  }

  async #load(
    files: ReadonlyMap<string, string>,
    options: {
      readonly read: ReadonlyMap<string, ReadFile>;
      readonly given: readonly ManifestFile[];
      readonly whole?: boolean;
      readonly behind?: ReadonlySet<string> | undefined;
    },
  ): Promise<LoadedManifests> {
    const { read, whole = false } = options;
    const given = new Map(options.given.map((file) => [file.path, file]));
    const sources = this.#ports.tables.sources();
    const current = new Set(
      whole ? [] : this.#ports.tables.current().map(({ kind, name, file }) => `${kind}/${name} ${file}`),
    );
    return await loadManifestsInSlices(
      [...files].map(([path, text]) => given.get(path) ?? { path, text }),
      {
        bundled: this.#ports.bundled,
        // stored manifests were checked when they were uploaded, and are checked again at run time
        refuseSecret: (name, file) => (given.has(file) ? this.#ports.refuseSecret(name) : null),
        intervals: this.#ports.intervals(),
        deployment: this.#ports.deployment(),
        isCurrent: (kind, name, file) => current.has(`${kind}/${name} ${file}`),
        yieldsNames: (file) => !given.has(file) || options.behind?.has(file) === true,
        isKept: (kind, name, source) => sources.get(`${kind}/${name}`) === source.trim(),
        read,
      },
      this.#ports.pause,
    );
  }

  /** Manifests that do not load from the stored files either: the change is not the cause. */
  async #staleAmong(gone: readonly CurrentRow[]): Promise<DamagedRow[]> {
    const loaded = await this.#load(this.stored, { read: this.#read, given: [] });
    const loads = namesIn(loaded);
    return gone
      .filter(({ kind, name }) => !loads.has(`${kind}/${name}`))
      .map(({ kind, name, file }) => {
        const issues = [...loaded.problems, ...loaded.warnings, ...loaded.skipped];
        const problem = issues.find((one) => one.file === file);
        const why = problem === undefined ? `its file ${file} no longer contains it` : formatProblem(problem);
        return { kind, name, error: `no longer loads; the stored version is still served: ${why}` };
      });
  }

  /** @throws EngineError `invalid_manifest` beyond the limits of one definition, and of all together */
  #refuseTooLarge(loaded: LoadedManifests): void {
    const [large] = this.#tooLarge(loaded);
    if (large !== undefined) throw new EngineError('invalid_manifest', large.message);
    let all = 0;
    for (const { definition } of loaded.entries) all += this.#sizeOf(definition);
    // each importer of a folder's own definition has a copy of it
    for (const { definition } of loaded.catalog.data.scoped ?? []) all += this.#sizeOf(definition);
    if (all > limits.catalogDefinitionChars) {
      throw new EngineError(
        'invalid_manifest',
        `The manifests of the catalogue would have ${all} characters with their files (allowed: ${limits.catalogDefinitionChars})`,
      );
    }
  }

  /** Definitions beyond the limit of one definition. */
  #tooLarge({ entries }: LoadedManifests): ManifestProblem[] {
    return entries.flatMap(({ definition, file }) => {
      const chars = this.#sizeOf(definition);
      if (chars <= limits.definitionChars) return [];
      const message = `The ${kindOf(definition)} "${definition.name}" has ${chars} characters with its files (allowed: ${limits.definitionChars})`;
      return [{ file, line: 1, column: 1, field: '', message }];
    });
  }

  #sizeOf(definition: AnyDefinition): number {
    const known = this.#sizes.get(definition);
    if (known !== undefined) return known;
    const chars = JSON.stringify(definition).length;
    this.#sizes.set(definition, chars);
    return chars;
  }

  /** The stored files. */
  get stored(): ReadonlyMap<string, string> {
    this.#files ??= this.#ports.tables.files();
    return this.#files;
  }

  /** Called after the files of a plan have been stored. */
  applied({ files, loaded }: Pick<ChangePlan, 'files' | 'loaded'>): void {
    this.#files = files;
    this.#remember(loaded.read, files);
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
}

/** The error for a change with issues. */
export function invalidManifest({ problems, warnings, skipped }: ManifestProblems): EngineError {
  const lines = problems.map(formatProblem);
  const isReserved = problems.length > 0 && problems.every(({ code }) => code === 'manifest_read_only');
  const code = isReserved ? 'manifest_read_only' : 'invalid_manifest';
  return new EngineError(code, lines.slice(0, 5).join('; '), { problems, warnings, skipped });
}

/** `kind/name` of every manifest that is called by name. */
function namesIn({ catalog }: LoadedManifests): ReadonlySet<string> {
  return new Set(MANIFEST_KINDS.flatMap((kind) => catalog.list(kind).map(({ name }) => `${kind}/${name}`)));
}

/** The plan with the issues of all given files: those of its own load, and those of files that it left out. */
function reported(
  plan: ChangePlan,
  first: ChangePlan,
  kept: ReadonlySet<string>,
  more: readonly ManifestProblem[],
): ChangePlan {
  const merged = (before: readonly ManifestProblem[], now: readonly ManifestProblem[]): readonly ManifestProblem[] => [
    ...before.filter(({ file }) => !kept.has(file)),
    ...now.filter(({ file }) => kept.has(file)),
  ];
  const { report } = plan;
  return {
    ...plan,
    report: {
      problems: shown([...merged(first.allProblems, plan.allProblems), ...more]),
      warnings: shown(merged(first.report.warnings, report.warnings)),
      skipped: shown(merged(first.report.skipped, report.skipped)),
    },
  };
}

/** The first issues, and the number of the others. */
function shown(issues: readonly ManifestProblem[]): readonly ManifestProblem[] {
  const rest = issues.length - limits.manifestIssues;
  const first = issues[limits.manifestIssues];
  if (first === undefined) return issues;
  return [...issues.slice(0, limits.manifestIssues), { ...first, message: `${rest} more are not listed` }];
}
