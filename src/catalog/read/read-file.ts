/**
 * Parses one file of a manifest folder into documents (M1). The result depends on the text only, so it can be reused
 * while the text is unchanged.
 */
import type { ManifestKind, ManifestProblem } from '../../domain/catalog.ts';
import { limits } from '../../domain/limits.ts';
import type { AnyDefinition } from '../catalog.ts';
import type { Issue } from '../check/issues.ts';
import { normalise, withBody } from './aliases.ts';
import { splitFrontMatter } from './front-matter.ts';
import type { Normalised } from './aliases.ts';
import { FEED_DOCUMENT } from '../original/feed-document.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { quoted } from '../check/problem.ts';
import type { FieldPath } from '../check/problem.ts';
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
  readonly normalised: Normalised;
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
  readonly documents: readonly ReadDocument[];
  readonly problems: readonly ManifestProblem[];
  /** Size of the input: characters and YAML tokens. */
  readonly size: number;
  readonly tokens: number;
}

/**
 * Reads YAML files, and Markdown files whose front matter has a kind; other files contain no manifest.
 *
 * @param quota tokens that all files of a load share
 */
export function readManifestFile(path: string, text: string, quota: TokenQuota): ReadFile {
  if (/\.ya?ml$/i.test(path)) return readDocuments({ path, text }, text, null, quota);
  const parts = /\.(md|markdown)$/i.test(path) ? splitFrontMatter(text) : null;
  if (parts === null || !/^kind[ \t]*:/m.test(parts.yaml)) {
    return { path, text, documents: [], problems: [], size: 0, tokens: 0 };
  }
  return readDocuments({ path, text }, parts.yaml, parts.body, quota);
}

function readDocuments(
  file: Pick<ReadFile, 'path' | 'text'>,
  yaml: string,
  body: string | null,
  quota: TokenQuota,
): ReadFile {
  const before = quota.left;
  const { documents, errors } = readYaml(yaml, quota);
  const { path, text } = file;
  const problems: ManifestProblem[] = errors.map((fault) => ({ file: path, field: '', ...fault }));
  const found: ReadDocument[] = [];
  for (const document of documents) {
    const kind = kindOf(document, path, problems);
    if (kind === null) continue;
    const { value } = document;
    found.push({
      file: path,
      kind,
      // a longer name is invalid, which the schema reports
      name: typeof value['name'] === 'string' && value['name'].length <= 64 ? value['name'] : '',
      document: body === null ? document : { ...document, source: text },
      normalised: normalise(kind, body === null ? value : withBody(kind, value, body)),
      built: null,
    });
  }
  return {
    path,
    text,
    documents: found,
    problems: problems.slice(0, limits.manifestProblems),
    size: yaml.length,
    tokens: before - quota.left,
  };
}

function kindOf(document: YamlDocument, file: string, problems: ManifestProblem[]): ManifestKind | null {
  const written = document.value['kind'];
  if (typeof written === 'string') {
    const kind = written.toLowerCase();
    if (isKind(kind)) return kind;
    if (kind === FEED_DOCUMENT) return 'tool';
  }
  if (problems.length >= limits.manifestProblems) return null;
  const allowed = Object.values(KINDS);
  const found = written === undefined ? 'is missing' : `${quoted(written)} is not a manifest kind`;
  const near = typeof written === 'string' ? nearestNames(written, allowed) : [];
  const suggestion = near.length > 0 ? `. Did you mean ${near[0]}?` : '';
  const message = `${found} (allowed: ${allowed.join(', ')})${suggestion}`;
  const { line, column } = document.place(['kind'], 'value');
  problems.push({ file, line, column, field: 'kind', message });
  return null;
}

function isKind(kind: string): kind is ManifestKind {
  return Object.hasOwn(KINDS, kind);
}
