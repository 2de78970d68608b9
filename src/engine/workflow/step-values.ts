/**
 * Converts values of a workflow to values of protocol text (M6): `$(steps.…)` becomes a reference, known values are
 * inserted, and every other `$` becomes a literal one.
 */
import { namesInCondition } from '../../catalog/check/condition-names.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { WorkflowStep } from '../../domain/manifests/workflow.ts';
import { celPath, membersOf, WORKFLOW_PATH } from '../../domain/workflow-path.ts';
import { idOf, mappedPath } from './step-names.ts';
import type { Scope } from './step-names.ts';

/** Roots of references; any other `$(word)` is literal. */
const ROOTS: ReadonlySet<string> = new Set(['steps', 'trigger', 'item', 'index', 'run']);
const REFERENCES = new RegExp(String.raw`\$\(\s*(${WORKFLOW_PATH})\s*\)`, 'g');
const REFERENCE_ONLY = new RegExp(String.raw`^\s*\$\(\s*(${WORKFLOW_PATH})\s*\)\s*$`);

function isRoot(path: string, { acc }: Scope): boolean {
  const [root = ''] = membersOf(path);
  return ROOTS.has(root) || (root === 'acc' && acc !== null);
}

export class StepValues {
  readonly #inputs: JsonObject;
  readonly #run: JsonObject;

  /** @param run values of `$(run.…)` */
  constructor(inputs: JsonObject, run: JsonObject = {}) {
    this.#inputs = inputs;
    this.#run = run;
  }

  condition({ condition }: Pick<WorkflowStep, 'condition'>, scope: Scope): { readonly when?: string } {
    if (condition === null) return {};
    // In a condition, names need no `$`: `steps.a.x` is the same as `$(steps.a.x)`.
    let when = '';
    let at = 0;
    for (const { start, end, path, isTest } of namesInCondition(condition)) {
      const [root, name = '', ...rest] = path;
      const written = condition.slice(start, end);
      when += condition.slice(at, start);
      at = end;
      const id = scope.acc !== null && 'id' in scope.acc ? scope.acc.id : null;
      if (root === 'steps' || (root === 'acc' && id !== null)) {
        const members = root === 'acc' ? path.slice(1) : mappedPath(name, rest, scope);
        const known = root === 'acc' ? id : scope.ids.has(name) ? idOf(name, scope) : null;
        const here = known === null ? written : celPath([known, ...members]);
        when += !isTest ? here : members.length === 0 ? `(${here} != null)` : `has(${here})`;
      } else {
        const value = this.#valueAt(path, scope);
        when += isTest ? String(value !== undefined) : JSON.stringify(value ?? null);
      }
    }
    when += condition.slice(at);
    return { when };
  }

  /** Converts `$(steps.s.field)` to a reference, a known value to itself, and every other `$` to a literal one. */
  translate(value: Json, scope: Scope): Json {
    if (typeof value === 'string') return this.#translateText(value, scope);
    if (Array.isArray(value)) return value.map((element) => this.translate(element, scope));
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.translate(member, scope)]));
  }

  #translateText(text: string, scope: Scope): Json {
    const whole = REFERENCE_ONLY.exec(text)?.[1];
    if (whole !== undefined && isRoot(whole, scope))
      return this.#reference(whole, scope) ?? escaped(this.#valueAt(membersOf(whole), scope) ?? null);
    let out = '';
    let at = 0;
    for (const match of text.matchAll(REFERENCES)) {
      const [written, path = ''] = match;
      if (!isRoot(path, scope)) continue;
      const value = this.#valueAt(membersOf(path), scope) ?? null;
      const plain = typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
      out += escapeText(text.slice(at, match.index)) + (this.#reference(path, scope) ?? escapeText(plain));
      at = match.index + written.length;
    }
    return out + escapeText(text.slice(at));
  }

  /** A protocol reference to a step's result, or null if the value is already known. */
  #reference(path: string, scope: Scope): string | null {
    const [root, name = '', ...rest] = membersOf(path);
    if (root === 'acc' && scope.acc !== null && 'id' in scope.acc) {
      return `\${${[scope.acc.id, ...membersOf(path).slice(1)].join('.')}}`;
    }
    if (root !== 'steps') return null;
    const members = mappedPath(name, rest, scope);
    return `\${${[idOf(name, scope), ...members].join('.')}}`;
  }

  #valueAt([root = '', ...path]: readonly string[], scope: Scope): Json | undefined {
    const start: Json | undefined =
      root === 'trigger'
        ? this.#inputs
        : root === 'run'
          ? this.#run
          : root === 'item'
            ? scope.item?.value
            : root === 'index'
              ? scope.item?.index
              : root === 'acc' && scope.acc !== null && 'value' in scope.acc
                ? scope.acc.value
                : undefined;
    return path.reduce<Json | undefined>((value, member) => {
      if (Array.isArray(value)) return value[Number(member)];
      return isJsonObject(value) && Object.hasOwn(value, member) ? value[member] : undefined;
    }, start);
  }
}

/** Replaces the references of the protocol in a message with those of a workflow: `${a.x}` becomes `$(steps.a.x)`. */
export function asWritten(message: string): string {
  return message.replaceAll(/\$\{([\w.-]+)\}/g, '$(steps.$1)');
}

/** Ids of the steps that a value refers to; they become dependencies. */
export function stepsIn(value: Json, scope: Scope): string[] {
  if (typeof value === 'string') {
    return [...value.matchAll(REFERENCES)].flatMap(([, path = '']) => {
      const [root, name = ''] = membersOf(path);
      if (root === 'acc' && scope.acc !== null && 'id' in scope.acc) return [scope.acc.id];
      return root === 'steps' ? [idOf(name, scope)] : [];
    });
  }
  if (Array.isArray(value)) return value.flatMap((element) => stepsIn(element, scope));
  return isJsonObject(value) ? Object.values(value).flatMap((member) => stepsIn(member, scope)) : [];
}

/** A value as a literal parameter. */
export function escaped(value: Json): Json {
  if (typeof value === 'string') return escapeText(value);
  if (Array.isArray(value)) return value.map(escaped);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, escaped(member)]));
}

export function escapeText(text: string): string {
  return text.replaceAll('$', '$$$$');
}
