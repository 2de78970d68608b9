/**
 * Converts a folder of manifests of Cortex-MK1 and agent-lib-cpp into this system's form (M1). Pure: reads the given files,
 * and returns the files of the new folder.
 *
 * A manifest that does not load after its conversion is not part of the new folder: its text, as far as it was converted, is
 * returned beside it with the reasons as comments.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ManifestFile, ManifestKind, ManifestProblem, ManifestProblems } from '../../src/domain/catalog.ts';
import { limits } from '../../src/domain/limits.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import type { Catalog } from '../../src/catalog/catalog.ts';
import { unknownField } from '../../src/catalog/check/issues.ts';
import { fieldName } from '../../src/catalog/check/problem.ts';
import type { FieldPath } from '../../src/catalog/check/problem.ts';
import type { LoadedManifests } from '../../src/catalog/load.ts';
import { FOREIGN } from '../../src/catalog/read/foreign.ts';
import { splitFrontMatter } from '../../src/catalog/read/front-matter.ts';
import { ImportIndex } from '../../src/catalog/read/imports.ts';
import type { ImportKind } from '../../src/catalog/read/imports.ts';
import { PathIndex, relativeTo } from '../../src/catalog/read/paths.ts';
import { readManifestFile } from '../../src/catalog/read/read-file.ts';
import type { ReadDocument, ReadFile } from '../../src/catalog/read/read-file.ts';
import { SkillFolders } from '../../src/catalog/read/skill-file.ts';
import { understandAgent } from './agent/agent.ts';
import { understandAliases } from './aliases.ts';
import { Draft } from './draft.ts';
import { OldImports } from './old-imports.ts';
import type { FoundImport } from './old-imports.ts';
import { settleImports } from './settle-imports.ts';
import { understandRelic } from './relic/relic.ts';
import { skipReason } from './tool/skipped.ts';
import { understandTool } from './tool/tool.ts';
import { understandWorkflow } from './workflow/workflow.ts';
import { writeDocument } from './write-document.ts';
import type { Remark } from './write-document.ts';

export type Status = 'loads' | 'fails' | 'skipped';

export interface MigratedDocument {
  readonly file: string;
  readonly kind: ManifestKind;
  readonly name: string;
  readonly status: Status;
}

/** Positions are those of the author's text. */
export interface Migration {
  readonly documents: readonly MigratedDocument[];
  /** Why something could not be converted. */
  readonly problems: readonly ManifestProblem[];
  /** What was changed and how, and what the loader warns about. */
  readonly notes: readonly ManifestProblem[];
  /** Files, and documents in files, that are no manifests. */
  readonly skipped: readonly ManifestProblem[];
  /** The new folder: manifests and the files that they refer to, by path. */
  readonly files: ReadonlyMap<string, string>;
  /** Text of manifests that could not be converted, by the path of their file. */
  readonly unconverted: ReadonlyMap<string, string>;
  /** The definitions of the new folder. */
  readonly loaded: LoadedManifests;
}

export interface OldFolder extends Partial<ManifestProblems> {
  /** Its path, with which the paths of all files begin; comments leave it out. Default: they have no common path. */
  readonly path?: string;
  readonly files: readonly ManifestFile[];
}

export interface MigrationPorts {
  /** Loads these files as a folder of the project. */
  readonly load: (files: readonly ManifestFile[]) => LoadedManifests;
  /** The definitions that the folder can import besides its own. Default: none. */
  readonly others?: Catalog;
}

interface Converted {
  readonly read: ReadDocument;
  readonly draft: Draft;
  /** Why it is no manifest here, although its kind is known; null for all others. */
  readonly skip: string | null;
}

/** What the original writes differently, by kind. */
const UNDERSTAND: Readonly<Partial<Record<ManifestKind, (draft: Draft) => void>>> = {
  agent: understandAgent,
  tool: understandTool,
  relic: understandRelic,
  workflow: understandWorkflow,
};

/** Loads of a folder until it has no more failures. */
const MOST_LOADS = 8;

