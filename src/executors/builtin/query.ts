/**
 * JMESPath with a work limit. The library parses the query and provides the functions. Its syntax tree is walked here,
 * so that every node and function is charged for its work before it runs (`query-functions.ts`).
 *
 * The language has no explicit loops, but `map`, `sort_by` and projections can be nested: a query of 100 characters on
 * 600 numbers can require 600^5 steps, and one of 20 characters a result of gigabytes, because shared parts of the
 * result are repeated when it is serialised.
 */
import { compile, tokenize, TreeInterpreter } from '@jmespath-community/jmespath';
import { jsonChars } from '../../bounded/json-size.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import { createFunctions, MEMBER_STEPS } from './query-functions.ts';
import type { Functions, Interpreter, Node, Sizes, Value } from './query-functions.ts';

/** An invalid query, or a request that is too expensive. */
class QueryError extends Error {
  override readonly name = 'QueryError';
}

/**
 * @returns the result; parts of it may be shared with each other and with `data`
 * @throws QueryError, WorkExceeded, or the library's own error for invalid syntax or a wrong type
 */
export function runQuery(data: Json, query: string, meter: WorkMeter = new WorkMeter(limits.querySteps)): Json {
  const tree = parse(query);
  const result = new QueryEvaluation(data, meter).evaluate(tree, data);
  if (jsonChars(result, limits.queryResultChars, limits.queryDepth, meter) === Infinity) {
    throw new QueryError(`its result is too large (allowed: ${limits.queryResultChars} characters of JSON)`);
  }
  return (result ?? null) as Json;
}

function parse(query: string): Node {
  if (query.length > limits.queryChars) {
    throw new QueryError(`it has ${query.length} characters (allowed: ${limits.queryChars})`);
  }
  // The parser is recursive; the number of tokens bounds its depth.
  const tokens = tokenize(query).length;
  if (tokens > limits.queryTokens) {
    throw new QueryError(`it has ${tokens} names, operators and brackets (allowed: ${limits.queryTokens})`);
  }
  return compile(query);
}

interface Scope {
  readonly outer: Scope | null;
  readonly variables: ReadonlyMap<string, Value>;
}

class QueryEvaluation implements Interpreter, Sizes {
  readonly #root: Value;
  readonly #meter: WorkMeter;
  readonly #functions: Functions;
  /** Expressions in the query itself: `&name`. Data of the same shape is not an expression. */
  readonly #references = new WeakSet<object>();
  readonly #keyCounts = new WeakMap<object, number>();
  #scope: Scope | null = null;
  #depth = 0;

  constructor(root: Value, meter: WorkMeter) {
    this.#root = root;
    this.#meter = meter;
    this.#functions = createFunctions(this, this, meter);
  }

  /** Evaluates an expression that was passed to a function as an argument. */
  visit(reference: Node, value: Value): Value {
    if (!this.#references.has(reference)) throw new QueryError('an expression was expected, such as &name');
    return this.evaluate(reference, value);
  }

  keyCount(value: object): number {
    let count = this.#keyCounts.get(value);
    if (count === undefined) {
      count = Object.keys(value).length;
      this.#keyCounts.set(value, count);
      this.#meter.charge(MEMBER_STEPS * count);
    }
    return count;
  }

  evaluate(node: Node, value: Value): Value {
    this.#meter.charge();
    this.#enter();
    const result = this.#evaluate(node, value);
    this.#depth -= 1;
    return result;
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > limits.queryDepth) {
      throw new QueryError(`it is nested too deeply (allowed: ${limits.queryDepth} levels of expressions or brackets)`);
    }
  }

