/** Substitution: replaces references in an action's parameters with values (P12). */
import type { BoundText } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { PathStep, Reference, WarningCode } from '../../domain/protocol-event.ts';
import { scanText } from './references.ts';

/** Looks up the value of a name when an action is dispatched. `failed` says why there is no value. */
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
 * Replaces references with values, through arrays and objects, in one pass: references inside a value are not replaced
 * (P12).
 *
 * A string that is exactly one reference becomes the value itself; an embedded reference becomes text. A missing path
 * becomes null, or empty text. A producer without a value becomes null, or the text `[name: failed]`. An unknown name
 * is left unchanged. Values beyond `limits.substitutedChars` are left out.
 *
 * @param quota shared by the actions of a run: rendered characters are charged to it
 * @returns `blanks`: references in text whose path does not exist, so that nothing is in their place.
 *   `renderedChars`: the characters charged to the quota. `spent`: the quota was exceeded, so values are
 *   missing. Warnings: at most one `unknown_reference`, one `truncated`, and one `missing_path` for each reference
 *   concerned.
 */
export function substitute(
  parameters: JsonObject,
  lookup: NameLookup,
  quota: SubstitutionQuota = newSubstitutionQuota(),
): Substituted {
  if (!hasReferences(parameters))
    return { value: parameters, warnings: [], blanks: [], spent: false, renderedChars: 0 };
  return substituted(lookup, quota, (substitution) => substitution.object(parameters));
}

/** Replaces the bound texts of a declared action with values, like `substitute`. All other texts are data. */
export function fillIn(
  parameters: JsonObject,
  texts: readonly BoundText[],
  lookup: NameLookup,
  quota: SubstitutionQuota = newSubstitutionQuota(),
): Substituted {
  return substituted(lookup, quota, (substitution) => substitution.filled(parameters, texts, 0) as JsonObject);
}

/** The parameters with values, and what is to be said about them. */
interface Substituted {
  readonly value: JsonObject;
  readonly warnings: readonly SubstitutionWarning[];
  readonly blanks: readonly Reference[];
  readonly spent: boolean;
  readonly renderedChars: number;
}

function substituted(
  lookup: NameLookup,
  quota: SubstitutionQuota,
  replace: (substitution: Substitution) => JsonObject,
): Substituted {
  const before = quota.charsLeft;
  const substitution = new Substitution(lookup, quota);
  const value = replace(substitution);
  const { blanks, spent } = substitution;
  return { value, warnings: substitution.warnings(), blanks, spent, renderedChars: before - quota.charsLeft };
}

/** Whether a text in the value may contain a reference: without one, parameters are used as they are. */
function hasReferences(value: Json): boolean {
  if (typeof value === 'string') return value.includes('$');
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasReferences);
  for (const name in value) if (hasReferences(value[name] ?? null)) return true;
  return false;
}

/** Characters that the references of a run's actions may still add to parameters, in UTF-16 code units. */
export interface SubstitutionQuota {
  charsLeft: number;
}

export function newSubstitutionQuota(): SubstitutionQuota {
  return { charsLeft: limits.runSubstitutedChars };
}

type Found =
  | { readonly type: 'value'; readonly value: Json; readonly text: string }
  | { readonly type: 'nothing'; readonly text: string; readonly isMissing?: true }
  | { readonly type: 'unknown' };

class Substitution {
  readonly #lookup: NameLookup;
  /** The lookup result of each name: looked up once, however many paths start there. */
  readonly #named = new Map<string, ReturnType<NameLookup>>();
  /** By spelling: each reference is resolved and rendered once. */
  readonly #found = new Map<string, Found>();
  readonly #unknown = new Set<string>();
  readonly #missing: string[] = [];
  readonly blanks: Reference[] = [];
  readonly #quota: SubstitutionQuota;
  /** The run's quota was exceeded. */
  spent = false;
  #charsLeft: number = limits.substitutedChars;
  #leftOut: string | null = null;

  constructor(lookup: NameLookup, quota: SubstitutionQuota) {
    this.#lookup = lookup;
    this.#quota = quota;
  }

  object(value: JsonObject): JsonObject {
    // fromEntries defines own properties, even for `__proto__`.
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#any(item)]));
  }

  /** @param depth how many members of the texts' positions lead to the value */
  filled(value: Json, texts: readonly BoundText[], depth: number): Json {
    const whole = texts.find(({ at }) => at.length === depth);
    if (whole !== undefined) return this.#joined(whole.parts);
    const within = Map.groupBy(texts, ({ at }) => at[depth]);
    const fill = (item: Json, place: string | number): Json => {
      const found = within.get(place);
      return found === undefined ? item : this.filled(item, found, depth + 1);
    };
    if (Array.isArray(value)) return value.map(fill);
    return Object.fromEntries(Object.entries(value as JsonObject).map(([name, item]) => [name, fill(item, name)]));
  }

  warnings(): SubstitutionWarning[] {
    const warnings: SubstitutionWarning[] = this.#missing.map((raw) => ({
      code: 'missing_path',
      message: `${raw}: this path does not exist; the value is null`,
    }));
    if (this.#unknown.size > 0) {
      const names = [...this.#unknown].slice(0, 10).join(', ');
      warnings.push({
        code: 'unknown_reference',
        message: `${names}: no earlier action or variable has this name; left unchanged`,
      });
    }
    if (this.#leftOut !== null) {
      warnings.push({
        code: 'truncated',
        message: `The references of one action may add ${limits.substitutedChars} characters; ${this.#leftOut} and later references were left out`,
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
    return this.#joined(scanText(text));
  }

  /** The value of a single reference, else text. */
  #joined(parts: readonly (string | Reference)[]): Json {
    const [only] = parts;
    if (parts.length === 1 && typeof only === 'object') {
      const found = this.#find(only);
      if (found.type === 'unknown') return only.raw;
      if (found.type === 'nothing' || !this.#afford(only, found.text)) return null;
      return found.value;
    }
    return parts
      .map((part) => {
        if (typeof part === 'string') return part;
        const found = this.#find(part);
        if (found.type === 'unknown') return part.raw;
        if (found.type === 'nothing' && found.isMissing && this.blanks.length < limits.missingShown) {
          this.blanks.push(part);
        }
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
      return { type: 'unknown' };
    }
    // A value that does not fit is not rendered.
    if (this.#leftOut !== null) return { type: 'nothing', text: '' };
    if ('failed' in named) return { type: 'nothing', text: `[${reference.name}: ${named.failed}]` };
    const { found, value } = follow(named.value, reference.path);
    if (found && this.#quota.charsLeft <= 0) {
      // Rendering is part of the work that the quota bounds.
      this.spent = true;
      return { type: 'nothing', text: '' };
    }
    if (found) return { type: 'value', value, text: renderText(value) };
    this.#missing.push(reference.raw);
    return { type: 'nothing', text: '', isMissing: true };
  }

  #afford(reference: Reference, text: string): boolean {
    // A value that is left out was rendered, so it still counts for the run.
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

/** A value as text: strings raw, other values as compact JSON. */
export function renderText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Follows a path through own properties and array items only. `value` is null if the path does not exist. The `output` of
 * a text is the text.
 */
export function follow(value: Json, path: readonly PathStep[]): { found: boolean; value: Json } {
  let current: Json = value;
  for (const [index, step] of path.entries()) {
    // a program that prints text, and an agent, have no other member
    if (typeof current === 'string' && step === 'output' && index === path.length - 1) break;
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
