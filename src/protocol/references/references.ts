/**
 * References: how `$name.path[0]` is found in text, and what becomes of it in parameters (P12, P14).
 * What a name stands for is not known here: a lookup says so.
 */
import { factsOf } from '../../domain/action-types.ts';
import type { ActionType } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { PathStep, Reference, WarningCode } from '../../domain/protocol-event.ts';

/** The reference goes on. */
export const GOES_ON = 0;
/** The reference ended before this character; `tailChars` of what was taken are text again. */
export const ENDED_BEFORE = 1;
/** The reference ended with this character. */
export const ENDED_WITH = 2;
/** No reference: what was taken is text, this character not yet looked at. */
export const TEXT_BEFORE = 3;
/** `$$`: a literal dollar sign, this character included. */
export const DOLLAR_WITH = 4;

// Where in a reference the matcher stands.
const DOLLAR = 0;
const NAME = 1;
const DOT = 2;
const STEP = 3;
const INDEX = 4;
const INDEX_END = 5;
const BRACED_NAME = 6;
const BRACED_DOT = 7;
const BRACED_STEP = 8;
const BRACED_INDEX = 9;
const BRACED_INDEX_END = 10;

const MAX_INDEX_DIGITS = 9;
const DOT_SIGN = 46;
const ZERO = 48;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Recognises one reference, character by character, after its `$`. */
export class ReferenceMatcher {
  #state = DOLLAR;
  /** Characters taken, the `$` included. */
  #taken = 1;
  /** Characters of the name, step or index that is being read. */
  #part = 0;
  /** Characters behind the end of the last complete reference. */
  tailChars = 0;

  reset(): void {
    this.#state = DOLLAR;
    this.#taken = 1;
    this.#part = 0;
    this.tailChars = 0;
  }

  step(code: number): number {
    const outcome = this.#step(code);
    if (outcome !== GOES_ON) return outcome;
    this.#taken += 1;
    return this.#taken > limits.referenceChars ? TEXT_BEFORE : GOES_ON;
  }

  /** The text has ended: `ENDED_BEFORE` or `TEXT_BEFORE`. */
  finish(): number {
    switch (this.#state) {
      case NAME:
      case DOT:
      case STEP:
      case INDEX:
      case INDEX_END:
        return ENDED_BEFORE;
      default:
        return TEXT_BEFORE;
    }
  }

