/**
 * Files in, catalogue out: the one way from YAML to definitions (M1-M3, M8). Pure: it reads nothing
 * but the files that it is given. What cannot be loaded is reported; the rest loads.
 */
import type { z } from 'zod';
import type { Json, JsonObject } from '../domain/json.ts';
import type { AgentDefinition, ResolvedAgent } from '../domain/manifest.ts';
import { toAgent } from './build-agent.ts';
import { toBase } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { toRelic } from './build-relic.ts';
import { toTool } from './build-tool.ts';
import { toWorkflow } from './build-workflow.ts';
import { createCatalog } from './catalog.ts';
import type { AnyDefinition, Catalog, CatalogData, CatalogKind, MonumentDefinition } from './catalog.ts';
import { checkFeeds } from './check-feeds.ts';
import { check } from './complaints.ts';
import type { Complaint } from './complaints.ts';
import { normalise, splitFrontMatter, withBody } from './dialect.ts';
import type { Normalised } from './dialect.ts';
import { nearestNames } from './nearest.ts';
import { fieldName } from './problem.ts';
import type { FieldPath, ManifestProblem } from './problem.ts';
import { agentSchema, monumentSchema, toolSchema } from './schema.ts';
import type { AgentInput, MonumentInput } from './schema.ts';
import { relicSchema } from './schema-relic.ts';
import { workflowSchema } from './schema-workflow.ts';
import { readYaml } from './yaml-file.ts';
import type { YamlDocument } from './yaml-file.ts';

/**
 * One file of a manifest folder. YAML files are manifests, and so are Markdown files whose front matter
 * has a `kind`; the others are what manifests name by path.
 */
export interface ManifestFile {
  /** Relative to the folder's parent or absolute, with `/`; shown in problems as it is. */
  readonly path: string;
  readonly text: string;
}

export interface LoadedManifests {
  /** What loaded without an error. */
  readonly catalog: Catalog;
  readonly problems: readonly ManifestProblem[];
  readonly warnings: readonly ManifestProblem[];
  /** Every definition that loaded, with where it stands and how it was written. */
  readonly entries: readonly ManifestEntry[];
}

export interface ManifestEntry {
  readonly definition: AnyDefinition;
  readonly file: string;
  /** The document as it was written. */
  readonly source: string;
}

const KINDS = { agent: 'Agent', tool: 'Tool', relic: 'Relic', workflow: 'Workflow', monument: 'Monument' } as const;
const IMPORTABLE = { agents: 'agent', tools: 'tool', relics: 'relic', workflows: 'workflow' } as const;

/** A document that has a kind and a name, before its imports are known. */
interface Found {
  readonly file: string;
  readonly kind: CatalogKind;
  readonly name: string;
  readonly document: YamlDocument;
  readonly normalised: Normalised;
  /** Another folder's definition has the name, and is the one that everybody else finds (M2). */
  readonly scoped: boolean;
}

/**
 * Loads every manifest among `files`. Never throws for what an author wrote.
 *
 * @param common what bare names may mean beside the files; its names are taken
 */
export function loadManifests(files: readonly ManifestFile[], common: Catalog | null = null): LoadedManifests {
  return new Loader(files, common).load();
}

class Loader {
  readonly #texts: ReadonlyMap<string, string>;
  readonly #common: Catalog | null;
  readonly #problems: ManifestProblem[] = [];
  readonly #warnings: ManifestProblem[] = [];
  readonly #found: Found[] = [];
  /** Who means a definition that only its own folder finds. */
  readonly #bound: { readonly importer: Found; readonly target: Found }[] = [];
  /** What stands in an import, so that importers of what did not load can be told. */
  readonly #imported: { readonly importer: Found; readonly target: Found; readonly field: FieldPath }[] = [];
  readonly #built = new Map<Found, AnyDefinition>();

  constructor(files: readonly ManifestFile[], common: Catalog | null) {
    this.#texts = new Map(files.map((file) => [normalPath(file.path), file.text]));
    this.#common = common;
  }

