/**
 * Loads manifest files into a catalogue (M1-M3, M8). Pure: reads only the given files. Manifests with errors are
 * reported; the others load.
 */
import type { ManifestKind, ManifestProblems, ManifestFile } from '../domain/catalog.ts';
import type { DescribedTool } from '../domain/code-tool.ts';
import { DEFAULT_INTERVALS } from '../domain/intervals.ts';
import type { IntervalLimits } from '../domain/intervals.ts';
import { isJsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import type { WorkflowDefinition } from '../domain/manifests/workflow.ts';
import { withSuggestions } from '../domain/nearest.ts';
import { WorkMeter } from '../domain/work.ts';
import { createCatalog, importerId } from './catalog.ts';
import type { AnyDefinition, Catalog, CatalogData } from './catalog.ts';
import { Definitions, isOfCode } from './definitions.ts';
import { checkFeeds } from './check/check-feeds.ts';
import { deploymentWarnings } from './check/deployment.ts';
import type { Deployment } from './check/deployment.ts';
import { recursionOf } from './check/check-recursion.ts';
import { TriggerCount } from './check/check-triggers.ts';
import { ProblemLog } from './check/problem-log.ts';
import { admitDocuments, nameOthers } from './read/admission.ts';
import type { AdmissionRules } from './read/admission.ts';
import { ImportIndex } from './read/imports.ts';
import { ImportBindings } from './read/import-bindings.ts';
import type { Found } from './read/import-bindings.ts';
import { PathIndex, normalPath } from './read/paths.ts';
import { fileOfSkill, readImplied, readManifestFile } from './read/read-file.ts';
import type { ReadDocument, ReadFile } from './read/read-file.ts';
import { SkillFolders } from './read/skill-file.ts';
import { secretsNamedBy } from './check/secrets.ts';

export interface LoadedManifests extends ManifestProblems {
  /** The manifests without errors. */
  readonly catalog: Catalog;
  /** Every loaded definition with its position and source. */
  readonly entries: readonly ManifestEntry[];
  /** The parsed files by path, for reuse by the next load. */
  readonly read: ReadonlyMap<string, ReadFile>;
}

export interface ManifestEntry {
  readonly definition: AnyDefinition;
  readonly file: string;
  /** Source text of the document. */
  readonly source: string;
}

export interface LoadOptions {
  /** Definitions that imports can refer to in addition to the files; their names are reserved. */
  readonly bundled?: Catalog | null;
  /** Why a manifest in `file` must not use this secret, or null (X3). */
  readonly refuseSecret?: (name: string, file: string) => string | null;
  /** The deployment that runs the manifests, for warnings. Default: unknown. */
  readonly deployment?: Deployment | null;
  /** Minimum intervals of feeds and schedules (F3, M6). Default: the built-in ones. */
  readonly intervals?: IntervalLimits;
  /** Whether an unchanged document is already stored: then the minimum intervals do not reject it. Default: none. */
  readonly isKept?: (kind: ManifestKind, name: string, source: string) => boolean;
  /** Whether a definition already has its name, so that no other file takes it. Default: none. */
  readonly isCurrent?: AdmissionRules['isCurrent'];
  /** Whether definitions of a file leave free names to those of other files. Default: none. */
  readonly yieldsNames?: AdmissionRules['yieldsNames'];
  /** Whether a file is part of the distribution: definitions in other files may replace its own. Default: none. */
  readonly isShipped?: AdmissionRules['isShipped'];
  /** Whether definitions that replace those of the distribution get a warning. Default: yes. */
  readonly warnsOfReplaced?: boolean;
  /** The code tools of the project (K2). Default: none. */
  readonly codeTools?: ReadonlyMap<string, DescribedTool>;
  /** The files of code tools that have errors, by the names of the tools: these are omitted (K2). Default: none. */
  readonly faultyTools?: ReadonlyMap<string, string>;
  /** Parsed files of an earlier load; files with the same text are not parsed again. */
  readonly read?: ReadonlyMap<string, ReadFile>;
}

/** Loads all manifests in `files`. Never throws for errors in manifests. */
export function loadManifests(files: readonly ManifestFile[], options: LoadOptions = {}): LoadedManifests {
  const loader = new Loader(files, options);
  let step = loader.next();
  while (step.done !== true) step = loader.next();
  return step.value;
}

/**
 * The same, in slices of limited work.
 *
 * @param pause called between slices, so that other work can run
 */
export async function loadManifestsInSlices(
  files: readonly ManifestFile[],
  options: LoadOptions,
  pause: () => Promise<void>,
): Promise<LoadedManifests> {
  const loader = new Loader(files, options);
  let done = 0;
  for (let step = loader.next(); ; step = loader.next()) {
    if (step.done === true) return step.value;
    done += step.value;
    if (done < limits.manifestSliceChars) continue;
    done = 0;
    await pause();
  }
}

class Loader {
  readonly #files: ReadonlyMap<string, ManifestFile>;
  readonly #paths: PathIndex;
  readonly #bundled: Catalog | null;
  readonly #refuseSecret: NonNullable<LoadOptions['refuseSecret']>;
  readonly #deployment: Deployment | null;
  readonly #isKept: NonNullable<LoadOptions['isKept']>;
  readonly #rules: AdmissionRules;
  readonly #before: ReadonlyMap<string, ReadFile>;
  readonly #read = new Map<string, ReadFile>();
  readonly #log = new ProblemLog();
  readonly #tokens = { left: limits.catalogTokens };
  readonly #suggestions = new WorkMeter(limits.manifestSuggestionSteps);
  readonly #steps: Iterator<number, LoadedManifests> = this.#load();
  readonly #index: ImportIndex<Found>;
  readonly #bindings: ImportBindings;
  readonly #definitions: Definitions;
  readonly #built = new Map<Found, AnyDefinition>();
  readonly #codeTools: ReadonlyMap<string, DescribedTool>;

  constructor(files: readonly ManifestFile[], options: LoadOptions) {
    const { bundled = null, refuseSecret = () => null, read, codeTools = new Map(), faultyTools = new Map() } = options;
    this.#codeTools = codeTools;
    this.#refuseSecret = refuseSecret;
    this.#deployment = options.deployment ?? null;
    this.#isKept = options.isKept ?? (() => false);
    this.#rules = {
      isShipped: options.isShipped ?? (() => false),
      warnsOfReplaced: options.warnsOfReplaced ?? true,
      isCurrent: options.isCurrent ?? (() => false),
      yieldsNames: options.yieldsNames ?? (() => false),
    };
    this.#files = new Map(files.map((file) => [normalPath(file.path), { ...file, path: normalPath(file.path) }]));
    this.#paths = new PathIndex(this.#files.keys());
    this.#bundled = bundled;
    this.#before = read ?? new Map();
    const folder = {
      isFile: (path: string): boolean => this.#files.has(path),
      hasErrors: (path: string, kind: ManifestKind): boolean => {
        const { problems = [], documents = [] } = this.#read.get(path) ?? {};
        return problems.length > 0 || documents.some((document) => document.kind === kind);
      },
      faultyCode: (name: string): string | null => faultyTools.get(name) ?? null,
    };
    this.#index = new ImportIndex(this.#paths, folder, bundled);
    this.#bindings = new ImportBindings(this.#index, this.#log);
    this.#definitions = new Definitions({
      textOf: (path) => this.#files.get(path)?.text ?? null,
      paths: this.#paths,
      index: this.#index,
      bindings: this.#bindings,
      log: this.#log,
      codeTools,
      faultyTools,
      // a stored document is not checked against intervals that were raised later
      intervalsOf: (found) => (this.#isStored(found) ? null : (options.intervals ?? DEFAULT_INTERVALS)),
    });
  }

  /** The next slice: the number of processed characters, or the final result. */
  next(): IteratorResult<number, LoadedManifests> {
    return withSuggestions(this.#suggestions, () => this.#steps.next());
  }

  *#load(): Generator<number, LoadedManifests> {
    const skills = new SkillFolders(this.#files.values());
    for (const [path, given] of this.#files) {
      const known = this.#before.get(path);
      const skill = skills.ownerOf(path);
      const again =
        skill === null && known !== undefined && isSameFile(known, given) && known.tokens <= this.#tokens.left;
      const file = again ? known : skill === null ? readManifestFile(given, this.#tokens) : fileOfSkill(given, skill);
      if (again) this.#tokens.left -= known.tokens;
      this.#read.set(path, file);
      this.#log.parsed(file);
      yield file === known ? 1 : file.size;
    }
    const written = [...this.#read.values()].flatMap((file) => file.documents);
    const documents = [...written, ...this.#impliedTools(written)];
    const { found, replaced } = admitDocuments(documents, this.#index, this.#log, this.#rules);
    yield documents.length;
    for (const one of found) yield this.#take(one);
    const given = nameOthers(found, this.#built, this.#log, this.#rules);
    const own = new Set([...this.#built.keys()].flatMap((one) => (one.scoped ? [] : [`${one.kind}/${one.name}`])));
    // what replaces a shipped definition must load
    for (const one of replaced) if (!own.has(`${one.kind}/${one.name}`)) yield this.#take(one);
    this.#countTriggers();
    yield* this.#checkAgents();
    yield* this.#warnOfRecursion();
    this.#omitMissing(given);
    for (const { document } of documents) document.release();
    return {
      catalog: createCatalog(this.#data()),
      ...this.#log.sorted(),
      entries: [...this.#built].map(([{ file, document }, definition]) => ({
        definition,
        file,
        source: document.source,
      })),
      read: this.#read,
    };
  }

  /**
   * A manifest for each code tool that no document describes: it then has no bindings and no secrets (K2). A tool of
   * another type with the name of a code tool is an issue, because it would depend on the importer which one is used.
   */
  #impliedTools(written: readonly ReadDocument[]): readonly ReadDocument[] {
    const own = written.filter(({ kind, file }) => kind === 'tool' && !this.#rules.isShipped(file));
    const described = new Set(written.filter(isOfCode).map(({ name }) => name));
    for (const read of own) {
      const code = isOfCode(read) ? undefined : this.#codeTools.get(read.name);
      if (code === undefined) continue;
      described.add(read.name);
      const message = `the code tool in ${code.file} has this name too; rename one of them`;
      this.#log.guarded(() => this.#log.report(read, { path: ['name'], part: 'value', message }));
    }
    return [...this.#codeTools.values()]
      .filter(({ name }) => !described.has(name))
      .flatMap(({ name, file }) => {
        const value = { kind: 'Tool', name, implementation: { type: 'code' } };
        return readImplied(file, value, this.#tokens).documents;
      });
  }

  /** Checks and builds one definition. @returns the number of processed characters */
  #take(found: Found): number {
    const reused = found.read.built !== null;
    this.#log.guarded(() => {
      const definition = this.#definitions.define(found);
      if (definition === null || !this.#checkSecrets(found, definition)) return;
      const isChild = definition.kind === 'Agent' || definition.kind === 'Workflow';
      this.#built.set(found, found.scoped && isChild ? { ...definition, scope: found.file } : definition);
      this.#warnOfDeployment(found, definition);
    });
    const chars = found.document.source.length;
    return reused ? chars / 8 : chars + (isScheduled(found) ? limits.cronChars : 0);
  }

  /**
   * Warns about imports that did not load. They are removed where their name would find another definition.
   *
   * @param taken names that another definition than the imported one has
   */
  #omitMissing(taken: ReadonlySet<string>): void {
    const named = new Set([...this.#built].flatMap(([{ scoped, kind, name }]) => (scoped ? [] : [`${kind}/${name}`])));
    const isGiven = ({ kind, name, scoped }: Found): boolean =>
      this.#index.isBundled(kind, name) || (!scoped && named.has(`${kind}/${name}`) && !taken.has(`${kind}/${name}`));
    for (const { importer, target } of this.#bindings.warnOfMissing(this.#built, isGiven)) {
      const definition = this.#built.get(importer);
      if (definition?.kind !== 'Agent' && definition?.kind !== 'Workflow') continue;
      const { imports } = definition;
      const field = target.kind === 'monument' ? null : (`${target.kind}s` as const);
      if (field === null || !named.has(`${target.kind}/${target.name}`)) continue;
      const left = (imports[field] ?? []).filter((name) => name !== target.name);
      this.#built.set(importer, { ...definition, imports: { ...imports, [field]: left } });
    }
  }

  /** Warns about workflows that always start themselves; at run time, the number of runs is limited (M7). */
  *#warnOfRecursion(): Generator<number, void> {
    const own = new Map(
      [...this.#built].flatMap(([{ scoped }, one]) =>
        one.kind === 'Workflow' && !scoped ? [[one.name, one] as const] : [],
      ),
    );
    for (const [found, definition] of this.#built) {
      const cycle = definition.kind === 'Workflow' && !found.scoped ? recursionOf(definition, own) : null;
      yield own.size;
      if (cycle === null) continue;
      const message = `the workflow always starts itself (${cycle.join(' -> ')}), and fails at ${limits.childDepth} nested runs; add a condition to a step`;
      this.#log.warn(found, { path: ['steps'], part: 'value', message });
    }
  }

  #data(): CatalogData {
    const all = [...this.#built].filter(([{ scoped }]) => !scoped).map(([, definition]) => definition);
    return {
      agents: all.filter((one) => one.kind === 'Agent'),
      tools: all.filter((one) => one.kind === 'Tool'),
      relics: all.filter((one) => one.kind === 'Relic'),
      workflows: all.filter((one) => one.kind === 'Workflow'),
      skills: all.filter((one) => one.kind === 'Skill'),
      monuments: all.filter((one) => one.kind === 'Monument'),
      scoped: this.#bindings.scoped.flatMap(({ importer, target }) => {
        const definition = target.scoped ? this.#built.get(target) : undefined;
        const by = this.#built.get(importer);
        return definition === undefined || by === undefined ? [] : [{ importer: importerId(by), definition }];
      }),
    };
  }

  /**
   * Removes workflows that exceed the limits of schedules and events; workflows that are already stored take
   * precedence.
   */
  #countTriggers(): void {
    const count = new TriggerCount(this.#bundled?.data.workflows ?? []);
    const kept: [Found, WorkflowDefinition][] = [];
    const others: [Found, WorkflowDefinition][] = [];
    for (const [found, definition] of this.#built) {
      // nothing starts a scoped workflow but its importers
      if (definition.kind === 'Workflow' && !found.scoped)
        (this.#isStored(found) ? kept : others).push([found, definition]);
    }
    for (const [, definition] of kept) count.admit(definition, true);
    for (const [found, definition] of others) {
      const issue = count.admit(definition, false);
      if (issue === null) continue;
      this.#built.delete(found);
      this.#log.guarded(() => this.#log.report(found, { ...issue, part: 'value' }));
    }
  }

  #isStored({ kind, name, document }: Found): boolean {
    return this.#isKept(kind, name, document.source);
  }

  /** Checks the feeds of every agent, with its imports. */
  *#checkAgents(): Generator<number, void> {
    const catalog = createCatalog(this.#data());
    for (const [found, definition] of this.#built) {
      if (definition.kind !== 'Agent' || definition.feeds.length === 0) continue;
      const resolved: ResolvedAgent | null = catalog.agent(found.name, definition.scope);
      if (resolved === null) continue;
      const { feeds, errors, warnings } = checkFeeds(resolved, this.#bundled);
      for (const warning of warnings) this.#log.warn(found, { ...warning, part: 'value' });
      if (errors.length > 0) this.#built.delete(found);
      else this.#built.set(found, { ...definition, feeds });
      this.#log.guarded(() => {
        for (const error of errors) this.#log.report(found, { ...error, part: 'value' });
      });
      yield found.document.source.length / 8;
    }
  }

  /** Reports every secret that the definition must not use. */
  #checkSecrets(found: Found, definition: AnyDefinition): boolean {
    let allowed = true;
    for (const { name, path } of secretsNamedBy(definition)) {
      const message = this.#refuseSecret(name, found.file);
      if (message === null) continue;
      allowed = false;
      this.#log.report(found, { path, part: 'value', message });
    }
    return allowed;
  }

  #warnOfDeployment(found: Found, definition: AnyDefinition): void {
    if (this.#deployment === null) return;
    for (const warning of deploymentWarnings(definition, this.#deployment)) {
      this.#log.warn(found, { ...warning, part: 'value' });
    }
  }
}

/** Whether a parsed file would be the same if it were parsed again. */
function isSameFile(known: ReadFile, { text, isAlone = false }: ManifestFile): boolean {
  if (known.text !== text || known.isOfSkill) return false;
  return (
    known.isAlone === isAlone || (known.documents.length > 0 && known.skipped.length + known.warnings.length === 0)
  );
}

/** Whether the document has a cron expression. */
function isScheduled({ kind, value }: Found): boolean {
  const trigger = kind === 'workflow' && isJsonObject(value) ? value['trigger'] : null;
  return isJsonObject(trigger) && trigger['type'] === 'scheduled';
}
