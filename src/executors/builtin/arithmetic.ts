/**
 * Arithmetic without `eval`: walks an expression's syntax tree. Integers are exact at any size; everything else is a
 * double shown with 15 significant digits.
 */
import jsep from 'jsep';
import type { Expression } from 'jsep';
import { limits } from '../../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../domain/work.ts';
import {
  ArithmeticError,
  bothExact,
  CONSTANTS,
  divide,
  FUNCTIONS,
  multiply,
  pow,
  remainder,
  stepsOf,
  whole,
} from './arithmetic-values.ts';
import type { Value } from './arithmetic-values.ts';

/** Deeper parentheses are rejected before the parser recurses into them. */
const MAX_NESTING = 200;

// The parser uses JavaScript's grammar; the only difference is the meaning of `^`.
jsep.addBinaryOp('^', 14, true);
jsep.addBinaryOp('**', 14, true);
for (const literal of ['true', 'false', 'null']) jsep.removeLiteral(literal);
// `-2^2` is -(2^2), `(-2)^2` is not: only the parser knows the parentheses.
jsep.hooks.add('gobble-token', function keepGroups(env) {
  if (this.expr.charAt(this.index) !== '(') return;
  this.index += 1;
  const open = this.index;
  const inner = this.gobbleExpressions(41);
  if (this.expr.charAt(this.index) !== ')') this.throwError(`the "(" at character ${open} is not closed`);
  this.index += 1;
  const [only] = inner;
  if (only === undefined || inner.length > 1) {
    this.throwError(inner.length === 0 ? 'empty parentheses' : 'more than one expression in parentheses');
  }
  env.node = { type: 'Group', inner: only } as Expression;
});

/**
 * Evaluates an expression.
 *
 * @returns a JSON number, or the digits as a string if a JSON number would lose some
 * @throws ArithmeticError for invalid syntax, unknown names, values that are not real, and values that are too large
 */
export function evaluate(
  expression: string,
  meter: WorkMeter = new WorkMeter(limits.calculatorSteps),
): number | string {
  if (expression.length > limits.calculatorChars) {
    throw new ArithmeticError(
      `the expression has ${expression.length} characters (allowed: ${limits.calculatorChars})`,
    );
  }
  const text = expression.replaceAll('×', '*').replaceAll('÷', '/').replaceAll('−', '-').replaceAll('π', 'pi');
  checkNesting(text);
  let value: Value;
  try {
    value = valueOf(parse(text), meter);
  } catch (fault) {
    if (fault instanceof WorkExceeded) {
      throw new ArithmeticError(`the numbers are too large for so many operations (allowed: ${meter.allowed} steps)`);
    }
    if (fault instanceof RangeError) throw new ArithmeticError('the expression is too deep or its value too large');
    throw fault;
  }
  if (typeof value === 'bigint') {
    const small = value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER);
    return small ? Number(value) : value.toString();
  }
  if (Number.isNaN(value)) throw new ArithmeticError('the expression has no real value');
  if (!Number.isFinite(value)) throw new ArithmeticError('the value is too large (allowed: up to about 1.8e308)');
  return Number(value.toPrecision(15));
}

function parse(text: string): Expression {
  if (text.trim() === '') throw new ArithmeticError('the expression is empty');
  try {
    return jsep(text);
  } catch (fault) {
    if (fault instanceof RangeError) throw fault;
    const index = fault instanceof Error && 'index' in fault ? Number(fault.index) : 0;
    const message = fault instanceof Error ? fault.message.replace(/ at character \d+$/, '') : String(fault);
    throw new ArithmeticError(`invalid expression at character ${index + 1}: ${message}`);
  }
}

function checkNesting(text: string): void {
  let depth = 0;
  for (const char of text) {
    if (char === '(') depth += 1;
    else if (char === ')') depth -= 1;
    if (depth > MAX_NESTING)
      throw new ArithmeticError(`parentheses are nested too deeply (allowed: ${MAX_NESTING} levels)`);
  }
}