  #step(code: number): number {
    switch (this.#state) {
      case DOLLAR:
        if (code === 36) return DOLLAR_WITH;
        if (code === 123) return this.#go(BRACED_NAME);
        return isNameStart(code) ? this.#go(NAME, 1) : TEXT_BEFORE;
      case NAME:
        if (!isNameCharacter(code)) return this.#afterPart(code);
        this.#part += 1;
        return this.#part > limits.referenceNameChars ? TEXT_BEFORE : GOES_ON;
      case STEP:
        return isNameCharacter(code) ? GOES_ON : this.#afterPart(code);
      case DOT:
        if (!isNameCharacter(code)) return ENDED_BEFORE;
        this.tailChars = 0;
        return this.#go(STEP);
      case INDEX:
        this.tailChars += 1;
        if (code === 93 && this.#part > 0) {
          this.tailChars = 0;
          return this.#go(INDEX_END);
        }
        if (isDigit(code) && this.#part < MAX_INDEX_DIGITS) {
          this.#part += 1;
          return GOES_ON;
        }
        this.tailChars -= 1;
        return ENDED_BEFORE;
      case INDEX_END:
        return this.#afterPart(code);
      case BRACED_NAME:
        if (code === 125 && this.#part > 0) return ENDED_WITH;
        if (code === 46 && this.#part > 0) return this.#go(BRACED_DOT);
        if (code === 91 && this.#part > 0) return this.#go(BRACED_INDEX);
        if (!isBracedCharacter(code)) return TEXT_BEFORE;
        this.#part += 1;
        return this.#part > limits.referenceNameChars ? TEXT_BEFORE : GOES_ON;
      case BRACED_DOT:
        return isBracedCharacter(code) ? this.#go(BRACED_STEP) : TEXT_BEFORE;
      case BRACED_STEP:
        return isBracedCharacter(code) ? GOES_ON : this.#afterBracedPart(code);
      case BRACED_INDEX:
        if (code === 93 && this.#part > 0) return this.#go(BRACED_INDEX_END);
        if (!isDigit(code) || this.#part >= MAX_INDEX_DIGITS) return TEXT_BEFORE;
        this.#part += 1;
        return GOES_ON;
      default:
        return this.#afterBracedPart(code);
    }
  }

  #afterPart(code: number): number {
    if (code !== 46 && code !== 91) return ENDED_BEFORE;
    this.tailChars = 1;
    return this.#go(code === 46 ? DOT : INDEX);
  }

  #afterBracedPart(code: number): number {
    if (code === 125) return ENDED_WITH;
    if (code === 46) return this.#go(BRACED_DOT);
    return code === 91 ? this.#go(BRACED_INDEX) : TEXT_BEFORE;
  }

  #go(state: number, part = 0): number {
    this.#state = state;
    this.#part = part;
    return GOES_ON;
  }
}

const NO_PATH: readonly PathStep[] = [];

function isNameStart(code: number): boolean {
  const letter = code | 32;
  return (letter >= 97 && letter <= 122 && code < 128) || code === 95;
}

function isNameCharacter(code: number): boolean {
  return isNameStart(code) || isDigit(code);
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** What ids may hold (P12), less the characters that structure a reference. */
function isBracedCharacter(code: number): boolean {
  switch (code) {
    case 34: // "
    case 36: // $
    case 38: // &
    case 39: // '
    case 46: // .
    case 60: // <
    case 62: // >
    case 91: // [
    case 93: // ]
    case 123: // {
    case 125: // }
    case 127:
      return false;
    default:
      return code > 32;
  }
}

/** The reference that `raw` spells; `raw` is what a `ReferenceMatcher` accepted. */
export function parseReference(raw: string): Reference {
  const braced = raw.charCodeAt(1) === OPEN_BRACE;
  const start = braced ? 2 : 1;
  const end = braced ? raw.length - 1 : raw.length;
  const nameEnd = partEnd(raw, start, end);
  let path: PathStep[] | null = null;
  for (let at = nameEnd; at < end;) {
    let step: PathStep = 0;
    if (raw.charCodeAt(at) === OPEN_BRACKET) {
      for (at += 1; raw.charCodeAt(at) !== CLOSE_BRACKET; at += 1) step = step * 10 + raw.charCodeAt(at) - ZERO;
      at += 1;
    } else {
      const to = partEnd(raw, at + 1, end);
      step = raw.slice(at + 1, to);
      at = to;
    }
    if (path === null) path = [step];
    else path.push(step);
  }
  return { name: raw.slice(start, nameEnd), path: path ?? NO_PATH, raw };
}

/** End of the name or step that begins at `from`. */
function partEnd(raw: string, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const code = raw.charCodeAt(at);
    if (code === DOT_SIGN || code === OPEN_BRACKET) break;
    at += 1;
  }
  return at;
}

/**
 * Reads the reference at `at`, if it is written with word characters and it is certain where it ends.
 *
 * @param complete no more text can follow
 * @returns `open` where the text ends before that is certain; null for anything that must be looked at
 *   character by character
 */
export function readReference(text: string, at: number, complete: boolean): Reference | 'open' | null {
  const end = text.length;
  const braced = text.charCodeAt(at + 1) === OPEN_BRACE;
  const start = braced ? at + 2 : at + 1;
  if (start === end) return 'open';
  if (!isNameStart(text.charCodeAt(start))) return null;
  const nameEnd = wordEnd(text, start + 1);
  if (nameEnd - start > limits.referenceNameChars) return null;
  let path: PathStep[] | null = null;
  let index = nameEnd;
  for (;;) {
    if (index - at > limits.referenceChars) return null;
    const code = text.charCodeAt(index);
    if (code !== DOT_SIGN && code !== OPEN_BRACKET) break;
    const from = index + 1;
    let step: PathStep = 0;
    if (code === DOT_SIGN) {
      index = wordEnd(text, from);
      if (index === from) return index === end ? 'open' : null;
      step = text.slice(from, index);
    } else {
      for (index = from; isDigit(text.charCodeAt(index)); index += 1) step = step * 10 + text.charCodeAt(index) - ZERO;
      if (index - from > MAX_INDEX_DIGITS) return null;
      if (index === end) return 'open';
      if (index === from || text.charCodeAt(index) !== CLOSE_BRACKET) return null;
      index += 1;
      if (isNameCharacter(text.charCodeAt(index))) return null;
    }
    if (path === null) path = [step];
    else path.push(step);
  }
  if (index === end && (braced || !complete)) return 'open';
  if (braced && text.charCodeAt(index) !== CLOSE_BRACE) return null;
  return { name: text.slice(start, nameEnd), path: path ?? NO_PATH, raw: text.slice(at, braced ? index + 1 : index) };
}

/** End of the word characters that begin at `from`; looks at no more than a reference may have. */
function wordEnd(text: string, from: number): number {
  const end = Math.min(text.length, from + limits.referenceChars);
  let index = from;
  while (index < end && isNameCharacter(text.charCodeAt(index))) index += 1;
  return index;
}

/** Text cut at its references; `$$` in the text parts is already `$`. Empty text parts are left out. */
export function scanText(text: string): (string | Reference)[] {
  const parts: (string | Reference)[] = [];
  let matcher: ReferenceMatcher | null = null;
  let literal = '';
  let from = 0;
  let dollar = text.indexOf('$');
  while (dollar !== -1) {
    literal += text.slice(from, dollar);
    const reference = readReference(text, dollar, true);
    if (typeof reference === 'object' && reference !== null) {
      if (literal !== '') parts.push(literal);
      literal = '';
      from = dollar + reference.raw.length;
      parts.push(reference);
      dollar = text.indexOf('$', from);
      continue;
    }
    matcher ??= new ReferenceMatcher();
    matcher.reset();
    let index = dollar + 1;
    let outcome = GOES_ON;
    while (outcome === GOES_ON && index < text.length) {
      outcome = matcher.step(text.charCodeAt(index));
      if (outcome === GOES_ON) index += 1;
    }
    if (outcome === GOES_ON) outcome = matcher.finish();
    if (outcome === ENDED_BEFORE || outcome === ENDED_WITH) {
      const end = outcome === ENDED_WITH ? index + 1 : index - matcher.tailChars;
      if (literal !== '') parts.push(literal);
      literal = '';
      parts.push(parseReference(text.slice(dollar, end)));
      from = end;
    } else if (outcome === DOLLAR_WITH) {
      literal += '$';
      from = index + 1;
    } else {
      literal += text.slice(dollar, index);
      from = index;
    }
    dollar = text.indexOf('$', from);
  }
  literal += text.slice(from);
  if (literal !== '') parts.push(literal);
  return parts;
}

const NO_NAMES: readonly string[] = [];

/** Root names of all references in the strings of a value, each once, in order of appearance. Keys are not searched. */
export function referenceNames(value: Json): readonly string[] {
  const names = collectNames(value, null);
  return names === null ? NO_NAMES : [...names];
}

/** Most parameters hold no reference at all: the set comes into being with the first. */
function collectNames(value: Json, found: Set<string> | null): Set<string> | null {
  let names = found;
  if (typeof value === 'string') {
    if (value.indexOf('$') === -1) return names;
    for (const part of scanText(value)) {
      if (typeof part === 'string') continue;
      names ??= new Set();
      names.add(part.name);
    }
  } else if (Array.isArray(value)) {
    for (const item of value) names = collectNames(item, names);
  } else if (typeof value === 'object' && value !== null) {
    for (const key in value) names = collectNames(value[key] ?? null, names);
  }
  return names;
}

const SHELL_NAME = /\\\$|\$\$|\$\{?([A-Za-z_][A-Za-z0-9_]{0,63})(?![A-Za-z0-9_])/g;

/**
 * Every `$name` in code that gets its values as environment variables, each once: those that are known become
 * environment variables and dependencies. Forms of the shell such as `${name:-x}` count.
 */
export function commandReferences(type: ActionType, parameters: JsonObject): readonly string[] {
  const { code } = factsOf(type);
  if (code?.inputs !== 'environment') return NO_NAMES;
  const names = new Set<string>();
  for (const key of code.parameters) {
    const value = Object.hasOwn(parameters, key) ? parameters[key] : undefined;
    const texts = Array.isArray(value) ? value : [value];
    for (const text of texts) {
      if (typeof text !== 'string') continue;
      for (const [, name] of text.matchAll(SHELL_NAME)) if (name !== undefined) names.add(name);
    }
  }
  return [...names];
}

/** The names in an action's parameters that make dependencies, for its type (P12, P14). */
export function parameterReferences(type: ActionType, parameters: JsonObject): readonly string[] {
  if (factsOf(type).code === null) return referenceNames(parameters);
  const inputs = Object.hasOwn(parameters, 'inputs') ? (parameters['inputs'] ?? null) : null;
  const names = referenceNames(inputs);
  return [...new Set([...names, ...commandReferences(type, parameters)])];
}

/** What a name stands for when an action is dispatched. `failed` says why there is no value. */
export type NameLookup = (
  name: string,
) =>
  | { readonly known: true; readonly value: Json }
  | { readonly known: true; readonly failed: 'failed' | 'skipped' | 'rejected' | 'cancelled' | 'pending' | 'left_out' }
  | { readonly known: false };

export interface SubstitutionWarning {
  readonly code: WarningCode;
  readonly message: string;
}

/**
 * Puts values in the place of references, through arrays and objects, in one pass: what a value holds
 * is not looked at again (P12).
 *
 * A string that is exactly one reference becomes the value itself; an embedded reference becomes text.
 * A path that leads nowhere is null, in text nothing; a producer without a value is null, in text
 * `[name: failed]`; an unknown name stays as it is. What would add more than
 * `limits.substitutedChars` is left out.
 *
 * @param quota what the actions of a run share: the characters that are rendered for them are taken from it
 * @returns `renderedChars`: what was taken from the quota. `spent` where it did not suffice: then values are missing.
 *   Warnings: at most one `unknown_reference` and one `truncated` warning, and one `missing_path` for
 *   each reference concerned
 */
export function substitute(
  parameters: JsonObject,
  lookup: NameLookup,
  quota: SubstitutionQuota = newSubstitutionQuota(),
): { value: JsonObject; warnings: SubstitutionWarning[]; spent: boolean; renderedChars: number } {
  const before = quota.charsLeft;
  const substitution = new Substitution(lookup, quota);
  const value = substitution.object(parameters);
  const { spent } = substitution;
  return { value, warnings: substitution.warnings(), spent, renderedChars: before - quota.charsLeft };
}

/** What the references of a run's actions may still add to parameters, in UTF-16 units. */
export interface SubstitutionQuota {
  charsLeft: number;
}

export function newSubstitutionQuota(): SubstitutionQuota {
  return { charsLeft: limits.runSubstitutedChars };
}

type Found =
  | { readonly state: 'value'; readonly value: Json; readonly text: string }
  | { readonly state: 'nothing'; readonly text: string }
  | { readonly state: 'unknown' };

class Substitution {
  readonly #lookup: NameLookup;
  /** What each name stands for: asked once, however many paths lead into it. */
  readonly #named = new Map<string, ReturnType<NameLookup>>();
  /** By spelling: each reference is looked up, walked and rendered once. */
  readonly #found = new Map<string, Found>();
  readonly #unknown = new Set<string>();
  readonly #missing: string[] = [];
  readonly #quota: SubstitutionQuota;
  /** The run's quota did not suffice. */
  spent = false;
  #charsLeft: number = limits.substitutedChars;
  #leftOut: string | null = null;

  constructor(lookup: NameLookup, quota: SubstitutionQuota) {
    this.#lookup = lookup;
    this.#quota = quota;
  }

  object(value: JsonObject): JsonObject {
    // fromEntries defines own properties, also one called `__proto__`.
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#any(item)]));
  }

  warnings(): SubstitutionWarning[] {
    const warnings: SubstitutionWarning[] = this.#missing.map((raw) => ({
      code: 'missing_path',
      message: `${raw}: there is nothing at this path; it became null`,
    }));
    if (this.#unknown.size > 0) {
      const names = [...this.#unknown].slice(0, 10).join(', ');
      warnings.push({
        code: 'unknown_reference',
        message: `${names}: nothing of this name was declared before; left as written`,
      });
    }
    if (this.#leftOut !== null) {
      warnings.push({
        code: 'truncated',
        message: `The references of one action may add ${limits.substitutedChars} characters; ${this.#leftOut} and what follows was left out`,
      });
    }
    return warnings;
  }

