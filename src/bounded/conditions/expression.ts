/**
 * Reads and evaluates expressions of CEL. The language has no clock, no I/O and no access to the host. Nested
 * comprehensions and functions that multiply text are rejected; everything else is charged for its work
 * (`condition-work.ts`).
 */
import { Environment } from '@marcbachmann/cel-js';
import type { ASTNode } from '@marcbachmann/cel-js';
import { limits } from '../../domain/limits.ts';
import type { WorkMeter } from '../../domain/work.ts';
import { chargeCondition } from './condition-work.ts';
import type { ConditionMeter, Use } from './condition-work.ts';

export type ConditionResult =
  | { readonly ok: true; readonly value: boolean }
  | { readonly ok: false; readonly message: string };

/** What differs between the conditions of actions and those of policies. */
export interface Dialect {
  readonly environment: Environment;
  /** Functions that are rejected, with what the message adds. */
  readonly refused: ReadonlyMap<string, string>;
  /** Rewrites the text before it is parsed. */
  readonly prepare: (expression: string) => string;
  /** Whether messages leave out the expression, and values in errors of the library that are not in it. */
  readonly isDiscreet: boolean;
  /** Whether null has no size and gives no results (null-values.ts). */
  readonly isStrict: boolean;
  /** A further issue with a node of the syntax tree; null if there is none. */
  readonly inspect: (node: ASTNode, isBound: (name: string) => boolean) => string | null;
}

export const COMMON: Omit<Dialect, 'environment'> = {
  refused: new Map([
    ['join', ''],
    ['bind', ''],
  ]),
  prepare: (expression) => expression,
  isDiscreet: false,
  isStrict: false,
  inspect: () => null,
};

/** Types of the language, which can be compared with `type(x)`. In other conditions they are ordinary names. */
export const TYPES: ReadonlySet<string> = new Set([
  'int',
  'uint',
  'double',
  'bool',
  'string',
  'bytes',
  'list',
  'map',
  'type',
  'null_type',
]);
/** Prefix for a name that is also a type. Longer than any name that a model can give. */
const ALIAS = `${'_'.repeat(limits.referenceNameChars)}_`;
/** How the library's message about a name without a value begins. */
const UNKNOWN = 'Unknown variable: ';
const COMPREHENSIONS = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);

/**
 * @param read the expression, which charges `meter` when it is evaluated
 * @param valueOf the converted value of a name, at least the part that is used; undefined if it has none
 * @returns an issue for an error, and for a result that is neither true nor false
 */
export function evaluate(
  expression: string,
  read: ReadExpression,
  valueOf: (name: string, use: Use) => unknown,
  meter: WorkMeter,
  dialect: Pick<Dialect, 'isDiscreet'> = COMMON,
): ConditionResult {
  if (!read.ok) return read;
  const context: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  try {
    for (const [name, use] of read.uses) {
      const value = valueOf(name, use);
      if (value !== undefined) context[TYPES.has(name) ? ALIAS + name : name] = value;
    }
    const result: unknown = read.run(context);
    if (meter.exceeded) return { ok: false, message: tooExpensive(meter, expression, dialect) };
    if (typeof result === 'boolean' || result === null) return { ok: true, value: result ?? false };
    const message = `The condition returns ${kindOf(result)}, not true or false${quoted(expression, dialect)}`;
    return { ok: false, message };
  } catch (error) {
    const message = meter.exceeded
      ? tooExpensive(meter, expression, dialect)
      : evaluationError(error, expression, dialect);
    return { ok: false, message };
  }
}

function tooExpensive({ allowed }: WorkMeter, expression: string, dialect: Pick<Dialect, 'isDiscreet'>): string {
  return `The condition needs too much work on these values (allowed: ${allowed} steps)${quoted(expression, dialect)}`;
}

export type ReadExpression =
  | {
      readonly ok: true;
      readonly uses: ReadonlyMap<string, Use>;
      readonly run: (context: Record<string, unknown>) => unknown;
      /** Why its types do not fit, or null. */
      readonly typeIssue: () => string | null;
    }
  | { readonly ok: false; readonly message: string };

/** @param meter charged by every evaluation; without it the expression is only analysed */
export function readExpression(
  expression: string,
  dialect: Dialect,
  meter: ConditionMeter | null = null,
): ReadExpression {
  const { environment } = dialect;
  if (expression.length > limits.conditionChars) {
    return {
      ok: false,
      message: `The condition has ${expression.length} characters; ${limits.conditionChars} are allowed`,
    };
  }
  try {
    const source = dialect.prepare(expression);
    let parsed = environment.parse(source);
    const found: Findings = { uses: new Map(), types: [], asksType: false };
    const refusal = inspect(parsed.ast, { dialect, found, bound: new Set(), nested: false, path: [] });
    if (refusal !== null) return { ok: false, message: `${refusal}${quoted(expression, dialect)}` };
    if (!found.asksType && found.types.length > 0) {
      for (const { name, path } of found.types) addUse(found.uses, name, path);
      parsed = environment.parse(withAliases(source, found.types));
      // The names and functions of this tree are checked, and looked up, like those of the first one.
      const names: Findings = { uses: new Map(), types: [], asksType: false };
      const issue = inspect(parsed.ast, { dialect, found: names, bound: new Set(), nested: false, path: [] });
      if (issue !== null) return { ok: false, message: `${issue.replaceAll(ALIAS, '')}${quoted(expression, dialect)}` };
    }
    if (meter !== null) chargeCondition(parsed.ast, meter, dialect.isStrict);
    return {
      ok: true,
      uses: found.uses,
      run: (context) => parsed(context) as unknown,
      typeIssue: () => {
        const { valid, error, type } = parsed.check();
        if (!valid) return evaluationError(error, expression, dialect);
        if (type === undefined || type === 'bool' || type === 'dyn') return null;
        return `The condition is of the type ${type}, not true or false${quoted(expression, dialect)}`;
      },
    };
  } catch (error) {
    return { ok: false, message: evaluationError(error, expression, dialect) };
  }
}

