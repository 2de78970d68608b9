/**
 * The values of a workflow's steps (M6, D4): known ones are inserted as data, and results of other steps are bound to their
 * place, or to a name of a condition. Every other `$` is text.
 */
import { namesInCondition } from '../../catalog/check/condition-names.ts';
import type { BoundName, BoundText, ResultReference } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { celPath, membersOf, WORKFLOW_PATH } from '../../domain/workflow-path.ts';
import { follow, renderText } from '../../protocol/references/substitution.ts';
import { idOf, mappedPath } from './step-names.ts';
import type { Scope } from './step-names.ts';

/** Parameters with their known values, and the texts in them that become results. */
export interface Given {
  readonly parameters: JsonObject;
  readonly texts: readonly BoundText[];
}

/** A condition, what its names mean, and the ids of the actions whose results it reads. */
export interface Condition {
  readonly when: string | null;
  readonly names: Readonly<Record<string, BoundName>>;
  readonly ids: readonly string[];
}

export const NO_CONDITION: Condition = { when: null, names: {}, ids: [] };

/** Roots of references; any other `$(word)` is literal. */
const ROOTS: ReadonlySet<string> = new Set(['steps', 'trigger', 'item', 'index', 'run']);
const REFERENCES = new RegExp(String.raw`\$\(\s*(${WORKFLOW_PATH})\s*\)`, 'g');

export class StepValues {
  readonly #inputs: JsonObject;
  readonly #run: JsonObject;

  /** @param run values of `$(run.…)` */
  constructor(inputs: JsonObject, run: JsonObject = {}) {
    this.#inputs = inputs;
    this.#run = run;
  }

  /** The condition as CEL. In it, names need no `$`: `steps.a.x` is the same as `$(steps.a.x)`. */
  condition(condition: string | null, scope: Scope): Condition {
    if (condition === null) return NO_CONDITION;
    const ids: string[] = [];
    const steps: Record<string, BoundName> = {};
    const names: Record<string, BoundName> = {};
    let when = '';
    let at = 0;
    for (const { start, end, path, isTest } of namesInCondition(condition)) {
      const [root = '', name = '', ...rest] = path;
      const isStep = root === 'steps';
      const id = isStep ? scope.ids.get(name)?.id : root === 'acc' ? scope.acc?.id : undefined;
      if (id !== undefined) ids.push(id);
      if (isStep && id !== undefined) steps[name] = { result: id, path: [] };
      names[root] = isStep ? { members: steps } : rootIn(root, scope);
      const written = celPath(isStep ? [root, name, ...mappedPath(name, rest, scope)] : path);
      const isMember = path.length > 1 && !written.includes('[');
      when += condition.slice(at, start) + (!isTest ? written : isMember ? `has(${written})` : `(${written} != null)`);
      at = end;
    }
    return { when: when + condition.slice(at), names, ids };
  }

  /** Inserts known values. References to results stay as they are written, with their places. */
  bind(value: JsonObject, scope: Scope): Given {
    const texts: BoundText[] = [];
    return { parameters: this.#bind(value, scope, [], texts) as JsonObject, texts };
  }

  #bind(value: Json, scope: Scope, at: BoundText['at'], texts: BoundText[]): Json {
    if (typeof value === 'string') return this.#bindText(value, scope, at, texts);
    if (Array.isArray(value)) return value.map((element, index) => this.#bind(element, scope, [...at, index], texts));
    if (!isJsonObject(value)) return value;
    const members = Object.entries(value).map(([key, member]) => [key, this.#bind(member, scope, [...at, key], texts)]);
    return Object.fromEntries(members) as JsonObject;
  }

  #bindText(text: string, scope: Scope, at: BoundText['at'], texts: BoundText[]): Json {
    const parts: (string | ResultReference)[] = [];
    let from = 0;
    for (const match of text.matchAll(REFERENCES)) {
      const [raw, written = ''] = match;
      const path = membersOf(written);
      if (!ROOTS.has(path[0] ?? '') && (path[0] !== 'acc' || scope.acc === null)) continue;
      const isWhole = raw.length === text.trim().length;
      const result = resultAt(path, raw, scope);
      if (result === null && isWhole) return this.#valueAt(path, scope);
      if (!isWhole) parts.push(text.slice(from, match.index));
      parts.push(result ?? textOf(this.#valueAt(path, scope)));
      from = match.index + raw.length;
    }
    if (parts.length > 1) parts.push(text.slice(from));
    if (parts.some((part) => typeof part !== 'string')) texts.push({ at, parts });
    return parts.length === 0 ? text : parts.map((part) => (typeof part === 'string' ? part : part.raw)).join('');
  }

  #valueAt([root = '', ...path]: readonly string[], { item, acc }: Scope): Json {
    const roots: Readonly<Record<string, Json | undefined>> = {
      trigger: this.#inputs,
      run: this.#run,
      item: item?.value,
      index: item?.index,
      acc: acc?.value,
    };
    return follow(roots[root] ?? null, path).value;
  }
}

/** The result that a path refers to; null if its value is known. */
function resultAt([root = '', ...path]: readonly string[], raw: string, scope: Scope): ResultReference | null {
  const { acc } = scope;
  if (root === 'acc') return acc?.id === undefined ? null : { name: acc.id, path, raw };
  if (root !== 'steps') return null;
  const [name = '', ...rest] = path;
  return { name: idOf(name, scope), path: mappedPath(name, rest, scope), raw };
}

/** A known value within a text. */
function textOf(value: Json): string {
  return value === null ? '' : renderText(value);
}

/** What a root in a condition means. */
function rootIn(root: string, { item, acc }: Scope): BoundName {
  if (root === 'trigger') return { input: true };
  if (root === 'item' && item !== null) return { result: item.gate, path: ['items', `${item.index}`] };
  if (root === 'acc' && acc !== null)
    return acc.id === undefined ? { result: acc.gate, path: ['initial'] } : { result: acc.id, path: [] };
  return { value: root === 'index' ? (item?.index ?? null) : null };
}

/** Values that are known. */
export function known(parameters: JsonObject): Given {
  return { parameters, texts: [] };
}

/** The results of actions, by name; also lists of them. */
export function resultsOf(ids: Readonly<Record<string, string | readonly string[]>>): Given {
  const texts: BoundText[] = [];
  const bind = (id: string, at: BoundText['at']): string => {
    const raw = `$(steps.${id})`;
    texts.push({ at, parts: [{ name: id, path: [], raw }] });
    return raw;
  };
  const parameters = Object.entries(ids).map(([name, id]): [string, Json] => [
    name,
    typeof id === 'string' ? bind(id, [name]) : id.map((one, index) => bind(one, [name, index])),
  ]);
  return { parameters: Object.fromEntries(parameters), texts };
}

/** Ids of the actions whose results are bound. */
export function idsIn(texts: readonly BoundText[]): string[] {
  return texts.flatMap(({ parts }) => parts.flatMap((part) => (typeof part === 'string' ? [] : [part.name])));
}