  #any(value: Json): Json {
    if (typeof value === 'string') return value.includes('$') ? this.#string(value) : value;
    if (Array.isArray(value)) return value.map((item) => this.#any(item));
    return typeof value === 'object' && value !== null ? this.object(value) : value;
  }

  #string(text: string): Json {
    const parts = scanText(text);
    const [only] = parts;
    if (parts.length === 1 && typeof only === 'object') {
      const found = this.#find(only);
      if (found.state === 'unknown') return text;
      if (found.state === 'nothing' || !this.#afford(only, found.text)) return null;
      return found.value;
    }
    return parts
      .map((part) => {
        if (typeof part === 'string') return part;
        const found = this.#find(part);
        if (found.state === 'unknown') return part.raw;
        return this.#afford(part, found.text) ? found.text : '';
      })
      .join('');
  }

  #find(reference: Reference): Found {
    const known = this.#found.get(reference.raw);
    if (known !== undefined) return known;
    const found = this.#resolve(reference);
    this.#found.set(reference.raw, found);
    return found;
  }

  #resolve(reference: Reference): Found {
    let named = this.#named.get(reference.name);
    if (named === undefined) {
      named = this.#lookup(reference.name);
      this.#named.set(reference.name, named);
    }
    if (!named.known) {
      this.#unknown.add(reference.raw);
      return { state: 'unknown' };
    }
    // What no room is left for is not rendered.
    if (this.#leftOut !== null) return { state: 'nothing', text: '' };
    if ('failed' in named) return { state: 'nothing', text: `[${reference.name}: ${named.failed}]` };
    const { found, value } = follow(named.value, reference.path);
    if (found && this.#quota.charsLeft <= 0) {
      // Rendering is part of the work that the quota bounds.
      this.spent = true;
      return { state: 'nothing', text: '' };
    }
    if (found) return { state: 'value', value, text: renderText(value) };
    this.#missing.push(reference.raw);
    return { state: 'nothing', text: '' };
  }

  #afford(reference: Reference, text: string): boolean {
    // What is left out was rendered, so it counts for the run as well.
    this.#quota.charsLeft -= text.length;
    if (this.#quota.charsLeft < 0) this.spent = true;
    if (text.length > this.#charsLeft || this.spent) {
      this.#leftOut ??= reference.raw;
      this.#charsLeft = 0;
      return false;
    }
    this.#charsLeft -= text.length;
    return true;
  }
}

/** A value as text: strings raw, other scalars as JSON writes them, objects and arrays as compact JSON. */
export function renderText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Walks a path through own properties and array items only. `value` is null where the path leads nowhere. */
export function follow(value: Json, path: readonly PathStep[]): { found: boolean; value: Json } {
  let current: Json = value;
  for (const step of path) {
    if (typeof current !== 'object' || current === null) return { found: false, value: null };
    const next: Json | undefined = Array.isArray(current)
      ? /^\d+$/.test(String(step))
        ? current[Number(step)]
        : undefined
      : Object.hasOwn(current, step)
        ? current[step]
        : undefined;
    if (next === undefined) return { found: false, value: null };
    current = next;
  }
  return { found: true, value: current };
}