/** @param folder its text files, and what is wrong with its other files */
export function migrateFolder(folder: OldFolder, ports: MigrationPorts): Migration {
  return new FolderMigration(folder, ports).run();
}

class FolderMigration {
  readonly #files: ReadonlyMap<string, string>;
  readonly #paths: PathIndex;
  readonly #ports: MigrationPorts;
  /** A message without the path of the folder. */
  readonly #short: (text: string) => string;
  readonly #skills: SkillFolders;
  /** Files with documents of a known kind. */
  readonly #read = new Map<string, ReadFile>();
  readonly #problems: ManifestProblem[] = [];
  readonly #notes: ManifestProblem[] = [];
  readonly #skipped: ManifestProblem[] = [];
  /** Documents that failed, with their problems. */
  readonly #failed = new Map<ReadDocument, ManifestProblem[]>();
  /** Documents in the latest texts. */
  readonly #written = new Set<ReadDocument>();

  constructor({ path = '', files, problems = [], warnings = [], skipped = [] }: OldFolder, ports: MigrationPorts) {
    this.#ports = ports;
    const prefix = path === '' || path.endsWith('/') ? path : `${path}/`;
    this.#short = (text) => (prefix === '' ? text : text.replaceAll(prefix, ''));
    this.#problems.push(...problems);
    this.#notes.push(...warnings);
    this.#skipped.push(...skipped);
    this.#files = new Map(files.map(({ path, text }) => [path, text]));
    this.#paths = new PathIndex(this.#files.keys());
    this.#skills = new SkillFolders(files);
    const quota = { left: limits.catalogTokens };
    for (const file of files) {
      if (this.#skills.ownerOf(file.path) !== null) continue;
      const read = readManifestFile(file, quota);
      if (read.documents.length + read.problems.length > 0) this.#read.set(file.path, read);
      this.#problems.push(...read.problems);
      this.#notes.push(...read.warnings);
      this.#skipped.push(...read.skipped);
    }
  }

  run(): Migration {
    let converted = this.#convert();
    let texts = this.#texts(converted);
    let loaded = this.#load(texts);
    for (let count = 1; count < MOST_LOADS && this.#collectFailed(converted, loaded); count += 1) {
      converted = this.#convert();
      texts = this.#texts(converted);
      loaded = this.#load(texts);
    }
    const warnings = loaded.warnings.flatMap((one) => this.#placed(one, converted, loaded)?.problem ?? []);
    const own = converted.flatMap((one) => this.#own(one));
    return {
      documents: converted.map(({ read, skip }) => ({
        file: read.file,
        kind: read.kind,
        name: read.name,
        status: skip !== null ? 'skipped' : this.#failed.has(read) ? 'fails' : 'loads',
      })),
      problems: sorted([...this.#problems, ...[...this.#failed.values()].flat()]),
      notes: sorted([...this.#notes, ...own, ...warnings]),
      skipped: sorted(this.#skipped),
      files: this.#newFolder(texts, loaded, converted),
      unconverted: this.#unconverted(converted),
      loaded,
    };
  }

  /** All documents in this system's form. Imports of documents that failed are left out. */
  #convert(): readonly Converted[] {
    const documents = [...this.#read.values()].flatMap((file) => file.documents);
    const skips = new Map(documents.map((read) => [read, skipReason(read.kind, read.document.value)]));
    const index = new ImportIndex<ReadDocument>(
      this.#paths,
      {
        isFile: (path) => this.#files.has(path),
        hasErrors: (path) => (this.#read.get(path)?.problems.length ?? 0) > 0,
        faultyCode: () => null,
      },
      this.#ports.others ?? createCatalog(NO_DEFINITIONS),
    );
    const usable = documents.filter((read) => skips.get(read) === null && read.name !== '');
    for (const read of usable) index.add(read);
    const imports = new OldImports(index, this.#paths, (path) => this.#files.has(path));
    const find = (written: string, kind: ImportKind, importer: ReadDocument): FoundImport => {
      const found = imports.find(written, kind, importer);
      const target = found !== null && 'name' in found ? found.target : null;
      if (target === null || !this.#failed.has(target)) return found;
      return { faulty: `${target.file} has errors, so the ${kind} in it is omitted` };
    };
    return documents.map((read) => {
      const draft = new Draft(read.value, {
        textOf: (path) => this.#files.get(this.#paths.resolve(read.file, path)) ?? null,
        find: (written, kind) => find(written, kind, read),
      });
      const skip = skips.get(read) ?? null;
      if (skip === null) {
        UNDERSTAND[read.kind]?.(draft);
        understandAliases(read.kind, draft);
        settleImports(read.kind, draft);
      }
      return { read, draft, skip };
    });
  }

  /** The texts of the files with manifests, without what is skipped or failed. */
  #texts(converted: readonly Converted[]): ReadonlyMap<string, string> {
    const texts = new Map<string, string>();
    this.#written.clear();
    for (const [path, { documents, text, problems }] of this.#read) {
      const all = converted.filter(({ read }) => documents.includes(read));
      const used = all.filter(({ read, skip }) => skip === null && !this.#failed.has(read));
      if (used.length === 0) continue;
      for (const { read } of used) this.#written.add(read);
      const isWhole = used.length === all.length && problems.length === 0;
      const changed = used.filter(({ read, draft }) => !isDeepStrictEqual(draft.value, read.value));
      if (isWhole && changed.length === 0) texts.set(path, text);
      else texts.set(path, used.map((one) => textOf(one, this.#short)).join('---\n'));
    }
    return texts;
  }

  #load(texts: ReadonlyMap<string, string>): LoadedManifests {
    const others = [...this.#files].filter(([path]) => !this.#read.has(path));
    return this.#ports.load([...others, ...texts].map(([path, text]) => ({ path, text })));
  }

  /** @returns whether a document did not load that did not fail before */
  #collectFailed(converted: readonly Converted[], loaded: LoadedManifests): boolean {
    const before = this.#failed.size;
    for (const { draft, read } of converted) {
      const refused = draft.refused.map((issue) => problemAt(read, issue.path, issue.part, issue.message));
      if (refused.length > 0 && !this.#failed.has(read)) this.#failed.set(read, refused);
    }
    for (const problem of loaded.problems) {
      const placed = this.#placed(problem, converted, loaded);
      if (placed === null) continue;
      const { read, problem: found } = placed;
      // a name of the original that was not understood
      const message = found.message === FOREIGN ? unknownField(found.field, []) : found.message;
      this.#failed.set(read, [...(this.#failed.get(read) ?? []), { ...found, message }]);
    }
    return this.#failed.size > before;
  }

  /** A problem or warning about a new text, at its place in the author's text; null if it is about another file. */
  #placed(
    problem: ManifestProblem,
    converted: readonly Converted[],
    { read: files }: LoadedManifests,
  ): { readonly read: ReadDocument; readonly problem: ManifestProblem } | null {
    const own = converted.filter(({ read }) => read.file === problem.file && this.#written.has(read));
    const starts = (files.get(problem.file)?.documents ?? []).map(({ document }) => document.place([]).line);
    const one = own[Math.max(0, starts.filter((line) => line <= problem.line).length - 1)];
    if (one === undefined) return null;
    const path = one.draft.original(pathOf(problem.field));
    const part = problem.message === FOREIGN || problem.message.startsWith('unknown field') ? 'key' : 'value';
    return { read: one.read, problem: { ...problem, ...problemAt(one.read, path, part, problem.message) } };
  }

  #own({ read, draft, skip }: Converted): ManifestProblem[] {
    if (skip !== null) return [problemAt(read, ['name'], 'value', skip)];
    const notes = draft.notes.map(({ path, part, message }) => problemAt(read, path, part, message));
    return [...read.notes.map(({ path, part, message }) => problemAt(read, path, part, message)), ...notes];
  }

  /** The manifests, the files of skills, and the files that manifests name. */
  #newFolder(
    texts: ReadonlyMap<string, string>,
    loaded: LoadedManifests,
    converted: readonly Converted[],
  ): ReadonlyMap<string, string> {
    const files = new Map(texts);
    const copy = (path: string): void => {
      const text = this.#files.get(path);
      if (text !== undefined && !this.#read.has(path)) files.set(path, text);
    };
    for (const path of this.#files.keys()) {
      const owner = this.#skills.ownerOf(path);
      if (owner !== null && texts.has(owner)) copy(path);
    }
    for (const { documents } of loaded.read.values()) {
      for (const { file, built } of documents) {
        if (!texts.has(file)) continue;
        for (const { path } of built?.files ?? []) copy(this.#paths.resolve(file, path));
        for (const { path, names } of built?.folders ?? []) {
          for (const name of names) copy(relativeTo(file, `${path}/${name}`));
        }
      }
    }
    // what a manifest names that did not load
    for (const { read, draft } of converted) {
      if (this.#failed.has(read)) for (const path of textsIn(draft.value)) copy(this.#paths.resolve(read.file, path));
    }
    return new Map([...files].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  #unconverted(converted: readonly Converted[]): ReadonlyMap<string, string> {
    const texts = new Map<string, string>();
    // A file with text that cannot be read is there whole.
    for (const [file, { text, problems }] of this.#read) {
      if (problems.length === 0) continue;
      const failed = converted.flatMap(({ read }) => (read.file === file ? (this.#failed.get(read) ?? []) : []));
      const why = [...problems, ...failed].map(({ line, message }) => `# migrate: error in line ${line}: ${message}\n`);
      texts.set(file, `${why.map((one) => this.#short(one)).join('')}${withLineEnd(text)}`);
    }
    const isWhole = new Set(texts.keys());
    for (const one of converted) {
      const problems = this.#failed.get(one.read);
      if (problems === undefined || isWhole.has(one.read.file)) continue;
      const why = problems.map(({ line, field, message }) => ({
        path: pathOf(field),
        message: `error in line ${line}${field === '' ? '' : ` at ${field}`}: ${message}`,
      }));
      const { file } = one.read;
      const before = texts.get(file);
      texts.set(file, `${before === undefined ? '' : `${before}---\n`}${textOf(one, this.#short, why)}`);
    }
    return texts;
  }
}

/** The text of a document: a Markdown manifest keeps its text after the front matter. */
function textOf({ read, draft }: Converted, short: (text: string) => string, more: readonly Remark[] = []): string {
  const { value } = draft;
  if (more.length === 0 && isDeepStrictEqual(value, read.value)) return withLineEnd(read.document.source);
  const lost = draft.notes.filter(({ needsAct }) => needsAct);
  const remarks = [...lost, ...more].map(({ path, message }) => ({ path, message: short(message) }));
  const parts = /\.(md|markdown)$/i.test(read.file) ? splitFrontMatter(read.document.source) : null;
  if (parts === null) return writeDocument(read.document.source, draft, value, remarks);
  const field = read.kind === 'agent' ? 'persona' : 'description';
  const isBody = value[field] === parts.body && read.document.value[field] === undefined;
  const { [field]: _body, ...front } = value;
  const yaml = parts.yaml.replace(/^\uFEFF?---[ \t]*\r?\n/, '').replace(/---[ \t]*\r?\n?$/, '');
  const text = writeDocument(yaml, draft, isBody ? front : value, remarks);
  return `---\n${text}---\n${isBody ? `\n${parts.body}\n` : ''}`;
}

const NO_DEFINITIONS = { agents: [], tools: [], relics: [], workflows: [], skills: [], monuments: [], scoped: [] };

function withLineEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

function problemAt(read: ReadDocument, path: FieldPath, part: 'key' | 'value', message: string): ManifestProblem {
  const { line, column } = read.document.place(path, part);
  return { file: read.file, line, column, field: fieldName(path), message };
}

/** `steps[2].name` as a path. A name with a dot gives the place of the map that has it. */
function pathOf(field: string): FieldPath {
  return field.split(/[.[\]]+/).flatMap((step) => (step === '' ? [] : [/^\d+$/.test(step) ? Number(step) : step]));
}

/** All texts in a value. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function sorted(problems: readonly ManifestProblem[]): readonly ManifestProblem[] {
  return problems.toSorted((a, b) =>
    a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1,
  );
}
