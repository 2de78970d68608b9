/**
 * Parses YAML to plain JSON with the position of every field, so that issues have line and column (M1). Knows nothing
 * about manifests.
 */
import { Composer, isAlias, isCollection, isMap, isNode, isPair, isScalar, isSeq, LineCounter } from 'yaml';
import type { Document, Node } from 'yaml';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { FieldPath } from '../check/problem.ts';
import { readTokens } from './yaml-tokens.ts';
import type { TokenQuota, YamlFlaw } from './yaml-tokens.ts';

interface Place {
  readonly line: number;
  readonly column: number;
}

/** One document of a file: a map with the positions of its fields. */
export interface YamlDocument {
  readonly value: JsonObject;
  /** Source text of this document. */
  readonly source: string;
  /** Position of the field, or of its nearest existing parent; `key` returns the position of its name. */
  place(path: FieldPath, part?: 'key' | 'value'): Place;
  /** Frees the syntax tree; `place` parses the text again if it is called later. */
  release(): void;
}

interface YamlError extends Place {
  readonly message: string;
}

/** The valid documents of a file, and the errors of the others. */
export interface YamlFile {
  readonly documents: readonly YamlDocument[];
  readonly errors: readonly YamlError[];
}

const START: Place = { line: 1, column: 1 };

/**
 * Reads a file with one or several YAML 1.2 documents. All YAML in the system is read here. Never throws: syntax
 * errors, duplicate keys, unknown tags, values without a JSON form, alias bombs, and texts beyond `limits.yamlChars`,
 * `limits.yamlTokens`, `limits.manifestNodes` or `limits.jsonDepth` are returned as errors.
 *
 * @param quota tokens that all files of a load share
 */
export function readYaml(text: string, quota: TokenQuota = { left: limits.catalogTokens }): YamlFile {
  if (text.trim() === '')
    return fault(START, 'the file is empty; a manifest starts with "kind: Agent" or another kind');
  const { placeAt, parsed, flaw } = compose(text, quota);
  if (flaw !== null) return fault(placeAt(flaw.offset), flaw.message);

  const documents: YamlDocument[] = [];
  const errors: YamlError[] = [];
  let end = 0;
  for (const [index, document] of parsed.entries()) {
    const begin = end;
    end = document.range[2];
    // An unknown tag is a warning of the library, which then drops it: `!include a.md` would be the text "a.md".
    const [error = document.warnings.find(({ code }) => code === 'TAG_RESOLVE_FAILED')] = document.errors;
    const syntax = error === undefined ? keyFlaw(document.contents) : { offset: error.pos[0], message: error.message };
    if (syntax !== null) {
      errors.push({ ...placeAt(syntax.offset), message: `not valid YAML: ${syntax.message}` });
      continue;
    }
    // an empty document, for example after a closing `---`
    const { contents } = document;
    if (contents === null || (isScalar(contents) && contents.value === null)) continue;
    const start = placeAt(contents.range?.[0] ?? 0);
    const value = toJson(document);
    if (typeof value === 'string') errors.push({ ...start, message: value });
    else if (isJsonObject(value.json)) {
      const source = sourceOf(text, begin, document.range[2]);
      documents.push(locatable(text, index, { document, placeAt }, value.json, source));
    } else errors.push({ ...start, message: 'a manifest is a map of fields, such as "kind: Agent"' });
  }
  if (documents.length === 0 && errors.length === 0) return fault(START, 'the file has only comments and no manifest');
  return { documents, errors };
}

interface Composed {
  readonly placeAt: (offset: number) => Place;
  readonly parsed: readonly Document.Parsed[];
  readonly flaw: YamlFlaw | null;
}

function compose(text: string, quota: TokenQuota): Composed {
  const counter = new LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const read = readTokens(text, counter.addNewLine, quota);
  if ('flaw' in read) return { placeAt, parsed: [], flaw: read.flaw };
  // The composer creates an Error for every mistake, and stack traces would cost more than the rest of its work.
  const errors = Error as { stackTraceLimit?: number };
  const before = errors.stackTraceLimit ?? 10;
  errors.stackTraceLimit = 0;
  try {
    // The library compares each key with all previous ones; duplicates are checked here in linear time instead.
    return {
      placeAt,
      parsed: [...new Composer({ uniqueKeys: false, version: '1.2' }).compose(read.tokens)],
      flaw: null,
    };
  } finally {
    errors.stackTraceLimit = before;
  }
}