interface Findings {
  readonly uses: Map<string, Use>;
  /** Names that are also types, with their positions. */
  readonly types: { readonly name: string; readonly path: readonly string[]; readonly start: number }[];
  asksType: boolean;
}

interface Scope {
  readonly dialect: Dialect;
  readonly found: Findings;
  /** Variables of the enclosing comprehension. */
  readonly bound: ReadonlySet<string>;
  readonly nested: boolean;
  /** The member of this node that is read. */
  readonly path: readonly string[];
}

function addUse(uses: Map<string, Use>, name: string, path: readonly string[]): void {
  let members = uses;
  for (const [index, member] of [name, ...path].entries()) {
    const use = members.get(member) ?? { isWhole: false, members: new Map<string, Use>() };
    members.set(member, use);
    if (index === path.length) use.isWhole = true;
    ({ members } = use);
  }
}

/** Collects names. Returns an issue for a forbidden construct. The environment's limits bound the depth. */
function inspect(node: ASTNode, scope: Scope): string | null {
  return scope.dialect.inspect(node, (name) => scope.bound.has(name)) ?? inspectParts(node, scope);
}

function inspectParts(node: ASTNode, { path, ...around }: Scope): string | null {
  const scope = { ...around, path: [] };
  const { dialect, found, bound } = scope;
  switch (node.op) {
    case 'value':
      return null;
    case 'id':
      if (bound.has(node.args)) return null;
      if (TYPES.has(node.args)) found.types.push({ name: node.args, path, start: node.start });
      else addUse(found.uses, node.args, path);
      return null;
    case '.':
      return inspect(node.args[0], { ...scope, path: [node.args[1], ...path] });
    case 'call':
      if (node.args[0] === 'type') found.asksType = true;
      return refuse(node.args[0], dialect) ?? inspectAll(node.args[1], scope);
    case 'rcall': {
      const [name, receiver, parameters] = node.args;
      const refusal = refuse(name, dialect) ?? inspect(receiver, scope);
      if (refusal !== null || !COMPREHENSIONS.has(name)) return refusal ?? inspectAll(parameters, scope);
      if (scope.nested) return `${name}() inside another comprehension is not allowed`;
      const [variable, ...rest] = parameters;
      const within = new Set(bound);
      if (variable?.op === 'id') within.add(variable.args);
      return inspectAll(rest, { dialect, found, bound: within, nested: true, path: [] });
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

function refuse(name: string, { refused }: Dialect): string | null {
  const hint = refused.get(name);
  return hint === undefined ? null : `${name}() is not allowed in a condition${hint}`;
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

function kindOf(value: unknown): string {
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

function evaluationError(error: unknown, expression: string, dialect: Pick<Dialect, 'isDiscreet'>): string {
  const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  const reason = message.startsWith(UNKNOWN)
    ? `"${message.slice(UNKNOWN.length).replace(ALIAS, '')}" has no value here`
    : dialect.isDiscreet
      ? withoutValues(message, expression)
      : message;
  return `The condition cannot be evaluated (${reason})${quoted(expression, dialect)}`;
}

/** In the library's messages, values follow a colon. */
function withoutValues(message: string, expression: string): string {
  const colon = message.indexOf(': ');
  return colon === -1 || expression.includes(message.slice(colon + 2)) ? message : message.slice(0, colon);
}

function quoted(expression: string, { isDiscreet }: Pick<Dialect, 'isDiscreet'>): string {
  if (isDiscreet) return '';
  const { excerptChars } = limits;
  return `: ${expression.length > excerptChars ? `${expression.slice(0, excerptChars)}…` : expression}`;
}

/** Integers and fractions can be mixed, as models expect. */
export function baseEnvironment(): Environment {
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
    '%': (left, right) => left % right,
  };
  created.registerOperator('int == double', (left: bigint, right: number) => Number(left) === right);
  created.registerOperator('double % double: double', (left: number, right: number) => left % right);
  for (const [operator, apply] of Object.entries(operators)) {
    for (const [left, right] of [
      ['int', 'double'],
      ['double', 'int'],
    ]) {
      created.registerOperator(`${left} ${operator} ${right}: double`, (a: number | bigint, b: number | bigint) =>
        apply(Number(a), Number(b)),
      );
    }
  }
  return created;
}
