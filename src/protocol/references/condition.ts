/**
 * Conditions of actions: CEL over reference names, written without the `$` (S9). The language has no clock, no I/O and
 * no access to the host. Regular expressions, nested comprehensions and functions that multiply text are rejected;
 * everything else is charged for its work (`condition-work.ts`).
 */
import { Environment } from '@marcbachmann/cel-js';
import type { ASTNode } from '@marcbachmann/cel-js';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import { chargeCondition, toCel } from './condition-work.ts';

export type ConditionResult =
  | { readonly ok: true; readonly value: boolean }
  | { readonly ok: false; readonly message: string };

const environment = createEnvironment();

/** Types of the language, which can be compared with `type(x)`. In other conditions they are ordinary names. */
const TYPES = new Set(['int', 'uint', 'double', 'bool', 'string', 'bytes', 'list', 'map', 'type', 'null_type']);
/** Prefix for a name that is also a type. Longer than any name that a model can give. */
const ALIAS = `${'_'.repeat(limits.referenceNameChars)}_`;
/** How the library's message about a name without a value begins. */
const UNKNOWN = 'Unknown variable: ';
const COMPREHENSIONS = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);
const REFUSED = new Set(['matches', 'join', 'bind']);
const HINT: Readonly<Record<string, string>> = {
  matches: '; use contains, startsWith or endsWith',
};

/**
 * The names that a condition uses, each once, in order of appearance. `[]` for an invalid expression; its evaluation
 * reports the error.
 */
export function conditionNames(expression: string): string[] {
  const read = readCondition(expression);
  return read.ok ? read.names : [];
}

/**
 * @param values the values of the names. A name without a value is an error, as is a result that is neither true nor
 *   false.
 */
export function evaluateCondition(
  expression: string,
  values: Readonly<Record<string, Json>>,
  meter: WorkMeter = new WorkMeter(limits.conditionSteps),
): ConditionResult {
  const read = readCondition(expression, meter);
  if (!read.ok) return read;
  // Own properties only: a name such as `constructor` must not find the prototype's property.
  const context: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  try {
    for (const name of read.names) {
      if (Object.hasOwn(values, name))
        context[TYPES.has(name) ? ALIAS + name : name] = toCel(values[name] ?? null, meter);
    }
    const result: unknown = read.run(context);
    if (meter.exceeded) return { ok: false, message: tooExpensive(meter, expression) };
    if (typeof result === 'boolean') return { ok: true, value: result };
    return { ok: false, message: `The condition returns ${kindOf(result)}, not true or false: ${quote(expression)}` };
  } catch (error) {
    return {
      ok: false,
      message: meter.exceeded ? tooExpensive(meter, expression) : evaluationError(error, expression),
    };
  }
}

function tooExpensive({ allowed }: WorkMeter, expression: string): string {
  return `The condition needs too much work on these values (allowed: ${allowed} steps): ${quote(expression)}`;
}

type ReadCondition =
  | { readonly ok: true; readonly names: string[]; readonly run: (context: Record<string, unknown>) => unknown }
  | { readonly ok: false; readonly message: string };

/** @param meter charged by every evaluation; without it the condition is only analysed */
function readCondition(expression: string, meter: WorkMeter | null = null): ReadCondition {
  if (expression.length > limits.conditionChars) {
    return {
      ok: false,
      message: `The condition has ${expression.length} characters; ${limits.conditionChars} are allowed`,
    };
  }
  try {
    const source = withoutDollars(expression);
    let parsed = environment.parse(source);
    const found: Findings = { names: new Set(), types: [], asksType: false };
    const refusal = inspect(parsed.ast, { found, bound: new Set(), nested: false });
    if (refusal !== null) return { ok: false, message: `${refusal}: ${quote(expression)}` };
    if (!found.asksType && found.types.length > 0) {
      for (const { name } of found.types) found.names.add(name);
      parsed = environment.parse(withAliases(source, found.types));
    }
    if (meter !== null) chargeCondition(parsed.ast, meter);
    return { ok: true, names: [...found.names], run: (context) => parsed(context) as unknown };
  } catch (error) {
    return { ok: false, message: evaluationError(error, expression) };
  }
}