  #evaluate(node: Node, value: Value): Value {
    switch (node.type) {
      case 'Field':
        return isMap(value) && Object.hasOwn(value, node.name) ? (value[node.name] ?? null) : null;
      case 'Literal':
        return node.value as Value;
      case 'Root':
        return this.#root;
      case 'Current':
      case 'Identity':
        return value;
      case 'Index':
        return Array.isArray(value) ? (value.at(node.value) ?? null) : null;
      case 'Subexpression': {
        const left = this.evaluate(node.left, value);
        return left === null ? null : this.evaluate(node.right, left);
      }
      case 'IndexExpression':
      case 'Pipe':
        return this.evaluate(node.right, this.evaluate(node.left, value));
      case 'Slice':
        return this.#slice(node, value);
      case 'Projection': {
        const base = this.evaluate(node.left, value);
        const sliced = node.left.type === 'IndexExpression' && node.left.right.type === 'Slice';
        if (sliced && typeof base === 'string') return this.evaluate(node.right, base);
        return Array.isArray(base) ? this.#project(base, node.right) : null;
      }
      case 'ValueProjection': {
        const base = this.evaluate(node.left, value);
        if (!isMap(base)) return null;
        this.#meter.charge(MEMBER_STEPS * this.keyCount(base));
        return this.#project(Object.values(base), node.right);
      }
      case 'FilterProjection': {
        const base = this.evaluate(node.left, value);
        if (!Array.isArray(base)) return null;
        const found: Value[] = [];
        for (const item of base) {
          if (this.#isFalse(this.evaluate(node.condition, item))) continue;
          const result = this.evaluate(node.right, item);
          if (result !== null) found.push(result);
        }
        return found;
      }
      case 'Flatten': {
        const list = this.evaluate(node.child, value);
        if (!Array.isArray(list)) return null;
        this.#meter.charge(list.length);
        for (const item of list) if (Array.isArray(item)) this.#meter.charge(item.length);
        return list.flat();
      }
      case 'Comparator':
        return this.#compare(node.name, this.evaluate(node.left, value), this.evaluate(node.right, value));
      case 'Arithmetic':
        return arithmetic(node.operator, this.evaluate(node.left, value), this.evaluate(node.right, value));
      case 'Unary': {
        const operand = toNumber(this.evaluate(node.operand, value));
        return node.operator === 'Minus' ? -operand : operand;
      }
      case 'OrExpression': {
        const left = this.evaluate(node.left, value);
        return this.#isFalse(left) ? this.evaluate(node.right, value) : left;
      }
      case 'AndExpression': {
        const left = this.evaluate(node.left, value);
        return this.#isFalse(left) ? left : this.evaluate(node.right, value);
      }
      case 'NotExpression':
        return this.#isFalse(this.evaluate(node.child, value));
      case 'Ternary':
        return this.evaluate(
          this.#isFalse(this.evaluate(node.condition, value)) ? node.falseExpr : node.trueExpr,
          value,
        );
      case 'MultiSelectList':
        return node.children.map((child) => this.evaluate(child, value));
      case 'MultiSelectHash':
        return Object.fromEntries(node.children.map((child) => [child.name, this.evaluate(child.value, value)]));
      case 'Function':
        return this.#functions.call(
          node.name,
          node.children.map((child) => this.evaluate(child, value)),
        );
      case 'ExpressionReference': {
        const reference = { expref: true, ...node.child };
        this.#references.add(reference);
        return reference as Value;
      }
      case 'LetExpression':
        return this.#let(node, value);
      case 'Variable':
        return this.#variable(node.name);
      case 'Binding':
        throw new QueryError('"=" is only allowed between "let" and "in"');
    }
  }

  #project(items: readonly Value[], expression: Node): Value[] {
    const found: Value[] = [];
    for (const item of items) {
      const result = this.evaluate(expression, item);
      if (result !== null) found.push(result);
    }
    return found;
  }

  #slice(node: Extract<Node, { type: 'Slice' }>, value: Value): Value {
    if (!Array.isArray(value) && typeof value !== 'string') return null;
    this.#meter.charge(value.length);
    const { start, stop, step } = TreeInterpreter.computeSliceParams(value.length, node);
    if (typeof value !== 'string') return TreeInterpreter.slice(value, start, stop, step);
    return TreeInterpreter.slice([...value], start, stop, step).join('');
  }

  #let({ bindings, expression }: Extract<Node, { type: 'LetExpression' }>, value: Value): Value {
    const outer = this.#scope;
    const variables = new Map<string, Value>();
    for (const binding of bindings) {
      // The parser accepts any expression here.
      if (binding.type !== 'Binding') throw new QueryError('"let" needs $name = value');
      variables.set(binding.variable, this.evaluate(binding.reference, value));
    }
    this.#scope = { outer, variables };
    const result = this.evaluate(expression, value);
    this.#scope = outer;
    return result;
  }

  #variable(name: string): Value {
    for (let scope = this.#scope; scope !== null; scope = scope.outer) {
      const value = scope.variables.get(name);
      if (value !== undefined) return value;
    }
    throw new QueryError(`the variable $${name} has no value here`);
  }

  #compare(operator: string, left: Value, right: Value): Value {
    if (operator === 'EQ') return this.#equal(left, right);
    if (operator === 'NE') return !this.#equal(left, right);
    if (typeof left !== 'number' || typeof right !== 'number') return null;
    if (operator === 'GT') return left > right;
    if (operator === 'GTE') return left >= right;
    return operator === 'LT' ? left < right : left <= right;
  }

  #equal(left: Value, right: Value): boolean {
    this.#meter.charge();
    if (typeof left === 'string' && typeof right === 'string') {
      if (left.length !== right.length) return false;
      this.#meter.chargeChars(left.length);
    }
    if (left === right || typeof left !== 'object' || typeof right !== 'object') return left === right;
    this.#enter();
    const same = this.#sameParts(left, right);
    this.#depth -= 1;
    return same;
  }

  #sameParts(left: Value, right: Value): boolean {
    if (Array.isArray(left) && Array.isArray(right)) {
      return left.length === right.length && left.every((item, index) => this.#equal(item, right[index] ?? null));
    }
    if (!isMap(left) || !isMap(right) || this.keyCount(left) !== this.keyCount(right)) return false;
    this.#meter.charge(MEMBER_STEPS * this.keyCount(left));
    return Object.keys(left).every(
      (key) => Object.hasOwn(right, key) && this.#equal(left[key] ?? null, right[key] ?? null),
    );
  }

  #isFalse(value: Value): boolean {
    if (value === null || value === false || value === '') return true;
    if (typeof value !== 'object') return false;
    return (Array.isArray(value) ? value.length : this.keyCount(value)) === 0;
  }
}

function isMap(value: Value): value is { [key: string]: Value } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function toNumber(value: Value): number {
  if (typeof value !== 'number') throw new QueryError(`arithmetic needs numbers, found ${typeof value}`);
  return value;
}

function arithmetic(operator: string, left: Value, right: Value): number {
  const [a, b] = [toNumber(left), toNumber(right)];
  switch (operator) {
    case 'Plus':
      return a + b;
    case 'Minus':
      return a - b;
    case 'Modulo':
      return a % b;
    case 'Divide':
    case 'Div':
      if (b === 0 || Number.isNaN(b)) throw new QueryError('division by zero');
      return operator === 'Divide' ? a / b : Math.floor(a / b);
    default:
      return a * b;
  }
}
