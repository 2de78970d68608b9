/**
 * A manifest that is rewritten from another form into this system's form. The draft remembers where the author wrote each
 * part, so that issues point at the author's text, and comments stay at what they are about.
 *
 * Invariants:
 * 1. The author's value is never changed.
 * 2. `original` maps every path of the draft: a moved part keeps its place, a new part has the place that was given.
 */
import { isJsonObject } from '../../src/domain/json.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import type { Issue } from '../../src/catalog/check/issues.ts';
import type { FieldPath } from '../../src/catalog/check/problem.ts';
import type { ImportKind } from '../../src/catalog/read/imports.ts';
import type { FoundImport } from './old-imports.ts';

type Container = Record<string, Json> | Json[];

/** What is known about the folder of the manifest. */
export interface Surroundings {
  /** The text of a file, by its path in the manifest; null if there is none. */
  textOf(path: string): string | null;
  find(written: string, kind: ImportKind): FoundImport;
}

/** What was changed, at the author's path. */
export interface Change extends Issue {
  /** Whether something of the original was lost, so that a person has to decide what to do about it. */
  readonly needsAct: boolean;
}

export class Draft {
  readonly #root: Record<string, Json>;
  /** Where lists and maps were written. */
  readonly #places = new Map<object, FieldPath>();
  /** Lists and maps that the author did not write: their members have the same place. */
  readonly #made = new Set<object>();
  /** Where members were written whose place does not follow from their parent. */
  readonly #members = new Map<object, Map<string | number, FieldPath>>();
  readonly #notes: Change[] = [];
  readonly #refused: Issue[] = [];

  readonly around: Surroundings;

  /** @param around default: a folder without other files */
  constructor(written: JsonObject, around: Surroundings = { textOf: () => null, find: () => null }) {
    this.around = around;
    this.#root = this.#copy(written, []) as Record<string, Json>;
  }

  /** The draft's value. Valid until the next change. */
  get value(): JsonObject {
    return this.#root;
  }

  /** What was understood how, with the author's paths. */
  get notes(): readonly Change[] {
    return this.#notes;
  }

  /** What must not be dropped, with the author's paths. Each is an error. */
  get refused(): readonly Issue[] {
    return this.#refused;
  }

  /** The value at a path, or undefined. */
  get(path: FieldPath): Json | undefined {
    let current: Json | undefined = this.#root;
    for (const step of path) current = memberOf(current, step);
    return current;
  }

  has(path: FieldPath): boolean {
    return this.get(path) !== undefined;
  }

  /**
   * Replaces or adds a value; creates missing maps on the way. Does nothing inside of a value that is no map or list,
   * which the schema reports.
   *
   * @param from the draft's path whose author's text the value was made from; default: the place of `path`
   */
  set(path: FieldPath, value: Json, from: FieldPath = path): void {
    const place = this.original(from);
    const owner = this.#owner(path, place);
    if (owner === null) return;
    put(owner.parent, owner.key, this.#copy(value, place, true));
    this.#locate(owner.parent, owner.key, place);
  }

  /** Moves a value to another place, which must not be inside it; does nothing if there is no such value. */
  move(from: FieldPath, to: FieldPath): void {
    const value = this.get(from);
    if (value === undefined) return;
    const place = this.original(from);
    this.#delete(from);
    const owner = this.#owner(to, place);
    if (owner === null) return;
    put(owner.parent, owner.key, value);
    this.#locate(owner.parent, owner.key, place);
  }

  /**
   * Removes a member of a map. Items of lists stay where they are, so that paths stay valid. A member that protects is
   * refused, also inside the removed value (K10).
   */
  remove(path: FieldPath): void {
    for (const lost of protectingIn(path, this.get(path))) {
      this.refuse(
        lost,
        'has no effect here, and what protects is never ignored; write it in the form of docs/manifests.md',
      );
    }
    this.#delete(path);
  }

  #delete(path: FieldPath): void {
    const owner = this.get(path.slice(0, -1));
    const key = path.at(-1);
    if (!isJsonObject(owner) || typeof key !== 'string') return;
    delete (owner as Record<string, Json>)[key];
    this.#members.get(owner)?.delete(key);
  }

  /**
   * Tells the author what a part was understood as.
   *
   * @param path a path of the draft, before the part is moved or removed
   */
  note(path: FieldPath, message: string, part: Issue['part'] = 'key'): void {
    this.#notes.push({ path: this.original(path), part, message, needsAct: false });
  }

