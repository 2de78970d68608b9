/**
 * Normalises aliases in manifests (M1): `executor` or `execution` for `implementation`, a runtime as type, Markdown with
 * front matter. Keeps the original paths of fields, so that issues refer to what the author wrote.
 */
import type { ManifestKind } from '../../domain/catalog.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { Issue } from '../check/issues.ts';
import type { FieldPath } from '../check/problem.ts';
import { understand } from '../original/understand.ts';
import { Draft } from './draft.ts';
import type { Tolerance } from './draft.ts';

export interface Normalised {
  readonly value: JsonObject;
  /** Warnings about forms that were rewritten, with paths of the author's text. */
  readonly notes: readonly Issue[];
  /** Errors of the rewriting, with paths of the author's text. */
  readonly refused: readonly Issue[];
  /** The original path of a field. */
  original(path: FieldPath): FieldPath;
  /** Whether the file or the import that is named at a path may be missing; null if it may not. */
  tolerance(path: FieldPath): Tolerance | null;
}

/** Aliases of `implementation`, in order of precedence. */
const IMPLEMENTATION = ['implementation', 'executor', 'execution', 'service'] as const;
/** Aliases of fields, with their schema names. */
const FIELDS: Readonly<Record<string, string>> = {
  timeout_seconds: 'timeout',
  input_schema: 'parameters',
  output_schema: 'returns',
};
const IMPLEMENTATION_FIELDS: Readonly<Record<string, string>> = {
  code: 'script',
  path: 'entrypoint',
  language: 'runtime',
};
const RUNTIMES: ReadonlySet<string> = new Set(['python', 'python3', 'node', 'javascript', 'shell', 'bash', 'sh']);
const RUNTIME_NAMES: Readonly<Record<string, string>> = { javascript: 'node', sh: 'shell' };
const TYPES: Readonly<Record<string, string>> = {
  docker: 'container',
  image: 'container',
  rest: 'http',
  api: 'http',
  function: 'builtin',
  native: 'builtin',
};
const BUILTINS: ReadonlySet<string> = new Set(['echo', 'calculator', 'web_fetch', 'web_extract', 'json_query']);
const STORES: ReadonlySet<string> = new Set(['kv', 'log', 'sql']);

/** Rewrites the original system's forms first, then the aliases. */
export function normalise(kind: ManifestKind, written: JsonObject): Normalised {
  const draft = new Draft(written);
  understand(kind, draft);
  const { value, original } = withoutAliases(kind, draft.value);
  return {
    value,
    notes: draft.notes,
    refused: draft.refused,
    original: (path) => draft.original(original(path)),
    tolerance: (path) => draft.tolerance(original(path)),
  };
}

function withoutAliases(kind: ManifestKind, written: JsonObject): Pick<Normalised, 'value' | 'original'> {
  if (kind !== 'tool' && kind !== 'relic') return { value: written, original: (path) => path };
  const fields = new Map<string, string>();
  const value: Record<string, Json> = {};
  const chosen = IMPLEMENTATION.find((name) => Object.hasOwn(written, name));
  for (const [name, member] of Object.entries(written)) {
    const known = name === chosen ? 'implementation' : kind === 'tool' ? (FIELDS[name] ?? name) : name;
    // if both names are present, the schema's name is used and the alias is reported
    const target = known !== name && Object.hasOwn(written, known) ? name : known;
    value[target] = member;
    fields.set(target, name);
  }
  const inner = new Map<string, string>();
  if (value['implementation'] !== undefined) {
    value['implementation'] = implementation(kind, value['implementation'], inner);
  }
  return {
    value,
    original([field, ...rest]) {
      if (field === undefined) return [];
      const [second, ...deeper] = rest;
      const first = typeof field === 'string' ? (fields.get(field) ?? field) : field;
      if (field !== 'implementation' || typeof second !== 'string') return [first, ...rest];
      return [first, inner.get(second) ?? second, ...deeper];
    },
  };
}

function implementation(kind: 'tool' | 'relic', written: Json, names: Map<string, string>): Json {
  if (typeof written === 'string') return fromWord(kind, written);
  if (!isJsonObject(written)) return written;
  const value: Record<string, Json> = {};
  for (const [name, member] of Object.entries(written)) {
    const known = kind === 'tool' ? (IMPLEMENTATION_FIELDS[name] ?? name) : name;
    const target = Object.hasOwn(written, known) ? name : known;
    value[target] = member;
    names.set(target, name);
  }
  const { type, runtime } = value;
  if (typeof runtime === 'string') value['runtime'] = RUNTIME_NAMES[runtime] ?? runtime;
  if (typeof type === 'string') {
    const lower = type.toLowerCase();
    if (kind === 'tool' && RUNTIMES.has(lower)) {
      return { ...value, type: 'script', runtime: value['runtime'] ?? RUNTIME_NAMES[lower] ?? lower };
    }
    if (kind === 'relic' && STORES.has(lower)) return { ...value, type: 'edge', store: value['store'] ?? lower };
    value['type'] = TYPES[lower] ?? type;
  } else if (type === undefined) {
    const guessed = kind === 'tool' ? toolType(value) : relicType(value);
    if (guessed !== null) return { type: guessed, ...value };
  }
  return value;
}

/** Expands `executor: python` and the like. */
function fromWord(kind: 'tool' | 'relic', word: string): Json {
  if (kind === 'relic') return STORES.has(word) ? { type: 'edge', store: word } : word;
  return BUILTINS.has(word) ? { type: 'builtin', entrypoint: word } : word;
}

function toolType(value: JsonObject): string | null {
  const { entrypoint, script, runtime, image, build, url } = value;
  if (typeof entrypoint === 'string' && BUILTINS.has(entrypoint) && runtime === undefined) return 'builtin';
  if (image !== undefined || build !== undefined) return 'container';
  if (url !== undefined) return 'http';
  return entrypoint !== undefined || script !== undefined ? 'script' : null;
}

function relicType(value: JsonObject): string | null {
  if (value['store'] !== undefined) return 'edge';
  return value['image'] !== undefined || value['build'] !== undefined ? 'container' : null;
}

/** Uses the body of a Markdown manifest as an agent's persona, or as the description. */
export function withBody(kind: ManifestKind, value: JsonObject, body: string): JsonObject {
  if (body === '') return value;
  if (kind !== 'agent') return value['description'] === undefined ? { ...value, description: body } : value;
  const { persona } = value;
  if (persona === undefined) return { ...value, persona: body };
  if (!isJsonObject(persona) || persona['agent'] !== undefined || persona['file'] !== undefined) return value;
  return { ...value, persona: { ...persona, agent: body } };
}
