/**
 * Loads manifest files into a catalogue (M1-M3, M8). Pure: reads only the given files. Manifests with errors are
 * reported; the others load.
 */
import type { z } from 'zod';
import type { Json, JsonObject } from '../domain/json.ts';
import { DEFAULT_INTERVALS } from '../domain/intervals.ts';
import type { IntervalLimits } from '../domain/intervals.ts';
import { isJsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { AgentDefinition, ResolvedAgent, WorkflowDefinition } from '../domain/manifest.ts';
import { withSuggestions } from '../domain/nearest.ts';
import { WorkMeter } from '../domain/work.ts';
import { toAgent } from './build/build-agent.ts';
import { toBase } from './build/build-base.ts';
import type { BuildContext } from './build/build-base.ts';
import { toRelic } from './build/build-relic.ts';
import { toTool } from './build/build-tool.ts';
import { toWorkflow } from './build/build-workflow.ts';
import { createCatalog } from './catalog.ts';
import type { AnyDefinition, Catalog, CatalogData, CatalogKind, MonumentDefinition } from './catalog.ts';
import { checkFeeds } from './check/check-feeds.ts';
import { circleOf } from './check/check-recursion.ts';
import { TriggerCount } from './check/check-triggers.ts';
import { check } from './check/issues.ts';
import type { Issue } from './check/issues.ts';
import { ImportIndex } from './read/imports.ts';
import type { ImportKind } from './read/imports.ts';
import { PathIndex, relativeTo, normalPath } from './read/paths.ts';
import { fieldName } from './check/problem.ts';
import type { FieldPath, ManifestProblem } from './check/problem.ts';
import { readManifestFile } from './read/read-file.ts';
import type { BuiltDefinition, ReadDocument, ReadFile } from './read/read-file.ts';
import { agentSchema, monumentSchema, toolSchema } from './schema/schema.ts';
import type { AgentInput, MonumentInput } from './schema/schema.ts';
import { relicSchema } from './schema/schema-relic.ts';
import { workflowSchema } from './schema/schema-workflow.ts';
import { secretsNamedBy } from './check/secrets.ts';

/**
 * One file of a manifest folder: a YAML manifest, a Markdown file whose front matter has a `kind`, or a file that manifests
 * refer to by path.
 */
export interface ManifestFile {
  /** Relative to the folder's parent, or absolute, with `/`; used in messages. */
  readonly path: string;
  readonly text: string;
}

export interface LoadedManifests {
  /** The manifests without errors. */
  readonly catalog: Catalog;
  readonly problems: readonly ManifestProblem[];
  readonly warnings: readonly ManifestProblem[];
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
  readonly common?: Catalog | null;
  /** Why a manifest in `file` must not use this secret, or null (X3). */
  readonly refuseSecret?: (name: string, file: string) => string | null;
  /** Minimum intervals of feeds and schedules (F3, M6). Default: the built-in ones. */
  readonly intervals?: IntervalLimits;
  /** Whether an unchanged document is already stored: then the minimum intervals do not reject it. Default: none. */
  readonly isKept?: (kind: CatalogKind, name: string, source: string) => boolean;
  /** Parsed files of an earlier load; files with the same text are not parsed again. */
  readonly read?: ReadonlyMap<string, ReadFile>;
}

const IMPORTABLE = { agents: 'agent', tools: 'tool', relics: 'relic', workflows: 'workflow' } as const;

/** A document in this load. */
interface Found extends Omit<ReadDocument, 'built'> {
  readonly read: ReadDocument;
  /** Another folder has a definition with the same name that takes precedence for other importers (M2). */
  readonly scoped: boolean;
}

/** Thrown when a file reaches the maximum number of issues; the rest of the file is not checked. */
class TooManyProblems extends Error {
  override readonly name = 'TooManyProblems';
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
  readonly #texts: ReadonlyMap<string, string>;
  readonly #paths: PathIndex;
  readonly #common: Catalog | null;
  readonly #refuseSecret: NonNullable<LoadOptions['refuseSecret']>;
  readonly #intervals: IntervalLimits;
  readonly #isKept: NonNullable<LoadOptions['isKept']>;
  readonly #before: ReadonlyMap<string, ReadFile>;
  readonly #read = new Map<string, ReadFile>();
  readonly #problems: ManifestProblem[] = [];
  readonly #warnings: ManifestProblem[] = [];
  readonly #told = new Map<string, number>();
  readonly #tokens = { left: limits.catalogTokens };
  readonly #suggestions = new WorkMeter(limits.manifestSuggestionSteps);
  readonly #steps: Iterator<number, LoadedManifests> = this.#load();
  readonly #found: Found[] = [];
  readonly #index: ImportIndex<Found>;
  /** Importers of definitions that only their own folder uses. */
  readonly #bound: { readonly importer: Found; readonly target: Found }[] = [];
  /** Imports by importer, to report targets that did not load. */
  readonly #imported = new Map<Found, Map<string, { readonly target: Found; readonly field: FieldPath }>>();
  readonly #built = new Map<Found, AnyDefinition>();

  constructor(files: readonly ManifestFile[], options: LoadOptions) {
    const { common = null, refuseSecret = () => null, read } = options;
    this.#refuseSecret = refuseSecret;
    this.#intervals = options.intervals ?? DEFAULT_INTERVALS;
    this.#isKept = options.isKept ?? (() => false);
    this.#texts = new Map(files.map((file) => [normalPath(file.path), file.text]));
    this.#paths = new PathIndex(this.#texts.keys());
    this.#common = common;
    this.#before = read ?? new Map();
    this.#index = new ImportIndex(this.#paths, (path) => this.#texts.has(path), common);
  }

  /** The next slice: the number of processed characters, or the final result. */
  next(): IteratorResult<number, LoadedManifests> {
    return withSuggestions(this.#suggestions, () => this.#steps.next());
  }

  *#load(): Generator<number, LoadedManifests> {
    for (const [path, text] of this.#texts) {
      const known = this.#before.get(path);
      const again = known?.text === text && known.tokens <= this.#tokens.left;
      const file = again ? known : readManifestFile(path, text, this.#tokens);
      if (again) this.#tokens.left -= known.tokens;
      this.#read.set(path, file);
      this.#problems.push(...file.problems);
      this.#told.set(path, file.problems.length);
      for (const document of file.documents) this.#guarded(() => this.#admit(document));
      yield file === known ? 1 : file.size;
    }
    for (const found of this.#found) {
      const reused = found.read.built !== null;
      this.#guarded(() => {
        const definition = this.#definition(found);
        if (definition !== null && this.#mayName(found, definition)) this.#built.set(found, definition);
      });
      const chars = found.document.source.length;
      yield reused ? chars / 8 : chars + (isScheduled(found) ? limits.cronChars : 0);
    }
    this.#countTriggers();
    yield* this.#checkAgents();
    yield* this.#warnOfCircles();
    for (const [importer, targets] of this.#imported) {
      if (!this.#built.has(importer)) continue;
      for (const { target, field } of targets.values()) {
        if (this.#built.has(target)) continue;
        const message = `the ${target.kind} "${target.name}" did not load and is omitted`;
        this.#warn(importer, { path: field, part: 'value', message });
      }
    }
    for (const { documents } of this.#read.values()) for (const { document } of documents) document.release();
    const byPlace = (a: ManifestProblem, b: ManifestProblem): number =>
      a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1;
    return {
      catalog: createCatalog(this.#data()),
      problems: this.#problems.sort(byPlace),
      warnings: this.#warnings.sort(byPlace),
      entries: [...this.#built].map(([{ file, document }, definition]) => ({
        definition,
        file,
        source: document.source,
      })),
      read: this.#read,
    };
  }

  /** Warns about workflows that always start themselves; at run time, the number of runs is limited (M7). */
  *#warnOfCircles(): Generator<number, void> {
    const own = new Map(
      [...this.#built.values()].flatMap((one) => (one.kind === 'Workflow' ? [[one.name, one] as const] : [])),
    );
    for (const [found, definition] of this.#built) {
      const circle = definition.kind === 'Workflow' ? circleOf(definition, own) : null;
      yield own.size;
      if (circle === null) continue;
      const message = `the workflow always starts itself (${circle.join(' -> ')}), until ${limits.childDepth} runs are above each other, and that one fails: put a condition on a step`;
      this.#warn(found, { path: ['steps'], part: 'value', message });
    }
  }

  #data(): CatalogData {
    const all = [...this.#built].filter(([{ scoped }]) => !scoped).map(([, definition]) => definition);
    return {
      agents: all.filter((one) => one.kind === 'Agent'),
      tools: all.filter((one) => one.kind === 'Tool'),
      relics: all.filter((one) => one.kind === 'Relic'),
      workflows: all.filter((one) => one.kind === 'Workflow'),
      monuments: all.filter((one) => one.kind === 'Monument'),
      scoped: this.#bound.flatMap(({ importer, target }) => {
        const definition = this.#built.get(target);
        return definition === undefined ? [] : [{ importer: `${importer.kind}/${importer.name}`, definition }];
      }),
    };
  }

  /** Removes workflows that exceed the limits of schedules and events; workflows that are already stored take precedence. */
  #countTriggers(): void {
    const count = new TriggerCount(this.#common?.data.workflows ?? []);
    const kept: [Found, WorkflowDefinition][] = [];
    const others: [Found, WorkflowDefinition][] = [];
    for (const [found, definition] of this.#built) {
      if (definition.kind === 'Workflow') (this.#wasTaken(found) ? kept : others).push([found, definition]);
    }
    for (const [, definition] of kept) count.admit(definition, true);
    for (const [found, definition] of others) {
      const issue = count.admit(definition, false);
      if (issue === null) continue;
      this.#built.delete(found);
      this.#guarded(() => this.#report(found, { ...issue, part: 'value' }));
    }
  }

  #wasTaken({ kind, name, document }: Found): boolean {
    return this.#isKept(kind, name, document.source);
  }

  /** Checks the feeds of every agent, with its imports. */
  *#checkAgents(): Generator<number, void> {
    const catalog = createCatalog(this.#data());
    for (const [found, definition] of this.#built) {
      if (definition.kind !== 'Agent' || definition.feeds.length === 0) continue;
      const resolved: ResolvedAgent | null = catalog.agent(found.name);
      if (resolved === null) continue;
      const { errors, warnings } = checkFeeds(resolved, this.#common);
      for (const warning of warnings) this.#warn(found, { ...warning, part: 'value' });
      if (errors.length > 0) this.#built.delete(found);
      this.#guarded(() => {
        for (const error of errors) this.#report(found, { ...error, part: 'value' });
      });
      yield found.document.source.length / 8;
    }
  }

  #definition(found: Found): AnyDefinition | null {
    const known = found.read.built;
    if (known !== null && this.#means(found, known)) {
      for (const warning of known.warnings) this.#warn(found, warning);
      const bound = known.targets.every(({ written, kind, field }) => this.#resolve(written, kind, found, field));
      return bound ? known.definition : null;
    }
    found.read.built = null;
    switch (found.kind) {
      case 'tool':
        return this.#build(found, toolSchema, toTool);
      case 'relic':
        return this.#build(found, relicSchema, toRelic);
      case 'agent':
        return this.#build(found, agentSchema, (input, { target, ...context }) =>
          toAgent(input, importsOf(input.import, target), context),
        );
      case 'workflow':
        return this.#build(found, workflowSchema, (input, { target, ...context }) =>
          toWorkflow(input, { ...context, imports: importsOf(input.import, target), target }),
        );
      case 'monument':
        return this.#build(found, monumentSchema, toMonument);
    }
  }

  /** Whether everything that a definition depends on is unchanged. */
  #means(found: Found, { files, targets }: BuiltDefinition): boolean {
    return (
      files.every(({ path, text }) => this.#texts.get(this.#paths.meant(found.file, path)) === text) &&
      targets.every(({ written, kind, name }) => {
        const meant = this.#index.look(written, kind, found);
        return 'name' in meant && meant.name === name;
      })
    );
  }

  /** Reports every secret that the definition must not use. */
  #mayName(found: Found, definition: AnyDefinition): boolean {
    let may = true;
    for (const { name, path } of secretsNamedBy(definition)) {
      const message = this.#refuseSecret(name, found.file);
      if (message === null) continue;
      may = false;
      this.#report(found, { path, part: 'value', message });
    }
    return may;
  }

  #admit(read: ReadDocument): void {
    const { kind, name, file } = read;
    const found: Found = { ...read, read, scoped: false };
    if (this.#found.length >= limits.catalogDefinitions) {
      const message = `the folder has more than ${limits.catalogDefinitions} manifests`;
      return this.#report(found, { path: ['kind'], part: 'value', message });
    }
    const same = name === '' ? [] : this.#index.named(kind, name);
    const [first] = same;
    const at = { path: ['name'], part: 'value' } as const;
    if (name !== '' && this.#index.isCommon(kind, name)) {
      const message = `"${name}" is the name of a bundled ${kind}, which cannot be changed`;
      return this.#report(found, { ...at, message });
    }
    if (first === undefined) return this.#take(found);
    const { line } = first.document.place(['name']);
    const message = `there is already ${article(kind)} ${kind} "${name}", in ${first.file}:${line}`;
    // agents, workflows and monuments are called by name; tools and relics belong to their importers
    if ((kind !== 'tool' && kind !== 'relic') || this.#index.inSameFolder(kind, name, file)) {
      return this.#report(found, { ...at, message });
    }
    this.#warn(found, { ...at, message: `${message}; importers that are nearer to this one use it` });
    return this.#take({ ...found, scoped: true });
  }

  #take(found: Found): void {
    this.#found.push(found);
    this.#index.add(found);
  }

  /** Validates and builds one definition; null if it has errors. */
  #build<Input, T extends AnyDefinition>(
    found: Found,
    schema: z.ZodType<Input>,
    build: (input: Input, context: BuildContext & { readonly target: Target }) => T,
  ): T | null {
    const { file } = found;
    const checked = check(schema, found.normalised.value);
    for (const warning of checked.warnings) this.#warn(found, warning);
    for (const error of checked.errors) this.#report(found, error);
    if (checked.value === null) return null;

    const before = this.#problems.length;
    const addIssue = (path: FieldPath, message: string): void => this.#report(found, { path, part: 'value', message });
    const files: BuiltDefinition['files'][number][] = [];
    const targets: BuiltDefinition['targets'][number][] = [];
    let left = limits.definitionChars;
    const definition = build(checked.value, {
      addIssue,
      unknown: checked.unknown,
      intervals: this.#wasTaken(found) ? null : this.#intervals,
      work: new WorkMeter(limits.manifestSchemaSteps),
      readFile: (path, field) => {
        const text = this.#texts.get(this.#paths.meant(file, path));
        if (text === undefined) {
          addIssue(field, `names the file "${path}", but there is no ${relativeTo(file, path)}`);
          return null;
        }
        left -= text.length;
        if (left < 0) {
          const message = `the files that the manifest names have more than ${limits.definitionChars} characters in total`;
          this.#report(found, { path: field, part: 'value', message });
          throw new TooManyProblems();
        }
        files.push({ path, text });
        return text;
      },
      target: (written, kind, field) => {
        const name = this.#resolve(written, kind, found, field);
        if (name !== null) targets.push({ written, kind, field, name });
        return name;
      },
    });
    if (this.#problems.length > before) return null;
    found.read.built = { definition, warnings: checked.warnings, files, targets };
    return definition;
  }

  /** Resolves an import, by path or by name (M2). */
  #resolve(written: string, kind: ImportKind, importer: Found, field: FieldPath): string | null {
    const meant = this.#index.look(written, kind, importer);
    if ('message' in meant) {
      this.#report(importer, { path: field, part: 'value', message: meant.message() });
      return null;
    }
    return meant.target === null ? meant.name : this.#bind(importer, meant.target, field);
  }

  /** Records the target of an import; one importer cannot use two definitions with the same name. */
  #bind(importer: Found, target: Found, field: FieldPath): string | null {
    const key = `${target.kind}/${target.name}`;
    const bound = this.#imported.get(importer) ?? new Map<string, { target: Found; field: FieldPath }>();
    this.#imported.set(importer, bound);
    const other = bound.get(key);
    if (other !== undefined && other.target !== target) {
      const message = `"${target.name}" already refers to the ${target.kind} in ${other.target.file}`;
      this.#report(importer, { path: field, part: 'value', message });
      return null;
    }
    if (other === undefined) {
      bound.set(key, { target, field });
      if (target.scoped) this.#bound.push({ importer, target });
    }
    return target.name;
  }

  /** @throws TooManyProblems when the file has the maximum number of issues */
  #report(found: Found, issue: Issue): void {
    const told = (this.#told.get(found.file) ?? 0) + 1;
    if (told <= limits.manifestProblems) {
      this.#told.set(found.file, told);
      this.#problems.push(problemOf(found, issue));
    }
    if (told >= limits.manifestProblems) throw new TooManyProblems();
  }

  #warn(found: Found, issue: Issue): void {
    const key = `${found.file} warnings`;
    const told = (this.#told.get(key) ?? 0) + 1;
    if (told > limits.manifestProblems) return;
    this.#told.set(key, told);
    this.#warnings.push(problemOf(found, issue));
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (fault) {
      if (!(fault instanceof TooManyProblems)) throw fault;
    }
  }
}

