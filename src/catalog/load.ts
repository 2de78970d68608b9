/**
 * Files in, catalogue out: the one way from YAML to definitions (M1-M3, M8). Pure: it reads nothing
 * but the files that it is given. What cannot be loaded is reported; the rest loads.
 */
import type { z } from 'zod';
import type { Json, JsonObject } from '../domain/json.ts';
import type { AgentDefinition, RelicDefinition, ToolDefinition, WorkflowDefinition } from '../domain/manifest.ts';
import { toAgent } from './build-agent.ts';
import { toBase } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { toRelic } from './build-relic.ts';
import { toTool } from './build-tool.ts';
import { toWorkflow } from './build-workflow.ts';
import { createCatalog } from './catalog.ts';
import type { Catalog, CatalogKind, MonumentDefinition } from './catalog.ts';
import { check } from './complaints.ts';
import type { Complaint } from './complaints.ts';
import { nearestNames } from './nearest.ts';
import { fieldName } from './problem.ts';
import type { FieldPath, ManifestProblem } from './problem.ts';
import { agentSchema, monumentSchema, toolSchema } from './schema.ts';
import type { AgentInput, MonumentInput } from './schema.ts';
import { relicSchema } from './schema-relic.ts';
import { workflowSchema } from './schema-workflow.ts';
import { readYaml } from './yaml-file.ts';
import type { YamlDocument } from './yaml-file.ts';

/** One file of a manifest folder. YAML files are manifests; the others are what manifests name by path. */
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
}

const KINDS = { agent: 'Agent', tool: 'Tool', relic: 'Relic', workflow: 'Workflow', monument: 'Monument' } as const;
const IMPORTABLE = { agents: 'agent', tools: 'tool', relics: 'relic', workflows: 'workflow' } as const;

/** A document that has a kind and a name, before its imports are known. */
interface Found {
  readonly file: string;
  readonly kind: CatalogKind;
  readonly name: string;
  readonly document: YamlDocument;
}

/** Loads every manifest among `files`. Never throws for what an author wrote. */
export function loadManifests(files: readonly ManifestFile[]): LoadedManifests {
  return new Loader(files).load();
}

class Loader {
  readonly #texts: ReadonlyMap<string, string>;
  readonly #problems: ManifestProblem[] = [];
  readonly #warnings: ManifestProblem[] = [];
  readonly #found: Found[] = [];

  constructor(files: readonly ManifestFile[]) {
    this.#texts = new Map(files.map((file) => [normalPath(file.path), file.text]));
  }

  load(): LoadedManifests {
    for (const [path, text] of this.#texts) if (/\.ya?ml$/i.test(path)) this.#readFile(path, text);

    const agents: AgentDefinition[] = [];
    const tools: ToolDefinition[] = [];
    const relics: RelicDefinition[] = [];
    const workflows: WorkflowDefinition[] = [];
    const monuments: MonumentDefinition[] = [];
    for (const found of this.#found) {
      switch (found.kind) {
        case 'tool':
          push(tools, this.#build(found, toolSchema, toTool));
          break;
        case 'relic':
          push(relics, this.#build(found, relicSchema, toRelic));
          break;
        case 'agent':
          push(
            agents,
            this.#build(found, agentSchema, (input, context) =>
              toAgent(input, this.#imports(input.import, found), context),
            ),
          );
          break;
        case 'workflow':
          push(
            workflows,
            this.#build(found, workflowSchema, (input, context) =>
              toWorkflow(input, {
                ...context,
                imports: this.#imports(input.import, found),
                target: (written, kind, field) => this.#resolve(written, kind, found, field),
              }),
            ),
          );
          break;
        case 'monument':
          push(monuments, this.#build(found, monumentSchema, toMonument));
          break;
      }
    }
    const data = { agents, tools, relics, workflows, monuments };
    const byPlace = (a: ManifestProblem, b: ManifestProblem): number =>
      a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1;
    return {
      catalog: createCatalog(data),
      problems: this.#problems.sort(byPlace),
      warnings: this.#warnings.sort(byPlace),
    };
  }

  #readFile(file: string, text: string): void {
    const { documents, faults } = readYaml(text);
    for (const { line, column, message } of faults) this.#problems.push({ file, line, column, field: '', message });
    for (const document of documents) {
      const kind = this.#kindOf(document, file);
      if (kind === null) continue;
      const name = typeof document.value['name'] === 'string' ? document.value['name'] : '';
      const other = this.#found.find((known) => known.kind === kind && known.name === name);
      if (other !== undefined && name !== '') {
        const { line } = other.document.place(['name']);
        this.#report(this.#problems, file, document, {
          path: ['name'],
          part: 'value',
          message: `there is already ${article(kind)} ${kind} "${name}", in ${other.file}:${line}`,
        });
        continue;
      }
      this.#found.push({ file, kind, name, document });
    }
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
    this.#report(this.#problems, file, document, { path: ['kind'], part: 'value', message });
    return null;
  }

  /** Checks and builds one definition; null when anything about it is an error. */
  #build<Input, T>(
    found: Found,
    schema: z.ZodType<Input>,
    build: (input: Input, context: BuildContext) => T,
  ): T | null {
    const { file, document } = found;
    const checked = check(schema, document.value);
    for (const warning of checked.warnings) this.#report(this.#warnings, file, document, warning);
    for (const error of checked.errors) this.#report(this.#problems, file, document, error);
    if (checked.value === null) return null;

    const before = this.#problems.length;
    const complain = (path: FieldPath, message: string): void =>
      this.#report(this.#problems, file, document, { path, part: 'value', message });
    const built = build(checked.value, {
      complain,
      unknown: checked.unknown,
      readFile: (path, field) => {
        const text = this.#texts.get(relativeTo(file, path));
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
  #resolve(written: string, kind: CatalogKind, importer: Found, field: FieldPath): string | null {
    const complain = (message: string): null => {
      this.#report(this.#problems, importer.file, importer.document, { path: field, part: 'value', message });
      return null;
    };
    const who = `${importer.kind} "${importer.name}" imports the ${kind} "${written}"`;
    if (!/[/\\]|\.ya?ml$/i.test(written)) {
      const known = this.#found.filter((found) => found.kind === kind).map((found) => found.name);
      if (known.includes(written)) return written;
      const near = nearestNames(written, known);
      return complain(`${who}, which does not exist${near.length > 0 ? ` (nearest: ${near.join(', ')})` : ''}`);
    }
    const path = relativeTo(importer.file, written);
    if (!this.#texts.has(path)) return complain(`${who}, but there is no file ${path}`);
    const inside = this.#found.filter((found) => found.file === path && found.kind === kind);
    const [only] = inside;
    if (only === undefined) return complain(`${who}, but ${path} holds no ${kind}`);
    if (inside.length > 1) {
      return complain(
        `${who}, but ${path} holds several (${inside.map((found) => found.name).join(', ')}); import one by name`,
      );
    }
    return only.name;
  }

  #report(list: ManifestProblem[], file: string, document: YamlDocument, complaint: Complaint): void {
    const { line, column } = document.place(complaint.path, complaint.part);
    list.push({ file, line, column, field: fieldName(complaint.path), message: complaint.message });
  }
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

function push<T>(list: T[], item: T | null): void {
  if (item !== null) list.push(item);
}

/** The path of `path` as seen from the folder of `file`, with `.` and `..` worked out. */
function relativeTo(file: string, path: string): string {
  const folder = file.slice(0, file.lastIndexOf('/') + 1);
  return normalPath(path.startsWith('/') ? path : `${folder}${path}`);
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
