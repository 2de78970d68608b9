/** Arithmetic values: exact integers if both operands are integers, otherwise doubles; and the functions on them. */

/** An error in an expression, with a message that helps to fix it. */
export class ArithmeticError extends Error {
  override readonly name = 'ArithmeticError';
}

export type Value = bigint | number;

/** Maximum length of an exact result. A larger power or factorial is rejected instead of computed for minutes. */
const MAX_DIGITS = 10_000;
/** The largest argument whose factorial has at most `MAX_DIGITS` digits. */
const MAX_FACTORIAL = 3_248;
const MAX_BITS = Math.ceil(MAX_DIGITS * Math.log2(10));
export const CONSTANTS: Readonly<Record<string, number>> = {
  pi: Math.PI,
  e: Math.E,
  tau: 2 * Math.PI,
  phi: (1 + Math.sqrt(5)) / 2,
};

export function bothExact(a: Value, b: Value, exact: (x: bigint, y: bigint) => bigint): bigint | null {
  return typeof a === 'bigint' && typeof b === 'bigint' ? exact(a, b) : null;
}

export function multiply(a: bigint, b: bigint): bigint {
  if (bits(a) + bits(b) > MAX_BITS + 64) throw tooManyDigits();
  return a * b;
}

export function divide(a: Value, b: Value): Value {
  if (Number(b) === 0) throw new ArithmeticError('division by zero');
  if (typeof a !== 'bigint' || typeof b !== 'bigint') return Number(a) / Number(b);
  if (a % b === 0n) return a / b;
  // 80 extra bits keep the quotient of two numbers that are both too large for a double.
  const shifted = Number((a << 80n) / b) / 2 ** 80;
  return Number.isFinite(Number(a)) && Number.isFinite(Number(b)) ? Number(a) / Number(b) : shifted;
}

/** The result has the sign of the divisor, as in mathematics and Python. */
export function remainder(a: Value, b: Value): Value {
  if (Number(b) === 0) throw new ArithmeticError('remainder of a division by zero');
  const exact = bothExact(a, b, (x, y) => ((x % y) + y) % y);
  if (exact !== null) return exact;
  return Number(a) - Number(b) * Math.floor(Number(a) / Number(b));
}

export function pow(base: Value, exponent: Value): Value {
  if (typeof base === 'bigint' && typeof exponent === 'bigint' && exponent >= 0n) {
    if (base === 0n || base === 1n) return exponent === 0n ? 1n : base;
    if (base === -1n) return exponent % 2n === 0n ? 1n : -1n;
    if (exponent > BigInt(MAX_BITS) || bits(base) * Number(exponent) > MAX_BITS + bits(base)) throw tooManyDigits();
    return base ** exponent;
  }
  if (Number(base) === 0 && Number(exponent) < 0) throw new ArithmeticError('zero to a negative power');
  return Number(base) ** Number(exponent);
}

function bits(value: bigint): number {
  return (value < 0n ? -value : value).toString(16).length * 4;
}

/** An integer from its digits. */
export function whole(digits: string): bigint {
  if (digits.length > MAX_DIGITS) throw tooManyDigits();
  return BigInt(digits);
}

/** Cost of an operator or function on these values, in steps; measured, for exact numbers of any size. */
export function stepsOf(name: string, values: readonly Value[]): number {
  const sizes = values.map((value) => (typeof value === 'bigint' ? words(value) : 1));
  const [first = 1, second = 1] = sizes;
  const all = sizes.reduce((sum, size) => sum + size, 0);
  switch (name) {
    case '*':
    case '/':
    case '%':
    case 'mod':
      return 1 + (first * second) / 8;
    case 'pow': {
      const exponent = Math.min(Math.abs(Number(values[1] ?? 0)), MAX_BITS);
      return 1 + Math.min(first * exponent, MAX_BITS / WORD_BITS) ** 2 / 8;
    }
    case 'sqrt':
      return 1 + 2 * first ** 2;
    case 'factorial':
      return 1 + 16 * Math.min(Math.abs(Number(values[0] ?? 0)), MAX_FACTORIAL);
    case 'gcd':
    case 'lcm':
      return all + sizes.reduce((sum, size) => sum + (WORD_BITS * size * size) / 4, 0);
    default:
      return all;
  }
}

const WORD_BITS = 64;

/** Number of 64-bit words. */
function words(value: bigint): number {
  return Math.ceil(bits(value) / WORD_BITS) + 1;
}

function tooManyDigits(): ArithmeticError {
  return new ArithmeticError(`the value would have more than ${MAX_DIGITS} digits`);
}

type Arity = readonly [min: number, max: number];
type Rule = readonly [Arity, (...values: Value[]) => Value];