interface Findings {
  readonly names: Set<string>;
  /** Names that are also types, with their positions. */
  readonly types: { readonly name: string; readonly start: number }[];
  asksType: boolean;
}

interface Scope {
  readonly found: Findings;
  /** Variables of the enclosing comprehension. */
  readonly bound: ReadonlySet<string>;
  readonly nested: boolean;
}

/** Collects names. Returns an issue for a forbidden construct. The environment's limits bound the depth. */
function inspect(node: ASTNode, scope: Scope): string | null {
  switch (node.op) {
    case 'value':
      return null;
    case 'id':
      if (scope.bound.has(node.args)) return null;
      if (TYPES.has(node.args)) scope.found.types.push({ name: node.args, start: node.start });
      else scope.found.names.add(node.args);
      return null;
    case 'call':
      if (node.args[0] === 'type') scope.found.asksType = true;
      return refuse(node.args[0]) ?? inspectAll(node.args[1], scope);
    case 'rcall': {
      const [name, receiver, parameters] = node.args;
      const refusal = refuse(name) ?? inspect(receiver, scope);
      if (refusal !== null || !COMPREHENSIONS.has(name)) return refusal ?? inspectAll(parameters, scope);
      if (scope.nested) return `${name}() inside another comprehension is not allowed`;
      const [variable, ...rest] = parameters;
      const bound = new Set(scope.bound);
      if (variable?.op === 'id') bound.add(variable.args);
      return inspectAll(rest, { found: scope.found, bound, nested: true });
    }
    default: {
      const children: unknown[] = Array.isArray(node.args) ? node.args.flat() : [node.args];
      return inspectAll(children.filter(isNode), scope);
    }
  }
}

function inspectAll(nodes: readonly ASTNode[], scope: Scope): string | null {
  for (const node of nodes) {
    const refusal = inspect(node, scope);
    if (refusal !== null) return refusal;
  }
  return null;
}

function refuse(name: string): string | null {
  return REFUSED.has(name) ? `${name}() is not allowed in a condition${HINT[name] ?? ''}` : null;
}

function withAliases(source: string, places: Findings['types']): string {
  let aliased = source;
  for (const { start } of places.toSorted((a, b) => b.start - a.start)) {
    aliased = aliased.slice(0, start) + ALIAS + aliased.slice(start);
  }
  return aliased;
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value;
}

/** Removes the `$` from `$name` and `${name}` outside of quotes. An unclosed quote extends to the end. */
function withoutDollars(expression: string): string {
  if (!expression.includes('$')) return expression;
  return expression.replace(
    /("(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))|\$(?:\{([\w.[\]]+)\}|(?=[A-Za-z_]))/g,
    (_all, quoted: string | undefined, braced: string | undefined) => quoted ?? braced ?? '',
  );
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'number':
    case 'bigint':
      return 'a number';
    case 'string':
      return 'a string';
    default:
      return 'an object';
  }
}

function evaluationError(error: unknown, expression: string): string {
  const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  const reason = message.startsWith(UNKNOWN)
    ? `"${message.slice(UNKNOWN.length).replace(ALIAS, '')}" has no value here`
    : message;
  return `The condition cannot be evaluated (${reason}): ${quote(expression)}`;
}

function quote(expression: string): string {
  return expression.length > limits.excerptChars ? `${expression.slice(0, limits.excerptChars)}…` : expression;
}

/** Integers and fractions can be mixed, as models expect. */
function createEnvironment(): Environment {
  const created = new Environment({
    unlistedVariablesAreDyn: true,
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: limits.conditionNodes, maxDepth: 32 },
  });
  const operators: Readonly<Record<string, (left: number, right: number) => number>> = {
    '+': (left, right) => left + right,
    '-': (left, right) => left - right,
    '*': (left, right) => left * right,
    '/': (left, right) => left / right,
  };
  for (const [operator, apply] of Object.entries(operators)) {
    for (const [left, right] of [
      ['int', 'double'],
      ['double', 'int'],
    ]) {
      created.registerOperator(`${left} ${operator} ${right}`, (a: number | bigint, b: number | bigint) =>
        apply(Number(a), Number(b)),
      );
    }
  }
  return created;
}