type Target = (written: string, kind: ImportKind, field: FieldPath) => string | null;

function problemOf({ file, document, normalised }: Found, issue: Issue): ManifestProblem {
  const path = normalised.original(issue.path);
  const { line, column } = document.place(path, issue.part);
  return { file, line, column, field: fieldName(path), message: issue.message };
}

/** Whether the document has a cron expression. */
function isScheduled({ kind, normalised: { value } }: Found): boolean {
  const trigger = kind === 'workflow' && isJsonObject(value) ? value['trigger'] : null;
  return isJsonObject(trigger) && trigger['type'] === 'scheduled';
}

function importsOf(written: AgentInput['import'], target: Target): AgentDefinition['imports'] {
  const names = (field: keyof typeof IMPORTABLE): string[] => {
    const resolved = (written?.[field] ?? []).map((entry, index) =>
      target(entry, IMPORTABLE[field], ['import', field, index]),
    );
    return [...new Set(resolved.filter((name) => name !== null))];
  };
  return { agents: names('agents'), tools: names('tools'), relics: names('relics'), workflows: names('workflows') };
}

const BASE_FIELDS = new Set([
  'kind',
  'version',
  'name',
  'summary',
  'description',
  'author',
  'state',
  'tags',
  'metadata',
]);

function toMonument(input: MonumentInput): MonumentDefinition {
  const body: Record<string, Json> = {};
  for (const [field, value] of Object.entries(input)) {
    if (!BASE_FIELDS.has(field)) body[field] = value as Json;
  }
  return { kind: 'Monument', ...toBase(input, {}), body: body satisfies JsonObject };
}

function article(kind: CatalogKind): string {
  return kind === 'agent' ? 'an' : 'a';
}
