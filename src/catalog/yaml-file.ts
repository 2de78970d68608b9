/**
 * YAML text to plain JSON, with the place of every field kept, so that a complaint about a value
 * can name its line and column (M1). Knows YAML, nothing of manifests.
 */
import { isAlias, isCollection, isMap, isNode, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import type { Document, Node } from 'yaml';
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { FieldPath } from './problem.ts';

interface Place {
  readonly line: number;
  readonly column: number;
}

/** One document of a file: a map, and where its fields stand. */
export interface YamlDocument {
  readonly value: JsonObject;
  /** The text of this document. */
  readonly source: string;
  /** The place of the field, or of the nearest enclosing one that exists; `key` asks for its name instead of its value. */
  place(path: FieldPath, part?: 'key' | 'value'): Place;
}

interface YamlFault extends Place {
  readonly message: string;
}

/** The documents of a file that could be read, and what was wrong with the others. */
export interface YamlFile {
  readonly documents: readonly YamlDocument[];
  readonly faults: readonly YamlFault[];
}

const START: Place = { line: 1, column: 1 };

/**
 * Reads a file of one or several YAML 1.2 documents. Never throws: syntax errors, duplicate keys,
 * values that JSON has no form for, alias bombs and nesting past `limits.jsonDepth` are faults.
 */
export function readYaml(text: string): YamlFile {
  if (text.trim() === '')
    return fault(START, 'the file is empty; a manifest starts with "kind: Agent" or another kind');
  const counter = new LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };

  let parsed: readonly Document.Parsed[];
  try {
    const result = parseAllDocuments(text, { lineCounter: counter, prettyErrors: false, version: '1.2' });
    parsed = [...result];
  } catch {
    // the composer is recursive: only absurd nesting gets here
    return fault(START, `the file nests deeper than ${limits.jsonDepth} levels`);
  }

  const documents: YamlDocument[] = [];
  const faults: YamlFault[] = [];
  let end = 0;
  for (const document of parsed) {
    const begin = end;
    end = document.range[2];
    const [error] = document.errors;
    if (error !== undefined) {
      faults.push({ ...placeAt(error.pos[0]), message: `not valid YAML: ${error.message}` });
      continue;
    }
    // an empty document, such as the one after a closing `---`
    const { contents } = document;
    if (contents === null || (isScalar(contents) && contents.value === null)) continue;
    const start = placeAt(contents.range?.[0] ?? 0);
    const value = toJson(document);
    if (typeof value === 'string') faults.push({ ...start, message: value });
    else if (isJsonObject(value.json))
      documents.push(locatable(document, value.json, sourceOf(text, begin, document.range[2]), placeAt));
    else faults.push({ ...start, message: 'a manifest is a map of fields, such as "kind: Agent"' });
  }
  if (documents.length === 0 && faults.length === 0)
    return fault(START, 'the file is empty but for comments; it holds no manifest');
  return { documents, faults };
}

function fault(place: Place, message: string): YamlFile {
  return { documents: [], faults: [{ ...place, message }] };
}

/** The document as JSON, or a sentence on why it has none. */
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
  const reason = whyNotJson(raw, 0);
  return reason ?? { json: raw as Json };
}

function whyNotJson(value: unknown, depth: number): string | null {
  if (depth > limits.jsonDepth) return `the document nests deeper than ${limits.jsonDepth} levels`;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null;
  if (typeof value === 'number') return Number.isFinite(value) ? null : `${value} is not a number that JSON can hold`;
  if (typeof value !== 'object') return `a ${typeof value} is not a JSON value`;
  if (value instanceof Map || value instanceof Set || value instanceof Date || value instanceof Uint8Array) {
    return 'YAML tags such as !!set, !!timestamp or !!binary are not supported';
  }
  if (Object.hasOwn(value, '__proto__')) return '"__proto__" is not a name for a field';
  for (const member of Object.values(value)) {
    const reason = whyNotJson(member, depth + 1);
    if (reason !== null) return reason;
  }
  return null;
}

/** Comments before a document belong to it. */
function sourceOf(text: string, from: number, to: number): string {
  return text.slice(from, to).replace(/^---[ \t]*\r?\n/, '');
}

function locatable(
  document: Document.Parsed,
  value: JsonObject,
  source: string,
  placeAt: (offset: number) => Place,
): YamlDocument {
  return {
    value,
    source,
    place(path, part = 'value') {
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
    },
  };
}
