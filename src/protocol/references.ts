/**
 * `$name`, `${name}`, `$name.path[0]`, `$$` (P12, P14): finding them, following them, putting values
 * in their place. One pass: what a value brings with it is never looked at again.
 */
import type { ActionType } from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { isJsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { PathStep, Reference, WarningCode } from '../domain/protocol-event.ts';

/** `$$`, `$name…` or `${name…}`; everything else with a `$` is literal. */
const REFERENCE =
  /\$(?:\$|([A-Za-z_][A-Za-z0-9_]{0,63})(?![A-Za-z0-9_])((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d{1,9}\])*)|\{([^\s{}[\].<>&"'\p{Cc}]{1,64})((?:\.[^\s{}[\].<>&"'\p{Cc}]+|\[\d{1,9}\])*)\})/gu;
const STEP = /\.([^.[]+)|\[(\d+)\]/g;

/** What a name stands for, as parameters see it. `failed`: there is no value, and why. */
export type NameLookup = (
  name: string,
) =>
  | { readonly known: true; readonly value: Json }
  | { readonly known: true; readonly failed: 'failed' | 'skipped' | 'rejected' | 'cancelled' | 'pending' }
  | { readonly known: false };

export interface SubstitutionWarning {
  readonly code: WarningCode;
  readonly message: string;
}

/** A piece of text: literal, or a reference. */
export type TextPiece = string | Reference;

/** Splits text at its references; `$$` has become a literal `$`. Neighbouring literals are joined. */
export function splitText(text: string): TextPiece[] {
  if (!text.includes('$')) return text === '' ? [] : [text];
  const pieces: TextPiece[] = [];
  let literal = '';
  let at = 0;
  for (const match of text.matchAll(REFERENCE)) {
    literal += text.slice(at, match.index);
    at = match.index + match[0].length;
    if (match[0] === '$$') {
      literal += '$';
      continue;
    }
    if (literal !== '') pieces.push(literal);
    literal = '';
    pieces.push({ name: match[1] ?? match[3] ?? '', path: parsePath(match[2] ?? match[4] ?? ''), raw: match[0] });
  }
  literal += text.slice(at);
  if (literal !== '') pieces.push(literal);
  return pieces;
}

/** One reference at the beginning of a text, and what could still grow into one. */
const AT_START = new RegExp(`^(?:${REFERENCE.source})`, 'u');
const MAY_GROW =
  /^\$(?:$|[A-Za-z_][A-Za-z0-9_]{0,63}(?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d{1,9}\])*(?:\.|\[\d{0,9})?$|\{[^\s{}<>&"']*$)/u;

/**
 * Reads the reference that begins with the `$` at `at`, while the text is still arriving.
 *
 * @param ending nothing more will come
 * @returns `more` when the next characters decide; `text` when the `$` is one; a null reference for `$$`
 */
export function readReference(
  text: string,
  at: number,
  ending: boolean,
): 'more' | 'text' | { readonly reference: Reference | null; readonly end: number } {
  const window = text.slice(at, at + limits.referenceChars);
  const cut = at + window.length === text.length && window.length < limits.referenceChars;
  if (cut && !ending && MAY_GROW.test(window)) return 'more';
  const match = AT_START.exec(window);
  if (match === null) return 'text';
  const end = at + match[0].length;
  if (match[0] === '$$') return { reference: null, end };
  return {
    reference: { name: match[1] ?? match[3] ?? '', path: parsePath(match[2] ?? match[4] ?? ''), raw: match[0] },
    end,
  };
}

function parsePath(text: string): PathStep[] {
  return [...text.matchAll(STEP)].map((step) => (step[1] === undefined ? Number(step[2]) : step[1]));
}

/** Root names of all references in a value, each once, in order of appearance. */
export function referenceNames(value: Json): string[] {
  const names = new Set<string>();
  const visit = (part: Json): void => {
    if (typeof part === 'string') {
      for (const piece of splitText(part)) if (typeof piece !== 'string') names.add(piece.name);
    } else if (Array.isArray(part)) {
      for (const item of part) visit(item);
    } else if (isJsonObject(part)) {
      for (const item of Object.values(part)) visit(item);
    }
  };
  visit(value);
  return [...names];
}

/** The parameters whose text is code, and so is never substituted (P14). */
const CODE_PARAMETERS: readonly string[] = ['code', 'script', 'command', 'args'];

/** Names in a shell or docker command: they become dependencies and inputs, the command stays as it is (P14). */
export function commandReferences(type: ActionType, parameters: JsonObject): string[] {
  if (type !== 'shell' && type !== 'docker') return [];
  return referenceNames(CODE_PARAMETERS.map((name) => parameters[name] ?? null));
}

/** Every name that an action's parameters make it depend on. */
export function parameterReferences(type: ActionType, parameters: JsonObject): string[] {
  if (type !== 'python' && type !== 'shell' && type !== 'docker') return referenceNames(parameters);
  return [...new Set([...referenceNames(parameters['inputs'] ?? null), ...commandReferences(type, parameters)])];
}

/** Follows a path through own properties only. */
export function follow(value: Json, path: readonly PathStep[]): { readonly found: boolean; readonly value: Json } {
  let current: Json = value;
  for (const step of path) {
    if (typeof step === 'number' && Array.isArray(current) && step < current.length) {
      current = current[step] ?? null;
    } else if (isJsonObject(current) && Object.hasOwn(current, String(step))) {
      current = current[String(step)] ?? null;
    } else {
      return { found: false, value: null };
    }
  }
  return { found: true, value: current };
}

/** A value as text: strings raw, other scalars as written, objects and arrays as compact JSON. */
export function renderText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Puts values in the place of references, through arrays and objects. A string that is one reference
 * keeps the value's type; an unknown name stays as it is, with one warning for the whole action.
 */
export function substitute(
  parameters: JsonObject,
  lookup: NameLookup,
): { readonly value: JsonObject; readonly warnings: readonly SubstitutionWarning[] } {
  const unknown = new Set<string>();
  const missing = new Set<string>();

  const resolve = (reference: Reference): { text: string; value: Json } => {
    const found = lookup(reference.name);
    if (!found.known) {
      unknown.add(reference.raw);
      return { text: reference.raw, value: reference.raw };
    }
    if ('failed' in found) return { text: `[${reference.name}: ${found.failed}]`, value: null };
    const followed = follow(found.value, reference.path);
    if (!followed.found) {
      missing.add(reference.raw);
      return { text: '', value: null };
    }
    return { text: renderText(followed.value), value: followed.value };
  };

  const visit = (part: Json): Json => {
    if (typeof part === 'string') {
      if (!part.includes('$')) return part;
      const pieces = splitText(part);
      const [only] = pieces;
      if (pieces.length === 1 && only !== undefined && typeof only !== 'string') return resolve(only).value;
      return pieces.map((piece) => (typeof piece === 'string' ? piece : resolve(piece).text)).join('');
    }
    if (Array.isArray(part)) return part.map(visit);
    if (isJsonObject(part)) return visitObject(part);
    return part;
  };
  const visitObject = (part: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(part).map(([key, item]) => [key, visit(item)]));

  const value = visitObject(parameters);
  const warnings: SubstitutionWarning[] = [];
  if (unknown.size > 0) {
    const names = [...unknown].slice(0, 10).join(', ');
    warnings.push({
      code: 'unknown_reference',
      message: `${names}: nothing of this name was declared before; left as it is`,
    });
  }
  if (missing.size > 0) {
    const names = [...missing].slice(0, 10).join(', ');
    warnings.push({ code: 'missing_path', message: `${names}: the value has nothing there; null was used` });
  }
  return { value, warnings };
}
