/**
 * What null means in a condition (D4). An absent member is null, and so is a value that is not there yet.
 *
 * Null is equal to null only. It is neither smaller nor greater than any value, is false where true or false is asked, is
 * an empty list where a list is read, and has the size 0. A calculation with null, and a function of it, give null.
 *
 * A policy is strict: a value that is not there cannot be said to be small or harmless. To compare the size of null, to
 * calculate with it, and a function of it are errors there, so that the action is denied.
 */

/** A node of the library's syntax tree; `handle` and `evaluate` are set by its type check. */
export interface LibraryNode {
  readonly op: string;
  readonly args: unknown;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly evaluate?: (...values: unknown[]) => unknown;
  readonly handle?: (...values: unknown[]) => unknown;
}

/** Functions that take null as a value. */
const TAKES_NULL: ReadonlySet<string> = new Set(['type', 'dyn', 'text']);

/** Operators that have no result for null in a policy: the library's own error counts. */
const STRICT: ReadonlySet<string> = new Set(['<', '<=', '>', '>=', '+', '-', '*', '/', '%', '-_', 'call', 'rcall']);

/**
 * What an operator or a function gives if a value of it is null or absent; undefined: its own result counts.
 *
 * @param values what the node works on; null as a list becomes an empty one
 * @param isStrict whether the condition is that of a policy
 */
export function resultOfNull(node: LibraryNode, values: unknown[], isStrict: boolean): unknown {
  const { op, args } = node;
  const [left, right] = values;
  if (isStrict && STRICT.has(op)) return undefined;
  switch (op) {
    case '.':
    case '[]':
      return isAbsent(left, right) ? null : undefined;
    case '<':
    case '<=':
    case '>':
    case '>=':
      return left === null || right === null ? false : undefined;
    case 'in':
      return right === null ? false : undefined;
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
      return left === null || right === null ? null : undefined;
    case '-_':
      return left === null ? null : undefined;
    case 'comprehension':
      values[0] ??= [];
      return undefined;
    case 'call':
    case 'rcall': {
      const [name] = args as [string];
      if (TAKES_NULL.has(name) || !(left as unknown[]).includes(null)) return undefined;
      return name === 'size' ? 0n : null;
    }
    default:
      return undefined;
  }
}

function isAbsent(owner: unknown, member: unknown): boolean {
  if (owner === null) return true;
  if (owner instanceof Map) return !owner.has(member);
  if (Array.isArray(owner)) {
    const at = typeof member === 'bigint' ? Number(member) : member;
    return Number.isInteger(at) && owner[at as number] === undefined;
  }
  // The runtime form of a map literal.
  if (typeof owner !== 'object' || Object.getPrototypeOf(owner) !== Object.prototype) return false;
  return !Object.hasOwn(owner, String(member));
}

/** The parts of a node whose value is asked to be true or false. */
export function asksTruth({ op, args }: LibraryNode): readonly unknown[] {
  switch (op) {
    case '&&':
    case '||':
      return args as unknown[];
    case '?:':
      return [(args as unknown[])[0]];
    case '!_':
      return [args];
    default:
      return [];
  }
}

export function isHas({ op, args }: LibraryNode): boolean {
  return op === 'call' && (args as unknown[])[0] === 'has';
}

/** Whether the library has not found a member. */
export function isNoSuchMember(fault: unknown): boolean {
  return typeof fault === 'object' && fault !== null && 'code' in fault && fault.code === 'no_such_key';
}