  load(): LoadedManifests {
    for (const [path, text] of this.#texts) {
      if (/\.ya?ml$/i.test(path)) this.#readFile(path, text);
      else if (/\.(md|markdown)$/i.test(path)) this.#readMarkdown(path, text);
    }
    for (const found of this.#found) {
      const definition = this.#definition(found);
      if (definition !== null) this.#built.set(found, definition);
    }
    for (const { found, resolved } of this.#agents()) {
      const { errors, warnings } = checkFeeds(resolved, this.#common);
      for (const warning of warnings) this.#report(this.#warnings, found, { ...warning, part: 'value' });
      for (const error of errors) this.#report(this.#problems, found, { ...error, part: 'value' });
      if (errors.length > 0) this.#built.delete(found);
    }
    for (const { importer, target, field } of this.#imported) {
      if (this.#built.has(target) || !this.#built.has(importer)) continue;
      const message = `the ${target.kind} "${target.name}" did not load, so it is left out`;
      this.#report(this.#warnings, importer, { path: field, part: 'value', message });
    }
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
    };
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

  /** Every agent that was built, with what it imports of these files. */
  #agents(): { readonly found: Found; readonly resolved: ResolvedAgent }[] {
    const catalog = createCatalog(this.#data());
    return [...this.#built.keys()].flatMap((found) => {
      const resolved = found.kind === 'agent' ? catalog.agent(found.name) : null;
      return resolved === null ? [] : [{ found, resolved }];
    });
  }

  #definition(found: Found): AnyDefinition | null {
    switch (found.kind) {
      case 'tool':
        return this.#build(found, toolSchema, toTool);
      case 'relic':
        return this.#build(found, relicSchema, toRelic);
      case 'agent':
        return this.#build(found, agentSchema, (input, context) =>
          toAgent(input, this.#imports(input.import, found), context),
        );
      case 'workflow':
        return this.#build(found, workflowSchema, (input, context) =>
          toWorkflow(input, {
            ...context,
            imports: this.#imports(input.import, found),
            target: (written, kind, field) => this.#resolve(written, kind, found, field),
          }),
        );
      case 'monument':
        return this.#build(found, monumentSchema, toMonument);
    }
  }

  #readFile(file: string, text: string): void {
    const { documents, faults } = readYaml(text);
    for (const { line, column, message } of faults) this.#problems.push({ file, line, column, field: '', message });
    for (const document of documents) this.#admit(file, document, '');
  }

  /** A Markdown file whose front matter has no kind is no manifest. */
  #readMarkdown(file: string, text: string): void {
    const parts = splitFrontMatter(text);
    if (parts === null || !/^kind[ \t]*:/m.test(parts.yaml)) return;
    const { documents, faults } = readYaml(parts.yaml);
    for (const { line, column, message } of faults) this.#problems.push({ file, line, column, field: '', message });
    for (const document of documents) this.#admit(file, { ...document, source: text }, parts.body);
  }

  #admit(file: string, document: YamlDocument, body: string): void {
    const kind = this.#kindOf(document, file);
    if (kind === null) return;
    const name = typeof document.value['name'] === 'string' ? document.value['name'] : '';
    const found = { file, kind, name, document, normalised: normalise(kind, withBody(kind, document.value, body)) };
    const complain = (list: ManifestProblem[], message: string): void =>
      this.#report(list, { ...found, scoped: false }, { path: ['name'], part: 'value', message });
    const same = name === '' ? [] : this.#found.filter((known) => known.kind === kind && known.name === name);
    const [first] = same;
    if (name !== '' && this.#common?.list(kind).some((known) => known.name === name) === true) {
      complain(
        this.#problems,
        `"${name}" is the name of ${article(kind)} ${kind} that comes with the system and cannot be changed`,
      );
    } else if (first === undefined) this.#found.push({ ...found, scoped: false });
    else {
      const { line } = first.document.place(['name']);
      const message = `there is already ${article(kind)} ${kind} "${name}", in ${first.file}:${line}`;
      // agents, workflows and monuments are called by their names; tools and relics belong to who imports them
      const own =
        (kind === 'tool' || kind === 'relic') && same.every((other) => folderOf(other.file) !== folderOf(file));
      if (!own) return complain(this.#problems, message);
      complain(this.#warnings, `${message}; importers that stand nearer to this one find this one`);
      this.#found.push({ ...found, scoped: true });
    }
    return undefined;
  }

  #kindOf(document: YamlDocument, file: string): CatalogKind | null {
    const written = document.value['kind'];
    const allowed = Object.values(KINDS);
    if (typeof written === 'string') {
      const kind = written.toLowerCase();
      if (isKind(kind)) return kind;
    }
    const found = written === undefined ? 'is missing' : `${JSON.stringify(written)} is not a kind of manifest`;
    const near = typeof written === 'string' ? nearestNames(written, allowed) : [];
    const meant = near.length > 0 ? `. Did you mean ${near[0]}?` : '';
    const message = `${found} (allowed: ${allowed.join(', ')})${meant}`;
    const { line, column } = document.place(['kind'], 'value');
    this.#problems.push({ file, line, column, field: 'kind', message });
    return null;
  }

  /** Checks and builds one definition; null when anything about it is an error. */
  #build<Input, T>(
    found: Found,
    schema: z.ZodType<Input>,
    build: (input: Input, context: BuildContext) => T,
  ): T | null {
    const { file } = found;
    const checked = check(schema, found.normalised.value);
    for (const warning of checked.warnings) this.#report(this.#warnings, found, warning);
    for (const error of checked.errors) this.#report(this.#problems, found, error);
    if (checked.value === null) return null;

    const before = this.#problems.length;
    const complain = (path: FieldPath, message: string): void =>
      this.#report(this.#problems, found, { path, part: 'value', message });
    const built = build(checked.value, {
      complain,
      unknown: checked.unknown,
      readFile: (path, field) => {
        const text = this.#texts.get(this.#pathOf(file, path));
        if (text !== undefined) return text;
        complain(field, `names the file "${path}", but there is no ${relativeTo(file, path)}`);
        return null;
      },
    });
    return this.#problems.length === before ? built : null;
  }

  #imports(written: AgentInput['import'], importer: Found): AgentDefinition['imports'] {
    const names = (field: keyof typeof IMPORTABLE): string[] => {
      const resolved = (written?.[field] ?? []).map((entry, index) =>
        this.#resolve(entry, IMPORTABLE[field], importer, ['import', field, index]),
      );
      return [...new Set(resolved.filter((name) => name !== null))];
    };
    return { agents: names('agents'), tools: names('tools'), relics: names('relics'), workflows: names('workflows') };
  }

  /** One import, by path or by bare name, to the name it stands for (M2). */
  #resolve(written: string, kind: Exclude<CatalogKind, 'monument'>, importer: Found, field: FieldPath): string | null {
    const complain = (message: string): null => {
      this.#report(this.#problems, importer, { path: field, part: 'value', message });
      return null;
    };
    const who = `${importer.kind} "${importer.name}" imports the ${kind} "${written}"`;
    if (!/[/\\]|\.(ya?ml|md|markdown)$/i.test(written)) {
      const named = this.#found.filter((found) => found.kind === kind && found.name === written);
      const target = nearest(named, importer.file);
      if (target !== null) return this.#bind(importer, target, field);
      const common = this.#common?.list(kind).map(({ name }) => name) ?? [];
      if (common.includes(written)) return written;
      const known = this.#found.filter((found) => found.kind === kind).map(({ name }) => name);
      const near = nearestNames(written, [...new Set([...known, ...common])]);
      return complain(`${who}, which does not exist${near.length > 0 ? ` (nearest: ${near.join(', ')})` : ''}`);
    }
    const path = this.#pathOf(importer.file, written);
    if (!this.#texts.has(path)) return complain(`${who}, but there is no file ${path}`);
    const inside = this.#found.filter((found) => found.file === path && found.kind === kind);
    const [only] = inside;
    if (only === undefined) return complain(`${who}, but ${path} holds no ${kind}`);
    if (inside.length > 1) {
      return complain(
        `${who}, but ${path} holds several (${inside.map((found) => found.name).join(', ')}); import one by name`,
      );
    }
    return this.#bind(importer, only, field);
  }

  /** Notes who means what; one importer cannot mean two definitions by one name. */
  #bind(importer: Found, target: Found, field: FieldPath): string | null {
    const other = this.#imported.find(
      (known) => known.importer === importer && known.target.kind === target.kind && known.target.name === target.name,
    );
    if (other !== undefined && other.target !== target) {
      const message = `"${target.name}" already stands for the ${target.kind} in ${other.target.file}`;
      this.#report(this.#problems, importer, { path: field, part: 'value', message });
      return null;
    }
    if (other === undefined) {
      this.#imported.push({ importer, target, field });
      if (target.scoped) this.#bound.push({ importer, target });
    }
    return target.name;
  }

  /**
   * The path that a manifest means: relative to its own folder, or, when absolute, the file whose path
   * ends like it. A folder of manifests may stand anywhere, so where it stood for its author says nothing.
   */
  #pathOf(file: string, written: string): string {
    const path = relativeTo(file, written);
    if (!/^([/\\]|[A-Za-z]:[/\\])/.test(written) || this.#texts.has(path)) return path;
    const steps = path
      .replace(/^[A-Za-z]:/, '')
      .split('/')
      .filter((step) => step !== '');
    for (let from = 0; from < steps.length - 1; from += 1) {
      const end = steps.slice(from).join('/');
      const ending = [...this.#texts.keys()].filter((known) => known === end || known.endsWith(`/${end}`));
      if (ending.length === 1) return ending[0] ?? path;
    }
    return path;
  }

  #report(list: ManifestProblem[], { file, document, normalised }: Found, complaint: Complaint): void {
    const path = normalised.original(complaint.path);
    const { line, column } = document.place(path, complaint.part);
    list.push({ file, line, column, field: fieldName(path), message: complaint.message });
  }
}

