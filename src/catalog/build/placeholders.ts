/** Checks placeholders of requests against the parameters that fill them (M3, R5). */
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { placeholdersOf } from '../../domain/request-template.ts';

/** How deeply the alternatives of a schema are searched for names of parameters. */
const SCHEMA_DEPTH = 8;

export interface RequestPart {
  readonly text: string;
  readonly kind: 'url' | 'path' | 'header';
}

/** The first issue of a URL, of the path of an endpoint, or of a header's value; null if there is none. */
export function placeholderIssue({ text, kind }: RequestPart, known: KnownParameters): string | null {
  const placeholders = placeholdersOf(text);
  const part = kind === 'header' ? null : partsOf(text, kind);
  for (const { name, at } of placeholders) {
    if (part !== null && at < part.path) {
      return `the placeholder {${name}} is in the scheme, user name, host or port (allowed: in the path and the query)`;
    }
    if (part !== null && at >= part.fragment) return `the placeholder {${name}} is after "#", which is never sent`;
    if (!known.isOpen && !known.names.has(name)) {
      const names = [...known.names];
      const [near] = nearestNames(name, names);
      const allowed = names.length === 0 ? 'none' : names.slice(0, 20).join(', ');
      const hint = near === undefined ? '; a literal "{" is written "{{"' : `. Did you mean ${near}?`;
      return `the placeholder {${name.slice(0, limits.excerptChars)}} names no parameter (parameters: ${allowed})${hint}`;
    }
    if (part !== null && at < part.query && !known.isOpen && known.optional.has(name)) {
      return `the parameter "${name}" in the path is optional and has no default; make it required, or give it a default`;
    }
  }
  return null;
}

interface Parts {
  /** Offsets of the path, the query and the fragment. */
  readonly path: number;
  readonly query: number;
  readonly fragment: number;
}

function partsOf(text: string, kind: 'url' | 'path'): Parts {
  // a variable may have a URL as its default
  const plain = text.replaceAll(/\$\{[^}]*\}/g, (variable) => '_'.repeat(variable.length));
  const scheme = kind === 'path' ? null : /^[^/?#]*:\/\//.exec(plain);
  const host = scheme === null ? 0 : scheme[0].length;
  const from = (start: number, pattern: RegExp): number => {
    const found = plain.slice(start).search(pattern);
    return found === -1 ? plain.length : start + found;
  };
  const path = kind === 'path' ? 0 : from(host, /[/?#\\]/);
  // an empty host: the parser of URLs would take the next segment as the host
  const isHostless = scheme !== null && path === host;
  const fragment = from(path, /#/);
  return { path: isHostless ? plain.length : path, query: Math.min(from(path, /\?/), fragment), fragment };
}

export interface KnownParameters {
  readonly names: ReadonlySet<string>;
  /** Parameters that a valid call may omit, and that have no default. */
  readonly optional: ReadonlySet<string>;
  /** The schema refers to other schemas or to patterns, so the names are not complete. */
  readonly isOpen: boolean;
}

/** @param schema JSON Schema of the parameters object */
export function knownParameters(schema: JsonObject): KnownParameters {
  const names = new Set<string>();
  const present = new Set<string>();
  let isOpen = false;
  const visit = (part: Json | undefined, depth: number): void => {
    if (!isJsonObject(part)) return;
    if (depth > SCHEMA_DEPTH || part['$ref'] !== undefined || isJsonObject(part['patternProperties'])) isOpen = true;
    if (depth > SCHEMA_DEPTH) return;
    const { properties, required } = part;
    if (isJsonObject(properties)) {
      for (const [name, property] of Object.entries(properties)) {
        names.add(name);
        if (depth === 0 && isJsonObject(property) && (property['default'] ?? null) !== null) present.add(name);
      }
    }
    // an alternative may require a parameter; a call without it fails before it is sent
    for (const name of Array.isArray(required) ? required : []) if (typeof name === 'string') present.add(name);
    for (const key of ['allOf', 'anyOf', 'oneOf']) {
      const members = part[key];
      for (const member of Array.isArray(members) ? members : []) visit(member, depth + 1);
    }
    for (const key of ['then', 'else']) visit(part[key], depth + 1);
  };
  visit(schema, 0);
  return { names, optional: new Set([...names].filter((name) => !present.has(name))), isOpen };
}