  /** The same for a part that is lost: its message becomes a comment in the new manifest. */
  lose(path: FieldPath, message: string, part: Issue['part'] = 'key'): void {
    this.#notes.push({ path: this.original(path), part, message, needsAct: true });
  }

  /** The same as `note`, for an error. */
  refuse(path: FieldPath, message: string): void {
    this.#refused.push({ path: this.original(path), part: 'key', message });
  }

  /** Removes items of a list; the others keep the places where the author wrote them. */
  removeItems(path: FieldPath, indexes: ReadonlySet<number>): void {
    const list = this.get(path);
    if (!Array.isArray(list) || indexes.size === 0) return;
    const kept = [...list.keys()].filter((index) => !indexes.has(index));
    const places = kept.map((index) => this.original([...path, index]));
    const items = kept.map((index) => list[index] ?? null);
    list.splice(0, list.length, ...items);
    this.#members.set(list, new Map(places.map((place, index) => [index, place])));
  }

  /** Where the author wrote the value at a path of the draft. */
  original(path: FieldPath): FieldPath {
    let place: FieldPath = [];
    let current: Json | undefined = this.#root;
    for (const step of path) {
      const owner: object | null = typeof current === 'object' ? current : null;
      const known: FieldPath | undefined = owner === null ? undefined : this.#members.get(owner)?.get(step);
      const isMade: boolean = owner !== null && this.#made.has(owner);
      current = memberOf(current, step);
      const own = typeof current === 'object' && current !== null ? this.#places.get(current) : undefined;
      place = known ?? own ?? (isMade ? place : [...place, step]);
    }
    return place;
  }

  /** The map or list that holds the last step of a path; null if there is another value. */
  #owner(path: FieldPath, place: FieldPath): { readonly parent: Container; readonly key: string | number } | null {
    const key = path.at(-1);
    if (key === undefined) throw new TypeError('a draft has no member without a name');
    let parent: Container = this.#root;
    for (const step of path.slice(0, -1)) {
      let next: Json | undefined = memberOf(parent, step);
      if (next !== undefined && next !== null && typeof next !== 'object') return null;
      if (next === undefined || next === null) {
        next = {};
        this.#places.set(next, place);
        this.#made.add(next);
        put(parent, step, next);
      }
      parent = next as Container;
    }
    return Array.isArray(parent) && typeof key === 'string' ? null : { parent, key };
  }

  #locate(parent: Container, key: string | number, place: FieldPath): void {
    const members = this.#members.get(parent) ?? new Map<string | number, FieldPath>();
    this.#members.set(parent, members.set(key, place));
  }

  /** @param isOne whether all parts have the same place, because the author did not write them one by one */
  #copy(value: Json, place: FieldPath, isOne = false): Json {
    if (typeof value !== 'object' || value === null) return value;
    // a part that is already in the draft keeps its own place
    if (this.#places.has(value)) return value;
    const copy: Container = Array.isArray(value)
      ? value.map((item, index) => this.#copy(item, isOne ? place : [...place, index], isOne))
      : Object.fromEntries(
          Object.entries(value).map(([key, member]) => [
            key,
            this.#copy(member, isOne ? place : [...place, key], isOne),
          ]),
        );
    this.#places.set(copy, place);
    if (isOne) this.#made.add(copy);
    return copy;
  }
}

/** Fields that say what is allowed. */
const PROTECTING: ReadonlySet<string> = new Set([
  'policies',
  'approval',
  'guard',
  'redact',
  'permissions',
  'capabilities',
  'budgets',
  'spending',
  'requires',
]);

export function isProtecting(field: string | number | undefined): boolean {
  return typeof field === 'string' && PROTECTING.has(field);
}

function protectingIn(path: FieldPath, value: Json | undefined): readonly FieldPath[] {
  if (value === undefined) return [];
  if (isProtecting(path.at(-1))) return [path];
  if (Array.isArray(value)) return value.flatMap((item, index) => protectingIn([...path, index], item));
  return isJsonObject(value)
    ? Object.entries(value).flatMap(([name, member]) => protectingIn([...path, name], member))
    : [];
}

function memberOf(owner: Json | undefined, step: string | number): Json | undefined {
  if (Array.isArray(owner)) return typeof step === 'number' ? owner[step] : undefined;
  return isJsonObject(owner) && Object.hasOwn(owner, step) ? owner[step] : undefined;
}

function put(owner: Container, key: string | number, value: Json): void {
  if (Array.isArray(owner)) owner[Number(key)] = value;
  // a key may come from the author and be `__proto__`
  else Object.defineProperty(owner, key, { value, writable: true, enumerable: true, configurable: true });
}