/** Of definitions with one name, the one whose folder shares most with the importer's; among equals the common one. */
function nearest(candidates: readonly Found[], importer: string): Found | null {
  const from = folderOf(importer).split('/');
  const shared = ({ file }: Found): number => {
    const to = folderOf(file).split('/');
    const differs = to.findIndex((step, index) => step !== from[index]);
    // a folder of the importer's own counts for more than one that both only pass through
    return differs === -1 ? to.length : differs;
  };
  let best: Found | null = null;
  for (const candidate of candidates) if (best === null || shared(candidate) > shared(best)) best = candidate;
  return best;
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

function isKind(kind: string): kind is CatalogKind {
  return Object.hasOwn(KINDS, kind);
}

function article(kind: CatalogKind): string {
  return kind === 'agent' ? 'an' : 'a';
}

function folderOf(file: string): string {
  return file.slice(0, Math.max(0, file.lastIndexOf('/')));
}

/** The path of `path` as seen from the folder of `file`, with `.` and `..` worked out. */
function relativeTo(file: string, path: string): string {
  const folder = file.slice(0, file.lastIndexOf('/') + 1);
  return normalPath(/^([/\\]|[A-Za-z]:)/.test(path) ? path : `${folder}${path}`);
}

function normalPath(path: string): string {
  const steps: string[] = [];
  for (const step of path.replaceAll('\\', '/').split('/')) {
    if (step === '' || step === '.') continue;
    if (step === '..' && steps.length > 0 && steps.at(-1) !== '..') steps.pop();
    else steps.push(step);
  }
  return `${path.startsWith('/') ? '/' : ''}${steps.join('/')}`;
}
