/** Converts a program's output to a value (R3). */
import { exceededLimit, type Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

/** The third argument of a reviver: the source text of a number. */
interface Source {
  readonly source?: string;
}

/**
 * The JSON value if the whole output is JSON, else the text without its last line break.
 *
 * A number that JSON would not reproduce digit by digit (`2**200`, `1.0`, `1e3`) stays text; inside an array or object
 * it becomes text only if its value would change. JSON nested deeper than `limits.jsonDepth` stays text.
 */
export function parseOutput(stdout: string): Json {
  const text = stdout.replace(/\r?\n$/, '');
  const body = text.trim();
  if (body === '' || exceededLimit(body, { depth: limits.jsonDepth }) !== null) return text;
  let value: Json;
  try {
    value = JSON.parse(body, keepDigits) as Json;
  } catch {
    return text;
  }
  return typeof value === 'number' && String(value) !== body ? text : value;
}

function keepDigits(_key: string, value: unknown, context?: Source): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined) return value;
  return digitsOf(String(value)) === digitsOf(source) ? value : source;
}

/** A decimal number in canonical form: `12.50e1` and `125` have the same digits and exponent. */
function digitsOf(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text);
  if (match === null) return text;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match;
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  return `${sign}${significant}e${Number(exponent) - fraction.length + (digits.length - significant.length)}`;
}
