/** Compares JSON values according to JSON Schema, charged to a meter. */
import { isJsonObject } from '../domain/json.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { WorkMeter } from '../domain/work.ts';
import { TooDeep } from './json-size.ts';

/** Whether two values are equal as JSON, regardless of member order. @throws TooDeep, WorkExceeded */
export function sameJson(left: Json, right: Json, meter: WorkMeter, depth = 0): boolean {
  meter.charge();
  if (typeof left === 'string' && typeof right === 'string' && left.length === right.length) {
    meter.chargeChars(left.length);
  }
  if (left === right || typeof left !== 'object' || typeof right !== 'object') return left === right;
  if (left === null || right === null) return false;
  assertDepth(depth);
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => sameJson(item, right[index] ?? null, meter, depth + 1));
  }
  if (Array.isArray(right)) return false;
  const names = Object.keys(left);
  meter.charge(names.length);
  if (names.length !== Object.keys(right).length) return false;
  return names.every(
    (name) => Object.hasOwn(right, name) && sameJson(left[name] ?? null, right[name] ?? null, meter, depth + 1),
  );
}

/** Each part is written to a separate string. */
const CANONICAL_STEPS = 6;

/** A text that is equal for equal values. @throws TooDeep, WorkExceeded */
export function canonicalOf(value: Json, meter: WorkMeter, depth = 0): string {
  meter.charge(CANONICAL_STEPS);
  if (typeof value === 'string') meter.chargeChars(value.length);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  assertDepth(depth);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalOf(item, meter, depth + 1)).join(',')}]`;
  const names = Object.keys(value);
  meter.charge(names.length * Math.ceil(Math.log2(names.length + 2)));
  const members = names
    .toSorted()
    .map((name) => `${JSON.stringify(name)}:${canonicalOf(value[name] ?? null, meter, depth + 1)}`);
  return `{${members.join(',')}}`;
}

function assertDepth(depth: number): void {
  if (depth >= limits.schemaDepth) {
    throw new TooDeep(`the value is nested too deeply (allowed: ${limits.schemaDepth} levels)`);
  }
}

/** The JSON Schema type of a value; `integer` is a subtype of `number`. */
export function typeOfJson(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return isJsonObject(value) ? 'object' : typeof value;
}

/** Code points. */
export function charactersOf(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index += 1) {
    if ((text.codePointAt(index) ?? 0) > 0xffff) index += 1;
    count += 1;
  }
  return count;
}

/** Uses the decimal digits as written, not the binary value: 0.3 is a multiple of 0.1. */
export function isMultipleOf(value: number, divisor: number): boolean {
  if (!Number.isFinite(value) || !Number.isFinite(divisor) || divisor <= 0) return false;
  const [digits, exponent] = decimal(value);
  const [divisorDigits, divisorExponent] = decimal(divisor);
  // At most about 650 digits: exponents of doubles range from -324 to 308.
  const shift = exponent - divisorExponent;
  if (shift >= 0) return (digits * 10n ** BigInt(shift)) % divisorDigits === 0n;
  return digits % (divisorDigits * 10n ** BigInt(-shift)) === 0n;
}

function decimal(value: number): readonly [digits: bigint, exponent: number] {
  const [mantissa = '0', exponent = '0'] = Math.abs(value).toString().split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}
