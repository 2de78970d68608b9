/**
 * Parses one file of a manifest folder into documents (M1). The result depends only on the arguments, so it can be
 * reused while the text is unchanged.
 *
 * A folder also contains YAML that is no manifest: compose files, settings, CI files. It is skipped, and the result says
 * so. A file that is given alone must be a manifest.
 */
import type { ManifestFile, ManifestKind, ManifestProblem } from '../../domain/catalog.ts';
import { limits } from '../../domain/limits.ts';
import type { AnyDefinition } from '../catalog.ts';
import type { Issue } from '../check/issues.ts';
import { foreignForm } from './foreign.ts';
import { splitFrontMatter } from './front-matter.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { quoted } from '../check/problem.ts';
import type { FieldPath } from '../check/problem.ts';
import { isSkillFile, readSkillFile } from './skill-file.ts';
import { readYaml } from './yaml-file.ts';
import type { YamlDocument } from './yaml-file.ts';
import type { TokenQuota } from './yaml-tokens.ts';

const KINDS = {
  agent: 'Agent',
  tool: 'Tool',
  relic: 'Relic',
  workflow: 'Workflow',
  monument: 'Monument',
} as const;

/** A document of a known kind. */
export interface ReadDocument {
  readonly file: string;
  readonly kind: ManifestKind;
  /** Empty if it has none. */
  readonly name: string;
  readonly document: YamlDocument;
  /** The fields; of Markdown with its text. */
  readonly value: JsonObject;
  /** Warnings about how it is written. */
  readonly notes: readonly Issue[];
  /** The sign of another system's manifest, which is then not loaded; null for our own form. */
  readonly foreign: Issue | null;
  /** Its definition, while everything that it depends on is unchanged. */
  built: BuiltDefinition | null;
}

/** A definition without issues, with all its dependencies outside its document. */
export interface BuiltDefinition {
  readonly definition: AnyDefinition;
  readonly warnings: readonly Issue[];
  /** The files that it refers to, with their text; null if there is none. */
  readonly files: readonly { readonly path: string; readonly text: string | null }[];
  /** The folders that it refers to, with the paths of their files. */
  readonly folders: readonly { readonly path: string; readonly names: readonly string[] }[];
  readonly targets: readonly {
    readonly written: string;
    readonly kind: Exclude<ManifestKind, 'monument'>;
    readonly field: FieldPath;
    /** Null if there is none, and none is required. */
    readonly name: string | null;
  }[];
}

export interface ReadFile {
  readonly path: string;
  readonly text: string;
  /** Whether the file was given alone. */
  readonly isAlone: boolean;
  /** Whether it is in the folder of a skill, so that it was not read as a manifest (C8). */
  readonly isOfSkill: boolean;
  readonly documents: readonly ReadDocument[];
  readonly problems: readonly ManifestProblem[];
  /** Documents that look like manifests, but are skipped. */
  readonly warnings: readonly ManifestProblem[];
  /** Documents that are no manifests. */
  readonly skipped: readonly ManifestProblem[];
  /** Size of the input: characters and YAML tokens. */
  readonly size: number;
  readonly tokens: number;
}

/**
 * Reads YAML files, Markdown files whose front matter has a kind, and the `SKILL.md` of skills; other files contain no
 * manifest.
 *
 * @param quota tokens that all files of a load share
 */
export function readManifestFile({ path, text, isAlone = false }: ManifestFile, quota: TokenQuota): ReadFile {
  const file = { path, text, isAlone, isOfSkill: false };
  const nothing = { ...file, documents: [], problems: [], warnings: [], skipped: [], size: 0, tokens: 0 };
  if (isSkillFile(file)) return { ...nothing, ...ofSkill(file, quota) };
  if (/\.ya?ml$/i.test(path)) {
    // most files without a kind can be recognised without parsing them
    if (isAlone || text.includes('kind')) return readDocuments(file, text, null, quota);
    const message = text.trim() === '' ? 'the file is empty' : WITHOUT_KIND;
    const at = { file: path, line: 1, column: 1, field: '' };
    const problem = { ...at, message: `${message}; skipped` };
    return { ...nothing, ...(isNamedLikeManifest(path) ? { warnings: [problem] } : { skipped: [problem] }) };
  }
  const parts = /\.(md|markdown)$/i.test(path) ? splitFrontMatter(text) : null;
  return parts === null || !KIND_LINE.test(parts.yaml) ? nothing : readDocuments(file, parts.yaml, parts.body, quota);
}

/** A manifest that no file contains: `path` defines its target in another form. */
export function readImplied(path: string, value: JsonObject, quota: TokenQuota): ReadFile {
  const text = JSON.stringify(value);
  return readDocuments({ path, text, isAlone: false, isOfSkill: false }, text, null, quota);
}

/** The skill in a `SKILL.md`, or its issue. */
function ofSkill(
  file: Pick<ManifestFile, 'path' | 'text'>,
  quota: TokenQuota,
): Pick<ReadFile, 'documents' | 'problems' | 'size' | 'tokens'> {
  const before = quota.left;
  const read = readSkillFile(file, quota);
  const cost = { size: file.text.length, tokens: before - quota.left };
  if ('message' in read) return { documents: [], problems: [{ file: file.path, field: '', ...read }], ...cost };
  const { document, name, value, notes } = read;
  return {
    documents: [{ file: file.path, kind: 'skill', name, document, value, notes, foreign: null, built: null }],
    problems: [],
    ...cost,
  };
}

/**
 * A file in the folder of a skill; it is not read as a manifest (C8).
 *
 * @param skill the path of its `SKILL.md`
 */
