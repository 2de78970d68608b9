/** `when`: a CEL expression over the names of the run, with no way to the host (S9). */
import { Environment } from '@marcbachmann/cel-js';
import type { ASTNode } from '@marcbachmann/cel-js';
import { messageOf } from '../domain/errors.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 1_000, maxDepth: 50, maxListElements: 200, maxMapEntries: 200, maxCallArguments: 16 },
});

/** `$name` is tolerated where CEL says `name`; a `$` inside a string literal stays. */
function withoutDollars(expression: string): string {
  return expression.replaceAll(
    /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?/g,
    (whole, text, name) => (text === undefined ? String(name) : whole),
  );
}

/** Names that the expression reads, each once; none when it cannot be parsed. Loop variables of macros do not count. */
export function conditionNames(expression: string): string[] {
  if (expression.length > limits.conditionChars) return [];
  try {
    const names = new Set<string>();
    collect(environment.parse(withoutDollars(expression)).ast, new Set(), names);
    return [...names];
  } catch {
    return [];
  }
}

const MACROS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

function collect(node: ASTNode, local: ReadonlySet<string>, names: Set<string>): void {
  if (node.op === 'id') {
    if (!local.has(node.args)) names.add(node.args);
    return;
  }
  if (node.op === 'rcall') {
    const [method, receiver, args] = node.args;
    collect(receiver, local, names);
    const [variable] = args;
    const inner = MACROS.has(method) && variable?.op === 'id' ? new Set([...local, variable.args]) : local;
    for (const argument of args) collect(argument, inner, names);
    return;
  }
  const visit = (part: unknown): void => {
    if (Array.isArray(part)) for (const item of part) visit(item);
    else if (typeof part === 'object' && part !== null && 'op' in part) collect(part as ASTNode, local, names);
  };
  visit(node.args);
}

/**
 * Evaluates a condition.
 *
 * @param values by name; whole numbers are CEL integers, so that `n + 1` means what it says
 */
export function evaluateCondition(
  expression: string,
  values: Readonly<Record<string, Json>>,
): { readonly ok: true; readonly value: boolean } | { readonly ok: false; readonly message: string } {
  if (expression.length > limits.conditionChars) {
    return { ok: false, message: `The condition is longer than ${limits.conditionChars} characters` };
  }
  try {
    const known = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toCel(value)]));
    const result: unknown = environment.evaluate(withoutDollars(expression), known);
    if (typeof result === 'boolean') return { ok: true, value: result };
    return { ok: false, message: `The condition "${quoted(expression)}" gives ${typeof result}, not true or false` };
  } catch (fault) {
    const [reason] = messageOf(fault).split('\n');
    return {
      ok: false,
      message: `The condition "${quoted(expression)}" cannot be evaluated: ${reason ?? 'unknown fault'}`,
    };
  }
}

function toCel(value: Json): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (typeof value === 'object' && value !== null) {
    return new Map(Object.entries(value).map(([key, item]) => [key, toCel(item)]));
  }
  return value;
}

function quoted(expression: string): string {
  return expression.slice(0, limits.excerptChars);
}