function valueOf(node: Expression, meter: WorkMeter): Value {
  meter.charge();
  switch (node.type) {
    case 'Literal':
      return literal(node['raw'], meter);
    case 'Group':
      return valueOf(node['inner'] as Expression, meter);
    case 'Identifier':
      return constant(String(node['name']));
    case 'UnaryExpression':
      return unary(String(node['operator']), valueOf(node['argument'] as Expression, meter));
    case 'BinaryExpression':
      return binary(node, meter);
    case 'CallExpression':
      return call(node['callee'] as Expression, node['arguments'] as Expression[], meter);
    case 'Compound':
      throw new ArithmeticError('more than one expression; is an operator such as * missing between two values?');
    default:
      throw new ArithmeticError(`${WHAT[node.type] ?? node.type} is not arithmetic`);
  }
}

const WHAT: Readonly<Record<string, string>> = {
  ConditionalExpression: 'a condition (? :)',
  MemberExpression: 'a property (a.b or a[b])',
  ArrayExpression: 'a list ([…])',
  SequenceExpression: 'a comma outside a function call',
  ThisExpression: '"this"',
};

function literal(raw: unknown, meter: WorkMeter): Value {
  if (typeof raw !== 'string' || !/^[\d.]/.test(raw)) {
    throw new ArithmeticError(`${String(raw)} is not a number`);
  }
  meter.chargeChars(raw.length);
  if (/^\d+$/.test(raw)) return whole(raw);
  return Number(raw);
}

function constant(name: string): number {
  const value = Object.hasOwn(CONSTANTS, name.toLowerCase()) ? CONSTANTS[name.toLowerCase()] : undefined;
  if (value !== undefined) return value;
  if (Object.hasOwn(FUNCTIONS, name))
    throw new ArithmeticError(`the function ${name} needs arguments, as in ${name}(2)`);
  throw new ArithmeticError(
    `unknown name "${name}" (constants: ${Object.keys(CONSTANTS).join(', ')}; functions: ${Object.keys(FUNCTIONS).join(', ')})`,
  );
}

function unary(operator: string, value: Value): Value {
  if (operator === '-') return -value;
  if (operator === '+') return value;
  throw new ArithmeticError(`unknown operator "${operator}" (allowed: + - * / % ^)`);
}

function binary(node: Expression, meter: WorkMeter): Value {
  const operator = String(node['operator']);
  let left = node['left'] as Expression;
  const right = node['right'] as Expression;
  if (operator === '^' || operator === '**') {
    let negative = false;
    while (left.type === 'UnaryExpression' && (left['operator'] === '-' || left['operator'] === '+')) {
      negative = negative !== (left['operator'] === '-');
      left = left['argument'] as Expression;
    }
    const [base, exponent] = [valueOf(left, meter), valueOf(right, meter)];
    meter.charge(stepsOf('pow', [base, exponent]));
    const power = pow(base, exponent);
    return negative ? -power : power;
  }
  const a = valueOf(left, meter);
  const b = valueOf(right, meter);
  meter.charge(stepsOf(operator, [a, b]));
  switch (operator) {
    case '+':
      return bothExact(a, b, (x, y) => x + y) ?? Number(a) + Number(b);
    case '-':
      return bothExact(a, b, (x, y) => x - y) ?? Number(a) - Number(b);
    case '*':
      return bothExact(a, b, multiply) ?? Number(a) * Number(b);
    case '/':
      return divide(a, b);
    case '%':
      return remainder(a, b);
    default:
      throw new ArithmeticError(`unknown operator "${operator}" (allowed: + - * / % ^)`);
  }
}

function call(callee: Expression, argumentsOf: readonly Expression[], meter: WorkMeter): Value {
  const name = callee.type === 'Identifier' ? String(callee['name']) : '';
  const rule = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  if (rule === undefined) {
    const what = name === '' ? 'only a function can be called' : `unknown function "${name}"`;
    throw new ArithmeticError(`${what} (functions: ${Object.keys(FUNCTIONS).join(', ')})`);
  }
  const [[min, max], compute] = rule;
  const count = argumentsOf.length;
  if (count < min || count > max) {
    const allowed = min === max ? String(min) : `${min} to ${max}`;
    throw new ArithmeticError(`${name} takes ${allowed} ${max === 1 ? 'value' : 'values'}, got ${count}`);
  }
  const values = argumentsOf.map((argument) => valueOf(argument, meter));
  meter.charge(stepsOf(name, values));
  const value = compute(...values);
  if (typeof value === 'number' && Number.isNaN(value)) {
    throw new ArithmeticError(`${name}(${values.map(String).join(', ')}) has no real value`);
  }
  return value;
}