export function fileOfSkill({ path, text, isAlone = false }: ManifestFile, skill: string): ReadFile {
  const isManifest = /\.(ya?ml|md|markdown)$/i.test(path) && OUR_KIND.test(text);
  const message = `belongs to the skill in ${skill}, so it is no manifest`;
  const at = { file: path, line: 1, column: 1, field: '' };
  const isSkill = isSkillFile({ path, text });
  const warnings = isManifest || isSkill ? [{ ...at, message }] : [];
  return {
    path,
    text,
    isAlone,
    isOfSkill: true,
    documents: [],
    problems: [],
    warnings,
    skipped: [],
    size: 0,
    tokens: 0,
  };
}

const OUR_KIND = /^["']?kind["']?[ \t]*:[ \t]*["']?(agent|tool|relic|workflow|monument)\b/im;
const WITHOUT_KIND = 'no "kind", so it is no manifest';
const KIND_LINE = /^["']?kind["']?[ \t]*:/m;

/** `agent.yml`, `cleanup.workflow.yml`, … */
function isNamedLikeManifest(path: string): boolean {
  return /(^|[/._-])(agent|tool|relic|workflow|monument)\.ya?ml$/i.test(path);
}

function readDocuments(
  file: Pick<ReadFile, 'path' | 'text' | 'isAlone' | 'isOfSkill'>,
  yaml: string,
  body: string | null,
  quota: TokenQuota,
): ReadFile {
  const before = quota.left;
  const { documents, errors } = readYaml(yaml, quota);
  const { path, text } = file;
  const log: KindLog = { problems: [], warnings: [], skipped: [] };
  for (const error of errors) {
    const isOther = !file.isAlone && !KIND_LINE.test(yaml);
    const message = isOther ? `${error.message}; no "kind", so it is skipped` : error.message;
    log[isOther ? 'skipped' : 'problems'].push({ file: path, field: '', ...error, message });
  }
  const found: ReadDocument[] = [];
  for (const document of documents) {
    const kind = kindOf(document, file, log);
    if (kind === null) continue;
    const { value } = document;
    found.push({
      file: path,
      kind,
      // a longer name is invalid, which the schema reports
      name: typeof value['name'] === 'string' && value['name'].length <= 64 ? value['name'] : '',
      document: body === null ? document : { ...document, source: text },
      value: body === null ? value : withBody(kind, value, body),
      notes: [],
      foreign: foreignForm(kind, value),
      built: null,
    });
  }
  return {
    ...file,
    documents: found,
    problems: log.problems.slice(0, limits.manifestProblems),
    warnings: log.warnings.slice(0, limits.manifestProblems),
    skipped: log.skipped.slice(0, limits.manifestProblems),
    size: yaml.length,
    tokens: before - quota.left,
  };
}

/** Uses the body of a Markdown manifest as an agent's persona, or as the description. */
function withBody(kind: ManifestKind, value: JsonObject, body: string): JsonObject {
  if (body === '') return value;
  if (kind !== 'agent') return value['description'] === undefined ? { ...value, description: body } : value;
  const { persona } = value;
  if (persona === undefined) return { ...value, persona: body };
  if (!isJsonObject(persona) || persona['agent'] !== undefined || persona['file'] !== undefined) return value;
  return { ...value, persona: { ...persona, agent: body } };
}

type KindLog = Readonly<Record<'problems' | 'warnings' | 'skipped', ManifestProblem[]>>;

/** The kind of a document, or null for a document that is skipped or has an unknown kind. */
function kindOf(
  document: YamlDocument,
  { path, isAlone }: Pick<ReadFile, 'path' | 'isAlone'>,
  log: KindLog,
): ManifestKind | null {
  const written = document.value['kind'];
  if (typeof written === 'string') {
    const kind = written.toLowerCase();
    if (isKind(kind)) return kind;
    // a script of agent-lib that is polled
    if (kind === 'feed') return 'tool';
    if (kind === 'skill') {
      const { line, column } = document.place(['kind'], 'value');
      const message = 'a skill is a folder with a SKILL.md, not a document with this kind';
      if (isAlone) log.problems.push({ file: path, line, column, field: 'kind', message });
      else log.warnings.push({ file: path, line, column, field: 'kind', message: `${message}; skipped` });
      return null;
    }
  }
  if (log.problems.length + log.warnings.length + log.skipped.length >= limits.manifestProblems) return null;
  const { line, column } = document.place(['kind'], 'value');
  const at = { file: path, line, column, field: 'kind' };
  const allowed = Object.values(KINDS);
  // a kind of another system may contain the name of ours, such as "RelicSpec"
  const near =
    typeof written === 'string'
      ? nearestNames(written, allowed).filter((kind) => Math.abs(kind.length - written.length) <= 2)
      : [];
  if (isAlone || near.length > 0) {
    const found = written === undefined ? 'is missing' : `${quoted(written)} is not a manifest kind`;
    const suggestion = near.length > 0 ? `. Did you mean ${near[0]}?` : '';
    log.problems.push({ ...at, message: `${found} (allowed: ${allowed.join(', ')})${suggestion}` });
  } else if (written !== undefined) {
    const message = `${quoted(written)} is not a manifest kind (known: ${allowed.join(', ')}), so the document is skipped`;
    log.warnings.push({ ...at, message });
  } else if (isNamedLikeManifest(path) || isManifestWithoutKind(document)) {
    log.warnings.push({ ...at, message: `is missing, so the document is skipped (allowed: ${allowed.join(', ')})` });
  } else log.skipped.push({ ...at, field: '', message: `${WITHOUT_KIND}; skipped` });
  return null;
}

function isManifestWithoutKind({ value }: YamlDocument): boolean {
  return ['name', 'version', 'summary'].every((field) => typeof value[field] === 'string');
}

function isKind(kind: string): kind is keyof typeof KINDS {
  return Object.hasOwn(KINDS, kind);
}
