import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { calculator } from '../../../src/executors/builtin/calculator.ts';
import { evaluate } from '../../../src/executors/builtin/arithmetic.ts';
import { callOf, contextOf, errorOf } from '../support.ts';

test.each<[string, number | string]>([
  ['1+2*3', 7],
  ['(1+2)*3', 9],
  ['10/4', 2.5],
  ['10/5', 2],
  ['7%3', 1],
  ['-7%3', 2],
  ['7.5%2', 1.5],
  ['-2^2', -4],
  ['(-2)^2', 4],
  ['--2^2', 4],
  ['2*-3^2', -18],
  ['2^3^2', 512],
  ['2**3', 8],
  ['2^-1', 0.5],
  ['3^0.5', 1.73205080756888],
  ['0.1+0.2', 0.3],
  ['1.1*1.1', 1.21],
  ['5 × 2 ÷ 4', 2.5],
  ['sqrt(16) + cbrt(27)', 7],
  ['sqrt(2^200)', '1267650600228229401496703205376'],
  ['2^200', (2n ** 200n).toString()],
  ['9007199254740993 + 0', '9007199254740993'],
  ['10000000000000000000000/3', 3.33333333333333e21],
  ['10^400/10^399', 10],
  ['10^400/(3*10^399)', 3.33333333333333],
  ['factorial(20)', '2432902008176640000'],
  ['sin(pi/2)', 1],
  ['sin(pi)', 1.22464679914735e-16],
  ['log(8, 2)', 3],
  ['ln(e)', 1],
  ['log10(1000)', 3],
  ['round(2.675, 2)', 2.68],
  ['round(-2.5)', -3],
  ['round(1234, -2)', 1200],
  ['floor(-0.5)', -1],
  ['mean(1, 2, 4)', 2.33333333333333],
  ['max(1, 2.5, 2)', 2.5],
  ['gcd(12, 18) + lcm(4, 6)', 18],
  ['2*PI', 6.28318530717959],
])('[M3] %s = %s', (expression, value) => {
  expect(evaluate(expression)).toBe(value);
});

test.each([
  ['', 'the expression is empty'],
  ['1/0', 'division by zero'],
  ['5 % 0', 'remainder of a division by zero'],
  ['0^-1', 'zero to a negative power'],
  ['sqrt(-1)', 'sqrt(-1) has no real value'],
  ['(-8)^0.5', 'the expression has no real value'],
  ['1e400', 'the value is too large'],
  ['9^9^9', 'more than 10000 digits'],
  ['(2^33000)*(2^33000)', 'more than 10000 digits'],
  ['factorial(100000)', 'more than 10000 digits'],
  ['factorial(2.5)', 'expected a whole number, got 2.5'],
  ['foo + 1', 'unknown name "foo" (constants: pi, e, tau, phi'],
  ['foo(1)', 'unknown function "foo"'],
  ['sqrt', 'the function sqrt needs arguments'],
  ['sqrt(1, 2)', 'sqrt takes 1 value, got 2'],
  ['2 3', 'is an operator such as * missing'],
  ['2(3)', 'is an operator such as * missing'],
  ['(2', 'character 3: the "(" at character 1 is not closed'],
  ['2)', 'character 2: Unexpected ")"'],
  ['()', 'empty parentheses'],
  ['1 +', 'invalid expression at character 4'],
  ['1 == 1', 'unknown operator "==" (allowed: + - * / % ^)'],
  ['a.b', 'a property (a.b or a[b]) is not arithmetic'],
  ['[1]', 'a list'],
  ['1 ? 2 : 3', 'a condition'],
  ['"x" + 1', '"x" is not a number'],
  ['constructor', 'unknown name "constructor"'],
  ['toString()', 'unknown function "toString"'],
  ['sqrt.constructor("x")()', 'only a function can be called'],
  ['this', '"this" is not arithmetic'],
])('[M3] %j is refused: %s', async (expression, message) => {
  const error = errorOf(await calculator.execute(callOf({ expression }), contextOf()));
  expect(error).toMatchObject({ code: 'invalid_expression', retryable: false });
  expect(error.message).toContain(message);
});

test.each([
  ['(', 5_000],
  ['-', 9_000],
  ['1+', 4_000],
  ['2^', 4_000],
  ['sqrt(', 2_000],
])('[P16] %j repeated %i times gives a value or an issue', (piece, times) => {
  const expression = `${piece.repeat(times)}1`;
  try {
    expect(['number', 'string']).toContain(typeof evaluate(expression));
  } catch (fault) {
    expect(fault).toHaveProperty('name', 'ArithmeticError');
  }
});

test('[M3] integers are exact at any size', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), fc.bigInt({ min: 1n, max: 10n ** 30n }), (a, b) => {
      expect(String(evaluate(`(${a}) * ${b} + ${b}`))).toBe(String(a * b + b));
      expect(String(evaluate(`(${a}) - ${b}`))).toBe(String(a - b));
    }),
    { numRuns: 200 },
  );
});

test('[M3] any input gives a value or an issue', () => {
  const piece = fc.constantFrom(
    ...'0123456789.+-*/%^(),!?:[]"\'` ',
    'pi',
    'e',
    'sqrt',
    'max',
    'x',
    '\n',
    'π',
    '**',
    '😀',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      try {
        expect(['number', 'string']).toContain(typeof evaluate(pieces.join('')));
      } catch (fault) {
        expect(fault).toHaveProperty('name', 'ArithmeticError');
      }
    }),
    { numRuns: 500 },
  );
});

test('[M3] a number is accepted as an expression, any other type is not', async () => {
  expect(await calculator.execute(callOf({ expression: 4 }), contextOf())).toEqual({ ok: true, output: 4 });
  expect(errorOf(await calculator.execute(callOf({ expression: [1] }), contextOf()))).toMatchObject({
    code: 'invalid_parameters',
    message: 'parameters.expression: expected an arithmetic expression as a string, got [1]',
  });
});

const digits = (length: number): string => '9'.repeat(length);
const times = (what: string, count: number, joint = '-'): string =>
  Array.from({ length: count }, () => what).join(joint);

test.each([
  ['many factorials', times('factorial(3248)', 1_000)],
  ['factorials in a function', `gcd(${times('factorial(3248)', 1_000, ',')})`],
  ['many powers', times('15^8000', 2_000)],
  ['many roots', times(`sqrt(${digits(9_000)})`, 7)],
  ['products', times('15^4000*7^4000', 2_000)],
  ['quotients', times('15^8000/7^5000', 2_000)],
  ['remainders', times('mod(15^8000,7^5000)', 2_000)],
  ['divisors of long numbers', `gcd(${digits(9_000)},${times('123456789', 900, '')})`],
  ['multiples of long numbers', `lcm(${digits(4_900)},${times('12345678', 600, '')})`],
  ['sums', `sum(${times('15^8000', 900, ',')})`],
])('[M3] the work for %s is limited', (_, expression) => {
  expect(() => evaluate(expression)).toThrow('too large for so many operations');
});

test('[M3] the digits of a number and the length of an expression are limited', () => {
  expect(() => evaluate(digits(10_001))).toThrow('more than 10000 digits');
  expect(evaluate(digits(10_000))).toBe(digits(10_000));
  expect(() => evaluate(times('1', 40_000, '+'))).toThrow(`allowed: ${limits.calculatorChars}`);
  expect(evaluate(times('factorial(100)', 50, '+'))).toBe(String(50n * BigInt(String(evaluate('factorial(100)')))));
});