/** A key that is a collection, an alias or a duplicate; null if there is none. */
function keyFlaw(node: unknown): YamlFlaw | null {
  if (!isCollection(node)) return null;
  const seen = new Set<string>();
  for (const item of node.items) {
    if (!isPair(item)) {
      const inner = keyFlaw(item);
      if (inner !== null) return inner;
      continue;
    }
    const { key, value } = item;
    if (key !== null && !isScalar(key)) {
      const offset = isNode(key) ? (key.range?.[0] ?? 0) : 0;
      return { offset, message: 'Map keys must be text, not collections or aliases' };
    }
    const name = key === null ? '' : String(key.value);
    if (seen.has(name)) return { offset: key?.range?.[0] ?? 0, message: 'Map keys must be unique' };
    seen.add(name);
    const inner = keyFlaw(value);
    if (inner !== null) return inner;
  }
  return null;
}

function fault(place: Place, message: string): YamlFile {
  return { documents: [], errors: [{ ...place, message }] };
}

/** The document as JSON, or the reason why it has none. */
function toJson(document: Document.Parsed): { readonly json: Json } | string {
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: limits.manifestAliases });
  } catch {
    return `the document expands its aliases too often (allowed: ${limits.manifestAliases})`;
  }
  // `version: 1.0` means the text "1.0", not the number 1
  const version = isMap(document.contents) ? document.contents.get('version', true) : undefined;
  if (isScalar(version) && typeof version.value === 'number' && isJsonObject(raw)) {
    raw['version'] = version.source ?? String(version.value);
  }
  const reason = whyNotJson(raw, 0, { nodes: limits.manifestNodes, chars: limits.manifestBytes });
  return reason ?? { json: raw as Json };
}

/** The remaining size of a document with expanded aliases. */
interface Allowance {
  nodes: number;
  chars: number;
}

function whyNotJson(value: unknown, depth: number, left: Allowance): string | null {
  left.nodes -= 1;
  if (left.nodes < 0) return `the document has more than ${limits.manifestNodes} values with expanded aliases`;
  if (typeof value === 'string') left.chars -= value.length;
  if (left.chars < 0) return `the document has more than ${limits.manifestBytes} characters with expanded aliases`;
  if (depth > limits.jsonDepth) return `the document is nested deeper than ${limits.jsonDepth} levels`;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null;
  if (typeof value === 'number') return Number.isFinite(value) ? null : `${value} is not a valid JSON number`;
  if (typeof value !== 'object') return `a ${typeof value} is not a JSON value`;
  if (value instanceof Map || value instanceof Set || value instanceof Date || value instanceof Uint8Array) {
    return 'YAML tags such as !!set, !!timestamp or !!binary are not supported';
  }
  if (Object.hasOwn(value, '__proto__')) return '"__proto__" is not allowed as a field name';
  for (const [name, member] of Object.entries(value)) {
    left.chars -= Array.isArray(value) ? 0 : name.length;
    const reason = whyNotJson(member, depth + 1, left);
    if (reason !== null) return reason;
  }
  return null;
}

/** Comments before a document belong to it. */
function sourceOf(text: string, from: number, to: number): string {
  return text.slice(from, to).replace(/^---[ \t]*\r?\n/, '');
}

function locatable(
  text: string,
  index: number,
  composed: { readonly document: Document.Parsed; readonly placeAt: Composed['placeAt'] },
  value: JsonObject,
  source: string,
): YamlDocument {
  let tree: typeof composed | null = composed;
  return {
    value,
    source,
    release() {
      tree = null;
    },
    place(path, part = 'value') {
      if (tree === null) {
        const { parsed, placeAt } = compose(text, { left: limits.yamlTokens });
        const document = parsed[index];
        if (document === undefined) return START;
        tree = { document, placeAt };
      }
      return placeOf(tree.document, tree.placeAt, path, part);
    },
  };
}

function placeOf(
  document: Document.Parsed,
  placeAt: Composed['placeAt'],
  path: FieldPath,
  part: 'key' | 'value',
): Place {
  let node: Node | null = document.contents;
  let offset = node?.range?.[0] ?? 0;
  for (const [index, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document) ?? null;
    if (!isCollection(node)) break;
    if (isSeq(node)) {
      const item: unknown = typeof step === 'number' ? node.items[step] : undefined;
      if (!isNode(item)) break;
      node = item;
    } else if (isMap(node)) {
      const pair = node.items.find((entry) => isScalar(entry.key) && String(entry.key.value) === String(step));
      if (pair === undefined || !isNode(pair.key)) break;
      if (part === 'key' && index === path.length - 1) return placeAt(pair.key.range?.[0] ?? offset);
      if (!isNode(pair.value)) return placeAt(pair.key.range?.[0] ?? offset);
      node = pair.value;
    }
    offset = node?.range?.[0] ?? offset;
  }
  return placeAt(offset);
}