const real = (compute: (x: number) => number): Rule => [[1, 1], (x) => compute(Number(x))];
const rounded = (compute: (x: number) => number): Rule => [
  [1, 1],
  (x) => {
    if (typeof x === 'bigint') return x;
    const result = compute(x);
    return Number.isFinite(result) ? BigInt(result) : result;
  },
];
const MANY: Arity = [1, 1_000];

export const FUNCTIONS: Readonly<Record<string, Rule>> = {
  sqrt: [[1, 1], squareRoot],
  cbrt: real(Math.cbrt),
  abs: [[1, 1], (x) => (x < 0 ? -x : x)],
  sign: [[1, 1], (x) => (x > 0 ? 1n : x < 0 ? -1n : 0n)],
  exp: real(Math.exp),
  ln: real(Math.log),
  log: [[1, 2], (x, base) => (base === undefined ? Math.log(Number(x)) : Math.log(Number(x)) / Math.log(Number(base)))],
  log10: real(Math.log10),
  log2: real(Math.log2),
  sin: real(Math.sin),
  cos: real(Math.cos),
  tan: real(Math.tan),
  asin: real(Math.asin),
  acos: real(Math.acos),
  atan: real(Math.atan),
  atan2: [[2, 2], (y, x) => Math.atan2(Number(y), Number(x))],
  sinh: real(Math.sinh),
  cosh: real(Math.cosh),
  tanh: real(Math.tanh),
  degrees: real((x) => (x * 180) / Math.PI),
  radians: real((x) => (x * Math.PI) / 180),
  floor: rounded(Math.floor),
  ceil: rounded(Math.ceil),
  trunc: rounded(Math.trunc),
  round: [[1, 2], round],
  hypot: [MANY, (...values) => Math.hypot(...values.map(Number))],
  min: [MANY, (...values) => values.reduce((least, value) => (value < least ? value : least))],
  max: [MANY, (...values) => values.reduce((most, value) => (value > most ? value : most))],
  sum: [MANY, sum],
  mean: [MANY, (...values) => divide(sum(...values), BigInt(values.length))],
  factorial: [[1, 1], factorial],
  gcd: [MANY, (...values) => values.map(wholeNumber).reduce(greatestDivisor)],
  lcm: [MANY, (...values) => values.map(wholeNumber).reduce(leastMultiple)],
  pow: [[2, 2], (base = 0n, exponent = 0n) => pow(base, exponent)],
  mod: [[2, 2], (a = 0n, b = 0n) => remainder(a, b)],
};

function squareRoot(x: Value): Value {
  const root = Math.sqrt(Number(x));
  if (typeof x === 'number' || x < 0n) return root;
  const exact = wholeRoot(x);
  return exact * exact === x ? exact : root;
}

/** The floor of the square root, by Newton's method. */
function wholeRoot(x: bigint): bigint {
  if (x < 2n) return x;
  let root = 1n << BigInt(Math.ceil(bits(x) / 2));
  for (;;) {
    const next = (root + x / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** Rounds half away from zero, using the displayed decimal digits rather than the binary value. */
function round(x: Value, digits: Value = 0n): Value {
  const places = Number(wholeNumber(digits));
  if (Math.abs(places) > 300) throw new ArithmeticError(`round takes -300 to 300 digits, got ${places}`);
  if (typeof x === 'bigint') {
    if (places >= 0) return x;
    const step = 10n ** BigInt(-places);
    const half = step / 2n;
    return ((x < 0n ? x - half : x + half) / step) * step;
  }
  const [mantissa, exponent] = Math.abs(x).toExponential().split('e');
  const rounded = Math.round(Number(`${mantissa}e${Number(exponent) + places}`));
  const back = Number(`${rounded}e${-places}`) * Math.sign(x);
  return places <= 0 && Number.isFinite(back) ? BigInt(back) : back;
}

function sum(...values: Value[]): Value {
  return values.reduce((total, value) => bothExact(total, value, (x, y) => x + y) ?? Number(total) + Number(value));
}

function factorial(x: Value): bigint {
  const n = wholeNumber(x);
  if (n < 0n) throw new ArithmeticError('factorial of a negative number');
  if (n > BigInt(MAX_FACTORIAL)) throw tooManyDigits();
  let product = 1n;
  for (let factor = 2n; factor <= n; factor += 1n) product *= factor;
  return product;
}

function wholeNumber(x: Value): bigint {
  if (typeof x === 'bigint') return x;
  if (Number.isInteger(x)) return BigInt(x);
  throw new ArithmeticError(`expected a whole number, got ${x}`);
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

function leastMultiple(a: bigint, b: bigint): bigint {
  if (a === 0n || b === 0n) return 0n;
  const product = multiply(a, b) / greatestDivisor(a, b);
  return product < 0n ? -product : product;
}
